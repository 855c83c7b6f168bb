/* What lies where on a member that sr5 creates, and what room an md member has. Pure. */
#pragma once

#include "engine/meta/super.h"

struct region {
    uint64_t super_off, bitmap_off, bitmap_space;
    uint64_t area_off, area_bytes; /* area_bytes 0: no room */
    uint64_t log_off, log_bytes;   /* inside the area */
    uint64_t data_off, data_bytes; /* data_bytes: up to the end, slack included */
    uint64_t used_bytes;           /* data without slack, multiple of chunk */
    uint64_t slack_bytes;
};

/* For a new member; smallest usable is 16 MiB. -ENOSPC with E_MEMBER_SHORT. chunk 0: mirrors. */
MUST_CHECK int region_choose(uint64_t device_bytes, uint64_t chunk_bytes, struct region *region,
                             struct diag *diag);
/* What a member made by md has room for, by its (decoded, sane) superblock: area_bytes 0 when the
 * gap between md's metadata and the data does not reach the place of the area; log_bytes 0 when
 * there is no room for a log.  Writes nothing, promises nothing: md may take the gap later. */
void region_of_super(const struct super *super, struct region *region);
