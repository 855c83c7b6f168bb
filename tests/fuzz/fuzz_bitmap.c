/* Any 256 bytes as a bitmap header. */
#include <string.h>

#include "engine/meta/bitmap.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t raw[BITMAP_HEADER_BYTES] = {0}, again[BITMAP_HEADER_BYTES];
    struct bitmap_header header, read;
    struct diag diag;
    memcpy(raw, data, size < sizeof(raw) ? size : sizeof(raw));
    if (bitmap_decode(raw, &header, &diag) != BITMAP_OK)
        return 0;
    check_gt(bitmap_bit_count(&header), 0);
    check_gt(bitmap_total_bytes(&header), BITMAP_HEADER_BYTES);
    bitmap_encode(&header, again);
    check_eq(bitmap_decode(again, &read, &diag), BITMAP_OK);
    check_eq(memcmp(&header, &read, sizeof(header)), 0);
    return 0;
}

size_t
fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    struct bitmap_header header = {.version = number % 2 ? 3 : 4,
                                   .events = number,
                                   .sync_sectors = 1 + number * 1000,
                                   .chunk_bytes = 512u << number % 20};
    check_ge(max, BITMAP_HEADER_BYTES);
    bitmap_encode(&header, data);
    return BITMAP_HEADER_BYTES;
}
