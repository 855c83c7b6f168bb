/* What happens when members misbehave, one case at a time. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/array_rig.h"
#include "tests/unit/suite.h"

#define SUPER_OFF 4096u

static struct rig_config
shape(enum raid_level level, uint32_t layout, uint32_t members)
{
    return (struct rig_config){.level = level,
                               .layout = layout,
                               .member_count = members,
                               .chunk_bytes = level == RAID1 ? 0 : KIB(16),
                               .data_bytes = KIB(256),
                               .logical_bytes = 512,
                               .seed = suite_seed()};
}

static void
open_filled(struct rig *rig, const struct rig_config *config)
{
    array_rig_init(rig, config);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(rig, 0), 0);
    CU_ASSERT_EQUAL(array_rig_write(rig, 0, rig->size_bytes, 0), 0);
}

static struct array_status *
status_of(struct rig *rig)
{
    static struct array_status status;
    array_status(rig->array, &status);
    return &status;
}

static bool
has_problem(struct rig *rig, const char *code)
{
    const struct array_status *status = status_of(rig);
    for (uint32_t i = 0; i < status->problem_count; i++)
        if (strcmp(status->problems[i].code, code) == 0)
            return true;
    return false;
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

/* ---- reads ------------------------------------------------------------------------------------
 */

static void
a_bad_sector_is_reconstructed_rewritten_and_costs_no_member(void)
{
    struct rig_config configs[] = {shape(RAID1, 0, 2), shape(RAID5, LEFT_SYMMETRIC, 4),
                                   shape(RAID6, LEFT_SYMMETRIC, 5), shape(RAID10, 0x102, 4)};
    for (uint32_t i = 0; i < ARRAY_LEN(configs); i++) {
        struct rig rig;
        open_filled(&rig, &configs[i]);
        rig.devs[0]->bad_off = rig.data_off_bytes;
        rig.devs[0]->bad_len = rig.config.data_bytes;
        CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
        CU_ASSERT_EQUAL(status_of(&rig)->state, AS_ONLINE);
        CU_ASSERT_EQUAL(status_of(&rig)->members[0].state, MS_SUSPECT);
        CU_ASSERT(status_of(&rig)->members[0].read_errors > 0);
        CU_ASSERT(status_of(&rig)->members[0].repaired > 0); /* P6: and rewritten */
        CU_ASSERT_EQUAL(rig.devs[0]->bad_len, 0);
        CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
        array_rig_stop(&rig);
        array_rig_destroy(&rig);
    }
}

static void
what_nobody_can_give_is_an_error_for_that_range_only(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID5, LEFT_SYMMETRIC, 3);
    open_filled(&rig, &config);
    array_rig_stop(&rig);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 1), 0);
    rig.devs[1]->bad_off = rig.data_off_bytes;
    rig.devs[1]->bad_len = 512;
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, KIB(16)), UINT64_MAX);
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, KIB(64), KIB(64)), 0);
    CU_ASSERT_EQUAL(status_of(&rig)->members_online, 2);
    array_rig_stop(&rig);
    array_rig_destroy(&rig);
}

static void
partial_writes_over_a_bad_sector_recover_the_old_data_first(void)
{
    struct rig_config configs[] = {shape(RAID1, 0, 2), shape(RAID5, LEFT_SYMMETRIC, 4),
                                   shape(RAID6, LEFT_SYMMETRIC, 5)};
    for (uint32_t i = 0; i < ARRAY_LEN(configs); i++) {
        struct rig rig;
        open_filled(&rig, &configs[i]);
        for (uint32_t k = 0; k < 50; k++) {
            rig.devs[1]->bad_off = rig.data_off_bytes + rng_below(&rig.rng, 400) * 512;
            rig.devs[1]->bad_len = 4096;
            uint64_t off = rng_below(&rig.rng, rig.size_bytes - 5000);
            CU_ASSERT_EQUAL(array_rig_write(&rig, off, rng_range(&rig.rng, 1, 5000), 0), 0);
        }
        CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
        array_rig_stop(&rig);
        CU_ASSERT(array_rig_survives_all_losses(&rig, 0));
        array_rig_destroy(&rig);
    }
}

