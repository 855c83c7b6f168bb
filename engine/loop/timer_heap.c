#include "engine/loop/timer_heap.h"

/* Far more than the requests and connections that may wait at once, so that growing is rare. */
#define CAPACITY_FIRST 1024u

int
timer_heap_init(struct timer_heap *heap)
{
    *heap = (struct timer_heap){.capacity = CAPACITY_FIRST};
    heap->slots = calloc(heap->capacity + 1, sizeof(struct loop_timer *));
    return heap->slots != NULL ? 0 : -ENOMEM;
}

void
timer_heap_destroy(struct timer_heap *heap)
{
    check_eq(heap->count, 0);
    free(heap->slots);
    *heap = (struct timer_heap){0};
}

static bool
sooner(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static void
place(struct timer_heap *heap, uint32_t index, struct loop_timer *timer)
{
    heap->slots[index] = timer;
    timer->heap_index = index;
}

/* Put `timer` where it belongs, starting from the hole at `index`. */
static void
settle(struct timer_heap *heap, uint32_t index, struct loop_timer *timer)
{
    while (index > 1 && sooner(timer, heap->slots[index / 2])) {
        place(heap, index, heap->slots[index / 2]);
        index /= 2;
    }
    for (;;) {
        uint32_t child = index * 2;
        if (child < heap->count && sooner(heap->slots[child + 1], heap->slots[child]))
            child++;
        if (child > heap->count || sooner(timer, heap->slots[child]))
            break;
        place(heap, index, heap->slots[child]);
        index = child;
    }
    place(heap, index, timer);
}

/* To as many as were ever set at once, and it stays that large: 8 bytes for each timer, whose own
 * memory came from somebody's open. */
static void
grow(struct timer_heap *heap)
{
    check_lt(heap->capacity, UINT32_C(1) << 30);
    uint32_t capacity = heap->capacity * 2;
    struct loop_timer **slots = /* I8: see above */
        reallocarray(heap->slots, (size_t)capacity + 1, sizeof(struct loop_timer *));
    check(slots != NULL);
    heap->slots = slots;
    heap->capacity = capacity;
}

void
timer_heap_set(struct timer_heap *heap, struct loop_timer *timer, uint64_t due_ns)
{
    uint32_t index = timer->heap_index;
    if (index == 0) {
        if (heap->count == heap->capacity)
            grow(heap);
        index = ++heap->count;
    }
    timer->due_ns = due_ns;
    timer->sequence = ++heap->sequence;
    settle(heap, index, timer);
}

void
timer_heap_remove(struct timer_heap *heap, struct loop_timer *timer)
{
    uint32_t index = timer->heap_index;
    check_ne(index, 0);
    check_le(index, heap->count);
    check(heap->slots[index] == timer);
    struct loop_timer *last = heap->slots[heap->count--];
    timer->heap_index = 0;
    if (last != timer)
        settle(heap, index, last);
}
