#include "engine/base/hash.h"
#include "engine/base/units.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

static struct hash hash;

static void
what_was_inserted_is_found_until_it_is_removed(void)
{
    enum { COUNT = 1000, BUCKETS = 64 }; /* long chains */
    static struct hash_node nodes[COUNT];
    CU_ASSERT_EQUAL_FATAL(hash_init(&hash, BUCKETS), 0);
    for (uint64_t i = 0; i < COUNT; i++)
        hash_insert(&hash, &nodes[i], i * KIB(4));
    CU_ASSERT_EQUAL(hash.count, COUNT);
    for (uint64_t i = 0; i < COUNT; i += 2)
        hash_remove(&hash, &nodes[i]);
    unsigned wrong = 0;
    for (uint64_t i = 0; i < COUNT; i++)
        wrong += hash_find(&hash, i * KIB(4)) != (i % 2 == 0 ? NULL : &nodes[i]);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(hash.count, COUNT / 2);
    CU_ASSERT_PTR_NULL(hash_find(&hash, 1));
    hash_destroy(&hash);
}

static void
of_equal_keys_the_newest_is_found(void)
{
    struct hash_node older, newer;
    CU_ASSERT_EQUAL_FATAL(hash_init(&hash, 1), 0);
    hash_insert(&hash, &older, 7);
    hash_insert(&hash, &newer, 7);
    CU_ASSERT_PTR_EQUAL(hash_find(&hash, 7), &newer);
    hash_remove(&hash, &newer);
    CU_ASSERT_PTR_EQUAL(hash_find(&hash, 7), &older);
    hash_remove(&hash, &older);
    CU_ASSERT_PTR_NULL(hash_find(&hash, 7));
    hash_destroy(&hash);
}

static void
the_bucket_count_is_rounded_up_to_a_power_of_two(void)
{
    static const uint32_t cases[][2] = {{0, 1}, {1, 1}, {2, 2}, {3, 4}, {1000, 1024}, {1024, 1024}};
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        CU_ASSERT_EQUAL_FATAL(hash_init(&hash, cases[i][0]), 0);
        CU_ASSERT_EQUAL(hash.bucket_count, cases[i][1]);
        hash_destroy(&hash);
    }
    hash_destroy(&hash); /* a zeroed one */
}

static void
remove_stranger(void)
{
    struct hash_node stranger = {.key = 1};
    hash_remove(&hash, &stranger);
}

static void
removing_what_is_not_there_is_a_bug(void)
{
    char text[256];
    CU_ASSERT_EQUAL_FATAL(hash_init(&hash, 4), 0);
    CU_ASSERT(dies(remove_stranger, text, sizeof(text)));
    hash_destroy(&hash);
}

/* Stripe numbers are equidistant; the mixer must spread them all the same. */
static void
keys_in_a_row_spread_over_the_buckets(void)
{
    enum { BUCKETS = 256, KEYS = 256 * 64 };
    for (uint64_t distance = 1; distance <= MIB(64); distance *= 2) {
        uint32_t load[BUCKETS] = {0}, load_max = 0;
        for (uint64_t i = 0; i < KEYS; i++) {
            uint32_t *at = &load[hash_mix(i * distance) % BUCKETS];
            ++*at;
            load_max = MAX(load_max, *at);
        }
        CU_ASSERT(load_max < 128); /* mean 64; eight standard deviations */
    }
}

SUITE_MAIN("hash", T(what_was_inserted_is_found_until_it_is_removed),
           T(of_equal_keys_the_newest_is_found),
           T(the_bucket_count_is_rounded_up_to_a_power_of_two),
           T(removing_what_is_not_there_is_a_bug), T(keys_in_a_row_spread_over_the_buckets))
