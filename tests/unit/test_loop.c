#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "engine/base/rng.h"

#include "engine/loop/loop.h"
#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

/* What happened, in order, as letters. */
static char trace[64];
static unsigned trace_len;

static void
note(char letter)
{
    check_lt(trace_len, sizeof(trace) - 1);
    trace[trace_len++] = letter;
    trace[trace_len] = '\0';
}

static struct clock_virtual virtual_clock;
static struct loop *loop;
static bool finished;

static void
start_virtual(void)
{
    trace[trace_len = 0] = '\0';
    finished = false;
    clock_virtual_init(&virtual_clock);
    CU_ASSERT_EQUAL_FATAL(loop_create(&loop, &virtual_clock.clock), 0);
}

static void
start_real(void)
{
    trace[trace_len = 0] = '\0';
    finished = false;
    CU_ASSERT_EQUAL_FATAL(loop_create(&loop, clock_real()), 0);
}

/* ---- timers ---------------------------------------------------------------------------- */

struct noting_timer {
    struct loop_timer timer;
    char letter;
    uint64_t fired_ns;
};

static void
note_timer(struct loop_timer *timer)
{
    struct noting_timer *self = CONTAINER_OF(timer, struct noting_timer, timer);
    self->fired_ns = loop_now_ns(timer->loop);
    note(self->letter);
}

static struct noting_timer
noting(char letter)
{
    return (struct noting_timer){.timer.fired = note_timer, .letter = letter};
}

static void
timers_fire_in_order_of_time_then_of_setting(void)
{
    start_virtual();
    struct noting_timer a = noting('a'), b = noting('b'), c = noting('c'), d = noting('d');
    loop_timer_set(loop, &c.timer, 30);
    loop_timer_set(loop, &a.timer, 10);
    loop_timer_set(loop, &d.timer, 30);
    loop_timer_set(loop, &b.timer, 20);
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_STRING_EQUAL(trace, "abcd");
    CU_ASSERT_EQUAL(a.fired_ns, 10);
    CU_ASSERT_EQUAL(d.fired_ns, 30);
    CU_ASSERT_EQUAL(loop_now_ns(loop), 30);
    CU_ASSERT(!loop_timer_is_set(&a.timer));
    loop_destroy(loop);
}

static void
a_timer_that_is_moved_fires_once_at_its_new_time(void)
{
    start_virtual();
    struct noting_timer a = noting('a'), b = noting('b'), c = noting('c');
    loop_timer_set(loop, &a.timer, 10);
    loop_timer_set(loop, &b.timer, 20);
    loop_timer_set(loop, &c.timer, 40);
    loop_timer_set(loop, &a.timer, 30); /* later */
    loop_timer_set(loop, &c.timer, 5);  /* sooner */
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_STRING_EQUAL(trace, "cba");
    CU_ASSERT_EQUAL(a.fired_ns, 30);
    loop_destroy(loop);
}

static void
a_cancelled_timer_does_not_fire(void)
{
    start_virtual();
    struct noting_timer a = noting('a'), b = noting('b');
    loop_timer_set(loop, &a.timer, 10);
    loop_timer_set(loop, &b.timer, 20);
    loop_timer_cancel(&a.timer);
    loop_timer_cancel(&a.timer);
    CU_ASSERT(!loop_timer_is_set(&a.timer));
    CU_ASSERT(loop_timer_is_set(&b.timer));
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_STRING_EQUAL(trace, "b");
    loop_destroy(loop);
}

static void
an_overdue_timer_fires_after_those_that_are_due_already(void)
{
    start_virtual();
    clock_virtual_advance(&virtual_clock, 100);
    struct noting_timer a = noting('a'), b = noting('b');
    loop_timer_set(loop, &a.timer, 100);
    loop_timer_set(loop, &b.timer, 1);
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_STRING_EQUAL(trace, "ab");
    CU_ASSERT_EQUAL(b.fired_ns, 100);
    loop_destroy(loop);
}

/* Many timers, set, moved and cancelled at random, against a plain table. */
#define MANY 3000u /* more than the heap begins with, so that it grows */
static struct noting_timer many[MANY];
static uint64_t expected_ns[MANY]; /* 0: not set */
static uint64_t last_ns;
static unsigned wrong, fired_count;

