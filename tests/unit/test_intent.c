/* What is on the members at each instant: active mark, intent bits, resync position, and what the
 * resync job and the lazy clearing make of them. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/array_rig.h"
#include "tests/unit/suite.h"

#define SUPER_OFF  4096u
#define BITMAP_OFF 8192u

static const struct rig_config shapes[] = {
    {.level = RAID1, .member_count = 2},
    {.level = RAID5, .layout = LEFT_SYMMETRIC, .member_count = 4, .chunk_bytes = KIB(16)},
    {.level = RAID6, .layout = LEFT_SYMMETRIC, .member_count = 5, .chunk_bytes = KIB(8)},
    {.level = RAID10, .layout = 0x102, .member_count = 4, .chunk_bytes = KIB(16)},
    {.level = RAID10, .layout = 0x201, .member_count = 3, .chunk_bytes = KIB(16)},
};

static void
init(struct rig *rig, uint32_t shape, bool bitmap, bool dirty)
{
    struct rig_config config = shapes[shape];
    config.data_bytes = KIB(512);
    config.logical_bytes = 512;
    config.bitmap = bitmap;
    config.dirty = dirty;
    config.seed = suite_seed() + shape;
    array_rig_init(rig, &config);
}

static struct super
super_of(const struct rig *rig, uint32_t i)
{
    struct super super;
    CU_ASSERT_EQUAL(
        super_decode(rig->memory[i] + SUPER_OFF, 2, SUPER_OFF, rig->member_bytes, &super, NULL),
        SUPER_OK);
    return super;
}

static uint64_t
bits_set(const struct rig *rig, uint32_t i)
{
    struct bitmap_header header;
    CU_ASSERT_EQUAL(bitmap_decode(rig->memory[i] + BITMAP_OFF, &header, NULL), BITMAP_OK);
    uint64_t count = 0;
    for (uint64_t bit = 0; bit < bitmap_bit_count(&header); bit++)
        count += rig->memory[i][BITMAP_OFF + BITMAP_HEADER_BYTES + bit / 8] >> (bit % 8) & 1;
    return count;
}

/* ---- I1 ---------------------------------------------------------------------------------------
 */

struct watch {
    struct rig *rig;
    uint64_t data_writes, early;
};

static bool
bit_is_set(const struct rig *rig, uint32_t i, uint64_t sync_off)
{
    struct bitmap_header header;
    if (bitmap_decode(rig->memory[i] + BITMAP_OFF, &header, NULL) != BITMAP_OK)
        return false;
    uint64_t bit = sync_off / header.chunk_bytes;
    return rig->memory[i][BITMAP_OFF + BITMAP_HEADER_BYTES + bit / 8] >> (bit % 8) & 1;
}

static int
watch_write(struct mem_dev *mem, const struct req *req)
{
    struct watch *watch = mem->hook_ctx;
    struct rig *rig = watch->rig;
    if (!req_is_write(req) || req->off_bytes < rig->data_off_bytes)
        return 0;
    watch->data_writes++;
    for (uint32_t i = 0; i < rig->config.member_count; i++) {
        if (rig->devs[i]->gone)
            continue;
        struct super super = super_of(rig, i);
        bool marked = super.resync_offset_sectors == 0;
        if (rig->config.level != RAID10) /* there bits are array addresses */
            marked = marked && bit_is_set(rig, i, req->off_bytes - rig->data_off_bytes);
        watch->early += !marked;
    }
    return 0;
}

