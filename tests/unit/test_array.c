/* The array over instant members in memory, against a model of its bytes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/array_rig.h"
#include "tests/unit/suite.h"

struct shape {
    const char *name;
    enum raid_level level;
    uint32_t layout, members;
    uint64_t chunk_bytes;
};

static const struct shape shapes[] = {
    {"raid0x3", RAID0, RAID0_ORIGINAL, 3, KIB(16)},
    {"raid1x2", RAID1, 0, 2, 0},
    {"raid1x3", RAID1, 0, 3, 0},
    {"raid4x4", RAID4, 0, 4, KIB(16)},
    {"raid5x3", RAID5, LEFT_SYMMETRIC, 3, KIB(8)},
    {"raid5x4", RAID5, LEFT_ASYMMETRIC, 4, KIB(64)},
    {"raid6x4", RAID6, LEFT_SYMMETRIC, 4, KIB(16)},
    {"raid6x6", RAID6, RIGHT_SYMMETRIC, 6, KIB(8)},
    {"raid10n2x4", RAID10, 0x102, 4, KIB(16)},
    {"raid10n2x3", RAID10, 0x102, 3, KIB(8)},
    {"raid10f2x4", RAID10, 0x201, 4, KIB(16)},
    {"raid10o2x3", RAID10, 0x10201, 3, KIB(16)},
};

static struct rig_config
config_of(const struct shape *shape, uint64_t seed)
{
    return (struct rig_config){
        .level = shape->level,
        .layout = shape->layout,
        .member_count = shape->members,
        .chunk_bytes = shape->chunk_bytes,
        .data_bytes = KIB(512),
        .logical_bytes = 512,
        .seed = seed,
    };
}

/* ---- several requests in flight ----------------------------------------------------------------
 */

#define IN_FLIGHT 8

struct slot {
    struct req req;
    struct iovec iov[3];
    uint8_t *memory, *expect;
    bool busy;
    struct storm *storm;
};

struct storm {
    struct rig *rig;
    struct slot slots[IN_FLIGHT];
    uint32_t left, running;
    uint64_t errors, mismatches;
    bool done;
    bool tolerate_errors;
    uint8_t *unknown; /* bytes that a failed write may or may not have changed */
};

static void storm_fill(struct storm *storm);

static bool
range_free(const struct storm *storm, uint64_t off, uint64_t len)
{
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        if (storm->slots[i].busy &&
            ranges_overlap(storm->slots[i].req.off_bytes, storm->slots[i].req.len_bytes, off, len))
            return false;
    return true;
}

static void
storm_done(struct req *req)
{
    struct slot *slot = CONTAINER_OF(req, struct slot, req);
    struct storm *storm = slot->storm;
    struct rig *rig = storm->rig;
    if (req->err != 0)
        storm->errors++;
    if (req->op == REQ_READ && req->err == 0)
        for (uint64_t i = 0; i < req->len_bytes; i++)
            storm->mismatches += slot->memory[i] != rig->model[req->off_bytes + i];
    slot->busy = false;
    storm->running--;
    storm_fill(storm);
}

