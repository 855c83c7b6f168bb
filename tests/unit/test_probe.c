/* Probing real members (of the kernel's md) and damaged ones. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/bitset.h"

#include "engine/probe.h"
#include "tests/unit/golden.h"
#include "tests/unit/mem_blob.h"
#include "tests/unit/sample.h"
#include "tests/unit/suite.h"

static struct mem_faults no_faults;

static struct mem_blob *
load(const char *path)
{
    struct stat status;
    FILE *file = fopen(path, "r");
    CU_ASSERT_FATAL(file != NULL && fstat(fileno(file), &status) == 0);
    struct mem_blob *mem = mem_blob_new(&no_faults, (uint64_t)status.st_size, 0);
    CU_ASSERT_EQUAL(fread(mem->bytes, 1, (size_t)status.st_size, file), (size_t)status.st_size);
    fclose(file);
    return mem;
}

static void
compare(const struct golden *g, const struct golden_member *m, const struct probe *p)
{
    const struct super *s = &p->candidate.super;
    uint16_t role = super_role(s);
    CU_ASSERT(p->candidate.has_super && !p->candidate.super_from_backup);
    CU_ASSERT(!p->candidate.has_area && p->read_err == 0);
    CU_ASSERT_EQUAL((uint32_t)s->level, g->level);
    CU_ASSERT_EQUAL(s->raid_disks, g->raid_disks);
    CU_ASSERT_EQUAL(s->layout, g->layout);
    CU_ASSERT_EQUAL(sectors_to_bytes(s->chunk_sectors), g->chunk_bytes);
    CU_ASSERT_EQUAL(sectors_to_bytes(s->used_sectors), g->component_bytes);
    CU_ASSERT_EQUAL(s->dev_number, m->dev_number);
    CU_ASSERT_EQUAL(role == SUPER_ROLE_SPARE     ? -1
                    : role == SUPER_ROLE_JOURNAL ? -2
                                                 : (int32_t)role,
                    m->role);
    CU_ASSERT_EQUAL(s->events, m->events);
    CU_ASSERT_EQUAL(s->features, m->features);
    CU_ASSERT_EQUAL(s->data_offset_sectors, m->data_offset_sectors);
    CU_ASSERT_EQUAL(s->data_sectors, m->data_sectors);
    CU_ASSERT_EQUAL(s->resync_offset_sectors, m->resync_offset_sectors);
    CU_ASSERT_EQUAL(s->recovery_offset_sectors, m->recovery_offset_sectors);
    CU_ASSERT(strcmp(super_short_name(s), g->name) == 0 || strstr(g->name, "reshape") != NULL);
    CU_ASSERT_EQUAL(p->bitmap_verdict, m->features & SUPER_BITMAP ? BITMAP_OK : BITMAP_NONE);
    CU_ASSERT_STRING_EQUAL(p->foreign, "");
    CU_ASSERT_EQUAL(p->signature_count, 1);
    uint8_t again[SUPER_BYTES];
    super_encode(s, 512, again);
    CU_ASSERT_EQUAL(memcmp(again, s->raw, SUPER_BYTES), 0);
}

static const char *
expected_refusal(const char *name)
{
    if (strstr(name, "reshape") != NULL)
        return "E_RESHAPE";
    if (strstr(name, "journal") != NULL)
        return "E_JOURNAL";
    return strcmp(name, "raid5x4-ppl-dirty") == 0 ? "E_PPL_DIRTY" : NULL;
}

/* What decide() must say of any subset: from the manifest's numbers alone. */
static void
decide_subset(const struct golden *g, const struct probe *probes, uint64_t mask)
{
    const struct candidate *some[GOLDEN_MEMBERS_MAX] = {NULL};
    struct decision d;
    struct diag diag = {0};
    uint64_t newest = 0, roles = 0, usable = 0;
    uint32_t count = 0;
    bool any = false;
    mask_for_each (i, mask) {
        some[count++] = &probes[i].candidate;
        any |= g->members[i].role >= 0;
        if (g->members[i].role >= 0)
            newest = MAX(newest, g->members[i].events);
    }
    int err = decide(some, count, NULL, &d, &diag);
    const char *refusal = any ? expected_refusal(g->name) : "E_NO_MEMBERS";
    if (refusal != NULL) {
        CU_ASSERT_EQUAL(err, -EINVAL);
        CU_ASSERT(diag.code != NULL && strcmp(diag.code, refusal) == 0);
        return;
    }
    CU_ASSERT_EQUAL_FATAL(err, 0);
    mask_for_each (i, mask) {
        const struct golden_member *m = &g->members[i];
        if (m->role < 0 || m->events + 1 < newest)
            continue;
        usable |= mask_of((uint32_t)m->role);
        if (!(m->features & SUPER_REPLACEMENT))
            roles |= mask_of((uint32_t)m->role);
    }
    CU_ASSERT_EQUAL(d.present_roles, roles);
    CU_ASSERT_EQUAL(d.complete, (d.listed_roles & ~usable) == 0);
    CU_ASSERT_EQUAL(d.dirty, strstr(g->name, "dirty") != NULL);
}

