#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "tests/unit/member_rig.h"
#include "tests/unit/suite.h"

#define FILE_BYTES MIB(1)

static void
contract_on(const char *directory, uint32_t depth)
{
    struct rig rig;
    if (!member_rig_open(&rig, &io_backend_libaio, directory, depth, FILE_BYTES))
        return;
    member_rig_contract(&rig, suite_seed(), 3000);
    member_rig_close(&rig);
}

static void
libaio_keeps_the_contract_on_a_disk(void)
{
    contract_on(RIG_DISK, 64);
}

static void
libaio_keeps_the_contract_in_memory(void)
{
    contract_on(RIG_MEMORY, 64);
}

static void
libaio_with_fewer_operations_than_requests_serves_them_in_turn(void)
{
    contract_on(RIG_DISK, 3);
    contract_on(RIG_MEMORY, 1);
}

/* ---- one batch a turn ------------------------------------------------------------------------ */

static uint32_t pushes, batches;

static void
counting_push(struct io_context *context, struct io_op *op)
{
    pushes++;
    io_backend_libaio.push(context, op);
}

static void
counting_submit(struct io_context *context)
{
    static uint32_t pushes_before;
    batches += pushes != pushes_before;
    pushes_before = pushes;
    io_backend_libaio.submit(context);
}

static uint32_t many_left;
static bool many_done;

static void
one_of_many_done(struct req *req)
{
    CU_ASSERT_EQUAL(req->err, 0);
    many_done = --many_left == 0;
}

static void
requests_of_one_turn_are_one_batch(void)
{
    struct io_backend counting = io_backend_libaio;
    counting.push = counting_push;
    counting.submit = counting_submit;
    struct rig rig;
    if (!member_rig_open(&rig, &counting, RIG_DISK, 32, FILE_BYTES))
        return;
    struct req reqs[32];
    struct iovec iov[32];
    uint8_t *memory = member_rig_memory(32 * BLOCK_BYTES);
    pushes = batches = 0;
    many_left = 32;
    many_done = false;
    for (uint32_t i = 0; i < 32; i++) {
        iov[i] = (struct iovec){memory + i * BLOCK_BYTES, BLOCK_BYTES};
        reqs[i] = (struct req){.op = i % 2 != 0 ? REQ_READ : REQ_WRITE,
                               .off_bytes = i * BLOCK_BYTES,
                               .len_bytes = BLOCK_BYTES,
                               .iov = &iov[i],
                               .iov_count = 1,
                               .done = one_of_many_done};
        dev_submit(rig.dev, &reqs[i]);
    }
    CU_ASSERT_EQUAL(loop_run_until(rig.loop, &many_done), 0);
    CU_ASSERT_EQUAL(pushes, 32);
    CU_ASSERT_EQUAL(batches, 1);
    free(memory);
    member_rig_close(&rig);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void
more_pieces_of_memory_than_the_kernel_takes_go_in_rounds(void)
{
    struct rig rig;
    uint32_t count = 3000, piece = 512;
    if (!member_rig_open(&rig, &io_backend_libaio, RIG_MEMORY, 4, count * piece))
        return;
    uint8_t *memory = member_rig_memory(2 * count * piece), *again = memory + count * piece;
    struct iovec *iov = calloc(count, sizeof(*iov));
    for (uint32_t i = 0; i < count; i++) {
        iov[i] = (struct iovec){memory + (count - 1 - i) * piece, piece};
        memset(iov[i].iov_base, (int)(i % 251), piece);
    }
    struct req req = {.op = REQ_WRITE,
                      .len_bytes = count * piece,
                      .iov = iov,
                      .iov_count = count,
                      .done = one_of_many_done};
    many_left = 1;
    many_done = false;
    dev_submit(rig.dev, &req);
    CU_ASSERT_EQUAL(loop_run_until(rig.loop, &many_done), 0);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, 0, again, count * piece), 0);
    for (uint32_t i = 0; i < count; i++)
        CU_ASSERT_EQUAL(again[i * piece], i % 251);
    free(iov);
    free(memory);
    member_rig_close(&rig);
}

