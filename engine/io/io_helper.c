#include "engine/io/io_helper.h"

#include <pthread.h>
#include <signal.h>

struct io_helper {
    pthread_t thread;
    bool started;
    struct mailbox *mailbox;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list queue; /* under lock */
    bool stop;         /* under lock */
};

static void
deliver(struct mail *mail)
{
    struct io_work *work = CONTAINER_OF(mail, struct io_work, mail);
    work->done(work);
}

/* NULL when the thread is to end. */
static struct io_work *
next_work(struct io_helper *helper)
{
    struct list_node *node;
    pthread_mutex_lock(&helper->lock);
    while ((node = list_pop_front(&helper->queue)) == NULL && !helper->stop)
        pthread_cond_wait(&helper->wake, &helper->lock);
    pthread_mutex_unlock(&helper->lock);
    return node == NULL ? NULL : CONTAINER_OF(node, struct io_work, node);
}

static void *
helper_main(void *argument)
{
    struct io_helper *helper = argument;
    for (struct io_work *work; (work = next_work(helper)) != NULL;) {
        work->result = work->run(work);
        mailbox_post(helper->mailbox, &work->mail);
    }
    return NULL;
}

/* Signals are for the main thread. */
static int
start_thread(struct io_helper *helper)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = -pthread_create(&helper->thread, NULL, helper_main, helper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    helper->started = err == 0;
    return err;
}

int
io_helper_create(struct io_helper **out, struct loop *loop)
{
    struct io_helper *helper = calloc(1, sizeof(*helper));
    if (helper == NULL)
        return -ENOMEM;
    list_init(&helper->queue);
    pthread_mutex_init(&helper->lock, NULL);
    pthread_cond_init(&helper->wake, NULL);
    int err = mailbox_create(&helper->mailbox, loop);
    if (err == 0)
        err = start_thread(helper);
    if (err < 0) {
        io_helper_destroy(helper);
        return err;
    }
    *out = helper;
    return 0;
}

void
io_helper_destroy(struct io_helper *helper)
{
    if (helper == NULL)
        return;
    if (helper->started) {
        pthread_mutex_lock(&helper->lock);
        check(list_empty(&helper->queue));
        helper->stop = true;
        pthread_cond_signal(&helper->wake);
        pthread_mutex_unlock(&helper->lock);
        pthread_join(helper->thread, NULL);
    }
    if (helper->mailbox != NULL)
        mailbox_destroy(helper->mailbox);
    pthread_cond_destroy(&helper->wake);
    pthread_mutex_destroy(&helper->lock);
    free(helper);
}

void
io_helper_start(struct io_helper *helper, struct io_work *work)
{
    work->mail.deliver = deliver;
    pthread_mutex_lock(&helper->lock);
    list_push_back(&helper->queue, &work->node);
    pthread_cond_signal(&helper->wake);
    pthread_mutex_unlock(&helper->lock);
}
