/* What a plan costs: nanoseconds for finding the band of a small write and planning it.
 *
 *   make bench-bins && build/release/bench/bench_plan */
#include <stdio.h>
#include <time.h>

#include "engine/base/rng.h"
#include "engine/base/units.h"

#include "layouts/plan.h"

#define COUNT 200000

static const struct shape {
    const char *name;
    enum raid_level level;
    uint32_t layout, members;
    uint64_t missing;
} shapes[] = {
    {"raid0 x4", RAID0, 1, 4, 0},
    {"raid1 x2", RAID1, 0, 2, 0},
    {"raid10 x4 near=2", RAID10, 0x102, 4, 0},
    {"raid5 x4", RAID5, LEFT_SYMMETRIC, 4, 0},
    {"raid5 x4, one missing", RAID5, LEFT_SYMMETRIC, 4, 1},
    {"raid5 x16", RAID5, LEFT_SYMMETRIC, 16, 0},
    {"raid6 x6", RAID6, LEFT_SYMMETRIC, 6, 0},
    {"raid6 x6, one missing", RAID6, LEFT_SYMMETRIC, 6, 1},
    {"raid6 x6, two missing", RAID6, LEFT_SYMMETRIC, 6, 5},
    {"raid6 x24", RAID6, LEFT_SYMMETRIC, 24, 0},
    {"raid6 x24, one missing", RAID6, LEFT_SYMMETRIC, 24, 1},
};

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static double
measure(const struct geometry *geometry, uint64_t missing,
        int (*make)(const struct plan_input *input, struct plan *plan), uint64_t len)
{
    struct rng rng;
    rng_seed(&rng, 1);
    struct plan plan;
    uint64_t start = now_ns(), roles = mask_below(geometry->member_count) & ~missing;
    for (unsigned i = 0; i < COUNT; i++) {
        struct band_iter iter;
        struct plan_input input = {
            .geometry = geometry,
            .readable = roles,
            .writable = roles,
            .parity_trusted = true,
        };
        uint64_t off = rng_below(&rng, (geometry->array_bytes - len) / 4096) * 4096;
        band_iter_init(&iter, geometry, off, len, MIB(1));
        if (!band_next(&iter, &input.band) || make(&input, &plan) < 0)
            return -1;
    }
    return (double)(now_ns() - start) / COUNT;
}

int
main(void)
{
    printf("ns for the first band and its plan  write 4K  read 4K  write 64K\n");
    for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
        struct geometry geometry = {
            .level = shapes[s].level,
            .layout = shapes[s].layout,
            .member_count = shapes[s].members,
            .chunk_bytes = KIB(64),
            .member_bytes = GIB(1),
        };
        for (uint32_t role = 0; role < shapes[s].members; role++)
            geometry.role_bytes[role] = GIB(1);
        if (geometry_init(&geometry, NULL) < 0)
            return 1;
        printf("%-35s %8.0f %8.0f %10.0f\n", shapes[s].name,
               measure(&geometry, shapes[s].missing, plan_write, KIB(4)),
               measure(&geometry, shapes[s].missing, plan_read, KIB(4)),
               measure(&geometry, shapes[s].missing, plan_write, KIB(64)));
    }
    return 0;
}
