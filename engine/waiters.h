/* Who waits for the array's shared machinery: a node in its queue and a way to go on.  Each is
 * embedded in its owner, is in at most one queue, and done() is called once per wait. */
#pragma once

#include "engine/base/list.h"

struct flush_waiter { /* for a round of member flushes: array_flush.h */
    struct list_node node;
    void (*done)(struct flush_waiter *waiter, int err);
};

struct meta_waiter { /* for an update of the superblocks: meta_io.h */
    struct list_node node;
    void (*done)(struct meta_waiter *waiter, int err);
};

struct intent_waiter { /* for bitmap blocks to be durable: intent.h */
    struct list_node node;
    uint32_t block_first, block_last;
    void (*done)(struct intent_waiter *waiter, int err);
};
