#include "cli/found_json.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/check.h"

#include "cli/format.h"
#include "cli/json_fields.h"

bool
found_in_use(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    if (S_ISBLK(st.st_mode)) {
        CLEANUP_CLOSE int dev = open(path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
        return dev < 0 && errno == EBUSY;
    }
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static const struct decision_member *
decided(const struct found_array *found, uint32_t member)
{
    for (uint32_t i = 0; i < found->decision.member_count; i++)
        if (found->decision.members[i].candidate == member)
            return &found->decision.members[i];
    return NULL;
}

const char *
found_class(const struct found_array *found)
{
    for (uint32_t i = 0; i < found->member_count; i++)
        if (found_in_use(member_spec_path(found->members[i]->spec)))
            return "in use";
    if (found->err < 0 && strcmp(found->diag.code, "E_DIVERGED") == 0)
        return "diverged";
    if (found->err < 0 && strcmp(found->diag.code, "E_STALE_ALONE") == 0)
        return "stale";
    if (found->err < 0 && strcmp(found->diag.code, "E_NO_MEMBERS") != 0 &&
        strcmp(found->diag.code, "E_NOT_ENOUGH_MEMBERS") != 0)
        return "refused";
    /* An array that had failed a member is all there, and degraded nevertheless. */
    if (found->err == 0 && found->complete &&
        found->decision.present_roles == mask_below(found->geometry.member_count))
        return "complete";
    return found->enough ? "degraded" : "orphan";
}

/* A member's class where decide() got that far; what it holds anyhow. */
static json_t *
member_json(const struct found_array *found, uint32_t i)
{
    const struct found_member *member = found->members[i];
    const struct candidate *candidate = &member->probe.candidate;
    const struct decision_member *d = decided(found, i);
    bool has_role = d != NULL && (d->class == MEMBER_ACTIVE || d->class == MEMBER_RECOVERING ||
                                  d->class == MEMBER_REPLACEMENT);
    int role = has_role ? (int)d->role : -1;
    if (!has_role && candidate->has_super && super_role(&candidate->super) < MEMBERS_MAX)
        role = super_role(&candidate->super);
    char id[40] = "", updated[FORMAT_BYTES];
    super_uuid_text(candidate->super.device_uuid, id);
    return json_pack(
        "{s:o, s:i, s:s, s:s, s:o, s:I, s:s, s:b, s:b}", "path", json_bytes(member->spec), "role",
        role, "id", id, "class", d != NULL ? member_class_name(d->class) : "unknown", "why",
        json_bytes(d != NULL ? d->why : ""), "events", (json_int_t)candidate->super.events,
        "updated", time_format(candidate->super.updated_s, updated), "from_backup",
        (int)candidate->super_from_backup, "in_use",
        (int)found_in_use(member_spec_path(member->spec)));
}

static void
next_step(const struct found_array *found, const char *class, const char *uuid, char *out,
          size_t out_bytes)
{
    out[0] = '\0';
    if (found->err == 0 && found->complete && strcmp(class, "in use") != 0)
        snprintf(out, out_bytes, "sr5 start %s", found->members[0]->spec);
    else if (strcmp(class, "degraded") == 0)
        snprintf(out, out_bytes,
                 "bring the missing member, or serve without it: sr5 start --degraded=now %.8s",
                 uuid);
    else if (strcmp(class, "orphan") == 0)
        snprintf(out, out_bytes, "find the other members; these alone are not enough");
    else if (strcmp(class, "diverged") == 0)
        snprintf(out, out_bytes, "choose a side: sr5 start %.8s --keep MEMBER", uuid);
    else if (strcmp(class, "refused") == 0 || strcmp(class, "stale") == 0)
        snprintf(out, out_bytes, "sr5 explain %s", found->diag.code);
}

/* The superblock that names level and format: the freshest's, else the first there is. */
static const struct super *
speaker(const struct found_array *found)
{
    if (found->err == 0)
        return &found->members[found->decision.freshest]->probe.candidate.super;
    for (uint32_t i = 0; i < found->member_count; i++)
        if (found->members[i]->probe.candidate.has_super)
            return &found->members[i]->probe.candidate.super;
    return NULL;
}

json_t *
found_array_json(const struct found_array *found)
{
    char uuid[40], format[16] = "md-1.2", next[4200];
    const struct super *super = speaker(found);
    const char *class = found_class(found);
    super_uuid_text(found->uuid, uuid);
    if (super != NULL)
        snprintf(format, sizeof(format), "md-1.%" PRIu32, super->minor);
    next_step(found, class, uuid, next, sizeof(next));
    json_t *members = json_array();
    for (uint32_t i = 0; i < found->member_count; i++)
        json_array_append_new(members, member_json(found, i));
    json_t *error = found->err == 0 ? json_null()
                                    : json_pack("{s:s, s:o}", "code", found->diag.code, "message",
                                                json_bytes(found->diag.message));
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:I, s:i, s:b, s:o, s:o, s:o}", "name",
                     json_bytes(found->name), "uuid", uuid, "format", format, "level",
                     super != NULL ? level_name((enum raid_level)super->level) : "", "class", class,
                     "size_bytes", (json_int_t)(found->err == 0 ? found->geometry.array_bytes : 0),
                     "members_total", super != NULL ? (int)super->raid_disks : 0, "dirty",
                     (int)(found->err == 0 && found->decision.dirty), "error", error, "members",
                     members, "next", json_bytes(next));
}

