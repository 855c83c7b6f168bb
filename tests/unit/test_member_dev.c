#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "engine/base/rng.h"

#include "tests/unit/member_rig.h"
#include "tests/unit/suite.h"

#define FILE_BYTES MIB(1)

/* ---- a back end that finds every excuse -------------------------------------------------------
 */

static struct rng mean_rng;
static struct list mean_pushed;
static uint32_t mean_syncs, mean_refusals;

static int
mean_create(struct io_context *context, struct diag *diag)
{
    (void)context;
    (void)diag;
    list_init(&mean_pushed);
    return 0;
}

static void
mean_destroy(struct io_context *context)
{
    (void)context;
}

static void
mean_push(struct io_context *context, struct io_op *op)
{
    (void)context;
    list_push_back(&mean_pushed, &op->node);
}

/* Only a part, not even of whole blocks, or nothing now, or "not in this kernel". */
static int64_t
mean_result(struct io_op *op)
{
    if (rng_chance(&mean_rng, 10) && op->kind != IO_SYNC)
        return -EINTR;
    if (op->dsync || op->kind == IO_SYNC) {
        mean_refusals++;
        mean_syncs += op->kind == IO_SYNC;
        return op->dsync ? -EOPNOTSUPP : -EINVAL;
    }
    struct iovec part = op->iov[0];
    uint64_t unit = op->member->file.direct ? op->member->file.info.logical_bytes : 1;
    if (part.iov_len > unit && rng_chance(&mean_rng, 70))
        part.iov_len = rng_range(&mean_rng, 1, part.iov_len / unit) * unit;
    int fd = op->member->file.fd;
    ssize_t got = op->kind == IO_READ ? preadv(fd, &part, 1, (off_t)op->off_bytes)
                                      : pwritev(fd, &part, 1, (off_t)op->off_bytes);
    if (got > (ssize_t)unit && unit > 1 && rng_chance(&mean_rng, 20))
        got -= 100; /* says less than it did */
    return got < 0 ? -errno : got;
}

static void
mean_submit(struct io_context *context)
{
    (void)context;
    for (struct list_node *node; (node = list_pop_front(&mean_pushed)) != NULL;) {
        struct io_op *op = CONTAINER_OF(node, struct io_op, node);
        io_op_completed(op, mean_result(op));
    }
}

static const struct io_backend mean = {
    .name = "mean",
    .create = mean_create,
    .destroy = mean_destroy,
    .push = mean_push,
    .submit = mean_submit,
};

static void
short_counts_interruptions_and_old_kernels_make_no_difference(void)
{
    static const char *const directories[] = {RIG_DISK, RIG_MEMORY};
    rng_seed(&mean_rng, suite_seed());
    for (unsigned i = 0; i < ARRAY_LEN(directories); i++) {
        struct rig rig;
        if (!member_rig_open(&rig, &mean, directories[i], 16, FILE_BYTES))
            continue;
        member_rig_contract(&rig, suite_seed(), 2000);
        member_rig_close(&rig);
    }
}

static void
a_durable_write_without_dsync_is_a_write_and_a_sync(void)
{
    struct rig rig;
    if (!member_rig_open(&rig, &mean, RIG_DISK, 16, FILE_BYTES))
        return;
    uint8_t *memory = member_rig_memory(BLOCK_BYTES);
    mean_syncs = mean_refusals = 0;
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_WRITE, REQ_FUA, 0, memory, BLOCK_BYTES), 0);
    CU_ASSERT_EQUAL(mean_refusals, 2); /* RWF_DSYNC and the asynchronous fdatasync */
    CU_ASSERT_EQUAL(mean_syncs, 1);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_WRITE, REQ_FUA, 0, memory, BLOCK_BYTES), 0);
    CU_ASSERT_EQUAL(mean_refusals, 2); /* once is enough */
    free(memory);
    member_rig_close(&rig);
}

