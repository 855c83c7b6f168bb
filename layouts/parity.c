/* THEORY OF OPERATION.  Everything parity does is a linear form over GF(2^8): dst = sum of
 * coef[i] * src[i].  With all coefficients 1 it is P, and the recovery of anything by P; with
 * powers of 2 it is Q; with two forms solved for two unknowns it recovers two members (the
 * coefficients come from plan_parity.c).  So there is one operation, in three shapes, by ISA-L,
 * which picks the widest instructions this CPU has:
 *
 *   parity_sum    one form       all coefs 1 and all aligned: xor_gen(); else ec_encode_data()
 *   parity_sum2   two forms      ec_encode_data(), each source read once
 *   parity_pq     P and Q        aligned: pq_gen(); else parity_sum2
 *
 * The shapes give the same bytes, and those of parity_ref.c: parity_selftest() compares them before
 * the first array is opened, because a CPU or a library that is wrong here ruins data silently.
 *
 * ec_encode_data() does any coefficients, any alignment and any length; xor_gen() and pq_gen() are
 * for the aligned common cases (measured: bench/bench_parity).  ISA-L's tables of a coefficient are
 * made per call (32 bytes each, a few ns): that keeps everything here free of state. */
#include "layouts/parity.h"

#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>
#include <string.h>

#define VECTOR_BYTES 32         /* alignment xor_gen and pq_gen ask for */
#define TABLE_BYTES  32         /* of one coefficient */
#define PASS_BYTES   (1u << 30) /* ISA-L takes an int */

static bool
all_aligned(const uint8_t *const *src, uint32_t count, uint64_t len)
{
    uintptr_t bits = (uintptr_t)len;
    for (uint32_t i = 0; i < count; i++)
        bits |= (uintptr_t)src[i];
    return bits % VECTOR_BYTES == 0;
}

static bool
all_ones(const uint8_t *coef, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (coef[i] != 1)
            return false;
    return true;
}

/* ISA-L's prototypes know no const; it does not write to sources. */
static unsigned char *
source(const uint8_t *bytes)
{
    return (unsigned char *)(uintptr_t)bytes;
}

static void
encode(uint8_t *const *dst, uint32_t dst_count, const uint8_t *const *src, const uint8_t *coefs,
       uint32_t count, uint64_t len)
{
    unsigned char tables[2 * PARITY_SOURCES_MAX * TABLE_BYTES];
    unsigned char coef[2 * PARITY_SOURCES_MAX];
    memcpy(coef, coefs, (size_t)dst_count * count);
    ec_init_tables((int)count, (int)dst_count, coef, tables);
    for (uint64_t at = 0; at < len; at += PASS_BYTES) {
        unsigned char *from[PARITY_SOURCES_MAX], *to[2];
        for (uint32_t i = 0; i < count; i++)
            from[i] = source(src[i]) + at;
        for (uint32_t i = 0; i < dst_count; i++)
            to[i] = dst[i] + at;
        uint64_t pass = len - at < PASS_BYTES ? len - at : PASS_BYTES;
        ec_encode_data((int)pass, (int)count, (int)dst_count, tables, from, to);
    }
}

static void
xor_sum(uint8_t *dst, const uint8_t *const *src, uint32_t count, uint64_t len)
{
    for (uint64_t at = 0; at < len; at += PASS_BYTES) {
        void *vectors[PARITY_SOURCES_MAX + 1];
        for (uint32_t i = 0; i < count; i++)
            vectors[i] = source(src[i]) + at;
        vectors[count] = dst + at;
        uint64_t pass = len - at < PASS_BYTES ? len - at : PASS_BYTES;
        check_eq(xor_gen((int)count + 1, (int)pass, vectors), 0);
    }
}

void
parity_sum(uint8_t *dst, const uint8_t *const *src, const uint8_t *coef, uint32_t count,
           uint64_t len)
{
    check_ne(count, 0);
    check_le(count, PARITY_SOURCES_MAX);
    bool plain = all_ones(coef, count);
    if (plain && count == 1)
        memcpy(dst, src[0], len);
    else if (plain && all_aligned(src, count, len) && (uintptr_t)dst % VECTOR_BYTES == 0)
        xor_sum(dst, src, count, len);
    else
        encode(&dst, 1, src, coef, count, len);
}

void
parity_sum2(uint8_t *const dst[2], const uint8_t *const *src, const uint8_t *coef_first,
            const uint8_t *coef_second, uint32_t count, uint64_t len)
{
    check_ne(count, 0);
    check_le(count, PARITY_SOURCES_MAX);
    uint8_t coefs[2 * PARITY_SOURCES_MAX];
    memcpy(coefs, coef_first, count);
    memcpy(coefs + count, coef_second, count);
    encode(dst, 2, src, coefs, count, len);
}

