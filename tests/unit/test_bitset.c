#include "engine/base/bitset.h"
#include "engine/base/rng.h"

#include "tests/unit/suite.h"

#define BITS_MAX 300u

/* The same set as an array of bools: the plain truth. */
static bool plain[BITS_MAX];
static uint64_t words[BITSET_WORDS(BITS_MAX)];
static uint64_t bits;

static uint64_t
plain_next(uint64_t from, bool value)
{
    while (from < bits && plain[from] != value)
        from++;
    return MIN(from, bits);
}

static unsigned
differences(void)
{
    unsigned wrong = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < bits; i++) {
        wrong += bitset_test(words, i) != plain[i];
        count += plain[i];
    }
    for (uint64_t i = 0; i <= bits + 1; i++) {
        wrong += bitset_next(words, bits, i) != plain_next(i, true);
        wrong += bitset_next_clear(words, bits, i) != plain_next(i, false);
    }
    uint64_t expected = 0;
    bitset_for_each (bit, words, bits) {
        expected = plain_next(expected, true);
        wrong += bit != expected++;
    }
    wrong += plain_next(expected, true) != bits;
    return wrong + (bitset_count(words, bits) != count);
}

static void
change_at_random(struct rng *rng)
{
    uint64_t from = rng_below(rng, bits), count = rng_range(rng, 0, bits - from);
    bool value = rng_chance(rng, 50);
    if (rng_chance(rng, 50)) {
        (value ? bitset_set_range : bitset_clear_range)(words, from, count);
    } else {
        (value ? bitset_set : bitset_clear)(words, from);
        count = 1;
    }
    for (uint64_t i = from; i < from + count; i++)
        plain[i] = value;
}

static void
a_bitset_behaves_like_an_array_of_bools(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    unsigned wrong = 0;
    for (unsigned run = 0; run < 50; run++) {
        bits = rng_range(&rng, 1, BITS_MAX);
        memset(plain, 0, sizeof(plain));
        /* What lies behind the last bit must neither matter nor change. */
        uint64_t behind[BITSET_WORDS(BITS_MAX)];
        rng_fill(&rng, behind, sizeof(behind));
        memcpy(words, behind, sizeof(words));
        bitset_clear_range(words, 0, bits);
        for (unsigned i = 0; i < 40; i++) {
            change_at_random(&rng);
            wrong += differences();
        }
        for (uint64_t i = bits; i < BITSET_WORDS(BITS_MAX) * 64; i++)
            wrong += bitset_test(words, i) != bitset_test(behind, i);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void
ranges_reach_to_word_borders_exactly(void)
{
    uint64_t three[3] = {0};
    bitset_set_range(three, 64, 64);
    CU_ASSERT(three[0] == 0 && three[1] == UINT64_MAX && three[2] == 0);
    bitset_clear_range(three, 65, 62);
    CU_ASSERT_EQUAL(three[1], (UINT64_C(1) << 63) | 1);
    bitset_set_range(three, 10, 0);
    CU_ASSERT_EQUAL(three[0], 0);
}

static void
masks_hold_the_roles_named(void)
{
    CU_ASSERT_EQUAL(mask_of(0), 1);
    CU_ASSERT_EQUAL(mask_of(63), UINT64_C(1) << 63);
    CU_ASSERT_EQUAL(mask_below(0), 0);
    CU_ASSERT_EQUAL(mask_below(3), 7);
    CU_ASSERT_EQUAL(mask_below(64), UINT64_MAX);
    CU_ASSERT_EQUAL(mask_count(0xf0f), 8);
    CU_ASSERT_EQUAL(mask_first(0x30), 4);
}

static void
walking_a_mask_visits_each_role_once_upwards(void)
{
    uint64_t seen = 0, last = 0;
    unsigned visits = 0;
    uint64_t mask = mask_of(0) | mask_of(5) | mask_of(63);
    mask_for_each (role, mask) {
        CU_ASSERT(visits == 0 || role > last);
        last = role;
        seen |= mask_of((uint32_t)role);
        visits++;
    }
    CU_ASSERT_EQUAL(seen, mask);
    CU_ASSERT_EQUAL(visits, 3);
    mask_for_each (none, 0) {
        (void)none;
        visits++;
    }
    CU_ASSERT_EQUAL(visits, 3);
}

SUITE_MAIN("bitset", T(a_bitset_behaves_like_an_array_of_bools),
           T(ranges_reach_to_word_borders_exactly), T(masks_hold_the_roles_named),
           T(walking_a_mask_visits_each_role_once_upwards))
