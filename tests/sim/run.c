/* THEORY OF OPERATION
 *
 * A run is a few rounds.  A round assembles the array from what is durable, lets clients at it
 * while members fail, and ends it: a clean stop, a power cut or a kill, at any moment, also right
 * after opening, while stopping, during resync.  Then come the last words: everything with members
 * is resynced, read, stopped cleanly, its redundancy looked at on the members themselves, and read
 * once more with sets of members taken away that the layout tolerates.
 *
 * Whatever is random comes from the seed alone, in the order of events. */
#include "tests/sim/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/msg.h"

#include "tests/sim/allowance.h"
#include "tests/sim/image_check.h"
#include "tests/sim/plan.h"

#define TRACE_SHOWN  60u
#define REMOVALS_MAX 5u
#define SYNC_WAIT_MS 100u
#define SYNC_WAITS   3000u

/* ---- opening ------------------------------------------------------------------------------- */

static bool
all_claimed(const struct sim_array *sim, uint64_t sync_off_bytes)
{
    (void)sim;
    (void)sync_off_bytes;
    return true;
}

/* A disk that missed an acknowledged write is never used again; one that nothing was done to is. */
static void
check_members(struct run *run, uint64_t absent)
{
    for (uint32_t i = 0; i < run->sim.plan.member_count; i++) {
        struct disk *disk = &run->sim.disks[i];
        bool used = (run->sim.roles_in_use & mask_of(i)) != 0;
        if (used && disk->missed)
            run_fail(run, "disk%" PRIu32 " missed an acknowledged write and is used (P5)", i);
        if (!used && !disk->out && !disk->missed && !disk->gone && !(absent & mask_of(i)))
            run_fail(run, "disk%" PRIu32 " was turned away although nothing was ever done to it",
                     i);
        if (!run->sim.read_only)
            disk->out = !used;
    }
}

static void
first_opened(struct run *run)
{
    uint64_t size = dev_info(array_dev(run->sim.array)).size_bytes;
    const struct geometry *geometry = &run->sim.geometry;
    model_init(&run->model, size, run->model_why, sizeof(run->model_why));
    run->column_count = geometry->member_bytes / SECTOR_BYTES + 1;
    run->unsynced = calloc(BITSET_WORDS(run->column_count), sizeof(uint64_t));
    check(run->unsynced != NULL);
    run->roles_before = UINT64_MAX;
    for (uint32_t i = 0; i < HOT_SPOTS; i++)
        run->hot[i] = rng_below(&run->rng, size);
    run->hot[0] = size - MIN(size, KIB(20)); /* the end */
}

static bool
open_round(struct run *run, struct sim_open *how)
{
    struct diag diag = {0};
    int err = sim_array_open(&run->sim, how, &diag);
    if (err != 0 && allow_refusal(run, &diag)) {
        trace_say(&run->trace, "refused: %s", diag.message);
        how->absent &= 0; /* whoever was left out is plugged in again */
        err = sim_array_open(&run->sim, how, &diag);
        how->accept_dirty_degraded = err != 0 && allow_refusal(run, &diag);
        if (how->accept_dirty_degraded)
            err = sim_array_open(&run->sim, how, &diag);
    }
    if (err != 0) {
        run_fail(run, "cannot be opened: %s (%s)", diag.message, diag.code);
        return false;
    }
    if (run->column_count == 0)
        first_opened(run);
    check_members(run, how->absent);
    run->flush_failed = false;
    if (!run->sim.dirty)
        run->unclean = false;
    allow_opened(run);
    if (!allow_start(run, how->accept_dirty_degraded))
        run_fail(run, "dirty and degraded, and was not refused");
    char why[256];
    if (!image_check(&run->sim, sim_array_claims, why, sizeof(why)))
        run_fail(run, "members call in sync what is not: %s", why);
    return !run_failed(run);
}

static struct sim_open
any_open(struct run *run)
{
    static const uint32_t idle_ms[] = {1, 5, 50, 200, 5000};
    struct sim_open how = {.absent = fault_absent(run)};
    how.idle_clean_ms = idle_ms[rng_below(&run->rng, ARRAY_LEN(idle_ms))];
    how.request_max = (uint32_t)rng_range(&run->rng, 1, 20);
    how.scratch_bytes = rng_chance(&run->rng, 50) ? KIB(512) : MIB(2);
    return how;
}