static void
no_member_is_written_before_mark_and_bit_are_durable_everywhere(void)
{
    for (uint32_t shape = 0; shape < ARRAY_LEN(shapes); shape++) {
        struct rig rig;
        init(&rig, shape, true, false);
        CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
        struct watch watch = {.rig = &rig};
        for (uint32_t i = 0; i < rig.config.member_count; i++) {
            rig.devs[i]->hook = watch_write;
            rig.devs[i]->hook_ctx = &watch;
        }
        for (uint32_t k = 0; k < 60; k++) {
            uint64_t len = rng_range(&rig.rng, 1, KIB(40));
            uint64_t off = rng_below(&rig.rng, rig.size_bytes - len);
            CU_ASSERT_EQUAL(array_rig_write(&rig, off, len, 0), 0);
            array_rig_run_ms(&rig,
                             rng_below(&rig.rng, 20000)); /* sometimes it goes clean meanwhile */
            rig.devs[1]->gone |= k == 40;
        }
        CU_ASSERT(watch.data_writes > 60);
        CU_ASSERT_EQUAL(watch.early, 0);
        for (uint32_t i = 0; i < rig.config.member_count; i++)
            rig.devs[i]->hook = NULL;
        array_rig_stop(&rig);
        array_rig_destroy(&rig);
    }
}

/* ---- the life of marks and bits ---------------------------------------------------------------
 */

static void
an_idle_array_becomes_clean_and_its_bits_go(void)
{
    for (uint32_t shape = 0; shape < ARRAY_LEN(shapes); shape++) {
        struct rig rig;
        init(&rig, shape, true, false);
        CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
        CU_ASSERT_EQUAL(array_rig_write(&rig, 12345, 6789, 0), 0);
        CU_ASSERT_EQUAL(super_of(&rig, 1).resync_offset_sectors, 0);
        CU_ASSERT(bits_set(&rig, 1) > 0);
        array_rig_run_ms(&rig, 1000);
        CU_ASSERT_EQUAL(super_of(&rig, 1).resync_offset_sectors, SUPER_INFINITY);
        CU_ASSERT(bits_set(&rig, 1) > 0);
        array_rig_run_ms(&rig, 30000);
        for (uint32_t i = 0; i < rig.config.member_count; i++) {
            CU_ASSERT_EQUAL(bits_set(&rig, i), 0);
            CU_ASSERT_EQUAL(super_of(&rig, i).events, super_of(&rig, 0).events);
        }
        uint64_t events = super_of(&rig, 0).events;
        array_rig_stop(&rig);
        CU_ASSERT_EQUAL(super_of(&rig, 0).events, events); /* nothing more to say */
        array_rig_destroy(&rig);
    }
}

static void
a_clean_stop_clears_bits_and_marks_clean_at_once(void)
{
    struct rig rig;
    init(&rig, 1, true, false);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    CU_ASSERT_EQUAL(array_rig_write(&rig, 0, KIB(200), 0), 0);
    array_rig_stop(&rig);
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(bits_set(&rig, i), 0);
        CU_ASSERT_EQUAL(super_of(&rig, i).resync_offset_sectors, SUPER_INFINITY);
    }
    array_rig_destroy(&rig);
}

static void
a_degraded_array_keeps_its_bits(void)
{
    struct rig rig;
    init(&rig, 1, true, false);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 1), 0);
    CU_ASSERT_EQUAL(array_rig_write(&rig, 0, KIB(200), 0), 0);
    array_rig_run_ms(&rig, 60000);
    CU_ASSERT(bits_set(&rig, 1) > 0);
    array_rig_stop(&rig);
    CU_ASSERT(bits_set(&rig, 1) > 0);
    struct bitmap_header header;
    CU_ASSERT_EQUAL(bitmap_decode(rig.memory[1] + BITMAP_OFF, &header, NULL), BITMAP_OK);
    CU_ASSERT_EQUAL(header.events_cleared, 0);
    CU_ASSERT(header.events >= super_of(&rig, 1).events);
    CU_ASSERT(super_of(&rig, 1).events >= super_of(&rig, 0).events + 2); /* M2 */
    array_rig_destroy(&rig);
}

/* ---- resync ------------------------------------------------------------------------------------
 */

static bool
resync_pending(struct rig *rig)
{
    static struct array_status status;
    array_status(rig->array, &status);
    for (uint32_t i = 0; i < status.problem_count; i++)
        if (strcmp(status.problems[i].code, "RESYNC_PENDING") == 0)
            return true;
    return false;
}

