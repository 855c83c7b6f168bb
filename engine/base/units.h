/* Units and integer arithmetic that cannot go wrong silently.  Bytes everywhere; a sector is 512.
 */
#pragma once

#include "engine/base/check.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)
#define TIB(n) ((uint64_t)(n) << 40)

#define SECTOR_BYTES 512u
#define BLOCK_BYTES  4096u /* page, cache block, superblock slot */

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

static inline uint64_t
div_floor(uint64_t a, uint64_t b)
{
    check_ne(b, 0);
    return a / b;
}

static inline uint64_t
div_ceil(uint64_t a, uint64_t b)
{
    check_ne(b, 0);
    return a / b + (a % b != 0);
}

/* a / b where b must divide a. */
static inline uint64_t
div_exact(uint64_t a, uint64_t b)
{
    check_ne(b, 0);
    check_eq(a % b, 0);
    return a / b;
}

static inline uint64_t
round_down(uint64_t a, uint64_t to)
{
    return div_floor(a, to) * to;
}

static inline uint64_t
round_up(uint64_t a, uint64_t to)
{
    return div_ceil(a, to) * to;
}

static inline bool
is_pow2(uint64_t a)
{
    return a != 0 && (a & (a - 1)) == 0;
}

static inline uint64_t
sectors_to_bytes(uint64_t sectors)
{
    check_le(sectors, UINT64_MAX / SECTOR_BYTES);
    return sectors * SECTOR_BYTES;
}

static inline uint64_t
bytes_to_sectors(uint64_t bytes)
{
    return div_exact(bytes, SECTOR_BYTES);
}

/* True, and *sum set, when a + b does not wrap. */
static inline MUST_CHECK bool
add_ok(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline MUST_CHECK bool
mul_ok(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* Does [a, a+a_len) meet [b, b+b_len)?  Empty ranges meet nothing. */
static inline bool
ranges_overlap(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
    return a_len != 0 && b_len != 0 && a < b + b_len && b < a + a_len;
}
