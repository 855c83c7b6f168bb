/* Seeded random numbers (xoshiro256**, seeded by splitmix64).  Not for secrets. */
#pragma once

#include "engine/base/check.h"

struct rng {
    uint64_t state[4];
};

void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_u64(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t limit);              /* [0, limit), limit > 0 */
uint64_t rng_range(struct rng *rng, uint64_t low, uint64_t high); /* [low, high] */
bool rng_chance(struct rng *rng, uint32_t percent);
void rng_fill(struct rng *rng, void *memory, size_t bytes);
/* A random seed from the kernel, for when none was given. */
uint64_t rng_random_seed(void);
