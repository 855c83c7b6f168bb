/* Latency histograms: buckets that double every second step (1, 1.5, 2, 3, 4, 6, 8... us), so a
 * percentile is never off by more than half. */
#include "engine/base/units.h"

#include "engine/array_state.h"

static uint32_t
bucket_of(uint64_t us)
{
    if (us < 2)
        return (uint32_t)us;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(us);
    uint32_t half = (uint32_t)(us >> (power - 1)) & 1;
    return MIN(2 * power + half, LATENCY_BUCKETS - 1u);
}

/* The first value beyond the bucket. */
static uint64_t
bucket_limit(uint32_t bucket)
{
    if (bucket < 2)
        return bucket + 1;
    uint64_t base = UINT64_C(1) << (bucket / 2);
    return bucket % 2 == 0 ? base + base / 2 : 2 * base;
}

void
latency_add(struct latency *latency, uint64_t us)
{
    latency->count++;
    latency->buckets[bucket_of(us)]++;
}

uint64_t
latency_percentile_us(const struct latency *latency, uint32_t permille)
{
    check_le(permille, 1000);
    uint64_t wanted = div_ceil(latency->count * permille, 1000), seen = 0;
    for (uint32_t bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        seen += latency->buckets[bucket];
        if (seen >= wanted && seen != 0)
            return bucket_limit(bucket);
    }
    return 0;
}