/* ---- writes ------------------------------------------------------------------------------------
 */

static void
the_survivors_know_who_missed_a_write_before_it_is_acknowledged(void)
{
    struct rig_config configs[] = {shape(RAID1, 0, 2), shape(RAID5, LEFT_SYMMETRIC, 4),
                                   shape(RAID6, LEFT_SYMMETRIC, 5), shape(RAID10, 0x102, 4)};
    for (uint32_t i = 0; i < ARRAY_LEN(configs); i++) {
        struct rig rig;
        open_filled(&rig, &configs[i]);
        uint64_t events = super_of(&rig, 1).events;
        rig.devs[1]->gone = true;
        CU_ASSERT_EQUAL(array_rig_write(&rig, 0, KIB(64), 0), 0);
        for (uint32_t k = 0; k < configs[i].member_count; k++) { /* I11, M2 */
            if (k == 1)
                continue;
            CU_ASSERT_EQUAL(super_of(&rig, k).roles[1], SUPER_ROLE_FAULTY);
            CU_ASSERT(super_of(&rig, k).events >= events + 2);
        }
        CU_ASSERT_EQUAL(status_of(&rig)->state, AS_DEGRADED);
        CU_ASSERT(has_problem(&rig, "MEMBER_GONE"));
        array_rig_stop(&rig);
        array_rig_destroy(&rig);
    }
}

static void
a_full_file_system_is_not_a_broken_disk_but_costs_the_member(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID5, LEFT_SYMMETRIC, 4);
    open_filled(&rig, &config);
    rig.devs[2]->fail_err = -ENOSPC;
    rig.devs[2]->fail_writes = 1;
    CU_ASSERT_EQUAL(array_rig_write(&rig, 0, KIB(256), 0), 0);
    CU_ASSERT(has_problem(&rig, "MEMBER_NO_SPACE"));
    rig.devs[0]->fail_err = -ENOSPC; /* now there is nobody to spare */
    rig.devs[0]->fail_writes = 100;
    uint8_t block[4096] __attribute__((aligned(4096))) = {0};
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_WRITE, 0, 0, sizeof(block), block), -ENOSPC);
    CU_ASSERT_EQUAL(status_of(&rig)->members[0].state, MS_SUSPECT);
    rig.devs[0]->fail_writes = 0;
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_WRITE, 0, 0, sizeof(block), block), 0);
    array_rig_stop(&rig);
    array_rig_destroy(&rig);
}

static void
the_last_good_copy_is_kept_and_its_errors_are_the_clients(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID1, 0, 2);
    open_filled(&rig, &config);
    rig.devs[0]->gone = true;
    CU_ASSERT_EQUAL(array_rig_write(&rig, 0, 4096, 0), 0);
    rig.devs[1]->fail_writes = 1;
    uint8_t block[4096] __attribute__((aligned(4096)));
    memcpy(block, rig.model, sizeof(block));
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_WRITE, 0, 0, sizeof(block), block), -EIO);
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_WRITE, 0, 0, sizeof(block), block), 0);
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
    CU_ASSERT_EQUAL(status_of(&rig)->members[1].state, MS_SUSPECT);
    array_rig_stop(&rig);
    array_rig_destroy(&rig);
}

/* ---- flush -------------------------------------------------------------------------------------
 */

static void
a_flush_that_fails_costs_the_member(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID5, LEFT_SYMMETRIC, 4);
    open_filled(&rig, &config);
    rig.devs[3]->fail_flushes = 1;
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_FLUSH, 0, 0, 0, NULL), 0);
    CU_ASSERT_EQUAL(status_of(&rig)->members[3].state, MS_FAULTY);
    CU_ASSERT_EQUAL(super_of(&rig, 0).roles[3], SUPER_ROLE_FAULTY); /* recorded before the answer */
    array_rig_stop(&rig);
    CU_ASSERT(array_rig_survives_all_losses(&rig, 8));
    array_rig_destroy(&rig);
}

