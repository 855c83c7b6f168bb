/* The event loop: one thread, one loop, everything that happens on it happens in turn.
 *
 * A turn: reap and dispatch events (epoll), run due timers, run deferred steps until there are
 * none, call the before-sleep hooks (submit member I/O as one batch, send replies as one sendmsg
 * per connection; a hook may cause more steps, then the turn goes round again), sleep.
 * (Steps that go on deferring steps do not starve the rest: after some thousands the hooks and
 * the events have their turn, without sleeping.)
 *
 * With a virtual clock there is no epoll: when nothing is deferred, the clock jumps to the next
 * timer, so a whole array runs in simulated time, bit for bit repeatable.
 *
 * Thread: every function belongs to the loop's own thread but those of mailbox.h and
 * loop_stop().  A loop belongs to the thread that runs it; while nobody does, to whoever sets it
 * up or takes it down.  Errors: only loop_create() and loop_watch() can fail. */
#pragma once

#include "engine/base/clock.h"
#include "engine/base/list.h"

struct loop;

/* clock: clock_real(), or a struct clock_virtual's clock (then no fd can be watched). */
MUST_CHECK int loop_create(struct loop **out, struct clock *clock);
void loop_destroy(struct loop *loop); /* nothing may be registered any more */
struct clock *loop_clock(struct loop *loop);
uint64_t loop_now_ns(struct loop *loop); /* the time of this turn; cheap */
bool loop_is_virtual(const struct loop *loop);

/* Run until loop_stop(), also when that came before; the turn is finished, hooks included.
 * Returns 0, or with a virtual clock also -EDEADLK when there is nothing
 * left to happen (no deferred step, no timer). */
int loop_run(struct loop *loop);
/* Run turns until *flag is true (set by some callback).  Same returns as loop_run(). For tests and
 * start-up; may not be called from inside a turn.  loop_stop() ends it, too. */
int loop_run_until(struct loop *loop, const bool *flag);
void loop_stop(struct loop *loop);                /* from any thread, or a signal handler */
bool loop_on_thread(const struct loop *loop);     /* is it this thread that runs the loop? */
void loop_assert_thread(const struct loop *loop); /* aborts when another thread runs it */

/* ---- file descriptors ------------------------------------------------------------------ */
struct loop_fd {
    int fd;
    uint32_t events; /* EPOLLIN...; as last set */
    void (*ready)(struct loop_fd *watch, uint32_t events);
    struct loop *loop; /* loop's own */
    bool watched;      /* loop's own */
};
/* Fill fd, events and ready first.  The struct must stay until loop_unwatch(), after which ready()
 * is not called any more, not even for events already reaped in this turn; close fd after that.
 * Level-triggered.  -ENOTSUP with a virtual clock, -EPERM for a regular file. */
MUST_CHECK int loop_watch(struct loop *loop, struct loop_fd *watch);
void loop_rewatch(struct loop_fd *watch, uint32_t events); /* change the events */
void loop_unwatch(struct loop_fd *watch);                  /* idempotent */

/* ---- timers ---------------------------------------------------------------------------- */
struct loop_timer {
    void (*fired)(struct loop_timer *timer);
    uint64_t due_ns;     /* as set, or the time of setting when that was later */
    uint32_t heap_index; /* loop's own; 0: not set */
    struct loop *loop;
    uint64_t sequence; /* loop's own: equal times fire in the order they were set */
};
/* fired() is called once, from the loop, never from inside of this call. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ns); /* moves, too */
void loop_timer_cancel(struct loop_timer *timer);                                  /* idempotent */
static inline bool
loop_timer_is_set(const struct loop_timer *timer)
{
    return timer->heap_index != 0;
}

/* ---- deferred steps: called once, later in this turn, never from inside loop_defer() ------ */
struct loop_step {
    void (*run)(struct loop_step *step);
    struct list_node node;
};
void loop_defer(struct loop *loop, struct loop_step *step);   /* a no-op when already deferred */
void loop_undefer(struct loop *loop, struct loop_step *step); /* idempotent */

/* ---- before-sleep hooks: called every turn, in the order they were added ------------------
 * Any hook may be removed at any time, from inside of one, too. */
struct loop_hook {
    void (*before_sleep)(struct loop_hook *hook);
    struct list_node node;
};
void loop_hook_add(struct loop *loop, struct loop_hook *hook);
void loop_hook_remove(struct loop *loop, struct loop_hook *hook);