static void
check_set(const char *name, const char *folder)
{
    static struct probe probes[GOLDEN_MEMBERS_MAX];
    struct golden g;
    struct diag diag;
    CU_ASSERT_FATAL(golden_unpack(name, folder, &g));
    for (uint32_t i = 0; i < g.member_count; i++) {
        struct mem_blob *mem = load(g.members[i].path);
        CU_ASSERT_EQUAL(mem->blob.size_bytes, g.members[i].bytes);
        CU_ASSERT_EQUAL(probe_blob(&mem->blob, g.members[i].path, &probes[i], &diag), 0);
        compare(&g, &g.members[i], &probes[i]);
        if (strcmp(name, "raid1x2-badblocks") == 0 && i == 1) {
            CU_ASSERT_EQUAL(probes[i].bad_count, 3);
            CU_ASSERT_EQUAL(probes[i].bad[0].off_bytes, 3048 * 512);
            CU_ASSERT_EQUAL(probes[i].bad[2].len_bytes, 188 * 512);
        } else {
            CU_ASSERT_EQUAL(probes[i].bad_count, 0);
        }
        if (strcmp(name, "raid5x4-bitmap-dirty") == 0)
            CU_ASSERT_EQUAL(
                bitset_count((const uint64_t *)(const void *)(probes[i].bitmap_raw + 256),
                             bitmap_bit_count(&probes[i].bitmap)),
                22);
        mem_blob_free(mem);
        unlink(g.members[i].path);
    }
    for (uint64_t mask = 1; mask <= mask_below(g.member_count); mask++)
        decide_subset(&g, probes, mask);
    for (uint32_t i = 0; i < g.member_count; i++)
        probe_destroy(&probes[i]);
}