/* ---- a round ------------------------------------------------------------------------------- */

static void
die(struct run *run)
{
    bool power = rng_chance(&run->rng, 70);
    sim_array_heal(
        &run->sim); /* an unreadable place in a column of A1 would be one loss too many */
    if (power)
        sim_array_power_cut(&run->sim);
    else
        sim_array_kill(&run->sim);
    allow_death(run, power);
    client_forget_all(run);
    run->stopping = false;
}

static void
stop(struct run *run)
{
    run_drain(run);
    if (run_failed(run))
        return;
    run_stop(run);
    if (rng_chance(&run->rng, 25)) { /* it dies while stopping */
        run_for(run, rng_below(&run->rng, 4 * run->sim.plan.latency_ns_max));
        if (!run->stopped) {
            die(run);
            return;
        }
    }
    run_until_stopped(run);
}

static void
idle(struct run *run)
{
    static const uint64_t ms[] = {1, 10, 100, 1000, 30000};
    uint64_t longest = ms[rng_below(&run->rng, ARRAY_LEN(ms))];
    run_for(run, rng_below(&run->rng, longest * MS_NS));
}

static void
act(struct run *run)
{
    uint64_t dice = rng_below(&run->rng, 100);
    if (dice < 70) {
        for (uint64_t n = rng_range(&run->rng, 1, 6); n > 0; n--)
            client_submit_any(run);
        run_for(run, rng_below(&run->rng, 2 * run->sim.plan.latency_ns_max));
    } else if (dice < 82) {
        run_drain(run);
    } else if (dice < 90) {
        idle(run);
    } else if (dice < 92) {
        run_read_all(run);
    } else if (dice < 97) {
        fault_any(run);
    } else {
        run_status(run);
    }
}

static void
play_round(struct run *run)
{
    struct sim_open how = any_open(run);
    if (!open_round(run, &how))
        return;
    for (uint64_t n = rng_below(&run->rng, 25); n > 0 && !run_failed(run); n--)
        act(run);
    if (run_failed(run))
        return;
    if (rng_chance(&run->rng, 40)) {
        stop(run);
    } else {
        run_for(run, rng_below(&run->rng, run->sim.plan.latency_ns_max));
        die(run);
    }
}

/* ---- last words ---------------------------------------------------------------------------- */

/* Until redundancy agrees with the data.  False: it cannot (a degraded parity array). */
static bool
wait_for_sync(struct run *run)
{
    for (uint32_t i = 0; i < SYNC_WAITS && !allow_synced(run); i++)
        run_for(run, SYNC_WAIT_MS * MS_NS);
    if (run->synced)
        return true;
    bool stuck = run->sim.geometry.parity_count != 0 &&
                 run->sim.roles_in_use != mask_below(run->sim.geometry.member_count);
    if (!stuck)
        run_fail(run, "resync does not end");
    return false;
}

/* Read-only, without some members: the same bytes, and nothing written. */
static void
read_without(struct run *run, uint64_t absent)
{
    struct sim_open how = {.absent = absent,
                           .read_only = true,
                           .request_max = (uint32_t)rng_range(&run->rng, 1, 12),
                           .scratch_bytes = KIB(512)};
    uint64_t changes = sim_array_changes(&run->sim);
    if (!open_round(run, &how))
        return;
    run_read_all(run);
    run_drain(run);
    if (run_failed(run))
        return;
    run_stop(run);
    run_until_stopped(run);
    if (sim_array_changes(&run->sim) != changes)
        run_fail(run, "a read-only array has written");
}

static void
read_without_some(struct run *run)
{
    const struct geometry *geometry = &run->sim.geometry;
    uint64_t roles = run->sim.roles_in_use;
    read_without(run, mask_below(geometry->member_count) & ~roles);
    for (uint32_t i = 0; i < REMOVALS_MAX && !run_failed(run); i++) {
        uint64_t left = roles;
        do {
            uint64_t less = left & ~mask_of((uint32_t)rng_below(&run->rng, geometry->member_count));
            if (less == left || !layout_enough(geometry, less))
                break;
            left = less;
        } while (rng_chance(&run->rng, 75));
        if (left != roles)
            read_without(run, mask_below(geometry->member_count) & ~left);
    }
}

