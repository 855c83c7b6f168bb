/* THEORY OF OPERATION
 *
 * A request becomes an operation, and the operation goes through these stages:
 *
 *   READ, WRITE   DATA* -> [DURABLE]          DATA repeats after a short count
 *   ZERO, TRIM    HOLE -> [DATA*] -> [DURABLE]  DATA only when no hole could be made
 *   FLUSH         DURABLE
 *
 * DURABLE (fdatasync) follows DATA only for FUA where the kernel has no RWF_DSYNC.  What blocks
 * runs in the helper thread; the operation stays taken meanwhile, so that `depth` bounds it too.
 *
 * Guarantees: requests start in the order they came; a request is answered once (I2), from a
 * completion or a hook, and its operation is free again before its done() runs; a count that falls
 * short goes on from where it ended (its last whole logical block), and one that makes no progress
 * (the end of a file that should be longer) is -EIO.
 *
 * It deliberately does not order requests among each other, and does not retry media errors. */
#include "engine/io/io_context.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <sys/mman.h>

/* Holes this small are made at once where no direct I/O is in flight that fallocate() would wait
 * for: cheaper than two thread switches. */
#define HOLE_INLINE_BYTES MIB(1)

/* Copies to and from files in memory in one turn: between them sockets are read, so that clients
 * go on sending meanwhile. */
#define COPIED_BYTES KIB(256)

int
io_error(int64_t err)
{
    switch (-err) {
    case 0:
        return 0;
    case ENOSPC:
    case EDQUOT:
        return -ENOSPC;
    case ENODEV:
    case ENXIO:
        return -ENODEV;
    case ENOTSUP:
        return -ENOTSUP;
    default:
        return -EIO;
    }
}

static void
op_finish(struct io_op *op, int64_t err)
{
    struct member *member = op->member;
    struct req *req = op->req;
    check_gt(member->in_flight, 0);
    member->in_flight--;
    op->req = NULL;
    list_push_front(&member->context->free_ops, &op->node);
    req_done(req, io_error(err));
}

static void
op_again(struct io_op *op)
{
    struct io_context *context = op->member->context;
    op->helped = false;
    list_push_back(&context->ready, &op->node);
    loop_defer(context->loop, &context->again);
}

/* ---- the helper thread ----------------------------------------------------------------------- */

static int
run_sync(struct io_work *work)
{
    const struct io_op *op = CONTAINER_OF(work, struct io_op, work);
    return fdatasync(op->member->file.fd) == 0 ? 0 : -errno;
}

/* Files and block devices alike: a hole reads as zeroes, also on a device (where a plain discard
 * could read differently each time). */
static int
run_hole(struct io_work *work)
{
    const struct io_op *op = CONTAINER_OF(work, struct io_op, work);
    const struct req *req = op->req;
    int mode = FALLOC_FL_KEEP_SIZE |
               (req->flags & REQ_NO_HOLE ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE);
    int err;
    do
        err = fallocate(op->member->file.fd, mode, (off_t)req->off_bytes, (off_t)req->len_bytes);
    while (err != 0 && errno == EINTR);
    return err == 0 ? 0 : -errno;
}

static void
work_done(struct io_work *work)
{
    io_op_completed(CONTAINER_OF(work, struct io_op, work), work->result);
}

static void
op_help(struct io_op *op, int (*run)(struct io_work *work))
{
    op->helped = true;
    op->work.run = run;
    op->work.done = work_done;
    io_helper_start(op->member->context->helper, &op->work);
}

/* ---- stages: each ends with the operation ready to be pushed, at the helper, or finished -------
 */

/* The next part of the memory: from a boundary between entries all that follows, else the rest of
 * the entry. */
static void
take_iov(struct io_op *op)
{
    const struct req *req = op->req;
    struct member *member = op->member;
    if (op->zeroes) {
        op->part.iov_base = member->context->zeroes;
        op->part.iov_len = MIN(req->len_bytes - op->done_bytes, IO_ZEROES_BYTES);
        op->iov = &op->part;
        op->iov_count = 1;
        return;
    }
    uint32_t index = 0;
    uint64_t skip = op->done_bytes;
    while (skip != 0 && skip >= req->iov[index].iov_len)
        skip -= req->iov[index++].iov_len;
    check_lt(index, req->iov_count);
    if (skip == 0) {
        op->iov = req->iov + index;
        op->iov_count = MIN(req->iov_count - index, IOV_MAX);
        return;
    }
    op->part.iov_base = (char *)req->iov[index].iov_base + skip;
    op->part.iov_len = req->iov[index].iov_len - skip;
    op->iov = &op->part;
    op->iov_count = 1;
}

