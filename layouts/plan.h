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
 * Mirrors use the slots of the lowest role that has the range.
 *
 * Sums are linear forms over GF(2^8), polynomial 0x11d (research/md.md 2.5):
 *   slot[dst] = sum over terms of coef * slot[src]      (coef 1 everywhere: XOR)
 * They are computed in order, and a later sum may use an earlier one's dst. */
#pragma once

#include "layouts/layout.h"

#define PLAN_IOS_MAX    MEMBERS_MAX
#define PLAN_SUMS_MAX   4
#define PLAN_TERMS_MAX  (PLAN_SUMS_MAX * (MEMBERS_MAX + 2))
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

/* Data of the band into PLAN_NEW of each of its data roles.  -EIO when not enough is readable. */
MUST_CHECK int plan_read(const struct plan_input *input, struct plan *plan);
/* The band's data roles get PLAN_NEW (the client's), redundancy follows; the cheaper of
 * read-modify-write and reconstruct-write by member I/Os.  -EIO when it cannot be done so that
 * every byte stays computable: fewer writable copies than needed, or the old content needed for
 * parity is out of reach. */
MUST_CHECK int plan_write(const struct plan_input *input, struct plan *plan);
/* Bring redundancy of the band into line with the data (resync) or fill the roles in `targets`
 * (rebuild): reads what is needed, writes the targets.  For mirrors the source is the lowest
 * readable role.  The band must cover all data roles of its rows. */
MUST_CHECK int plan_sync(const struct plan_input *input, uint64_t targets, struct plan *plan);
