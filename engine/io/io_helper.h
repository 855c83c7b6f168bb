/* A thread for calls that block (fallocate, fdatasync): one per loop, in order, answers by mail. */
#pragma once

#include "engine/loop/mailbox.h"

struct io_helper;

struct io_work {
    int (*run)(struct io_work *work);   /* on the helper's thread; 0 or negative errno */
    void (*done)(struct io_work *work); /* on the loop's thread */
    int result;
    struct list_node node; /* helper's own */
    struct mail mail;      /* helper's own */
};

MUST_CHECK int io_helper_create(struct io_helper **out, struct loop *loop);
void io_helper_destroy(struct io_helper *helper); /* accepts NULL; nothing may be under way */
/* The work stays the caller's; done() is called once, from another turn. */
void io_helper_start(struct io_helper *helper, struct io_work *work);
