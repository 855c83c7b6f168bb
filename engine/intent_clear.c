/* THEORY OF OPERATION
 *
 * A granule that was written is FRESH.  Every daemon_sleep a sweep ages the idle ones; one that
 * stays idle through two sweeps is due, and the due ones are cleared together:
 *
 *      FLUSH    what was written there is durable on the members
 *      HEADER   events_cleared = events, if it must move (B2)
 *      BITS     clear those that are still idle (B1), in memory
 *      WRITE    their blocks, unhurried
 *
 * A write that comes meanwhile makes its granule FRESH again, so BITS passes it over, even when
 * that write has ended by then: the flush may not have covered it. */
#include "engine/array_core.h"

enum clear_stage { CLEAR_FLUSH, CLEAR_HEADER, CLEAR_BITS, CLEAR_WRITE, CLEAR_END };

static void clear_step(struct intent *intent);

static bool
may_clear(const struct intent *intent, uint64_t granule) /* B1 */
{
    return intent->busy[granule] == 0 && !bitset_test(intent->need_sync, granule);
}

static void
flushed(struct flush_waiter *waiter, int err)
{
    struct intent *intent = CONTAINER_OF(waiter, struct intent, flush);
    if (err != 0 || array_degraded(intent->array))
        intent->clear_stage = CLEAR_END;
    clear_step(intent);
}

static void
written(struct intent_waiter *waiter, int err)
{
    struct intent *intent = CONTAINER_OF(waiter, struct intent, written);
    if (err != 0 || array_degraded(intent->array))
        intent->clear_stage = CLEAR_END;
    clear_step(intent);
}

static bool
write_events_cleared(struct intent *intent)
{
    uint64_t events = intent->array->meta.events;
    if (intent->header.events_cleared >= events)
        return true;
    intent->header.events_cleared = events; /* B2 */
    intent->header.events = events;
    intent_header_dirty(intent);
    return intent_write_dirty(intent, &intent->written, written);
}

static void
clear_due_bits(struct intent *intent)
{
    for (uint64_t granule = 0; granule < intent->granule_count; granule++) {
        if (intent->age[granule] != INTENT_AGE_DUE || !may_clear(intent, granule))
            continue;
        intent->age[granule] = 0;
        intent->clearable_count--;
        if (intent_bit(intent, granule))
            intent_bit_clear(intent, granule);
    }
}

static void
end_clearing(struct intent *intent)
{
    intent->clearing = false;
    intent_sweep_later(intent);
    void (*cleared)(struct intent *) = intent->cleared;
    intent->cleared = NULL;
    if (cleared != NULL)
        cleared(intent);
    array_poke_stop(intent->array);
}

static void
clear_step(struct intent *intent)
{
    for (;;) {
        switch ((enum clear_stage)intent->clear_stage++) { /* advance first */
        case CLEAR_FLUSH:
            intent->flush.done = flushed;
            array_flush_submit(&intent->array->flush, &intent->flush);
            return;
        case CLEAR_HEADER:
            if (!write_events_cleared(intent))
                return;
            break;
        case CLEAR_BITS:
            clear_due_bits(intent);
            break;
        case CLEAR_WRITE:
            if (!intent_write_dirty(intent, &intent->written, written))
                return;
            break;
        case CLEAR_END:
            end_clearing(intent);
            return;
        }
    }
}

/* Age what is idle; how many are due afterwards? */
static uint64_t
age_granules(struct intent *intent, bool at_once)
{
    uint64_t due = 0;
    for (uint64_t granule = 0; granule < intent->granule_count; granule++) {
        uint8_t *age = &intent->age[granule];
        if (*age == 0 || !may_clear(intent, granule))
            continue;
        *age = at_once || *age == INTENT_AGE_DUE ? INTENT_AGE_DUE : (uint8_t)(*age - 1);
        due += *age == INTENT_AGE_DUE;
    }
    return due;
}

static void
start_clearing(struct intent *intent)
{
    intent->clearing = true;
    intent->clear_stage = CLEAR_FLUSH;
    clear_step(intent);
}

static void
sweep(struct loop_timer *timer)
{
    struct intent *intent = CONTAINER_OF(timer, struct intent, sweep);
    struct array *array = intent->array;
    if (intent->clearing || array->stopping || array_degraded(array))
        return; /* degraded: begin() of the next write brings the timer back */
    if (age_granules(intent, false) > 0)
        start_clearing(intent);
    else
        intent_sweep_later(intent);
}

/* Is there anything that a sweep may clear without something else happening first? */
static bool
worth_sweeping(const struct intent *intent)
{
    const struct array *array = intent->array;
    return intent->on_disk && !array->read_only && !array->no_background && !array->stopping &&
           !array_degraded(array) && intent->clearable_count > intent->need_sync_count;
}

void
intent_sweep_later(struct intent *intent)
{
    struct loop_timer *timer = &intent->sweep;
    if (loop_timer_is_set(timer) || intent->clearing || !worth_sweeping(intent))
        return;
    timer->fired = sweep;
    uint64_t seconds = MAX(intent->header.daemon_sleep_s, 1u);
    loop_timer_set(intent->array->loop, timer,
                   loop_now_ns(intent->array->loop) + seconds * SECOND_NS);
}

void
intent_clear_now(struct intent *intent, void (*cleared)(struct intent *intent))
{
    const struct array *array = intent->array;
    check(!intent->clearing);
    loop_timer_cancel(&intent->sweep);
    bool untouched = array->writes_begun == 0 && array->resync.done_bytes == 0;
    if (!intent->on_disk || array->read_only || array_degraded(array) || untouched ||
        age_granules(intent, true) == 0) {
        cleared(intent);
        return;
    }
    intent->cleared = cleared;
    start_clearing(intent);
}
