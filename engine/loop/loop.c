/* THEORY OF OPERATION
 *
 * A run of the loop is turns, one after the other:
 *
 *   work   timers that are due, deferred steps until there are none, before-sleep hooks
 *   end?   stopped, or the flag of loop_run_until() is set: return
 *   wait   one epoll_wait: not at all when steps are left, else until the next timer is due
 *          (virtual clock: jump to the next timer)
 *   reap   call ready() of what epoll reported
 *
 * Work comes first so that what was handed in before the run (a step, a request waiting for a
 * hook) is done before the first sleep.
 *
 * Invariants
 *  - Nothing sleeps while a step is deferred or a timer is due.
 *  - Nothing starves: in one turn a timer fires at most once (one that is set again waits for the
 *    next turn), and steps beyond STEPS_MAX wait until hooks and events have had their turn.
 *  - After loop_unwatch() nothing refers to the watch: events reaped but not yet dispatched are
 *    struck from the list.
 *  - now_ns is read once a turn, after waiting.
 *  - `runner` is the thread inside of run(), or 0.
 *
 * Level-triggered epoll: a callback may leave data unread and is called again.  Not here:
 * priorities among events, and child processes. */
#include "engine/loop/loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "engine/base/check.h"

#include "engine/loop/timer_heap.h"

#define EVENTS_MAX 256u  /* reaped in one turn; the kernel hands out the rest in the next */
#define STEPS_MAX  4096u /* run in one turn */

struct loop {
    struct clock *clock;
    struct clock_virtual *virtual_clock; /* the same, or NULL */
    uint64_t now_ns;
    _Atomic(pthread_t) runner;
    atomic_bool stop_asked;
    int epoll_fd;
    struct loop_fd wake; /* an eventfd: loop_stop() ends the wait */
    uint32_t watch_count;
    struct timer_heap timers;
    struct list steps;
    struct list hooks;
    struct list_node *hook_next;           /* while hooks are called: the one after this */
    struct epoll_event reaped[EVENTS_MAX]; /* data.ptr NULL: struck out */
    uint32_t reaped_count, reaped_next;
};

static void
drain_wake(struct loop_fd *wake, uint32_t events)
{
    (void)events;
    uint64_t count;
    ssize_t bytes = read(wake->fd, &count, sizeof(count));
    check(bytes == (ssize_t)sizeof(count) || errno == EAGAIN);
}

static int
open_epoll(struct loop *loop)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return -errno;
    loop->wake = (struct loop_fd){.events = EPOLLIN, .ready = drain_wake};
    loop->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake.fd < 0)
        return -errno;
    return loop_watch(loop, &loop->wake);
}

int
loop_create(struct loop **out, struct clock *clock)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    if (loop == NULL)
        return -ENOMEM;
    loop->clock = clock;
    loop->epoll_fd = loop->wake.fd = -1;
    list_init(&loop->steps);
    list_init(&loop->hooks);
    int err = timer_heap_init(&loop->timers);
    if (clock != clock_real())
        loop->virtual_clock = CONTAINER_OF(clock, struct clock_virtual, clock);
    else if (err == 0)
        err = open_epoll(loop);
    if (err != 0) {
        loop_destroy(loop);
        return err;
    }
    *out = loop;
    return 0;
}

void
loop_destroy(struct loop *loop)
{
    if (loop == NULL)
        return;
    check_eq(atomic_load(&loop->runner), 0);
    loop_unwatch(&loop->wake);
    check_eq(loop->watch_count, 0);
    check(list_empty(&loop->steps));
    check(list_empty(&loop->hooks));
    timer_heap_destroy(&loop->timers); /* checks that none is set */
    if (loop->wake.fd >= 0)
        close(loop->wake.fd);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    free(loop);
}

struct clock *
loop_clock(struct loop *loop)
{
    return loop->clock;
}

bool
loop_is_virtual(const struct loop *loop)
{
    return loop->virtual_clock != NULL;
}

uint64_t
loop_now_ns(struct loop *loop)
{
    loop_assert_thread(loop);
    if (!loop_on_thread(loop)) /* between runs there is no turn whose time it could be */
        loop->now_ns = clock_now_ns(loop->clock);
    return loop->now_ns;
}

