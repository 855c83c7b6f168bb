/* THEORY OF OPERATION
 *
 * Each request is judged by the rules, first match first: answered with an error, held (hang), held
 * for a while (delay), or passed on to the device below as it is.  A request that is held uses its
 * own dev_node and dev_time_ns, so nothing is allocated.  Only a read that a flip rule meets must
 * be seen on its way back: it goes down as a copy out of a small pool, and waits when there is
 * none.
 *
 * New rules judge all that is held anew, from a turn of their own: a hung request whose rule went
 * goes down, under `gone` it fails.  What is below already is not called back. */
#include "engine/io/io_fault.h"

#include "engine/base/iov.h"
#include "engine/base/pool.h"

#include "engine/io/io_fault_rules.h"

#define COPY_COUNT 64u

struct io_fault {
    struct dev dev;
    struct dev *below;
    struct loop *loop;
    struct fault_rules rules;
    uint64_t short_bytes; /* fixed at creation */
    struct list held;     /* in the order they came; dev_time_ns: when due, UINT64_MAX: hung */
    struct list waiting;  /* for a copy */
    struct pool copies;
    struct loop_timer timer;  /* of the first that is due */
    struct loop_step rejudge; /* after a change of the rules */
};

struct copy {
    void *pool_link; /* the first word belongs to the pool */
    struct req req;
    struct req *original;
    struct io_fault *fault;
};

static struct io_fault *
to_fault(struct dev *dev)
{
    return CONTAINER_OF(dev, struct io_fault, dev);
}

static const struct fault_rule *
meets(const struct io_fault *fault, enum fault_kind kind, const struct req *req)
{
    return fault_rules_find(&fault->rules, kind, req->off_bytes, req->len_bytes);
}

/* ---- flips ----------------------------------------------------------------------------------- */

static void
invert(const struct req *req, uint64_t off_bytes, uint64_t len_bytes)
{
    uint64_t from = MAX(off_bytes, req->off_bytes);
    uint64_t end = MIN(off_bytes + len_bytes, req->off_bytes + req->len_bytes);
    for (uint64_t off = from; off < end; off++) {
        uint8_t byte;
        iov_copy_out(&byte, req->iov, req->iov_count, off - req->off_bytes, 1);
        byte = (uint8_t)~byte;
        iov_copy_in(req->iov, req->iov_count, off - req->off_bytes, &byte, 1);
    }
}

static void start_copies(struct io_fault *fault);

static void
copy_done(struct req *req)
{
    struct copy *copy = CONTAINER_OF(req, struct copy, req);
    struct io_fault *fault = copy->fault;
    struct req *original = copy->original;
    int err = req->err;
    pool_put(&fault->copies, copy);
    for (uint32_t i = 0; err == 0 && i < fault->rules.count; i++) {
        const struct fault_rule *rule = &fault->rules.rules[i];
        if (rule->kind == FAULT_FLIP)
            invert(original, rule->off_bytes, rule->len_bytes);
    }
    start_copies(fault); /* before done(), which may close the device */
    req_done(original, err);
}

static void
start_copies(struct io_fault *fault)
{
    while (!list_empty(&fault->waiting)) {
        struct copy *copy = pool_get(&fault->copies);
        if (copy == NULL)
            return;
        struct list_node *node = list_pop_front(&fault->waiting);
        copy->fault = fault;
        copy->original = CONTAINER_OF(node, struct req, dev_node);
        copy->req = *copy->original;
        copy->req.dev_node = (struct list_node){0};
        copy->req.done = copy_done;
        dev_submit(fault->below, &copy->req);
    }
}

/* ---- judging --------------------------------------------------------------------------------- */

/* 0: none. */
static int
rule_error(const struct io_fault *fault, const struct req *req)
{
    if (fault_rules_first(&fault->rules, FAULT_GONE) != NULL)
        return -ENODEV;
    switch (req->op) {
    case REQ_READ:
        return meets(fault, FAULT_EIO_READ, req) != NULL ? -EIO : 0;
    case REQ_WRITE:
    case REQ_ZERO:
        if (meets(fault, FAULT_ENOSPC, req) != NULL)
            return -ENOSPC;
        return meets(fault, FAULT_EIO_WRITE, req) != NULL ? -EIO : 0;
    case REQ_TRIM:
        return meets(fault, FAULT_EIO_WRITE, req) != NULL ? -EIO : 0;
    case REQ_FLUSH:
        return fault_rules_first(&fault->rules, FAULT_EIO_FLUSH) != NULL ? -EIO : 0;
    case REQ_CACHE:
        break;
    }
    return 0;
}

/* Answer it or pass it on. */
static void
let_go(struct io_fault *fault, struct req *req)
{
    int err = rule_error(fault, req);
    if (err < 0) {
        req_done(req, err);
    } else if (req->op == REQ_READ && meets(fault, FAULT_FLIP, req) != NULL) {
        list_push_back(&fault->waiting, &req->dev_node);
        start_copies(fault);
    } else {
        dev_submit(fault->below, req);
    }
}

