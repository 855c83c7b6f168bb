/* One slot of the sr5 area as it lies on disk: a header, and at 4 KiB the backup of the superblock.
 * Little-endian.  Only area.c looks at this. */
#pragma once

#include "engine/base/endian.h"

#include "engine/meta/area.h"

#define AREA_MAGIC UINT64_C(0x3161657261357273) /* "sr5area1" */
#define AREA_MAJOR 1                            /* a reader refuses another major */
#define AREA_MINOR 0                            /* and ignores what it does not know of a minor */

enum area_flag {
    AREA_INITIALISED = 0x1,
    AREA_HAS_SUPER = 0x2,
};

struct PACKED area_disk {
    struct le64 magic;
    struct le16 major, minor;
    struct le32 crc; /* CRC32C of the whole slot with this field 0 */
    struct le64 generation;
    uint8_t array_uuid[16];
    uint8_t device_uuid[16];
    struct le64 events;
    struct le64 area_bytes;
    struct le64 log_off_bytes;
    struct le64 log_bytes;
    struct le64 slack_bytes;
    struct le32 flags;
    struct le32 reserved; /* 0 */
    char consistency[16]; /* NUL padded */
    char policy[16];
    struct le64 role_events[AREA_MEMBERS_MAX];
    uint8_t pad[3448]; /* 0 */
    uint8_t super_raw[SUPER_BYTES];
    uint8_t rest[AREA_SLOT_BYTES - 2 * SUPER_BYTES]; /* 0; job cursors and lost ranges, later */
};

_Static_assert(sizeof(struct area_disk) == AREA_SLOT_BYTES, "sr5 area slot");
_Static_assert(offsetof(struct area_disk, role_events) == 136, "sr5 area role_events");
_Static_assert(offsetof(struct area_disk, super_raw) == 4096, "sr5 area super_raw");