static void
data_start(struct io_op *op)
{
    const struct member *member = op->member;
    op->stage = IO_DATA;
    op->kind = op->req->op == REQ_READ ? IO_READ : IO_WRITE;
    op->dsync = op->kind == IO_WRITE && (op->req->flags & REQ_FUA) != 0 &&
                !member->file.in_memory && member->context->dsync_works;
    op->off_bytes = op->req->off_bytes + op->done_bytes;
    take_iov(op);
    op_again(op);
}

static void
durable_start(struct io_op *op)
{
    op->stage = IO_DURABLE;
    op->kind = IO_SYNC;
    if (op->member->file.in_memory)
        op_finish(op, 0);
    else if (op->member->sync_in_helper)
        op_help(op, run_sync);
    else
        op_again(op);
}

static void
hole_start(struct io_op *op)
{
    const struct member *member = op->member;
    op->stage = IO_HOLE;
    if (!member->file.info.can_zero)
        io_op_completed(op, -EOPNOTSUPP);
    else if (member->file.is_block || member->file.direct || op->req->len_bytes > HOLE_INLINE_BYTES)
        op_help(op, run_hole);
    else
        io_op_completed(op, run_hole(&op->work));
}

static void
data_completed(struct io_op *op, int64_t result)
{
    const struct req *req = op->req;
    struct member *member = op->member;
    if (result == -EINTR) {
        data_start(op);
        return;
    }
    if (op->dsync && (result == -EOPNOTSUPP || result == -EINVAL)) {
        member->context->dsync_works = false; /* an old kernel: write, then sync */
        data_start(op);
        return;
    }
    if (result < 0) {
        op_finish(op, result);
        return;
    }
    /* Direct I/O goes on at a block boundary, the page cache anywhere. */
    uint32_t unit = member->file.direct ? member->file.info.logical_bytes : 1;
    uint64_t more = round_down((uint64_t)result, unit);
    check_le(more, req->len_bytes - op->done_bytes);
    op->done_bytes += more;
    if (more == 0)
        op_finish(op, -EIO);
    else if (op->done_bytes < req->len_bytes)
        data_start(op);
    else if ((req->flags & REQ_FUA) != 0 && req->op != REQ_READ && !op->dsync)
        durable_start(op);
    else
        op_finish(op, 0);
}

static void
hole_completed(struct io_op *op, int64_t result)
{
    const struct req *req = op->req;
    bool refused = result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL;
    if (refused && req->op == REQ_TRIM) {
        op_finish(op, 0); /* what it holds stays what it is */
    } else if (refused && (req->flags & REQ_FAST_ZERO) != 0) {
        op_finish(op, -ENOTSUP);
    } else if (refused) {
        op->zeroes = true;
        data_start(op);
    } else if (result == 0 && (req->flags & REQ_FUA) != 0) {
        durable_start(op);
    } else {
        op_finish(op, result);
    }
}

static void
durable_completed(struct io_op *op, int64_t result)
{
    bool refused = result == -EINVAL || result == -EOPNOTSUPP;
    if (refused && !op->helped) { /* others of the same kind may be on the way */
        op->member->sync_in_helper = true;
        op_help(op, run_sync);
    } else {
        op_finish(op, MIN(result, 0));
    }
}

void
io_op_completed(struct io_op *op, int64_t result)
{
    switch (op->stage) {
    case IO_DATA:
        data_completed(op, result);
        return;
    case IO_HOLE:
        hole_completed(op, result);
        return;
    case IO_DURABLE:
        durable_completed(op, result);
        return;
    }
}

static void
op_start(struct io_op *op, struct req *req)
{
    op->req = req;
    op->member = req->dev_data;
    op->done_bytes = 0;
    op->zeroes = false;
    switch (req->op) {
    case REQ_READ:
    case REQ_WRITE:
        data_start(op);
        return;
    case REQ_ZERO:
    case REQ_TRIM:
        hole_start(op);
        return;
    case REQ_FLUSH:
        durable_start(op);
        return;
    case REQ_CACHE:
        op_finish(op, 0);
        return;
    }
}

/* ---- the queue ------------------------------------------------------------------------------- */

