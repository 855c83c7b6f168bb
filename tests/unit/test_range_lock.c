#include "engine/base/rng.h"

#include "engine/range_lock.h"
#include "tests/unit/suite.h"

struct owner {
    struct range_lock lock;
    bool asked, held;
    uint64_t order; /* when it was asked for */
};

static struct range_lock_set set;
static struct clock_virtual virtual_clock;
static struct loop *loop;

static void
granted(struct range_lock *lock)
{
    CONTAINER_OF(lock, struct owner, lock)->held = true;
}

static void
ask(struct owner *owner, uint64_t first, uint64_t count)
{
    owner->asked = true;
    owner->held = range_lock_acquire(&set, &owner->lock, first, count, granted);
}

static void
give_back(struct owner *owner)
{
    range_lock_release(&owner->lock);
    owner->asked = owner->held = false;
}

static void
settle(void)
{
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK); /* until nothing is left to happen */
}

static void
begin(void)
{
    clock_virtual_init(&virtual_clock);
    check_eq(loop_create(&loop, &virtual_clock.clock), 0);
    range_lock_set_init(&set, loop);
}

static void
overlapping_ranges_wait_and_others_pass(void)
{
    begin();
    struct owner a = {0}, b = {0}, c = {0}, d = {0};
    ask(&a, 0, 4);
    ask(&b, 2, 4);
    ask(&c, 8, 1);
    ask(&d, 3, 6);
    CU_ASSERT(a.held && !b.held && c.held && !d.held);
    give_back(&a);
    CU_ASSERT(!b.held); /* never from inside release */
    settle();
    CU_ASSERT(b.held && !d.held);
    give_back(&c);
    settle();
    CU_ASSERT(!d.held);
    give_back(&b);
    settle();
    CU_ASSERT(d.held);
    give_back(&d);
    CU_ASSERT(range_lock_idle(&set));
    loop_destroy(loop);
}

static void
later_locks_do_not_pass_a_waiting_one_they_overlap(void)
{
    begin();
    struct owner a = {0}, b = {0}, c = {0};
    ask(&a, 0, 2);
    ask(&b, 1, 3);
    ask(&c, 3, 2); /* free of a, but b came first */
    CU_ASSERT(a.held && !b.held && !c.held);
    give_back(&a);
    settle();
    CU_ASSERT(b.held && !c.held);
    give_back(&b);
    settle();
    CU_ASSERT(c.held);
    give_back(&c);
    loop_destroy(loop);
}

#define OWNERS 24

/* Of any two that overlap, only the one that asked first may be held. */
static void
check_exclusive(const struct owner *owners)
{
    for (int i = 0; i < OWNERS; i++)
        for (int k = 0; k < OWNERS; k++) {
            const struct range_lock *a = &owners[i].lock, *b = &owners[k].lock;
            if (i == k || !owners[i].held || !owners[k].asked)
                continue;
            if (a->first < b->end && b->first < a->end)
                CU_ASSERT(!owners[k].held && owners[i].order < owners[k].order);
        }
}

static void
random_locks_never_overlap_and_all_are_granted(void)
{
    begin();
    struct rng rng;
    rng_seed(&rng, suite_seed());
    struct owner owners[OWNERS] = {0};
    for (uint64_t step = 0; step < 4000; step++) {
        struct owner *owner = &owners[rng_below(&rng, OWNERS)];
        if (!owner->asked) {
            owner->order = step;
            ask(owner, rng_below(&rng, 40), rng_range(&rng, 1, 12));
        } else if (owner->held) {
            give_back(owner);
        }
        settle();
        check_exclusive(owners);
    }
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < OWNERS; i++)
            if (owners[i].held) {
                give_back(&owners[i]);
                any = true;
            }
        settle();
    }
    CU_ASSERT(range_lock_idle(&set));
    loop_destroy(loop);
}

SUITE_MAIN("range_lock", T(overlapping_ranges_wait_and_others_pass),
           T(later_locks_do_not_pass_a_waiting_one_they_overlap),
           T(random_locks_never_overlap_and_all_are_granted))
