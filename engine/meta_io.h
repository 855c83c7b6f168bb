/* What the members' metadata says, kept true while the array runs: superblocks, sr5 area slots and
 * bitmap headers of all live members, written as one ordered update. */
#pragma once

#include "engine/base/req.h"

#include "engine/meta/super.h"
#include "engine/waiters.h"

struct array;
struct member;

struct meta_child {
    struct req req;
    struct iovec iov;
    struct meta_io *meta;
    struct member *member;
    uint64_t mark; /* SETTLE: writes that the flush covers */
};

struct meta_io {
    struct array *array;
    struct list next, current; /* waiters: of the next update, of the one that runs */
    uint32_t stage, pending;
    bool running;
    bool wanted; /* a next update, though nobody waits for it */
    int err;

    /* What the disk should say.  Set by their owners, read when an update begins. */
    bool want_active;              /* writes are going on: resync_offset 0 */
    uint64_t clean_resync_sectors; /* what it says when they are not */
    bool catch_up;                 /* some member is behind: the next update does not move events */
    uint16_t roles[SUPER_ROLES_MAX], roles_found[SUPER_ROLES_MAX];
    uint32_t max_dev;

    /* What it says. */
    bool active;           /* durable on every live member: writes may go */
    uint64_t events;       /* of the newest update, even if it did not reach everyone */
    uint64_t failures_now; /* member failures so far; see meta_io_failed() */
    uint64_t failures_recorded;
    uint64_t failures_running; /* as the running update records them */
    bool active_running;
    uint32_t rounds_owed; /* updates until those left behind are so by 2 events (M2) */

    struct intent_waiter header;
    uint8_t *memory; /* per member: superblock, then an area slot */
    struct meta_child *children;
};

/* The starting values come from the freshest superblock.  0 or -ENOMEM. */
MUST_CHECK int meta_io_init(struct meta_io *meta, struct array *array,
                            const struct super *freshest);
void meta_io_destroy(struct meta_io *meta);

/* Run an update that begins after this call; done(), perhaps from inside, when it is durable on
 * every live member.  err: a member that could not be failed did not take it. */
void meta_io_update(struct meta_io *meta, struct meta_waiter *waiter,
                    void (*done)(struct meta_waiter *waiter, int err));
/* The same, with nobody waiting. */
void meta_io_kick(struct meta_io *meta);

/* A member has just failed: the survivors must know before anything it missed is acknowledged. */
void meta_io_failed(struct meta_io *meta);
/* True when every failure so far is durable on the survivors (I11); else done() follows. */
bool meta_io_record(struct meta_io *meta, struct meta_waiter *waiter,
                    void (*done)(struct meta_waiter *waiter, int err));
/* True when the array is marked active on disk; else it is being marked and done() follows. */
bool meta_io_activate(struct meta_io *meta, struct meta_waiter *waiter,
                      void (*done)(struct meta_waiter *waiter, int err));
