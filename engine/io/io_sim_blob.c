/* Synchronous access to a simulated member: what create and assemble use of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/io/io_sim_member.h"

struct sim_blob {
    struct blob blob;
    struct sim_member *member;
};

static struct sim_member *
blob_member(struct blob *blob)
{
    return CONTAINER_OF(blob, struct sim_blob, blob)->member;
}

static int
blob_check(struct blob *blob, size_t len, uint64_t off_bytes)
{
    if (blob_member(blob)->gone)
        return -ENODEV;
    return off_bytes <= blob->size_bytes && len <= blob->size_bytes - off_bytes ? 0 : -EIO;
}

static int
sim_blob_read(struct blob *blob, void *to, size_t len, uint64_t off_bytes)
{
    uint8_t page[BLOCK_BYTES];
    uint8_t *at = to;
    int err = blob_check(blob, len, off_bytes);
    while (err == 0 && len > 0) {
        uint64_t in = off_bytes % BLOCK_BYTES, start = round_down(in, SECTOR_BYTES);
        size_t part = MIN(BLOCK_BYTES - in, len);
        err = sim_image_read(&blob_member(blob)->image, page + start, off_bytes - in + start,
                             round_up(in + part, SECTOR_BYTES) - start);
        if (err == 0)
            memcpy(at, page + in, part);
        at += part;
        off_bytes += part;
        len -= part;
    }
    return err;
}

static int
sim_blob_write(struct blob *blob, const void *from, size_t len, uint64_t off_bytes)
{
    struct sim_member *member = blob_member(blob);
    uint8_t page[BLOCK_BYTES];
    const uint8_t *at = from;
    int err = blob_check(blob, len, off_bytes);
    if (err == 0 && sim_take_one(&member->fail_writes))
        err = -EIO;
    while (err == 0 && len > 0) {
        uint64_t in = off_bytes % BLOCK_BYTES, start = round_down(in, SECTOR_BYTES);
        size_t part = MIN(BLOCK_BYTES - in, len);
        uint64_t touched = round_up(in + part, SECTOR_BYTES) - start;
        if (touched != part) /* whole sectors are not read: they may be bad */
            err = sim_image_read(&member->image, page + start, off_bytes - in + start, touched);
        memcpy(page + in, at, part);
        struct sim_patch patch = {.page_index = off_bytes / BLOCK_BYTES,
                                  .sectors = sim_sector_bits(start, touched),
                                  .data = page};
        if (err == 0)
            sim_put(member, &patch, !member->config.volatile_cache);
        at += part;
        off_bytes += part;
        len -= part;
    }
    return err;
}

static int
sim_blob_flush(struct blob *blob)
{
    struct sim_member *member = blob_member(blob);
    if (member->gone)
        return -ENODEV;
    if (sim_take_one(&member->fail_flushes))
        return -EIO;
    sim_image_flush(&member->image, UINT64_MAX);
    return 0;
}

static void
sim_blob_close(struct blob *blob)
{
    free(CONTAINER_OF(blob, struct sim_blob, blob));
}

static const struct blob_ops sim_blob_ops = {
    .read = sim_blob_read,
    .write = sim_blob_write,
    .flush = sim_blob_flush,
    .close = sim_blob_close,
};

int
sim_member_blob(struct sim_member *member, struct blob **out)
{
    struct sim_blob *sim = calloc(1, sizeof(*sim));
    if (sim == NULL)
        return -ENOMEM;
    sim->member = member;
    sim->blob.ops = &sim_blob_ops;
    sim->blob.size_bytes = member->config.size_bytes;
    sim->blob.logical_bytes = member->config.logical_bytes;
    sim->blob.physical_bytes = MAX(member->config.logical_bytes, BLOCK_BYTES);
    snprintf(sim->blob.path, sizeof(sim->blob.path), "sim:%" PRIx64, member->seed);
    *out = &sim->blob;
    return 0;
}
