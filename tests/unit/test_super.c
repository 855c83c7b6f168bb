#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/endian.h"
#include "engine/base/rng.h"

#include "tests/unit/sample.h"
#include "tests/unit/suite.h"

#define SUPER_OFF 4096

static enum super_verdict
decode(const uint8_t raw[SUPER_BYTES], struct super *super, struct diag *diag)
{
    memset(diag, 0, sizeof(*diag));
    return super_decode(raw, 2, SUPER_OFF, SAMPLE_DEVICE_BYTES, super, diag);
}

/* md.md 1.4, written again from the text. */
static void
fix_checksum(uint8_t raw[SUPER_BYTES])
{
    struct le32 word, max_dev;
    uint64_t sum = 0;
    memcpy(&max_dev, raw + 220, 4);
    memset(raw + 216, 0, 4);
    for (uint32_t at = 0; at + 4 <= 256 + 2 * le32_get(max_dev); at += 4) {
        memcpy(&word, raw + at, 4);
        sum += le32_get(word);
    }
    if (le32_get(max_dev) % 2 == 1) {
        struct le16 half;
        memcpy(&half, raw + 256 + 2 * (le32_get(max_dev) - 1), 2);
        sum += le16_get(half);
    }
    word = le32_make((uint32_t)((sum & UINT32_MAX) + (sum >> 32)));
    memcpy(raw + 216, &word, 4);
}

static void
what_is_encoded_is_decoded(void)
{
    static const int32_t levels[] = {0, 1, 4, 5, 6, 10};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct super made, read;
        struct diag diag;
        uint8_t raw[SUPER_BYTES];
        sample_super(&made, levels[i], 4, 1, 17);
        CU_ASSERT_EQUAL(super_encode(&made, 512, raw), 512);
        CU_ASSERT_EQUAL(super_encode(&made, 4096, raw), 4096);
        CU_ASSERT_EQUAL(decode(raw, &read, &diag), SUPER_OK);
        memcpy(made.raw, raw, sizeof(raw));
        CU_ASSERT_EQUAL(memcmp(&made, &read, sizeof(made)), 0);
        CU_ASSERT_EQUAL(super_role(&read), 1);
    }
}

static void
bytes_that_are_not_understood_are_kept(void)
{
    struct super super;
    struct diag diag;
    uint8_t raw[SUPER_BYTES], again[SUPER_BYTES];
    sample_super(&super, 5, 4, 1, 17);
    super_encode(&super, 512, raw);
    for (uint32_t at = 512; at < SUPER_BYTES; at++)
        raw[at] = (uint8_t)at; /* behind the role table */
    raw[69] = 0x77;            /* microseconds of ctime */
    raw[197] = 0x66;           /* and of utime */
    raw[36] = '\n';            /* a name that must not be shown as it is */
    fix_checksum(raw);
    CU_ASSERT_EQUAL(decode(raw, &super, &diag), SUPER_OK);
    CU_ASSERT_STRING_EQUAL(super.name, "host?sample");
    super_encode(&super, 512, again);
    CU_ASSERT_EQUAL(memcmp(raw, again, SUPER_BYTES), 0);
    super.events++;
    super_encode(&super, 512, again);
    CU_ASSERT_EQUAL(again[69], 0x77);
    CU_ASSERT_EQUAL(again[36], '\n');
    CU_ASSERT_EQUAL(memcmp(raw + 512, again + 512, SUPER_BYTES - 512), 0);
}

struct damage {
    const char *what;
    uint32_t at, bytes;
    uint64_t value;
    enum super_verdict verdict;
};

