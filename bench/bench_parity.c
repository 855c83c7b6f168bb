/* How fast parity is: GB of source bytes a second.
 *
 *   make bench-bins && build/release/bench/bench_parity */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/base/rng.h"
#include "engine/base/units.h"

#include "layouts/parity.h"

#define SOURCES   8
#define BYTES_MAX KIB(64)
#define RUN_NS    (200 * MS_NS)

struct kernel {
    const char *name;
    uint32_t sources;
    void (*run)(uint32_t sources, uint64_t len, uint32_t shift);
};

static struct {
    _Alignas(64) uint8_t src[SOURCES][BYTES_MAX + 64];
    _Alignas(64) uint8_t dst[2][BYTES_MAX + 64];
} b;

static const uint8_t ones[SOURCES] = {1, 1, 1, 1, 1, 1, 1, 1};
static const uint8_t mixed[SOURCES] = {3, 29, 7, 111, 200, 5, 90, 44};

static const uint8_t *const *
sources(uint32_t shift)
{
    static const uint8_t *src[SOURCES];
    for (uint32_t i = 0; i < SOURCES; i++)
        src[i] = b.src[i] + shift;
    return src;
}

static void
run_xor(uint32_t count, uint64_t len, uint32_t shift)
{
    parity_sum(b.dst[0] + shift, sources(shift), ones, count, len);
}

static void
run_generic(uint32_t count, uint64_t len, uint32_t shift)
{
    parity_sum(b.dst[0] + shift, sources(shift), mixed, count, len);
}

static void
run_sum2(uint32_t count, uint64_t len, uint32_t shift)
{
    uint8_t *const dst[2] = {b.dst[0] + shift, b.dst[1] + shift};
    parity_sum2(dst, sources(shift), ones, mixed, count, len);
}

static void
run_pq(uint32_t count, uint64_t len, uint32_t shift)
{
    parity_pq(b.dst[0] + shift, b.dst[1] + shift, sources(shift), count, len);
}

static void
run_reference(uint32_t count, uint64_t len, uint32_t shift)
{
    parity_ref_sum(b.dst[0] + shift, sources(shift), mixed, count, len);
}

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static double
measure(const struct kernel *kernel, uint64_t len, uint32_t shift)
{
    uint64_t start = now_ns(), bytes = 0, taken;
    do {
        for (unsigned i = 0; i < 16; i++)
            kernel->run(kernel->sources, len, shift);
        bytes += 16 * len * kernel->sources;
        taken = now_ns() - start;
    } while (taken < RUN_NS);
    return (double)bytes / (double)taken;
}

int
main(void)
{
    static const struct kernel kernels[] = {
        {"xor of 3", 3, run_xor},
        {"xor of 5", 5, run_xor},
        {"P+Q of 3", 3, run_pq},
        {"P+Q of 6", 6, run_pq},
        {"two forms of 3", 3, run_sum2},
        {"generic sum of 3", 3, run_generic},
        {"reference of 3", 3, run_reference},
    };
    struct rng rng;
    rng_seed(&rng, 1);
    rng_fill(&rng, &b, sizeof(b));
    printf("parity_selftest: %d\nGB/s of sources%-5s 4K aligned  4K +1 byte  64K aligned  64K +1\n",
           parity_selftest(), "");
    for (size_t k = 0; k < ARRAY_LEN(kernels); k++)
        printf("%-20s %10.1f %11.1f %12.1f %7.1f\n", kernels[k].name,
               measure(&kernels[k], KIB(4), 0), measure(&kernels[k], KIB(4), 1),
               measure(&kernels[k], KIB(64), 0), measure(&kernels[k], KIB(64), 1));
    return 0;
}
