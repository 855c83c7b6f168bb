/* md write-intent bitmap header as it lies on disk: 256 bytes, little-endian, then the bits (bit b
 * is bit b mod 8 of byte 256 + b/8).  Only bitmap.c looks at this. */
#pragma once

#include "engine/base/compiler.h"
#include "engine/base/endian.h"

#define BITMAP_MAGIC 0x6d746962u

enum bitmap_format_version {
    BITMAP_HOST_ENDIAN = 3,
    BITMAP_LITTLE_ENDIAN = 4,
    BITMAP_CLUSTERED = 5,
    BITMAP_LOCKLESS = 6,
};

struct PACKED bitmap_disk {
    struct le32 magic;
    struct le32 version;
    uint8_t uuid[16];
    struct le64 events;
    struct le64 events_cleared;
    struct le64 sync_size; /* sectors */
    struct le32 state;
    struct le32 chunksize;    /* bytes */
    struct le32 daemon_sleep; /* seconds */
    struct le32 write_behind;
    struct le32 sectors_reserved;
    struct le32 nodes;
    uint8_t cluster_name[64];
    uint8_t pad[120];
};

_Static_assert(sizeof(struct bitmap_disk) == 256, "md bitmap header");
_Static_assert(offsetof(struct bitmap_disk, sync_size) == 40, "md bitmap sync_size");
_Static_assert(offsetof(struct bitmap_disk, nodes) == 68, "md bitmap nodes");
