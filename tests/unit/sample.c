#include "tests/unit/sample.h"

#include <stdio.h>
#include <string.h>

void
sample_super(struct super *super, int32_t level, uint32_t disks, uint32_t dev, uint64_t events)
{
    memset(super, 0, sizeof(*super));
    super->minor = 2;
    memset(super->array_uuid, 0xa5, 16);
    memset(super->device_uuid, (int)(0x10 + dev), 16);
    snprintf(super->name, sizeof(super->name), "host:sample");
    super->created_s = 1700000000;
    super->updated_s = 1700000001;
    super->level = level;
    super->layout = level == 10 ? 0x102 : level == 5 || level == 6 ? 2 : 0;
    super->chunk_sectors = level == 1 ? 0 : 128;
    super->used_sectors = level == 0 ? 0 : 40960;
    super->raid_disks = disks;
    super->data_offset_sectors = 2048;
    super->data_sectors = 47104;
    super->super_offset_sectors = 8;
    super->dev_number = dev;
    super->events = events;
    super->resync_offset_sectors = SUPER_INFINITY;
    super->max_dev = 128;
    for (uint32_t i = 0; i < super->max_dev; i++)
        super->roles[i] = i < disks ? (uint16_t)i : SUPER_ROLE_SPARE;
}

void
sample_area(struct area *area, const struct super *super)
{
    memset(area, 0, sizeof(*area));
    area->generation = 1;
    memcpy(area->array_uuid, super->array_uuid, 16);
    memcpy(area->device_uuid, super->device_uuid, 16);
    area->events = super->events;
    area->area_bytes = 2 * AREA_SLOT_BYTES;
    for (uint32_t role = 0; role < super->raid_disks; role++)
        area->role_events[role] = super->events;
    snprintf(area->consistency, sizeof(area->consistency), "log");
    snprintf(area->policy, sizeof(area->policy), "auto");
    area->has_super = true;
    super_encode(super, 512, area->super_raw);
}
