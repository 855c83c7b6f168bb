/* Clients: requests of any shape, each checked against the model when it is answered. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/allowance.h"

#define GUARD      0xee /* what a read's memory holds before */
#define SKEW_MAX   16u
#define SMALL_MAX  KIB(1)
#define MIDDLE_MAX KIB(16)

static const char *
word(enum req_op op, uint32_t flags)
{
    static const char *const words[REQ_OP_COUNT] = {"read", "write", "flush",
                                                    "trim", "zero",  "cache"};
    if (op == REQ_WRITE && (flags & REQ_FUA))
        return "fua";
    return words[op];
}

/* ---- answers ------------------------------------------------------------------------------- */

/* A client may rely on it: who is not in use from here on has missed something (P5). */
static void
note_missed(struct run *run, const struct client *client, int err)
{
    if (err != 0 || (client->io.op != REQ_WRITE && client->io.op != REQ_ZERO))
        return;
    uint64_t sound = run->sim.roles_in_use;
    const struct array_status *status = NULL;
    for (uint32_t i = 0; i < run->sim.plan.member_count; i++)
        if (run->sim.disks[i].out && status == NULL)
            status = run_status(run);
    for (uint32_t i = 0; status != NULL && i < status->member_count; i++)
        if (status->members[i].state == MS_FAULTY && status->members[i].role >= 0)
            sound &= ~mask_of((uint32_t)status->members[i].role);
    for (uint32_t role = 0; role < run->sim.geometry.member_count; role++) {
        uint32_t disk = run->sim.disk_of_role[role];
        if (disk != DISKS_MAX && !(sound & mask_of(role)))
            run->sim.disks[disk].missed = true;
    }
    for (uint32_t disk = 0; disk < run->sim.plan.member_count; disk++) {
        bool in_use = false;
        for (uint32_t role = 0; role < run->sim.geometry.member_count; role++)
            in_use |= run->sim.disk_of_role[role] == disk;
        if (!in_use)
            run->sim.disks[disk].missed = true;
    }
}

static bool
may_fail(struct run *run, const struct client *client, int err)
{
    const struct req *req = &client->req;
    if (run->expect_errors || (run->stopping && err == -ESHUTDOWN))
        return true;
    if (req->op == REQ_ZERO && (req->flags & REQ_FAST_ZERO) && err == -EOPNOTSUPP)
        return true;
    return req->op != REQ_FLUSH && model_is_lost(&run->model, req->off_bytes, req->len_bytes);
}

static void
check_answer(struct run *run, const struct client *client, int err)
{
    const struct req *req = &client->req;
    if (err != 0 && !may_fail(run, client, err))
        run_fail(run, "%s %" PRIu64 "+%" PRIu64 " failed within tolerance: %s",
                 word(req->op, req->flags), req->off_bytes, req->len_bytes, strerror(-err));
    if (req->op != REQ_FLUSH)
        return;
    if (err == -EIO)
        run->flush_failed = true;
    else if (err == 0 && run->flush_failed)
        run_fail(run, "a flush succeeds after one has failed");
    else if (err == 0 && client->io.synced)
        allow_flushed(run);
}

static void
client_done(struct req *req)
{
    struct client *client = CONTAINER_OF(req, struct client, req);
    struct run *run = client->run;
    check(client->busy); /* I2 */
    client->busy = false;
    run->idle = --run->in_flight == 0;
    trace_add(&run->trace, "  answer", client->io.id, req->off_bytes, req->len_bytes, req->err);
    check_answer(run, client, req->err);
    const uint8_t *data = client->memory + client->skew;
    if (!model_done(&run->model, &client->io, req->err, data))
        run_fail(run, "%s", run->model.why);
    note_missed(run, client, req->err);
    free(client->memory);
    client->memory = NULL;
}

void
client_forget_all(struct run *run)
{
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        if (!run->clients[i].busy)
            continue;
        free(run->clients[i].memory);
        run->clients[i] = (struct client){0};
    }
    run->in_flight = 0;
}

/* ---- questions ----------------------------------------------------------------------------- */

/* The payload in up to three pieces, at any alignment. */
static void
give_memory(struct run *run, struct client *client, uint64_t len)
{
    client->skew = rng_chance(&run->rng, 50) ? 0 : (uint32_t)rng_below(&run->rng, SKEW_MAX);
    /* Page aligned but for the skew: what is bounced must not depend on the allocator. */
    client->memory = aligned_alloc(BLOCK_BYTES, round_up(len + client->skew, BLOCK_BYTES));
    check(client->memory != NULL);
    uint8_t *at = client->memory + client->skew;
    uint32_t pieces = 0;
    for (uint64_t left = len; left > 0 || pieces == 0;) {
        bool last = pieces == ARRAY_LEN(client->iov) - 1 || rng_chance(&run->rng, 70);
        uint64_t part = last || left < 2 ? left : rng_range(&run->rng, 1, left - 1);
        client->iov[pieces++] = (struct iovec){at, part};
        at += part;
        left -= part;
    }
    client->req.iov = client->iov;
    client->req.iov_count = pieces;
}

