#include "tests/unit/member_rig.h"

#include <CUnit/Basic.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/msg.h"
#include "engine/base/rng.h"

static void
be_quiet(enum msg_level level, const char *line, void *ctx)
{
    (void)level;
    (void)line;
    (void)ctx;
}

static bool
make_file(struct rig *rig, const char *directory, uint64_t size_bytes)
{
    snprintf(rig->path, sizeof(rig->path), "%s/sr5-test-XXXXXX", directory);
    CLEANUP_CLOSE int fd = mkostemp(rig->path, O_CLOEXEC);
    return fd >= 0 && ftruncate(fd, (off_t)size_bytes) == 0;
}

bool
member_rig_open(struct rig *rig, const struct io_backend *backend, const char *directory,
                uint32_t depth, uint64_t size_bytes)
{
    struct diag diag;
    *rig = (struct rig){0};
    msg_set_sink(be_quiet, NULL);
    if (!make_file(rig, directory, size_bytes)) {
        printf("skipped: no files in %s\n", directory);
        return false;
    }
    CU_ASSERT_EQUAL_FATAL(loop_create(&rig->loop, clock_real()), 0);
    if (io_context_create_with(&rig->context, rig->loop, backend, depth, &diag) < 0) {
        printf("skipped: %s: %s\n", diag.code, diag.message);
        member_rig_close(rig);
        return false;
    }
    struct member_open how = {.spec = rig->path};
    CU_ASSERT_EQUAL_FATAL(member_dev_open(&rig->dev, rig->context, &how, &diag), 0);
    return true;
}

void
member_rig_close(struct rig *rig)
{
    dev_close(rig->dev);
    io_context_destroy(rig->context);
    if (rig->loop != NULL)
        loop_destroy(rig->loop);
    unlink(rig->path);
    msg_set_sink(NULL, NULL);
}

void *
member_rig_memory(uint64_t bytes)
{
    void *memory = aligned_alloc(BLOCK_BYTES, round_up(bytes, BLOCK_BYTES));
    CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
    memset(memory, 0, bytes);
    return memory;
}

struct call {
    struct req req;
    bool done;
};

static void
call_done(struct req *req)
{
    struct call *call = CONTAINER_OF(req, struct call, req);
    CU_ASSERT_FALSE(call->done); /* I2 */
    call->done = true;
}

int
member_rig_call(struct loop *loop, struct dev *dev, enum req_op op, uint32_t flags,
                uint64_t off_bytes, void *data, uint64_t len_bytes)
{
    struct iovec iov = {data, len_bytes};
    bool has_data = op == REQ_READ || op == REQ_WRITE;
    struct call call = {.req = {.op = op,
                                .flags = flags,
                                .off_bytes = off_bytes,
                                .len_bytes = len_bytes,
                                .iov = has_data ? &iov : NULL,
                                .iov_count = has_data ? 1 : 0,
                                .err = 1,
                                .done = call_done}};
    dev_submit(dev, &call.req);
    CU_ASSERT_EQUAL_FATAL(loop_run_until(loop, &call.done), 0);
    return call.req.err;
}

int
member_rig_io(struct rig *rig, enum req_op op, uint32_t flags, uint64_t off_bytes, void *data,
              uint64_t len_bytes)
{
    return member_rig_call(rig->loop, rig->dev, op, flags, off_bytes, data, len_bytes);
}

/* ---- the contract test: the file is cut into slots, each with one request at a time ------------
 */

#define SLOT_COUNT 48u
#define SLOT_BYTES KIB(16)
#define IOV_COUNT  4u

struct contract;

struct slot {
    struct req req;
    struct contract *contract;
    struct iovec iov[IOV_COUNT];
    uint8_t *memory;
    uint8_t *model;   /* what the slot holds */
    uint8_t *unknown; /* a trimmed byte: what the next read says */
};

struct contract {
    struct rig *rig;
    struct rng rng;
    struct slot slots[SLOT_COUNT];
    uint32_t left, in_flight;
    bool done;
};

static void slot_start(struct slot *slot);

/* Cut [memory, memory+len) into up to IOV_COUNT pieces. */
static uint32_t
cut_iov(struct contract *contract, struct slot *slot, uint64_t len, uint32_t unit)
{
    uint32_t count = 0;
    uint8_t *at = slot->memory;
    while (len > 0) {
        uint64_t part = rng_range(&contract->rng, 1, len / unit) * unit;
        if (count == IOV_COUNT - 1)
            part = len;
        slot->iov[count++] = (struct iovec){at, part};
        at += part;
        len -= part;
    }
    return count;
}

