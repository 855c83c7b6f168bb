/* THEORY OF OPERATION
 *
 * One ring of `depth` entries.  push() fills an SQE (there is always one: no more operations exist
 * than the ring has entries), submit() makes one io_uring_enter() of the batch and takes from the
 * completion ring what is there, without a system call.  The ring's own descriptor becomes readable
 * when completions arrive; it is watched edge-triggered.
 *
 * Many container hosts forbid io_uring: create() then says so, and what to use instead. */
#include <liburing.h>
#include <string.h>
#include <sys/epoll.h>

#include "engine/io/io_context.h"

struct uring {
    struct io_context *context;
    struct io_uring ring;
    bool ring_made;
    uint32_t pushed; /* not yet taken by the kernel */
    struct loop_fd completion;
    struct loop_timer retry;
};

#define RETRY_NS MS_NS

static void
reap(struct uring *uring)
{
    struct io_uring_cqe *cqe;
    while (io_uring_peek_cqe(&uring->ring, &cqe) == 0) {
        struct io_op *op = io_uring_cqe_get_data(cqe);
        int64_t result = cqe->res;
        io_uring_cqe_seen(&uring->ring, cqe);
        io_op_completed(op, result);
    }
}

static void
completion_ready(struct loop_fd *watch, uint32_t events)
{
    (void)events;
    reap(CONTAINER_OF(watch, struct uring, completion));
}

static void
uring_push(struct io_context *context, struct io_op *op)
{
    struct uring *uring = context->backend_data;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
    check(sqe != NULL);
    int fd = op->member->file.fd;
    switch (op->kind) {
    case IO_READ:
        io_uring_prep_readv(sqe, fd, op->iov, op->iov_count, op->off_bytes);
        break;
    case IO_WRITE:
        io_uring_prep_writev2(sqe, fd, op->iov, op->iov_count, op->off_bytes,
                              op->dsync ? RWF_DSYNC : 0);
        break;
    case IO_SYNC:
        io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
        break;
    }
    io_uring_sqe_set_data(sqe, op);
    uring->pushed++;
}

static void
uring_submit(struct io_context *context)
{
    struct uring *uring = context->backend_data;
    while (uring->pushed > 0) {
        int taken = io_uring_submit(&uring->ring);
        if (taken > 0) {
            uring->pushed -= (uint32_t)taken;
        } else if (taken != -EINTR) { /* -EAGAIN, -EBUSY: for now */
            loop_timer_set(context->loop, &uring->retry, loop_now_ns(context->loop) + RETRY_NS);
            break;
        }
    }
    reap(uring);
}

static void
retry_fired(struct loop_timer *timer)
{
    (void)timer; /* the turn that follows submits */
}

static int
refuse(struct diag *diag, int err)
{
    if (err == -EPERM || err == -ENOSYS || err == -EACCES) {
        err = err == -ENOSYS ? err : -EPERM;
        diag_set(diag, DIAG_FAILED, "E_IO_URING_FORBIDDEN", err,
                 "this host does not allow io_uring (%s)", strerror(-err));
    } else {
        diag_set(diag, DIAG_FAILED, "E_IO_CONTEXT", err, "cannot set up io_uring: %s",
                 strerror(-err));
    }
    diag_fix(diag, "sr5d --io libaio");
    return err;
}

static int
uring_create(struct io_context *context, struct diag *diag)
{
    struct uring *uring = calloc(1, sizeof(*uring));
    if (uring == NULL)
        return refuse(diag, -ENOMEM);
    context->backend_data = uring;
    uring->context = context;
    uring->retry.fired = retry_fired;
    /* Completions need not interrupt us: every turn enters the kernel. Linux 5.19 and later. */
    int err = io_uring_queue_init(context->depth, &uring->ring, IORING_SETUP_COOP_TASKRUN);
    if (err == -EINVAL)
        err = io_uring_queue_init(context->depth, &uring->ring, 0);
    if (err < 0)
        return refuse(diag, err);
    uring->ring_made = true;
    io_uring_ring_dontfork(&uring->ring);
    uring->completion.fd = uring->ring.ring_fd;
    uring->completion.events = EPOLLIN | (uint32_t)EPOLLET;
    uring->completion.ready = completion_ready;
    err = loop_watch(context->loop, &uring->completion);
    return err < 0 ? refuse(diag, err) : 0;
}

static void
uring_destroy(struct io_context *context)
{
    struct uring *uring = context->backend_data;
    if (uring == NULL)
        return;
    check_eq(uring->pushed, 0);
    loop_timer_cancel(&uring->retry);
    if (uring->completion.watched)
        loop_unwatch(&uring->completion);
    if (uring->ring_made)
        io_uring_queue_exit(&uring->ring);
    free(uring);
}

const struct io_backend io_backend_uring = {
    .name = "io_uring",
    .create = uring_create,
    .destroy = uring_destroy,
    .push = uring_push,
    .submit = uring_submit,
};
