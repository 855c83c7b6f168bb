/* Creating arrays: what is written, what is refused, and what a fault at any point leaves. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/bitset.h"

#include "engine/create.h"
#include "engine/meta/region.h"
#include "tests/unit/mem_blob.h"
#include "tests/unit/sample.h"
#include "tests/unit/suite.h"

#define SET_MAX    8
#define WALL_NS    (UINT64_C(1700000000) * SECOND_NS)
#define SMALL      MIB(16)
#define ENDED_GOOD 0

static struct mem_faults faults;

/* Members in memory and what create said about them. */
static struct set {
    struct mem_blob *mem[SET_MAX];
    struct blob *blobs[SET_MAX];
    bool zeroed[SET_MAX];
    uint64_t hashes[SET_MAX];
    uint32_t count;
    struct create_result result;
    struct diag diag;
} set;

static struct create_options
options_of(enum raid_level level)
{
    return (struct create_options){.name = "tank",
                                   .level = level,
                                   .layout = layout_default(level),
                                   .chunk_bytes = KIB(64),
                                   .init = INIT_LAZY,
                                   .consistency = "log",
                                   .policy = "auto",
                                   .wall_ns = WALL_NS};
}

static void
set_free(void)
{
    for (uint32_t i = 0; i < set.count; i++)
        mem_blob_free(set.mem[i]);
    memset(&set, 0, sizeof(set));
}

static void
set_of(uint32_t count, uint64_t bytes)
{
    set_free();
    memset(&faults, 0, sizeof(faults));
    for (set.count = 0; set.count < count; set.count++) {
        set.mem[set.count] = mem_blob_new(&faults, bytes, set.count);
        set.blobs[set.count] = &set.mem[set.count]->blob;
    }
}

/* Something to lose: every byte of the members is known. */
static void
fill_members(uint64_t seed)
{
    struct rng rng;
    rng_seed(&rng, seed);
    for (uint32_t i = 0; i < set.count; i++) {
        uint8_t *front = set.mem[i]->bytes;
        uint8_t *back = front + set.blobs[i]->size_bytes - MEM_EDGE_BYTES;
        for (uint64_t at = 0; at < MEM_EDGE_BYTES; at += KIB(4)) {
            rng_fill(&rng, front + at, 64);
            rng_fill(&rng, back + at, 64);
        }
        rng_fill(&rng, front + MIB(8), KIB(64)); /* and some in the middle */
    }
}

static void
remember(void)
{
    for (uint32_t i = 0; i < set.count; i++)
        set.hashes[i] = mem_blob_hash(set.mem[i]);
}

static bool
unchanged(void)
{
    for (uint32_t i = 0; i < set.count; i++)
        if (set.mem[i]->data_written || set.hashes[i] != mem_blob_hash(set.mem[i]))
            return false;
    return true;
}

static int
create(const struct create_options *options, uint32_t spares)
{
    memset(&set.diag, 0, sizeof(set.diag));
    struct create_members members = {set.blobs, set.zeroed, set.count - spares, spares};
    return create_array(options, &members, &set.result, &set.diag);
}

static struct probe *
probe_member(uint32_t i)
{
    static struct probe probe;
    probe_destroy(&probe);
    CU_ASSERT_EQUAL_FATAL(probe_blob(set.blobs[i], set.blobs[i]->path, &probe, &set.diag), 0);
    return &probe;
}

/* What decide() makes of all members; *found: how many carry a superblock. */
static int
judge(struct decision *decision, uint32_t *found)
{
    static struct probe probes[SET_MAX];
    const struct candidate *candidates[SET_MAX] = {NULL};
    *found = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        CU_ASSERT_EQUAL_FATAL(probe_blob(set.blobs[i], set.blobs[i]->path, &probes[i], &set.diag),
                              0);
        if (probes[i].candidate.has_super)
            candidates[(*found)++] = &probes[i].candidate;
    }
    int err = decide(candidates, *found, NULL, decision, &set.diag);
    for (uint32_t i = 0; i < set.count; i++)
        probe_destroy(&probes[i]);
    return err;
}