static void
a_flush_that_lost_data_never_turns_to_success(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID0, RAID0_ORIGINAL, 3);
    open_filled(&rig, &config);
    rig.devs[1]->fail_flushes = 1;
    for (uint32_t i = 0; i < 3; i++) { /* P3: not on the retry either */
        CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_FLUSH, 0, 0, 0, NULL), -EIO);
        CU_ASSERT_EQUAL(array_rig_write(&rig, 0, 4096, 0), 0);
    }
    CU_ASSERT(has_problem(&rig, "FLUSH_LOST"));
    array_rig_abandon(&rig);
    array_rig_destroy(&rig);
}

static void
a_flush_touches_only_members_that_were_written(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID0, RAID0_ORIGINAL, 3);
    open_filled(&rig, &config);
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_FLUSH, 0, 0, 0, NULL), 0);
    uint64_t before[3];
    for (uint32_t i = 0; i < 3; i++)
        before[i] = rig.devs[i]->flushes;
    CU_ASSERT_EQUAL(array_rig_write(&rig, KIB(16), 4096, 0), 0);
    CU_ASSERT_EQUAL(array_rig_write(&rig, KIB(32), 4096, REQ_FUA), 0);
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_FLUSH, 0, 0, 0, NULL), 0);
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_FLUSH, 0, 0, 0, NULL), 0);
    CU_ASSERT_EQUAL(rig.devs[0]->flushes, before[0]);
    CU_ASSERT_EQUAL(rig.devs[1]->flushes, before[1] + 1);
    CU_ASSERT_EQUAL(rig.devs[2]->flushes, before[2]);
    array_rig_stop(&rig);
    array_rig_destroy(&rig);
}

/* ---- zero and trim -----------------------------------------------------------------------------
 */

static void
after_a_trim_every_copy_says_the_same(void)
{
    struct rig_config configs[] = {shape(RAID1, 0, 2), shape(RAID5, LEFT_SYMMETRIC, 4),
                                   shape(RAID6, LEFT_SYMMETRIC, 5), shape(RAID10, 0x102, 4),
                                   shape(RAID10, 0x201, 4)};
    for (uint32_t i = 0; i < ARRAY_LEN(configs); i++) {
        struct rig rig;
        open_filled(&rig, &configs[i]);
        for (uint32_t k = 0; k < 20; k++) {
            uint64_t len = rng_range(&rig.rng, 1, KIB(150));
            uint64_t off = rng_below(&rig.rng, rig.size_bytes - len);
            CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_TRIM, 0, off, len, NULL), 0);
            uint64_t from = off - MIN(off, 1), to = off + len;
            CU_ASSERT_EQUAL(array_rig_mismatches(&rig, from, off - from), 0);
            if (to < rig.size_bytes)
                CU_ASSERT_EQUAL(array_rig_mismatches(&rig, to, 1), 0);
            CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_READ, 0, 0, rig.size_bytes, rig.model), 0);
        }
        array_rig_stop(&rig);
        CU_ASSERT(array_rig_survives_all_losses(&rig, 0));
        array_rig_destroy(&rig);
    }
}

static int
refuse_zero(struct mem_dev *mem, const struct req *req)
{
    (void)mem;
    return req->op == REQ_ZERO ? -EOPNOTSUPP : 0;
}

