/* THEORY OF OPERATION
 *
 * All locks, held and waiting, stand in one list in the order they were asked for.  A lock counts
 * the earlier ones that overlap it (`blockers`); it is held when there are none.  Releasing one
 * takes it out of the list and lowers the count of every later lock that overlaps it.
 *
 *      order:   A[0,4) held    B[2,6) waits for A    C[8,9) held    D[3,9) waits for A, B, C
 *
 * From this follow, without further state:
 *   - two held locks never overlap (I4): the later one would count the earlier one;
 *   - first come, first served: D cannot pass B, though both wait;
 *   - others pass: C does not care for A and B;
 *   - no deadlock among holders of one lock each: the first in the list never waits.
 *
 * The list is as long as there are stripe operations in flight (a few hundred at most, usually
 * a few dozen), so a scan is cheaper than a tree.  granted() comes from a deferred step: a release
 * never runs the next owner's code inside the previous owner's. */
#include "engine/range_lock.h"

static void
run_grants(struct loop_step *step)
{
    struct range_lock_set *set = CONTAINER_OF(step, struct range_lock_set, step);
    struct list_node *node;
    while ((node = list_pop_front(&set->grants)) != NULL) {
        struct range_lock *lock = CONTAINER_OF(node, struct range_lock, grant_node);
        check_eq(lock->blockers, 0);
        lock->granted(lock);
    }
}

void
range_lock_set_init(struct range_lock_set *set, struct loop *loop)
{
    *set = (struct range_lock_set){.loop = loop, .step.run = run_grants};
    list_init(&set->order);
    list_init(&set->grants);
}

void
range_lock_set_abandon(struct range_lock_set *set)
{
    loop_undefer(set->loop, &set->step);
    list_init(&set->order);
    list_init(&set->grants);
}

static bool
overlap(const struct range_lock *a, const struct range_lock *b)
{
    return a->first < b->end && b->first < a->end;
}

bool
range_lock_acquire(struct range_lock_set *set, struct range_lock *lock, uint64_t first,
                   uint64_t count, void (*granted)(struct range_lock *lock))
{
    check_gt(count, 0);
    check_le(count, UINT64_MAX - first);
    *lock =
        (struct range_lock){.set = set, .first = first, .end = first + count, .granted = granted};
    list_for_each (node, &set->order) {
        if (overlap(CONTAINER_OF(node, struct range_lock, node), lock))
            lock->blockers++;
    }
    list_push_back(&set->order, &lock->node);
    return lock->blockers == 0;
}

void
range_lock_release(struct range_lock *lock)
{
    struct range_lock_set *set = lock->set;
    check_eq(lock->blockers, 0);
    check(!list_linked(&lock->grant_node)); /* granted() was called: the owner knows it holds it */
    for (struct list_node *node = lock->node.next; node != &set->order.head; node = node->next) {
        struct range_lock *later = CONTAINER_OF(node, struct range_lock, node);
        if (!overlap(later, lock))
            continue;
        check_gt(later->blockers, 0);
        if (--later->blockers == 0) {
            list_push_back(&set->grants, &later->grant_node);
            loop_defer(set->loop, &set->step);
        }
    }
    list_remove(&lock->node);
}

bool
range_lock_idle(const struct range_lock_set *set)
{
    return list_empty(&set->order);
}
