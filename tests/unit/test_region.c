#include "engine/base/rng.h"

#include "engine/meta/region.h"
#include "tests/unit/sample.h"
#include "tests/unit/suite.h"

static void
sixteen_mib_are_enough_and_less_is_not(void)
{
    struct region r;
    struct diag diag;
    CU_ASSERT_EQUAL_FATAL(region_choose(MIB(16), KIB(64), &r, &diag), 0);
    CU_ASSERT_EQUAL(r.data_off, MIB(3));
    CU_ASSERT_EQUAL(r.log_bytes, MIB(1));
    CU_ASSERT_EQUAL(r.used_bytes, MIB(13) - KIB(256));
    CU_ASSERT_EQUAL(region_choose(MIB(16) - 1, KIB(64), &r, &diag), -ENOSPC);
    CU_ASSERT_STRING_EQUAL(diag.code, "E_MEMBER_SHORT");
    CU_ASSERT_EQUAL(region_choose(0, KIB(64), &r, &diag), -ENOSPC);
    CU_ASSERT_EQUAL(region_choose(MIB(16), MIB(64), &r, &diag), -ENOSPC);
}

static void
a_replacement_344_sectors_shorter_fits(void) /* user-cases H1 */
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (unsigned i = 0; i < 5000; i++) {
        struct region r;
        uint64_t device = MIB(16) + 512 * rng_below(&rng, UINT64_C(1) << rng_range(&rng, 4, 36));
        if (region_choose(device, KIB(64), &r, NULL) != 0)
            continue;
        CU_ASSERT(r.data_off + r.used_bytes <= device - 344 * 512);
    }
}

static void
nothing_overlaps_and_all_is_aligned(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (unsigned i = 0; i < 20000; i++) {
        struct region r;
        uint64_t device = 512 * rng_below(&rng, UINT64_C(1) << rng_range(&rng, 15, 40));
        uint64_t chunk = rng_chance(&rng, 20) ? 0 : KIB(4) << rng_below(&rng, 12);
        if (region_choose(device, chunk, &r, NULL) != 0)
            continue;
        CU_ASSERT(r.super_off + SUPER_BYTES <= r.bitmap_off);
        CU_ASSERT(r.bitmap_off + r.bitmap_space <= r.area_off);
        CU_ASSERT(r.area_off + 2 * AREA_SLOT_BYTES <= r.log_off);
        CU_ASSERT(r.log_off + r.log_bytes <= r.data_off);
        CU_ASSERT(r.area_off + r.area_bytes == r.data_off);
        CU_ASSERT(r.data_off % MIB(1) == 0 && r.slack_bytes % KIB(64) == 0);
        CU_ASSERT(r.data_off + r.data_bytes <= device);
        CU_ASSERT(r.used_bytes + r.slack_bytes <= r.data_bytes);
        CU_ASSERT(r.used_bytes > 0 && r.used_bytes % (chunk != 0 ? chunk : KIB(64)) == 0);
        CU_ASSERT(r.log_bytes >= MIB(1) && r.log_bytes <= MIB(256));
    }
}

static void
members_of_md_have_room_when_the_gap_is_wide(void)
{
    struct super super;
    struct region r;
    sample_super(&super, 5, 4, 0, 1);
    region_of_super(&super, &r); /* data at 1 MiB: none */
    CU_ASSERT_EQUAL(r.area_bytes, 0);
    CU_ASSERT_EQUAL(r.data_off, MIB(1));
    super.data_offset_sectors = 264192; /* mdadm's default for large members */
    region_of_super(&super, &r);
    CU_ASSERT_EQUAL(r.area_bytes, MIB(128));
    CU_ASSERT_EQUAL(r.log_bytes, MIB(127));
    super.features = SUPER_MULTIPLE_PPLS; /* 1 MiB of log reaches into the area's place */
    super.ppl_offset_sectors = 8;
    super.ppl_sectors = 2048;
    region_of_super(&super, &r);
    CU_ASSERT_EQUAL(r.area_bytes, 0);
    super.features = 0;
    super.minor = 0;
    region_of_super(&super, &r);
    CU_ASSERT_EQUAL(r.area_bytes, 0);
}

SUITE_MAIN("region", T(sixteen_mib_are_enough_and_less_is_not),
           T(a_replacement_344_sectors_shorter_fits), T(nothing_overlaps_and_all_is_aligned),
           T(members_of_md_have_room_when_the_gap_is_wide))
