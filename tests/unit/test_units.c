#include "engine/base/units.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

static char text[256];

static void
units_are_powers_of_1024(void)
{
    CU_ASSERT_EQUAL(KIB(3), 3072);
    CU_ASSERT_EQUAL(MIB(1), 1024 * KIB(1));
    CU_ASSERT_EQUAL(GIB(5), 5 * 1024 * MIB(1)); /* more than 32 bits */
    CU_ASSERT_EQUAL(TIB(1), 1024 * GIB(1));
}

static void
division_rounds_as_its_name_says(void)
{
    CU_ASSERT_EQUAL(div_floor(7, 4), 1);
    CU_ASSERT_EQUAL(div_ceil(7, 4), 2);
    CU_ASSERT_EQUAL(div_ceil(8, 4), 2);
    CU_ASSERT_EQUAL(div_ceil(0, 4), 0);
    CU_ASSERT_EQUAL(div_ceil(UINT64_MAX, 2), UINT64_C(1) << 63); /* no overflow inside */
    CU_ASSERT_EQUAL(div_exact(12, 4), 3);
    CU_ASSERT_EQUAL(round_down(4097, 4096), 4096);
    CU_ASSERT_EQUAL(round_up(4097, 4096), 8192);
    CU_ASSERT_EQUAL(round_up(8192, 4096), 8192);
    CU_ASSERT_EQUAL(round_up(10, 3), 12);
}

static void
divide_inexactly(void)
{
    (void)div_exact(7, 4);
}

static void
divide_by_zero(void)
{
    (void)div_floor(7, 0);
}

static void
convert_half_a_sector(void)
{
    (void)bytes_to_sectors(256);
}

static void
convert_too_many_sectors(void)
{
    (void)sectors_to_bytes(UINT64_MAX / 256);
}

static void
what_does_not_go_into_an_integer_is_a_bug(void)
{
    CU_ASSERT(dies(divide_inexactly, text, sizeof(text)));
    CU_ASSERT(dies(divide_by_zero, text, sizeof(text)));
    CU_ASSERT(dies(convert_half_a_sector, text, sizeof(text)));
    CU_ASSERT(dies(convert_too_many_sectors, text, sizeof(text)));
    CU_ASSERT_EQUAL(bytes_to_sectors(4096), 8);
    CU_ASSERT_EQUAL(sectors_to_bytes(UINT64_MAX / 512), UINT64_MAX - 511);
}

static void
powers_of_two_are_told(void)
{
    CU_ASSERT(!is_pow2(0));
    CU_ASSERT(is_pow2(1));
    CU_ASSERT(!is_pow2(3));
    CU_ASSERT(is_pow2(UINT64_C(1) << 63));
    CU_ASSERT(!is_pow2(UINT64_MAX));
}

static void
sums_and_products_tell_when_they_wrap(void)
{
    uint64_t result = 0;
    CU_ASSERT(add_ok(UINT64_MAX - 1, 1, &result));
    CU_ASSERT_EQUAL(result, UINT64_MAX);
    CU_ASSERT(!add_ok(UINT64_MAX, 1, &result));
    CU_ASSERT(mul_ok(UINT32_MAX, UINT32_MAX, &result));
    CU_ASSERT_EQUAL(result, UINT64_C(0xfffffffe00000001));
    CU_ASSERT(!mul_ok(UINT64_C(1) << 32, UINT64_C(1) << 32, &result));
}

static void
ranges_overlap_when_they_share_a_byte(void)
{
    CU_ASSERT(ranges_overlap(0, 10, 9, 1));
    CU_ASSERT(!ranges_overlap(0, 10, 10, 1));
    CU_ASSERT(!ranges_overlap(10, 1, 0, 10));
    CU_ASSERT(ranges_overlap(5, 1, 0, 10));
    CU_ASSERT(ranges_overlap(0, 10, 5, 1));
    CU_ASSERT(!ranges_overlap(5, 0, 0, 10));
    CU_ASSERT(!ranges_overlap(0, 10, 5, 0));
}

SUITE_MAIN("units", T(units_are_powers_of_1024), T(division_rounds_as_its_name_says),
           T(what_does_not_go_into_an_integer_is_a_bug), T(powers_of_two_are_told),
           T(sums_and_products_tell_when_they_wrap), T(ranges_overlap_when_they_share_a_byte))
