#include "tests/sim/plan.h"

#define MEMBER_BYTES_MAX KIB(256)

static uint32_t
any_of(struct rng *rng, const uint32_t *values, size_t count)
{
    return values[rng_below(rng, count)];
}

static void
choose_level(struct sim_plan *plan, struct rng *rng)
{
    static const enum raid_level levels[] = {RAID0, RAID1, RAID1, RAID4,  RAID5, RAID5,
                                             RAID5, RAID6, RAID6, RAID10, RAID10};
    static const uint32_t raid5[] = {0, 1, 2, 3, 4, 5};
    static const uint32_t raid6[] = {0, 1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 18, 19, 20};
    static const uint32_t raid10[] = {0x102, 0x201, 0x10201, 0x103, 0x301, 0x10301};
    plan->level = levels[rng_below(rng, ARRAY_LEN(levels))];
    uint32_t least = 2;
    switch (plan->level) {
    case RAID0:
        plan->layout = (uint32_t)rng_range(rng, RAID0_ORIGINAL, RAID0_ALTERNATE);
        break;
    case RAID1:
    case RAID4:
        plan->layout = 0;
        least = plan->level == RAID4 ? 3 : 2;
        break;
    case RAID5:
        plan->layout = rng_chance(rng, 40) ? LEFT_SYMMETRIC : any_of(rng, raid5, ARRAY_LEN(raid5));
        least = 3;
        break;
    case RAID6:
        plan->layout = rng_chance(rng, 40) ? LEFT_SYMMETRIC : any_of(rng, raid6, ARRAY_LEN(raid6));
        least = 4;
        break;
    case RAID10:
        plan->layout = any_of(rng, raid10, ARRAY_LEN(raid10));
        least = (plan->layout & 0xff) * (plan->layout >> 8 & 0xff);
        break;
    }
    uint32_t most = plan->level == RAID1 ? 4 : DISKS_MAX;
    plan->member_count =
        (uint32_t)rng_range(rng, least, rng_chance(rng, 70) ? MIN(least + 3, most) : most);
}

static void
choose_sizes(struct sim_plan *plan, struct rng *rng)
{
    plan->chunk_bytes = KIB(4) << rng_below(rng, 5);
    uint64_t chunk = plan->level == RAID1 ? BLOCK_BYTES : plan->chunk_bytes;
    uint64_t most = MAX(MEMBER_BYTES_MAX / chunk, 4u);
    uint64_t chunks = rng_range(rng, 4, rng_chance(rng, 70) ? MIN(most, 16u) : most);
    for (uint32_t i = 0; i < plan->member_count; i++) {
        if (plan->level == RAID0 && rng_chance(rng, 50))
            chunks = rng_range(rng, 4, MIN(most, 16u));
        plan->used_bytes[i] = chunks * chunk;
    }
}

void
sim_plan_choose(struct sim_plan *plan, struct rng *rng)
{
    *plan = (struct sim_plan){0};
    choose_level(plan, rng);
    choose_sizes(plan, rng);
    plan->logical_bytes = rng_chance(rng, 20) ? BLOCK_BYTES : SECTOR_BYTES;
    plan->bitmap = plan->level != RAID0 && rng_chance(rng, 65);
    plan->bitmap_chunk_bytes = (uint32_t)(KIB(4) << rng_below(rng, 5));
    plan->area = rng_chance(rng, 80);
    plan->resync_first = plan->level != RAID0 && rng_chance(rng, 15);
    plan->volatile_cache = rng_chance(rng, 85);
    plan->can_zero = rng_chance(rng, 60);
    plan->latency_ns_max = rng_chance(rng, 50) ? 100000 : 2 * MS_NS;
}
