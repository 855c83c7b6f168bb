/* A fuzz target of a decoder.
 *
 * With clang and libFuzzer (make SAN=fuzz fuzzers) LLVMFuzzerTestOneInput() is driven by it.  Built
 * with -DFUZZ_STANDALONE by any compiler it is a plain program: seeds and random mutations of them,
 * as many as its first argument says (100000), from the seed in its second. */
#pragma once

#include "engine/base/compiler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* A valid input, the same for the same number; returns its size, at most max (32 KiB). */
size_t fuzz_seed(uint64_t number, uint8_t *data, size_t max);

#ifdef FUZZ_STANDALONE
#include <inttypes.h>
#include <stdio.h>

#include "engine/base/rng.h"

#define FUZZ_INPUT_MAX (32u << 10)

int
main(int argc, char **argv)
{
    static uint8_t data[FUZZ_INPUT_MAX];
    uint64_t runs = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : rng_random_seed();
    struct rng rng;
    printf("%s: seed %" PRIu64 "\n", argv[0], seed);
    rng_seed(&rng, seed);
    for (uint64_t i = 0; i < runs; i++) {
        size_t size = fuzz_seed(rng_below(&rng, 100), data, sizeof(data));
        for (uint64_t k = rng_below(&rng, 12); k > 0; k--) /* mostly in the first bytes */
            data[rng_below(&rng, rng_chance(&rng, 80) ? 300 : size) % size] =
                rng_chance(&rng, 30) ? 0xff : (uint8_t)rng_u64(&rng);
        LLVMFuzzerTestOneInput(data, rng_chance(&rng, 95) ? size : rng_below(&rng, size));
    }
    printf("%s: %" PRIu64 " runs passed\n", argv[0], runs);
    return 0;
}
#endif
