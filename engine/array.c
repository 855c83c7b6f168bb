/* The array as a device: opening, the device interface, letting go. */
#include "engine/array.h"

#include <stdlib.h>

#include "engine/array_core.h"

#define DEFAULT_SCRATCH_BYTES MIB(32)
#define DEFAULT_REQUESTS      256u
#define DEFAULT_IDLE_CLEAN_MS 200u /* md's safe_mode_delay */
#define SCRATCH_SHARE         4    /* so many of the largest operations fit in scratch */

/* ---- the device ------------------------------------------------------------------------------ */

static void
array_submit(struct dev *dev, struct req *req)
{
    array_io_submit(CONTAINER_OF(dev, struct array, dev), req);
}

static void
array_info(const struct dev *dev, struct dev_info *info)
{
    const struct array *array = CONTAINER_OF(dev, const struct array, dev);
    *info = (struct dev_info){
        .size_bytes = array->size_bytes,
        .logical_bytes = 1,
        .physical_bytes = BLOCK_BYTES,
        .mem_align = 1,
        .optimal_bytes = array->geometry.stripe_bytes,
        .read_only = array->read_only,
        .can_zero = array->can_zero,
        .can_trim = array->can_zero,
    };
    for (uint32_t i = 0; i < array->member_count; i++) {
        info->rotational |= array->members[i].info.rotational;
        info->volatile_cache |= array->members[i].info.volatile_cache;
    }
}

static void
array_close(struct dev *dev)
{
    (void)dev; /* array_stop() and array_abandon() do it */
}

static const struct dev_ops array_ops = {
    .submit = array_submit, .info = array_info, .close = array_close};

/* ---- waking ---------------------------------------------------------------------------------- */

static void
wake_step(struct loop_step *step)
{
    struct array *array = CONTAINER_OF(step, struct array, wake);
    intent_run(&array->intent);
    stripe_memory_wake(array);
    array_io_wake(array);
}

void
array_wake(struct array *array)
{
    loop_defer(array->loop, &array->wake);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int
init_pools(struct array *array, const struct array_open *how)
{
    uint64_t slots = array->has_parity ? 2ull * array->geometry.member_count : 2;
    uint64_t scratch = how->scratch_bytes != 0 ? how->scratch_bytes : DEFAULT_SCRATCH_BYTES;
    scratch = MAX(scratch, slots * BLOCK_BYTES * SCRATCH_SHARE);
    uint64_t piece = round_down(scratch / (slots * SCRATCH_SHARE), BLOCK_BYTES);
    array->piece_max_bytes = MIN(piece, STRIPE_ZERO_BYTES);
    uint32_t requests = how->request_max != 0 ? how->request_max : DEFAULT_REQUESTS;
    int err = arena_init(&array->scratch, scratch);
    if (err == 0)
        err = pool_init(&array->ops, stripe_op_bytes(array->member_count), requests);
    if (err == 0)
        err = pool_init(&array->reqs, sizeof(struct array_req), requests);
    return err;
}

static int
init_machines(struct array *array, const struct array_open *how)
{
    int err = init_pools(array, how);
    if (err == 0)
        err = array_flush_init(&array->flush, array);
    if (err == 0)
        err = resync_init(&array->resync, array);
    return err;
}

int
array_open(struct array **out, const struct array_open *how, struct diag *diag)
{
    check_gt(how->member_count, 0);
    check_lt(how->freshest, how->member_count);
    struct array *array = calloc(1, sizeof(*array));
    if (array == NULL)
        return diag_set(diag, DIAG_FAILED, "E_NO_MEMORY", -ENOMEM, "out of memory");
    array->dev.ops = &array_ops;
    array->loop = how->loop;
    array->clock = loop_clock(how->loop);
    array->read_only = how->read_only;
    array->no_background = how->no_background;
    array->opened_wall_ns = clock_wall_ns(array->clock);
    array->wake.run = wake_step;
    list_init(&array->scratch_waiters);
    list_init(&array->op_waiters);
    list_init(&array->req_waiters);
    range_lock_set_init(&array->locks, array->loop);
    array_clean_init(&array->clean, array,
                     how->idle_clean_ms != 0 ? how->idle_clean_ms : DEFAULT_IDLE_CLEAN_MS);
    array_stop_init(array);
    int err = array_load(array, how, diag);
    if (err == 0)
        err = init_machines(array, how);
    if (err == -ENOMEM)
        diag_set(diag, DIAG_FAILED, "E_NO_MEMORY", -ENOMEM, "out of memory");
    if (err != 0) {
        for (uint32_t i = 0; array->members != NULL && i < array->member_count; i++)
            array->members[i].dev = NULL; /* they stay the caller's */
        array_free(array);
        return err;
    }
    resync_start(&array->resync);
    *out = array;
    return 0;
}

struct dev *
array_dev(struct array *array)
{
    return &array->dev;
}

struct dev *
array_member_dev(struct array *array, uint32_t member_index)
{
    check_lt(member_index, array->member_count);
    return array->members[member_index].dev;
}

const struct geometry *
array_geometry(const struct array *array)
{
    return &array->geometry;
}

void
array_stats(struct array *array, struct array_stats *stats)
{
    *stats = array->stats;
}

/* ---- letting go ------------------------------------------------------------------------------ */

void
array_free(struct array *array)
{
    loop_undefer(array->loop, &array->wake);
    loop_undefer(array->loop, &array->stop);
    loop_undefer(array->loop, &array->resync.start);
    loop_timer_cancel(&array->clean.idle);
    range_lock_set_abandon(&array->locks);
    intent_destroy(&array->intent);
    meta_io_destroy(&array->meta);
    array_flush_destroy(&array->flush);
    resync_destroy(&array->resync);
    pool_destroy(&array->ops);
    pool_destroy(&array->reqs);
    arena_destroy(&array->scratch);
    for (uint32_t i = 0; array->members != NULL && i < array->member_count; i++)
        dev_close(array->members[i].dev);
    free(array->members);
    free(array);
}

void
array_abandon(struct array *array)
{
    pool_abandon(&array->ops); /* whatever is in flight never comes back */
    pool_abandon(&array->reqs);
    arena_abandon(&array->scratch);
    array_free(array);
}