/* Whatever the members held, afterwards redundancy agrees: every loss leaves the same bytes. */
static void
resync_of(uint32_t shape, bool bitmap)
{
    struct rig rig;
    init(&rig, shape, bitmap, true);
    for (uint32_t i = 0; i < rig.config.member_count; i++)
        rng_fill(&rig.rng, rig.memory[i] + rig.data_off_bytes, rig.config.data_bytes);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    CU_ASSERT(resync_pending(&rig));
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_READ, 0, 0, rig.size_bytes, rig.model), 0);
    for (uint32_t k = 0; k < 20; k++) { /* clients go on meanwhile */
        uint64_t len = rng_range(&rig.rng, 1, KIB(20));
        CU_ASSERT_EQUAL(array_rig_write(&rig, rng_below(&rig.rng, rig.size_bytes - len), len, 0),
                        0);
    }
    array_rig_run_ms(&rig, 60000);
    CU_ASSERT(!resync_pending(&rig));
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
    CU_ASSERT_EQUAL(super_of(&rig, 0).resync_offset_sectors, SUPER_INFINITY);
    array_rig_stop(&rig);
    CU_ASSERT(array_rig_survives_all_losses(&rig, 0));
    array_rig_destroy(&rig);
}

static void
resync_makes_redundancy_agree_on_every_level(void)
{
    for (uint32_t shape = 0; shape < ARRAY_LEN(shapes); shape++) {
        resync_of(shape, false);
        resync_of(shape, true);
    }
}

static void
an_interrupted_resync_goes_on_where_it_was(void)
{
    for (uint32_t shape = 0; shape < ARRAY_LEN(shapes); shape++) {
        struct rig rig;
        init(&rig, shape, false, true);
        for (uint32_t i = 0; i < rig.config.member_count; i++)
            rng_fill(&rig.rng, rig.memory[i] + rig.data_off_bytes, rig.config.data_bytes);
        CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
        CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_READ, 0, 0, rig.size_bytes, rig.model), 0);
        array_rig_stop(&rig);
        CU_ASSERT_EQUAL(super_of(&rig, 0).resync_offset_sectors, 0);
        CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
        array_rig_run_ms(&rig, 60000);
        CU_ASSERT(!resync_pending(&rig));
        array_rig_stop(&rig);
        CU_ASSERT(array_rig_survives_all_losses(&rig, 0));
        array_rig_destroy(&rig);
    }
}

/* Reads in a region not in sync must not depend on luck. */
static void
unsynced_mirrors_always_show_the_same_copy(void)
{
    struct rig rig;
    init(&rig, 0, false, true);
    rng_fill(&rig.rng, rig.memory[0] + rig.data_off_bytes, rig.config.data_bytes);
    rng_fill(&rig.rng, rig.memory[1] + rig.data_off_bytes, rig.config.data_bytes);
    rig.no_background = true;
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    memcpy(rig.model, rig.memory[0] + rig.data_off_bytes, rig.size_bytes);
    for (uint32_t k = 0; k < 100; k++)
        CU_ASSERT_EQUAL(
            array_rig_mismatches(&rig, rng_below(&rig.rng, rig.size_bytes - 4096), 4096), 0);
    array_rig_stop(&rig);
    array_rig_destroy(&rig);
}

/* ---- after a crash -----------------------------------------------------------------------------
 */

struct lost_req {
    struct req req;
    struct iovec iov;
    uint8_t memory[KIB(24)];
};

static void
never(struct req *req)
{
    (void)req;
}

