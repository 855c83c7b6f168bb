/* Messages between loops: lock-free push from any thread, drained in a batch by the owner.
 *
 * A message is embedded in its owner's struct; deliver() runs on the mailbox's loop, later, never
 * from inside of a post, and owns the message.  One eventfd write wakes the loop, only when the
 * box was empty; none when the sender is the loop itself.  The mailbox of a loop with a virtual
 * clock takes messages from that loop only. */
#pragma once

#include "engine/loop/loop.h"

struct mailbox;

struct mail {
    struct mail *next; /* mailbox's own */
    void (*deliver)(struct mail *mail);
};

MUST_CHECK int mailbox_create(struct mailbox **out, struct loop *loop); /* on the loop's thread */
/* Must be empty, and no other thread may still be inside of a post: stop the senders first.
 * Accepts NULL. */
void mailbox_destroy(struct mailbox *mailbox);
struct loop *mailbox_loop(const struct mailbox *mailbox);
void mailbox_post(struct mailbox *mailbox,
                  struct mail *mail); /* any thread; order per sender kept */

/* Several messages that cross together, in the order they were added.  Zeroed: empty. */
struct mail_batch {
    struct mail *newest, *oldest;
};
void mail_batch_add(struct mail_batch *batch, struct mail *mail);
/* Leaves the batch empty; nothing of it, nor what holds it, is touched once the mail is out. */
void mailbox_post_batch(struct mailbox *mailbox, struct mail_batch *batch);
