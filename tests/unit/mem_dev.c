#include "tests/unit/mem_dev.h"

#include <string.h>

#include "engine/base/iov.h"

static int
inject(struct mem_dev *mem, const struct req *req)
{
    if (mem->gone)
        return -ENODEV;
    if (mem->hook != NULL) {
        int err = mem->hook(mem, req);
        if (err != 0)
            return err;
    }
    uint32_t *left = req->op == REQ_READ    ? &mem->fail_reads
                     : req->op == REQ_FLUSH ? &mem->fail_flushes
                                            : &mem->fail_writes;
    if (*left > 0) {
        (*left)--;
        return mem->fail_err != 0 ? mem->fail_err : -EIO;
    }
    return 0;
}

static int
carry_out(struct mem_dev *mem, struct req *req)
{
    int err = inject(mem, req);
    if (err != 0)
        return err;
    bool in_bad = ranges_overlap(req->off_bytes, req->len_bytes, mem->bad_off, mem->bad_len);
    switch (req->op) {
    case REQ_READ:
        mem->reads++;
        if (in_bad)
            return -EIO;
        iov_copy_in(req->iov, req->iov_count, 0, mem->bytes + req->off_bytes, req->len_bytes);
        break;
    case REQ_WRITE:
        mem->writes++;
        iov_copy_out(mem->bytes + req->off_bytes, req->iov, req->iov_count, 0, req->len_bytes);
        break;
    case REQ_ZERO:
        mem->zeroes++;
        memset(mem->bytes + req->off_bytes, 0, req->len_bytes);
        break;
    case REQ_FLUSH:
        mem->flushes++;
        break;
    case REQ_TRIM:
    case REQ_CACHE:
        break;
    }
    if (req_is_write(req) && in_bad)
        mem->bad_len = 0;
    return 0;
}

static void
timer_fired(struct loop_timer *timer)
{
    struct mem_dev *mem = CONTAINER_OF(timer, struct mem_dev, timer);
    struct list now;
    list_init(&now);
    list_splice_back(&now, &mem->held);
    struct list_node *node;
    while ((node = list_pop_front(&now)) != NULL) {
        struct req *req = CONTAINER_OF(node, struct req, dev_node);
        req_done(req, carry_out(mem, req));
    }
}

static void
mem_submit(struct dev *dev, struct req *req)
{
    struct mem_dev *mem = CONTAINER_OF(dev, struct mem_dev, dev);
    if (req->op != REQ_FLUSH) {
        check_le(req->off_bytes + req->len_bytes, mem->info.size_bytes);
        check_eq(req->off_bytes % mem->info.logical_bytes, 0);
        check_eq(req->len_bytes % mem->info.logical_bytes, 0);
        check_gt(req->len_bytes, 0);
    }
    if (req->op == REQ_READ || req->op == REQ_WRITE) {
        check_eq(iov_bytes(req->iov, req->iov_count), req->len_bytes);
        check(iov_aligned(req->iov, req->iov_count, mem->info.mem_align));
    }
    if (!mem->deferred) {
        req_done(req, carry_out(mem, req));
        return;
    }
    if (rng_chance(mem->rng, 50))
        list_push_back(&mem->held, &req->dev_node);
    else
        list_push_front(&mem->held, &req->dev_node);
    if (!loop_timer_is_set(&mem->timer))
        loop_timer_set(mem->loop, &mem->timer,
                       loop_now_ns(mem->loop) + 1 + rng_below(mem->rng, 50000));
}

static void
mem_info(const struct dev *dev, struct dev_info *info)
{
    *info = CONTAINER_OF(dev, const struct mem_dev, dev)->info;
}

static void
mem_close(struct dev *dev)
{
    struct mem_dev *mem = CONTAINER_OF(dev, struct mem_dev, dev);
    loop_timer_cancel(&mem->timer);
    free(mem);
}

static const struct dev_ops mem_ops = {.submit = mem_submit, .info = mem_info, .close = mem_close};

struct mem_dev *
mem_dev_open(struct loop *loop, uint8_t *bytes, uint64_t size_bytes, uint32_t logical_bytes,
             struct rng *rng)
{
    struct mem_dev *mem = calloc(1, sizeof(*mem));
    check(mem != NULL);
    mem->dev.ops = &mem_ops;
    mem->loop = loop;
    mem->bytes = bytes;
    mem->rng = rng;
    mem->deferred = true;
    mem->info = (struct dev_info){
        .size_bytes = size_bytes,
        .logical_bytes = logical_bytes,
        .physical_bytes = logical_bytes,
        .mem_align = logical_bytes,
        .can_zero = true,
        .volatile_cache = true,
    };
    list_init(&mem->held);
    mem->timer.fired = timer_fired;
    return mem;
}
