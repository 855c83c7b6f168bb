/* A member in memory, with hooks: for tests of what stands above members.
 *
 * Requests are done at once, or (`deferred`) in a later turn of the loop, in random order. */
#pragma once

#include "engine/base/dev.h"
#include "engine/base/rng.h"

#include "engine/loop/loop.h"

struct mem_dev {
    struct dev dev;
    struct loop *loop;
    uint8_t *bytes; /* the caller's: it survives the device */
    struct dev_info info;
    bool deferred;
    struct rng *rng;
    /* Asked before a request is carried out: 0, or the error to answer (and nothing happens).  May
     * be NULL. */
    int (*hook)(struct mem_dev *mem, const struct req *req);
    void *hook_ctx;
    bool gone;                                      /* everything answers -ENODEV */
    uint32_t fail_writes, fail_reads, fail_flushes; /* so many more answer `fail_err` */
    int fail_err;
    uint64_t bad_off, bad_len; /* reads of this range answer -EIO until it is written */
    uint64_t reads, writes, flushes, zeroes;
    struct list held;
    struct loop_timer timer;
};

/* Opens a device over `bytes` (size_bytes of them).  Close frees only the device. */
struct mem_dev *mem_dev_open(struct loop *loop, uint8_t *bytes, uint64_t size_bytes,
                             uint32_t logical_bytes, struct rng *rng);
