/* One loop's member I/O: what every engine shares, and the four functions an engine adds.
 *
 * THEORY: submit() of a member only queues the request (its dev_node is the link).  Before the
 * loop sleeps, requests from the front of the queue get a free operation (struct io_op, `depth` of
 * them), each operation is pushed to the back end, and one submit() hands the batch to the kernel.
 * An operation is a small stage machine (io_context.c): it goes on after short counts, turns a
 * durable write into write and sync where the kernel has no RWF_DSYNC, and sends what would block
 * to the helper thread.  The back end knows nothing of requests: it runs reads, writes and syncs.
 *
 * docs/adding-a-backend.md tells how to write another one; skeleton.c is one that compiles. */
#pragma once

#include "engine/base/req.h"

#include "engine/io/io_helper.h"
#include "engine/io/member_dev.h"
#include "engine/io/member_file.h"

struct io_backend;

struct io_context {
    const struct io_backend *backend;
    void *backend_data; /* the back end's own */
    struct loop *loop;
    struct io_helper *helper;
    struct list queue;      /* requests without an operation, first come first served */
    struct list ready;      /* operations to push before the loop sleeps */
    struct list free_ops;   /* operations without a request */
    struct io_op *ops;      /* all of them */
    uint32_t depth;         /* how many */
    uint32_t members;       /* open */
    bool dsync_works;       /* until the kernel refuses RWF_DSYNC */
    void *zeroes;           /* IO_ZEROES_BYTES of zero, never written */
    struct loop_hook hook;  /* pushes and submits */
    struct loop_step again; /* queued while hooks ran: the turn goes round once more */
};

#define IO_ZEROES_BYTES MIB(1)

struct member {
    struct dev dev;
    struct io_context *context;
    struct member_file file;
    uint64_t in_flight;
    bool sync_in_helper; /* the file system has no asynchronous fdatasync */
};

enum io_kind { IO_READ, IO_WRITE, IO_SYNC };
enum io_stage { IO_DATA, IO_HOLE, IO_DURABLE };

struct io_op {
    struct list_node node;
    struct member *member;
    struct req *req;
    uint32_t index; /* in context->ops: back ends keep their own part beside it */
    enum io_stage stage;
    bool helped; /* the helper thread has or had it, not the back end */
    bool zeroes; /* WRITE comes from context->zeroes */
    uint64_t done_bytes;
    struct iovec part; /* the rest of an entry that was done in part */
    struct io_work work;

    /* What the back end is to do now. */
    enum io_kind kind;
    bool dsync; /* WRITE: durable before it completes (RWF_DSYNC) */
    const struct iovec *iov;
    uint32_t iov_count; /* at most IOV_MAX */
    uint64_t off_bytes;
};

struct io_backend {
    const char *name;
    /* Required.  Sets context->backend_data; 0 or a negative errno with *diag, then destroy() is
     * called too. */
    int (*create)(struct io_context *context, struct diag *diag);
    /* Required.  Nothing is in flight. Accepts what create() left half done. */
    void (*destroy)(struct io_context *context);
    /* Required.  Take op for the next submit(); never more than context->depth are out. */
    void (*push)(struct io_context *context, struct io_op *op);
    /* Required.  Hand what was pushed to the kernel, and complete what is complete. What the kernel
     * does not take now goes later, without being asked again. Called every turn. */
    void (*submit)(struct io_context *context);
};

extern const struct io_backend io_backend_libaio;
extern const struct io_backend io_backend_uring;
extern const struct io_backend io_backend_skeleton;

/* The same as io_context_create(), with a back end of one's own. */
MUST_CHECK int io_context_create_with(struct io_context **out, struct loop *loop,
                                      const struct io_backend *backend, uint32_t depth,
                                      struct diag *diag);
/* For members: take the request.  For back ends: op came to an end with a byte count or a negative
 * errno; may be called from inside submit(), not from push(). */
void io_context_queue(struct io_context *context, struct member *member, struct req *req);
void io_op_completed(struct io_op *op, int64_t result);
/* What a member tells its array about an errno of the kernel: -EIO, -ENOSPC or -ENODEV. */
int io_error(int64_t err);
