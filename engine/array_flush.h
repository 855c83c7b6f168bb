/* FLUSH: group commit over the members that have something to flush. */
#pragma once

#include "engine/base/req.h"

#include "engine/waiters.h"

struct array;

struct flush_child {
    struct req req;
    struct array_flush *flush;
    struct member *member;
    uint64_t mark; /* writes done when it was submitted */
};

struct array_flush {
    struct array *array;
    struct list next, current; /* waiters: of the next round, of the one that runs */
    uint32_t stage, pending;
    bool running;
    bool lost; /* P3: sticky, see array_flush.c */
    int err;
    struct meta_waiter record;
    struct flush_child *children; /* one per member */
};

MUST_CHECK int array_flush_init(struct array_flush *flush, struct array *array);
void array_flush_destroy(struct array_flush *flush);

/* Make every write whose done() was called before now durable on the members, then done(), perhaps
 * from inside this call.  A member that cannot is failed (recorded first, I11) as long as the array
 * is enough without it, else -EIO now and for every later flush. */
void array_flush_submit(struct array_flush *flush, struct flush_waiter *waiter);
