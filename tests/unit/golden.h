/* The member images that the kernel's md made (tests/golden/sets, or where SR5_GOLDEN points). */
#pragma once

#include "engine/base/compiler.h"

#define GOLDEN_MEMBERS_MAX 8

struct golden_member {
    char path[256];
    uint64_t bytes;
    uint32_t dev_number;
    int32_t role; /* -1 spare, -2 journal */
    uint64_t events;
    uint32_t features;
    uint64_t data_offset_sectors, data_sectors;
    uint64_t resync_offset_sectors; /* UINT64_MAX: clean */
    uint64_t recovery_offset_sectors;
};

struct golden {
    char name[64];
    uint32_t level, raid_disks, layout;
    uint64_t chunk_bytes, component_bytes, array_bytes;
    uint32_t member_count;
    struct golden_member members[GOLDEN_MEMBERS_MAX];
};

/* Names of all sets, sorted; false when there are none here.  Freed by golden_names_free(). */
bool golden_names(char ***names, uint32_t *count);
void golden_names_free(char **names, uint32_t count);
/* Unpack a set into `folder` (which must exist) and read its manifest. */
MUST_CHECK bool golden_unpack(const char *name, const char *folder, struct golden *golden);
