#include <string.h>

#include "engine/base/rng.h"

#include "tests/unit/sample.h"
#include "tests/unit/suite.h"

static void
make(struct area *area, uint64_t generation, uint8_t slot[AREA_SLOT_BYTES])
{
    struct super super;
    sample_super(&super, 5, 4, 1, 17);
    sample_area(area, &super);
    area->generation = generation;
    area_encode(area, slot);
}

static void
what_is_encoded_is_decoded(void)
{
    static uint8_t raw[2 * AREA_SLOT_BYTES];
    static struct area made, read;
    unsigned slot = 9;
    CU_ASSERT(!area_decode(raw, &read, &slot));
    make(&made, 3, raw);
    CU_ASSERT(area_decode(raw, &read, &slot));
    CU_ASSERT_EQUAL(slot, 0);
    CU_ASSERT_EQUAL(memcmp(&made, &read, sizeof(made)), 0);
}

static void
the_newer_valid_slot_counts(void)
{
    static uint8_t raw[2 * AREA_SLOT_BYTES];
    static struct area made, read;
    unsigned slot = 9;
    make(&made, 7, raw);
    make(&made, 8, raw + AREA_SLOT_BYTES);
    CU_ASSERT(area_decode(raw, &read, &slot) && slot == 1 && read.generation == 8);
    make(&made, 9, raw);
    CU_ASSERT(area_decode(raw, &read, &slot) && slot == 0 && read.generation == 9);
    raw[5000] ^= 1; /* torn: the older one still stands */
    CU_ASSERT(area_decode(raw, &read, &slot) && slot == 1 && read.generation == 8);
    raw[AREA_SLOT_BYTES + 12] ^= 1;
    CU_ASSERT(!area_decode(raw, &read, &slot));
}

static void
any_flipped_bit_is_seen(void)
{
    static uint8_t raw[2 * AREA_SLOT_BYTES];
    static struct area made, read;
    struct rng rng;
    unsigned slot;
    rng_seed(&rng, suite_seed());
    make(&made, 1, raw);
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t bit = rng_below(&rng, AREA_SLOT_BYTES * 8);
        raw[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CU_ASSERT(!area_decode(raw, &read, &slot));
        raw[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CU_ASSERT(area_decode(raw, &read, &slot));
}

SUITE_MAIN("area", T(what_is_encoded_is_decoded), T(the_newer_valid_slot_counts),
           T(any_flipped_bit_is_seen))