/* P4 and the closed list of codes. */
static void
refused(const struct create_options *options, uint32_t spares, const char *code)
{
    remember();
    CU_ASSERT(create(options, spares) < 0);
    if (set.diag.code == NULL || strcmp(set.diag.code, code) != 0)
        printf("\n  not %s: %s\n", code, set.diag.message);
    CU_ASSERT(set.diag.code != NULL && strcmp(set.diag.code, code) == 0);
    CU_ASSERT(unchanged());
}

static const struct {
    enum raid_level level;
    uint32_t members;
} shapes[] = {{RAID0, 3}, {RAID1, 2}, {RAID1, 3}, {RAID4, 4},  {RAID5, 3},
              {RAID5, 5}, {RAID6, 4}, {RAID6, 6}, {RAID10, 4}, {RAID10, 3}};
#define SHAPE_COUNT (sizeof(shapes) / sizeof(shapes[0]))

static void
every_level_is_complete_after_create(void)
{
    for (size_t k = 0; k < SHAPE_COUNT; k++) {
        struct create_options options = options_of(shapes[k].level);
        struct decision decision;
        uint32_t found;
        set_of(shapes[k].members, SMALL);
        fill_members(k);
        CU_ASSERT_EQUAL_FATAL(create(&options, 0), 0);
        CU_ASSERT_EQUAL(judge(&decision, &found), 0);
        CU_ASSERT_EQUAL(found, set.count);
        CU_ASSERT_EQUAL(decision.present_roles, mask_below(set.count));
        CU_ASSERT(decision.complete);
        CU_ASSERT_EQUAL(decision.dirty, shapes[k].level != RAID0);
        for (uint32_t i = 0; i < set.count; i++) {
            const struct probe *p = probe_member(i);
            const struct super *s = &p->candidate.super;
            CU_ASSERT_EQUAL(super_role(s), i);
            CU_ASSERT_EQUAL(memcmp(s->array_uuid, set.result.uuid, 16), 0);
            CU_ASSERT_STRING_EQUAL(s->name, "tank");
            CU_ASSERT(p->candidate.has_area && p->candidate.area.generation == 1);
            CU_ASSERT_EQUAL(p->candidate.area.events, s->events);
            CU_ASSERT(!p->candidate.area.initialised || shapes[k].level == RAID0);
            CU_ASSERT_EQUAL(sectors_to_bytes(s->data_offset_sectors), set.result.data_offset_bytes);
            if (shapes[k].level == RAID0) {
                CU_ASSERT(s->events == 0 && s->used_sectors == 0 && s->layout == RAID0_ORIGINAL);
                continue;
            }
            CU_ASSERT_EQUAL(p->bitmap_verdict, BITMAP_OK);
            CU_ASSERT_EQUAL(bitset_count((const uint64_t *)(const void *)(p->bitmap_raw + 256),
                                         bitmap_bit_count(&p->bitmap)),
                            bitmap_bit_count(&p->bitmap)); /* all not in sync */
        }
    }
}

static void
members_known_to_be_zero_are_in_sync(void)
{
    static const enum create_init inits[] = {INIT_LAZY, INIT_ZERO, INIT_RESYNC};
    for (size_t k = 0; k < 3; k++) {
        struct create_options options = options_of(RAID5);
        struct decision decision;
        uint32_t found;
        options.init = inits[k];
        set_of(4, SMALL);
        memset(set.zeroed, 1, sizeof(set.zeroed));
        CU_ASSERT_EQUAL_FATAL(create(&options, 0), 0);
        CU_ASSERT_EQUAL(set.result.in_sync, inits[k] != INIT_RESYNC);
        CU_ASSERT_EQUAL(judge(&decision, &found), 0);
        CU_ASSERT_EQUAL(decision.dirty, inits[k] == INIT_RESYNC);
        const struct probe *p = probe_member(2);
        CU_ASSERT_EQUAL(p->candidate.area.initialised, inits[k] != INIT_RESYNC);
        CU_ASSERT_EQUAL(bitset_count((const uint64_t *)(const void *)(p->bitmap_raw + 256),
                                     bitmap_bit_count(&p->bitmap)),
                        inits[k] == INIT_RESYNC ? bitmap_bit_count(&p->bitmap) : 0);
    }
}

