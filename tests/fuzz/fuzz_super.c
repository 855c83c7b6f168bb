/* Any 4 KiB as a superblock: decoding never goes wrong, and what it accepts is written back bit for
 * bit and judged by decide() without a crash. */
#include <string.h>

#include "engine/base/endian.h"

#include "engine/meta/decide.h"
#include "tests/fuzz/fuzz.h"

#define DEVICE_BYTES MIB(24)

/* The checksum would stop the fuzzer at the door, so it is made right (md.md 1.4). */
static void
fix_checksum(uint8_t raw[SUPER_BYTES])
{
    struct le32 word;
    uint64_t sum = 0;
    memcpy(&word, raw + 220, sizeof(word));
    uint32_t max_dev = le32_get(word);
    if (max_dev > SUPER_ROLES_MAX)
        return;
    memset(raw + 216, 0, 4);
    uint32_t end = 256 + 2 * max_dev, at = 0;
    for (; at + 4 <= end; at += 4) {
        memcpy(&word, raw + at, sizeof(word));
        sum += le32_get(word);
    }
    if (at < end)
        sum += raw[at] + 256u * raw[at + 1];
    word = le32_make((uint32_t)((sum & UINT32_MAX) + (sum >> 32)));
    memcpy(raw + 216, &word, sizeof(word));
}

static void
try_minor(const uint8_t raw[SUPER_BYTES], uint32_t minor)
{
    static struct candidate candidate;
    static struct decision decision;
    const struct candidate *one[] = {&candidate};
    struct diag diag;
    uint8_t again[SUPER_BYTES];
    uint64_t off;
    if (!super_place(minor, DEVICE_BYTES, &off) ||
        super_decode(raw, minor, off, DEVICE_BYTES, &candidate.super, &diag) != SUPER_OK)
        return;
    super_encode(&candidate.super, 512, again);
    check_eq(memcmp(raw, again, SUPER_BYTES), 0);
    candidate.path = "fuzz";
    candidate.has_super = true;
    if (decide(one, 1, NULL, &decision, &diag) < 0)
        check(diag.code != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t raw[SUPER_BYTES] = {0};
    static struct bad_range bad[BAD_RANGES_MAX];
    memcpy(raw, data, size < sizeof(raw) ? size : sizeof(raw));
    fix_checksum(raw);
    for (uint32_t minor = 0; minor < 3; minor++)
        try_minor(raw, minor);
    bad_blocks_decode(raw, sizeof(raw), raw[0], bad);
    return 0;
}

size_t
fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    static const int32_t levels[] = {0, 1, 4, 5, 6, 10};
    static struct super super;
    uint64_t off = 4096;
    memset(&super, 0, sizeof(super));
    super.minor = (uint32_t)(number / 6 % 3);
    super.level = levels[number % 6];
    super.layout = super.level == 10 ? 0x102 : super.level == 5 || super.level == 6 ? 2 : 0;
    super.chunk_sectors = super.level == 1 ? 0 : 128;
    super.used_sectors = super.level == 0 ? 0 : 40960;
    super.raid_disks = 4;
    check(super_place(super.minor, DEVICE_BYTES, &off));
    super.data_offset_sectors = super.minor == 0 ? 0 : 2048;
    super.data_sectors = 45056;
    super.super_offset_sectors = off / 512;
    super.events = number;
    super.resync_offset_sectors = number % 2 ? SUPER_INFINITY : 0;
    super.max_dev = 128;
    for (uint16_t dev = 0; dev < 128; dev++)
        super.roles[dev] = dev < 4 ? dev : SUPER_ROLE_SPARE;
    check_ge(max, SUPER_BYTES);
    super_encode(&super, 512, data);
    return SUPER_BYTES;
}
