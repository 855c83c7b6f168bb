#include <pthread.h>
#include <string.h>

#include "engine/loop/remote_dev.h"
#include "tests/unit/suite.h"

#define REQUESTS    500u
#define REQUEST_MAX 8u

/* The target: keeps requests until the end of its turn and answers the last one first, with an
 * error that tells which it was. */
struct target {
    struct dev dev;
    struct loop *loop;
    struct loop_step answer;
    struct list held;
    uint64_t next_off; /* requests must arrive in order */
    uint32_t in_flight, in_flight_max, wrong;
};

static void
target_submit(struct dev *dev, struct req *req)
{
    struct target *target = CONTAINER_OF(dev, struct target, dev);
    loop_assert_thread(target->loop);
    target->wrong += req->op != REQ_WRITE || req->flags != REQ_FUA || req->len_bytes != 1 ||
                     req->iov_count != 1 || req->off_bytes != target->next_off++;
    memset(req->iov->iov_base, (int)(req->off_bytes % 256), 1);
    target->in_flight++;
    target->in_flight_max = MAX(target->in_flight_max, target->in_flight);
    list_push_front(&target->held, &req->dev_node);
    loop_defer(target->loop, &target->answer);
}

static void
target_answer(struct loop_step *step)
{
    struct target *target = CONTAINER_OF(step, struct target, answer);
    for (struct list_node *node; (node = list_pop_front(&target->held)) != NULL;) {
        struct req *req = CONTAINER_OF(node, struct req, dev_node);
        target->in_flight--;
        req_done(req, -(int)(req->off_bytes % 100));
    }
}

static void
target_info(const struct dev *dev, struct dev_info *info)
{
    (void)dev;
    *info = (struct dev_info){.size_bytes = REQUESTS, .logical_bytes = 1, .can_trim = true};
}

static bool target_closed;

static void
target_close(struct dev *dev)
{
    (void)dev;
    target_closed = true;
}

static const struct dev_ops target_ops = {
    .submit = target_submit,
    .info = target_info,
    .close = target_close,
};

static void
target_init(struct target *target, struct loop *loop)
{
    *target = (struct target){
        .dev.ops = &target_ops,
        .loop = loop,
        .answer.run = target_answer,
    };
    list_init(&target->held);
    target_closed = false;
}

/* The submitter. */
struct user_req {
    struct req req;
    struct iovec iov;
    uint8_t byte;
};

static struct user_req user_reqs[REQUESTS];
static struct loop *user_loop;
static uint32_t done_count, done_wrong;
static bool all_done;

static void
user_done(struct req *req)
{
    struct user_req *self = CONTAINER_OF(req, struct user_req, req);
    loop_assert_thread(user_loop);
    done_wrong += req->err != -(int)(req->off_bytes % 100);
    done_wrong += self->byte != req->off_bytes % 256;
    all_done = ++done_count == REQUESTS;
}

static void
submit_all(struct dev *dev)
{
    done_count = done_wrong = 0;
    all_done = false;
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct user_req *self = &user_reqs[i];
        *self = (struct user_req){.iov = {.iov_base = &self->byte, .iov_len = 1}, .byte = 0xff};
        self->req = (struct req){.op = REQ_WRITE,
                                 .flags = REQ_FUA,
                                 .off_bytes = i,
                                 .len_bytes = 1,
                                 .iov = &self->iov,
                                 .iov_count = 1,
                                 .err = 1,
                                 .done = user_done};
        dev_submit(dev, &self->req);
    }
    CU_ASSERT_EQUAL(done_count, 0);
}

static void
judge(const struct target *target)
{
    CU_ASSERT_EQUAL(done_count, REQUESTS);
    CU_ASSERT_EQUAL(done_wrong, 0);
    CU_ASSERT_EQUAL(target->wrong, 0);
    CU_ASSERT_EQUAL(target->in_flight_max, REQUEST_MAX);
    CU_ASSERT(!target_closed);
}

static void
requests_cross_in_order_bounded_and_come_back_with_their_error(void)
{
    struct clock_virtual clock;
    struct target target;
    struct mailbox *there, *here;
    struct dev *dev;
    clock_virtual_init(&clock);
    CU_ASSERT_EQUAL_FATAL(loop_create(&user_loop, &clock.clock), 0);
    CU_ASSERT_EQUAL_FATAL(mailbox_create(&there, user_loop), 0);
    CU_ASSERT_EQUAL_FATAL(mailbox_create(&here, user_loop), 0);
    target_init(&target, user_loop);
    CU_ASSERT_EQUAL_FATAL(remote_dev_create(&dev, &target.dev, there, here, REQUEST_MAX), 0);
    struct dev_info info = dev_info(dev);
    CU_ASSERT_EQUAL(info.size_bytes, REQUESTS);
    CU_ASSERT(info.can_trim);
    submit_all(dev);
    CU_ASSERT_EQUAL(loop_run_until(user_loop, &all_done), 0);
    dev_close(dev);
    judge(&target);
    mailbox_destroy(there);
    mailbox_destroy(here);
    loop_destroy(user_loop);
}

static void *
run_loop(void *ctx)
{
    struct loop *loop = ctx;
    return loop_run(loop) == 0 ? loop : NULL;
}

static void
requests_cross_between_threads(void)
{
    struct target target;
    struct loop *target_loop;
    struct mailbox *there, *here;
    struct dev *dev;
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(loop_create(&user_loop, clock_real()), 0);
    CU_ASSERT_EQUAL_FATAL(loop_create(&target_loop, clock_real()), 0);
    CU_ASSERT_EQUAL_FATAL(mailbox_create(&there, target_loop), 0);
    CU_ASSERT_EQUAL_FATAL(mailbox_create(&here, user_loop), 0);
    target_init(&target, target_loop);
    CU_ASSERT_EQUAL_FATAL(remote_dev_create(&dev, &target.dev, there, here, REQUEST_MAX), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run_loop, target_loop), 0);
    submit_all(dev);
    CU_ASSERT_EQUAL(loop_run_until(user_loop, &all_done), 0);
    dev_close(dev); /* while the thread there may still be returning from its last post */
    loop_stop(target_loop);
    void *result = NULL;
    pthread_join(thread, &result);
    CU_ASSERT_PTR_EQUAL(result, target_loop);
    judge(&target);
    mailbox_destroy(there);
    mailbox_destroy(here);
    loop_destroy(target_loop);
    loop_destroy(user_loop);
}

SUITE_MAIN("remote_dev", T(requests_cross_in_order_bounded_and_come_back_with_their_error),
           T(requests_cross_between_threads))