static void
init_zero_leaves_nothing_of_before(void)
{
    struct create_options options = options_of(RAID5);
    options.init = INIT_ZERO;
    set_of(3, SMALL);
    fill_members(5);
    CU_ASSERT_EQUAL_FATAL(create(&options, 0), 0);
    CU_ASSERT(set.result.in_sync);
    uint64_t end = MIB(3) + set.result.geometry.member_bytes;
    for (uint32_t i = 0; i < 3; i++)
        for (uint64_t at = MIB(3); at < end; at += 512)
            CU_ASSERT(memcmp(set.mem[i]->bytes + at, set.mem[i]->bytes + at + 1, 511) == 0 &&
                      set.mem[i]->bytes[at] == 0);
}

/* What was overwritten with zeroes is gone: its signatures do not come back when a later write
 * fails, or the members would claim to hold data that they no longer have. */
static void
init_zero_that_fails_later_brings_no_signature_back(void)
{
    struct create_options options = options_of(RAID5);
    options.init = INIT_ZERO;
    set_of(3, SMALL);
    CU_ASSERT_EQUAL_FATAL(create(&options, 0), 0);
    uint64_t operations = faults.operations;
    set_of(3, SMALL);
    fill_members(7);
    faults.fail_at = operations; /* the last flush */
    CU_ASSERT(create(&options, 0) < 0);
    CU_ASSERT(strstr(set.diag.message, "is lost") != NULL);
    for (uint32_t i = 0; i < 3; i++)
        for (uint64_t at = 0; at < SUPER_BYTES; at++)
            CU_ASSERT_EQUAL_FATAL(set.mem[i]->bytes[KIB(4) + at], 0);
}

static void
unequal_members_of_raid0_give_all_they_have(void)
{
    struct create_options options = options_of(RAID0);
    set_of(3, SMALL);
    for (uint32_t i = 1; i < 3; i++) {
        mem_blob_free(set.mem[i]);
        set.mem[i] = mem_blob_new(&faults, SMALL + i * MIB(8) + 12 * KIB(1), i);
        set.blobs[i] = &set.mem[i]->blob;
    }
    CU_ASSERT_EQUAL_FATAL(create(&options, 0), 0);
    for (uint32_t i = 0; i < 3; i++) {
        const struct super *s = &probe_member(i)->candidate.super;
        CU_ASSERT_EQUAL(sectors_to_bytes(s->data_sectors), set.result.geometry.role_bytes[i]);
        CU_ASSERT_EQUAL(s->features, SUPER_RAID0_LAYOUT);
    }
    CU_ASSERT(set.result.geometry.role_bytes[2] > set.result.geometry.role_bytes[1]);
    CU_ASSERT_EQUAL(set.result.geometry.zone_count, 3);
}

static void
spares_are_spares(void)
{
    struct create_options options = options_of(RAID6);
    struct decision decision;
    uint32_t found;
    set_of(6, SMALL);
    CU_ASSERT_EQUAL_FATAL(create(&options, 2), 0);
    CU_ASSERT_EQUAL(judge(&decision, &found), 0);
    CU_ASSERT_EQUAL(decision.present_roles, 0xf);
    CU_ASSERT_EQUAL(decision.members[4].class, MEMBER_SPARE);
    CU_ASSERT_EQUAL(decision.members[5].class, MEMBER_SPARE);
}

