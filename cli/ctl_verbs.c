#include "cli/ctl_verbs.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/msg.h"

#include "cli/json_fields.h"
#include "cli/status_json.h"
#include "engine/io/io_fault.h"

struct ctl_verb {
    const char *name;
    void (*run)(struct arrays *arrays, struct ctl_call *call, const json_t *args);
};

/* A text argument; refuses the call and returns NULL when it is missing. */
static const char *
text_arg(struct ctl_call *call, const json_t *args, const char *key)
{
    const char *text = json_string_value(json_object_get(args, key));
    struct diag diag;
    if (text == NULL) {
        (void)diag_set(&diag, DIAG_USAGE, "E_PROTOCOL", -EPROTO, "the argument \"%s\" is missing",
                       key);
        ctl_refuse(call, &diag);
    }
    return text;
}

static bool
flag_arg(const json_t *args, const char *key)
{
    return json_is_true(json_object_get(args, key));
}

/* The entry that args name; NULL when the call has been refused. */
static struct entry *
entry_arg(struct arrays *arrays, struct ctl_call *call, const json_t *args, bool open)
{
    struct entry *entry;
    struct diag diag;
    const char *name = text_arg(call, args, "name");
    if (name == NULL)
        return NULL;
    int err = open ? arrays_find_open(arrays, name, &entry, &diag)
                   : arrays_find(arrays, name, &entry, &diag);
    if (err == 0)
        return entry;
    ctl_refuse(call, &diag);
    return NULL;
}

/* ---- looking ------------------------------------------------------------------------------- */

static void
run_version(struct arrays *arrays, struct ctl_call *call, const json_t *args)
{
    (void)arrays;
    (void)args;
    ctl_answer(call, json_pack("{s:s, s:i}", "version", SR5_VERSION, "pid", (int)getpid()));
}

static void
run_list(struct arrays *arrays, struct ctl_call *call, const json_t *args)
{
    static const char *const keys[] = {"name",       "uuid",          "level",  "state",
                                       "size_bytes", "members_total", "export", "members_online"};
    json_t *list = json_array();
    (void)args;
    list_for_each (node, &arrays->entries) {
        json_t *status = entry_status(CONTAINER_OF(node, struct entry, node));
        json_t *item = json_object();
        for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
            json_object_set(item, keys[i], json_object_get(status, keys[i]));
        json_array_append_new(list, item);
        json_decref(status);
    }
    ctl_answer(call, json_pack("{s:s, s:o}", "socket", arrays->config->socket, "arrays", list));
}

/* From best to worst. */
static unsigned
badness(const char *state)
{
    static const char *const order[] = {"online",   "read-only", "rebuilding",
                                        "degraded", "waiting",   "failed"};
    for (unsigned i = 0; i < ARRAY_LEN(order); i++)
        if (strcmp(order[i], state) == 0)
            return i;
    return 0;
}

static void
run_status(struct arrays *arrays, struct ctl_call *call, const json_t *args)
{
    struct entry *only = NULL;
    if (json_object_get(args, "name") != NULL) {
        only = entry_arg(arrays, call, args, false);
        if (only == NULL)
            return;
    }
    /* What was stopped by hand is no problem, unless there is nothing else. */
    const char *worst = "stopped";
    json_t *list = json_array();
    list_for_each (node, &arrays->entries) {
        struct entry *entry = CONTAINER_OF(node, struct entry, node);
        if (only != NULL && entry != only)
            continue;
        const char *state = entry_state(entry);
        if (entry->phase != ENTRY_STOPPED &&
            (strcmp(worst, "stopped") == 0 || badness(state) > badness(worst)))
            worst = state;
        json_array_append_new(list, entry_status(entry));
    }
    ctl_answer(call, json_pack("{s:s, s:o}", "worst", worst, "arrays", list));
}

static void
run_members(struct arrays *arrays, struct ctl_call *call, const json_t *args)
{
    struct entry *entry = entry_arg(arrays, call, args, false);
    if (entry == NULL)
        return;
    json_t *status = entry_status(entry);
    ctl_answer(call, json_pack("{s:O, s:O, s:O}", "name", json_object_get(status, "name"), "state",
                               json_object_get(status, "state"), "members",
                               json_object_get(status, "members")));
    json_decref(status);
}

static void
run_stats(struct arrays *arrays, struct ctl_call *call, const json_t *args)
{
    struct entry *entry = entry_arg(arrays, call, args, true);
    if (entry == NULL)
        return;
    struct array_status *status = calloc(1, sizeof(*status));
    struct array_stats *stats = calloc(1, sizeof(*stats));
    check(status != NULL && stats != NULL);
    array_status(entry->array, status);
    array_stats(entry->array, stats);
    ctl_answer(call, array_stats_json(status, stats));
    free(status);
    free(stats);
}

/* ---- starting and stopping ---------------------------------------------------------------------
 */

#define NAMES_MAX 1024

