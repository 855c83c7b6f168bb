/* THEORY OF OPERATION
 *
 * Linux's native asynchronous I/O.  Every operation has its own iocb; push() fills it, submit()
 * hands all of them over with one io_submit() and then takes from the completion ring what is
 * there.
 *
 * The ring is mapped into our memory by io_setup(): entries [head, tail) are ready, the kernel
 * moves tail and we move head.  So reaping costs no system call.  What is not complete when
 * submit() returns announces itself by an eventfd, which is watched edge-triggered and never read:
 * its count is of no interest, only that it changed.  Requests to files in memory are complete when
 * io_submit() returns, so they go without the eventfd.
 *
 * io_submit() may take fewer than offered, or none for now (-EAGAIN): the rest stays in the batch,
 * in order, and is offered again next turn and at the latest after RETRY_NS. */
#include <libaio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "engine/io/io_context.h"

#define RETRY_NS   MS_NS
#define RING_MAGIC 0xa10a10a1u

/* The kernel's struct aio_ring: what io_context_t really points to. */
struct ring {
    unsigned id;
    unsigned entry_count;
    unsigned head; /* ours */
    unsigned tail; /* the kernel's */
    unsigned magic;
    unsigned compat_features;
    unsigned incompat_features;
    unsigned header_bytes;
    struct io_event entries[];
};

struct libaio {
    struct io_context *context;
    io_context_t aio;
    struct loop_fd event; /* the eventfd */
    struct loop_timer retry;
    uint32_t silent; /* in flight without the eventfd */
    uint32_t batch_count;
    struct iocb **batch; /* pushed, in order, not yet taken by the kernel */
    struct iocb *iocbs;  /* one per operation */
};

static bool
is_silent(const struct io_op *op)
{
    return op->member->file.in_memory;
}

static void
completed(struct libaio *aio, struct io_op *op, int64_t result)
{
    if (is_silent(op)) {
        check_gt(aio->silent, 0);
        aio->silent--;
    }
    io_op_completed(op, result);
}

/* res is an unsigned long that holds a negative errno. */
static void
event_completed(struct libaio *aio, const struct io_event *event)
{
    completed(aio, event->data, (int64_t)event->res);
}

/* Sandboxes that emulate the calls may have no ring. */
static void
reap_by_call(struct libaio *aio)
{
    struct io_event events[32];
    struct timespec at_once = {0};
    int count;
    while ((count = io_getevents(aio->aio, 0, ARRAY_LEN(events), events, &at_once)) > 0)
        for (int i = 0; i < count; i++)
            event_completed(aio, &events[i]);
}

static void
reap(struct libaio *aio)
{
    struct ring *ring = (struct ring *)aio->aio;
    if (UNLIKELY(ring->magic != RING_MAGIC || ring->incompat_features != 0)) {
        reap_by_call(aio);
        return;
    }
    unsigned head = ring->head;
    unsigned tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    while (head != tail) {
        struct io_event event = ring->entries[head];
        head = head + 1 == ring->entry_count ? 0 : head + 1;
        __atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
        event_completed(aio, &event);
    }
}

static void
event_ready(struct loop_fd *watch, uint32_t events)
{
    (void)events;
    reap(CONTAINER_OF(watch, struct libaio, event));
}

static void
libaio_push(struct io_context *context, struct io_op *op)
{
    struct libaio *aio = context->backend_data;
    struct iocb *iocb = &aio->iocbs[op->index];
    int fd = op->member->file.fd;
    bool one = op->iov_count == 1;
    void *base = op->kind == IO_SYNC ? NULL : op->iov[0].iov_base;
    size_t len = op->kind == IO_SYNC ? 0 : op->iov[0].iov_len;
    switch (op->kind) {
    case IO_READ:
        if (one)
            io_prep_pread(iocb, fd, base, len, (long long)op->off_bytes);
        else
            io_prep_preadv(iocb, fd, op->iov, (int)op->iov_count, (long long)op->off_bytes);
        break;
    case IO_WRITE:
        if (one)
            io_prep_pwrite(iocb, fd, base, len, (long long)op->off_bytes);
        else
            io_prep_pwritev(iocb, fd, op->iov, (int)op->iov_count, (long long)op->off_bytes);
        iocb->aio_rw_flags = op->dsync ? RWF_DSYNC : 0;
        break;
    case IO_SYNC:
        io_prep_fdsync(iocb, fd);
        break;
    }
    iocb->data = op;
    if (is_silent(op))
        aio->silent++;
    else
        io_set_eventfd(iocb, aio->event.fd);
    check_lt(aio->batch_count, context->depth);
    aio->batch[aio->batch_count++] = iocb;
}