/* user-cases A10: what dry-run prints adds up. */
static void
a10_the_sum_of_rows_is_raw(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (unsigned k = 0; k < 60; k++) {
        size_t shape = rng_below(&rng, SHAPE_COUNT);
        struct create_options options = options_of(shapes[shape].level);
        set_of(shapes[shape].members, SMALL + 512 * rng_below(&rng, 20000));
        options.chunk_bytes = KIB(4) << rng_below(&rng, 8);
        options.dry_run = true;
        remember();
        CU_ASSERT_EQUAL_FATAL(create(&options, 0), 0);
        const struct create_result *r = &set.result;
        CU_ASSERT_EQUAL(r->raw_bytes, set.count * set.blobs[0]->size_bytes);
        CU_ASSERT_EQUAL(r->raw_bytes, r->geometry.array_bytes + r->parity_bytes +
                                          r->metadata_bytes + r->log_bytes + r->slack_bytes);
        CU_ASSERT(unchanged());
        CU_ASSERT_EQUAL(faults.operations, 0); /* a dry run writes nothing at all */
    }
}

static void
what_makes_no_sense_is_refused_unchanged(void)
{
    static const char *const bad_names[] = {
        "", "a/b", "a:b", "a b", "a\tb", "..", "-x", "123456789012345678901234567890123"};
    struct create_options options = options_of(RAID5);
    set_of(4, SMALL);
    fill_members(1);
    for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++) {
        options.name = bad_names[i];
        refused(&options, 0, "E_NAME");
    }
    options = options_of(RAID5);
    refused(&options, 2, "E_GEOMETRY"); /* two members and two spares */
    options = options_of(RAID0);
    refused(&options, 1, "E_GEOMETRY");
    options = options_of(RAID5);
    options.chunk_bytes = KIB(48);
    refused(&options, 0, "E_GEOMETRY");
    options.chunk_bytes = MIB(32);
    refused(&options, 0, "E_MEMBER_SHORT");
    options = options_of(RAID5);
    options.layout = 99;
    refused(&options, 0, "E_LAYOUT_UNKNOWN");
    options = options_of(RAID5);
    options.consistency = "hope";
    refused(&options, 0, "E_USAGE");
}

static void
unfit_members_are_refused_unchanged(void)
{
    struct create_options options = options_of(RAID5);
    set_of(4, SMALL);
    set.blobs[2]->logical_bytes = 4096;
    refused(&options, 0, "E_SECTOR_SIZE"); /* user-cases A9 */
    CU_ASSERT(strstr(set.diag.message, "array=512 member=4096") != NULL);
    set_of(4, SMALL - 512);
    refused(&options, 0, "E_MEMBER_SHORT");
    CU_ASSERT(strstr(set.diag.message, "need=16777216 have=16776704") != NULL);
    set_of(4, SMALL);
    struct blob *third = set.blobs[2];
    set.blobs[2] = set.blobs[0];
    refused(&options, 0, "E_DUPLICATE");
    set.blobs[2] = third;
    mem_blob_free(set.mem[3]);
    set.mem[3] = mem_blob_new(&faults, SMALL - MIB(1), 3);
    set.blobs[3] = &set.mem[3]->blob;
    refused(&options, 1, "E_MEMBER_SHORT"); /* a spare that could never take over */
}

