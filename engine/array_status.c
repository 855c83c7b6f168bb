/* What a person is told: the array's state as a function of its members', problems and their
 * cures, and the job that runs. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/array_core.h"

/* ---- problems ------------------------------------------------------------------------------- */

static void PRINTF_LIKE(6, 7)
    add_problem(struct array_status *status, const char *code, const char *severity,
                const char *member, uint64_t since_wall_ns, const char *format, ...)
{
    if (status->problem_count == PROBLEMS_MAX)
        return;
    struct problem *problem = &status->problems[status->problem_count++];
    *problem = (struct problem){.code = code, .severity = severity, .since_wall_ns = since_wall_ns};
    snprintf(problem->member, sizeof(problem->member), "%s", member);
    va_list args;
    va_start(args, format);
    vsnprintf(problem->text, sizeof(problem->text), format, args);
    va_end(args);
}

/* The next command, for the problem added last. */
static void PRINTF_LIKE(2, 3) add_fix(struct array_status *status, const char *format, ...)
{
    struct problem *problem = &status->problems[status->problem_count - 1];
    uint32_t i = problem->fix[0][0] != '\0';
    va_list args;
    va_start(args, format);
    vsnprintf(problem->fix[i], sizeof(problem->fix[i]), format, args);
    va_end(args);
}

static void
faulty_problem(const struct array *array, const struct member *member, struct array_status *status)
{
    static const char *const codes[] = {
        [FAULT_NONE] = "MEMBER_FAULTY",  [FAULT_ASSEMBLY] = "MEMBER_STALE",
        [FAULT_GONE] = "MEMBER_GONE",    [FAULT_WRITE] = "MEMBER_FAULTY",
        [FAULT_FLUSH] = "MEMBER_FAULTY", [FAULT_NO_SPACE] = "MEMBER_NO_SPACE",
        [FAULT_ADMIN] = "MEMBER_FAULTY",
    };
    static const char *const texts[] = {
        [FAULT_NONE] = "it is out of use",
        [FAULT_ASSEMBLY] = "it missed writes, or belongs elsewhere, and is not used",
        [FAULT_GONE] = "the device is gone; the array goes on without it",
        [FAULT_WRITE] = "a write failed; the array goes on without it",
        [FAULT_FLUSH] = "a flush failed, so what it holds is uncertain; it is out of use",
        [FAULT_NO_SPACE] = "the file system under it is full; it missed a write and is out of use",
        [FAULT_ADMIN] = "it was taken out by hand",
    };
    add_problem(status, codes[member->fault], "critical", member->path, member->fault_wall_ns,
                "%s: %s", member->path, texts[member->fault]);
    if (member->fault == FAULT_NO_SPACE)
        add_fix(status, "make room on the file system that holds %s", member->path);
    add_fix(status, "sr5 inspect %s", member->path);
    (void)array;
}

static void
member_problems(const struct array *array, struct array_status *status)
{
    for (uint32_t i = 0; i < array->member_count; i++) {
        const struct member *member = &array->members[i];
        if (member->state == MS_FAULTY) {
            faulty_problem(array, member, status);
        } else if (member->state == MS_SUSPECT) {
            add_problem(status, "MEMBER_SUSPECT", "warning", member->path, member->fault_wall_ns,
                        "%s answered with errors and is still in use", member->path);
            add_fix(status, "sr5 members %s", array->name);
        }
        if (member->super_restored)
            add_problem(status, "SUPER_FROM_BACKUP", "info", member->path, array->opened_wall_ns,
                        "the superblock of %s was gone; its copy in the sr5 area was used%s",
                        member->path, array->read_only ? "" : " and is written back");
        if (member->bad_count != 0)
            add_problem(status, "MEMBER_BAD_BLOCKS", "warning", member->path, array->opened_wall_ns,
                        "%s has a list of %" PRIu32 " bad ranges, which are not read", member->path,
                        member->bad_count);
    }
    for (uint32_t role = 0; role < array->geometry.member_count; role++) {
        if (array->role_main[role] != NO_MEMBER)
            continue;
        add_problem(status, "MEMBER_MISSING", "critical", "", array->opened_wall_ns,
                    "role %" PRIu32 " has no member", role);
        add_fix(status, "if it still exists: bring it back, sr5 stop %s, sr5 start %s", array->name,
                array->name);
        add_fix(status, "else: sr5 stop %s, mdadm --assemble, mdadm --add (no rebuild here yet)",
                array->name);
    }
}

