/* THEORY OF OPERATION
 *
 * An array is marked active before its first write (meta_io_activate) and clean again when writes
 * have ceased, so that a crash while idle needs no resync:
 *
 *      FLUSH    everything written is durable on the members
 *      UPDATE   superblocks: clean, or the lowest position not in sync when a resync is pending
 *
 * A write that begins during FLUSH calls it off: it went ahead under the active mark, which must
 * therefore stay.  From UPDATE on `meta.active` is false, and a write asks for it anew.
 *
 * The resync position is taken before FLUSH: what resync finishes during it may not be durable. */
#include "engine/array_clean.h"

#include "engine/array_core.h"

enum clean_stage { CLEAN_FLUSH, CLEAN_UPDATE, CLEAN_END };

static void clean_step(struct array_clean *clean);

/* Does the disk say already what it would be told? */
static bool
says_so(const struct array *array)
{
    return !array->meta.active && !array->meta.want_active && !array->meta.catch_up &&
           array->meta.clean_resync_sectors == intent_resync_sectors(&array->intent);
}

static void
flushed(struct flush_waiter *waiter, int err)
{
    struct array_clean *clean = CONTAINER_OF(waiter, struct array_clean, flush);
    const struct array *array = clean->array;
    clean->err = err;
    bool disturbed = array->writes_in_flight != 0 || array->writes_begun != clean->writes_begun;
    if (err != 0 || disturbed)
        clean->stage = CLEAN_END; /* stays active */
    clean_step(clean);
}

static void
updated(struct meta_waiter *waiter, int err)
{
    struct array_clean *clean = CONTAINER_OF(waiter, struct array_clean, update);
    clean->err = err;
    clean_step(clean);
}

static void
clean_step(struct array_clean *clean)
{
    struct array *array = clean->array;
    switch ((enum clean_stage)clean->stage++) { /* every stage but the last calls back */
    case CLEAN_FLUSH:
        clean->running = true;
        clean->err = 0;
        clean->writes_begun = array->writes_begun;
        clean->resync_sectors = intent_resync_sectors(&array->intent);
        clean->flush.done = flushed;
        array_flush_submit(&array->flush, &clean->flush);
        break;
    case CLEAN_UPDATE:
        array->meta.want_active = array->meta.active = false; /* M4: a write asks from now on */
        array->meta.clean_resync_sectors = clean->resync_sectors;
        meta_io_update(&array->meta, &clean->update, updated);
        break;
    case CLEAN_END:
        clean->running = false;
        if (clean->err == 0 && array->writes_in_flight == 0 && !array->resync.active &&
            !says_so(array))
            array_clean_idle(clean); /* called off, or resync ended meanwhile: once more */
        if (clean->done != NULL)
            clean->done(clean, clean->err);
        array_poke_stop(array);
        break;
    }
}

void
array_clean_run(struct array_clean *clean, void (*done)(struct array_clean *clean, int err))
{
    struct array *array = clean->array;
    check(!clean->running);
    loop_timer_cancel(&clean->idle);
    clean->done = done;
    if (array->geometry.level == RAID0 || array->read_only || says_so(array)) {
        if (done != NULL)
            done(clean, 0);
        return;
    }
    clean->stage = CLEAN_FLUSH;
    clean_step(clean);
}

static void
idle_timer(struct loop_timer *timer)
{
    struct array_clean *clean = CONTAINER_OF(timer, struct array_clean, idle);
    struct array *array = clean->array;
    if (array->writes_in_flight != 0 || array->stopping || clean->running)
        return; /* array_clean_idle() comes again; a stop marks clean by itself */
    uint64_t due_ns = clean->idle_since_ns + clean->idle_ms * MS_NS;
    if (due_ns > loop_now_ns(array->loop))
        loop_timer_set(array->loop, &clean->idle, due_ns);
    else
        array_clean_run(clean, NULL);
}

void
array_clean_idle(struct array_clean *clean)
{
    struct array *array = clean->array;
    clean->idle_since_ns = loop_now_ns(array->loop);
    if (array->geometry.level == RAID0 || loop_timer_is_set(&clean->idle) || array->stopping)
        return;
    loop_timer_set(array->loop, &clean->idle, clean->idle_since_ns + clean->idle_ms * MS_NS);
}

void
array_clean_init(struct array_clean *clean, struct array *array, uint32_t idle_ms)
{
    *clean = (struct array_clean){.array = array, .idle_ms = idle_ms, .idle.fired = idle_timer};
}
