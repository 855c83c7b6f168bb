/* What each sector of an array may show: the contract of an array, independent of how it is made.
 *
 * THEORY.  A sector has a set of *states*: what it may hold now, each with the requests in flight
 * that have taken effect in it.  A write may take effect at any moment between its submission and
 * its done(), sector by sector, and overlapping ones in any order; when it is done, states without
 * it are impossible.  So:
 *
 *      submit W    every state also with W on top           (and on top of those with others...)
 *      W done      states without W go, to the *pasts*: what the sector held until then
 *      W failed    both kinds stay: it may have happened or not
 *      read done   what it shows must have been a state between its submission and its end; with no
 *                  write in flight the others are impossible from now on: what was read sticks
 *      TRIM        may take effect or not (req.h allows more; nothing below does more)
 *      FLUSH done  pasts that ended before the flush was submitted are gone for good (P1)
 *      FUA done    the same for the sectors it wrote, and what it replaced is no past either
 *      power cut   states = what they were, or any of the pasts: an older version, but not older
 *                  than the last flushed one
 *      kill        states as they are: completed writes stay, those in flight may have happened.
 *                  The caches survive, so the pasts stay, too
 *
 * What an array without a log may show beyond this is in allowance.h, and uses the calls at the
 * end of this file. */
#pragma once

#include "engine/base/req.h"

#include "tests/sim/content.h"

#define MODEL_PENDING_MAX 3u /* writes in flight on one sector */

struct content_set {
    struct content_entry {
        const struct content *content;
        uint64_t tag; /* states: mask of pending in it; pasts, copies: when it ended; reads: which
                         sector */
    } * entries;
    uint32_t count, room;
};

struct model_io;

struct sector {
    struct content_set states;
    struct content_set pasts;  /* held since the last flush, and after a power cut again */
    struct content_set copies; /* what another copy may hold (mirrors, until resynced) */
    struct model_io *pending[MODEL_PENDING_MAX];
    uint64_t settled; /* when the last write in flight ended */
    uint32_t changes;
    bool from_medium; /* nothing was written since a power cut: what is not read never was */
};

/* A request, as far as the model is concerned. */
struct model_io {
    struct list_node node;
    enum req_op op;
    uint32_t flags, id;
    uint64_t off_bytes, len_bytes;
    uint64_t submitted;
    bool synced;               /* FLUSH: redundancy agreed with the data when it was submitted */
    uint32_t *changes;         /* READ: of each sector, at submission */
    struct content_set before; /* READ: states that went while it was in flight */
};

struct model {
    struct content_pool pool;
    struct sector *sectors;
    uint64_t sector_count, now;
    struct list reads;
    char *why; /* the first violation; "" none yet */
    size_t why_bytes;
};

void model_init(struct model *model, uint64_t size_bytes, char *why, size_t why_bytes);
void model_destroy(struct model *model);

/* May a write of this range be submitted, or are there too many in flight on some sector? */
bool model_has_room(const struct model *model, uint64_t off_bytes, uint64_t len_bytes);
/* Fill op, flags, id, off, len first.  *io is the model's until done or cut. */
void model_submit(struct model *model, struct model_io *io);
/* data: what a READ gave.  False: a violation, described in model->why. */
bool model_done(struct model *model, struct model_io *io, int err, const uint8_t *data);

/* Everything in flight is forgotten; the ios are the caller's again. */
void model_power_cut(struct model *model);
void model_kill(struct model *model);

/* ---- for allowance.c ---------------------------------------------------------------------- */
/* Is a write of it in flight, or not yet flushed? */
bool model_in_flight(const struct model *model, uint64_t sector);
bool model_unflushed(const struct model *model, uint64_t sector);
/* Nobody can know what it holds, until it is written. */
void model_lose(struct model *model, uint64_t sector);
/* Other copies of it may hold any of its states, until it is written. */
void model_copies_differ(struct model *model, uint64_t sector, bool power);
void model_copies_agree(struct model *model, uint64_t sector);
/* From now on it may be read from another copy. */
void model_read_elsewhere(struct model *model, uint64_t sector);
/* Does a range hold a sector that nobody knows? */
bool model_is_lost(const struct model *model, uint64_t off_bytes, uint64_t len_bytes);
