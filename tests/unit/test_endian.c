#include "engine/base/endian.h"

#include "tests/unit/suite.h"

static void
little_endian_values_lie_with_the_low_byte_first(void)
{
    static const uint8_t bytes[] = {8, 7, 6, 5, 4, 3, 2, 1};
    struct le16 a = le16_make(0x0708);
    struct le32 b = le32_make(0x05060708);
    struct le64 c = le64_make(UINT64_C(0x0102030405060708));
    CU_ASSERT_EQUAL(memcmp(&a, bytes, 2), 0);
    CU_ASSERT_EQUAL(memcmp(&b, bytes, 4), 0);
    CU_ASSERT_EQUAL(memcmp(&c, bytes, 8), 0);
    CU_ASSERT_EQUAL(le16_get(a), 0x0708);
    CU_ASSERT_EQUAL(le32_get(b), 0x05060708);
    CU_ASSERT_EQUAL(le64_get(c), UINT64_C(0x0102030405060708));
}

static void
big_endian_values_lie_with_the_high_byte_first(void)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct be16 a = be16_make(0x0102);
    struct be32 b = be32_make(0x01020304);
    struct be64 c = be64_make(UINT64_C(0x0102030405060708));
    CU_ASSERT_EQUAL(memcmp(&a, bytes, 2), 0);
    CU_ASSERT_EQUAL(memcmp(&b, bytes, 4), 0);
    CU_ASSERT_EQUAL(memcmp(&c, bytes, 8), 0);
    CU_ASSERT_EQUAL(be16_get(a), 0x0102);
    CU_ASSERT_EQUAL(be32_get(b), 0x01020304);
    CU_ASSERT_EQUAL(be64_get(c), UINT64_C(0x0102030405060708));
}

struct packed {
    uint8_t first;
    struct le64 second;
    struct be16 third;
};

static void
the_types_pack_without_holes_and_work_at_odd_addresses(void)
{
    CU_ASSERT_EQUAL(sizeof(struct packed), 11);
    struct packed packed = {.second = le64_make(UINT64_MAX - 1), .third = be16_make(9)};
    CU_ASSERT_EQUAL(le64_get(packed.second), UINT64_MAX - 1);
    CU_ASSERT_EQUAL(be16_get(packed.third), 9);
}

SUITE_MAIN("endian", T(little_endian_values_lie_with_the_low_byte_first),
           T(big_endian_values_lie_with_the_high_byte_first),
           T(the_types_pack_without_holes_and_work_at_odd_addresses))