/* When a request that came at `since_ns` may go: 0 at once, UINT64_MAX not yet. */
static uint64_t
due(const struct io_fault *fault, uint64_t since_ns)
{
    if (fault_rules_first(&fault->rules, FAULT_GONE) != NULL)
        return 0;
    if (fault_rules_first(&fault->rules, FAULT_HANG) != NULL)
        return UINT64_MAX;
    const struct fault_rule *delay = fault_rules_first(&fault->rules, FAULT_DELAY);
    return delay == NULL ? 0 : since_ns + delay->value * MS_NS;
}

/* Let go what is due now, in order, and set the timer for the next.  One delay holds for all, so
 * the first in the list is the first that is due. */
static void
judge_held(struct io_fault *fault)
{
    struct list now;
    list_init(&now);
    loop_timer_cancel(&fault->timer);
    list_for_each_safe (node, &fault->held) {
        uint64_t due_ns = due(fault, CONTAINER_OF(node, struct req, dev_node)->dev_time_ns);
        if (due_ns > loop_now_ns(fault->loop)) {
            if (due_ns != UINT64_MAX)
                loop_timer_set(fault->loop, &fault->timer, due_ns);
            break;
        }
        list_remove(node);
        list_push_back(&now, node);
    }
    for (struct list_node *node; (node = list_pop_front(&now)) != NULL;)
        let_go(fault, CONTAINER_OF(node, struct req, dev_node));
}

static void
timer_fired(struct loop_timer *timer)
{
    judge_held(CONTAINER_OF(timer, struct io_fault, timer));
}

static void
rejudge_run(struct loop_step *step)
{
    judge_held(CONTAINER_OF(step, struct io_fault, rejudge));
}

static void
fault_submit(struct dev *dev, struct req *req)
{
    struct io_fault *fault = to_fault(dev);
    uint64_t now_ns = loop_now_ns(fault->loop);
    if (list_empty(&fault->held) && due(fault, now_ns) <= now_ns) {
        let_go(fault, req);
        return;
    }
    req->dev_time_ns = now_ns;
    list_push_back(&fault->held, &req->dev_node);
    uint64_t due_ns = due(fault, now_ns);
    if (due_ns != UINT64_MAX && !loop_timer_is_set(&fault->timer))
        loop_timer_set(fault->loop, &fault->timer, due_ns);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
fault_info(const struct dev *dev, struct dev_info *info)
{
    const struct io_fault *fault = CONTAINER_OF(dev, struct io_fault, dev);
    *info = dev_info(fault->below);
    info->size_bytes -= MIN(fault->short_bytes, info->size_bytes);
    info->size_bytes = round_down(info->size_bytes, info->logical_bytes);
}

static void
fault_close(struct dev *dev)
{
    struct io_fault *fault = to_fault(dev);
    check(list_empty(&fault->held) && list_empty(&fault->waiting));
    loop_timer_cancel(&fault->timer);
    loop_undefer(fault->loop, &fault->rejudge);
    dev_close(fault->below);
    pool_destroy(&fault->copies);
    free(fault);
}

static const struct dev_ops fault_ops = {
    .submit = fault_submit,
    .info = fault_info,
    .close = fault_close,
};

int
io_fault_create(struct dev **out, struct dev *below, struct loop *loop, const char *rules,
                struct diag *diag)
{
    struct io_fault *fault = calloc(1, sizeof(*fault));
    if (fault == NULL)
        return diag_set(diag, DIAG_FAILED, "E_OPEN", -ENOMEM, "no memory for a fault device");
    int err = fault_rules_parse(&fault->rules, rules, diag);
    if (err == 0 && pool_init(&fault->copies, sizeof(struct copy), COPY_COUNT) < 0)
        err = diag_set(diag, DIAG_FAILED, "E_OPEN", -ENOMEM, "no memory for a fault device");
    if (err < 0) {
        free(fault);
        return err;
    }
    const struct fault_rule *rule = fault_rules_first(&fault->rules, FAULT_SHORT);
    fault->dev.ops = &fault_ops;
    fault->below = below;
    fault->loop = loop;
    fault->short_bytes = rule == NULL ? 0 : rule->value;
    fault->timer.fired = timer_fired;
    fault->rejudge.run = rejudge_run;
    list_init(&fault->held);
    list_init(&fault->waiting);
    *out = &fault->dev;
    return 0;
}

bool
io_fault_is(const struct dev *dev)
{
    return dev->ops == &fault_ops;
}

int
io_fault_set(struct dev *dev, const char *rules, struct diag *diag)
{
    if (!io_fault_is(dev))
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -ENOTSUP,
                        "the member was not opened as fault:RULES:PATH");
    struct io_fault *fault = to_fault(dev);
    struct fault_rules parsed;
    int err = fault_rules_parse(&parsed, rules, diag);
    if (err < 0)
        return err;
    fault->rules = parsed;
    loop_defer(fault->loop, &fault->rejudge);
    return 0;
}
