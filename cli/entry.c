/* THEORY OF OPERATION
 *
 * Every array the daemon has seen is an entry, in one of five phases:
 *
 *     found --> WAITING --open--> SERVED --stop--> STOPPING --> STOPPED
 *                 |  ^                                             |
 *       cannot be |  | started by hand                             | started by hand
 *          served v  |                                             v
 *               REFUSED                                         WAITING
 *
 *  A1  An export exists exactly while its entry is SERVED (and, draining, STOPPING): what waits is
 *      invisible to clients.
 *  A2  STOPPED and REFUSED are left only by hand; a scan never undoes what a person decided.
 *  A3  A complete array starts at once.  An incomplete one starts when its policy says so: now,
 *      after the wait, or never; members that turn up meanwhile complete it.
 *  A4  While something waits, the same places are looked at again, every second at first.
 *
 * What may be opened is decided by engine/meta/decide and engine/assemble; nothing here looks at
 * metadata. */
#include "cli/entry.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/msg.h"

#include "cli/arrays.h"
#include "cli/found_json.h"
#include "cli/json_fields.h"
#include "cli/status_json.h"

bool
entry_is_open(const struct entry *entry)
{
    return entry->array != NULL;
}

/* Is `text` the uuid, with or without separators, or its first eight or more digits? */
static bool
uuid_matches(const uint8_t uuid[16], const char *text)
{
    char digits[40];
    unsigned count = 0;
    for (; *text != '\0'; text++) {
        if (*text == ':' || *text == '-')
            continue;
        if (!isxdigit((unsigned char)*text) || count == 32)
            return false;
        digits[count++] = (char)tolower((unsigned char)*text);
    }
    char whole[33];
    for (unsigned i = 0; i < 16; i++)
        snprintf(whole + 2 * (size_t)i, 3, "%02x", uuid[i]);
    return count >= 8 && memcmp(whole, digits, count) == 0;
}

bool
entry_named(const char *name, const uint8_t uuid[16], const char *text)
{
    return strcmp(name, text) == 0 || uuid_matches(uuid, text);
}

bool
entry_unsettled(const struct entry *entry)
{
    return entry->phase == ENTRY_WAITING && entry->degraded == DEGRADED_WAIT &&
           loop_now_ns(entry->owner->loop) < entry->wait_until_ns;
}

/* ---- status ------------------------------------------------------------------------------------
 */

static json_t *
open_status(const struct entry *entry)
{
    struct array_status *status = calloc(1, sizeof(*status));
    check(status != NULL);
    array_status(entry->array, status);
    json_t *json = array_status_json(status);
    free(status);
    return json;
}

json_t *
entry_status(const struct entry *entry)
{
    json_t *json = entry_is_open(entry) ? open_status(entry) : json_deep_copy(entry->found);
    check(json != NULL);
    json_object_set_new(json, "name", json_bytes(entry->name));
    json_object_set_new(json, "export", json_bytes(entry_is_open(entry) ? entry->export.name : ""));
    return json;
}

const char *
entry_state(const struct entry *entry)
{
    switch (entry->phase) {
    case ENTRY_WAITING:
        return array_state_name(AS_WAITING);
    case ENTRY_REFUSED:
        return array_state_name(AS_FAILED);
    case ENTRY_STOPPED:
        return array_state_name(AS_STOPPED);
    case ENTRY_SERVED:
    case ENTRY_STOPPING:
        break;
    }
    struct array_status *status = calloc(1, sizeof(*status));
    check(status != NULL);
    array_status(entry->array, status);
    enum array_state state = status->state;
    free(status);
    return array_state_name(state);
}

uint64_t
entry_answers(const struct entry *entry)
{
    uint64_t answers = 0;
    struct array_status *status = calloc(1, sizeof(*status));
    check(status != NULL);
    array_status(entry->array, status);
    for (uint32_t i = 0; i < status->member_count; i++)
        answers +=
            status->members[i].reads + status->members[i].writes + status->members[i].flushes;
    free(status);
    return answers;
}

/* ---- opening -----------------------------------------------------------------------------------
 */