/* user-cases A1: create typed instead of start. */
static void
a1_members_of_an_array_are_refused_unless_it_is_named(void)
{
    struct create_options options = options_of(RAID5);
    char uuid8[40];
    set_of(3, SMALL);
    CU_ASSERT_EQUAL_FATAL(create(&options, 0), 0);
    super_uuid_text(set.result.uuid, uuid8);
    uuid8[8] = '\0';
    refused(&options, 0, "E_MEMBER_OF_ARRAY");
    CU_ASSERT(strstr(set.diag.message, "tank") != NULL);
    CU_ASSERT(strstr(set.diag.message, uuid8) != NULL);
    CU_ASSERT(strstr(set.diag.fix[1], uuid8) != NULL);
    options.overwrite_array = "00000000";
    refused(&options, 0, "E_MEMBER_OF_ARRAY");
    memset(set.mem[0]->bytes, 0, MIB(1)); /* only the backup is left of it */
    options.overwrite_array = NULL;
    refused(&options, 0, "E_MEMBER_OF_ARRAY");
    options.overwrite_array = uuid8;
    CU_ASSERT_EQUAL(create(&options, 0), 0);
    struct decision decision;
    uint32_t found;
    CU_ASSERT_EQUAL(judge(&decision, &found), 0);
    CU_ASSERT(found == 3 && decision.complete);
    CU_ASSERT_EQUAL(probe_member(1)->signature_count, 2); /* md1.2 and sr5: nothing else */
}

/* user-cases A4: headers of before do not come back. */
static void
a4_old_raid_headers_are_named_and_wiped(void)
{
    static const struct {
        uint32_t minor;
        const char *kind;
    } cases[] = {{0, "md1.0"}, {1, "md1.1"}, {2, "md1.2"}, {9, "md0.90"}};
    static struct super super;
    for (size_t k = 0; k < 4; k++) {
        struct create_options options = options_of(RAID1);
        uint64_t off = SMALL - KIB(64);
        uint8_t raw[SUPER_BYTES] = {0xfc, 0x4e, 0x2b, 0xa9};
        set_of(2, SMALL);
        if (cases[k].minor < 3) {
            CU_ASSERT(super_place(cases[k].minor, SMALL, &off));
            sample_super(&super, 1, 2, 0, 5);
            super_encode(&super, 512, raw);
            raw[70] ^= 1; /* a checksum that is wrong: still something */
        }
        memcpy(set.mem[1]->bytes + off, raw, sizeof(raw));
        refused(&options, 0, "E_SIGNATURE");
        char what[64];
        snprintf(what, sizeof(what), "kind=%s at=%" PRIu64, cases[k].kind, off);
        CU_ASSERT(strstr(set.diag.message, what) != NULL);
        options.overwrite_signature = "ext4";
        refused(&options, 0, "E_SIGNATURE");
        options.overwrite_signature = cases[k].kind;
        CU_ASSERT_EQUAL(create(&options, 0), 0);
        CU_ASSERT_EQUAL(probe_member(1)->signature_count, 2);
    }
}

/* user-cases A14: an error at any write or flush leaves everything as it was. */
static void
a14_an_error_at_any_point_puts_everything_back(void)
{
    struct create_options options = options_of(RAID5);
    uint64_t at = 1;
    for (;; at++) {
        set_of(3, SMALL);
        fill_members(at);
        remember();
        faults.fail_at = at;
        if (create(&options, 0) == ENDED_GOOD)
            break;
        CU_ASSERT_STRING_EQUAL(set.diag.code, "E_WRITE");
        CU_ASSERT(strstr(set.diag.message, "put back") != NULL);
        CU_ASSERT(unchanged());
    }
    CU_ASSERT(at > 20); /* all of them were tried */
}