static void
the_skeleton_is_a_back_end(void)
{
    struct rig rig;
    if (!member_rig_open(&rig, &io_backend_skeleton, RIG_DISK, 16, FILE_BYTES))
        return;
    member_rig_contract(&rig, suite_seed(), 1000);
    member_rig_close(&rig);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int
open_again(struct rig *rig, const char *spec, bool read_only, bool no_lock, struct diag *diag)
{
    struct dev *dev;
    struct member_open how = {.spec = spec, .read_only = read_only, .no_lock = no_lock};
    memset(diag, 0, sizeof(*diag));
    int err = member_dev_open(&dev, rig->context, &how, diag);
    if (err == 0)
        dev_close(dev);
    return err;
}

static void
a_member_is_open_once_by_whatever_name(void)
{
    struct rig rig;
    struct diag diag;
    char hard[80], soft[80];
    if (!member_rig_open(&rig, &io_backend_libaio, RIG_DISK, 4, FILE_BYTES))
        return;
    snprintf(hard, sizeof(hard), "%s.hard", rig.path);
    snprintf(soft, sizeof(soft), "%s.soft", rig.path);
    CU_ASSERT_EQUAL(link(rig.path, hard), 0);
    CU_ASSERT_EQUAL(symlink(rig.path, soft), 0);
    const char *names[] = {rig.path, hard, soft};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        CU_ASSERT_EQUAL(open_again(&rig, names[i], false, false, &diag), -EBUSY);
        CU_ASSERT_STRING_EQUAL(diag.code, "E_IN_USE");
        CU_ASSERT_PTR_NOT_NULL(strstr(diag.message, names[i]));
        CU_ASSERT_NOT_EQUAL(diag.fix[0][0], '\0');
        CU_ASSERT_EQUAL(open_again(&rig, names[i], true, false, &diag), -EBUSY);
        CU_ASSERT_EQUAL(open_again(&rig, names[i], false, true, &diag), 0);
    }
    unlink(hard);
    unlink(soft);
    member_rig_close(&rig);
}

static void
readers_share_a_member_and_keep_writers_out(void)
{
    struct rig rig;
    struct diag diag;
    if (!member_rig_open(&rig, &io_backend_libaio, RIG_DISK, 4, FILE_BYTES))
        return;
    dev_close(rig.dev);
    struct member_open how = {.spec = rig.path, .read_only = true};
    CU_ASSERT_EQUAL_FATAL(member_dev_open(&rig.dev, rig.context, &how, &diag), 0);
    CU_ASSERT_TRUE(dev_info(rig.dev).read_only);
    CU_ASSERT_FALSE(dev_info(rig.dev).can_trim);
    CU_ASSERT_EQUAL(open_again(&rig, rig.path, true, false, &diag), 0);
    CU_ASSERT_EQUAL(open_again(&rig, rig.path, false, false, &diag), -EBUSY);
    member_rig_close(&rig);
}

static void
what_is_no_file_or_device_is_refused_with_its_name(void)
{
    static const char *const paths[] = {"/tmp/sr5-no-such-file", "/tmp", "/dev/null"};
    struct rig rig;
    struct diag diag;
    if (!member_rig_open(&rig, &io_backend_libaio, RIG_DISK, 4, FILE_BYTES))
        return;
    for (unsigned i = 0; i < ARRAY_LEN(paths); i++) {
        CU_ASSERT(open_again(&rig, paths[i], false, false, &diag) < 0);
        CU_ASSERT_STRING_EQUAL(diag.code, "E_OPEN");
        CU_ASSERT_PTR_NOT_NULL(strstr(diag.message, paths[i]));
    }
    member_rig_close(&rig);
}