static void
verify_fired(struct loop_timer *timer)
{
    size_t index = (size_t)(CONTAINER_OF(timer, struct noting_timer, timer) - many);
    uint64_t now_ns = loop_now_ns(timer->loop);
    wrong += expected_ns[index] != now_ns || now_ns < last_ns;
    expected_ns[index] = 0;
    last_ns = now_ns;
    fired_count++;
}

static void
thousands_of_timers_set_moved_and_cancelled_fire_exactly_when_due(void)
{
    start_virtual();
    struct rng rng;
    rng_seed(&rng, suite_seed());
    wrong = fired_count = 0;
    last_ns = 0;
    for (unsigned i = 0; i < MANY; i++)
        many[i] = (struct noting_timer){.timer.fired = verify_fired};
    for (unsigned round = 0; round < 5 * MANY; round++) {
        uint64_t index = round < MANY ? round : rng_below(&rng, MANY);
        if (round >= MANY && rng_chance(&rng, 25)) {
            loop_timer_cancel(&many[index].timer);
            expected_ns[index] = 0;
            continue;
        }
        expected_ns[index] = rng_range(&rng, 1, MANY); /* many equal ones */
        loop_timer_set(loop, &many[index].timer, expected_ns[index]);
    }
    unsigned set_count = 0;
    for (unsigned i = 0; i < MANY; i++)
        set_count += expected_ns[i] != 0;
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(fired_count, set_count);
    loop_destroy(loop);
}

static void
end_run(struct loop_timer *timer)
{
    (void)timer;
    finished = true;
}

static void
the_clock_does_not_pass_the_moment_the_flag_is_set(void)
{
    start_virtual();
    struct loop_timer end = {.fired = end_run};
    struct noting_timer later = noting('l');
    loop_timer_set(loop, &end, 10);
    loop_timer_set(loop, &later.timer, 20);
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    CU_ASSERT_EQUAL(loop_now_ns(loop), 10);
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0); /* set already: nothing happens */
    CU_ASSERT_STRING_EQUAL(trace, "");
    loop_timer_cancel(&later.timer);
    loop_destroy(loop);
}

static void
real_timers_are_never_early(void)
{
    start_real();
    uint64_t due_ns = clock_now_ns(clock_real()) + MS_NS / 2;
    struct loop_timer end = {.fired = end_run};
    loop_timer_set(loop, &end, due_ns);
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    CU_ASSERT(clock_now_ns(clock_real()) >= due_ns);
    loop_destroy(loop);
}

/* ---- steps and hooks ------------------------------------------------------------------- */

struct noting_step {
    struct loop_step step;
    char letter;
    struct loop_step *also; /* to be deferred from inside */
};

static void
note_step(struct loop_step *step)
{
    struct noting_step *self = CONTAINER_OF(step, struct noting_step, step);
    note(self->letter);
    if (self->also != NULL)
        loop_defer(loop, self->also);
    note('.');
}

static void
steps_run_once_in_order_and_never_inside_defer(void)
{
    start_virtual();
    struct noting_step c = {.step.run = note_step, .letter = 'c'};
    struct noting_step a = {.step.run = note_step, .letter = 'a', .also = &c.step};
    struct noting_step b = {.step.run = note_step, .letter = 'b'};
    struct noting_step d = {.step.run = note_step, .letter = 'd'};
    loop_defer(loop, &a.step);
    loop_defer(loop, &d.step);
    loop_defer(loop, &b.step);
    loop_defer(loop, &a.step); /* a no-op */
    loop_undefer(loop, &d.step);
    loop_undefer(loop, &d.step);
    CU_ASSERT_STRING_EQUAL(trace, "");
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_STRING_EQUAL(trace, "a.b.c.");
    loop_destroy(loop);
}

struct noting_hook {
    struct loop_hook hook;
    char letter;
    struct loop_step *also; /* deferred once */
    struct loop_hook *removes;
};

