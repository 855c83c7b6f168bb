/* A stripe operation: one band of a request, from lock to acknowledgement.
 *
 * Pooled; made for the widest array once, reset field by field for each use. */
#pragma once

#include "engine/base/req.h"

#include "engine/range_lock.h"
#include "engine/waiters.h"
#include "layouts/plan.h"

struct array;
struct member;
struct stripe_op;

enum stripe_kind {
    STRIPE_READ,
    STRIPE_WRITE,
    STRIPE_ZERO_ROWS, /* whole rows become zero: one REQ_ZERO per member, no plan */
    STRIPE_SYNC,      /* redundancy of a row is made to agree with its data */
};

struct stripe_io { /* one request to one member */
    struct req req;
    struct iovec iov[2]; /* only for data that lies in two pieces */
    struct stripe_op *op;
    struct member *member;
    uint16_t role;
};

/* Where the bytes of a plan's slot are: scratch, or the client's own memory. */
struct stripe_slot {
    struct iovec iov[2];
    uint32_t iov_count; /* 1 but for plans without sums */
};

struct stripe_op {
    /* Set by whoever starts it. */
    struct array *array;
    void (*done)(struct stripe_op *op); /* once; the op is the owner's again */
    void *owner;
    enum stripe_kind kind;
    uint32_t flags; /* REQ_FUA, REQ_NO_HOLE, REQ_BACKGROUND */
    struct band band;
    struct row_range rows; /* ZERO_ROWS */
    /* The client's memory: byte i of it is for array address memory_off_bytes + i.  iov NULL: a
     * WRITE of zeroes. */
    const struct iovec *iov;
    uint32_t iov_count;
    uint64_t memory_off_bytes;
    /* The client's part when it is not the whole band (one block then). */
    bool ragged;
    uint64_t part_off_bytes, part_len_bytes; /* array addresses */

    /* The machine's own. */
    int err;
    uint32_t stage, pending;
    bool locked, intent_held, active_write, failed_read;
    bool scratch_turn; /* first in the queue for scratch */
    int write_err;
    uint64_t generation;           /* of the member states it was planned with */
    uint64_t bad_main, bad_second; /* roles whose (replacement) member could not be read here */
    uint64_t write_failed;         /* roles that did not take their write */
    uint64_t sync_off_bytes, sync_len_bytes; /* what is locked and marked: sync addresses */
    uint64_t client_direct;                  /* roles whose NEW slot is the client's own memory */
    uint64_t client_roles;                   /* roles whose NEW slot carries client data */
    uint8_t piece_role[MEMBERS_MAX];         /* role of data piece k */
    uint8_t *scratch;
    uint64_t scratch_bytes;
    struct range_lock lock;
    struct list_node wait_node; /* for scratch */
    struct meta_waiter meta;
    struct intent_waiter intent;
    struct plan_input input;
    struct plan plan;
    struct stripe_slot slots[PLAN_SLOT_COUNT];
    struct stripe_io ios[]; /* as many as the array has members */
};

size_t stripe_op_bytes(uint32_t member_count);
/* Fill the owner's fields first; done() follows, perhaps from inside. */
void stripe_op_start(struct stripe_op *op);
/* Go on, after something waited for (scratch). */
void stripe_op_step(struct stripe_op *op);

/* ---- stripe_memory.c: slots, scratch, moving client bytes ---------------------------------- */
/* Give every slot of the plan its memory; false when scratch has to be waited for. */
bool stripe_memory_get(struct stripe_op *op);
void stripe_memory_put(struct stripe_op *op);
/* Serve those that wait for scratch, in order. */
void stripe_memory_wake(struct array *array);
/* The plan's sums; a write's client data is taken where plan.h says, a read's given at the end. */
void stripe_memory_compute(struct stripe_op *op);
#define STRIPE_ZERO_BYTES                                                                          \
    MIB(1) /* longest piece, since zero pieces point into so much of zeroes                        \
            */

/* ---- stripe_io.c: member requests ----------------------------------------------------------- */
/* Masks of roles for exactly this band. */
void stripe_masks(const struct stripe_op *op, uint64_t *readable, uint64_t *writable);
/* Each submits what its name says and returns true when all has completed already. */
bool stripe_io_read(struct stripe_op *op);
bool stripe_io_write(struct stripe_op *op);
bool stripe_io_zero_rows(struct stripe_op *op);
/* P6: client data that a member could not read, and that was got otherwise, goes back to it. */
bool stripe_io_repair(struct stripe_op *op);
