/* From active back to clean, when writes have ceased. */
#pragma once

#include "engine/loop/loop.h"
#include "engine/waiters.h"

struct array;

struct array_clean {
    struct array *array;
    struct loop_timer idle;
    uint64_t idle_since_ns;
    uint32_t idle_ms;
    uint32_t stage;
    bool running;
    int err;
    uint64_t writes_begun; /* when the flush was submitted */
    uint64_t resync_sectors;
    struct flush_waiter flush;
    struct meta_waiter update;
    void (*done)(struct array_clean *clean, int err);
};

void array_clean_init(struct array_clean *clean, struct array *array, uint32_t idle_ms);
/* The last write in flight has ended. */
void array_clean_idle(struct array_clean *clean);
/* Flush, then mark clean (or with the resync position reached), unless writes came meanwhile.
 * done() may be NULL, may come from inside.  No-op (0) when there is nothing to say. */
void array_clean_run(struct array_clean *clean, void (*done)(struct array_clean *clean, int err));