static void
note_hook(struct loop_hook *hook)
{
    struct noting_hook *self = CONTAINER_OF(hook, struct noting_hook, hook);
    note(self->letter);
    if (self->also != NULL)
        loop_defer(loop, self->also);
    self->also = NULL;
    if (self->removes != NULL)
        loop_hook_remove(loop, self->removes);
    self->removes = NULL;
}

static unsigned greedy_left;

static void
set_again_at_once(struct loop_timer *timer)
{
    note('g');
    if (--greedy_left != 0)
        loop_timer_set(timer->loop, timer, 0);
}

static void
a_timer_that_is_always_due_starves_nobody(void)
{
    start_virtual();
    greedy_left = 3;
    struct loop_timer greedy = {.fired = set_again_at_once};
    struct noting_timer modest = noting('m');
    struct noting_hook hook = {.hook.before_sleep = note_hook, .letter = 'h'};
    clock_virtual_advance(&virtual_clock, 100);
    loop_timer_set(loop, &greedy, 0);
    loop_timer_set(loop, &modest.timer, 100);
    loop_hook_add(loop, &hook.hook);
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_STRING_EQUAL(trace, "gmhghgh");
    loop_hook_remove(loop, &hook.hook);
    loop_destroy(loop);
}

static void
a_step_deferred_by_a_hook_runs_before_the_loop_sleeps(void)
{
    start_virtual();
    struct noting_step step = {.step.run = note_step, .letter = 's'};
    struct noting_hook h = {.hook.before_sleep = note_hook, .letter = 'h', .also = &step.step};
    struct noting_hook i = {.hook.before_sleep = note_hook, .letter = 'i'};
    struct noting_timer timer = noting('t');
    loop_timer_set(loop, &timer.timer, 10);
    loop_hook_add(loop, &h.hook);
    loop_hook_add(loop, &i.hook);
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_STRING_EQUAL(trace, "his.hithi"); /* s before t, though t was set first */
    loop_hook_remove(loop, &h.hook);
    loop_hook_remove(loop, &i.hook);
    loop_destroy(loop);
}

static void
a_hook_may_remove_itself_and_others(void)
{
    start_virtual();
    struct noting_hook a = {.hook.before_sleep = note_hook, .letter = 'a'};
    struct noting_hook b = {.hook.before_sleep = note_hook, .letter = 'b'};
    struct noting_hook c = {.hook.before_sleep = note_hook, .letter = 'c'};
    struct noting_timer timer = noting('t');
    a.removes = &b.hook; /* the next one */
    c.removes = &c.hook; /* itself, the last one */
    loop_hook_add(loop, &a.hook);
    loop_hook_add(loop, &b.hook);
    loop_hook_add(loop, &c.hook);
    loop_timer_set(loop, &timer.timer, 10);
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_STRING_EQUAL(trace, "acta");
    loop_hook_remove(loop, &a.hook);
    loop_destroy(loop);
}

/* ---- file descriptors ------------------------------------------------------------------ */

struct noting_fd {
    struct loop_fd watch;
    char letter;
    struct loop_fd *unwatches;
    uint32_t events_seen;
};

static void
note_fd(struct loop_fd *watch, uint32_t events)
{
    struct noting_fd *self = CONTAINER_OF(watch, struct noting_fd, watch);
    self->events_seen = events;
    note(self->letter);
    if (self->unwatches != NULL) {
        loop_unwatch(self->unwatches);
        loop_unwatch(watch);
        finished = true;
    }
}

static void
an_event_reaped_before_unwatch_is_not_delivered_after_it(void)
{
    start_real();
    int ends[2][2];
    struct noting_fd fds[2];
    for (unsigned i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
        CU_ASSERT_EQUAL_FATAL(write(ends[i][1], "x", 1), 1);
        fds[i] = (struct noting_fd){
            .watch = {.fd = ends[i][0], .events = EPOLLIN, .ready = note_fd},
            .letter = (char)('0' + i),
            .unwatches = &fds[1 - i].watch,
        };
        CU_ASSERT_EQUAL_FATAL(loop_watch(loop, &fds[i].watch), 0);
    }
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    CU_ASSERT_EQUAL(trace_len, 1); /* both were ready; the first took the other away */
    for (unsigned i = 0; i < 4; i++)
        close(ends[i / 2][i % 2]);
    loop_destroy(loop);
}

