/* Linear forms over GF(2^8), polynomial 0x11d, generator 2, by ISA-L; checked at start against
 * parity_ref.c, which is plain C. */
#pragma once

#include "engine/base/check.h"

#define PARITY_SOURCES_MAX 128

/* dst = sum of coef[i] * src[i], bytewise, len bytes.  dst may not be one of src.  Any alignment
 * and length; 64-byte alignment is fastest.  All coefs 1: XOR.  0 < count <= PARITY_SOURCES_MAX. */
void parity_sum(uint8_t *dst, const uint8_t *const *src, const uint8_t *coef, uint32_t count,
                uint64_t len);
/* Two forms of the same sources in one pass over them (P and Q; two missing columns). */
void parity_sum2(uint8_t *const dst[2], const uint8_t *const *src, const uint8_t *coef_first,
                 const uint8_t *coef_second, uint32_t count, uint64_t len);
/* P and Q at once, Q exponents 0,1,2.. in order of src (the common full-stripe case). */
void parity_pq(uint8_t *p, uint8_t *q, const uint8_t *const *src, uint32_t count, uint64_t len);
/* ISA-L's own, which it exports under these names. */
uint8_t gf_mul(uint8_t a, uint8_t b);
uint8_t gf_inv(uint8_t a);          /* a != 0 */
uint8_t gf_pow2(uint32_t exponent); /* 2^exponent */
/* 0, or -EIO when ISA-L and the reference disagree on this CPU.  Call once at start. */
MUST_CHECK int parity_selftest(void);

/* The reference. */
void parity_ref_sum(uint8_t *dst, const uint8_t *const *src, const uint8_t *coef, uint32_t count,
                    uint64_t len);
