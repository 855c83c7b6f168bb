/* THEORY OF OPERATION
 *
 * RAID 6: n-2 data chunks, P and Q in a row.  Where they go and which power of 2 each data chunk
 * has in Q is in rotate.c, how a row is read and written in plan_parity.c. */
#include "layouts/level.h"

static const struct layout_entry layouts[] = {
    {"left-asymmetric", LEFT_ASYMMETRIC},
    {"right-asymmetric", RIGHT_ASYMMETRIC},
    {"left-symmetric", LEFT_SYMMETRIC},
    {"right-symmetric", RIGHT_SYMMETRIC},
    {"parity-first", PARITY_FIRST},
    {"parity-last", PARITY_LAST},
    {"ddf-zero-restart", DDF_ZERO_RESTART},
    {"ddf-N-restart", DDF_N_RESTART},
    {"ddf-N-continue", DDF_N_CONTINUE},
    {"left-asymmetric-6", LEFT_ASYMMETRIC_6},
    {"right-asymmetric-6", RIGHT_ASYMMETRIC_6},
    {"left-symmetric-6", LEFT_SYMMETRIC_6},
    {"right-symmetric-6", RIGHT_SYMMETRIC_6},
    {"parity-first-6", PARITY_FIRST_6},
    {"parity-last-6", PARITY_LAST},
    {"la", LEFT_ASYMMETRIC},
    {"ra", RIGHT_ASYMMETRIC},
    {"ls", LEFT_SYMMETRIC},
    {"rs", RIGHT_SYMMETRIC},
    {NULL, 0},
};

static int
raid6_init(struct geometry *geometry, struct diag *diag)
{
    return init_parity(geometry, 2, diag);
}

const struct level_ops raid6_ops = {
    .level = RAID6,
    .name = "raid6",
    .member_min = 4,
    .chunk_pow2 = true,
    .layout_main = LEFT_SYMMETRIC,
    .layouts = layouts,
    .init = raid6_init,
    PARITY_MAPS_AND_PLANS,
};
