/* THEORY OF OPERATION
 *
 * io_sim.h says what a simulated member does, io_sim_image.h how its contents are kept.  Here are
 * the requests in flight: each has a timer that ends it after a seeded latency, and decides at its
 * submission whether it will fail.  What it does to the contents it does at its end, from the
 * memory of the request, or, cut short, for a random part of its sectors:
 *
 *   ended well             all of its sectors (to the cache; FUA or no cache: durable)
 *   failed, vanished       any subset of its sectors, to the cache, and an error
 *   process killed         any subset, to the cache, and no answer
 *   power cut              all, as versions among which the cut chooses, and no answer
 *
 * A read that meets writes in flight sees old or new, sector by sector.  The memory of a write must
 * not change until it is answered (a hash checks that), that of a read is filled with garbage at
 * once.  A device whose machine died swallows whatever is still submitted to it.
 *
 * Everything random comes from the member's own generator, in the order of events: the same seed
 * and the same calls give the same run, bit for bit.  It allocates as it goes: not for production.
 */
#include "engine/io/io_sim.h"

#include <string.h>

#include "engine/base/iov.h"

#include "engine/io/io_sim_member.h"

#define GARBAGE 0xa5

struct sim_dev {
    struct dev dev;
    struct sim_member *member;
    struct list_node node; /* in member->devs */
    bool dead;
};

/* A request in flight. */
struct flight {
    struct list_node node;
    struct loop_timer timer;
    struct sim_member *member;
    struct req *req;
    int err;           /* what the answer will be, as far as known */
    bool touches;      /* it does (some of) its work although it fails */
    uint64_t sequence; /* FLUSH: of the newest write it covers */
    uint64_t payload_hash;
};

/* ---- the work of a write --------------------------------------------------------------------- */

enum extent { ALL_SECTORS, SOME_SECTORS };

