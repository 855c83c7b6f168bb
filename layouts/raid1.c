/* THEORY OF OPERATION
 *
 * Every role holds the whole array: array offset = member offset.  There is no chunk; the unit of
 * resync is 64 KiB, and the last one may be short, for a RAID 1 can have any number of sectors. */
#include "layouts/level.h"

static const struct layout_entry layouts[] = {{"", 0}, {NULL, 0}};

static int
raid1_init(struct geometry *geometry, struct diag *diag)
{
    geometry->array_bytes = round_down(geometry->member_bytes, SECTOR_BYTES);
    geometry->data_count = 1;
    geometry->tolerance = geometry->member_count - 1;
    geometry->stripe_bytes = geometry->chunk_bytes;
    geometry->row_count = div_ceil(geometry->array_bytes, geometry->chunk_bytes);
    (void)diag;
    return 0;
}

static bool
raid1_band_next(struct band_iter *iter, struct band *band)
{
    return band_next_run(iter, 0, true, band);
}

static bool
raid1_band_of_row(const struct geometry *geometry, uint64_t row, struct band *band)
{
    uint64_t off = row * geometry->chunk_bytes;
    uint64_t len = MIN(geometry->chunk_bytes, geometry->array_bytes - off);
    *band = (struct band){
        .array_off_bytes = off,
        .len_bytes = len,
        .data_count = 1,
        .lock_off = off,
        .lock_len = len,
    };
    return true;
}

static bool
raid1_rows_inside(const struct geometry *geometry, uint64_t off_bytes, uint64_t len_bytes,
                  struct row_range *rows)
{
    uint64_t off = round_up(off_bytes, BLOCK_BYTES);
    uint64_t end = round_down(off_bytes + len_bytes, BLOCK_BYTES);
    if (off >= end)
        return false;
    *rows = (struct row_range){
        .array_off_bytes = off,
        .array_len_bytes = end - off,
        .member_off_bytes = off,
        .member_len_bytes = end - off,
        .roles = mask_below(geometry->member_count),
        .lock_off = off,
        .lock_len = end - off,
    };
    return true;
}

static uint32_t
raid1_places(const struct geometry *geometry, uint64_t array_off_bytes, struct place *out,
             uint32_t max)
{
    for (uint32_t role = 0; role < MIN(geometry->member_count, max); role++)
        out[role] = (struct place){.role = role, .member_off_bytes = array_off_bytes};
    return geometry->member_count;
}

static int32_t
raid1_spare(const struct geometry *geometry, uint64_t available_roles)
{
    return (int32_t)mask_count(mask_below(geometry->member_count) & available_roles) - 1;
}

const struct level_ops raid1_ops = {
    .level = RAID1,
    .name = "raid1",
    .member_min = 1,
    .any_layout = true,
    .layout_main = 0,
    .layouts = layouts,
    .init = raid1_init,
    .band_next = raid1_band_next,
    .data_role = data_role_mirror,
    .band_of_row = raid1_band_of_row,
    .rows_inside = raid1_rows_inside,
    .places = raid1_places,
    .spare = raid1_spare,
    .plan_read = plan_read_mirror,
    .plan_write = plan_write_mirror,
    .plan_sync = plan_sync_mirror,
};