bool
loop_on_thread(const struct loop *loop)
{
    return atomic_load_explicit(&loop->runner, memory_order_relaxed) == pthread_self();
}

void
loop_assert_thread(const struct loop *loop)
{
    pthread_t runner = atomic_load_explicit(&loop->runner, memory_order_relaxed);
    check(runner == 0 || runner == pthread_self());
}

/* ---- file descriptors ------------------------------------------------------------------ */

int
loop_watch(struct loop *loop, struct loop_fd *watch)
{
    loop_assert_thread(loop);
    check(!watch->watched);
    if (loop_is_virtual(loop))
        return -ENOTSUP;
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) != 0)
        return -errno;
    watch->loop = loop;
    watch->watched = true;
    loop->watch_count++;
    return 0;
}

void
loop_rewatch(struct loop_fd *watch, uint32_t events)
{
    check(watch->watched);
    loop_assert_thread(watch->loop);
    if (watch->events == events)
        return;
    watch->events = events;
    struct epoll_event event = {.events = events, .data.ptr = watch};
    check_eq(epoll_ctl(watch->loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event), 0);
}

void
loop_unwatch(struct loop_fd *watch)
{
    if (!watch->watched)
        return;
    struct loop *loop = watch->loop;
    loop_assert_thread(loop);
    check_eq(epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL), 0);
    watch->watched = false;
    loop->watch_count--;
    for (uint32_t i = loop->reaped_next; i < loop->reaped_count; i++)
        if (loop->reaped[i].data.ptr == watch)
            loop->reaped[i].data.ptr = NULL;
}

static void
dispatch(struct loop *loop)
{
    for (loop->reaped_next = 0; loop->reaped_next < loop->reaped_count;) {
        const struct epoll_event *event = &loop->reaped[loop->reaped_next++];
        struct loop_fd *watch = event->data.ptr;
        if (watch == NULL)
            continue;
        /* An earlier callback may have taken its interest back. */
        uint32_t events = event->events & (watch->events | EPOLLERR | EPOLLHUP);
        if (events != 0)
            watch->ready(watch, events);
    }
    loop->reaped_count = 0;
}

/* ---- timers ---------------------------------------------------------------------------- */

void
loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ns)
{
    check(!loop_timer_is_set(timer) || timer->loop == loop);
    timer->loop = loop;
    /* What is overdue queues up behind what is due already. */
    timer_heap_set(&loop->timers, timer, MAX(due_ns, loop_now_ns(loop)));
}

void
loop_timer_cancel(struct loop_timer *timer)
{
    if (!loop_timer_is_set(timer))
        return;
    loop_assert_thread(timer->loop);
    timer_heap_remove(&timer->loop->timers, timer);
}

static void
run_timers(struct loop *loop)
{
    uint64_t last_sequence = loop->timers.sequence;
    for (struct loop_timer *timer; (timer = timer_heap_first(&loop->timers)) != NULL;) {
        if (timer->due_ns > loop->now_ns || timer->sequence > last_sequence)
            return;
        timer_heap_remove(&loop->timers, timer);
        timer->fired(timer);
    }
}

/* ---- steps and hooks ------------------------------------------------------------------- */

void
loop_defer(struct loop *loop, struct loop_step *step)
{
    loop_assert_thread(loop);
    if (!list_linked(&step->node))
        list_push_back(&loop->steps, &step->node);
}

void
loop_undefer(struct loop *loop, struct loop_step *step)
{
    loop_assert_thread(loop);
    if (list_linked(&step->node))
        list_remove(&step->node);
}

static void
run_steps(struct loop *loop)
{
    for (uint32_t i = 0; i < STEPS_MAX && !list_empty(&loop->steps); i++) {
        struct list_node *node = list_pop_front(&loop->steps);
        struct loop_step *step = CONTAINER_OF(node, struct loop_step, node);
        step->run(step);
    }
}

void
loop_hook_add(struct loop *loop, struct loop_hook *hook)
{
    loop_assert_thread(loop);
    list_push_back(&loop->hooks, &hook->node);
}

