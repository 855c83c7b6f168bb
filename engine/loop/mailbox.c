/* THEORY OF OPERATION
 *
 * The box is a stack, `newest` first.  A sender pushes with one compare-and-swap; the owner takes
 * the whole stack with one exchange and reverses it, so nothing is ever popped singly and the ABA
 * problem cannot arise.  Reversed, the messages of one sender come in the order it posted them.
 *
 * Whoever pushes onto the empty box wakes the owner, all others rely on that wake-up: the owner
 * looks into the box after every one.  So at any time a box with mail in it has a wake-up under
 * way: an unread eventfd, or a deferred step when the sender was the owner. */
#include "engine/loop/mailbox.h"

#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "engine/base/check.h"

struct mailbox {
    _Atomic(struct mail *) newest;
    struct loop *loop;
    struct loop_fd wake;    /* woken by other threads; fd -1 with a virtual clock */
    struct loop_step drain; /* woken by the loop itself */
};

static void
drain(struct mailbox *mailbox)
{
    struct mail *newest = atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
    struct mail *oldest = NULL;
    while (newest != NULL) {
        struct mail *mail = newest;
        newest = mail->next;
        mail->next = oldest;
        oldest = mail;
    }
    while (oldest != NULL) {
        struct mail *mail = oldest;
        oldest = mail->next; /* deliver() owns the mail */
        mail->next = NULL;
        mail->deliver(mail);
    }
}

static void
woken(struct loop_fd *wake, uint32_t events)
{
    (void)events;
    uint64_t count;
    ssize_t bytes = read(wake->fd, &count, sizeof(count)); /* before looking into the box */
    check(bytes == (ssize_t)sizeof(count) || errno == EAGAIN);
    drain(CONTAINER_OF(wake, struct mailbox, wake));
}

static void
drain_step(struct loop_step *step)
{
    drain(CONTAINER_OF(step, struct mailbox, drain));
}

int
mailbox_create(struct mailbox **out, struct loop *loop)
{
    struct mailbox *mailbox = calloc(1, sizeof(*mailbox));
    if (mailbox == NULL)
        return -ENOMEM;
    mailbox->loop = loop;
    mailbox->drain.run = drain_step;
    mailbox->wake = (struct loop_fd){.fd = -1, .events = EPOLLIN, .ready = woken};
    int err = 0;
    if (!loop_is_virtual(loop)) {
        mailbox->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        err = mailbox->wake.fd < 0 ? -errno : loop_watch(loop, &mailbox->wake);
    }
    if (err != 0) {
        mailbox_destroy(mailbox);
        return err;
    }
    *out = mailbox;
    return 0;
}

void
mailbox_destroy(struct mailbox *mailbox)
{
    if (mailbox == NULL)
        return;
    loop_assert_thread(mailbox->loop);
    check(atomic_load_explicit(&mailbox->newest, memory_order_acquire) == NULL);
    loop_undefer(mailbox->loop, &mailbox->drain);
    loop_unwatch(&mailbox->wake);
    if (mailbox->wake.fd >= 0)
        close(mailbox->wake.fd);
    free(mailbox);
}

struct loop *
mailbox_loop(const struct mailbox *mailbox)
{
    return mailbox->loop;
}

void
mail_batch_add(struct mail_batch *batch, struct mail *mail)
{
    mail->next = batch->newest;
    if (batch->newest == NULL)
        batch->oldest = mail;
    batch->newest = mail;
}

void
mailbox_post_batch(struct mailbox *mailbox, struct mail_batch *batch)
{
    struct mail_batch out = *batch;
    *batch = (struct mail_batch){0};
    if (out.newest == NULL)
        return;
    struct mail *before = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do
        out.oldest->next = before;
    while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &before, out.newest,
                                                  memory_order_release, memory_order_relaxed));
    if (before != NULL)
        return;
    if (loop_is_virtual(mailbox->loop) || loop_on_thread(mailbox->loop)) {
        loop_defer(mailbox->loop, &mailbox->drain);
        return;
    }
    uint64_t one = 1;
    ssize_t bytes = write(mailbox->wake.fd, &one, sizeof(one));
    check_eq(bytes, sizeof(one));
}

void
mailbox_post(struct mailbox *mailbox, struct mail *mail)
{
    struct mail_batch batch = {0};
    mail_batch_add(&batch, mail);
    mailbox_post_batch(mailbox, &batch);
}
