#include <stdlib.h>

#include "engine/base/rng.h"

#include "engine/array_state.h"
#include "tests/unit/suite.h"

static void
no_samples_give_no_percentile(void)
{
    struct latency latency = {0};
    CU_ASSERT_EQUAL(latency_percentile_us(&latency, 500), 0);
}

static void
one_sample_is_every_percentile(void)
{
    struct latency latency = {0};
    latency_add(&latency, 100);
    CU_ASSERT_EQUAL(latency_percentile_us(&latency, 1), 128);
    CU_ASSERT_EQUAL(latency_percentile_us(&latency, 1000), 128);
}

static int
by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void
percentiles_bound_the_samples_within_a_half(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    static uint64_t samples[1000];
    struct latency latency = {0};
    for (int i = 0; i < 1000; i++) {
        samples[i] = rng_u64(&rng) >> rng_range(&rng, 40, 63);
        latency_add(&latency, samples[i]);
    }
    qsort(samples, 1000, sizeof(samples[0]), by_value);
    for (uint32_t permille = 1; permille <= 1000; permille++) {
        uint64_t exact = samples[permille - 1];
        uint64_t got = latency_percentile_us(&latency, permille);
        CU_ASSERT(got > exact && got <= exact + exact / 2 + 1);
    }
}

static void
enormous_latencies_fall_into_the_last_bucket(void)
{
    struct latency latency = {0};
    latency_add(&latency, UINT64_MAX);
    CU_ASSERT_EQUAL(latency.buckets[LATENCY_BUCKETS - 1], 1);
}

SUITE_MAIN("stats", T(no_samples_give_no_percentile), T(one_sample_is_every_percentile),
           T(percentiles_bound_the_samples_within_a_half),
           T(enormous_latencies_fall_into_the_last_bucket))
