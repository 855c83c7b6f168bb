#include <string.h>

#include "engine/base/iov.h"
#include "engine/base/rng.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

#define BYTES 64u

static uint8_t memory[BYTES];
static struct iovec iov[BYTES];
static uint32_t iov_count;

/* Cut memory into pieces at random, empty ones among them. */
static void
cut(struct rng *rng)
{
    iov_count = 0;
    for (uint64_t off = 0; off < BYTES && iov_count < BYTES - 1;) {
        uint64_t len = rng_below(rng, MIN(BYTES - off, 9u) + 1);
        iov[iov_count++] = (struct iovec){.iov_base = memory + off, .iov_len = len};
        off += len;
        if (off == BYTES)
            return;
    }
    const struct iovec *last = &iov[iov_count - 1];
    uint8_t *end = (uint8_t *)last->iov_base + last->iov_len;
    iov[iov_count++] = (struct iovec){.iov_base = end, .iov_len = (size_t)(memory + BYTES - end)};
}

static void
slices_and_copies_name_the_bytes_of_the_range(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    unsigned wrong = 0;
    for (unsigned round = 0; round < 2000; round++) {
        uint8_t out[BYTES], in[BYTES], expected[BYTES];
        struct iovec slice[BYTES];
        cut(&rng);
        rng_fill(&rng, memory, BYTES);
        uint64_t off = rng_below(&rng, BYTES + 1), len = rng_range(&rng, 0, BYTES - off);
        wrong += iov_bytes(iov, iov_count) != BYTES;
        iov_copy_out(out, iov, iov_count, off, len);
        wrong += memcmp(out, memory + off, len) != 0;
        uint32_t count = iov_slice(iov, iov_count, off, len, slice, BYTES);
        wrong += iov_bytes(slice, count) != len;
        uint8_t *at = memory + off;
        for (uint32_t i = 0; i < count; at += slice[i++].iov_len)
            wrong += slice[i].iov_base != at || slice[i].iov_len == 0;
        memcpy(expected, memory, BYTES);
        rng_fill(&rng, in, BYTES);
        memcpy(expected + off, in, len);
        iov_copy_in(iov, iov_count, off, in, len);
        wrong += memcmp(expected, memory, BYTES) != 0;
        memset(expected + off, 0, len);
        iov_zero(iov, iov_count, off, len);
        wrong += memcmp(expected, memory, BYTES) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void
a_slice_that_takes_too_many_entries_is_refused(void)
{
    const struct iovec three[3] = {{memory, 10}, {memory + 20, 10}, {memory + 40, 10}};
    struct iovec out[3];
    CU_ASSERT_EQUAL(iov_slice(three, 3, 5, 20, out, 2), 0);
    CU_ASSERT_EQUAL(iov_slice(three, 3, 5, 20, out, 3), 3);
    CU_ASSERT_EQUAL(iov_slice(three, 3, 5, 15, out, 2), 2);
    CU_ASSERT_PTR_EQUAL(out[0].iov_base, memory + 5);
    CU_ASSERT_EQUAL(out[0].iov_len, 5);
    CU_ASSERT_EQUAL(out[1].iov_len, 10);
}

static void
alignment_is_that_of_every_base_and_length(void)
{
    static _Alignas(4096) uint8_t page[8192];
    struct iovec two[2] = {{page, 512}, {page + 4096, 1024}};
    CU_ASSERT(iov_aligned(two, 2, 512));
    CU_ASSERT(!iov_aligned(two, 2, 1024));
    CU_ASSERT(iov_aligned(two + 1, 1, 1024));
    two[1].iov_base = page + 4097;
    CU_ASSERT(!iov_aligned(two, 2, 2));
    CU_ASSERT(iov_aligned(two, 2, 1));
    CU_ASSERT(iov_aligned(two, 0, 4096));
}

static void
zero_outside(void)
{
    const struct iovec one = {memory, 10};
    iov_zero(&one, 1, 5, 6);
}

static void
a_range_outside_is_a_bug(void)
{
    char text[256];
    CU_ASSERT(dies(zero_outside, text, sizeof(text)));
}

SUITE_MAIN("iov", T(slices_and_copies_name_the_bytes_of_the_range),
           T(a_slice_that_takes_too_many_entries_is_refused),
           T(alignment_is_that_of_every_base_and_length), T(a_range_outside_is_a_bug))
