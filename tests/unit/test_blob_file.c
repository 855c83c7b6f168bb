#include <fcntl.h>
#include <string.h>

#include "engine/base/blob.h"
#include "engine/base/rng.h"

#include "tests/unit/member_rig.h"
#include "tests/unit/suite.h"

#define FILE_BYTES (KIB(256) + 512)

struct blobs {
    char path[32];
    struct blob *blob;
    uint8_t *model, *memory;
};

static void
blobs_start(struct blobs *b)
{
    struct diag diag;
    strcpy(b->path, "/tmp/sr5-blob-XXXXXX");
    CLEANUP_CLOSE int fd = mkostemp(b->path, O_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0);
    CU_ASSERT_EQUAL_FATAL(blob_file_open(&b->blob, b->path, false, &diag), 0);
    b->model = member_rig_memory(FILE_BYTES);
    b->memory = member_rig_memory(FILE_BYTES);
}

static void
blobs_end(struct blobs *b)
{
    blob_close(b->blob);
    unlink(b->path);
    free(b->model);
    free(b->memory);
}

static void
any_range_can_be_read_and_written(void)
{
    struct blobs b;
    struct rng rng;
    rng_seed(&rng, suite_seed());
    blobs_start(&b);
    CU_ASSERT_EQUAL(b.blob->size_bytes, FILE_BYTES);
    CU_ASSERT_STRING_EQUAL(b.blob->path, b.path);
    for (uint32_t i = 0; i < 300; i++) {
        uint64_t off = rng_below(&rng, FILE_BYTES), len = rng_range(&rng, 0, FILE_BYTES - off);
        if (rng_chance(&rng, 50)) {
            rng_fill(&rng, b.model + off, len);
            CU_ASSERT_EQUAL(blob_write(b.blob, b.model + off, len, off), 0);
        } else {
            CU_ASSERT_EQUAL(blob_read(b.blob, b.memory, len, off), 0);
            CU_ASSERT_EQUAL(memcmp(b.memory, b.model + off, len), 0);
        }
    }
    CU_ASSERT_EQUAL(blob_flush(b.blob), 0);
    blobs_end(&b);
}

static void
past_the_end_is_eio_and_the_file_does_not_grow(void)
{
    struct blobs b;
    blobs_start(&b);
    CU_ASSERT_EQUAL(blob_read(b.blob, b.memory, 2, FILE_BYTES - 1), -EIO);
    CU_ASSERT_EQUAL(blob_write(b.blob, b.memory, 1, FILE_BYTES), -EIO);
    CU_ASSERT_EQUAL(blob_write(b.blob, b.memory, 2, UINT64_MAX), -EIO);
    CU_ASSERT_EQUAL(truncate(b.path, 100), 0);
    CU_ASSERT_EQUAL(blob_read(b.blob, b.memory, 200, 0), -EIO);
    blobs_end(&b);
}

static void
a_writer_keeps_writers_out_and_lets_lookers_in(void)
{
    struct blobs b;
    struct diag diag;
    struct blob *other;
    blobs_start(&b);
    CU_ASSERT_EQUAL(blob_file_open(&other, b.path, false, &diag), -EBUSY);
    CU_ASSERT_STRING_EQUAL(diag.code, "E_IN_USE");
    CU_ASSERT_EQUAL_FATAL(blob_file_open(&other, b.path, true, &diag), 0);
    CU_ASSERT_EQUAL(blob_write(b.blob, "seen", 4, 1000), 0);
    CU_ASSERT_EQUAL(blob_read(other, b.memory, 4, 1000), 0);
    CU_ASSERT_EQUAL(memcmp(b.memory, "seen", 4), 0);
    CU_ASSERT(blob_write(other, "no", 2, 0) < 0);
    blob_close(other);
    blobs_end(&b);
}

static void
a_blob_sees_what_a_member_wrote_and_back(void)
{
    struct rig rig;
    struct diag diag;
    struct blob *blob;
    if (!member_rig_open(&rig, &io_backend_libaio, RIG_DISK, 4, KIB(64)))
        return;
    uint8_t *memory = member_rig_memory(BLOCK_BYTES), byte;
    CU_ASSERT_EQUAL_FATAL(blob_file_open(&blob, rig.path, true, &diag), 0);
    for (uint8_t i = 1; i < 20; i++) {
        memset(memory, i, BLOCK_BYTES);
        CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_WRITE, 0, 0, memory, BLOCK_BYTES), 0);
        CU_ASSERT_EQUAL(blob_read(blob, &byte, 1, 1234), 0);
        CU_ASSERT_EQUAL(byte, i);
    }
    blob_close(blob);
    CLEANUP_CLOSE int fd = open(rig.path, O_RDWR | O_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(blob_fd_open(&blob, fd, "by descriptor", &diag), 0);
    CU_ASSERT_EQUAL(blob_write(blob, "x", 1, 1234), 0);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, 0, memory, BLOCK_BYTES), 0);
    CU_ASSERT_EQUAL(memory[1234], 'x');
    blob_close(blob);
    CU_ASSERT_EQUAL(fcntl(fd, F_GETFD) >= 0, true); /* still open */
    free(memory);
    member_rig_close(&rig);
}

static void
what_cannot_be_opened_is_named(void)
{
    struct diag diag;
    struct blob *blob;
    CU_ASSERT_EQUAL(blob_file_open(&blob, "/tmp/sr5-no-such-file", true, &diag), -ENOENT);
    CU_ASSERT_STRING_EQUAL(diag.code, "E_OPEN");
    CU_ASSERT_PTR_NOT_NULL(strstr(diag.message, "/tmp/sr5-no-such-file"));
    CU_ASSERT_EQUAL(blob_fd_open(&blob, -1, "nothing", &diag), -EBADF);
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    CU_ASSERT_EQUAL(blob_fd_open(&blob, ends[0], "pipe", &diag), -ENOTBLK);
    close(ends[0]);
    close(ends[1]);
}

SUITE_MAIN("blob_file", T(any_range_can_be_read_and_written),
           T(past_the_end_is_eio_and_the_file_does_not_grow),
           T(a_writer_keeps_writers_out_and_lets_lookers_in),
           T(a_blob_sees_what_a_member_wrote_and_back), T(what_cannot_be_opened_is_named))