static void
a_member_that_cannot_zero_after_all_gets_zeroes_written(void)
{
    struct rig_config configs[] = {shape(RAID0, RAID0_ORIGINAL, 3), shape(RAID1, 0, 2),
                                   shape(RAID5, LEFT_SYMMETRIC, 4), shape(RAID10, 0x102, 4)};
    for (uint32_t i = 0; i < ARRAY_LEN(configs); i++) {
        struct rig rig;
        open_filled(&rig, &configs[i]);
        rig.devs[1]->hook = refuse_zero;
        uint64_t off = 1234, len = rig.size_bytes - 5678;
        CU_ASSERT_EQUAL(array_rig_request(&rig, i % 2 ? REQ_TRIM : REQ_ZERO, 0, off, len, NULL), 0);
        if (i % 2 == 0)
            memset(rig.model + off, 0, len);
        else
            CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_READ, 0, 0, rig.size_bytes, rig.model), 0);
        CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
        CU_ASSERT_EQUAL(status_of(&rig)->state, AS_ONLINE);
        CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_ZERO, REQ_FAST_ZERO, 0, rig.size_bytes, NULL),
                        -EOPNOTSUPP);
        CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
        array_rig_stop(&rig);
        CU_ASSERT(array_rig_survives_all_losses(&rig, 0));
        array_rig_destroy(&rig);
    }
}

/* ---- what was assembled -------------------------------------------------------------------------
 */

static void
a_replacement_is_written_along_and_read_below_its_frontier(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID5, LEFT_SYMMETRIC, 4);
    config.replaced_role = 1;
    config.replacement_frontier_bytes = KIB(128);
    array_rig_init(&rig, &config);
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    CU_ASSERT_EQUAL(status_of(&rig)->member_count, 5);
    for (uint32_t k = 0; k < 50; k++) {
        uint64_t len = rng_range(&rig.rng, 1, KIB(40));
        CU_ASSERT_EQUAL(array_rig_write(&rig, rng_below(&rig.rng, rig.size_bytes - len), len, 0),
                        0);
    }
    CU_ASSERT_EQUAL(memcmp(rig.memory[1] + rig.data_off_bytes, rig.memory[4] + rig.data_off_bytes,
                           rig.config.data_bytes),
                    0);
    rig.devs[1]->gone = true;
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
    CU_ASSERT_EQUAL(array_rig_write(&rig, 0, rig.size_bytes, 0), 0);
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
    CU_ASSERT(rig.devs[4]->reads > 0);
    array_rig_stop(&rig);
    array_rig_destroy(&rig);
}

static void
md_bad_blocks_are_not_read_until_they_are_written(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID1, 0, 2);
    config.bad_off_bytes = KIB(32);
    config.bad_len_bytes = KIB(8);
    array_rig_init(&rig, &config);
    memset(rig.memory[0] + rig.data_off_bytes + KIB(32), 0xbb, KIB(8));
    CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
    CU_ASSERT(has_problem(&rig, "MEMBER_BAD_BLOCKS"));
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
    CU_ASSERT_EQUAL(array_rig_write(&rig, KIB(33), KIB(2), 0), 0); /* in part: still bad */
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
    CU_ASSERT_EQUAL(array_rig_write(&rig, KIB(32), KIB(8), 0), 0);
    CU_ASSERT(!has_problem(&rig, "MEMBER_BAD_BLOCKS"));
    array_rig_stop(&rig);
    array_rig_destroy(&rig);
}

static void
read_only_and_idle_arrays_write_nothing(void)
{
    for (uint32_t read_only = 0; read_only < 2; read_only++) {
        struct rig rig;
        struct rig_config config = shape(RAID5, LEFT_SYMMETRIC, 4);
        config.bitmap = true;
        config.dirty = read_only;
        array_rig_init(&rig, &config);
        rig.read_only = read_only;
        uint8_t *before = malloc(rig.member_bytes);
        memcpy(before, rig.memory[2], rig.member_bytes);
        CU_ASSERT_EQUAL_FATAL(array_rig_open(&rig, 0), 0);
        CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
        CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_FLUSH, 0, 0, 0, NULL), 0);
        if (read_only)
            CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_ZERO, 0, 0, 4096, NULL), -EROFS);
        array_rig_run_ms(&rig, 30000);
        array_rig_stop(&rig);
        CU_ASSERT_EQUAL(memcmp(before, rig.memory[2], rig.member_bytes), 0);
        free(before);
        array_rig_destroy(&rig);
    }
}

/* ---- control ------------------------------------------------------------------------------------
 */

static void
set_flag(void *ctx, int err)
{
    *(int *)ctx = err;
}