static void
take_interest_back(struct loop_fd *watch, uint32_t events)
{
    struct noting_fd *self = CONTAINER_OF(watch, struct noting_fd, watch);
    self->events_seen = events;
    note(self->letter);
    loop_rewatch(self->unwatches, 0); /* the other one */
    finished = true;
}

static void
an_event_nobody_waits_for_any_more_is_not_delivered(void)
{
    start_real();
    int ends[2][2];
    struct noting_fd fds[2];
    for (unsigned i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
        fds[i] = (struct noting_fd){
            .watch = {.fd = ends[i][0], .events = EPOLLOUT, .ready = take_interest_back},
            .letter = (char)('0' + i),
            .unwatches = &fds[1 - i].watch,
        };
        CU_ASSERT_EQUAL_FATAL(loop_watch(loop, &fds[i].watch), 0);
    }
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    CU_ASSERT_EQUAL(trace_len, 1);
    for (unsigned i = 0; i < 2; i++) {
        loop_unwatch(&fds[i].watch);
        close(ends[i][0]);
        close(ends[i][1]);
    }
    loop_destroy(loop);
}

static void
read_and_finish(struct loop_fd *watch, uint32_t events)
{
    char byte;
    note('r');
    CU_ASSERT_EQUAL(events, EPOLLIN);
    CU_ASSERT_EQUAL(read(watch->fd, &byte, 1), 1);
    finished = byte == 'z';
}

static void
a_descriptor_is_reported_as_long_as_there_is_something_to_read(void)
{
    start_real();
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CU_ASSERT_EQUAL_FATAL(write(ends[1], "xyz", 3), 3);
    struct loop_fd watch = {.fd = ends[0], .events = EPOLLIN, .ready = read_and_finish};
    CU_ASSERT_EQUAL_FATAL(loop_watch(loop, &watch), 0);
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    CU_ASSERT_STRING_EQUAL(trace, "rrr");
    loop_unwatch(&watch);
    loop_unwatch(&watch); /* idempotent */
    close(ends[0]);
    close(ends[1]);
    loop_destroy(loop);
}

static void
defer_again(struct loop_step *step)
{
    if (!finished)
        loop_defer(loop, step);
}

static void
steps_without_end_starve_no_event(void)
{
    start_real();
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CU_ASSERT_EQUAL_FATAL(write(ends[1], "z", 1), 1);
    struct loop_fd watch = {.fd = ends[0], .events = EPOLLIN, .ready = read_and_finish};
    CU_ASSERT_EQUAL_FATAL(loop_watch(loop, &watch), 0);
    struct loop_step step = {.run = defer_again};
    loop_defer(loop, &step);
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    CU_ASSERT_STRING_EQUAL(trace, "r");
    loop_undefer(loop, &step);
    loop_unwatch(&watch);
    close(ends[0]);
    close(ends[1]);
    loop_destroy(loop);
}

static void
rewatch_changes_the_events(void)
{
    start_real();
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct noting_fd fd = {.watch = {.fd = ends[0], .events = EPOLLIN, .ready = note_fd},
                           .letter = 'w'};
    struct noting_fd none = {0};
    fd.unwatches = &none.watch; /* that is, itself only */
    CU_ASSERT_EQUAL_FATAL(loop_watch(loop, &fd.watch), 0);
    loop_rewatch(&fd.watch, EPOLLOUT);
    CU_ASSERT_EQUAL(fd.watch.events, EPOLLOUT);
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    CU_ASSERT_EQUAL(fd.events_seen, EPOLLOUT);
    close(ends[0]);
    close(ends[1]);
    loop_destroy(loop);
}

static void
what_cannot_be_watched_is_an_error(void)
{
    struct loop_fd watch = {.fd = STDIN_FILENO, .events = EPOLLIN};
    start_virtual();
    CU_ASSERT_EQUAL(loop_watch(loop, &watch), -ENOTSUP);
    loop_destroy(loop);
    start_real();
    watch.fd = -1;
    CU_ASSERT_EQUAL(loop_watch(loop, &watch), -EBADF);
    CU_ASSERT(!watch.watched);
    loop_destroy(loop);
}