static void
a_spec_is_a_path_perhaps_behind_faults(void)
{
    CU_ASSERT_STRING_EQUAL(member_spec_path("/a/b:c"), "/a/b:c");
    CU_ASSERT_STRING_EQUAL(member_spec_path("fault:gone:/a/b:c"), "/a/b:c");
    CU_ASSERT_STRING_EQUAL(member_spec_path("fault::/a"), "/a");
    CU_ASSERT_STRING_EQUAL(member_spec_path("fault:/a"), "");
    struct rig rig;
    struct diag diag;
    char spec[128];
    if (!member_rig_open(&rig, &io_backend_libaio, RIG_DISK, 4, FILE_BYTES))
        return;
    dev_close(rig.dev);
    snprintf(spec, sizeof(spec), "fault:short=64K,eio-read@0+512:%s", rig.path);
    struct member_open how = {.spec = spec};
    CU_ASSERT_EQUAL_FATAL(member_dev_open(&rig.dev, rig.context, &how, &diag), 0);
    CU_ASSERT_EQUAL(dev_info(rig.dev).size_bytes, FILE_BYTES - KIB(64));
    uint8_t *memory = member_rig_memory(BLOCK_BYTES);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, 0, memory, BLOCK_BYTES), -EIO);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, BLOCK_BYTES, memory, BLOCK_BYTES), 0);
    CU_ASSERT_EQUAL(open_again(&rig, "fault:gone", false, false, &diag), -EINVAL);
    CU_ASSERT_STRING_EQUAL(diag.code, "E_USAGE");
    CU_ASSERT_EQUAL(open_again(&rig, "", false, false, &diag), -EINVAL);
    free(memory);
    member_rig_close(&rig);
}

static void
a_member_tells_its_size_and_alignment(void)
{
    static const char *const directories[] = {RIG_DISK, RIG_MEMORY};
    for (unsigned i = 0; i < ARRAY_LEN(directories); i++) {
        struct rig rig;
        if (!member_rig_open(&rig, &io_backend_libaio, directories[i], 4, FILE_BYTES + 700))
            continue;
        struct dev_info info = dev_info(rig.dev);
        CU_ASSERT(info.logical_bytes == 512 || info.logical_bytes == 4096);
        CU_ASSERT_EQUAL(info.size_bytes, round_down(FILE_BYTES + 700, info.logical_bytes));
        CU_ASSERT(info.physical_bytes >= info.logical_bytes);
        CU_ASSERT(info.mem_align == 1 || info.mem_align == info.logical_bytes);
        CU_ASSERT_FALSE(info.read_only);
        CU_ASSERT_TRUE(info.volatile_cache);
        CU_ASSERT_TRUE(info.can_zero && info.can_trim);
        struct stat st;
        CU_ASSERT_EQUAL(stat(rig.path, &st), 0);
        CU_ASSERT_EQUAL(st.st_size, FILE_BYTES + 700); /* probing changed nothing */
        CU_ASSERT_EQUAL(st.st_blocks, 0);
        member_rig_close(&rig);
    }
}

static void
fast_zero_is_refused_where_holes_do_not_work(void)
{
    struct rig rig;
    if (!member_rig_open(&rig, &io_backend_libaio, RIG_DISK, 4, FILE_BYTES))
        return;
    struct member *member = CONTAINER_OF(rig.dev, struct member, dev);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_ZERO, REQ_FAST_ZERO, 0, NULL, KIB(64)), 0);
    member->file.info.can_zero = false;
    uint8_t *memory = member_rig_memory(KIB(64));
    memset(memory, 1, KIB(64));
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_WRITE, 0, 0, memory, KIB(64)), 0);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_ZERO, REQ_FAST_ZERO, 0, NULL, KIB(64)), -ENOTSUP);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_ZERO, REQ_FUA, KIB(4), NULL, KIB(60)), 0);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, 0, memory, KIB(64)), 0);
    CU_ASSERT(memory[0] == 1 && memory[KIB(4)] == 0 && memory[KIB(64) - 1] == 0);
    free(memory);
    member_rig_close(&rig);
}

SUITE_MAIN("member_dev", T(short_counts_interruptions_and_old_kernels_make_no_difference),
           T(a_durable_write_without_dsync_is_a_write_and_a_sync), T(the_skeleton_is_a_back_end),
           T(a_member_is_open_once_by_whatever_name),
           T(readers_share_a_member_and_keep_writers_out),
           T(what_is_no_file_or_device_is_refused_with_its_name),
           T(a_spec_is_a_path_perhaps_behind_faults), T(a_member_tells_its_size_and_alignment),
           T(fast_zero_is_refused_where_holes_do_not_work))
