/* A level to copy from: it compiles, it is tested (tests/unit/test_layout.c), nothing uses it.
 *
 * THEORY OF OPERATION.  Concatenation: the roles one after the other, no redundancy.
 *
 *      role 0: [0, m)    role 1: [m, 2m)    role 2: [2m, 3m)         m = whole chunks of a member
 *
 * To add a level: copy this file, give `enum raid_level` its md number, put the table into
 * layout.c's list, and add the level to the lists in tests/prop (docs/adding-a-layout.md).  Most of
 * the work is places(): bands of one run and the plans of plan_mirror.c follow from it.  A level
 * whose rows satisfy linear relations fills row_roles() instead and takes the *_parity functions.
 */
#include "layouts/level.h"

static const struct layout_entry layouts[] = {{"", 0}, {NULL, 0}};

static uint64_t
member_bytes(const struct geometry *geometry)
{
    return round_down(geometry->member_bytes, geometry->chunk_bytes);
}

/* The checks common to all levels have passed.  Fill every derived field that means something
 * here; geometry_set_size() does the multiplication that could overflow. */
static int
skeleton_init(struct geometry *geometry, struct diag *diag)
{
    geometry->data_count = 1;
    geometry->stripe_bytes = geometry->chunk_bytes;
    geometry->row_count = geometry->member_bytes / geometry->chunk_bytes;
    return geometry_set_size(geometry, geometry->row_count, geometry->member_count, diag);
}

/* All copies of a byte, the first copy first; count them all, store up to max. */
static uint32_t
skeleton_places(const struct geometry *geometry, uint64_t array_off_bytes, struct place *out,
                uint32_t max)
{
    uint64_t each = member_bytes(geometry);
    if (max > 0)
        out[0] = (struct place){
            .role = (uint32_t)(array_off_bytes / each),
            .member_off_bytes = array_off_bytes % each,
        };
    return 1;
}

/* A run may be as long as its copies are contiguous.  Levels with redundancy lock it. */
static bool
skeleton_band_next(struct band_iter *iter, struct band *band)
{
    return band_next_run(iter, member_bytes(iter->geometry), false, band);
}

/* Rows are what a resync walks.  No redundancy: none. */
static bool
skeleton_band_of_row(const struct geometry *geometry, uint64_t row, struct band *band)
{
    (void)geometry, (void)row, (void)band;
    return false;
}

/* May always say false: then a big TRIM or ZERO goes band by band. */
static bool
skeleton_rows_inside(const struct geometry *geometry, uint64_t off_bytes, uint64_t len_bytes,
                     struct row_range *rows)
{
    (void)geometry, (void)off_bytes, (void)len_bytes, (void)rows;
    return false;
}

static int32_t
skeleton_spare(const struct geometry *geometry, uint64_t available_roles)
{
    return (mask_below(geometry->member_count) & ~available_roles) == 0 ? 0 : -1;
}

const struct level_ops skeleton_ops = {
    .level = RAID0, /* a number of its own */
    .name = "skeleton",
    .member_min = 1,
    .layout_main = 0,
    .layouts = layouts,
    .init = skeleton_init,
    .band_next = skeleton_band_next,
    .data_role = data_role_mirror,
    .band_of_row = skeleton_band_of_row,
    .rows_inside = skeleton_rows_inside,
    .places = skeleton_places,
    .spare = skeleton_spare,
    .plan_read = plan_read_mirror,
    .plan_write = plan_write_mirror,
    .plan_sync = plan_sync_mirror,
};
