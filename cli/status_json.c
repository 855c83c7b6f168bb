#include "cli/status_json.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/check.h"
#include "engine/base/units.h"

#include "cache/policy.h"
#include "cli/format.h"
#include "cli/json_fields.h"
#include "engine/meta/super.h"

static void
set_number(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX)));
}

static void
set_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, json_bytes(text));
}

json_t *
array_members_json(const struct array_status *status)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < status->member_count; i++) {
        const struct member_status *m = &status->members[i];
        json_t *member = json_object();
        json_object_set_new(member, "role", json_integer(m->role));
        set_text(member, "id", m->id);
        set_text(member, "path", m->path);
        set_text(member, "state", member_state_name(m->state));
        set_number(member, "read_errors", m->read_errors);
        set_number(member, "write_errors", m->write_errors);
        set_number(member, "repaired", m->repaired);
        set_number(member, "reads", m->reads);
        set_number(member, "writes", m->writes);
        set_number(member, "flushes", m->flushes);
        set_number(member, "read_bytes", m->read_bytes);
        set_number(member, "write_bytes", m->write_bytes);
        json_array_append_new(list, member);
    }
    return list;
}

static json_t *
problems_json(const struct array_status *status)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < status->problem_count; i++) {
        const struct problem *p = &status->problems[i];
        char since[FORMAT_BYTES];
        json_t *problem = json_object(), *fix = json_array();
        set_text(problem, "code", p->code);
        set_text(problem, "severity", p->severity);
        set_text(problem, "member", p->member);
        set_text(problem, "text", p->text);
        set_text(problem, "since", time_format(p->since_wall_ns / SECOND_NS, since));
        for (unsigned f = 0; f < ARRAY_LEN(p->fix); f++)
            if (p->fix[f][0] != '\0')
                json_array_append_new(fix, json_bytes(p->fix[f]));
        json_object_set_new(problem, "fix", fix);
        json_array_append_new(list, problem);
    }
    return list;
}

static json_t *
jobs_json(const struct array_status *status)
{
    const struct job_status *j = &status->job;
    json_t *list = json_array();
    if (!j->active)
        return list;
    uint64_t done = MIN(j->position_bytes, j->total_bytes);
    /* tenths, rounded down: 100.0 only when it is done */
    uint64_t tenths =
        j->total_bytes == 0 ? 0 : (uint64_t)((unsigned __int128)done * 1000 / j->total_bytes);
    json_t *job = json_object();
    set_number(job, "id", j->id);
    set_text(job, "kind", j->kind != NULL ? j->kind : "");
    json_object_set_new(job, "percent", json_real((double)tenths / 10));
    set_number(job, "position_bytes", done);
    set_number(job, "total_bytes", j->total_bytes);
    set_number(job, "rate_bytes_s", j->rate_bytes_s);
    set_number(job, "eta_s", j->eta_s);
    set_text(job, "state", "running");
    json_array_append_new(list, job);
    return list;
}

/* The policy in force, and why it is not the one that the array records. */
static json_t *
cache_json(const struct array_status *status)
{
    const struct policy *policy = policy_find(status->policy);
    bool as_recorded = policy != NULL;
    if (!as_recorded)
        policy = policy_default();
    return json_pack("{s:s, s:s, s:i, s:I, s:i}", "mode", policy->name, "reason",
                     as_recorded ? "" : "the write cache is not built yet", "dirty_bytes", 0,
                     "log_bytes", (json_int_t)status->log_bytes, "log_used_bytes", 0);
}

json_t *
array_status_json(const struct array_status *status)
{
    char uuid[40], layout[32] = "";
    const struct geometry *geometry = &status->geometry;
    json_t *array = json_object();
    super_uuid_text(status->uuid, uuid);
    if (geometry->level != RAID1 && geometry->level != RAID4)
        layout_name(geometry->level, geometry->layout, layout, sizeof(layout));
    set_text(array, "name", status->name);
    set_text(array, "uuid", uuid);
    set_text(array, "level", level_name(geometry->level));
    set_text(array, "layout", layout);
    set_number(array, "chunk_bytes", geometry->level == RAID1 ? 0 : geometry->chunk_bytes);
    set_text(array, "state", array_state_name(status->state));
    set_number(array, "size_bytes", geometry->array_bytes);
    set_number(array, "members_total", status->members_total);
    set_number(array, "members_online", status->members_online);
    set_number(array, "failures_survivable", status->failures_survivable);
    set_text(array, "policy", status->policy);
    set_text(array, "consistency", status->consistency);
    json_object_set_new(array, "dirty", json_boolean(status->dirty));
    set_number(array, "events", status->events);
    json_object_set_new(array, "cache", cache_json(status));
    json_object_set_new(array, "members", array_members_json(status));
    json_object_set_new(array, "problems", problems_json(status));
    json_object_set_new(array, "jobs", jobs_json(status));
    json_object_set_new(array, "lost_ranges", json_array());
    return array;
}

static json_t *
latencies_json(const struct array_stats *stats)
{
    json_t *all = json_object();
    for (unsigned op = 0; op < REQ_OP_COUNT; op++) {
        const struct latency *latency = &stats->latency[op];
        json_t *one = json_object();
        set_number(one, "count", latency->count);
        set_number(one, "p50", latency_percentile_us(latency, 500));
        set_number(one, "p90", latency_percentile_us(latency, 900));
        set_number(one, "p99", latency_percentile_us(latency, 990));
        set_number(one, "p99_9", latency_percentile_us(latency, 999));
        json_object_set_new(all, req_op_name((enum req_op)op), one);
    }
    return all;
}

json_t *
array_stats_json(const struct array_status *status, const struct array_stats *stats)
{
    json_t *out = json_object();
    set_text(out, "name", status->name);
    set_text(out, "state", array_state_name(status->state));
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"reads", stats->reads},
        {"writes", stats->writes},
        {"flushes", stats->flushes},
        {"trims", stats->trims},
        {"zeroes", stats->zeroes},
        {"read_bytes", stats->read_bytes},
        {"write_bytes", stats->write_bytes},
        {"in_flight", status->in_flight},
        {"degraded_reads", stats->degraded_reads},
        {"full_stripe_writes", stats->full_stripe_writes},
        {"rmw_writes", stats->rmw_writes},
        {"rcw_writes", stats->rcw_writes},
        {"log_appends", stats->log_appends},
        {"log_bytes", stats->log_bytes},
        {"group_commit_flushes", stats->group_commit_flushes},
        {"super_writes", stats->super_writes},
        {"bitmap_writes", stats->bitmap_writes},
    };
    for (unsigned i = 0; i < ARRAY_LEN(numbers); i++)
        set_number(out, numbers[i].key, numbers[i].value);
    json_object_set_new(out, "members", array_members_json(status));
    json_object_set_new(out, "latency_us", latencies_json(stats));
    return out;
}
