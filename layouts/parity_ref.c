/* The reference: GF(2^8) straight from its definition, one byte and one bit at a time.  Slow, short
 * and independent of ISA-L, so that parity_selftest() and the tests have something to believe. */
#include "layouts/parity.h"

/* Multiply by shifting and adding; x^8 = x^4 + x^3 + x^2 + 1, that is 0x11d. */
static uint8_t
multiply(uint8_t a, uint8_t b)
{
    unsigned product = 0, shifted = a;
    for (unsigned bit = 0; bit < 8; bit++) {
        if ((b >> bit & 1) != 0)
            product ^= shifted;
        shifted <<= 1;
        if ((shifted & 0x100) != 0)
            shifted ^= 0x11d;
    }
    return (uint8_t)product;
}

void
parity_ref_sum(uint8_t *dst, const uint8_t *const *src, const uint8_t *coef, uint32_t count,
               uint64_t len)
{
    for (uint64_t at = 0; at < len; at++) {
        uint8_t sum = 0;
        for (uint32_t i = 0; i < count; i++)
            sum ^= multiply(coef[i], src[i][at]);
        dst[at] = sum;
    }
}