static const struct damage damages[] = {
    {"magic", 0, 4, 0xa92b4efd, SUPER_NONE},
    {"major", 4, 4, 0, SUPER_UNSUPPORTED},
    {"unknown feature", 8, 4, 0x2000, SUPER_UNSUPPORTED},
    {"pad0", 12, 4, 1, SUPER_UNSUPPORTED},
    {"pad3", 228, 1, 1, SUPER_UNSUPPORTED},
    {"last pad3", 255, 1, 1, SUPER_UNSUPPORTED},
    {"logical block 513", 224, 4, 513, SUPER_UNSUPPORTED},
    {"logical block 512", 224, 4, 512, SUPER_OK},
    {"logical block 4096", 224, 4, 4096, SUPER_OK},
    {"max_dev 1921", 220, 4, 1921, SUPER_INSANE},
    {"max_dev 2^32-1", 220, 4, UINT32_MAX, SUPER_INSANE},
    {"elsewhere", 144, 8, 16, SUPER_INSANE},
    {"tiny data", 136, 8, 9, SUPER_INSANE},
    {"data on superblock", 128, 8, 8, SUPER_INSANE},
    {"data beyond end", 128, 8, 2049, SUPER_INSANE},
    {"data offset 2^64-1", 128, 8, UINT64_MAX, SUPER_INSANE},
    {"data size 2^64-1", 136, 8, UINT64_MAX, SUPER_INSANE},
    {"used more than there", 80, 8, 47105, SUPER_INSANE},
    {"uses nothing", 80, 8, 0, SUPER_INSANE},
    {"no chunk", 88, 4, 0, SUPER_INSANE},
    {"no members", 92, 4, 0, SUPER_INSANE},
    {"absurd members", 92, 4, 1921, SUPER_INSANE},
    {"role beyond members", 92, 4, 1, SUPER_INSANE},
    {"events overflow", 200, 8, UINT64_MAX, SUPER_INSANE},
    {"RAID0 layout on RAID5", 8, 4, 0x1000, SUPER_INSANE},
    {"bitmap at 0", 8, 4, 1, SUPER_INSANE},
    {"bitmap and journal", 8, 4, 0x201, SUPER_INSANE},
    {"ppl and journal", 8, 4, 0x600, SUPER_INSANE},
    {"bad blocks without log", 8, 4, 8, SUPER_INSANE},
    {"dev_number beyond table", 160, 4, 4000, SUPER_OK}, /* md: a spare */
    {"recovering", 8, 4, 2, SUPER_OK},
    {"ppl", 8, 4, 0x800, SUPER_OK},
};

static void
the_kernel_would_refuse_it_and_so_do_we(void)
{
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        const struct damage *d = &damages[i];
        struct super super;
        struct diag diag;
        uint8_t raw[SUPER_BYTES];
        struct le64 value = le64_make(d->value);
        sample_super(&super, 5, 4, 1, 17);
        super_encode(&super, 512, raw);
        memcpy(raw + d->at, value.bytes, d->bytes);
        if (d->at != 220)
            fix_checksum(raw);
        enum super_verdict verdict = decode(raw, &super, &diag);
        if (verdict != d->verdict)
            printf("\n  %s: verdict %d, not %d: %s\n", d->what, verdict, d->verdict, diag.message);
        CU_ASSERT_EQUAL(verdict, d->verdict);
        CU_ASSERT(verdict == SUPER_OK || verdict == SUPER_NONE || diag.message[0] != '\0');
    }
}

