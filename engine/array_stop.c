/* THEORY OF OPERATION
 *
 * Stopping is a stage machine that waits for idleness; whoever becomes idle pokes it
 * (array_poke_stop), and it looks again in a deferred step.
 *
 *      DRAIN   requests taken are answered (new ones get -ESHUTDOWN), the resync job ends
 *      QUIET   no update, flush, bitmap round, cleaning runs any more
 *      FLUSH   what clients wrote is durable
 *      BITS    the bits that may be cleared are
 *      CLEAN   superblocks say clean (or how far the resync got); nothing is written if they do
 *      CLOSE   members are closed, the array is freed, stopped() is told
 *
 * array_fail() lives here, too: the other way for a member to leave on purpose. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/array_core.h"

enum stop_stage { STOP_DRAIN, STOP_QUIET, STOP_FLUSH, STOP_BITS, STOP_CLEAN, STOP_CLOSE };

static void
note(struct array *array, int err)
{
    if (err != 0 && array->stop_err == 0)
        array->stop_err = err;
    array->stop_waiting = false;
    array_poke_stop(array);
}

static void
flushed(struct flush_waiter *waiter, int err)
{
    note(CONTAINER_OF(waiter, struct array, stop_flush), err);
}

static void
bits_cleared(struct intent *intent)
{
    note(intent->array, 0);
}

static void
cleaned(struct array_clean *clean, int err)
{
    note(clean->array, err);
}

static bool
drained(const struct array *array)
{
    return array->in_flight == 0 && !array->resync.active;
}

static bool
quiet(const struct array *array)
{
    return !array->meta.running && !array->flush.running && !array->intent.writing &&
           !array->intent.clearing && !array->clean.running && !array->fail.busy &&
           range_lock_idle(&array->locks);
}

/* One stage; false: it waits. */
static bool
stop_stage(struct array *array)
{
    switch ((enum stop_stage)array->stop_stage) {
    case STOP_DRAIN:
        return drained(array);
    case STOP_QUIET:
        return quiet(array);
    case STOP_FLUSH:
        array->stop_waiting = true;
        array->stop_flush.done = flushed;
        array_flush_submit(&array->flush, &array->stop_flush);
        return true;
    case STOP_BITS:
        array->stop_waiting = true;
        intent_clear_now(&array->intent, bits_cleared);
        return true;
    case STOP_CLEAN:
        array->stop_waiting = true;
        array_clean_run(&array->clean, cleaned);
        return true;
    case STOP_CLOSE:
        return quiet(array);
    }
    return false;
}

static void
stop_step(struct loop_step *step)
{
    struct array *array = CONTAINER_OF(step, struct array, stop);
    while (array->stop_stage <= STOP_CLOSE) {
        if (array->stop_waiting || !stop_stage(array))
            return;
        array->stop_stage++;
    }
    void (*stopped)(void *ctx, int err) = array->stopped;
    void *ctx = array->stopped_ctx;
    int err = array->stop_err;
    array_free(array);
    stopped(ctx, err);
}

void
array_stop_init(struct array *array)
{
    array->stop.run = stop_step;
}

void
array_poke_stop(struct array *array)
{
    if (array->stopping)
        loop_defer(array->loop, &array->stop);
}

void
array_stop(struct array *array, void (*stopped)(void *ctx, int err), void *ctx)
{
    check(!array->stopping);
    array->stopping = true;
    array->stopped = stopped;
    array->stopped_ctx = ctx;
    loop_timer_cancel(&array->clean.idle);
    loop_timer_cancel(&array->intent.sweep);
    resync_stop(&array->resync);
    array_poke_stop(array);
}

/* ---- array_fail ------------------------------------------------------------------------------ */

static void
fail_recorded(struct meta_waiter *waiter, int err)
{
    struct array *array = CONTAINER_OF(waiter, struct array, fail.waiter);
    array->fail.busy = false;
    array->fail.done(array->fail.ctx, err);
    array_poke_stop(array);
}

int
array_fail(struct array *array, uint32_t member_index, struct diag *diag,
           void (*done)(void *ctx, int err), void *ctx)
{
    struct member *member =
        member_index < array->member_count ? &array->members[member_index] : NULL;
    if (member == NULL || member->state == MS_FAULTY || member->state == MS_MISSING)
        return diag_set(diag, DIAG_REFUSED, "E_NO_SUCH_MEMBER", -ENOENT,
                        "%s has no such member in use", array->name);
    if (array->fail.busy || array->stopping)
        return diag_set(diag, DIAG_BUSY, "E_BUSY", -EBUSY, "%s is busy %s", array->name,
                        array->stopping ? "stopping" : "with another member");
    if (!array_enough_without(array, member)) {
        diag_set(diag, DIAG_REFUSED, "E_LAST_GOOD_COPY", -EBUSY,
                 "%s cannot be served without %s: it holds the last good copy", array->name,
                 member->path);
        return -EBUSY;
    }
    array->fail.busy = true;
    array->fail.done = done;
    array->fail.ctx = ctx;
    (void)array_member_fail(array, member, FAULT_ADMIN);
    if (meta_io_record(&array->meta, &array->fail.waiter, fail_recorded))
        fail_recorded(&array->fail.waiter, 0);
    return 0;
}

static bool
matches(const struct member *member, const char *text)
{
    char role[12], uuid[36];
    snprintf(role, sizeof(role), "%u", member->role);
    super_uuid_text(member->super.device_uuid, uuid);
    bool by_role = member->has_role && !member->replacement && strcmp(text, role) == 0;
    bool by_uuid =
        strcasecmp(text, uuid) == 0 || (strlen(text) == 8 && strncasecmp(text, uuid, 8) == 0);
    return by_role || by_uuid || strcmp(text, member->path) == 0;
}

int
array_find_member(struct array *array, const char *text, uint32_t *member_index, struct diag *diag)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < array->member_count; i++)
        if (matches(&array->members[i], text)) {
            *member_index = i;
            found++;
        }
    if (found == 1)
        return 0;
    if (found == 0)
        return diag_set(diag, DIAG_USAGE, "E_NO_SUCH_MEMBER", -ENOENT, "%s has no member '%s'",
                        array->name, text);
    return diag_set(diag, DIAG_USAGE, "E_MEMBER_AMBIGUOUS", -EINVAL, "'%s' names %u members of %s",
                    text, found, array->name);
}
