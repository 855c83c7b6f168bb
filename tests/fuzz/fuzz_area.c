/* Any 32 KiB as the two slots of an sr5 area. */
#include <isa-l/crc.h>
#include <string.h>

#include "engine/base/endian.h"

#include "engine/meta/area.h"
#include "tests/fuzz/fuzz.h"

/* The checksum would stop the fuzzer at the door. */
static void
fix_crc(uint8_t *slot)
{
    memset(slot + 12, 0, 4);
    struct le32 crc = le32_make(~crc32_iscsi(slot, (int)AREA_SLOT_BYTES, UINT32_MAX));
    memcpy(slot + 12, crc.bytes, 4);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t raw[2 * AREA_SLOT_BYTES], again[2 * AREA_SLOT_BYTES];
    static struct area area, read;
    unsigned slot;
    memset(raw, 0, sizeof(raw));
    memcpy(raw, data, size < sizeof(raw) ? size : sizeof(raw));
    fix_crc(raw);
    fix_crc(raw + AREA_SLOT_BYTES);
    if (!area_decode(raw, &area, &slot))
        return 0;
    check_lt(slot, 2);
    area_encode(&area, again);
    check(area_decode(again, &read, &slot));
    check_eq(read.generation, area.generation);
    check_eq(read.log_bytes, area.log_bytes);
    return 0;
}

size_t
fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    struct area area = {.generation = number,
                        .events = number,
                        .area_bytes = MIB(2),
                        .log_off_bytes = MIB(2),
                        .log_bytes = number % 2 ? MIB(1) : 0,
                        .consistency = "log",
                        .policy = "auto",
                        .has_super = number % 3 == 0};
    check_ge(max, 2 * AREA_SLOT_BYTES);
    area_encode(&area, data);
    area.generation++;
    area_encode(&area, data + AREA_SLOT_BYTES);
    return 2 * AREA_SLOT_BYTES;
}