static void
any_flipped_bit_is_seen(void)
{
    struct super super;
    struct diag diag;
    uint8_t raw[SUPER_BYTES];
    sample_super(&super, 6, 5, 2, 99);
    super_encode(&super, 512, raw);
    for (uint32_t bit = 0; bit < 512 * 8; bit++) {
        raw[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CU_ASSERT_NOT_EQUAL(decode(raw, &super, &diag), SUPER_OK);
        raw[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CU_ASSERT_EQUAL(decode(raw, &super, &diag), SUPER_OK);
}

static void
garbage_with_a_right_checksum_is_survived(void)
{
    struct rng rng;
    uint64_t good = 0;
    rng_seed(&rng, suite_seed());
    for (unsigned i = 0; i < 20000; i++) {
        struct super super;
        struct diag diag;
        uint8_t raw[SUPER_BYTES], again[SUPER_BYTES];
        sample_super(&super, 5, 4, 1, 17);
        super_encode(&super, 512, raw);
        for (uint64_t k = rng_range(&rng, 1, 6); k > 0; k--)
            raw[rng_range(&rng, 4, 511)] = (uint8_t)rng_u64(&rng);
        struct le32 max_dev;
        memcpy(&max_dev, raw + 220, 4);
        if (le32_get(max_dev) <= SUPER_ROLES_MAX)
            fix_checksum(raw);
        if (decode(raw, &super, &diag) != SUPER_OK)
            continue;
        good++;
        super_encode(&super, 512, again);
        CU_ASSERT_EQUAL(memcmp(raw, again, sizeof(raw)), 0);
    }
    CU_ASSERT(good > 0);
}

static void
places_are_those_of_md(void)
{
    uint64_t off;
    CU_ASSERT(super_place(2, MIB(8), &off) && off == 4096);
    CU_ASSERT(super_place(1, MIB(8), &off) && off == 0);
    CU_ASSERT(super_place(0, MIB(8), &off) && off == 16368 * 512); /* golden raid1x2-v1.0 */
    CU_ASSERT(super_place(0, MIB(8) + 4608, &off) && off == 16376 * 512);
    CU_ASSERT(!super_place(3, MIB(8), &off));
    CU_ASSERT(!super_place(0, 512, &off));
    CU_ASSERT(!super_place(2, 0, &off));
    for (uint64_t size = 0; size < KIB(64); size += 512)
        for (uint32_t minor = 0; minor < 3; minor++)
            CU_ASSERT(!super_place(minor, size, &off) || off + SUPER_BYTES <= size);
}

static void
uuids_are_printed_and_read_as_md_does(void)
{
    uint8_t uuid[16];
    char text[36];
    CU_ASSERT(super_uuid_parse("23f6dc26:9a765b61:29e83388:fb254757", uuid));
    super_uuid_text(uuid, text);
    CU_ASSERT_STRING_EQUAL(text, "23f6dc26:9a765b61:29e83388:fb254757");
    CU_ASSERT(super_uuid_parse("23F6DC269A765B6129E83388FB254757", uuid));
    super_uuid_text(uuid, text);
    CU_ASSERT_STRING_EQUAL(text, "23f6dc26:9a765b61:29e83388:fb254757");
    CU_ASSERT(super_uuid_parse("23f6dc26-9a76-5b61-29e8-3388fb254757", uuid));
    CU_ASSERT(!super_uuid_parse("23f6dc26", uuid));
    CU_ASSERT(!super_uuid_parse("23f6dc26:9a765b61:29e83388:fb25475g", uuid));
    CU_ASSERT(!super_uuid_parse("23f6dc26:9a765b61:29e83388:fb2547577", uuid));
    CU_ASSERT(!super_uuid_parse("", uuid));
}

static void
the_short_name_has_no_host(void)
{
    struct super super;
    sample_super(&super, 5, 4, 0, 1);
    CU_ASSERT_STRING_EQUAL(super_short_name(&super), "sample");
    snprintf(super.name, sizeof(super.name), "tank");
    CU_ASSERT_STRING_EQUAL(super_short_name(&super), "tank");
    snprintf(super.name, sizeof(super.name), "host:");
    CU_ASSERT_STRING_EQUAL(super_short_name(&super), "host:");
}

static void
dropping_the_ppl_clears_its_place_too(void)
{
    struct super super, read;
    struct diag diag;
    uint8_t raw[SUPER_BYTES];
    sample_super(&super, 5, 4, 0, 1);
    super.features = SUPER_MULTIPLE_PPLS;
    super.ppl_offset_sectors = 8;
    super.ppl_sectors = 2048;
    super_encode(&super, 512, raw);
    CU_ASSERT_EQUAL(decode(raw, &read, &diag), SUPER_OK);
    CU_ASSERT_EQUAL(read.ppl_sectors, 2048);
    super_drop_ppl(&read);
    super_encode(&read, 512, raw);
    CU_ASSERT_EQUAL(decode(raw, &read, &diag), SUPER_OK);
    CU_ASSERT_EQUAL(read.features, 0);
    CU_ASSERT_EQUAL(memcmp(raw + 96, "\0\0\0\0", 4), 0);
}

static void
put_bad(uint8_t *raw, unsigned index, uint64_t sector, uint64_t length)
{
    struct le64 entry = le64_make(sector << 10 | length);
    memcpy(raw + 8 * index, entry.bytes, 8);
}

static void
bad_blocks_are_sorted_and_bounded(void)
{
    static struct bad_range out[BAD_RANGES_MAX];
    uint8_t raw[4096];
    memset(raw, 0xff, sizeof(raw));
    CU_ASSERT_EQUAL(bad_blocks_decode(raw, sizeof(raw), 0, out), 0);
    put_bad(raw, 0, 3048, 8); /* the order that md left behind */
    put_bad(raw, 1, 7560, 188);
    put_bad(raw, 2, 9999, 0);
    put_bad(raw, 3, 7048, 512);
    CU_ASSERT_EQUAL(bad_blocks_decode(raw, sizeof(raw), 0, out), 3);
    CU_ASSERT(out[0].off_bytes == 3048 * 512 && out[0].len_bytes == 8 * 512);
    CU_ASSERT(out[1].off_bytes == 7048 * 512 && out[1].len_bytes == 512 * 512);
    CU_ASSERT(out[2].off_bytes == 7560 * 512 && out[2].len_bytes == 188 * 512);
    CU_ASSERT_EQUAL(bad_blocks_decode(raw, sizeof(raw), 3, out), 3);
    CU_ASSERT(out[0].off_bytes == 3048 * 4096 && out[0].len_bytes == 8 * 4096);
    CU_ASSERT_EQUAL(bad_blocks_decode(raw, 12, 0, out), 1);
    memset(raw, 0xfe, sizeof(raw)); /* beyond any device: dropped */
    CU_ASSERT_EQUAL(bad_blocks_decode(raw, sizeof(raw), 20, out), 0);
}

static void
mdadm_finds_the_checksum_correct(void)
{
    struct super super;
    uint8_t raw[SUPER_BYTES];
    char path[] = "/tmp/sr5-super-XXXXXX", command[256], line[256];
    bool correct = false, clean = false;
    if (system("mdadm --version >/dev/null 2>&1") != 0) {
        printf("skipped: no mdadm here ");
        return;
    }
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)SAMPLE_DEVICE_BYTES) == 0);
    sample_super(&super, 5, 4, 2, 4711);
    super_encode(&super, 512, raw);
    CU_ASSERT_EQUAL(pwrite(fd, raw, sizeof(raw), SUPER_OFF), (ssize_t)sizeof(raw));
    snprintf(command, sizeof(command), "mdadm --examine %s 2>&1", path);
    FILE *pipe = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
    while (fgets(line, sizeof(line), pipe) != NULL) {
        correct |= strstr(line, "Checksum") != NULL && strstr(line, "- correct") != NULL;
        clean |= strstr(line, "State : clean") != NULL;
    }
    CU_ASSERT_EQUAL(pclose(pipe), 0);
    CU_ASSERT(correct);
    CU_ASSERT(clean);
    close(fd);
    unlink(path);
}

SUITE_MAIN("super", T(what_is_encoded_is_decoded), T(bytes_that_are_not_understood_are_kept),
           T(the_kernel_would_refuse_it_and_so_do_we), T(any_flipped_bit_is_seen),
           T(garbage_with_a_right_checksum_is_survived), T(places_are_those_of_md),
           T(uuids_are_printed_and_read_as_md_does), T(the_short_name_has_no_host),
           T(dropping_the_ppl_clears_its_place_too), T(bad_blocks_are_sorted_and_bounded),
           T(mdadm_finds_the_checksum_correct))