static void
set_found(struct entry *entry, const struct found_array *found, const struct diag *problem)
{
    json_decref(entry->found);
    entry->found = found_status_json(found, entry_state(entry), problem, entry->since_s);
    specs_destroy(&entry->specs);
    for (uint32_t i = 0; i < found->member_count; i++)
        specs_add(&entry->specs, found->members[i]->spec);
}

/* It stays closed, and why; said in the log when it is news. */
static void
keep_closed(struct entry *entry, enum entry_phase phase, const struct found_array *found,
            const struct diag *problem)
{
    const char *code = problem != NULL ? problem->code : "MEMBER_MISSING";
    entry->phase = phase;
    set_found(entry, found, problem);
    if (strcmp(entry->problem, code) == 0)
        return;
    snprintf(entry->problem, sizeof(entry->problem), "%s", code);
    if (problem != NULL)
        msg(MSG_WARNING, "%s is not served: %s: %s", entry->name, code, problem->message);
    else
        msg(MSG_WARNING, "%s waits: %u of %u members are here", entry->name,
            mask_count(found->decision.present_roles), found->geometry.member_count);
}

static void
fill_export(struct entry *entry)
{
    struct nbd_export *export = &entry->export;
    const struct geometry *geometry = array_geometry(entry->array);
    struct dev_info info = dev_info(array_dev(entry->array));
    bool mirror = geometry->level == RAID1;
    *export = (struct nbd_export){.dev = array_dev(entry->array),
                                  .owner = entry->owner->mailbox,
                                  .owner_loop = entry->owner->loop,
                                  .size_bytes = info.size_bytes,
                                  .read_only = info.read_only,
                                  .rotational = info.rotational};
    bool chunk_fits = !mirror && is_pow2(geometry->chunk_bytes) &&
                      geometry->chunk_bytes >= BLOCK_BYTES && geometry->chunk_bytes <= MIB(32);
    export->preferred_bytes = chunk_fits ? (uint32_t)geometry->chunk_bytes : BLOCK_BYTES;
    snprintf(export->name, sizeof(export->name), "%s", entry->name);
    snprintf(export->description, sizeof(export->description),
             "sr5 %s, %u members, full stripe %" PRIu64 " bytes", level_name(geometry->level),
             geometry->member_count, info.optimal_bytes);
}

static int
add_export(struct entry *entry, struct diag *diag)
{
    fill_export(entry);
    int err = nbd_server_add(entry->owner->nbd, &entry->export);
    if (err == -EEXIST) { /* two arrays of one name: the later one is told apart by its uuid */
        snprintf(entry->export.name, sizeof(entry->export.name), "%s-%02x%02x%02x%02x", entry->name,
                 entry->uuid[0], entry->uuid[1], entry->uuid[2], entry->uuid[3]);
        msg(MSG_WARNING, "there is another array %s: this one is exported as %s", entry->name,
            entry->export.name);
        err = nbd_server_add(entry->owner->nbd, &entry->export);
    }
    if (err < 0)
        return diag_set(diag, DIAG_FAILED, "E_EXPORT", err, "%s cannot be exported: %s",
                        entry->name, strerror(-err));
    return 0;
}

static int
open_entry(struct entry *entry, const struct found_array *found, struct diag *diag)
{
    struct arrays *arrays = entry->owner;
    const struct assemble_options how = {
        .read_only = entry->read_only, .io = arrays->io, .loop = arrays->loop};
    int err = assemble(&entry->array, found, &how, diag);
    if (err < 0) {
        entry->array = NULL;
        return err;
    }
    err = add_export(entry, diag);
    if (err < 0) {
        array_abandon(entry->array); /* nothing was written through it yet */
        entry->array = NULL;
        return err;
    }
    set_found(entry, found, NULL);
    entry->phase = ENTRY_SERVED;
    entry->problem[0] = '\0';
    char uuid[40];
    super_uuid_text(entry->uuid, uuid);
    msg(MSG_NOTICE, "%s (%s) is %s: %s, %" PRIu64 " bytes", entry->name, uuid, entry_state(entry),
        level_name(array_geometry(entry->array)->level), entry->export.size_bytes);
    return 0;
}

