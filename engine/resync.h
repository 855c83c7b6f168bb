/* The resync job: makes redundancy agree with data where it may not. */
#pragma once

#include "engine/stripe_op.h"

#define RESYNC_WINDOW                                                                              \
    4 /* rows in flight; enough to keep members streaming, little to wait behind */

struct array;

struct resync {
    struct array *array;
    struct loop_step start;
    bool active, stopping, pumping;
    bool incomplete;              /* some granule could not be synced */
    uint64_t granule;             /* being worked on */
    uint64_t at_bytes, end_bytes; /* sync addresses in it, not yet issued */
    bool granule_failed, granule_again;
    uint32_t in_flight;
    uint64_t done_bytes, total_bytes, granules_since_mark;
    uint64_t start_ns;
    struct stripe_op *ops[RESYNC_WINDOW], *free[RESYNC_WINDOW];
    uint32_t free_count;
};

MUST_CHECK int resync_init(struct resync *resync, struct array *array);
void resync_destroy(struct resync *resync);
void resync_start(struct resync *resync); /* when there is something to do and it may be done */
void resync_stop(struct resync *resync);  /* poked (array_poke_stop) when it has */