static uint64_t
payload_hash(const struct req *req)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < req->iov_count; i++) {
        const uint8_t *data = req->iov[i].iov_base;
        size_t len = req->iov[i].iov_len, at = 0;
        for (uint64_t word; at + sizeof(word) <= len; at += sizeof(word)) {
            memcpy(&word, data + at, sizeof(word));
            sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
            sum ^= sum >> 29;
        }
        for (; at < len; at++)
            sum = (sum ^ data[at]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return sum;
}

void
sim_put(struct sim_member *member, const struct sim_patch *patch, bool durable)
{
    if (durable)
        sim_image_write_through(&member->image, patch);
    else
        sim_image_cache(&member->image, patch);
}

/* WRITE, ZERO and TRIM, whole or in part.  A trimmed sector reads as zeroes or stays. */
static void
write_apply(struct flight *flight, enum extent extent, bool durable)
{
    struct sim_member *member = flight->member;
    const struct req *req = flight->req;
    bool ragged = extent == SOME_SECTORS || req->op == REQ_TRIM;
    uint8_t page[BLOCK_BYTES];
    if (req->op == REQ_WRITE)
        check_eq(payload_hash(req), flight->payload_hash);   /* changed while it was ours */
    uint64_t bias = ragged ? rng_below(&member->rng, 3) : 0; /* 0: any, 1: none, 2: all */
    for (uint64_t done = 0; done < req->len_bytes;) {
        uint64_t off = req->off_bytes + done;
        uint64_t len = MIN(BLOCK_BYTES - off % BLOCK_BYTES, req->len_bytes - done);
        struct sim_patch patch = {.page_index = off / BLOCK_BYTES,
                                  .sectors = sim_sector_bits(off % BLOCK_BYTES, len)};
        if (ragged && bias < 2)
            patch.sectors &= bias == 0 ? (uint8_t)rng_u64(&member->rng) : 0;
        if (req->op == REQ_WRITE) {
            iov_copy_out(page + off % BLOCK_BYTES, req->iov, req->iov_count, done, len);
            patch.data = page;
        }
        sim_put(member, &patch, durable);
        done += len;
    }
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Sectors that `write` is about to change show its data, or not. */
static void
mix_write(struct sim_member *member, const struct req *read, const struct req *write)
{
    uint8_t sector[SECTOR_BYTES] = {0};
    uint64_t from = MAX(read->off_bytes, write->off_bytes);
    uint64_t end = MIN(read->off_bytes + read->len_bytes, write->off_bytes + write->len_bytes);
    for (uint64_t off = from; off < end; off += SECTOR_BYTES) {
        if (rng_chance(&member->rng, 50))
            continue;
        if (write->op == REQ_WRITE)
            iov_copy_out(sector, write->iov, write->iov_count, off - write->off_bytes,
                         SECTOR_BYTES);
        iov_copy_in(read->iov, read->iov_count, off - read->off_bytes, sector, SECTOR_BYTES);
    }
}

static int
read_apply(struct sim_member *member, const struct req *req)
{
    uint8_t page[BLOCK_BYTES];
    for (uint64_t done = 0; done < req->len_bytes;) {
        uint64_t len = MIN(BLOCK_BYTES, req->len_bytes - done);
        int err = sim_image_read(&member->image, page, req->off_bytes + done, len);
        if (err < 0)
            return err;
        iov_copy_in(req->iov, req->iov_count, done, page, len);
        done += len;
    }
    list_for_each (node, &member->flights) {
        const struct req *other = CONTAINER_OF(node, struct flight, node)->req;
        if ((other->op == REQ_WRITE || other->op == REQ_ZERO) &&
            ranges_overlap(req->off_bytes, req->len_bytes, other->off_bytes, other->len_bytes))
            mix_write(member, req, other);
    }
    return 0;
}

/* ---- flights --------------------------------------------------------------------------------- */

static void
flight_drop(struct flight *flight)
{
    loop_timer_cancel(&flight->timer);
    list_remove(&flight->node);
    free(flight);
}

static int
flight_work(struct flight *flight)
{
    struct sim_member *member = flight->member;
    const struct req *req = flight->req;
    bool durable = (req->flags & REQ_FUA) != 0 || !member->config.volatile_cache;
    if (flight->err < 0) {
        if (flight->touches)
            write_apply(flight, SOME_SECTORS, !member->config.volatile_cache);
        return flight->err;
    }
    switch (req->op) {
    case REQ_READ:
        return read_apply(member, req);
    case REQ_WRITE:
    case REQ_ZERO:
    case REQ_TRIM:
        write_apply(flight, ALL_SECTORS, durable);
        return 0;
    case REQ_FLUSH:
        sim_image_flush(&member->image, flight->sequence);
        return 0;
    case REQ_CACHE:
        break;
    }
    return 0;
}

static void
flight_ends(struct loop_timer *timer)
{
    struct flight *flight = CONTAINER_OF(timer, struct flight, timer);
    struct req *req = flight->req;
    int err = flight_work(flight);
    flight_drop(flight);
    req_done(req, err);
}

bool
sim_take_one(uint32_t *count)
{
    if (*count == 0)
        return false;
    (*count)--;
    return true;
}

static void
decide_error(struct flight *flight)
{
    struct sim_member *member = flight->member;
    const struct req *req = flight->req;
    if (member->gone) {
        flight->err = -ENODEV;
    } else if ((req->flags & REQ_FAST_ZERO) != 0 && !member->config.can_zero) {
        flight->err = -ENOTSUP;
    } else if (req_is_write(req) && sim_take_one(&member->fail_writes)) {
        flight->err = -EIO;
        flight->touches = true;
    } else if (req->op == REQ_FLUSH && sim_take_one(&member->fail_flushes)) {
        flight->err = -EIO;
    }
}

static void
count_request(struct sim_counters *counters, const struct req *req)
{
    switch (req->op) {
    case REQ_READ:
        counters->reads++;
        counters->read_bytes += req->len_bytes;
        return;
    case REQ_WRITE:
        counters->writes++;
        counters->write_bytes += req->len_bytes;
        return;
    case REQ_FLUSH:
        counters->flushes++;
        return;
    case REQ_ZERO:
    case REQ_TRIM:
        counters->zeroes++;
        return;
    case REQ_CACHE:
        return;
    }
}

static void
fill_garbage(const struct req *req)
{
    for (uint32_t i = 0; i < req->iov_count; i++)
        memset(req->iov[i].iov_base, GARBAGE, req->iov[i].iov_len);
}

/* What the caller owes a member (req.h). */
static void
check_request(const struct sim_member *member, const struct req *req)
{
    const struct sim_config *config = &member->config;
    check_eq(req->off_bytes % config->logical_bytes, 0);
    check_eq(req->len_bytes % config->logical_bytes, 0);
    check_le(req->len_bytes, config->size_bytes);
    check_le(req->off_bytes, config->size_bytes - req->len_bytes);
    if (req->op == REQ_READ || req->op == REQ_WRITE) {
        check_eq(iov_bytes(req->iov, req->iov_count), req->len_bytes);
        check(iov_aligned(req->iov, req->iov_count, config->logical_bytes));
    }
}

static void
sim_submit(struct dev *dev, struct req *req)
{
    struct sim_dev *sim = CONTAINER_OF(dev, struct sim_dev, dev);
    struct sim_member *member = sim->member;
    check_request(member, req);
    if (sim->dead)
        return;
    struct flight *flight = calloc(1, sizeof(*flight));
    check(flight != NULL);
    flight->member = member;
    flight->req = req;
    flight->timer.fired = flight_ends;
    flight->sequence = member->image.sequence;
    if (req->op == REQ_WRITE)
        flight->payload_hash = payload_hash(req);
    else if (req->op == REQ_READ)
        fill_garbage(req);
    count_request(&member->counters, req);
    decide_error(flight);
    list_push_back(&member->flights, &flight->node);
    uint64_t latency_ns =
        rng_range(&member->rng, member->config.latency_ns_min, member->config.latency_ns_max);
    loop_timer_set(member->loop, &flight->timer, loop_now_ns(member->loop) + latency_ns);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void
sim_info(const struct dev *dev, struct dev_info *info)
{
    const struct sim_config *config = &CONTAINER_OF(dev, struct sim_dev, dev)->member->config;
    *info = (struct dev_info){
        .size_bytes = config->size_bytes,
        .logical_bytes = config->logical_bytes,
        .physical_bytes = MAX(config->logical_bytes, BLOCK_BYTES),
        .mem_align = config->logical_bytes,
        .can_zero = config->can_zero,
        .can_trim = config->can_zero,
        .volatile_cache = config->volatile_cache,
    };
}

static void
sim_close(struct dev *dev)
{
    struct sim_dev *sim = CONTAINER_OF(dev, struct sim_dev, dev);
    check(sim->dead || list_empty(&sim->member->flights));
    list_remove(&sim->node);
    free(sim);
}

static const struct dev_ops sim_ops = {
    .submit = sim_submit,
    .info = sim_info,
    .close = sim_close,
};

int
sim_member_open(struct sim_member *member, struct dev **out)
{
    list_for_each (node, &member->devs)
        check(CONTAINER_OF(node, struct sim_dev, node)->dead);
    struct sim_dev *sim = calloc(1, sizeof(*sim));
    if (sim == NULL)
        return -ENOMEM;
    sim->dev.ops = &sim_ops;
    sim->member = member;
    list_push_back(&member->devs, &sim->node);
    *out = &sim->dev;
    return 0;
}

/* ---- the member's life ------------------------------------------------------------------------
 */

int
sim_member_create(struct sim_member **out, struct loop *loop, const struct sim_config *config,
                  uint64_t seed)
{
    check(config->logical_bytes == SECTOR_BYTES || config->logical_bytes == BLOCK_BYTES);
    check_eq(config->size_bytes % config->logical_bytes, 0);
    check_le(config->latency_ns_min, config->latency_ns_max);
    struct sim_member *member = calloc(1, sizeof(*member));
    if (member == NULL)
        return -ENOMEM;
    int err = sim_image_init(&member->image);
    if (err < 0) {
        free(member);
        return err;
    }
    member->loop = loop;
    member->config = *config;
    member->seed = seed;
    rng_seed(&member->rng, seed);
    list_init(&member->devs);
    list_init(&member->flights);
    *out = member;
    return 0;
}

/* Its requests are dropped unanswered, its device is dead. */
static void
machine_died(struct sim_member *member)
{
    for (struct list_node *node; (node = list_first(&member->flights)) != NULL;)
        flight_drop(CONTAINER_OF(node, struct flight, node));
    list_for_each (node, &member->devs)
        CONTAINER_OF(node, struct sim_dev, node)->dead = true;
}

void
sim_member_destroy(struct sim_member *member)
{
    if (member == NULL)
        return;
    machine_died(member);
    for (struct list_node *node; (node = list_pop_front(&member->devs)) != NULL;)
        free(CONTAINER_OF(node, struct sim_dev, node));
    sim_image_destroy(&member->image);
    free(member);
}

static bool
flight_writes(const struct flight *flight)
{
    return req_is_write(flight->req) && (flight->err == 0 || flight->touches);
}

void
sim_member_power_cut(struct sim_member *member)
{
    list_for_each (node, &member->flights) {
        struct flight *flight = CONTAINER_OF(node, struct flight, node);
        if (flight_writes(flight))
            write_apply(flight, ALL_SECTORS, false);
    }
    machine_died(member);
    sim_image_power_cut(&member->image, &member->rng);
}

void
sim_member_process_kill(struct sim_member *member)
{
    list_for_each (node, &member->flights) {
        struct flight *flight = CONTAINER_OF(node, struct flight, node);
        if (flight_writes(flight))
            write_apply(flight, SOME_SECTORS, !member->config.volatile_cache);
    }
    machine_died(member);
}

void
sim_member_vanish(struct sim_member *member)
{
    member->gone = true;
    list_for_each (node, &member->flights) {
        struct flight *flight = CONTAINER_OF(node, struct flight, node);
        flight->touches = flight_writes(flight);
        flight->err = -ENODEV;
        loop_timer_set(member->loop, &flight->timer, loop_now_ns(member->loop));
    }
}

void
sim_member_return(struct sim_member *member)
{
    member->gone = false;
}

void
sim_member_latent_error(struct sim_member *member, uint64_t off_bytes, uint64_t len_bytes)
{
    check_le(off_bytes + len_bytes, member->config.size_bytes);
    sim_image_spoil(&member->image, off_bytes, len_bytes);
}

void
sim_member_flip(struct sim_member *member, uint64_t off_bytes, uint64_t len_bytes)
{
    check_le(off_bytes + len_bytes, member->config.size_bytes);
    sim_image_flip(&member->image, off_bytes, len_bytes);
}

void
sim_member_fail_writes(struct sim_member *member, uint32_t count)
{
    member->fail_writes = count;
}

void
sim_member_fail_flushes(struct sim_member *member, uint32_t count)
{
    member->fail_flushes = count;
}

struct sim_counters
sim_member_counters(const struct sim_member *member)
{
    return member->counters;
}
