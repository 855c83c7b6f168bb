/* md's bad block log (research/md.md 5.1): entries of (sector << 10 | length), unsorted. */
#include <string.h>

#include "engine/base/endian.h"

#include "engine/meta/super.h"

#define BAD_LENGTH_BITS 10
#define BAD_LENGTH_MASK ((UINT64_C(1) << BAD_LENGTH_BITS) - 1)

static int
by_offset(const void *a, const void *b)
{
    const struct bad_range *left = a, *right = b;
    return left->off_bytes < right->off_bytes ? -1 : left->off_bytes > right->off_bytes;
}

static bool
entry_range(uint64_t entry, uint8_t shift, struct bad_range *range)
{
    uint64_t unit, end;
    if (shift > 40 || (entry & BAD_LENGTH_MASK) == 0)
        return false;
    unit = (uint64_t)SECTOR_BYTES << shift;
    return mul_ok(entry >> BAD_LENGTH_BITS, unit, &range->off_bytes) &&
           mul_ok(entry & BAD_LENGTH_MASK, unit, &range->len_bytes) &&
           add_ok(range->off_bytes, range->len_bytes, &end);
}

uint32_t
bad_blocks_decode(const uint8_t *raw, uint32_t bytes, uint8_t shift,
                  struct bad_range out[BAD_RANGES_MAX])
{
    uint32_t count = 0;
    for (uint32_t at = 0; at + sizeof(struct le64) <= bytes && count < BAD_RANGES_MAX;
         at += sizeof(struct le64)) {
        struct le64 entry;
        memcpy(&entry, raw + at, sizeof(entry));
        if (le64_get(entry) == UINT64_MAX)
            break;
        if (entry_range(le64_get(entry), shift, &out[count]))
            count++;
    }
    qsort(out, count, sizeof(out[0]), by_offset);
    return count;
}