void
parity_pq(uint8_t *p, uint8_t *q, const uint8_t *const *src, uint32_t count, uint64_t len)
{
    check_ne(count, 0);
    check_le(count, PARITY_SOURCES_MAX);
    uint8_t *const dst[2] = {p, q};
    if (count >= 2 && len <= PASS_BYTES && all_aligned(src, count, len) &&
        ((uintptr_t)p | (uintptr_t)q) % VECTOR_BYTES == 0) {
        void *vectors[PARITY_SOURCES_MAX + 2];
        for (uint32_t i = 0; i < count; i++)
            vectors[i] = source(src[i]);
        vectors[count] = p;
        vectors[count + 1] = q;
        check_eq(pq_gen((int)count + 2, (int)len, vectors), 0);
        return;
    }
    uint8_t ones[PARITY_SOURCES_MAX], powers[PARITY_SOURCES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        ones[i] = 1;
        powers[i] = gf_pow2(i);
    }
    parity_sum2(dst, src, ones, powers, count, len);
}

uint8_t
gf_pow2(uint32_t exponent)
{
    uint8_t power = 1, square = 2; /* 2^(2^i) */
    for (exponent %= 255; exponent != 0; exponent >>= 1) {
        if ((exponent & 1) != 0)
            power = gf_mul(power, square);
        square = gf_mul(square, square);
    }
    return power;
}

/* ---- self test: every coefficient, and the ways through ISA-L ------------------------------- */

#define TEST_SOURCES 4
#define TEST_BYTES   (3 * 256 + 64)

struct test_bytes {
    _Alignas(64) uint8_t src[TEST_SOURCES][TEST_BYTES];
    _Alignas(64) uint8_t p[TEST_BYTES], q[TEST_BYTES], want[TEST_BYTES];
};

static bool
sum_agrees(struct test_bytes *t, const uint8_t *coef, uint32_t count, uint32_t shift, uint64_t len)
{
    const uint8_t *src[TEST_SOURCES];
    for (uint32_t i = 0; i < TEST_SOURCES; i++)
        src[i] = t->src[i] + shift;
    parity_ref_sum(t->want, src, coef, count, len);
    parity_sum(t->p, src, coef, count, len);
    return memcmp(t->p, t->want, len) == 0;
}

static bool
pq_agrees(struct test_bytes *t, uint32_t shift, uint64_t len)
{
    static const uint8_t ones[TEST_SOURCES] = {1, 1, 1, 1}, powers[TEST_SOURCES] = {1, 2, 4, 8};
    const uint8_t *src[TEST_SOURCES];
    for (uint32_t i = 0; i < TEST_SOURCES; i++)
        src[i] = t->src[i] + shift;
    parity_pq(t->p, t->q, src, TEST_SOURCES, len);
    parity_ref_sum(t->want, src, ones, TEST_SOURCES, len);
    bool p_agrees = memcmp(t->p, t->want, len) == 0;
    parity_ref_sum(t->want, src, powers, TEST_SOURCES, len);
    return p_agrees && memcmp(t->q, t->want, len) == 0;
}

int
parity_selftest(void)
{
    struct test_bytes t;
    uint32_t state = 1; /* all byte values, in no order that a bug could share */
    for (uint32_t i = 0; i < TEST_SOURCES; i++)
        for (uint32_t at = 0; at < TEST_BYTES; at++) {
            state = state * 1103515245 + 12345;
            t.src[i][at] = (uint8_t)(state >> 16);
        }
    bool agrees = true;
    for (uint32_t c = 0; c < 256; c++) {
        uint8_t coef[TEST_SOURCES] = {(uint8_t)c, 1, gf_pow2(c), (uint8_t)~c};
        agrees = agrees && sum_agrees(&t, coef, 1 + c % TEST_SOURCES, c % 3, TEST_BYTES - 64);
        agrees = agrees && (c == 0 || gf_mul((uint8_t)c, gf_inv((uint8_t)c)) == 1);
    }
    static const uint8_t ones[TEST_SOURCES] = {1, 1, 1, 1};
    for (uint32_t shift = 0; shift < 2; shift++)
        for (uint64_t len = 0; len <= TEST_BYTES - 64; len += 31 + shift)
            agrees =
                agrees && sum_agrees(&t, ones, 2 + shift, shift, len) && pq_agrees(&t, shift, len);
    return agrees ? 0 : -EIO;
}
