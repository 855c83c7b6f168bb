/* struct array: what the modules of the array share.  For engine/array*.c, meta_io, intent, resync
 * and stripe_*.c only; everybody else uses engine/array.h. */
#pragma once

#include "engine/base/arena.h"
#include "engine/base/pool.h"

#include "engine/array.h"
#include "engine/array_clean.h"
#include "engine/array_flush.h"
#include "engine/array_io.h"
#include "engine/intent.h"
#include "engine/member.h"
#include "engine/meta_io.h"
#include "engine/range_lock.h"
#include "engine/resync.h"
#include "engine/stripe_op.h"

#define NO_MEMBER UINT32_MAX

struct array {
    struct dev dev;
    struct loop *loop;
    struct clock *clock;
    struct geometry geometry;
    bool read_only, no_background;
    char name[33];
    uint8_t uuid[16];
    uint64_t opened_wall_ns;
    uint64_t size_bytes;
    uint32_t block_bytes;     /* largest logical block of a member */
    uint32_t mem_align;       /* largest of a member */
    uint64_t piece_max_bytes; /* of a stripe operation */
    bool can_zero;            /* all members can, and have not failed to */
    bool redundant;           /* has locks, intent, superblock updates */
    bool has_parity;

    struct member *members;
    uint32_t member_count;
    uint32_t role_main[MEMBERS_MAX], role_second[MEMBERS_MAX]; /* index or NO_MEMBER */

    /* Derived from member states by array_states_changed(). */
    uint64_t roles_all, roles_online; /* online: main member in sync */
    bool healthy;                     /* every role online, nothing bad, no replacement */
    uint64_t generation;              /* + 1 with every change */

    struct arena scratch;
    struct pool ops, reqs;
    struct list scratch_waiters; /* stripe operations */
    struct list op_waiters;      /* array requests */
    struct list req_waiters;     /* requests, by dev_node */
    struct loop_step wake;

    struct range_lock_set locks;
    struct array_flush flush;
    struct meta_io meta;
    struct intent intent;
    struct array_clean clean;
    struct resync resync;

    uint64_t in_flight;                      /* requests taken and not done */
    uint64_t writes_in_flight, writes_begun; /* stripe operations that change members */
    struct array_stats stats;

    /* array_stop.c */
    bool stopping;
    uint32_t stop_stage;
    int stop_err;
    bool stop_waiting;
    struct flush_waiter stop_flush;
    struct loop_step stop;
    void (*stopped)(void *ctx, int err);
    void *stopped_ctx;
    struct { /* array_fail(): one at a time */
        struct meta_waiter waiter;
        bool busy;
        void (*done)(void *ctx, int err);
        void *ctx;
    } fail;
};

/* ---- array_members.c --------------------------------------------------------------------- */
/* Take a member out of use: faulty, recorded on the survivors soon (meta_io_failed).  False, and
 * nothing changes, when the array would not be enough without it (md: the last good copy stays). */
bool array_member_fail(struct array *array, struct member *member, enum member_fault fault);
void array_member_suspect(struct array *array, struct member *member);
/* Would the array be served without this member? */
bool array_enough_without(const struct array *array, const struct member *member);
void array_states_changed(struct array *array);
enum member_fault array_fault_of(int err);
/* What the sync addresses of this array measure, in all. */
uint64_t array_sync_bytes(const struct array *array);

static inline bool
array_degraded(const struct array *array)
{
    return array->roles_online != array->roles_all;
}

/* ---- array_open.c ------------------------------------------------------------------------- */
/* Members, geometry, what is in sync: everything that may be refused. */
MUST_CHECK int array_load(struct array *array, const struct array_open *how, struct diag *diag);

/* ---- array.c -------------------------------------------------------------------------------- */
/* Serve waiters in a deferred step. */
void array_wake(struct array *array);
/* Close the members and free everything; nothing is waited for. */
void array_free(struct array *array);

/* ---- array_stop.c --------------------------------------------------------------------------- */
/* Something has become idle: a stop that waits for it goes on, in a deferred step. */
void array_poke_stop(struct array *array);
void array_stop_init(struct array *array);
