/* THEORY OF OPERATION
 *
 * Without a log, redundancy and data are changed by several writes that are not atomic.
 *
 * A1 Parity, the write hole (research/md.md 4.1).  A *column* is a sector of every member at one
 *    member offset: parity relates just these.  After a death a column disagrees if a write to any
 *    of its data sectors was in flight, or (power cut) completed but not flushed: each member may
 *    have kept another version.  While all data members are there nothing is lost.  But if one is
 *    missing before resync has passed, its sector of such a column is computed from a mix: nobody
 *    knows what it reads, until it is written.  All other columns are exact.
 *    Such a start is refused by the array (E_DIRTY_DEGRADED) unless told to accept it.
 * A2 Mirrors (research/md.md 2.2).  After a death the copies of a sector may differ, each an
 *    allowed version.  Until it has been resynced or written, the array reads always from the same
 *    copy, so what was read sticks; but when members change (one fails, or another set is
 *    assembled), the other copy counts, and what was read may change once more.
 * A3 What the members' metadata calls in sync after a death (clean, or dirty with a clear bit) is
 *    exempt from both: there redundancy agrees, also with anything unflushed.
 *
 * Both end with a flush that was submitted after resync, or a clean mark. */
#include "tests/sim/allowance.h"

#include <string.h>

#include "engine/base/bitset.h"

static bool
is_parity(const struct run *run)
{
    return run->sim.geometry.parity_count != 0;
}

static bool
is_mirror(const struct run *run)
{
    return run->sim.geometry.level == RAID1 || run->sim.geometry.level == RAID10;
}

static struct place
data_place(const struct run *run, uint64_t sector)
{
    struct place place;
    check_ge(layout_places(&run->sim.geometry, sector * SECTOR_BYTES, &place, 1), 1);
    return place;
}

/* Where the metadata keeps account of an array sector. */
static uint64_t
sync_offset(const struct run *run, uint64_t sector)
{
    if (is_parity(run))
        return data_place(run, sector).member_off_bytes;
    return sector * SECTOR_BYTES;
}

/* A1: what a missing role held in columns that disagree. */
static void
lose_role(struct run *run, uint32_t role)
{
    for (uint64_t sector = 0; sector < run->model.sector_count; sector++) {
        struct place place = data_place(run, sector);
        if (place.role == role && bitset_test(run->unsynced, place.member_off_bytes / SECTOR_BYTES))
            model_lose(&run->model, sector);
    }
}

/* A2 */
static void
read_elsewhere(struct run *run)
{
    for (uint64_t sector = 0; sector < run->model.sector_count; sector++)
        model_read_elsewhere(&run->model, sector);
}

void
allow_death(struct run *run, bool power)
{
    struct model *model = &run->model;
    for (uint64_t sector = 0; sector < model->sector_count && is_parity(run); sector++)
        if (model_in_flight(model, sector) || (power && model_unflushed(model, sector)))
            bitset_set(run->unsynced, data_place(run, sector).member_off_bytes / SECTOR_BYTES);
    if (power)
        model_power_cut(model);
    else
        model_kill(model);
    for (uint64_t sector = 0; sector < model->sector_count && is_mirror(run); sector++)
        model_copies_differ(model, sector, power);
    run->unclean = true;
}

void
allow_opened(struct run *run)
{
    const struct sim_array *sim = &run->sim;
    run->synced = false;
    for (uint64_t sector = 0; sector < run->model.sector_count; sector++) { /* A3 */
        uint64_t off_bytes = sync_offset(run, sector);
        if (!sim_array_claims(sim, off_bytes))
            continue;
        if (is_parity(run))
            bitset_clear(run->unsynced, off_bytes / SECTOR_BYTES);
        else
            model_copies_agree(&run->model, sector);
    }
    if (is_mirror(run) && sim->roles_in_use != run->roles_before)
        read_elsewhere(run);
    for (uint32_t role = 0; role < sim->geometry.member_count && is_parity(run); role++)
        if (!(sim->roles_in_use & mask_of(role)))
            lose_role(run, role);
    run->roles_before = sim->roles_in_use;
}

bool
allow_synced(struct run *run)
{
    if (run->synced || run->sim.array == NULL)
        return run->synced;
    const struct array_status *status = run_status(run);
    for (uint32_t i = 0; i < status->problem_count; i++)
        if (strncmp(status->problems[i].code, "RESYNC_", 7) == 0)
            return false;
    run->synced = true;
    return true;
}

void
allow_member_error(struct run *run, uint32_t role, bool lost)
{
    if (allow_synced(run))
        return;
    if (is_mirror(run))
        read_elsewhere(run);
    if (is_parity(run) && lost)
        lose_role(run, role);
}

void
allow_flushed(struct run *run)
{
    memset(run->unsynced, 0, BITSET_WORDS(run->column_count) * sizeof(uint64_t));
}

bool
allow_start(const struct run *run, bool accepted)
{
    uint64_t missing = mask_below(run->sim.geometry.member_count) & ~run->sim.roles_in_use;
    bool hole =
        is_parity(run) && missing != 0 && bitset_count(run->unsynced, run->column_count) != 0;
    return accepted || !hole;
}

bool
allow_refusal(const struct run *run, const struct diag *diag)
{
    return diag->code != NULL && strcmp(diag->code, "E_DIRTY_DEGRADED") == 0 && is_parity(run) &&
           run->sim.dirty && run->unclean;
}