static void
fill_slot(struct storm *storm, struct slot *slot)
{
    struct rig *rig = storm->rig;
    uint64_t len_max = rng_chance(&rig->rng, 80) ? KIB(12) : KIB(300);
    uint64_t len = rng_range(&rig->rng, 1, MIN(len_max, rig->size_bytes));
    uint64_t off = rng_below(&rig->rng, rig->size_bytes - len + 1);
    if (rng_chance(&rig->rng, 40)) {
        off = off / 4096 * 4096;
        len = MAX(len / 4096, 1u) * 4096;
        if (off + len > rig->size_bytes)
            off = rig->size_bytes - len;
    }
    if (!range_free(storm, off, len))
        return;
    static const enum req_op ops[] = {REQ_READ,  REQ_READ, REQ_READ, REQ_WRITE, REQ_WRITE,
                                      REQ_WRITE, REQ_ZERO, REQ_TRIM, REQ_FLUSH, REQ_CACHE};
    enum req_op op = ops[rng_below(&rig->rng, ARRAY_LEN(ops))];
    if (op == REQ_TRIM)
        op = REQ_ZERO; /* the model wants to know the bytes */
    if (op == REQ_FLUSH || op == REQ_CACHE)
        off = len = 0;
    uint64_t cut = len / 3;
    uint8_t *at = slot->memory + (rng_chance(&rig->rng, 30) ? 0 : 0);
    if (op == REQ_WRITE) {
        rng_fill(&rig->rng, slot->memory, len);
        memcpy(rig->model + off, slot->memory, len);
    }
    if (op == REQ_ZERO)
        memset(rig->model + off, 0, len);
    slot->iov[0] = (struct iovec){at, cut};
    slot->iov[1] = (struct iovec){at + cut, cut};
    slot->iov[2] = (struct iovec){at + 2 * cut, len - 2 * cut};
    slot->req = (struct req){
        .op = op,
        .flags = rng_chance(&rig->rng, 20) && op != REQ_READ ? REQ_FUA : 0,
        .off_bytes = off,
        .len_bytes = len,
        .iov = op == REQ_READ || op == REQ_WRITE ? slot->iov : NULL,
        .iov_count = op == REQ_READ || op == REQ_WRITE ? 3 : 0,
        .done = storm_done,
    };
    slot->busy = true;
    storm->running++;
    storm->left--;
    dev_submit(array_dev(rig->array), &slot->req);
}

static void
storm_fill(struct storm *storm)
{
    static bool filling;
    if (filling)
        return;
    filling = true;
    do {
        for (uint32_t i = 0; i < IN_FLIGHT; i++)
            if (!storm->slots[i].busy && storm->left > 0)
                fill_slot(storm, &storm->slots[i]);
    } while (storm->running == 0 && storm->left > 0);
    filling = false;
    if (storm->running == 0 && storm->left == 0)
        storm->done = true;
}

/* `count` random requests, up to IN_FLIGHT at once; returns mismatching bytes plus errors. */
static uint64_t
run_storm(struct rig *rig, uint32_t count)
{
    struct storm storm = {.rig = rig, .left = count};
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        storm.slots[i].storm = &storm;
        storm.slots[i].memory = aligned_alloc(4096, KIB(304));
        check(storm.slots[i].memory != NULL);
    }
    storm_fill(&storm);
    if (!storm.done)
        check_eq(loop_run_until(rig->loop, &storm.done), 0);
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        free(storm.slots[i].memory);
    return storm.mismatches + storm.errors;
}

static void
storm_on_every_level(bool deferred, bool bitmap, bool area, uint32_t logical, uint32_t request_max)
{
    for (uint32_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct rig rig;
        struct rig_config config = config_of(&shapes[i], suite_seed() + i);
        config.bitmap = bitmap && shapes[i].level != RAID0;
        config.area = area;
        config.logical_bytes = logical;
        array_rig_init(&rig, &config);
        rig.deferred = deferred;
        rig.request_max = request_max;
        if (request_max != 0)
            rig.scratch_bytes = 1;
        if (array_rig_open(&rig, 0) != 0)
            fprintf(stderr, "%s: %s\n", shapes[i].name, rig.diag.message);
        CU_ASSERT_FATAL(rig.array != NULL);
        uint64_t wrong = run_storm(&rig, 400);
        wrong += array_rig_mismatches(&rig, 0, rig.size_bytes);
        if (wrong != 0)
            fprintf(stderr, "%s: %" PRIu64 " wrong\n", shapes[i].name, wrong);
        CU_ASSERT_EQUAL(wrong, 0);
        array_rig_stop(&rig);
        CU_ASSERT(array_rig_survives_all_losses(&rig, 0));
        array_rig_destroy(&rig);
    }
}

static void
every_level_keeps_every_byte_with_instant_members(void)
{
    storm_on_every_level(false, false, false, 512, 0);
}