static void
run_start(struct arrays *arrays, struct ctl_call *call, const json_t *args)
{
    const json_t *what = json_object_get(args, "what");
    size_t count = json_array_size(what);
    const char *degraded = json_string_value(json_object_get(args, "degraded"));
    struct start_request request = {.degraded = arrays->config->degraded,
                                    .read_only = flag_arg(args, "read_only"),
                                    .dry_run = flag_arg(args, "dry_run"),
                                    .keep = json_string_value(json_object_get(args, "keep"))};
    struct diag diag;
    const char *names[NAMES_MAX + 1], *paths[NAMES_MAX + 1];
    bool is_path[NAMES_MAX + 1];
    bool good = count >= 1 && count <= NAMES_MAX &&
                (degraded == NULL || degraded_parse(degraded, &request.degraded));
    for (size_t i = 0; good && i < count; i++) {
        const json_t *item = json_array_get(what, i);
        names[i] = json_string_value(json_object_get(item, "text"));
        paths[i] = json_string_value(json_object_get(item, "path"));
        is_path[i] = flag_arg(item, "is_path");
        good = names[i] != NULL && paths[i] != NULL;
    }
    if (!good) {
        (void)diag_set(&diag, DIAG_USAGE, "E_PROTOCOL", -EPROTO,
                       "start takes \"what\": [{\"text\", \"path\", \"is_path\"}...], 1 to %d",
                       NAMES_MAX);
        ctl_refuse(call, &diag);
        return;
    }
    names[count] = paths[count] = NULL;
    request.names = names;
    request.paths = paths;
    request.is_path = is_path;
    json_t *list;
    if (arrays_start(arrays, &request, &list, &diag) < 0)
        ctl_refuse(call, &diag);
    else
        ctl_answer(call, json_pack("{s:o, s:b}", "arrays", list, "dry_run", (int)request.dry_run));
}

/* A call that is answered when some work is done. */
struct pending {
    struct ctl_call *call;
    struct arrays *arrays;
    json_t *answer; /* as far as it is known */
    char uuid[40];
};

static struct pending *
pending_new(struct arrays *arrays, struct ctl_call *call, const struct entry *entry, json_t *answer)
{
    struct pending *pending = calloc(1, sizeof(*pending));
    check(pending != NULL);
    *pending = (struct pending){.call = call, .arrays = arrays, .answer = answer};
    super_uuid_text(entry->uuid, pending->uuid);
    return pending;
}

static void
refuse_pending(struct pending *pending, const struct diag *diag)
{
    ctl_refuse(pending->call, diag);
    json_decref(pending->answer);
    free(pending);
}

static void
stop_done(void *ctx, int err)
{
    struct pending *pending = ctx;
    struct diag diag;
    if (err < 0) {
        (void)diag_set(&diag, DIAG_FAILED, "E_NOT_CLEAN", err,
                       "it is stopped, but could not be marked clean on every member: %s",
                       strerror(-err));
        diag_fix(&diag, "it resyncs when it is started next; look at the members: sr5 inspect");
        refuse_pending(pending, &diag);
        return;
    }
    ctl_answer(pending->call, pending->answer);
    free(pending);
}

static void
run_stop(struct arrays *arrays, struct ctl_call *call, const json_t *args)
{
    struct entry *entry = entry_arg(arrays, call, args, false);
    struct diag diag;
    if (entry == NULL)
        return;
    json_t *answer = json_pack("{s:o, s:s, s:s, s:s, s:b}", "name", json_bytes(entry->name),
                               "before", entry_state(entry), "after", "stopped", "state", "stopped",
                               "dry_run", (int)flag_arg(args, "dry_run"));
    if (flag_arg(args, "dry_run")) {
        json_object_set_new(answer, "state", json_string(entry_state(entry)));
        ctl_answer(call, answer);
        return;
    }
    struct pending *pending = pending_new(arrays, call, entry, answer);
    if (entry_stop(entry, stop_done, pending, &diag) < 0)
        refuse_pending(pending, &diag);
}

/* ---- members -----------------------------------------------------------------------------------
 */

/* By role, id, or path; any path that leads to the member. */
static int
find_member(struct entry *entry, const json_t *args, const char *text, uint32_t *index,
            struct diag *diag)
{
    const char *path = json_string_value(json_object_get(args, "path"));
    int err = array_find_member(entry->array, text, index, diag);
    if (err == 0 || path == NULL)
        return err;
    struct array_status *status = calloc(1, sizeof(*status));
    check(status != NULL);
    array_status(entry->array, status);
    for (uint32_t i = 0; err < 0 && i < status->member_count; i++)
        if (specs_same_file(status->members[i].path, path)) {
            *index = i;
            err = 0;
        }
    free(status);
    return err;
}

static void
fail_done(void *ctx, int err)
{
    struct pending *pending = ctx;
    struct entry *entry;
    struct diag diag;
    if (err < 0) {
        (void)diag_set(&diag, DIAG_FAILED, "E_IO", err,
                       "dropping the member could not be recorded on the others: %s",
                       strerror(-err));
        refuse_pending(pending, &diag);
        return;
    }
    if (arrays_find(pending->arrays, pending->uuid, &entry, &diag) == 0) {
        json_t *status = entry_status(entry);
        json_object_set(pending->answer, "after", json_object_get(status, "state"));
        json_object_set(pending->answer, "survivable_after",
                        json_object_get(status, "failures_survivable"));
        json_decref(status);
    }
    ctl_answer(pending->call, pending->answer);
    free(pending);
}