/* user-cases A14: a cut at any point leaves no array, or a complete one; and create works again. */
static void
a14_a_cut_at_any_point_leaves_no_array_or_all_of_it(void)
{
    struct rng rng;
    uint32_t none = 0, complete = 0;
    rng_seed(&rng, suite_seed());
    for (size_t k = 0; k < SHAPE_COUNT; k += 3) {
        struct create_options options = options_of(shapes[k].level);
        bool done = false;
        for (uint64_t at = 1; !done; at++) {
            struct decision decision;
            uint32_t found;
            set_of(shapes[k].members, SMALL);
            faults.cut_at = at;
            done = create(&options, 0) == ENDED_GOOD;
            memset(&faults, 0, sizeof(faults));
            for (uint32_t i = 0; i < set.count; i++)
                mem_blob_after_cut(set.mem[i], &rng);
            if (judge(&decision, &found) == 0) {
                CU_ASSERT_EQUAL(found, set.count);
                CU_ASSERT_EQUAL(decision.present_roles, mask_below(set.count));
                CU_ASSERT(decision.complete);
                complete++;
                continue;
            }
            none++;
            CU_ASSERT(strcmp(set.diag.code, "E_CREATE_UNFINISHED") == 0 ||
                      strcmp(set.diag.code, "E_NO_MEMBERS") == 0);
            if (found > 0)
                CU_ASSERT_STRING_EQUAL(set.diag.code, "E_CREATE_UNFINISHED");
            CU_ASSERT_EQUAL(create(&options, 0), 0); /* no option needed over the remains */
            CU_ASSERT_EQUAL(judge(&decision, &found), 0);
            CU_ASSERT(decision.complete);
        }
    }
    CU_ASSERT(none > 0 && complete > 0);
}

static void
mdadm_reads_what_create_wrote(void)
{
    if (system("mdadm --version >/dev/null 2>&1") != 0) {
        printf("skipped: no mdadm here ");
        return;
    }
    for (size_t k = 0; k < SHAPE_COUNT; k++) {
        struct create_options options = options_of(shapes[k].level);
        char path[] = "/tmp/sr5-create-XXXXXX", command[256], line[256], all[8192] = "";
        set_of(shapes[k].members, SMALL);
        memset(set.zeroed, 1, sizeof(set.zeroed));
        CU_ASSERT_EQUAL_FATAL(create(&options, 0), 0);
        int fd = mkstemp(path);
        CU_ASSERT_FATAL(fd >= 0);
        CU_ASSERT_EQUAL(pwrite(fd, set.mem[1]->bytes, SMALL, 0), (ssize_t)SMALL);
        snprintf(command, sizeof(command),
                 "mdadm --examine %s 2>&1; dd if=%s bs=4096 skip=2 count=1 of=%s.b 2>/dev/null; "
                 "mdadm -X %s.b 2>&1; rm -f %s.b",
                 path, path, path, path, path);
        FILE *pipe = popen(command, "r");
        CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
        while (fgets(line, sizeof(line), pipe) != NULL)
            strncat(all, line, sizeof(all) - strlen(all) - 1);
        pclose(pipe);
        CU_ASSERT(strstr(all, "- correct") != NULL);
        CU_ASSERT(strstr(all, "Name : tank") != NULL);
        CU_ASSERT(strstr(all, "State : clean") != NULL);
        CU_ASSERT(strstr(all, "Device Role : Active device 1") != NULL);
        if (shapes[k].level != RAID0) { /* of RAID 0 it cannot tell the size */
            snprintf(line, sizeof(line), "Array Size : %" PRIu64 " KiB",
                     set.result.geometry.array_bytes / 1024);
            CU_ASSERT(strstr(all, line) != NULL);
            CU_ASSERT(strstr(all, "0 dirty (0.0%)") != NULL);
        }
        close(fd);
        unlink(path);
    }
    set_free();
}

SUITE_MAIN("create", T(every_level_is_complete_after_create),
           T(members_known_to_be_zero_are_in_sync), T(init_zero_leaves_nothing_of_before),
           T(init_zero_that_fails_later_brings_no_signature_back),
           T(unequal_members_of_raid0_give_all_they_have), T(spares_are_spares),
           T(a10_the_sum_of_rows_is_raw), T(what_makes_no_sense_is_refused_unchanged),
           T(unfit_members_are_refused_unchanged),
           T(a1_members_of_an_array_are_refused_unless_it_is_named),
           T(a4_old_raid_headers_are_named_and_wiped),
           T(a14_an_error_at_any_point_puts_everything_back),
           T(a14_a_cut_at_any_point_leaves_no_array_or_all_of_it), T(mdadm_reads_what_create_wrote))