static void
every_level_keeps_every_byte_with_slow_members(void)
{
    storm_on_every_level(true, false, true, 512, 0);
}

static void
every_level_keeps_every_byte_with_a_bitmap_on_4k_sectors(void)
{
    storm_on_every_level(true, true, false, 4096, 0);
}

static void
every_level_gets_by_with_two_operations_and_hardly_any_scratch(void)
{
    storm_on_every_level(true, true, false, 512, 2);
}

/* ---- members fail -----------------------------------------------------------------------------
 */

static int
fail_now_and_then(struct mem_dev *mem, const struct req *req)
{
    (void)req;
    uint32_t *countdown = mem->hook_ctx;
    if (*countdown > 0) {
        (*countdown)--;
        return 0;
    }
    return mem->fail_err;
}

/* Victims fail some requests in, one after the other, with different errors; nothing is lost. */
static void
storm_with_failures(const struct shape *shape, uint64_t seed, bool bitmap)
{
    static const int errors[] = {-EIO, -ENODEV, -ENOSPC};
    struct rig rig;
    struct rig_config config = config_of(shape, seed);
    config.bitmap = bitmap;
    array_rig_init(&rig, &config);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    struct geometry geometry = *array_geometry(rig.array);
    uint32_t countdown[RIG_MEMBERS_MAX];
    uint64_t victims = 0;
    for (uint32_t k = 0; k < geometry.tolerance; k++) {
        uint32_t i = (uint32_t)rng_below(&rig.rng, shape->members);
        if (victims & mask_of(i))
            continue;
        victims |= mask_of(i);
        countdown[i] = (uint32_t)rng_below(&rig.rng, 600);
        rig.devs[i]->hook = fail_now_and_then;
        rig.devs[i]->hook_ctx = &countdown[i];
        rig.devs[i]->fail_err = errors[rng_below(&rig.rng, ARRAY_LEN(errors))];
    }
    uint64_t wrong = run_storm(&rig, 500);
    wrong += array_rig_mismatches(&rig, 0, rig.size_bytes);
    for (uint32_t i = 0; i < shape->members; i++)
        rig.devs[i]->hook = NULL; /* who has not failed by now does not fail while stopping */
    struct array_status *status = calloc(1, sizeof(*status));
    array_status(rig.array, status);
    uint64_t failed = 0;
    for (uint32_t i = 0; i < status->member_count; i++)
        if (status->members[i].state == MS_FAULTY)
            failed |= mask_of(i);
    free(status);
    CU_ASSERT_EQUAL(failed & ~victims, 0);
    if (wrong != 0)
        fprintf(stderr, "%s seed %" PRIu64 ": %" PRIu64 " wrong, failed %" PRIx64 "\n", shape->name,
                seed, wrong, failed);
    CU_ASSERT_EQUAL(wrong, 0);
    array_rig_stop(&rig);
    /* The members that failed are stale now: decide() leaves them out by itself. */
    rig.read_only = true;
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
    array_rig_stop(&rig);
    CU_ASSERT(array_rig_survives_all_losses(&rig, failed));
    array_rig_destroy(&rig);
}

static void
members_fail_within_tolerance_and_nothing_is_lost(void)
{
    for (uint64_t seed = 0; seed < suite_seeds(6); seed++)
        for (uint32_t i = 0; i < ARRAY_LEN(shapes); i++)
            if (shapes[i].level != RAID0)
                storm_with_failures(&shapes[i], suite_seed() + seed * 100 + i, seed % 2);
}

SUITE_MAIN("array", T(every_level_keeps_every_byte_with_instant_members),
           T(every_level_keeps_every_byte_with_slow_members),
           T(every_level_keeps_every_byte_with_a_bitmap_on_4k_sectors),
           T(every_level_gets_by_with_two_operations_and_hardly_any_scratch),
           T(members_fail_within_tolerance_and_nothing_is_lost))