static void
a_member_can_be_taken_out_but_not_the_last_good_copy(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID5, LEFT_SYMMETRIC, 3);
    open_filled(&rig, &config);
    uint32_t index;
    CU_ASSERT_EQUAL(array_find_member(rig.array, "mem/2", &index, &rig.diag), 0);
    CU_ASSERT_EQUAL(index, 2);
    CU_ASSERT_EQUAL(array_find_member(rig.array, "1", &index, &rig.diag), 0);
    CU_ASSERT_EQUAL(array_find_member(rig.array, "10101010", &index, &rig.diag), 0);
    CU_ASSERT_EQUAL(index, 0);
    CU_ASSERT(array_find_member(rig.array, "7", &index, &rig.diag) < 0);
    CU_ASSERT_STRING_EQUAL(rig.diag.code, "E_NO_SUCH_MEMBER");
    int err = 1;
    CU_ASSERT_EQUAL(array_fail(rig.array, 2, &rig.diag, set_flag, &err), 0);
    array_rig_run_ms(&rig, 10);
    CU_ASSERT_EQUAL(err, 0);
    CU_ASSERT_EQUAL(super_of(&rig, 0).roles[2], SUPER_ROLE_FAULTY);
    CU_ASSERT(array_fail(rig.array, 0, &rig.diag, set_flag, &err) < 0);
    CU_ASSERT_STRING_EQUAL(rig.diag.code, "E_LAST_GOOD_COPY");
    CU_ASSERT_EQUAL(array_rig_write(&rig, 100, KIB(100), 0), 0);
    CU_ASSERT_EQUAL(array_rig_mismatches(&rig, 0, rig.size_bytes), 0);
    array_rig_stop(&rig);
    CU_ASSERT(array_rig_survives_all_losses(&rig, 4));
    array_rig_destroy(&rig);
}

static void
ignore_stop(void *ctx, int err)
{
    (void)err;
    *(bool *)ctx = true;
}

static void
a_stopping_array_answers_what_it_took_and_nothing_new(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID5, LEFT_SYMMETRIC, 4);
    open_filled(&rig, &config);
    bool stopped = false;
    array_stop(rig.array, ignore_stop, &stopped);
    uint8_t block[4096] __attribute__((aligned(4096))) = {0};
    CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_WRITE, 0, 0, sizeof(block), block), -ESHUTDOWN);
    CU_ASSERT_EQUAL(loop_run_until(rig.loop, &stopped), 0);
    rig.array = NULL;
    CU_ASSERT(array_rig_survives_all_losses(&rig, 0));
    array_rig_destroy(&rig);
}

/* ---- overlap ------------------------------------------------------------------------------------
 */

struct writer {
    struct req req;
    struct iovec iov;
    uint8_t memory[KIB(20)];
    uint32_t *left;
    bool *done;
};

static void
writer_done(struct req *req)
{
    struct writer *writer = CONTAINER_OF(req, struct writer, req);
    CU_ASSERT_EQUAL(req->err, 0);
    if (--*writer->left == 0)
        *writer->done = true;
}

static void
overlapping_writers_never_tear_redundancy(void)
{
    struct rig_config configs[] = {shape(RAID1, 0, 3), shape(RAID5, LEFT_SYMMETRIC, 4),
                                   shape(RAID6, LEFT_SYMMETRIC, 5), shape(RAID10, 0x201, 4)};
    static struct writer writers[40];
    for (uint32_t i = 0; i < ARRAY_LEN(configs); i++) {
        struct rig rig;
        open_filled(&rig, &configs[i]);
        uint32_t left = ARRAY_LEN(writers);
        bool done = false;
        for (uint32_t k = 0; k < ARRAY_LEN(writers); k++) {
            struct writer *writer = &writers[k];
            uint64_t len = rng_range(&rig.rng, 1, sizeof(writer->memory));
            rng_fill(&rig.rng, writer->memory, len);
            writer->left = &left;
            writer->done = &done;
            writer->iov = (struct iovec){writer->memory, len};
            writer->req = (struct req){.op = REQ_WRITE,
                                       .off_bytes = rng_below(&rig.rng, KIB(40)),
                                       .len_bytes = len,
                                       .iov = &writer->iov,
                                       .iov_count = 1,
                                       .done = writer_done};
            dev_submit(array_dev(rig.array), &writer->req);
        }
        CU_ASSERT_EQUAL(loop_run_until(rig.loop, &done), 0);
        CU_ASSERT_EQUAL(array_rig_request(&rig, REQ_READ, 0, 0, rig.size_bytes, rig.model), 0);
        array_rig_stop(&rig);
        CU_ASSERT(array_rig_survives_all_losses(&rig, 0));
        array_rig_destroy(&rig);
    }
}

