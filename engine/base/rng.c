#include "engine/base/rng.h"

#include <string.h>
#include <sys/random.h>

#include "engine/base/hash.h"

void
rng_seed(struct rng *rng, uint64_t seed)
{
    for (unsigned i = 0; i < ARRAY_LEN(rng->state); i++) /* splitmix64; never all zero */
        rng->state[i] = hash_mix(seed += UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t
rotate_left(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

uint64_t
rng_u64(struct rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t
rng_below(struct rng *rng, uint64_t limit)
{
    check_gt(limit, 0);
    uint64_t biased = -limit % limit; /* 2^64 mod limit: as many values must not count */
    uint64_t value;
    do
        value = rng_u64(rng);
    while (value < biased);
    return value % limit;
}

uint64_t
rng_range(struct rng *rng, uint64_t low, uint64_t high)
{
    check_le(low, high);
    uint64_t span = high - low;
    return span == UINT64_MAX ? rng_u64(rng) : low + rng_below(rng, span + 1);
}

bool
rng_chance(struct rng *rng, uint32_t percent)
{
    return rng_below(rng, 100) < percent;
}

void
rng_fill(struct rng *rng, void *memory, size_t bytes)
{
    uint8_t *at = memory;
    while (bytes > 0) {
        uint64_t value = rng_u64(rng);
        size_t part = MIN(bytes, sizeof(value));
        memcpy(at, &value, part);
        at += part;
        bytes -= part;
    }
}

uint64_t
rng_random_seed(void)
{
    uint64_t seed;
    check_eq(getrandom(&seed, sizeof(seed), 0), sizeof(seed));
    return seed;
}
