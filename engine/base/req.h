/* A request: what goes down from a client to the members, and comes back up once.
 *
 * Ownership: the struct, its iovec and the memory it names belong to whoever submits it, and stay
 *            untouched by the submitter until done() is called.  The device owns `dev_*`.
 * Contract:  done() is called exactly once (I2), perhaps before submit() returns; nobody touches
 *            the request afterwards but its submitter.  done() runs on the submitter's loop.
 * Errors:    `err` is 0 or a negative errno when done() is called.
 * Range:     bytes of the device it is submitted to; any alignment for arrays, multiples of
 *            dev_info.logical_bytes (range and memory: dev_info.mem_align) for members.
 *            The submitter guarantees that it lies inside the device.
 */
#pragma once

#include <sys/uio.h>

#include "engine/base/list.h"

enum req_op {
    REQ_READ,
    REQ_WRITE,
    REQ_FLUSH, /* everything whose done() was called before this submit becomes durable */
    REQ_TRIM,  /* contents undefined afterwards, but the same for every later read */
    REQ_ZERO,  /* reads as zeroes afterwards */
    REQ_CACHE, /* a hint to prefetch; may do nothing */
};
#define REQ_OP_COUNT 6

enum req_flag {
    REQ_FUA = 1u << 0,       /* durable (with all that reading it back needs) before done() */
    REQ_NO_HOLE = 1u << 1,   /* ZERO: do not unallocate */
    REQ_FAST_ZERO = 1u << 2, /* ZERO: -ENOTSUP at once unless faster than writing */
    REQ_BACKGROUND = 1u << 3 /* a job's I/O, not a client's */
};

struct req {
    enum req_op op;
    uint32_t flags; /* enum req_flag */
    uint64_t off_bytes;
    uint64_t len_bytes;      /* FLUSH: 0 */
    const struct iovec *iov; /* READ, WRITE: exactly len_bytes of memory; else NULL */
    uint32_t iov_count;
    int err;
    void (*done)(struct req *req);

    /* For the device that holds the request, between submit and done. */
    struct list_node dev_node;
    void *dev_data;
    uint64_t dev_time_ns;
};

const char *req_op_name(enum req_op op);

/* Finish: set err and call done.  The only way a device ends a request. */
static inline void
req_done(struct req *req, int err)
{
    check(err <= 0);
    req->err = err;
    req->done(req);
}

static inline bool
req_is_write(const struct req *req)
{
    return req->op == REQ_WRITE || req->op == REQ_TRIM || req->op == REQ_ZERO;
}
