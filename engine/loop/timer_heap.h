/* The timers of a loop, soonest first: a binary heap of pointers, with each timer's place in the
 * timer.  Equal times come out in the order they were set.  Internal to engine/loop. */
#pragma once

#include "engine/loop/loop.h"

struct timer_heap {
    struct loop_timer **slots; /* slots[1] is the soonest; slots[0] is not used */
    uint32_t count;
    uint32_t capacity;
    uint64_t sequence; /* of the timer set last */
};

MUST_CHECK int timer_heap_init(struct timer_heap *heap); /* 0 or -ENOMEM */
void timer_heap_destroy(struct timer_heap *heap);        /* accepts a zeroed one */
/* Insert, or move when it is in.  Setting cannot fail: a heap that cannot grow aborts. */
void timer_heap_set(struct timer_heap *heap, struct loop_timer *timer, uint64_t due_ns);
void timer_heap_remove(struct timer_heap *heap, struct loop_timer *timer);

static inline struct loop_timer *
timer_heap_first(const struct timer_heap *heap)
{
    return heap->count != 0 ? heap->slots[1] : NULL;
}
