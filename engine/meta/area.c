#include "engine/meta/area.h"

#include <isa-l/crc.h>
#include <string.h>

#include "engine/meta/area_format.h"

/* CRC32C (Castagnoli) as everyone prints it: starts from and ends with all ones. */
static uint32_t
slot_crc(const struct area_disk *disk)
{
    struct area_disk copy = *disk;
    copy.crc = le32_make(0);
    return ~crc32_iscsi((unsigned char *)&copy, (int)sizeof(copy), UINT32_MAX);
}

static bool
text_ends(const char *text, size_t bytes)
{
    return memchr(text, '\0', bytes) != NULL;
}

/* Do the pointers make sense among themselves?  (Whether they fit the device, the reader checks.)
 */
static bool
places_sane(const struct area *area)
{
    uint64_t end, log_end;
    if (!add_ok(AREA_OFF_BYTES, area->area_bytes, &end) ||
        !add_ok(area->log_off_bytes, area->log_bytes, &log_end))
        return false;
    return area->area_bytes >= 2 * AREA_SLOT_BYTES &&
           (area->log_bytes == 0 ||
            (area->log_off_bytes >= AREA_OFF_BYTES + 2 * AREA_SLOT_BYTES && log_end <= end));
}

static bool
slot_decode(const uint8_t *raw, struct area *area)
{
    struct area_disk disk;
    memcpy(&disk, raw, sizeof(disk));
    if (le64_get(disk.magic) != AREA_MAGIC || le16_get(disk.major) != AREA_MAJOR ||
        slot_crc(&disk) != le32_get(disk.crc))
        return false;
    if (!text_ends(disk.consistency, sizeof(disk.consistency)) ||
        !text_ends(disk.policy, sizeof(disk.policy)))
        return false;
    memset(area, 0, sizeof(*area));
    area->generation = le64_get(disk.generation);
    memcpy(area->array_uuid, disk.array_uuid, sizeof(area->array_uuid));
    memcpy(area->device_uuid, disk.device_uuid, sizeof(area->device_uuid));
    area->events = le64_get(disk.events);
    area->area_bytes = le64_get(disk.area_bytes);
    area->log_off_bytes = le64_get(disk.log_off_bytes);
    area->log_bytes = le64_get(disk.log_bytes);
    area->slack_bytes = le64_get(disk.slack_bytes);
    for (size_t i = 0; i < AREA_MEMBERS_MAX; i++)
        area->role_events[i] = le64_get(disk.role_events[i]);
    area->initialised = (le32_get(disk.flags) & AREA_INITIALISED) != 0;
    area->has_super = (le32_get(disk.flags) & AREA_HAS_SUPER) != 0;
    memcpy(area->consistency, disk.consistency, sizeof(area->consistency));
    memcpy(area->policy, disk.policy, sizeof(area->policy));
    memcpy(area->super_raw, disk.super_raw, sizeof(area->super_raw));
    return places_sane(area);
}

bool
area_decode(const uint8_t *raw, struct area *area, unsigned *slot)
{
    bool found = false;
    for (unsigned i = 0; i < 2; i++) {
        struct area candidate;
        if (!slot_decode(raw + i * AREA_SLOT_BYTES, &candidate))
            continue;
        if (found && candidate.generation <= area->generation)
            continue;
        *area = candidate;
        *slot = i;
        found = true;
    }
    return found;
}

void
area_encode(const struct area *area, uint8_t raw[AREA_SLOT_BYTES])
{
    struct area_disk disk = {0};
    check(places_sane(area));
    check(text_ends(area->consistency, sizeof(area->consistency)));
    check(text_ends(area->policy, sizeof(area->policy)));
    disk.magic = le64_make(AREA_MAGIC);
    disk.major = le16_make(AREA_MAJOR);
    disk.minor = le16_make(AREA_MINOR);
    disk.generation = le64_make(area->generation);
    memcpy(disk.array_uuid, area->array_uuid, sizeof(disk.array_uuid));
    memcpy(disk.device_uuid, area->device_uuid, sizeof(disk.device_uuid));
    disk.events = le64_make(area->events);
    disk.area_bytes = le64_make(area->area_bytes);
    disk.log_off_bytes = le64_make(area->log_off_bytes);
    disk.log_bytes = le64_make(area->log_bytes);
    disk.slack_bytes = le64_make(area->slack_bytes);
    disk.flags = le32_make((area->initialised ? AREA_INITIALISED : 0u) |
                           (area->has_super ? AREA_HAS_SUPER : 0u));
    memcpy(disk.consistency, area->consistency, sizeof(disk.consistency));
    memcpy(disk.policy, area->policy, sizeof(disk.policy));
    for (size_t i = 0; i < AREA_MEMBERS_MAX; i++)
        disk.role_events[i] = le64_make(area->role_events[i]);
    if (area->has_super)
        memcpy(disk.super_raw, area->super_raw, sizeof(disk.super_raw));
    disk.crc = le32_make(slot_crc(&disk));
    memcpy(raw, &disk, sizeof(disk));
}
