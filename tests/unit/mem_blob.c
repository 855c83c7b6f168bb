#include "tests/unit/mem_blob.h"

#include <isa-l/crc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/base/check.h"
#include "engine/base/units.h"

static struct mem_blob *
self(struct blob *blob)
{
    return CONTAINER_OF(blob, struct mem_blob, blob);
}

static bool
inside(const struct mem_blob *mem, size_t len, uint64_t off_bytes)
{
    return off_bytes <= mem->blob.size_bytes && len <= mem->blob.size_bytes - off_bytes;
}

static int
mem_read(struct blob *blob, void *to, size_t len, uint64_t off_bytes)
{
    struct mem_blob *mem = self(blob);
    if (mem->faults->cut || !inside(mem, len, off_bytes))
        return -EIO;
    memcpy(to, mem->bytes + off_bytes, len);
    return 0;
}

/* Counts an operation; 0 when it may go on. */
static int
operation(struct mem_faults *faults)
{
    uint64_t number = ++faults->operations;
    if (faults->cut_at != 0 && number >= faults->cut_at)
        faults->cut = true;
    return faults->cut || number == faults->fail_at ? -EIO : 0;
}

static int
mem_write(struct blob *blob, const void *from, size_t len, uint64_t off_bytes)
{
    struct mem_blob *mem = self(blob);
    int err = operation(mem->faults);
    if (err < 0 || !inside(mem, len, off_bytes))
        return -EIO;
    memcpy(mem->bytes + off_bytes, from, len);
    mem->data_written |=
        off_bytes + len > MEM_EDGE_BYTES && off_bytes < mem->blob.size_bytes - MEM_EDGE_BYTES;
    mem->written_low = MIN(mem->written_low, off_bytes);
    mem->written_high = MAX(mem->written_high, off_bytes + len);
    return 0;
}

static int
mem_flush(struct blob *blob)
{
    struct mem_blob *mem = self(blob);
    int err = operation(mem->faults);
    if (err < 0)
        return err;
    if (mem->written_low < mem->written_high)
        memcpy(mem->durable + mem->written_low, mem->bytes + mem->written_low,
               mem->written_high - mem->written_low);
    mem->written_low = mem->blob.size_bytes;
    mem->written_high = 0;
    return 0;
}

static void
mem_close(struct blob *blob)
{
    struct mem_blob *mem = self(blob);
    munmap(mem->bytes, blob->size_bytes);
    munmap(mem->durable, blob->size_bytes);
    free(mem);
}

static const struct blob_ops mem_ops = {mem_read, mem_write, mem_flush, mem_close};

/* Zeroes, in large pages: with small ones, tests of many short lives do little but fault them in.
 */
static uint8_t *
zeroes(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(memory != MAP_FAILED);
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

struct mem_blob *
mem_blob_new(struct mem_faults *faults, uint64_t size_bytes, unsigned number)
{
    struct mem_blob *mem = calloc(1, sizeof(*mem));
    check(mem != NULL);
    mem->blob = (struct blob){
        .ops = &mem_ops, .size_bytes = size_bytes, .logical_bytes = 512, .physical_bytes = 512};
    snprintf(mem->blob.path, sizeof(mem->blob.path), "mem:%u", number);
    mem->faults = faults;
    mem->bytes = zeroes(size_bytes);
    mem->durable = zeroes(size_bytes);
    mem->written_low = size_bytes;
    return mem;
}

void
mem_blob_free(struct mem_blob *blob)
{
    blob_close(&blob->blob);
}

void
mem_blob_after_cut(struct mem_blob *blob, struct rng *rng)
{
    for (uint64_t at = round_down(MIN(blob->written_low, blob->blob.size_bytes), SECTOR_BYTES);
         at < blob->written_high; at += SECTOR_BYTES) {
        uint8_t *seen = blob->bytes + at, *durable = blob->durable + at;
        if (rng_chance(rng, 50))
            memcpy(durable, seen, SECTOR_BYTES);
        else
            memcpy(seen, durable, SECTOR_BYTES);
    }
    blob->written_low = blob->blob.size_bytes;
    blob->written_high = 0;
}

uint64_t
mem_blob_hash(const struct mem_blob *blob)
{
    uint64_t edge = MIN(MEM_EDGE_BYTES, blob->blob.size_bytes);
    unsigned front = crc32_iscsi(blob->bytes, (int)edge, UINT32_MAX);
    return (uint64_t)front << 32 |
           crc32_iscsi(blob->bytes + blob->blob.size_bytes - edge, (int)edge, UINT32_MAX);
}
