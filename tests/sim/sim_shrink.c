#include "tests/sim/sim_shrink.h"

#include <string.h>

static int
write_bitmap(const struct sim_plan *plan, struct blob *blob, const struct probe *probe,
             uint64_t sync_bytes)
{
    struct bitmap_header header = probe->bitmap;
    uint8_t raw[BLOCK_BYTES] = {0};
    uint64_t off = sectors_to_bytes(probe->candidate.super.super_offset_sectors) +
                   sectors_to_bytes((uint64_t)probe->candidate.super.bitmap_offset_sectors);
    header.sync_sectors = bytes_to_sectors(sync_bytes);
    header.chunk_bytes = plan->bitmap_chunk_bytes;
    check_le(bitmap_total_bytes(&header), sizeof(raw));
    if (plan->resync_first) /* as mdadm: all of it has to be made */
        memset(raw, 0xff, sizeof(raw));
    bitmap_encode(&header, raw);
    return blob_write(blob, raw, sizeof(raw), off);
}

static int
write_area(const struct sim_plan *plan, struct blob *blob, const struct probe *probe,
           const uint8_t super_raw[SUPER_BYTES])
{
    struct area area = probe->candidate.area;
    static uint8_t slots[2 * AREA_SLOT_BYTES];
    memset(slots, 0, sizeof(slots));
    if (!plan->area)
        return blob_write(blob, slots, sizeof(slots), AREA_OFF_BYTES);
    memcpy(area.super_raw, super_raw, SUPER_BYTES);
    area_encode(&area, slots);
    return blob_write(blob, slots, AREA_SLOT_BYTES,
                      AREA_OFF_BYTES + probe->area_slot * AREA_SLOT_BYTES);
}

/* RAID 10's bitmap measures the array, not the member. */
static uint64_t
sync_bytes(const struct sim_plan *plan, uint64_t used_bytes, struct diag *diag)
{
    struct geometry geometry = {.level = plan->level,
                                .layout = plan->layout,
                                .member_count = plan->member_count,
                                .chunk_bytes = plan->chunk_bytes,
                                .member_bytes = used_bytes};
    if (plan->level != RAID10)
        return used_bytes;
    check_eq(geometry_init(&geometry, diag), 0);
    return geometry.array_bytes;
}

static int
rewrite(const struct sim_plan *plan, struct blob *blob, struct probe *probe, uint64_t used_bytes,
        struct diag *diag)
{
    struct super *super = &probe->candidate.super;
    uint8_t raw[SUPER_BYTES];
    int err = 0;
    if (plan->level == RAID0)
        super->data_sectors = bytes_to_sectors(used_bytes);
    else
        super->used_sectors = bytes_to_sectors(used_bytes);
    if (super->features & SUPER_BITMAP)
        err = write_bitmap(plan, blob, probe, sync_bytes(plan, used_bytes, diag));
    if (!plan->bitmap) {
        super->features &= ~(uint32_t)SUPER_BITMAP;
        super->bitmap_offset_sectors = 0;
    }
    uint32_t bytes = super_encode(super, plan->logical_bytes, raw);
    if (err == 0)
        err = blob_write(blob, raw, bytes, sectors_to_bytes(super->super_offset_sectors));
    if (err == 0 && probe->candidate.has_area)
        err = write_area(plan, blob, probe, raw);
    return err == 0 ? blob_flush(blob) : err;
}

int
sim_shrink(const struct sim_plan *plan, struct blob *blob, uint32_t role, struct diag *diag)
{
    struct probe *probe = calloc(1, sizeof(*probe));
    check(probe != NULL);
    int err = probe_blob(blob, "sim", probe, diag);
    if (err == 0)
        err = rewrite(plan, blob, probe, plan->used_bytes[role], diag);
    if (err == 0)
        probe_destroy(probe);
    free(probe);
    return err;
}
