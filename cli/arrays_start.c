/* sr5 start: what was named is looked for, and done as far as it can be. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/bitset.h"

#include "cli/arrays.h"
#include "cli/json_fields.h"

#define DIAG_TEXT_BYTES 1400 /* all that a diag can say */

static json_t *
start_item(const struct entry *entry, const char *text, const char *next)
{
    char uuid[40];
    super_uuid_text(entry->uuid, uuid);
    return json_pack("{s:o, s:s, s:s, s:o, s:o}", "name", json_bytes(entry->name), "uuid", uuid,
                     "state", entry_state(entry), "text", json_bytes(text), "next",
                     json_bytes(next));
}

static json_t *
started_item(struct entry *entry, const struct start_request *request, const struct diag *problem)
{
    char text[DIAG_TEXT_BYTES], next[DIAG_TEXT_BYTES] = "";
    if (problem != NULL) {
        snprintf(text, sizeof(text), "%s: %s", problem->code, problem->message);
        snprintf(next, sizeof(next), "%s", problem->fix[0]);
    } else if (entry->phase == ENTRY_SERVED) {
        snprintf(text, sizeof(text), "%" PRIu64 " bytes, exported as \"%s\"",
                 entry->export.size_bytes, entry->export.name);
    } else if (request->degraded == DEGRADED_WAIT) {
        snprintf(text, sizeof(text), "a member is missing; it is waited for");
        snprintf(next, sizeof(next), "sr5 status %s; or at once: sr5 start --degraded=now %s",
                 entry->name, entry->name);
    } else {
        snprintf(text, sizeof(text), "too many members are missing");
        snprintf(next, sizeof(next), "sr5 status %s", entry->name);
    }
    return start_item(entry, text, next);
}

/* A dry run: what would come of it; no entry is made. */
static json_t *
rehearsed_item(const struct found_array *found, const struct start_request *request)
{
    bool whole = found->decision.present_roles == mask_below(found->geometry.member_count);
    const char *state = "waiting",
               *text = "before: not served; after: waiting for the missing member";
    char uuid[40];
    if (found->err < 0) {
        state = "failed";
        text = found->diag.message;
    } else if (!found->enough) {
        text = "before: not served; after: waiting, too few members";
    } else if (found->complete && whole) {
        state = "online";
        text = "before: not served; after: served, complete";
    } else if (found->complete || request->degraded == DEGRADED_NOW) { /* may_start() */
        state = "degraded";
        text = "before: not served; after: served, degraded";
    }
    super_uuid_text(found->uuid, uuid);
    return json_pack("{s:o, s:s, s:s, s:o, s:s}", "name", json_bytes(found->name), "uuid", uuid,
                     "state", state, "text", json_bytes(text), "next", "");
}

static json_t *
start_found(struct arrays *arrays, const struct found_array *found,
            const struct start_request *request, struct diag *diag, int *err)
{
    if (request->dry_run)
        return rehearsed_item(found, request);
    struct entry *entry = arrays_entry(arrays, found);
    if (entry_is_open(entry)) /* reached by other paths than it was opened by */
        return start_item(entry, "was served already", "");
    entry->degraded = request->degraded;
    entry->read_only = request->read_only || arrays->config->read_only;
    entry->wait_until_ns = loop_now_ns(arrays->loop) + arrays->config->degraded_wait_s * SECOND_NS;
    entry->problem[0] = '\0';
    *err = entry_try(entry, found, diag);
    return started_item(entry, request, *err < 0 ? diag : NULL);
}

static bool
found_matches(const struct found_array *found, const struct start_request *request, uint32_t i)
{
    if (!request->is_path[i] && entry_named(found->name, found->uuid, request->names[i]))
        return true;
    struct specs wanted = {0};
    bool matches = false;
    specs_expand(&wanted, request->paths[i]);
    for (uint32_t m = 0; m < found->member_count; m++)
        for (uint32_t w = 0; w < wanted.count && !matches; w++)
            matches = specs_same_file(wanted.list[w], found->members[m]->spec);
    specs_destroy(&wanted);
    return matches;
}

static bool
listed(const json_t *list, const uint8_t array_uuid[16])
{
    char uuid[40];
    size_t i;
    json_t *item;
    super_uuid_text(array_uuid, uuid);
    json_array_foreach (list, i, item) {
        if (strcmp(json_string_value(json_object_get(item, "uuid")), uuid) == 0)
            return true;
    }
    return false;
}

/* An open array that is named again is no error: it is what was asked for. */
static bool
add_open(struct arrays *arrays, const struct start_request *request, uint32_t i, json_t *list)
{
    bool any = false;
    list_for_each (node, &arrays->entries) {
        struct entry *entry = CONTAINER_OF(node, struct entry, node);
        if (!entry_is_open(entry))
            continue;
        bool matches =
            !request->is_path[i] && entry_named(entry->name, entry->uuid, request->names[i]);
        if (matches || specs_have(&entry->specs, request->paths[i])) {
            any = true;
            if (!listed(list, entry->uuid))
                json_array_append_new(list, start_item(entry, "was served already", ""));
        }
    }
    return any;
}

static int
start_operand(struct arrays *arrays, const struct scan *scan, const struct start_request *request,
              uint32_t i, json_t *list, struct diag *diag)
{
    bool any = add_open(arrays, request, i, list);
    int first_err = 0;
    for (uint32_t a = 0; a < scan->array_count; a++) {
        struct diag problem;
        int err = 0;
        if (!found_matches(&scan->arrays[a], request, i))
            continue;
        any = true;
        if (listed(list, scan->arrays[a].uuid))
            continue; /* two members of one array were named */
        json_array_append_new(list, start_found(arrays, &scan->arrays[a], request, &problem, &err));
        if (err < 0 && first_err == 0) {
            first_err = err;
            *diag = problem;
        }
    }
    if (any)
        return first_err;
    (void)diag_set(diag, DIAG_FAILED, "E_NO_SUCH_ARRAY", -ENOENT,
                   request->is_path[i] ? "no member of an array is at %s"
                                       : "no array \"%s\" is found",
                   request->is_path[i] ? request->paths[i] : request->names[i]);
    diag_fix(diag, "sr5 scan PATH, then sr5 start PATH...");
    return -ENOENT;
}

int
arrays_start(struct arrays *arrays, const struct start_request *request, json_t **list,
             struct diag *diag)
{
    struct specs specs = {0};
    struct scan scan = {0};
    arrays_gather(arrays, &specs);
    for (uint32_t i = 0; request->names[i] != NULL; i++)
        if (request->is_path[i] || access(request->paths[i], F_OK) == 0)
            specs_expand(&specs, request->paths[i]);
    int err = scan_specs(&scan, (const char *const *)specs.list, specs.count, request->keep);
    *list = json_array();
    if (err < 0)
        (void)diag_set(diag, DIAG_FAILED, "E_MEMORY", err, "not enough memory to scan");
    for (uint32_t i = 0; err == 0 && request->names[i] != NULL; i++)
        err = start_operand(arrays, &scan, request, i, *list, diag);
    scan_destroy(&scan);
    specs_destroy(&specs);
    arrays_changed(arrays);
    if (err < 0) {
        json_decref(*list);
        *list = NULL;
    }
    return err;
}