static void
batch_drop(struct libaio *aio, uint32_t count)
{
    aio->batch_count -= count;
    memmove(aio->batch, aio->batch + count, aio->batch_count * sizeof(aio->batch[0]));
}

static void
libaio_submit(struct io_context *context)
{
    struct libaio *aio = context->backend_data;
    while (aio->batch_count > 0) {
        int taken = io_submit(aio->aio, aio->batch_count, aio->batch);
        if (taken > 0) {
            batch_drop(aio, (uint32_t)taken);
        } else if (taken == -EAGAIN || taken == 0) {
            break;
        } else if (taken != -EINTR) { /* the kernel refuses the first one, for good */
            struct io_op *op = aio->batch[0]->data;
            batch_drop(aio, 1);
            completed(aio, op, taken);
        }
    }
    reap(aio);
    if (aio->batch_count > 0 || aio->silent > 0)
        loop_timer_set(context->loop, &aio->retry, loop_now_ns(context->loop) + RETRY_NS);
}

static void
retry_fired(struct loop_timer *timer)
{
    (void)timer; /* the turn that follows submits and reaps */
}

static int
refuse(struct diag *diag, int err)
{
    if (err == -EAGAIN) {
        diag_set(diag, DIAG_FAILED, "E_AIO_LIMIT", err,
                 "the kernel's limit for asynchronous I/O is used up");
        diag_fix(diag, "sysctl -w fs.aio-max-nr=1048576");
        return err;
    }
    diag_set(diag, DIAG_FAILED, "E_IO_CONTEXT", err, "cannot set up libaio: %s", strerror(-err));
    diag_fix(diag, "sr5d --io io_uring");
    return err;
}

static int
libaio_create(struct io_context *context, struct diag *diag)
{
    struct libaio *aio = calloc(1, sizeof(*aio));
    if (aio == NULL)
        return refuse(diag, -ENOMEM);
    context->backend_data = aio;
    aio->context = context;
    aio->retry.fired = retry_fired;
    aio->event.events = EPOLLIN | (uint32_t)EPOLLET;
    aio->event.ready = event_ready;
    aio->batch = calloc(context->depth, sizeof(struct iocb *));
    aio->iocbs = calloc(context->depth, sizeof(struct iocb));
    aio->event.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (aio->batch == NULL || aio->iocbs == NULL || aio->event.fd < 0)
        return refuse(diag, -ENOMEM);
    int err = io_setup((int)context->depth, &aio->aio);
    if (err == 0)
        err = loop_watch(context->loop, &aio->event);
    return err < 0 ? refuse(diag, err) : 0;
}

static void
libaio_destroy(struct io_context *context)
{
    struct libaio *aio = context->backend_data;
    if (aio == NULL)
        return;
    check_eq(aio->batch_count, 0);
    loop_timer_cancel(&aio->retry);
    if (aio->event.watched)
        loop_unwatch(&aio->event);
    if (aio->aio != NULL)
        io_destroy(aio->aio);
    if (aio->event.fd >= 0)
        close(aio->event.fd);
    free(aio->batch);
    free(aio->iocbs);
    free(aio);
}

const struct io_backend io_backend_libaio = {
    .name = "libaio",
    .create = libaio_create,
    .destroy = libaio_destroy,
    .push = libaio_push,
    .submit = libaio_submit,
};
