#include "cli/inspect_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/bitset.h"
#include "engine/base/units.h"

#include "cli/format.h"
#include "cli/json_fields.h"

static const char *const feature_names[] = {
    "bitmap",       "recovery-offset", "reshape",         "bad-blocks", "replacement",
    "reshape-back", "new-offset",      "recovery-bitmap", "clustered",  "journal",
    "ppl",          "multiple-ppls",   "raid0-layout",
};

static json_t *
features_json(uint32_t features)
{
    json_t *list = json_array();
    for (unsigned bit = 0; bit < 32; bit++) {
        char unknown[16];
        if (!(features >> bit & 1))
            continue;
        snprintf(unknown, sizeof(unknown), "bit-%u", bit);
        json_array_append_new(
            list, json_string(bit < ARRAY_LEN(feature_names) ? feature_names[bit] : unknown));
    }
    return list;
}

/* As mdadm prints it: A active, . missing, R replacement; here with words for programs. */
static json_t *
roles_json(const struct super *super)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < super->max_dev && i < SUPER_ROLES_MAX; i++) {
        uint16_t role = super->roles[i];
        json_t *entry = role == SUPER_ROLE_SPARE     ? json_string("spare")
                        : role == SUPER_ROLE_FAULTY  ? json_string("faulty")
                        : role == SUPER_ROLE_JOURNAL ? json_string("journal")
                                                     : json_integer(role);
        json_array_append_new(list, entry);
    }
    /* "spare" also means "never used": leave the tail out. */
    while (json_array_size(list) > 0 &&
           json_is_string(json_array_get(list, json_array_size(list) - 1)) &&
           super->roles[json_array_size(list) - 1] == SUPER_ROLE_SPARE &&
           json_array_size(list) > super->dev_number + UINT32_C(1))
        json_array_remove(list, json_array_size(list) - 1);
    return list;
}

static const char *
role_text(const struct super *super, char out[16])
{
    uint16_t role = super_role(super);
    if (role == SUPER_ROLE_SPARE)
        return "spare";
    if (role == SUPER_ROLE_FAULTY)
        return "faulty";
    if (role == SUPER_ROLE_JOURNAL)
        return "journal";
    snprintf(out, 16, "active %u", role);
    return out;
}

static void
set_bytes(json_t *object, const char *key, uint64_t sectors)
{
    if (sectors <= INT64_MAX / SECTOR_BYTES)
        json_object_set_new(object, key,
                            json_integer((json_int_t)sectors * (json_int_t)SECTOR_BYTES));
}

/* Fields in the order of mdadm --examine. */
static json_t *
super_json(const struct super *super, enum super_verdict verdict)
{
    char uuid[40], device[40], role[16], layout[32] = "", created[FORMAT_BYTES],
                                         updated[FORMAT_BYTES];
    enum raid_level level = (enum raid_level)super->level;
    super_uuid_text(super->array_uuid, uuid);
    super_uuid_text(super->device_uuid, device);
    if (super->level == RAID0 || super->level >= RAID5)
        layout_name(level, super->layout, layout, sizeof(layout));
    json_t *json = json_pack(
        "{s:s, s:o, s:s, s:o, s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:I, s:s, s:b, s:i}", "version",
        super->minor == 0   ? "1.0"
        : super->minor == 1 ? "1.1"
                            : "1.2",
        "features", features_json(super->features), "array_uuid", uuid, "name",
        json_bytes(super->name), "created", time_format(super->created_s, created), "level",
        level_name(level), "layout", layout, "raid_devices", (int)super->raid_disks, "device_uuid",
        device, "device_role", role_text(super, role), "updated",
        time_format(super->updated_s, updated), "events", (json_int_t)super->events, "state",
        super->resync_offset_sectors == SUPER_INFINITY ? "clean" : "active", "checksum_ok",
        (int)(verdict != SUPER_BAD_CHECKSUM), "corrected_reads", (int)super->corrected_reads);
    set_bytes(json, "chunk_bytes", super->chunk_sectors);
    set_bytes(json, "used_bytes", super->used_sectors);
    set_bytes(json, "data_offset_bytes", super->data_offset_sectors);
    set_bytes(json, "data_bytes", super->data_sectors);
    set_bytes(json, "super_offset_bytes", super->super_offset_sectors);
    if (super->resync_offset_sectors != SUPER_INFINITY)
        set_bytes(json, "resync_offset_bytes", super->resync_offset_sectors);
    if (super->features & SUPER_RECOVERY)
        set_bytes(json, "recovery_offset_bytes", super->recovery_offset_sectors);
    if (super->features & SUPER_BITMAP)
        json_object_set_new(json, "bitmap_offset_sectors",
                            json_integer(super->bitmap_offset_sectors));
    if (super->features & SUPER_RESHAPE) {
        set_bytes(json, "reshape_position_bytes", super->reshape_position);
        json_object_set_new(json, "delta_disks", json_integer(super->delta_disks));
    }
    json_object_set_new(json, "device_number", json_integer(super->dev_number));
    json_object_set_new(json, "roles", roles_json(super));
    return json;
}

