/* THEORY OF OPERATION
 *
 * A back end to copy: it does each operation at once, by the plain system calls.  Correct and slow
 * (the loop waits for the disk), so it is used by tests only.  docs/adding-a-backend.md goes
 * through it line by line.
 *
 * What a back end must keep: every pushed operation is completed exactly once, from submit() or
 * from an event of the loop, never from push(); the result is the count of bytes or a negative
 * errno of the kernel, untranslated: short counts, errnos and retries are io_context.c's business.
 */
#include "engine/io/io_context.h"

struct skeleton {
    struct list pushed;
};

static int
skeleton_create(struct io_context *context, struct diag *diag)
{
    struct skeleton *skeleton = calloc(1, sizeof(*skeleton));
    if (skeleton == NULL)
        return diag_set(diag, DIAG_FAILED, "E_IO_CONTEXT", -ENOMEM, "no memory for member I/O");
    list_init(&skeleton->pushed);
    context->backend_data = skeleton;
    return 0;
}

static void
skeleton_destroy(struct io_context *context)
{
    free(context->backend_data); /* NULL when create() failed */
}

static void
skeleton_push(struct io_context *context, struct io_op *op)
{
    struct skeleton *skeleton = context->backend_data;
    list_push_back(&skeleton->pushed, &op->node); /* unlinked while it is out */
}

static ssize_t
perform(const struct io_op *op)
{
    int fd = op->member->file.fd;
    switch (op->kind) {
    case IO_READ:
        return preadv2(fd, op->iov, (int)op->iov_count, (off_t)op->off_bytes, 0);
    case IO_WRITE:
        return pwritev2(fd, op->iov, (int)op->iov_count, (off_t)op->off_bytes,
                        op->dsync ? RWF_DSYNC : 0);
    case IO_SYNC:
        return fdatasync(fd);
    }
    return -1;
}

static void
skeleton_submit(struct io_context *context)
{
    struct skeleton *skeleton = context->backend_data;
    for (struct list_node *node; (node = list_pop_front(&skeleton->pushed)) != NULL;) {
        struct io_op *op = CONTAINER_OF(node, struct io_op, node);
        ssize_t result = perform(op);
        io_op_completed(op, result < 0 ? -errno : result);
    }
}

const struct io_backend io_backend_skeleton = {
    .name = "skeleton",
    .create = skeleton_create,
    .destroy = skeleton_destroy,
    .push = skeleton_push,
    .submit = skeleton_submit,
};
