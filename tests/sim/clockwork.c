/* Letting time pass, and looking at what the array says of itself. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/allowance.h"

#define READ_WINDOW 4u

#define HANG_NS (1000 * SECOND_NS) /* nothing takes so long in virtual time */

struct alarm {
    struct loop_timer timer;
    bool rang;
    bool *flag;
};

static void
ring(struct loop_timer *timer)
{
    struct alarm *alarm = CONTAINER_OF(timer, struct alarm, timer);
    alarm->rang = true;
    *alarm->flag = true;
}

void
run_for(struct run *run, uint64_t ns)
{
    bool over = false;
    struct alarm alarm = {.timer.fired = ring, .flag = &over};
    loop_timer_set(run->sim.loop, &alarm.timer, loop_now_ns(run->sim.loop) + ns);
    check_eq(loop_run_until(run->sim.loop, &over), 0);
}

/* Run until *flag.  A hang, with or without timers that go on for ever, is a failure. */
static void
run_until(struct run *run, bool *flag, const char *what)
{
    struct alarm alarm = {.timer.fired = ring, .flag = flag};
    loop_timer_set(run->sim.loop, &alarm.timer, loop_now_ns(run->sim.loop) + HANG_NS);
    check_eq(loop_run_until(run->sim.loop, flag), 0);
    loop_timer_cancel(&alarm.timer);
    if (!alarm.rang)
        return;
    run_fail(run, "%s hangs", what);
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        if (run->clients[i].busy)
            trace_say(&run->trace, "unanswered: %s %" PRIu64 "+%" PRIu64,
                      req_op_name(run->clients[i].req.op), run->clients[i].req.off_bytes,
                      run->clients[i].req.len_bytes);
}

void
run_fail(struct run *run, const char *format, ...)
{
    char text[WHY_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    trace_say(&run->trace, "VIOLATION: %s", text);
    if (!run_failed(run))
        memcpy(run->why, text, sizeof(run->why));
}

void
run_drain(struct run *run)
{
    run->idle = run->in_flight == 0;
    if (!run->idle)
        run_until(run, &run->idle, "a request");
}

static void
stopped(void *ctx, int err)
{
    struct run *run = ctx;
    run->stopped = true;
    run->stop_err = err;
    sim_array_stopped(&run->sim);
}

void
run_stop(struct run *run)
{
    trace_add(&run->trace, "stop", 0, 0, 0, 0);
    run->stopping = true;
    run->stopped = false;
    array_stop(run->sim.array, stopped, run);
}

void
run_until_stopped(struct run *run)
{
    bool early = run->stopped;
    if (!early)
        run_until(run, &run->stopped, "stopping");
    if (run->stop_err != 0 && !run->expect_errors)
        run_fail(run, "stopped with an error within tolerance: %s", strerror(-run->stop_err));
    run->stopping = false;
    client_forget_all(run);
}

void
run_read_all(struct run *run)
{
    uint64_t size = run->model.sector_count * SECTOR_BYTES;
    for (uint64_t off = 0; off < size && !run_failed(run);) {
        uint64_t wish = rng_range(&run->rng, 1, KIB(160)), len = MIN(size - off, wish);
        if (run->in_flight >= READ_WINDOW || !client_submit(run, REQ_READ, 0, off, len)) {
            run_for(run, 100000);
            continue;
        }
        off += len;
    }
    run_drain(run);
}

/* ---- status -------------------------------------------------------------------------------- */

static void
check_status(struct run *run, const struct array_status *status)
{
    const struct geometry *geometry = &run->sim.geometry;
    uint32_t online = 0;
    for (uint32_t i = 0; i < status->member_count; i++)
        online += status->members[i].state == MS_ONLINE || status->members[i].state == MS_SUSPECT;
    check_eq(status->members_total, geometry->member_count);
    if (status->members_online != online)
        run_fail(run, "status: %" PRIu32 " members online, %" PRIu32 " listed so",
                 status->members_online, online);
    if (status->in_flight > CLIENTS_MAX)
        run_fail(run, "status: %" PRIu64 " requests in flight", status->in_flight);
    if (status->state == AS_ONLINE && online != geometry->member_count)
        run_fail(run, "status: online with %" PRIu32 " members", online);
    if (status->job.active && status->job.position_bytes > status->job.total_bytes)
        run_fail(run, "status: resync is beyond its end");
}

const struct array_status *
run_status(struct run *run)
{
    static struct array_status status;
    array_status(run->sim.array, &status);
    check_status(run, &status);
    return &status;
}

uint64_t
run_sound_roles(struct run *run)
{
    const struct array_status *status = run_status(run);
    uint64_t roles = 0;
    for (uint32_t i = 0; i < status->member_count; i++) {
        const struct member_status *member = &status->members[i];
        if (member->role >= 0 && (member->state == MS_ONLINE || member->state == MS_SUSPECT) &&
            !run->sim.disks[run->sim.disk_of[i]].gone)
            roles |= mask_of((uint32_t)member->role);
    }
    return roles & ~run->doomed;
}
