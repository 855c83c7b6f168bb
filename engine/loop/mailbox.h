/* Messages between loops: lock-free push from any thread, drained in a batch by the owner.
 *
 * A message is embedded in its owner's struct; deliver() runs on the mailbox's loop.  One eventfd
 * write wakes the loop, only when the box was empty. */
#pragma once

#include "engine/loop/loop.h"

struct mailbox;

struct mail {
    struct mail *next; /* mailbox's own */
    void (*deliver)(struct mail *mail);
};

MUST_CHECK int mailbox_create(struct mailbox **out, struct loop *loop); /* on the loop's thread */
void mailbox_destroy(struct mailbox *mailbox);
void mailbox_post(struct mailbox *mailbox,
                  struct mail *mail); /* any thread; order per sender kept */