static void
sync_problems(const struct array *array, struct array_status *status)
{
    if (array->flush.lost)
        add_problem(status, "FLUSH_LOST", "critical", "", array->opened_wall_ns,
                    "a member could not flush and the others lack its data: writes answered "
                    "before may be lost, and every flush fails until the array is restarted");
    if (array->intent.enabled && array->intent.need_sync_count != 0) {
        bool stuck = array->resync.incomplete || (array->has_parity && array_degraded(array));
        add_problem(status, stuck ? "RESYNC_INCOMPLETE" : "RESYNC_PENDING",
                    stuck ? "critical" : "warning", "", array->opened_wall_ns,
                    "%" PRIu64 " bytes of member space may hold redundancy that does not agree "
                    "with the data",
                    array->intent.need_sync_count << array->intent.granule_shift);
    }
    if (array->has_parity)
        add_problem(status, "WRITE_HOLE_OPEN", "info", "", array->opened_wall_ns,
                    "without a log, a crash together with the loss of a member can damage data "
                    "that was not being written");
}

/* ---- state ---------------------------------------------------------------------------------- */

static enum array_state
state_of(const struct array *array)
{
    uint64_t answering = 0;
    bool rebuilding = false;
    for (uint32_t i = 0; i < array->member_count; i++) {
        const struct member *member = &array->members[i];
        if (!member->has_role || member->replacement)
            continue;
        if (member_in_sync(member) && !member->gone)
            answering |= mask_of(member->role);
        rebuilding |= member->state == MS_REBUILDING;
    }
    if (array->stopping)
        return AS_STOPPED;
    if (!layout_enough(&array->geometry, answering))
        return AS_FAILED;
    if (array->read_only)
        return AS_READ_ONLY;
    if (rebuilding)
        return AS_REBUILDING;
    return array_degraded(array) ? AS_DEGRADED : AS_ONLINE;
}

static void
fill_member(const struct member *member, struct member_status *out)
{
    *out = (struct member_status){
        .role = member->has_role ? (int32_t)member->role : -1,
        .state = member->state,
        .read_errors = member->read_errors,
        .write_errors = member->write_errors,
        .repaired = member->repaired,
        .reads = member->reads,
        .writes = member->writes,
        .flushes = member->flushes,
        .read_bytes = member->read_bytes,
        .write_bytes = member->write_bytes,
    };
    super_uuid_text(member->super.device_uuid, out->id);
    snprintf(out->path, sizeof(out->path), "%s", member->path);
}

static void
fill_job(const struct array *array, struct job_status *job)
{
    const struct resync *resync = &array->resync;
    *job = (struct job_status){.kind = "resync"};
    if (!resync->active)
        return;
    job->active = true;
    job->id = 1;
    job->position_bytes = MIN(resync->done_bytes, resync->total_bytes);
    job->total_bytes = resync->total_bytes;
    uint64_t ms = (loop_now_ns(array->loop) - resync->start_ns) / MS_NS;
    job->rate_bytes_s = ms == 0 ? 0 : resync->done_bytes * 1000 / ms;
    if (job->rate_bytes_s != 0)
        job->eta_s = (job->total_bytes - job->position_bytes) / job->rate_bytes_s;
}

void
array_status(struct array *array, struct array_status *status)
{
    memset(status, 0, sizeof(*status));
    snprintf(status->name, sizeof(status->name), "%s", array->name);
    memcpy(status->uuid, array->uuid, sizeof(status->uuid));
    status->geometry = array->geometry;
    status->state = state_of(array);
    status->dirty = array->redundant && (array->meta.active || array->meta.want_active ||
                                         array->intent.need_sync_count != 0);
    status->events = array->meta.events;
    status->members_total = array->geometry.member_count;
    status->members_online = mask_count(array->roles_online);
    status->failures_survivable = layout_survivable(&array->geometry, array->roles_online);
    for (uint32_t i = 0; i < array->member_count && i < STATUS_MEMBERS_MAX; i++)
        fill_member(&array->members[i], &status->members[status->member_count++]);
    for (uint32_t i = 0; i < array->member_count; i++)
        if (array->members[i].has_area) {
            const struct area *area = &array->members[i].area;
            status->log_bytes = area->log_bytes;
            snprintf(status->policy, sizeof(status->policy), "%.15s", area->policy);
            snprintf(status->consistency, sizeof(status->consistency), "%.15s", area->consistency);
        }
    member_problems(array, status);
    sync_problems(array, status);
    fill_job(array, &status->job);
    status->in_flight = array->in_flight;
}
