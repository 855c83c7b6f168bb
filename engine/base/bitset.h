/* Bits: fixed-size sets in words the caller owns, and 64-bit role masks. */
#pragma once

#include <string.h>

#include "engine/base/units.h"

#define BITSET_WORDS(bits) (((bits) + 63) / 64)

static inline bool
bitset_test(const uint64_t *words, uint64_t bit)
{
    return (words[bit / 64] >> (bit % 64)) & 1;
}

static inline void
bitset_set(uint64_t *words, uint64_t bit)
{
    words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void
bitset_clear(uint64_t *words, uint64_t bit)
{
    words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

/* First set bit at or after `from`, or `bits` when there is none. */
uint64_t bitset_next(const uint64_t *words, uint64_t bits, uint64_t from);
/* First clear bit at or after `from`, or `bits` when there is none. */
uint64_t bitset_next_clear(const uint64_t *words, uint64_t bits, uint64_t from);
uint64_t bitset_count(const uint64_t *words, uint64_t bits);
/* Bits [from, from + count), a word at a time. */
void bitset_set_range(uint64_t *words, uint64_t from, uint64_t count);
void bitset_clear_range(uint64_t *words, uint64_t from, uint64_t count);

#define bitset_for_each(bit, words, bits)                                                          \
    for (uint64_t bit = bitset_next(words, bits, 0); bit < (bits);                                 \
         bit = bitset_next(words, bits, bit + 1))

/* Sets of member roles fit one word (MEMBERS_MAX is 64). */
static inline uint64_t
mask_of(uint32_t bit)
{
    check_lt(bit, 64);
    return UINT64_C(1) << bit;
}

static inline uint64_t
mask_below(uint32_t count)
{
    check_le(count, 64);
    return count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static inline uint32_t
mask_count(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

static inline uint32_t
mask_first(uint64_t mask)
{
    check_ne(mask, 0);
    return (uint32_t)__builtin_ctzll(mask);
}

#define mask_for_each(bit, mask)                                                                   \
    for (uint64_t bit##_rest_ = (mask), bit = bit##_rest_ ? mask_first(bit##_rest_) : 64;          \
         bit##_rest_ != 0;                                                                         \
         bit##_rest_ &= bit##_rest_ - 1, bit = bit##_rest_ ? mask_first(bit##_rest_) : 64)