void
io_context_queue(struct io_context *context, struct member *member, struct req *req)
{
    member->in_flight++;
    req->dev_data = member;
    list_push_back(&context->queue, &req->dev_node);
    loop_defer(context->loop, &context->again);
}

/* Its only purpose: the loop comes to its hooks again before it sleeps. */
static void
again_run(struct loop_step *step)
{
    (void)step;
}

/* What goes to files in memory is copied inside of submit(): not too much of it a turn. */
static void
push_ready(struct io_context *context)
{
    uint64_t copied_bytes = 0;
    struct list_node *node;
    while (copied_bytes < COPIED_BYTES && (node = list_pop_front(&context->ready)) != NULL) {
        struct io_op *op = CONTAINER_OF(node, struct io_op, node);
        if (op->member->file.in_memory)
            copied_bytes += op->req->len_bytes;
        context->backend->push(context, op);
    }
}

static void
before_sleep(struct loop_hook *hook)
{
    struct io_context *context = CONTAINER_OF(hook, struct io_context, hook);
    /* At most depth a turn: requests that end at once must not keep others from their turn. */
    for (uint32_t i = 0; i < context->depth; i++) {
        if (list_empty(&context->queue) || list_empty(&context->free_ops))
            break;
        struct list_node *op = list_pop_front(&context->free_ops);
        struct list_node *req = list_pop_front(&context->queue);
        op_start(CONTAINER_OF(op, struct io_op, node), CONTAINER_OF(req, struct req, dev_node));
    }
    push_ready(context);
    context->backend->submit(context);
    bool more = !list_empty(&context->ready) ||
                (!list_empty(&context->queue) && !list_empty(&context->free_ops));
    if (more)
        loop_defer(context->loop, &context->again);
    else
        loop_undefer(context->loop, &context->again); /* this turn has done it all */
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
context_init(struct io_context *context, struct loop *loop, uint32_t depth)
{
    context->loop = loop;
    context->depth = depth;
    context->dsync_works = true;
    context->hook.before_sleep = before_sleep;
    context->again.run = again_run;
    list_init(&context->queue);
    list_init(&context->ready);
    list_init(&context->free_ops);
    context->ops = calloc(depth, sizeof(*context->ops));
    context->zeroes =
        mmap(NULL, IO_ZEROES_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (context->ops == NULL || context->zeroes == MAP_FAILED)
        return -ENOMEM;
    for (uint32_t i = 0; i < depth; i++) {
        context->ops[i].index = i;
        list_push_back(&context->free_ops, &context->ops[i].node);
    }
    return io_helper_create(&context->helper, loop);
}

static void
context_free(struct io_context *context)
{
    context->backend->destroy(context);
    io_helper_destroy(context->helper);
    if (context->zeroes != NULL && context->zeroes != MAP_FAILED)
        munmap(context->zeroes, IO_ZEROES_BYTES);
    free(context->ops);
    free(context);
}

int
io_context_create_with(struct io_context **out, struct loop *loop, const struct io_backend *backend,
                       uint32_t depth, struct diag *diag)
{
    check_gt(depth, 0);
    struct io_context *context = calloc(1, sizeof(*context));
    if (context == NULL)
        return diag_set(diag, DIAG_FAILED, "E_IO_CONTEXT", -ENOMEM, "no memory for member I/O");
    context->backend = backend;
    int err = context_init(context, loop, depth);
    if (err < 0)
        diag_set(diag, DIAG_FAILED, "E_IO_CONTEXT", err, "cannot set up member I/O (errno %d)",
                 -err);
    else
        err = backend->create(context, diag);
    if (err < 0) {
        context_free(context);
        return err;
    }
    loop_hook_add(loop, &context->hook);
    *out = context;
    return 0;
}

int
io_context_create(struct io_context **out, struct loop *loop, enum io_engine engine, uint32_t depth,
                  struct diag *diag)
{
    static const struct io_backend *const backends[] = {
        [IO_LIBAIO] = &io_backend_libaio,
        [IO_URING] = &io_backend_uring,
    };
    return io_context_create_with(out, loop, backends[engine], depth, diag);
}

void
io_context_destroy(struct io_context *context)
{
    if (context == NULL)
        return;
    check_eq(context->members, 0);
    check(list_empty(&context->queue));
    loop_undefer(context->loop, &context->again);
    loop_hook_remove(context->loop, &context->hook);
    context_free(context);
}