static void
zeroes_of_many_mebibytes_read_back_as_zeroes(void)
{
    static const uint32_t flags[] = {0, REQ_FUA, REQ_NO_HOLE, REQ_NO_HOLE | REQ_FUA};
    for (unsigned i = 0; i < 2 * ARRAY_LEN(flags); i++) {
        struct rig rig;
        uint64_t size = MIB(5);
        if (!member_rig_open(&rig, &io_backend_libaio, i % 2 != 0 ? RIG_DISK : RIG_MEMORY, 8, size))
            continue;
        uint8_t *memory = member_rig_memory(size);
        memset(memory, 0x77, size);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_WRITE, 0, 0, memory, size), 0);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_ZERO, flags[i / 2], KIB(4), NULL, size - KIB(8)),
                        0);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, 0, memory, size), 0);
        for (uint64_t at = 0; at < size; at += 509)
            CU_ASSERT_EQUAL(memory[at], at < KIB(4) || at >= size - KIB(4) ? 0x77 : 0);
        free(memory);
        member_rig_close(&rig);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void
reading_past_the_end_of_a_file_that_shrank_is_eio(void)
{
    static const char *const directories[] = {RIG_DISK, RIG_MEMORY};
    for (unsigned i = 0; i < ARRAY_LEN(directories); i++) {
        struct rig rig;
        if (!member_rig_open(&rig, &io_backend_libaio, directories[i], 4, FILE_BYTES))
            continue;
        uint8_t *memory = member_rig_memory(KIB(64));
        CU_ASSERT_EQUAL(truncate(rig.path, KIB(32) + 100), 0);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, 0, memory, KIB(32)), 0);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, 0, memory, KIB(64)), -EIO);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, KIB(64), memory, KIB(4)), -EIO);
        free(memory);
        member_rig_close(&rig);
    }
}

static void
a_full_file_system_is_enospc_and_not_eio(void)
{
    char directory[] = "/tmp/sr5-full-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
    if (mount("sr5", directory, "tmpfs", 0, "size=256k") != 0) {
        printf("skipped: cannot mount a small file system\n");
        rmdir(directory);
        return;
    }
    struct rig rig;
    if (member_rig_open(&rig, &io_backend_libaio, directory, 4, FILE_BYTES)) {
        uint8_t *memory = member_rig_memory(FILE_BYTES);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_WRITE, 0, 0, memory, KIB(64)), 0);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_WRITE, 0, 0, memory, FILE_BYTES), -ENOSPC);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_ZERO, REQ_NO_HOLE, 0, NULL, FILE_BYTES), -ENOSPC);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_TRIM, 0, 0, NULL, FILE_BYTES), 0);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_WRITE, REQ_FUA, 0, memory, KIB(64)), 0);
        free(memory);
        member_rig_close(&rig);
    }
    CU_ASSERT_EQUAL(umount(directory), 0);
    rmdir(directory);
}

static void
errnos_become_the_three_that_members_have(void)
{
    CU_ASSERT_EQUAL(io_error(0), 0);
    CU_ASSERT_EQUAL(io_error(-ENOSPC), -ENOSPC);
    CU_ASSERT_EQUAL(io_error(-EDQUOT), -ENOSPC);
    CU_ASSERT_EQUAL(io_error(-ENXIO), -ENODEV);
    CU_ASSERT_EQUAL(io_error(-ENODEV), -ENODEV);
    CU_ASSERT_EQUAL(io_error(-EREMOTEIO), -EIO);
    CU_ASSERT_EQUAL(io_error(-EINVAL), -EIO);
}

SUITE_MAIN("io_libaio", T(libaio_keeps_the_contract_on_a_disk),
           T(libaio_keeps_the_contract_in_memory),
           T(libaio_with_fewer_operations_than_requests_serves_them_in_turn),
           T(requests_of_one_turn_are_one_batch),
           T(more_pieces_of_memory_than_the_kernel_takes_go_in_rounds),
           T(zeroes_of_many_mebibytes_read_back_as_zeroes),
           T(reading_past_the_end_of_a_file_that_shrank_is_eio),
           T(a_full_file_system_is_enospc_and_not_eio),
           T(errnos_become_the_three_that_members_have))