/* Writes in flight when the process dies may be there in part; after resync all agrees again. */
static void
crash_of(uint32_t shape, bool bitmap, uint64_t round)
{
    static struct lost_req lost[6];
    struct rig rig;
    init(&rig, shape, bitmap, false);
    rng_seed(&rig.rng, suite_seed() + 1000 * round + shape);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    for (uint32_t k = 0; k < 4; k++)
        CU_ASSERT_EQUAL(array_rig_write(&rig, rng_below(&rig.rng, rig.size_bytes / 2), KIB(30), 0),
                        0);
    for (uint32_t k = 0; k < ARRAY_LEN(lost); k++) {
        uint64_t len = rng_range(&rig.rng, 1, sizeof(lost[k].memory));
        rng_fill(&rig.rng, lost[k].memory, len);
        lost[k].iov = (struct iovec){lost[k].memory, len};
        lost[k].req = (struct req){.op = REQ_WRITE,
                                   .off_bytes = rng_below(&rig.rng, rig.size_bytes - len),
                                   .len_bytes = len,
                                   .iov = &lost[k].iov,
                                   .iov_count = 1,
                                   .done = never};
        dev_submit(array_dev(rig.array), &lost[k].req);
    }
    array_rig_run_us(&rig, rng_below(&rig.rng, 600));
    array_rig_abandon(&rig);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    array_rig_run_ms(&rig, 60000);
    CU_ASSERT(!resync_pending(&rig));
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_READ, 0, 0, rig.size_bytes, rig.model), 0);
    array_rig_stop(&rig);
    CU_ASSERT(array_rig_survives_all_losses(&rig, 0));
    array_rig_destroy(&rig);
}

static void
after_a_crash_redundancy_agrees_again(void)
{
    for (uint64_t round = 0; round < suite_seeds(8); round++)
        for (uint32_t shape = 0; shape < ARRAY_LEN(shapes); shape++)
            crash_of(shape, round % 2, round);
}

static void
unclean_and_degraded_parity_is_refused_and_nothing_written(void)
{
    struct rig rig;
    init(&rig, 1, false, true);
    uint8_t *before = malloc(rig.member_bytes);
    memcpy(before, rig.memory[1], rig.member_bytes);
    CU_ASSERT(array_rig_open(&rig, 1) < 0);
    CU_ASSERT_STRING_EQUAL(rig.diag.code, "E_DIRTY_DEGRADED");
    CU_ASSERT(array_rig_open(&rig, 3) < 0);
    CU_ASSERT_STRING_EQUAL(rig.diag.code, "E_NOT_ENOUGH_MEMBERS");
    CU_ASSERT(strstr(rig.diag.message, "0, 1") != NULL);
    CU_ASSERT_EQUAL(memcmp(before, rig.memory[1], rig.member_bytes), 0);
    rig.accept_dirty_degraded = true;
    CU_ASSERT_EQUAL(array_rig_open(&rig, 1), 0);
    array_rig_stop(&rig);
    free(before);
    array_rig_destroy(&rig);
}

/* P5: the mark of an unclean array is on the disk already, so nothing forced a superblock write
 * before the first write of a degraded start; the absent member then came back as fresh as ever. */
static void
a_mirror_absent_from_an_unclean_start_is_left_behind(void)
{
    struct rig rig;
    init(&rig, 0, false, true);
    rig.no_background = true;
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 2), 0);
    CU_ASSERT_EQUAL(array_rig_write(&rig, 0, rig.size_bytes, 0), 0);
    array_rig_abandon(&rig);
    CU_ASSERT(super_of(&rig, 0).events >= super_of(&rig, 1).events + 2);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
    array_rig_stop(&rig);
    array_rig_destroy(&rig);
}

SUITE_MAIN("intent", T(a_mirror_absent_from_an_unclean_start_is_left_behind),
           T(no_member_is_written_before_mark_and_bit_are_durable_everywhere),
           T(an_idle_array_becomes_clean_and_its_bits_go),
           T(a_clean_stop_clears_bits_and_marks_clean_at_once), T(a_degraded_array_keeps_its_bits),
           T(resync_makes_redundancy_agree_on_every_level),
           T(an_interrupted_resync_goes_on_where_it_was),
           T(unsynced_mirrors_always_show_the_same_copy), T(after_a_crash_redundancy_agrees_again),
           T(unclean_and_degraded_parity_is_refused_and_nothing_written))