static struct client *
free_client(struct run *run)
{
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        if (!run->clients[i].busy)
            return &run->clients[i];
    return NULL;
}

bool
client_submit(struct run *run, enum req_op op, uint32_t flags, uint64_t off_bytes,
              uint64_t len_bytes)
{
    struct client *client = free_client(run);
    if (client == NULL)
        return false;
    *client = (struct client){.run = run, .busy = true};
    client->req = (struct req){.op = op,
                               .flags = flags,
                               .off_bytes = off_bytes,
                               .len_bytes = len_bytes,
                               .done = client_done};
    client->io = (struct model_io){.op = op,
                                   .flags = flags,
                                   .off_bytes = off_bytes,
                                   .len_bytes = len_bytes,
                                   .synced = op == REQ_FLUSH && allow_synced(run)};
    if (op == REQ_WRITE)
        client->io.id = ++run->last_id;
    if (op == REQ_READ || op == REQ_WRITE)
        give_memory(run, client, len_bytes);
    if (op == REQ_READ)
        memset(client->memory, GUARD, client->skew + len_bytes);
    else if (op == REQ_WRITE)
        content_stamp(client->io.id, off_bytes, client->memory + client->skew, len_bytes);
    run->in_flight++;
    run->requests++;
    trace_add(&run->trace, word(op, flags), client->io.id, off_bytes, len_bytes, 0);
    model_submit(&run->model, &client->io);
    dev_submit(array_dev(run->sim.array), &client->req);
    return true;
}

static uint64_t
any_length(struct run *run)
{
    uint64_t stripe = MAX(run->sim.geometry.stripe_bytes, run->sim.geometry.chunk_bytes);
    switch (rng_below(&run->rng, 8)) {
    case 0:
    case 1:
        return rng_range(&run->rng, 1, SMALL_MAX);
    case 2:
    case 3:
        return SECTOR_BYTES * rng_range(&run->rng, 1, 16);
    case 4:
        return BLOCK_BYTES * rng_range(&run->rng, 1, 4);
    case 5:
        return run->sim.geometry.chunk_bytes;
    case 6:
        return rng_range(&run->rng, 1, MIDDLE_MAX);
    default:
        return rng_chance(&run->rng, 50) ? stripe : rng_range(&run->rng, 1, 2 * stripe);
    }
}

/* Hot spots, sequential runs, anywhere; aligned or not. */
static void
any_range(struct run *run, uint64_t *off_bytes, uint64_t *len_bytes)
{
    uint64_t size = run->model.sector_count * SECTOR_BYTES;
    uint64_t wish = any_length(run), len = MIN(wish, size), off;
    switch (rng_below(&run->rng, 4)) {
    case 0:
        off = rng_below(&run->rng, size);
        break;
    case 1:
        off = run->cursor;
        break;
    default:
        off = run->hot[rng_below(&run->rng, HOT_SPOTS)] + rng_below(&run->rng, KIB(16));
        break;
    }
    if (!rng_chance(&run->rng, run->skew_percent)) {
        off = off / BLOCK_BYTES * BLOCK_BYTES;
        len = MAX(len / SECTOR_BYTES * SECTOR_BYTES, SECTOR_BYTES);
    }
    off = MIN(off, size - 1);
    *off_bytes = off;
    *len_bytes = MIN(len, size - off);
    run->cursor = off + *len_bytes >= size ? 0 : off + *len_bytes;
}

bool
client_submit_any(struct run *run)
{
    static const enum req_op ops[] = {REQ_READ,  REQ_READ,  REQ_READ,  REQ_READ,  REQ_READ,
                                      REQ_READ,  REQ_WRITE, REQ_WRITE, REQ_WRITE, REQ_WRITE,
                                      REQ_WRITE, REQ_WRITE, REQ_WRITE, REQ_WRITE, REQ_WRITE,
                                      REQ_FLUSH, REQ_FLUSH, REQ_TRIM,  REQ_ZERO,  REQ_CACHE};
    enum req_op op = ops[rng_below(&run->rng, ARRAY_LEN(ops))];
    uint64_t off, len;
    uint32_t flags = 0;
    if (op == REQ_FLUSH)
        return client_submit(run, op, 0, 0, 0);
    any_range(run, &off, &len);
    if (op != REQ_READ && op != REQ_CACHE && !model_has_room(&run->model, off, len))
        op = REQ_READ;
    if ((op == REQ_WRITE || op == REQ_ZERO) && rng_chance(&run->rng, 15))
        flags |= REQ_FUA;
    if (op == REQ_ZERO && rng_chance(&run->rng, 30))
        flags |= rng_chance(&run->rng, 50) ? REQ_NO_HOLE : REQ_FAST_ZERO;
    return client_submit(run, op, flags, off, len);
}
