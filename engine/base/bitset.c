#include "engine/base/bitset.h"

/* First bit at or after `from` that is set in words ^ flip. */
static uint64_t
next_bit(const uint64_t *words, uint64_t bits, uint64_t from, uint64_t flip)
{
    if (from >= bits)
        return bits;
    uint64_t word_index = from / 64;
    uint64_t word = (words[word_index] ^ flip) & (UINT64_MAX << (from % 64));
    while (word == 0) {
        if (++word_index == BITSET_WORDS(bits))
            return bits;
        word = words[word_index] ^ flip;
    }
    uint64_t bit = word_index * 64 + (uint64_t)__builtin_ctzll(word);
    return MIN(bit, bits); /* what lies behind the last bit is not ours */
}

uint64_t
bitset_next(const uint64_t *words, uint64_t bits, uint64_t from)
{
    return next_bit(words, bits, from, 0);
}

uint64_t
bitset_next_clear(const uint64_t *words, uint64_t bits, uint64_t from)
{
    return next_bit(words, bits, from, UINT64_MAX);
}

uint64_t
bitset_count(const uint64_t *words, uint64_t bits)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < bits / 64; i++)
        count += mask_count(words[i]);
    if (bits % 64 != 0)
        count += mask_count(words[bits / 64] & mask_below(bits % 64));
    return count;
}

/* The part of [from, end) that lies in the word of `from`, as a mask. */
static uint64_t
range_in_word(uint64_t from, uint64_t end)
{
    uint64_t count = MIN(end - from, 64 - from % 64);
    return mask_below((uint32_t)count) << (from % 64);
}

void
bitset_set_range(uint64_t *words, uint64_t from, uint64_t count)
{
    for (uint64_t bit = from, end = from + count; bit < end; bit = (bit / 64 + 1) * 64)
        words[bit / 64] |= range_in_word(bit, end);
}

void
bitset_clear_range(uint64_t *words, uint64_t from, uint64_t count)
{
    for (uint64_t bit = from, end = from + count; bit < end; bit = (bit / 64 + 1) * 64)
        words[bit / 64] &= ~range_in_word(bit, end);
}