/* May an array that lacks members start now?  (A3) */
static bool
may_start(const struct entry *entry, const struct found_array *found)
{
    if (!found->enough)
        return false;
    if (found->complete || entry->degraded == DEGRADED_NOW)
        return true;
    return entry->degraded == DEGRADED_WAIT &&
           loop_now_ns(entry->owner->loop) >= entry->wait_until_ns;
}

/* Do what is to be done about an entry that is not open.  0: served, or it waits; else refused. */
int
entry_try(struct entry *entry, const struct found_array *found, struct diag *diag)
{
    int err = 0;
    entry->phase = ENTRY_WAITING;
    if (found->err < 0) {
        *diag = found->diag;
        err = found->err;
    } else if (!may_start(entry, found)) {
        keep_closed(entry, ENTRY_WAITING, found, NULL);
        return 0;
    } else {
        err = open_entry(entry, found, diag);
    }
    if (err == 0)
        return 0;
    bool passing = strcmp(diag->code, "E_IN_USE") == 0 ||
                   strcmp(diag->code, "E_NOT_ENOUGH_MEMBERS") == 0 ||
                   strcmp(diag->code, "E_NO_MEMBERS") == 0;
    keep_closed(entry, passing ? ENTRY_WAITING : ENTRY_REFUSED, found, diag);
    return err;
}

/* ---- stopping ----------------------------------------------------------------------------------
 */

static void
array_stopped(void *ctx, int err)
{
    struct entry *entry = ctx;
    struct arrays *arrays = entry->owner;
    entry->array = NULL;
    entry->phase = ENTRY_STOPPED;
    if (err < 0) {
        msg(MSG_ERROR, "%s is stopped, but could not be marked clean everywhere: %s", entry->name,
            strerror(-err));
        arrays->close_err = err;
    } else {
        msg(MSG_NOTICE, "%s is stopped and clean", entry->name);
    }
    void (*stopped)(void *, int) = entry->stopped;
    entry->stopped = NULL;
    if (stopped != NULL)
        stopped(entry->stopped_ctx, err);
    arrays_changed(arrays);
}

/* What status shows once it is closed. */
static void
remember_stopped(struct entry *entry)
{
    json_decref(entry->found);
    entry->found = open_status(entry);
    json_object_set_new(entry->found, "state", json_string(array_state_name(AS_STOPPED)));
    json_object_set_new(entry->found, "members_online", json_integer(0));
    json_object_set_new(entry->found, "failures_survivable", json_integer(0));
    json_object_set_new(entry->found, "problems", json_array());
    json_object_set_new(entry->found, "jobs", json_array());
}

static void
export_removed(void *ctx)
{
    struct entry *entry = ctx;
    remember_stopped(entry);
    array_stop(entry->array, array_stopped, entry);
}

int
entry_stop(struct entry *entry, void (*stopped)(void *ctx, int err), void *ctx, struct diag *diag)
{
    if (entry->phase == ENTRY_STOPPING || entry->owner->closing)
        return diag_set(diag, DIAG_BUSY, "E_BUSY", -EBUSY, "%s is being stopped", entry->name);
    if (!entry_is_open(entry)) {
        entry->phase = ENTRY_STOPPED;
        json_object_set_new(entry->found, "state", json_string(array_state_name(AS_STOPPED)));
        json_object_set_new(entry->found, "problems", json_array());
        arrays_changed(entry->owner);
        stopped(ctx, 0);
        return 0;
    }
    entry->phase = ENTRY_STOPPING;
    entry->stopped = stopped;
    entry->stopped_ctx = ctx;
    nbd_server_remove(entry->owner->nbd, &entry->export, export_removed, entry);
    return 0;
}

void
entry_close(struct entry *entry)
{
    check_eq(entry->phase, ENTRY_SERVED);
    entry->phase = ENTRY_STOPPING;
    array_stop(entry->array, array_stopped, entry);
}

void
entry_destroy(struct entry *entry)
{
    check(!entry_is_open(entry));
    json_decref(entry->found);
    specs_destroy(&entry->specs);
    free(entry);
}