/* What it would be without that member; -EPERM with *diag when it would be too little. */
static int
foresee(const struct entry *entry, const struct array_status *status, uint32_t index,
        json_t *answer, struct diag *diag)
{
    uint64_t roles = 0;
    for (uint32_t i = 0; i < status->member_count; i++) {
        const struct member_status *m = &status->members[i];
        bool serves = m->state == MS_ONLINE || m->state == MS_SUSPECT;
        if (i != index && serves && m->role >= 0 && m->role < MEMBERS_MAX)
            roles |= mask_of((uint32_t)m->role);
    }
    if (!layout_enough(&status->geometry, roles)) {
        (void)diag_set(diag, DIAG_REFUSED, "E_LAST_GOOD_COPY", -EPERM,
                       "%s cannot be served without that member", entry->name);
        diag_fix(diag, "sr5 status %s", entry->name);
        return -EPERM;
    }
    uint64_t all = mask_below(status->geometry.member_count);
    json_object_set_new(answer, "after",
                        json_string(array_state_name(roles == all ? AS_ONLINE : AS_DEGRADED)));
    json_object_set_new(answer, "survivable_after",
                        json_integer(layout_survivable(&status->geometry, roles)));
    return 0;
}

static void
run_fail(struct arrays *arrays, struct ctl_call *call, const json_t *args)
{
    struct entry *entry = entry_arg(arrays, call, args, true);
    const char *text = entry != NULL ? text_arg(call, args, "member") : NULL;
    struct diag diag;
    uint32_t index;
    if (text == NULL)
        return;
    if (find_member(entry, args, text, &index, &diag) < 0) {
        ctl_refuse(call, &diag);
        return;
    }
    struct array_status *status = calloc(1, sizeof(*status));
    check(status != NULL);
    array_status(entry->array, status);
    bool dry_run = flag_arg(args, "dry_run");
    json_t *answer =
        json_pack("{s:o, s:o, s:i, s:s, s:i, s:b}", "name", json_bytes(entry->name), "path",
                  json_bytes(status->members[index].path), "role", (int)status->members[index].role,
                  "before", array_state_name(status->state), "survivable_before",
                  (int)status->failures_survivable, "dry_run", (int)dry_run);
    struct pending *pending = pending_new(arrays, call, entry, answer);
    int err = dry_run ? foresee(entry, status, index, answer, &diag)
                      : array_fail(entry->array, index, &diag, fail_done, pending);
    free(status);
    if (err < 0) {
        refuse_pending(pending, &diag);
    } else if (dry_run) {
        ctl_answer(call, answer);
        free(pending);
    }
}

static void
run_fault(struct arrays *arrays, struct ctl_call *call, const json_t *args)
{
    struct entry *entry = entry_arg(arrays, call, args, true);
    const char *text = entry != NULL ? text_arg(call, args, "member") : NULL;
    const char *rules = text != NULL ? text_arg(call, args, "rules") : NULL;
    struct diag diag;
    uint32_t index;
    if (rules == NULL)
        return;
    int err = find_member(entry, args, text, &index, &diag);
    struct dev *dev = err == 0 ? array_member_dev(entry->array, index) : NULL;
    if (err == 0 && (dev == NULL || !io_fault_is(dev)))
        err = diag_set(&diag, DIAG_USAGE, "E_NO_FAULT", -ENOTSUP,
                       "member %s was not opened by a fault:RULES:PATH spec", text);
    if (err == 0)
        err = io_fault_set(dev, rules, &diag);
    if (err < 0) {
        ctl_refuse(call, &diag);
        return;
    }
    msg(MSG_NOTICE, "%s: fault rules of member %s are now \"%s\"", entry->name, text, rules);
    ctl_answer(call, json_pack("{s:o, s:s, s:s}", "name", json_bytes(entry->name), "member", text,
                               "rules", rules));
}

static const struct ctl_verb verbs[] = {
    {"fail", run_fail},       {"fault", run_fault}, {"list", run_list},
    {"members", run_members}, {"start", run_start}, {"stats", run_stats},
    {"status", run_status},   {"stop", run_stop},   {"version", run_version},
};

void
ctl_verbs_handle(void *arrays, struct ctl_call *call, const char *verb, const json_t *args)
{
    struct diag diag;
    for (unsigned i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, verb) == 0) {
            verbs[i].run(arrays, call, args);
            return;
        }
    (void)diag_set(&diag, DIAG_USAGE, "E_USAGE", -EINVAL, "this daemon has no verb \"%.64s\"",
                   verb);
    diag_fix(&diag, "are sr5 and sr5d the same version? sr5 version");
    ctl_refuse(call, &diag);
}
