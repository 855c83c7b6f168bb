/* THEORY OF OPERATION
 *
 * RAID 4 and 5: n-1 data chunks and their XOR in a row.  Where parity and data go is in rotate.c,
 * how a row is read and written in plan_parity.c. */
#include "layouts/level.h"

static const struct layout_entry layouts[] = {
    {"left-asymmetric", LEFT_ASYMMETRIC},
    {"right-asymmetric", RIGHT_ASYMMETRIC},
    {"left-symmetric", LEFT_SYMMETRIC},
    {"right-symmetric", RIGHT_SYMMETRIC},
    {"parity-first", PARITY_FIRST},
    {"parity-last", PARITY_LAST},
    {"la", LEFT_ASYMMETRIC},
    {"ra", RIGHT_ASYMMETRIC},
    {"ls", LEFT_SYMMETRIC},
    {"rs", RIGHT_SYMMETRIC},
    {NULL, 0},
};
static const struct layout_entry no_layouts[] = {{"", 0}, {NULL, 0}};

static int
raid5_init(struct geometry *geometry, struct diag *diag)
{
    return init_parity(geometry, 1, diag);
}

const struct level_ops raid5_ops = {
    .level = RAID5,
    .name = "raid5",
    .member_min = 2,
    .chunk_pow2 = true,
    .layout_main = LEFT_SYMMETRIC,
    .layouts = layouts,
    .init = raid5_init,
    PARITY_MAPS_AND_PLANS,
};

/* Parity on the last role, whatever the layout number says: md does not look at it. */
const struct level_ops raid4_ops = {
    .level = RAID4,
    .name = "raid4",
    .member_min = 2,
    .chunk_pow2 = true,
    .any_layout = true,
    .layout_main = 0,
    .layouts = no_layouts,
    .init = raid5_init,
    PARITY_MAPS_AND_PLANS,
};