/* ---- the status of an array that is not open ---------------------------------------------- */

static json_t *
problem_json(const char *code, const char *severity, const char *member, const char *text,
             const char *since)
{
    json_t *problem =
        json_pack("{s:s, s:s, s:o, s:o, s:s, s:[]}", "code", code, "severity", severity, "member",
                  json_bytes(member), "text", json_bytes(text), "since", since, "fix");
    check(problem != NULL);
    return problem;
}

static json_t *
missing_problem(const struct found_array *found, uint32_t role, const char *since)
{
    char text[80], member[16], fix[120];
    snprintf(text, sizeof(text), "the member of role %" PRIu32 " was not found", role);
    snprintf(member, sizeof(member), "%" PRIu32, role);
    if (found->enough)
        snprintf(fix, sizeof(fix), "bring it back, or go on without: sr5 start --degraded=now %s",
                 found->name);
    else
        snprintf(fix, sizeof(fix), "bring it back; without it %s cannot be served", found->name);
    json_t *problem = problem_json("MEMBER_MISSING", "critical", member, text, since);
    json_array_append_new(json_object_get(problem, "fix"), json_bytes(fix));
    return problem;
}

static json_t *
found_problems(const struct found_array *found, const char *state, const struct diag *problem,
               const char *since)
{
    json_t *list = json_array();
    if (problem != NULL) {
        json_t *entry = problem_json(problem->code, "critical", "", problem->message, since);
        for (unsigned i = 0; i < DIAG_FIX_MAX && problem->fix[i][0] != '\0'; i++)
            json_array_append_new(json_object_get(entry, "fix"), json_bytes(problem->fix[i]));
        json_array_append_new(list, entry);
    }
    if (found->err < 0 || strcmp(state, "stopped") == 0)
        return list;
    for (uint32_t role = 0; role < found->geometry.member_count; role++) {
        if (found->decision.present_roles & mask_of(role))
            continue;
        json_array_append_new(list, missing_problem(found, role, since));
    }
    for (uint32_t i = 0; i < found->decision.member_count; i++) {
        const struct decision_member *d = &found->decision.members[i];
        if (d->class >= MEMBER_STALE)
            json_array_append_new(list,
                                  problem_json("MEMBER_NOT_USED", "warning",
                                               found->members[d->candidate]->spec, d->why, since));
    }
    return list;
}

static json_t *
found_member_status(const struct found_array *found, uint32_t i)
{
    json_t *scan = member_json(found, i);
    json_t *member =
        json_pack("{s:O, s:O, s:O, s:O, s:O, s:i, s:i, s:i}", "role", json_object_get(scan, "role"),
                  "id", json_object_get(scan, "id"), "path", json_object_get(scan, "path"), "state",
                  json_object_get(scan, "class"), "why", json_object_get(scan, "why"),
                  "read_errors", 0, "write_errors", 0, "repaired", 0);
    json_decref(scan);
    return member;
}

json_t *
found_status_json(const struct found_array *found, const char *state, const struct diag *problem,
                  uint64_t since_s)
{
    char uuid[40], since[FORMAT_BYTES], layout[32] = "";
    const struct super *super = speaker(found);
    bool known = found->err == 0;
    super_uuid_text(found->uuid, uuid);
    if (known && found->geometry.level != RAID1)
        layout_name(found->geometry.level, found->geometry.layout, layout, sizeof(layout));
    json_t *members = json_array();
    for (uint32_t i = 0; i < found->member_count; i++)
        json_array_append_new(members, found_member_status(found, i));
    json_t *array = json_pack(
        "{s:o, s:s, s:s, s:s, s:I, s:s, s:I, s:i, s:i, s:i, s:s, s:{s:s, s:s, s:i, s:i, s:i}, "
        "s:o, s:o, s:[], s:[]}",
        "name", json_bytes(found->name), "uuid", uuid, "level",
        super != NULL ? level_name((enum raid_level)super->level) : "", "layout", layout,
        "chunk_bytes", (json_int_t)(known ? found->geometry.chunk_bytes : 0), "state", state,
        "size_bytes", (json_int_t)(known ? found->geometry.array_bytes : 0), "members_total",
        super != NULL ? (int)super->raid_disks : 0, "members_online",
        known ? (int)mask_count(found->decision.present_roles) : 0, "failures_survivable", 0,
        "policy", "", "cache", "mode", "none", "reason", "the array is not open", "dirty_bytes", 0,
        "log_bytes", 0, "log_used_bytes", 0, "members", members, "problems",
        found_problems(found, state, problem, time_format(since_s, since)), "jobs", "lost_ranges");
    check(array != NULL);
    return array;
}
