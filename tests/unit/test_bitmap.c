#include <string.h>

#include "engine/base/rng.h"

#include "engine/meta/bitmap.h"
#include "tests/unit/suite.h"

static struct bitmap_header
sample(void)
{
    struct bitmap_header header = {.version = 4,
                                   .events = 18,
                                   .events_cleared = 17,
                                   .sync_sectors = 14336,
                                   .chunk_bytes = 65536,
                                   .daemon_sleep_s = 5};
    memset(header.array_uuid, 0x5a, 16);
    return header;
}

static void
what_is_encoded_is_decoded(void)
{
    struct bitmap_header made = sample(), read;
    struct diag diag;
    uint8_t raw[BITMAP_HEADER_BYTES];
    bitmap_encode(&made, raw);
    CU_ASSERT_EQUAL(memcmp(raw, "bitm", 4), 0);
    CU_ASSERT_EQUAL(bitmap_decode(raw, &read, &diag), BITMAP_OK);
    CU_ASSERT_EQUAL(memcmp(&made, &read, sizeof(made)), 0);
    CU_ASSERT_EQUAL(bitmap_bit_count(&read), 112);
    CU_ASSERT_EQUAL(bitmap_total_bytes(&read), 512);
}

static void
other_kinds_are_named_and_nonsense_is_insane(void)
{
    struct bitmap_header made = sample(), read;
    struct diag diag = {0};
    uint8_t raw[BITMAP_HEADER_BYTES], good[BITMAP_HEADER_BYTES];
    bitmap_encode(&made, good);
    memcpy(raw, good, sizeof(raw));
    raw[4] = 6;
    CU_ASSERT_EQUAL(bitmap_decode(raw, &read, &diag), BITMAP_UNSUPPORTED);
    CU_ASSERT_STRING_EQUAL(diag.code, "E_LLBITMAP");
    raw[4] = 5;
    CU_ASSERT_EQUAL(bitmap_decode(raw, &read, &diag), BITMAP_UNSUPPORTED);
    CU_ASSERT_STRING_EQUAL(diag.code, "E_CLUSTERED");
    raw[4] = 7;
    CU_ASSERT_EQUAL(bitmap_decode(raw, &read, &diag), BITMAP_UNSUPPORTED);
    memcpy(raw, good, sizeof(raw));
    raw[52] = 1; /* chunk 65537 */
    CU_ASSERT_EQUAL(bitmap_decode(raw, &read, &diag), BITMAP_INSANE);
    memcpy(raw, good, sizeof(raw));
    memset(raw + 40, 0xff, 8);
    CU_ASSERT_EQUAL(bitmap_decode(raw, &read, &diag), BITMAP_INSANE);
    memset(raw + 40, 0, 8);
    CU_ASSERT_EQUAL(bitmap_decode(raw, &read, &diag), BITMAP_INSANE);
    raw[0] = 0;
    CU_ASSERT_EQUAL(bitmap_decode(raw, &read, &diag), BITMAP_NONE);
}

static void
the_chosen_chunk_always_fits(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t sync = round_up(rng_below(&rng, UINT64_C(1) << rng_range(&rng, 17, 44)) + 1, 4096);
        struct bitmap_header header = sample();
        header.chunk_bytes = bitmap_choose_chunk(sync, KIB(4));
        header.sync_sectors = bytes_to_sectors(sync);
        CU_ASSERT(is_pow2(header.chunk_bytes) && header.chunk_bytes >= MIB(1));
        CU_ASSERT(bitmap_total_bytes(&header) <= KIB(4));
    }
    CU_ASSERT_EQUAL(bitmap_choose_chunk(MIB(16), KIB(4)), MIB(1));
    CU_ASSERT_EQUAL(bitmap_choose_chunk(GIB(1) + 1, KIB(4)), MIB(2));
    CU_ASSERT_EQUAL(bitmap_choose_chunk(GIB(64), KIB(128)), MIB(64));
    CU_ASSERT_EQUAL(bitmap_choose_chunk(TIB(1), KIB(128)), MIB(64)); /* as md */
}

static void
garbage_is_survived(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (unsigned i = 0; i < 100000; i++) {
        struct bitmap_header header = sample();
        struct diag diag;
        uint8_t raw[BITMAP_HEADER_BYTES];
        bitmap_encode(&header, raw);
        for (uint64_t k = rng_range(&rng, 1, 8); k > 0; k--)
            raw[rng_range(&rng, 4, 72)] = (uint8_t)rng_u64(&rng);
        if (bitmap_decode(raw, &header, &diag) == BITMAP_OK)
            CU_ASSERT(bitmap_total_bytes(&header) >= 512);
    }
}

SUITE_MAIN("bitmap", T(what_is_encoded_is_decoded), T(other_kinds_are_named_and_nonsense_is_insane),
           T(the_chosen_chunk_always_fits), T(garbage_is_survived))