/* M2: each superblock write is one event beyond what that member had, so that a cut between two
 * members' writes never leaves a survivor two behind, which would make it stale; and in the end
 * the lost member is two behind. */
static uint64_t events_seen[RIG_MEMBERS_MAX], events_steps_max;

static int
watch_events(struct mem_dev *mem, const struct req *req)
{
    const struct rig *rig = mem->hook_ctx;
    if (req->op != REQ_WRITE || req->off_bytes != SUPER_OFF)
        return 0;
    struct super super;
    uint8_t raw[SUPER_BYTES] = {0};
    memcpy(raw, req->iov[0].iov_base, req->len_bytes);
    CU_ASSERT_EQUAL(super_decode(raw, 2, SUPER_OFF, rig->member_bytes, &super, NULL), SUPER_OK);
    uint64_t *seen = &events_seen[super.dev_number];
    if (*seen != 0 && super.events - *seen > events_steps_max)
        events_steps_max = super.events - *seen;
    *seen = super.events;
    return 0;
}

static void
survivors_never_leave_each_other_behind(void)
{
    struct rig rig;
    struct rig_config config = shape(RAID5, LEFT_SYMMETRIC, 4);
    open_filled(&rig, &config);
    memset(events_seen, 0, sizeof(events_seen));
    events_steps_max = 0;
    for (uint32_t i = 0; i < 4; i++) {
        rig.devs[i]->hook = watch_events;
        rig.devs[i]->hook_ctx = &rig;
    }
    array_rig_run_ms(&rig, 1000); /* clean: every member has been seen once */
    rig.devs[2]->gone = true;
    CU_ASSERT_EQUAL(array_rig_write(&rig, 0, rig.size_bytes, 0), 0);
    array_rig_abandon(&rig);
    CU_ASSERT_EQUAL(events_steps_max, 1);
    CU_ASSERT(events_seen[0] >= events_seen[2] + 2);
    CU_ASSERT_EQUAL(events_seen[0], events_seen[1]);
    array_rig_destroy(&rig);
}

SUITE_MAIN("array_faults", T(survivors_never_leave_each_other_behind),
           T(a_bad_sector_is_reconstructed_rewritten_and_costs_no_member),
           T(what_nobody_can_give_is_an_error_for_that_range_only),
           T(partial_writes_over_a_bad_sector_recover_the_old_data_first),
           T(the_survivors_know_who_missed_a_write_before_it_is_acknowledged),
           T(a_full_file_system_is_not_a_broken_disk_but_costs_the_member),
           T(the_last_good_copy_is_kept_and_its_errors_are_the_clients),
           T(a_flush_that_fails_costs_the_member), T(a_flush_that_lost_data_never_turns_to_success),
           T(a_flush_touches_only_members_that_were_written),
           T(after_a_trim_every_copy_says_the_same),
           T(a_member_that_cannot_zero_after_all_gets_zeroes_written),
           T(a_replacement_is_written_along_and_read_below_its_frontier),
           T(md_bad_blocks_are_not_read_until_they_are_written),
           T(read_only_and_idle_arrays_write_nothing),
           T(a_member_can_be_taken_out_but_not_the_last_good_copy),
           T(a_stopping_array_answers_what_it_took_and_nothing_new),
           T(overlapping_writers_never_tear_redundancy))
