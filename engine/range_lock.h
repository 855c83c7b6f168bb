/* Exclusive use of ranges, first come first served among those that overlap (I4).
 *
 * The space is the layout's (struct band: lock_off, lock_len); nothing here knows what it means.
 * One loop owns a set. */
#pragma once

#include "engine/base/list.h"

#include "engine/loop/loop.h"

struct range_lock_set;

struct range_lock {
    struct list_node node; /* in set->order while held or waiting, or in set->grants */
    struct list_node grant_node;
    struct range_lock_set *set;
    uint64_t first, end;
    uint32_t blockers; /* earlier overlapping locks not yet released */
    void (*granted)(struct range_lock *lock);
};

struct range_lock_set {
    struct loop *loop;
    struct list order;  /* every lock held or waiting, in the order they were asked for */
    struct list grants; /* held, granted() not yet called */
    struct loop_step step;
};

void range_lock_set_init(struct range_lock_set *set, struct loop *loop);
/* Forget everything without calling anyone (simulated death). */
void range_lock_set_abandon(struct range_lock_set *set);

/* Ask for exclusive use of [first, first + count), count > 0.
 *
 * Returns true when the lock is held on return; false when it is not yet, and then granted() is
 * called exactly once, later in this or another turn, never from inside this call or from inside
 * range_lock_release().
 * Ownership: *lock is the caller's, and must not move until range_lock_release().
 * Order:     first come, first served among overlapping ranges; others pass.
 * Errors:    none; it cannot fail (I8).  Thread: the loop of the set. */
bool range_lock_acquire(struct range_lock_set *set, struct range_lock *lock, uint64_t first,
                        uint64_t count, void (*granted)(struct range_lock *lock));
/* The lock must be held. */
void range_lock_release(struct range_lock *lock);
bool range_lock_idle(const struct range_lock_set *set);
