#include <string.h>

#include "engine/base/rng.h"

#include "layouts/parity.h"
#include "tests/unit/suite.h"

#define BYTES_MAX 5000

static struct {
    uint8_t src[PARITY_SOURCES_MAX][BYTES_MAX + 64];
    uint8_t got[2][BYTES_MAX + 64], want[BYTES_MAX + 64];
} t;

static void
selftest_passes_on_this_cpu(void)
{
    CU_ASSERT_EQUAL(parity_selftest(), 0);
}

static void
field_has_the_polynomial_0x11d_and_generator_2(void)
{
    CU_ASSERT_EQUAL(gf_mul(0x80, 2), 0x1d);
    CU_ASSERT_EQUAL(gf_pow2(0), 1);
    CU_ASSERT_EQUAL(gf_pow2(8), 0x1d);
    uint8_t power = 1;
    for (uint32_t e = 0; e < 255; e++) {
        CU_ASSERT_EQUAL(gf_pow2(e), power);
        CU_ASSERT(e == 0 || power != 1); /* order 255 */
        power = gf_mul(power, 2);
    }
    CU_ASSERT_EQUAL(power, 1);
    for (unsigned a = 1; a < 256; a++)
        CU_ASSERT_EQUAL(gf_mul((uint8_t)a, gf_inv((uint8_t)a)), 1);
}

/* Reference and ISA-L; nothing written beyond len. */
static void
compare_once(struct rng *rng)
{
    uint32_t count = (uint32_t)rng_range(rng, 1, rng_chance(rng, 10) ? PARITY_SOURCES_MAX : 8);
    uint64_t len = rng_below(rng, rng_chance(rng, 50) ? 200 : BYTES_MAX);
    if (rng_chance(rng, 30))
        len = len / 64 * 64;
    uint32_t shift = rng_chance(rng, 50) ? 0 : (uint32_t)rng_below(rng, 64);
    bool ones = rng_chance(rng, 40);
    const uint8_t *src[PARITY_SOURCES_MAX];
    uint8_t coef[2][PARITY_SOURCES_MAX];
    rng_fill(rng, coef, sizeof(coef));
    for (uint32_t i = 0; i < count; i++) {
        src[i] = t.src[i] + (rng_chance(rng, 80) ? shift : 0);
        if (ones)
            coef[0][i] = 1;
    }
    memset(t.got, 0x77, sizeof(t.got));
    parity_sum(t.got[0], src, coef[0], count, len);
    parity_ref_sum(t.want, src, coef[0], count, len);
    CU_ASSERT(memcmp(t.got[0], t.want, len) == 0 && t.got[0][len] == 0x77);

    uint8_t *dst[2] = {t.got[0] + shift, t.got[1]};
    parity_sum2(dst, src, coef[0], coef[1], count, len);
    CU_ASSERT(memcmp(dst[0], t.want, len) == 0);
    parity_ref_sum(t.want, src, coef[1], count, len);
    CU_ASSERT(memcmp(dst[1], t.want, len) == 0 && t.got[1][len] == 0x77);

    parity_pq(dst[0], dst[1], src, count, len);
    for (uint32_t i = 0; i < count; i++) {
        coef[0][i] = 1;
        coef[1][i] = gf_pow2(i);
    }
    parity_ref_sum(t.want, src, coef[0], count, len);
    CU_ASSERT(memcmp(dst[0], t.want, len) == 0);
    parity_ref_sum(t.want, src, coef[1], count, len);
    CU_ASSERT(memcmp(dst[1], t.want, len) == 0);
}

static void
any_alignment_length_and_coefficients_agree_with_the_reference(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    rng_fill(&rng, t.src, sizeof(t.src));
    for (uint64_t i = 0; i < suite_seeds(150); i++)
        compare_once(&rng);
}

SUITE_MAIN("parity", T(selftest_passes_on_this_cpu),
           T(field_has_the_polynomial_0x11d_and_generator_2),
           T(any_alignment_length_and_coefficients_agree_with_the_reference))
