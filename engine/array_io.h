/* Array requests: from one request of any range and size to stripe operations. */
#pragma once

#include "engine/stripe_op.h"

struct array;

struct array_req {
    struct req *req;
    struct array *array;
    struct list_node wait_node; /* for a stripe operation */
    uint64_t at_bytes;          /* what is not yet issued begins here */
    uint64_t end_bytes;
    struct band_iter iter; /* over the aligned body */
    struct band band;      /* the next one of it, when `walking` */
    bool walking, pumping;
    bool no_rows;       /* members refused REQ_ZERO: write */
    uint32_t in_flight; /* stripe operations */
    int err;
    struct flush_waiter flush;
};

void array_io_submit(struct array *array, struct req *req);
/* Serve those that wait for a context or a stripe operation, in order. */
void array_io_wake(struct array *array);