static void
members_made_by_md_are_read_as_their_manifest_says(void)
{
    char folder[] = "/tmp/sr5-probe-XXXXXX", **names;
    uint32_t count;
    if (!golden_names(&names, &count)) {
        printf("skipped: no golden images here ");
        return;
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    for (uint32_t i = 0; i < count; i++)
        check_set(names[i], folder);
    rmdir(folder);
    golden_names_free(names, count);
}

/* ---- damaged ones --------------------------------------------------------------------------- */

static struct mem_blob *
sample_member(uint32_t dev, uint64_t events, struct super *super)
{
    struct mem_blob *mem = mem_blob_new(&no_faults, SAMPLE_DEVICE_BYTES, dev);
    sample_super(super, 5, 4, dev, events);
    super->data_offset_sectors = 6144; /* room for an area */
    super->data_sectors = 40960;
    super_encode(super, 512, mem->bytes + 4096);
    return mem;
}

static void
put_area(struct mem_blob *mem, const struct super *super, uint64_t generation, unsigned slot)
{
    struct area area;
    sample_area(&area, super);
    area.generation = generation;
    area_encode(&area, mem->bytes + AREA_OFF_BYTES + slot * AREA_SLOT_BYTES);
}

static void
a5_a_lost_first_mib_is_survived_by_the_backup(void)
{
    static struct super super;
    static struct probe probe;
    struct diag diag;
    struct mem_blob *mem = sample_member(1, 17, &super);
    put_area(mem, &super, 5, 1);
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT(probe.candidate.has_super && !probe.candidate.super_from_backup);
    CU_ASSERT(probe.candidate.has_area && probe.area_slot == 1);
    probe_destroy(&probe);
    memset(mem->bytes, 0, MIB(1));
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT(probe.candidate.has_super && probe.candidate.super_from_backup);
    CU_ASSERT_EQUAL(super_role(&probe.candidate.super), 1);
    CU_ASSERT_EQUAL(probe.candidate.super.events, 17);
    CU_ASSERT_EQUAL(probe.candidate.super.resync_offset_sectors, 0); /* not known to be clean */
    probe_destroy(&probe);
    memset(mem->bytes, 0, MIB(2));
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT(!probe.candidate.has_super && !probe.area_found && probe.signature_count == 0);
    mem_blob_free(mem);
}

static void
an_area_of_another_time_is_discarded(void)
{
    static struct super super, other;
    static struct probe probe;
    struct diag diag;
    struct mem_blob *mem = sample_member(1, 17, &super);
    other = super;
    memset(other.array_uuid, 1, 16);
    put_area(mem, &other, 5, 0);
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT(probe.area_found && !probe.candidate.has_area);
    super.data_offset_sectors = 2048; /* md has moved the data down over it */
    super_encode(&super, 512, mem->bytes + 4096);
    put_area(mem, &super, 6, 0);
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT(probe.candidate.has_super && !probe.candidate.has_area);
    mem_blob_free(mem);
}

static void
of_several_superblocks_the_newest_counts(void)
{
    static struct super super;
    static struct probe probe;
    struct diag diag;
    struct mem_blob *mem = sample_member(1, 17, &super);
    uint64_t off;
    CU_ASSERT(super_place(0, mem->blob.size_bytes, &off));
    super.minor = 0;
    super.data_offset_sectors = 0;
    super.super_offset_sectors = off / 512;
    super.created_s++;
    super.events = 3;
    super_encode(&super, 512, mem->bytes + off);
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT_EQUAL(probe.supers[0].verdict, SUPER_OK);
    CU_ASSERT_EQUAL(probe.supers[2].verdict, SUPER_OK);
    CU_ASSERT_EQUAL(probe.candidate.super.minor, 0);
    CU_ASSERT_EQUAL(probe.signature_count, 2);
    super.created_s -= 2;
    super_encode(&super, 512, mem->bytes + off);
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT_EQUAL(probe.candidate.super.minor, 2);
    mem_blob_free(mem);
}

static void
an_absurd_bitmap_is_not_believed(void)
{
    static struct super super;
    static struct probe probe;
    struct diag diag;
    struct mem_blob *mem = sample_member(1, 17, &super);
    struct bitmap_header header = {
        .version = 4, .events = 17, .sync_sectors = 40960, .chunk_bytes = 65536};
    super.features = SUPER_BITMAP;
    super.bitmap_offset_sectors = 8;
    super_encode(&super, 512, mem->bytes + 4096);
    memcpy(header.array_uuid, super.array_uuid, 16);
    bitmap_encode(&header, mem->bytes + 8192);
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT_EQUAL(probe.bitmap_verdict, BITMAP_OK);
    CU_ASSERT_EQUAL(probe.bitmap_raw_bytes, 512);
    CU_ASSERT_EQUAL(probe.candidate.bitmap_version, 4);
    probe_destroy(&probe);
    header.sync_sectors = UINT64_C(1) << 50; /* terabytes of bits */
    bitmap_encode(&header, mem->bytes + 8192);
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT_EQUAL(probe.bitmap_verdict, BITMAP_INSANE);
    header.sync_sectors = 40960;
    header.array_uuid[3] ^= 1;
    bitmap_encode(&header, mem->bytes + 8192);
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
    CU_ASSERT_EQUAL(probe.bitmap_verdict, BITMAP_INSANE);
    CU_ASSERT(probe.bitmap_raw == NULL);
    mem_blob_free(mem);
}

static void
any_size_and_any_content_is_survived(void)
{
    static struct super super;
    static struct probe probe;
    struct diag diag;
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (uint64_t size = 0; size < KIB(70); size += 512 + rng_below(&rng, 700)) {
        struct mem_blob *mem = mem_blob_new(&no_faults, size == 0 ? 1 : size, 0);
        rng_fill(&rng, mem->bytes, mem->blob.size_bytes);
        CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
        CU_ASSERT(!probe.candidate.has_super);
        mem_blob_free(mem);
    }
    struct mem_blob *mem = sample_member(1, 17, &super);
    put_area(mem, &super, 5, 1);
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t at =
            rng_chance(&rng, 50) ? 4096 + rng_below(&rng, 512) : MIB(1) + rng_below(&rng, KIB(32));
        uint8_t was = mem->bytes[at];
        mem->bytes[at] = (uint8_t)rng_u64(&rng);
        CU_ASSERT_EQUAL(probe_blob(&mem->blob, "mem", &probe, &diag), 0);
        CU_ASSERT(probe.candidate.has_super); /* one of the two always stands */
        probe_destroy(&probe);
        mem->bytes[at] = was;
    }
    mem_blob_free(mem);
}

/* ---- what others left behind ---------------------------------------------------------------- */

static void
signatures_of_others_are_found_on_files(void)
{
    static struct probe probe;
    struct diag diag;
    char path[] = "/tmp/sr5-foreign-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)MIB(16)) == 0);
    CU_ASSERT_EQUAL(pwrite(fd, "SWAPSPACE2", 10, 4086), 10);
    uint8_t one = 1, pages[4] = {0xff, 0x0f, 0, 0};
    CU_ASSERT_EQUAL(pwrite(fd, &one, 1, 1024), 1);
    CU_ASSERT_EQUAL(pwrite(fd, pages, 4, 1028), 4);
    struct mem_blob *mem = load(path);
    CU_ASSERT_EQUAL(probe_blob(&mem->blob, path, &probe, &diag), 0);
    CU_ASSERT_STRING_EQUAL(probe.foreign, "swap");
    CU_ASSERT_EQUAL(probe.signature_count, 1);
    CU_ASSERT_EQUAL(probe.signatures[0].off_bytes, 4086);
    mem_blob_free(mem);
    close(fd);
    unlink(path);
}

SUITE_MAIN("probe", T(members_made_by_md_are_read_as_their_manifest_says),
           T(a5_a_lost_first_mib_is_survived_by_the_backup),
           T(an_area_of_another_time_is_discarded), T(of_several_superblocks_the_newest_counts),
           T(an_absurd_bitmap_is_not_believed), T(any_size_and_any_content_is_survived),
           T(signatures_of_others_are_found_on_files))
