/* Plans: a stripe operation as data.
 *
 * A plan turns (geometry, which roles can be read and written, range) into a bounded table of
 * reads, sums and writes, all of the same length.  It says what, never how: one executor
 * (engine/stripe_op) serves every level and every situation.  When a role fails under a plan, take
 * it out of the masks and plan again (I9: a plan depends on nothing else).
 *
 * Slots name the buffers a plan works on, each `len_bytes` long:
 *   PLAN_OLD(role)   what the role's member holds now      (scratch)
 *   PLAN_NEW(role)   what it holds afterwards / what the client gets; for data roles inside the
 *                    client's range this is the client's own memory, else scratch
 * Mirrors use the slots of the lowest role that has the range, whichever role is read or written:
 * READ fills PLAN_NEW of it, WRITE writes PLAN_NEW of it to every copy, and with need_old one copy
 * is read into PLAN_OLD of it.  band_data_role() names it.
 *
 * Sums are linear forms over GF(2^8), polynomial 0x11d (research/md.md 2.5):
 *   slot[dst] = sum over terms of coef * slot[src]      (coef 1 everywhere: XOR)
 * They are computed in order.  An executor does: reads; sums [0, sum_merge_index), which recover
 * the PLAN_OLD of written roles that cannot be read; then, with need_old, the merge: PLAN_NEW of
 * each data role := its PLAN_OLD with the client's bytes on top; then the other sums; then writes.
 * A READ has no merge: sum_merge_index is 0, and its sums fill PLAN_NEW.
 *
 * Which plan a parity write gets: of none (full stripe), old parity and old written data (RMW),
 * data not written (RCW), or whatever else can be read, the one with the fewest reads.  On a tie
 * RMW: it touches only members that are written anyway.  Old parity that is not trusted is
 * not used while any other way exists. */
#pragma once

#include "layouts/layout.h"

#define PLAN_IOS_MAX    MEMBERS_MAX
#define PLAN_SUMS_MAX   4
#define PLAN_TERMS_MAX  (PLAN_SUMS_MAX * 2 * MEMBERS_MAX)
#define PLAN_OLD(role)  ((uint16_t)(role))
#define PLAN_NEW(role)  ((uint16_t)(MEMBERS_MAX + (role)))
#define PLAN_SLOT_COUNT (2 * MEMBERS_MAX)

enum plan_method {                   /* for statistics */
                   PLAN_PLAIN,       /* no parity involved */
                   PLAN_FULL_STRIPE, /* parity from new data alone */
                   PLAN_RMW,         /* parity from old parity, old and new data */
                   PLAN_RCW,         /* parity from all data of the stripe */
                   PLAN_RECOVER,     /* a missing role is computed */
};

struct plan_io {
    uint16_t role;
    uint16_t slot;
    uint64_t member_off_bytes; /* from the start of the member's data (data_offset not included) */
};

struct plan_term {
    uint16_t slot;
    uint8_t coef;
};

struct plan_sum {
    uint16_t dst;
    uint16_t term_first, term_count;
};

struct plan {
    enum plan_method method;
    uint64_t len_bytes;
    uint32_t read_count, write_count, sum_count, term_count;
    uint32_t sum_merge_index; /* sums before this one run before the merge of ragged data */
    struct plan_io reads[PLAN_IOS_MAX];
    struct plan_io writes[PLAN_IOS_MAX];
    struct plan_sum sums[PLAN_SUMS_MAX];
    struct plan_term terms[PLAN_TERMS_MAX];
};

/* What is asked of one band (see layout.h). */
struct plan_input {
    const struct geometry *geometry;
    struct band band;
    uint64_t readable;   /* mask of roles whose content in this band can be had and is right */
    uint64_t writable;   /* mask of roles that take writes */
    bool parity_trusted; /* the stripe's redundancy agrees with its data (no resync pending) */
    bool need_old;       /* WRITE: the client's range is ragged, PLAN_OLD of the written data roles
                            must be filled (read or recovered) before the merge */
    uint64_t prefer; /* mirrors: read from one of these roles if possible (balance); 0: lowest */
};

/* Data of the band into PLAN_NEW of each of its data roles.  -EIO when not enough is readable.  A
 * role that cannot be read is computed from parity, trusted or not: whether to ask is the caller's
 * decision. */
MUST_CHECK int plan_read(const struct plan_input *input, struct plan *plan);
/* The band's data roles get PLAN_NEW (the client's), redundancy follows; the cheaper of
 * read-modify-write and reconstruct-write by member I/Os.  -EIO when it cannot be done so that
 * every byte stays computable: fewer writable copies than needed, or the old content needed for
 * parity is out of reach. */
MUST_CHECK int plan_write(const struct plan_input *input, struct plan *plan);
/* Bring redundancy of the band into line with the data (resync: targets are the parities, or the
 * copies that are not the source) or fill the roles in `targets` (rebuild): reads what is needed,
 * never a target, and writes PLAN_NEW of the targets.  For mirrors the source is the lowest
 * readable role outside `targets`, the data is in PLAN_NEW of the lowest role that has the range,
 * and targets that have no copy of the band are skipped.  The band must cover all data roles of
 * its rows.  -EIO when a target is not writable or cannot be computed. */
MUST_CHECK int plan_sync(const struct plan_input *input, uint64_t targets, struct plan *plan);
