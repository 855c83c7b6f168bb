/* THEORY OF OPERATION
 *
 * RAID 0 over members of any size, as md does it (research/md.md 2.1).  A member holds
 * floor(role_bytes / chunk) chunks.  Zone z covers the member rows between the z-th and the next
 * shorter member length, on the roles that reach that far, in role order:
 *
 *      rows   role 0   role 1   role 2
 *      0..2      x        x        x      zone 0, width 3
 *      3..4               x        x      zone 1, width 2
 *      5..6                        x      zone 2, width 1
 *
 * md has two maps, which differ in the column of a chunk in zones after the first: `original` takes
 * array chunk mod width, `alternate` the chunk's number inside the zone mod width.  They agree when
 * each zone's first chunk number is a multiple of its width; then an unrecorded layout (0) is
 * harmless, otherwise guessing would scramble data, so it is refused.
 *
 * No redundancy: no locks, no sums, one place a byte. */
#include "layouts/level.h"

static const struct layout_entry layouts[] = {
    {"original", RAID0_ORIGINAL},
    {"alternate", RAID0_ALTERNATE},
    {"unknown", 0},
    {NULL, 0},
};

static const struct zone *
zone_of_chunk(const struct geometry *geometry, uint64_t array_chunk)
{
    uint32_t z = geometry->zone_count - 1;
    while (geometry->zones[z].chunk_first > array_chunk)
        z--;
    return &geometry->zones[z];
}

static uint64_t
zone_row_end(const struct geometry *geometry, uint32_t z)
{
    return z + 1 < geometry->zone_count ? geometry->zones[z + 1].row_first : geometry->row_count;
}

/* Append the zone that starts at member row row_first; returns the row where it ends. */
static uint64_t
add_zone(struct geometry *geometry, uint64_t row_first, uint64_t chunk_first)
{
    struct zone *zone = &geometry->zones[geometry->zone_count++];
    *zone = (struct zone){.row_first = row_first, .chunk_first = chunk_first};
    uint64_t row_end = UINT64_MAX;
    for (uint32_t role = 0; role < geometry->member_count; role++) {
        uint64_t rows = geometry->role_bytes[role] / geometry->chunk_bytes;
        if (rows > row_first) {
            zone->roles[zone->width++] = (uint8_t)role;
            row_end = MIN(row_end, rows);
        }
    }
    return row_end;
}

static int
raid0_init(struct geometry *geometry, struct diag *diag)
{
    geometry->data_count = geometry->member_count;
    geometry->stripe_bytes = geometry->member_count * geometry->chunk_bytes;
    for (uint32_t role = 0; role < geometry->member_count; role++)
        geometry->row_count =
            MAX(geometry->row_count, geometry->role_bytes[role] / geometry->chunk_bytes);
    /* At most 64 members of less than 2^63 bytes in chunks of 2^12: chunk counts cannot wrap. */
    uint64_t chunks = 0;
    bool maps_agree = true;
    for (uint64_t row = 0; row < geometry->row_count;) {
        uint64_t row_end = add_zone(geometry, row, chunks);
        uint32_t width = geometry->zones[geometry->zone_count - 1].width;
        check_ne(width, 0); /* the longest member reaches every row */
        maps_agree = maps_agree && chunks % width == 0;
        chunks += (row_end - row) * width;
        row = row_end;
    }
    if (geometry->layout == 0 && !maps_agree)
        return diag_set(diag, DIAG_FAILED, "E_LAYOUT_UNKNOWN", -EINVAL,
                        "RAID 0 of unequal members does not record whether its layout is original "
                        "or alternate");
    return geometry_set_size(geometry, 1, chunks, diag);
}

static uint32_t
raid0_places(const struct geometry *geometry, uint64_t array_off_bytes, struct place *out,
             uint32_t max)
{
    uint64_t array_chunk = array_off_bytes / geometry->chunk_bytes;
    const struct zone *zone = zone_of_chunk(geometry, array_chunk);
    uint64_t zone_chunk = array_chunk - zone->chunk_first;
    uint64_t column = geometry->layout == RAID0_ALTERNATE ? zone_chunk : array_chunk;
    uint64_t row = zone->row_first + zone_chunk / zone->width;
    if (max > 0)
        out[0] = (struct place){
            .role = zone->roles[column % zone->width],
            .member_off_bytes =
                row * geometry->chunk_bytes + array_off_bytes % geometry->chunk_bytes,
        };
    return 1;
}

static bool
raid0_band_next(struct band_iter *iter, struct band *band)
{
    return band_next_run(iter, iter->geometry->chunk_bytes, false, band);
}

/* There is nothing to bring into line. */
static bool
raid0_band_of_row(const struct geometry *geometry, uint64_t row, struct band *band)
{
    (void)geometry, (void)row, (void)band;
    return false;
}

static bool
raid0_rows_inside(const struct geometry *geometry, uint64_t off_bytes, uint64_t len_bytes,
                  struct row_range *rows)
{
    uint64_t chunk = geometry->chunk_bytes;
    uint64_t chunk_first = div_ceil(off_bytes, chunk);
    uint64_t chunk_end = div_floor(off_bytes + len_bytes, chunk);
    for (uint32_t z = 0; z < geometry->zone_count; z++) {
        const struct zone *zone = &geometry->zones[z];
        uint64_t zone_rows = zone_row_end(geometry, z) - zone->row_first;
        uint64_t zone_end = zone->chunk_first + zone_rows * zone->width;
        uint64_t from = MAX(chunk_first, zone->chunk_first), to = MIN(chunk_end, zone_end);
        if (from >= to)
            continue;
        uint64_t first = div_ceil(from - zone->chunk_first, zone->width);
        uint64_t end = div_floor(to - zone->chunk_first, zone->width);
        if (first >= end)
            continue;
        *rows = (struct row_range){
            .array_off_bytes = (zone->chunk_first + first * zone->width) * chunk,
            .array_len_bytes = (end - first) * zone->width * chunk,
            .member_off_bytes = (zone->row_first + first) * chunk,
            .member_len_bytes = (end - first) * chunk,
        };
        for (uint32_t i = 0; i < zone->width; i++)
            rows->roles |= mask_of(zone->roles[i]);
        return true;
    }
    return false;
}

static int32_t
raid0_spare(const struct geometry *geometry, uint64_t available_roles)
{
    return (mask_below(geometry->member_count) & ~available_roles) == 0 ? 0 : -1;
}

const struct level_ops raid0_ops = {
    .level = RAID0,
    .name = "raid0",
    .member_min = 1,
    .layout_main = RAID0_ORIGINAL,
    .layouts = layouts,
    .init = raid0_init,
    .band_next = raid0_band_next,
    .data_role = data_role_mirror,
    .band_of_row = raid0_band_of_row,
    .rows_inside = raid0_rows_inside,
    .places = raid0_places,
    .spare = raid0_spare,
    .plan_read = plan_read_mirror,
    .plan_write = plan_write_mirror,
    .plan_sync = plan_sync_mirror,
};