void
loop_hook_remove(struct loop *loop, struct loop_hook *hook)
{
    loop_assert_thread(loop);
    if (loop->hook_next == &hook->node)
        loop->hook_next = hook->node.next;
    list_remove(&hook->node);
}

static void
call_hooks(struct loop *loop)
{
    loop->hook_next = loop->hooks.head.next;
    while (loop->hook_next != &loop->hooks.head) {
        struct loop_hook *hook = CONTAINER_OF(loop->hook_next, struct loop_hook, node);
        loop->hook_next = hook->node.next;
        hook->before_sleep(hook);
    }
    loop->hook_next = NULL;
}

/* ---- waiting --------------------------------------------------------------------------- */

#define FOREVER UINT64_MAX

/* How long nothing can happen but events from outside. */
static uint64_t
wait_ns_max(const struct loop *loop)
{
    if (!list_empty(&loop->steps))
        return 0;
    const struct loop_timer *timer = timer_heap_first(&loop->timers);
    if (timer == NULL)
        return FOREVER;
    uint64_t now_ns = clock_now_ns(loop->clock); /* the turn took time, too */
    return timer->due_ns > now_ns ? timer->due_ns - now_ns : 0;
}

static int
wait_virtual(struct loop *loop)
{
    uint64_t wait_ns = wait_ns_max(loop);
    if (wait_ns == FOREVER)
        return -EDEADLK;
    clock_virtual_advance(loop->virtual_clock, loop->virtual_clock->now_ns_value + wait_ns);
    return 0;
}

static int
wait_epoll(struct loop *loop)
{
    uint64_t wait_ns = wait_ns_max(loop);
    struct timespec timeout = {
        .tv_sec = (time_t)(wait_ns / SECOND_NS),
        .tv_nsec = (long)(wait_ns % SECOND_NS),
    };
    int count = epoll_pwait2(loop->epoll_fd, loop->reaped, (int)EVENTS_MAX,
                             wait_ns == FOREVER ? NULL : &timeout, NULL);
    if (count < 0 && errno == ENOSYS) { /* before Linux 5.11: never early, up to 1 ms late */
        int timeout_ms = wait_ns == FOREVER ? -1 : (int)MIN(div_ceil(wait_ns, MS_NS), INT32_MAX);
        count = epoll_wait(loop->epoll_fd, loop->reaped, (int)EVENTS_MAX, timeout_ms);
    }
    check(count >= 0 || errno == EINTR); /* a signal: its handler may have called loop_stop() */
    loop->reaped_count = count > 0 ? (uint32_t)count : 0;
    return 0;
}

/* ---- turns ----------------------------------------------------------------------------- */

static int
run(struct loop *loop, const bool *flag)
{
    for (;;) {
        loop->now_ns = clock_now_ns(loop->clock);
        dispatch(loop);
        run_timers(loop);
        run_steps(loop);
        call_hooks(loop);
        if (atomic_exchange(&loop->stop_asked, false) || (flag != NULL && *flag))
            return 0;
        int err = loop_is_virtual(loop) ? wait_virtual(loop) : wait_epoll(loop);
        if (err != 0)
            return err;
    }
}

static int
run_as_this_thread(struct loop *loop, const bool *flag)
{
    pthread_t nobody = 0;
    check(atomic_compare_exchange_strong(&loop->runner, &nobody, pthread_self()));
    int err = run(loop, flag);
    atomic_store(&loop->runner, 0);
    return err;
}

int
loop_run(struct loop *loop)
{
    return run_as_this_thread(loop, NULL);
}

int
loop_run_until(struct loop *loop, const bool *flag)
{
    return *flag ? 0 : run_as_this_thread(loop, flag);
}

void
loop_stop(struct loop *loop)
{
    atomic_store(&loop->stop_asked, true);
    if (loop_is_virtual(loop))
        return;
    int saved_errno = errno; /* we may be in a signal handler */
    uint64_t one = 1;
    ssize_t bytes = write(loop->wake.fd, &one, sizeof(one));
    (void)bytes; /* -EAGAIN: the counter is full, so the loop is awake */
    errno = saved_errno;
}
