#include <pthread.h>

#include "engine/loop/mailbox.h"
#include "tests/unit/suite.h"

#define SENDERS 3u
#define MAILS   2000u /* of each */

struct letter {
    struct mail mail;
    unsigned sender, number;
    unsigned plain; /* written by the sender without a lock, read by the receiver */
};

static struct clock_virtual virtual_clock;
static struct loop *loop;
static struct mailbox *box;
static struct letter letters[SENDERS][MAILS];
static unsigned next_number[SENDERS]; /* that must come from each sender */
static unsigned delivered, wrong;
static bool finished;

static void
deliver(struct mail *mail)
{
    struct letter *letter = CONTAINER_OF(mail, struct letter, mail);
    loop_assert_thread(loop);
    wrong += letter->number != next_number[letter->sender]++;
    wrong += letter->plain != letter->number * 3;
    finished = ++delivered == SENDERS * MAILS;
}

static void
start(struct clock *clock)
{
    delivered = wrong = 0;
    finished = false;
    for (unsigned sender = 0; sender < SENDERS; sender++) {
        next_number[sender] = 0;
        for (unsigned i = 0; i < MAILS; i++)
            letters[sender][i] =
                (struct letter){.mail.deliver = deliver, .sender = sender, .number = i};
    }
    CU_ASSERT_EQUAL_FATAL(loop_create(&loop, clock), 0);
    CU_ASSERT_EQUAL_FATAL(mailbox_create(&box, loop), 0);
    CU_ASSERT_PTR_EQUAL(mailbox_loop(box), loop);
}

static void
stop(void)
{
    mailbox_destroy(box);
    loop_destroy(loop);
}

static void *
send_all(void *ctx)
{
    struct letter *mine = ctx;
    for (unsigned i = 0; i < MAILS; i++) {
        mine[i].plain = mine[i].number * 3;
        mailbox_post(box, &mine[i].mail);
    }
    return NULL;
}

static void
each_of_many_threads_sees_its_mail_delivered_once_and_in_order(void)
{
    pthread_t threads[SENDERS];
    start(clock_real());
    for (unsigned i = 0; i < SENDERS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, send_all, letters[i]), 0);
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT_EQUAL(delivered, SENDERS * MAILS);
    CU_ASSERT_EQUAL(wrong, 0);
    stop();
}

static void *
send_as_batches(void *ctx)
{
    struct letter *mine = ctx;
    struct mail_batch batch = {0};
    mailbox_post_batch(box, &batch); /* empty: nothing */
    for (unsigned i = 0; i < MAILS; i++) {
        mine[i].plain = mine[i].number * 3;
        mail_batch_add(&batch, &mine[i].mail);
        if (i % 7 == 6 || i == MAILS - 1) {
            mailbox_post_batch(box, &batch);
            if (batch.newest != NULL)
                return NULL;
        }
    }
    return NULL;
}

static void
batches_keep_the_order_too(void)
{
    pthread_t threads[SENDERS];
    start(clock_real());
    for (unsigned i = 0; i < SENDERS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, send_as_batches, letters[i]), 0);
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT_EQUAL(delivered, SENDERS * MAILS);
    CU_ASSERT_EQUAL(wrong, 0);
    stop();
}

static unsigned chain_left;

static void
post_itself_again(struct mail *mail)
{
    static bool inside;
    wrong += inside; /* never from inside of a post */
    inside = true;
    if (--chain_left != 0)
        mailbox_post(box, mail);
    inside = false;
    finished = chain_left == 0;
}

static void
mail_of_the_loop_to_itself_is_delivered_later(struct clock *clock)
{
    struct mail mail = {.deliver = post_itself_again};
    start(clock);
    chain_left = 100;
    mailbox_post(box, &mail);
    CU_ASSERT_EQUAL(chain_left, 100);
    CU_ASSERT_EQUAL(loop_run_until(loop, &finished), 0);
    CU_ASSERT_EQUAL(chain_left, 0);
    CU_ASSERT_EQUAL(wrong, 0);
    stop();
}

static void
mail_of_a_real_loop_to_itself_is_delivered_later(void)
{
    mail_of_the_loop_to_itself_is_delivered_later(clock_real());
}

static void
mail_of_a_virtual_loop_to_itself_is_delivered_later(void)
{
    clock_virtual_init(&virtual_clock);
    mail_of_the_loop_to_itself_is_delivered_later(&virtual_clock.clock);
    CU_ASSERT_EQUAL(virtual_clock.now_ns_value, 0);
}

SUITE_MAIN("mailbox", T(each_of_many_threads_sees_its_mail_delivered_once_and_in_order),
           T(batches_keep_the_order_too), T(mail_of_a_real_loop_to_itself_is_delivered_later),
           T(mail_of_a_virtual_loop_to_itself_is_delivered_later))