static void
last_words(struct run *run)
{
    struct sim_open how = any_open(run);
    char why[256];
    if (!open_round(run, &how))
        return;
    if (rng_chance(&run->rng, 50))
        run_read_all(run);
    bool synced = wait_for_sync(run);
    run_read_all(run);
    if (run_failed(run))
        return;
    run_stop(run);
    run_until_stopped(run);
    if (!synced || run_failed(run) || run->expect_errors)
        return;
    if (!image_check(&run->sim, all_claimed, why, sizeof(why)))
        run_fail(run, "after a clean stop: %s", why);
    if (!run_failed(run))
        read_without_some(run);
}

/* ---- a seed -------------------------------------------------------------------------------- */

static void
describe(const struct sim_plan *plan, char *out, size_t out_bytes)
{
    char layout[32];
    layout_name(plan->level, plan->layout, layout, sizeof(layout));
    snprintf(out, out_bytes,
             "%s %s, %" PRIu32 " members of %" PRIu64 " KiB, chunk %" PRIu64
             " KiB, sectors of %" PRIu32 ", %s bitmap (%" PRIu32 " KiB), %s area%s%s%s",
             level_name(plan->level), layout, plan->member_count, plan->used_bytes[0] / KIB(1),
             plan->chunk_bytes / KIB(1), plan->logical_bytes, plan->bitmap ? "with" : "no",
             plan->bitmap_chunk_bytes / (uint32_t)KIB(1), plan->area ? "with" : "no",
             plan->resync_first ? ", created dirty" : "",
             plan->volatile_cache ? ", volatile cache" : "", plan->can_zero ? ", can zero" : "");
}

static struct run *running; /* for whoever has to say why a check failed */

static void
print_run(const struct run *run)
{
    char text[256];
    describe(&run->sim.plan, text, sizeof(text));
    printf("seed %" PRIu64 ": %s\n", run->seed, text);
    trace_print(&run->trace, TRACE_SHOWN);
}

void
run_print_running(void)
{
    if (running != NULL)
        print_run(running);
    fflush(stdout);
}

static void
note_message(enum msg_level level, const char *line, void *ctx)
{
    struct run *run = ctx;
    (void)level;
    trace_say(&run->trace, "%s", line);
}

static void
begin(struct run *run, uint64_t seed)
{
    struct sim_plan plan;
    struct diag diag = {0};
    static struct clock_virtual nowhen;
    run->seed = seed;
    rng_seed(&run->rng, seed);
    clock_virtual_init(&nowhen);
    trace_init(&run->trace, &nowhen.clock, getenv("SIM_TRACE") != NULL);
    msg_set_sink(note_message, run);
    fault_watch_init(run);
    sim_plan_choose(&plan, &run->rng);
    run->unclean = plan.resync_first;
    run->skew_percent = rng_chance(&run->rng, 30) ? 5 : 50;
    int err = sim_array_create(&run->sim, &plan, &run->trace, &run->watch, seed, &diag);
    if (err != 0)
        run_fail(run, "cannot be created: %s", diag.message);
}

bool
run_seed(uint64_t seed, uint64_t *hash)
{
    static struct run one; /* large: not worth a mapping for each seed */
    struct run *run = &one;
    memset(run, 0, sizeof(*run));
    running = run;
    begin(run, seed);
    for (uint64_t n = rng_range(&run->rng, 1, 4); n > 0 && !run_failed(run); n--)
        play_round(run);
    if (!run_failed(run))
        last_words(run);
    bool good = !run_failed(run);
    if (!good) {
        print_run(run);
        printf("seed %" PRIu64 " FAILED: %s\n", seed, run->why);
    }
    sim_array_destroy(&run->sim);
    client_forget_all(run);
    if (run->column_count != 0)
        model_destroy(&run->model);
    free(run->unsynced);
    *hash = run->trace.hash;
    running = NULL;
    msg_set_sink(NULL, NULL);
    return good;
}