/* ---- stopping -------------------------------------------------------------------------- */

static void *
stop_it(void *ctx)
{
    (void)ctx;
    loop_stop(loop);
    return NULL;
}

static void
another_thread_stops_a_loop_that_sleeps(void)
{
    start_real();
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_it, NULL), 0);
    CU_ASSERT_EQUAL(loop_run(loop), 0); /* there is nothing else that could end it */
    pthread_join(thread, NULL);
    loop_destroy(loop);
}

static void
stop_on_signal(int number)
{
    (void)number;
    loop_stop(loop);
}

static void
raise_signal(struct loop_step *step)
{
    (void)step;
    raise(SIGUSR1);
}

static void
a_signal_handler_stops_the_loop(void)
{
    start_real();
    signal(SIGUSR1, stop_on_signal);
    struct loop_step step = {.run = raise_signal};
    loop_defer(loop, &step);
    CU_ASSERT_EQUAL(loop_run(loop), 0);
    signal(SIGUSR1, SIG_DFL);
    loop_destroy(loop);
}

static void
stop_step(struct loop_step *step)
{
    (void)step;
    note('s');
    loop_stop(loop);
}

static void
a_stopped_turn_is_finished_and_the_loop_runs_again(void)
{
    start_virtual();
    struct loop_step step = {.run = stop_step};
    struct noting_hook hook = {.hook.before_sleep = note_hook, .letter = 'h'};
    struct noting_timer timer = noting('t');
    loop_hook_add(loop, &hook.hook);
    loop_timer_set(loop, &timer.timer, 10);
    loop_defer(loop, &step);
    CU_ASSERT_EQUAL(loop_run(loop), 0);
    CU_ASSERT_STRING_EQUAL(trace, "sh"); /* replies got out */
    CU_ASSERT_EQUAL(loop_run(loop), -EDEADLK);
    CU_ASSERT_STRING_EQUAL(trace, "shhth");
    loop_hook_remove(loop, &hook.hook);
    loop_destroy(loop);
}

static void *
defer_from_elsewhere(void *ctx)
{
    struct loop_step *other = ctx;
    loop_defer(loop, other);
    return NULL;
}

static void
trespass(struct loop_step *step)
{
    pthread_t thread;
    (void)step;
    if (pthread_create(&thread, NULL, defer_from_elsewhere, step) == 0)
        pthread_join(thread, NULL);
    loop_stop(loop);
}

static void
run_with_trespasser(void)
{
    struct loop_step step = {.run = trespass};
    loop_defer(loop, &step);
    if (loop_run(loop) != 0)
        return;
}

static void
another_thread_may_not_touch_a_running_loop(void)
{
    char text[512];
    start_virtual();
    CU_ASSERT(dies(run_with_trespasser, text, sizeof(text)));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "pthread_self"));
    loop_destroy(loop);
}

SUITE_MAIN("loop", T(timers_fire_in_order_of_time_then_of_setting),
           T(a_timer_that_is_moved_fires_once_at_its_new_time), T(a_cancelled_timer_does_not_fire),
           T(an_overdue_timer_fires_after_those_that_are_due_already),
           T(a_timer_that_is_always_due_starves_nobody),
           T(thousands_of_timers_set_moved_and_cancelled_fire_exactly_when_due),
           T(the_clock_does_not_pass_the_moment_the_flag_is_set), T(real_timers_are_never_early),
           T(steps_run_once_in_order_and_never_inside_defer),
           T(a_step_deferred_by_a_hook_runs_before_the_loop_sleeps),
           T(a_hook_may_remove_itself_and_others), T(steps_without_end_starve_no_event),
           T(an_event_reaped_before_unwatch_is_not_delivered_after_it),
           T(an_event_nobody_waits_for_any_more_is_not_delivered),
           T(a_descriptor_is_reported_as_long_as_there_is_something_to_read),
           T(rewatch_changes_the_events), T(what_cannot_be_watched_is_an_error),
           T(another_thread_stops_a_loop_that_sleeps), T(a_signal_handler_stops_the_loop),
           T(a_stopped_turn_is_finished_and_the_loop_runs_again),
           T(another_thread_may_not_touch_a_running_loop))
