#include "tests/sim/tap.h"

struct tap {
    struct dev dev;
    struct dev *below;
    struct trace *trace;
    struct tap_watch *watch;
    uint32_t who;
    struct list flights; /* those of a dead member never come back */
};

struct flight {
    struct req req;
    struct list_node node;
    struct tap *tap;
    struct req *above;
};

static const char *
word(enum req_op op, uint32_t flags)
{
    static const char *const words[] = {"m-read", "m-write", "m-flush", "m-trim", "m-zero"};
    if (op == REQ_WRITE && (flags & REQ_FUA))
        return "m-fua";
    return op < ARRAY_LEN(words) ? words[op] : "m-other";
}

static void
flight_done(struct req *req)
{
    struct flight *flight = CONTAINER_OF(req, struct flight, req);
    struct req *above = flight->above;
    trace_add(flight->tap->trace, req->err == 0 ? "m-done" : "m-failed", flight->tap->who,
              req->off_bytes, req->len_bytes, req->err);
    list_remove(&flight->node);
    int err = req->err;
    if (err != 0)
        flight->tap->watch->failed(flight->tap->watch, flight->tap->who, req);
    free(flight);
    req_done(above, err);
}

static void
tap_submit(struct dev *dev, struct req *req)
{
    struct tap *tap = CONTAINER_OF(dev, struct tap, dev);
    struct flight *flight = calloc(1, sizeof(*flight));
    check(flight != NULL);
    flight->tap = tap;
    flight->above = req;
    flight->req = (struct req){.op = req->op,
                               .flags = req->flags,
                               .off_bytes = req->off_bytes,
                               .len_bytes = req->len_bytes,
                               .iov = req->iov,
                               .iov_count = req->iov_count,
                               .done = flight_done};
    list_push_back(&tap->flights, &flight->node);
    trace_add(tap->trace, word(req->op, req->flags), tap->who, req->off_bytes, req->len_bytes, 0);
    dev_submit(tap->below, &flight->req);
}

static void
tap_info(const struct dev *dev, struct dev_info *info)
{
    *info = dev_info(CONTAINER_OF(dev, const struct tap, dev)->below);
}

static void
tap_close(struct dev *dev)
{
    struct tap *tap = CONTAINER_OF(dev, struct tap, dev);
    dev_close(tap->below); /* checks that nothing is in flight, unless it died */
    for (struct list_node *node; (node = list_pop_front(&tap->flights)) != NULL;)
        free(CONTAINER_OF(node, struct flight, node));
    free(tap);
}

static const struct dev_ops tap_ops = {
    .submit = tap_submit,
    .info = tap_info,
    .close = tap_close,
};

struct dev *
tap_create(struct dev *below, struct trace *trace, struct tap_watch *watch, uint32_t who)
{
    struct tap *tap = calloc(1, sizeof(*tap));
    check(tap != NULL);
    tap->dev.ops = &tap_ops;
    tap->below = below;
    tap->trace = trace;
    tap->watch = watch;
    tap->who = who;
    list_init(&tap->flights);
    return &tap->dev;
}