static void
slot_check(struct slot *slot)
{
    const struct req *req = &slot->req;
    uint64_t from = req->off_bytes % SLOT_BYTES;
    bool same = true;
    for (uint64_t i = 0; i < req->len_bytes; i++) {
        uint8_t *model = &slot->model[from + i], *unknown = &slot->unknown[from + i];
        switch (req->op) {
        case REQ_READ:
            same = same && (*unknown || *model == slot->memory[i]);
            *model = slot->memory[i];
            *unknown = false;
            break;
        case REQ_WRITE:
        case REQ_ZERO:
            *model = req->op == REQ_WRITE ? slot->memory[i] : 0;
            *unknown = false;
            break;
        case REQ_TRIM:
            *unknown = true;
            break;
        case REQ_FLUSH:
        case REQ_CACHE:
            break;
        }
    }
    CU_ASSERT_TRUE(same);
}

static void
slot_done(struct req *req)
{
    struct slot *slot = CONTAINER_OF(req, struct slot, req);
    struct contract *contract = slot->contract;
    CU_ASSERT_EQUAL(req->err, 0);
    slot_check(slot);
    contract->in_flight--;
    if (contract->left > 0)
        slot_start(slot);
    else
        contract->done = contract->in_flight == 0;
}

static void
slot_start(struct slot *slot)
{
    struct contract *contract = slot->contract;
    static const enum req_op ops[] = {REQ_READ,  REQ_READ, REQ_READ, REQ_WRITE, REQ_WRITE,
                                      REQ_WRITE, REQ_ZERO, REQ_TRIM, REQ_FLUSH, REQ_CACHE};
    struct dev_info info = dev_info(contract->rig->dev);
    struct req *req = &slot->req;
    uint64_t blocks = SLOT_BYTES / info.logical_bytes;
    uint64_t first = rng_below(&contract->rng, blocks);
    uint64_t count = rng_range(&contract->rng, 1, blocks - first);
    *req = (struct req){.op = ops[rng_below(&contract->rng, ARRAY_LEN(ops))], .done = slot_done};
    contract->left--;
    contract->in_flight++;
    if (req->op != REQ_FLUSH) {
        req->off_bytes =
            (uint64_t)(slot - contract->slots) * SLOT_BYTES + first * info.logical_bytes;
        req->len_bytes = count * info.logical_bytes;
    }
    if (req_is_write(req) && rng_chance(&contract->rng, 20))
        req->flags |= REQ_FUA;
    if (req->op == REQ_ZERO && rng_chance(&contract->rng, 30))
        req->flags |= REQ_NO_HOLE;
    if (req->op == REQ_WRITE)
        rng_fill(&contract->rng, slot->memory, req->len_bytes);
    if (req->op == REQ_READ || req->op == REQ_WRITE) {
        req->iov = slot->iov;
        req->iov_count = cut_iov(contract, slot, req->len_bytes, info.logical_bytes);
    }
    dev_submit(contract->rig->dev, req);
}

void
member_rig_contract(struct rig *rig, uint64_t seed, uint32_t request_count)
{
    CU_ASSERT_FATAL(dev_info(rig->dev).size_bytes >= SLOT_COUNT * SLOT_BYTES);
    struct contract *contract = calloc(1, sizeof(*contract));
    uint8_t *memory = member_rig_memory(3 * SLOT_COUNT * SLOT_BYTES);
    contract->rig = rig;
    contract->left = request_count;
    rng_seed(&contract->rng, seed);
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        struct slot *slot = &contract->slots[i];
        slot->contract = contract;
        slot->memory = memory + 3 * i * SLOT_BYTES;
        slot->model = slot->memory + SLOT_BYTES;
        slot->unknown = slot->model + SLOT_BYTES;
    }
    contract->in_flight = 1; /* our own, while submitting (I3) */
    for (uint32_t i = 0; i < SLOT_COUNT && contract->left > 0; i++)
        slot_start(&contract->slots[i]);
    contract->done = --contract->in_flight == 0;
    CU_ASSERT_EQUAL(loop_run_until(rig->loop, &contract->done), 0);
    free(memory);
    free(contract);
}
