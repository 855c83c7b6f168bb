#include "engine/base/rng.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

static void
the_generator_is_xoshiro256_starstar_seeded_by_splitmix64(void)
{
    /* By hand: state 1, 2, 3, 4 gives 11520 first, then 0 (the published reference sequence). */
    struct rng rng = {.state = {1, 2, 3, 4}};
    CU_ASSERT_EQUAL(rng_u64(&rng), 11520);
    CU_ASSERT_EQUAL(rng_u64(&rng), 0);
    CU_ASSERT_EQUAL(rng_u64(&rng), 1509978240);
    rng_seed(&rng, 0); /* splitmix64 of 0 begins with this */
    CU_ASSERT_EQUAL(rng.state[0], UINT64_C(0xe220a8397b1dcdaf));
    CU_ASSERT_EQUAL(rng.state[1], UINT64_C(0x6e789e6aa1b965f4));
}

static void
the_same_seed_does_the_same(void)
{
    struct rng a, b, c;
    rng_seed(&a, suite_seed());
    rng_seed(&b, suite_seed());
    rng_seed(&c, suite_seed() + 1);
    unsigned equal = 0, equal_other = 0;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t value = rng_u64(&a);
        equal += value == rng_u64(&b);
        equal_other += value == rng_u64(&c);
    }
    CU_ASSERT_EQUAL(equal, 100);
    CU_ASSERT_EQUAL(equal_other, 0);
}

static void
below_reaches_every_value_and_no_other(void)
{
    struct rng rng;
    rng_seed(&rng, 1);
    unsigned seen[7] = {0};
    for (unsigned i = 0; i < 7000; i++) {
        uint64_t value = rng_below(&rng, 7);
        CU_ASSERT_FATAL(value < 7);
        seen[value]++;
    }
    for (unsigned i = 0; i < 7; i++)
        CU_ASSERT(seen[i] > 800 && seen[i] < 1200);
    CU_ASSERT_EQUAL(rng_below(&rng, 1), 0);
    /* Three quarters of the range: without rejection the lowest third came half of the time. */
    uint64_t limit = UINT64_C(3) << 62, low = 0;
    for (unsigned i = 0; i < 3000; i++)
        low += rng_below(&rng, limit) < limit / 3;
    CU_ASSERT(low > 850 && low < 1150);
}

static void
range_includes_both_ends(void)
{
    struct rng rng;
    rng_seed(&rng, 2);
    unsigned low = 0, high = 0;
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t value = rng_range(&rng, 10, 13);
        CU_ASSERT_FATAL(value >= 10 && value <= 13);
        low += value == 10;
        high += value == 13;
    }
    CU_ASSERT(low > 0 && high > 0);
    CU_ASSERT_EQUAL(rng_range(&rng, 5, 5), 5);
    CU_ASSERT_EQUAL(rng_range(&rng, UINT64_MAX, UINT64_MAX), UINT64_MAX);
    CU_ASSERT_NOT_EQUAL(rng_range(&rng, 0, UINT64_MAX), rng_range(&rng, 0, UINT64_MAX));
}

static void
chance_is_about_its_percentage(void)
{
    struct rng rng;
    rng_seed(&rng, 3);
    unsigned quarter = 0, never = 0, always = 0;
    for (unsigned i = 0; i < 4000; i++) {
        quarter += rng_chance(&rng, 25);
        never += rng_chance(&rng, 0);
        always += rng_chance(&rng, 100);
    }
    CU_ASSERT(quarter > 850 && quarter < 1150);
    CU_ASSERT_EQUAL(never, 0);
    CU_ASSERT_EQUAL(always, 4000);
}

static void
fill_writes_all_bytes_and_no_more(void)
{
    struct rng rng;
    rng_seed(&rng, 4);
    for (size_t bytes = 0; bytes <= 20; bytes++) {
        uint8_t ever[24] = {0};
        for (unsigned i = 0; i < 20; i++) { /* that a byte is 0 each time is out of the question */
            uint8_t memory[24] = {0};
            rng_fill(&rng, memory, bytes);
            for (unsigned j = 0; j < sizeof(memory); j++)
                ever[j] |= memory[j];
        }
        for (size_t i = 0; i < sizeof(ever); i++)
            CU_ASSERT_EQUAL(ever[i] != 0, i < bytes);
    }
}

static void
random_seeds_differ(void)
{
    CU_ASSERT_NOT_EQUAL(rng_random_seed(), rng_random_seed());
}

static void
below_nothing(void)
{
    struct rng rng;
    rng_seed(&rng, 5);
    (void)rng_below(&rng, 0);
}

static void
there_is_nothing_below_zero(void)
{
    char text[256];
    CU_ASSERT(dies(below_nothing, text, sizeof(text)));
}

SUITE_MAIN("rng", T(the_generator_is_xoshiro256_starstar_seeded_by_splitmix64),
           T(the_same_seed_does_the_same), T(below_reaches_every_value_and_no_other),
           T(range_includes_both_ends), T(chance_is_about_its_percentage),
           T(fill_writes_all_bytes_and_no_more), T(random_seeds_differ),
           T(there_is_nothing_below_zero))
