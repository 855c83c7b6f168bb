/* THEORY OF OPERATION
 *
 * After an unclean stop, or for an array whose parity was never made, some granules may hold
 * redundancy that does not agree with the data (intent: need_sync).  The job takes them in order,
 * row by row (band_of_row), and each row goes through the ordinary stripe machine as STRIPE_SYNC:
 * locked against writers, read, computed, written.  No path of its own to the members.
 *
 *      granule g   |-- row --|-- row --|--      up to RESYNC_WINDOW operations in flight,
 *                       ^ at         ^ end      one while clients are busy
 *
 * A granule leaves need_sync when all its operations succeeded.  Its bit and the superblock follow
 * later: array_clean flushes before it moves the recorded position, so that the disk never claims
 * more than is durable.  One that fails stays, the job goes on behind it and ends `incomplete`.
 *
 * The job writes only where the disk already says "not in sync" (bits, resync offset), so it needs
 * neither the active mark nor intent of its own.  A crash begins again at the recorded position.
 *
 * Parity levels without a role cannot be synced: what is computed from parity that may be wrong
 * would be made permanent.  The job then stops; a rebuild is the way out. */
#include "engine/resync.h"

#include <stdlib.h>

#include "engine/array_core.h"

#define MARKS 16 /* the position is recorded so many times on the way, as md does */

static void pump(struct resync *resync);

static bool
possible(const struct array *array)
{
    return !array->read_only && !array->stopping && array->intent.need_sync_count != 0 &&
           !(array->has_parity && array_degraded(array));
}

static void
end_job(struct resync *resync)
{
    struct array *array = resync->array;
    resync->active = false;
    if (!array->stopping && !array->clean.running && array->writes_in_flight == 0)
        array_clean_run(&array->clean, NULL);
    array_poke_stop(array);
}

/* Record how far we are, now and then. */
static void
maybe_mark(struct resync *resync)
{
    struct array *array = resync->array;
    uint64_t every = MAX(array->intent.granule_count / MARKS, 1u);
    if (++resync->granules_since_mark < every || array->clean.running ||
        array->writes_in_flight != 0)
        return;
    resync->granules_since_mark = 0;
    array_clean_run(&array->clean, NULL);
}

static void
end_granule(struct resync *resync)
{
    struct array *array = resync->array;
    if (!resync->granule_failed)
        intent_mark_synced(&array->intent, resync->granule);
    else if (!resync->granule_again)
        resync->incomplete = true;
    if (!resync->granule_again)
        resync->granule++;
    maybe_mark(resync);
}

/* The next granule to work on; false: none left. */
static bool
next_granule(struct resync *resync)
{
    struct intent *intent = &resync->array->intent;
    resync->granule = bitset_next(intent->need_sync, intent->granule_count, resync->granule);
    if (resync->granule == intent->granule_count)
        return false;
    resync->at_bytes = resync->granule << intent->granule_shift;
    resync->end_bytes =
        MIN(resync->at_bytes + intent_granule_bytes(intent), array_sync_bytes(resync->array));
    resync->granule_failed = resync->granule_again = false;
    return true;
}

static void
op_done(struct stripe_op *op)
{
    struct resync *resync = op->owner;
    if (op->err != 0) {
        resync->granule_failed = true;
        resync->granule_again |= op->generation != resync->array->generation; /* a member went */
    } else {
        resync->done_bytes += op->sync_len_bytes;
    }
    resync->free[resync->free_count++] = op;
    resync->in_flight--;
    pump(resync);
}

/* The part of a row that begins at at_bytes and lies in this granule, as a band. */
static bool
next_band(struct resync *resync, struct band *band)
{
    const struct array *array = resync->array;
    uint64_t chunk = array->geometry.chunk_bytes;
    uint64_t row = resync->at_bytes / chunk, skip = resync->at_bytes % chunk;
    if (row >= array->geometry.row_count || !band_of_row(&array->geometry, row, band) ||
        skip >= band->len_bytes) {
        resync->at_bytes = resync->end_bytes; /* behind the last row */
        return false;
    }
    uint64_t len = MIN(band->len_bytes - skip, resync->end_bytes - resync->at_bytes);
    len = MIN(len, array->piece_max_bytes);
    band->array_off_bytes += skip;
    band->lo_bytes += skip;
    band->len_bytes = len;
    band->lock_off += skip;
    band->lock_len = len;
    resync->at_bytes += len;
    return true;
}

static void
start_op(struct resync *resync)
{
    struct stripe_op *op = resync->free[resync->free_count - 1];
    if (!next_band(resync, &op->band))
        return;
    resync->free_count--;
    resync->in_flight++;
    op->array = resync->array;
    op->done = op_done;
    op->owner = resync;
    op->kind = STRIPE_SYNC;
    op->flags = REQ_BACKGROUND;
    op->iov = NULL;
    op->iov_count = 0;
    op->ragged = false;
    stripe_op_start(op);
}

static void
pump(struct resync *resync)
{
    if (resync->pumping)
        return;
    resync->pumping = true;
    while (resync->active) {
        uint32_t window = resync->array->in_flight != 0 ? 1 : RESYNC_WINDOW;
        bool stop = resync->stopping || !possible(resync->array);
        if (stop)
            resync->granule_failed = true;
        if (!stop && resync->at_bytes < resync->end_bytes) {
            if (resync->in_flight >= window)
                break;
            start_op(resync);
            continue;
        }
        if (resync->in_flight != 0)
            break;
        if (resync->end_bytes != 0 && !stop) /* not before the first */
            end_granule(resync);
        if (stop || !next_granule(resync))
            end_job(resync);
    }
    resync->pumping = false;
}

static void
start_step(struct loop_step *step)
{
    struct resync *resync = CONTAINER_OF(step, struct resync, start);
    struct array *array = resync->array;
    if (resync->active || resync->stopping || !possible(array))
        return;
    resync->active = true;
    resync->granule = 0;
    resync->at_bytes = resync->end_bytes = 0;
    resync->done_bytes = 0;
    resync->total_bytes = array->intent.need_sync_count << array->intent.granule_shift;
    resync->total_bytes = MIN(resync->total_bytes, array_sync_bytes(array));
    resync->start_ns = loop_now_ns(array->loop);
    pump(resync);
}

void
resync_start(struct resync *resync)
{
    if (!resync->array->no_background && possible(resync->array))
        loop_defer(resync->array->loop, &resync->start);
}

void
resync_stop(struct resync *resync)
{
    resync->stopping = true;
    loop_undefer(resync->array->loop, &resync->start);
    pump(resync);
}

int
resync_init(struct resync *resync, struct array *array)
{
    *resync = (struct resync){.array = array, .start.run = start_step};
    if (!array->redundant)
        return 0;
    for (; resync->free_count < RESYNC_WINDOW; resync->free_count++) {
        resync->ops[resync->free_count] = calloc(1, stripe_op_bytes(array->member_count));
        if (resync->ops[resync->free_count] == NULL)
            return -ENOMEM;
        resync->free[resync->free_count] = resync->ops[resync->free_count];
    }
    return 0;
}

void
resync_destroy(struct resync *resync)
{
    for (uint32_t i = 0; i < RESYNC_WINDOW; i++)
        free(resync->ops[i]);
}
