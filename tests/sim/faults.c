/* THEORY OF OPERATION
 *
 * The fault budget: never more is taken from an array than its layout bears at that moment, so that
 * whatever goes wrong is a bug.  A role counts as lost from the moment something was done to its
 * member, though the array may find out later, or never; until the next start, when `fault_absent`
 * looks anew.  Unreadable places count as losses, too: they are made only where the array would
 * still be whole without the member, and healed before another one is taken.
 *
 * Members that failed, were missing, or came back are candidates at the next start; the array has
 * to find out by itself that they are stale (P5). */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/allowance.h"

/* ---- the array hears of an error ----------------------------------------------------------- */

static void
member_failed(struct tap_watch *watch, uint32_t disk, const struct req *req)
{
    struct run *run = CONTAINER_OF(watch, struct run, watch);
    bool lost = req->op != REQ_READ || req->err != -EIO;
    if (lost)
        run->sim.disks[disk].out = true;
    for (uint32_t role = 0; role < run->sim.geometry.member_count; role++)
        if (run->sim.disk_of_role[role] == disk)
            allow_member_error(run, role, lost);
}

void
fault_watch_init(struct run *run)
{
    run->watch.failed = member_failed;
}

/* ---- taking members ------------------------------------------------------------------------ */

static void
failed_on_demand(void *ctx, int err)
{
    struct run *run = ctx;
    if (err != 0)
        run_fail(run, "array_fail within tolerance: %s", strerror(-err));
}

static void
fail_by_hand(struct run *run, uint32_t role)
{
    uint32_t disk = run->sim.disk_of_role[role], index = 0;
    struct diag diag = {0};
    while (run->sim.disk_of[index] != disk)
        index++;
    allow_member_error(run, role, true);
    run->sim.disks[disk].out = true;
    int err = array_fail(run->sim.array, index, &diag, failed_on_demand, run);
    trace_add(&run->trace, "fail", disk, 0, 0, err);
    if (err != 0 && err != -EBUSY && err != -ENOENT)
        run_fail(run, "array_fail: %s", diag.message);
}

static bool
has_latents(const struct run *run)
{
    for (uint32_t i = 0; i < run->sim.plan.member_count; i++)
        if (run->sim.disks[i].latent_count != 0)
            return true;
    return false;
}

static void
take_member(struct run *run, uint32_t role)
{
    uint32_t index = run->sim.disk_of_role[role];
    struct disk *disk = &run->sim.disks[index];
    if (has_latents(run))
        run_drain(run); /* who has met an unreadable place needs all of its other sources */
    sim_array_heal(&run->sim);
    run->doomed |= mask_of(role);
    switch (rng_below(&run->rng, 4)) {
    case 0:
        trace_add(&run->trace, "vanish", index, 0, 0, 0);
        disk->gone = true;
        sim_member_vanish(disk->member);
        break;
    case 1:
        trace_add(&run->trace, "fail-write", index, 0, 0, 0);
        sim_member_fail_writes(disk->member, (uint32_t)rng_range(&run->rng, 1, 3));
        break;
    case 2:
        trace_add(&run->trace, "fail-flush", index, 0, 0, 0);
        sim_member_fail_flushes(disk->member, 1);
        break;
    default:
        fail_by_hand(run, role);
        break;
    }
}

/* RAID 0 bears nothing: errors must be told, and what is read must be right. */
static void
hurt_raid0(struct run *run)
{
    uint32_t role = (uint32_t)rng_below(&run->rng, run->sim.geometry.member_count);
    struct sim_member *member = run->sim.disks[run->sim.disk_of_role[role]].member;
    run->expect_errors = true;
    trace_add(&run->trace, "hurt", role, 0, 0, 0);
    if (rng_chance(&run->rng, 50))
        sim_member_fail_writes(member, 1);
    else
        sim_member_fail_flushes(member, 1);
}

static void
spoil(struct run *run, uint32_t role)
{
    uint64_t blocks = run->sim.geometry.role_bytes[role] / BLOCK_BYTES;
    uint64_t off = run->sim.data_off_bytes + BLOCK_BYTES * rng_below(&run->rng, blocks);
    sim_array_spoil(&run->sim, run->sim.disk_of_role[role], off);
}

void
fault_any(struct run *run)
{
    const struct geometry *geometry = &run->sim.geometry;
    uint32_t role = (uint32_t)rng_below(&run->rng, geometry->member_count);
    if (geometry->level == RAID0) {
        hurt_raid0(run);
        return;
    }
    uint64_t sound = run_sound_roles(run);
    if (!(sound & mask_of(role)) || !layout_enough(geometry, sound & ~mask_of(role)))
        return;
    if (rng_chance(&run->rng, 50))
        take_member(run, role);
    else if (allow_synced(run) && !has_latents(run))
        spoil(run, role);
}

/* ---- the next start ------------------------------------------------------------------------ */

uint64_t
fault_absent(struct run *run)
{
    uint64_t good = 0, absent = 0;
    uint32_t count = run->sim.plan.member_count; /* disk i has role i: nothing is ever rebuilt */
    run->doomed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct disk *disk = &run->sim.disks[i];
        sim_member_fail_writes(disk->member, 0);
        sim_member_fail_flushes(disk->member, 0);
        if (disk->gone && rng_chance(&run->rng, 70)) {
            trace_add(&run->trace, "return", i, 0, 0, 0);
            sim_member_return(disk->member);
            disk->gone = false;
        }
        if (!disk->out && !disk->missed && !disk->gone)
            good |= mask_of(i);
    }
    sim_array_heal(&run->sim);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t rest = good & ~mask_of(i);
        if ((good & mask_of(i)) && rng_chance(&run->rng, 10) &&
            layout_enough(&run->sim.geometry, rest)) {
            absent |= mask_of(i);
            good = rest;
        }
    }
    return absent;
}