static json_t *
bitmap_json(const struct probe *probe)
{
    const struct bitmap_header *bitmap = &probe->bitmap;
    char uuid[40];
    if (probe->bitmap_verdict != BITMAP_OK || bitmap->chunk_bytes == 0)
        return json_null();
    uint64_t bits = bitmap_bit_count(bitmap), dirty = 0;
    for (uint64_t bit = 0; bit < bits; bit++) {
        uint64_t byte = BITMAP_HEADER_BYTES + bit / 8;
        if (byte >= probe->bitmap_raw_bytes || probe->bitmap_raw == NULL)
            break;
        dirty += probe->bitmap_raw[byte] >> (bit % 8) & 1;
    }
    super_uuid_text(bitmap->array_uuid, uuid);
    return json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "version",
                     (int)bitmap->version, "array_uuid", uuid, "events", (json_int_t)bitmap->events,
                     "events_cleared", (json_int_t)bitmap->events_cleared, "sync_bytes",
                     (json_int_t)bitmap->sync_sectors * (json_int_t)SECTOR_BYTES, "chunk_bytes",
                     (json_int_t)bitmap->chunk_bytes, "bits", (json_int_t)bits, "bits_dirty",
                     (json_int_t)dirty, "stale", (int)(bitmap->state >> 1 & 1));
}

static json_t *
area_json(const struct candidate *candidate)
{
    const struct area *area = &candidate->area;
    if (!candidate->has_area)
        return json_null();
    json_t *lineage = json_array();
    uint32_t roles = candidate->has_super ? MIN(candidate->super.raid_disks, AREA_MEMBERS_MAX)
                                          : AREA_MEMBERS_MAX;
    for (uint32_t i = 0; i < roles; i++)
        json_array_append_new(lineage, json_integer((json_int_t)area->role_events[i]));
    char uuid[40];
    super_uuid_text(area->array_uuid, uuid);
    return json_pack("{s:I, s:s, s:I, s:b, s:I, s:I, s:I, s:I, s:o, s:b, s:s, s:s, s:b}",
                     "generation", (json_int_t)area->generation, "array_uuid", uuid, "events",
                     (json_int_t)area->events, "current",
                     (int)(candidate->has_super && area->events == candidate->super.events),
                     "area_bytes", (json_int_t)area->area_bytes, "log_offset_bytes",
                     (json_int_t)area->log_off_bytes, "log_bytes", (json_int_t)area->log_bytes,
                     "slack_bytes", (json_int_t)area->slack_bytes, "role_events", lineage,
                     "initialised", (int)area->initialised, "consistency", area->consistency,
                     "policy", area->policy, "super_backup", (int)area->has_super);
}

static json_t *
damage_json(const struct found_member *member)
{
    const struct probe *probe = &member->probe;
    json_t *list = json_array();
    for (unsigned minor = 0; minor < ARRAY_LEN(probe->supers); minor++) {
        char what[32];
        enum super_verdict verdict = probe->supers[minor].verdict;
        if (verdict == SUPER_OK || verdict == SUPER_NONE)
            continue;
        snprintf(what, sizeof(what), "superblock 1.%u", minor);
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:o}", "what", what, "code",
                      probe->supers[minor].diag.code != NULL ? probe->supers[minor].diag.code : "",
                      "message", json_bytes(probe->supers[minor].diag.message)));
    }
    if (probe->candidate.super_from_backup)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s}", "what", "superblock", "code", "SUPER_FROM_BACKUP",
                            "message", "gone or damaged; read from its backup in the sr5 area"));
    if (probe->bitmap_verdict == BITMAP_INSANE || probe->bitmap_verdict == BITMAP_UNSUPPORTED)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "what", "bitmap", "code", "",
                                              "message", "damaged or of an unknown kind"));
    return list;
}

static json_t *
bad_json(const struct probe *probe)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < probe->bad_count; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:I}", "offset", (json_int_t)probe->bad[i].off_bytes,
                                        "length", (json_int_t)probe->bad[i].len_bytes));
    return list;
}

json_t *
inspect_json(const struct found_member *member, const struct decision_member *d)
{
    const struct candidate *candidate = &member->probe.candidate;
    if (member->err < 0)
        return json_pack("{s:o, s:s, s:[{s:s, s:s, s:o}]}", "path", json_bytes(member->spec),
                         "state", "unreadable", "damage", "what", "member", "code",
                         member->diag.code, "message", json_bytes(member->diag.message));
    json_t *damage = damage_json(member);
    const char *state = json_array_size(damage) != 0       ? "damaged"
                        : candidate->has_super             ? "member"
                        : member->probe.foreign[0] != '\0' ? "foreign"
                                                           : "blank";
    enum super_verdict verdict = SUPER_OK;
    if (candidate->has_super && candidate->super.minor < ARRAY_LEN(member->probe.supers))
        verdict = member->probe.supers[candidate->super.minor].verdict;
    return json_pack(
        "{s:o, s:s, s:s, s:o, s:I, s:o, s:s, s:o, s:o, s:o, s:o}", "path", json_bytes(member->spec),
        "state", state, "class", d != NULL ? member_class_name(d->class) : "", "why",
        json_bytes(d != NULL ? d->why : ""), "device_bytes", (json_int_t)candidate->device_bytes,
        "damage", damage, "foreign", member->probe.foreign, "super",
        candidate->has_super ? super_json(&candidate->super, verdict) : json_null(), "bitmap",
        bitmap_json(&member->probe), "area", area_json(candidate), "bad_blocks",
        bad_json(&member->probe));
}
