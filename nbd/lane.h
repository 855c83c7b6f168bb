/* A lane: what the server keeps on each loop.
 *
 * Connections that live here, the memory of their payloads, and the hook that sends all replies
 * of a turn at once.  A connection is in one lane at a time, and only that lane's loop touches it.
 *
 * Memory: payloads of up to 16 KiB have a region of their own, so that neither a queue of large
 * requests nor the holes they leave can hold up small ones.  Who finds no memory waits in a list
 * in order, and is not passed by others of its kind. */
#pragma once

#include "engine/base/arena.h"
#include "engine/base/msg.h"

#include "engine/loop/mailbox.h"
#include "nbd/export.h"

#define NBD_SMALL_PAYLOAD_BYTES ((uint32_t)KIB(16))

struct nbd_conn;

struct nbd_lane {
    void *owner_ctx;
    struct loop *loop;
    struct mailbox *mailbox;
    struct list conns;
    struct list dirty; /* connections with replies to send */
    struct list ports;
    struct arena small, large;
    struct list waiting_small, waiting_large; /* connections without memory */
    struct nbd_conn *favoured;                /* of resume: may pass those that wait */
    struct loop_hook hook;
    struct loop_step round;      /* makes the turn go round once more, so that the hook runs */
    struct loop_step resume;     /* connections that waited for memory */
    struct msg_limit complaints; /* about clients, in the log */
    struct mail kick;            /* look at what the server wants of your connections */
    bool kicked;                 /* atomic: kick is on its way */
    struct mail leave;           /* give up everything */
    struct loop_step left;
    struct mailbox *home;
    struct mail gone; /* the answer; deliver is set by who waits for it */
};

/* An export as this lane reaches it: its device, or a remote_dev in front of it. */
struct nbd_port {
    struct list_node node;
    struct nbd_export *export;
    struct dev *dev;
    bool remote;
    uint32_t refs;
};

/* Before the lane's loop runs on another thread. 0 or negative errno. */
MUST_CHECK int nbd_lane_init(struct nbd_lane *lane, struct loop *loop, uint64_t payload_bytes);
/* Any thread, when no connection is left and none will come: `gone` is posted to `home` when the
 * lane's loop has nothing of it any more. */
void nbd_lane_leave(struct nbd_lane *lane, struct mailbox *home);
void nbd_lane_destroy(struct nbd_lane *lane); /* after gone; accepts a half-initialised one */

/* NULL when there is none now: the connection is then in line, and nbd_transmission_run() is
 * called for it from a later step. */
void *nbd_lane_memory_get(struct nbd_lane *lane, struct nbd_conn *conn, uint32_t bytes);
void nbd_lane_memory_put(struct nbd_lane *lane, void *memory, uint32_t bytes);
uint64_t nbd_lane_memory_bytes_max(const struct nbd_lane *lane); /* of one payload */

struct nbd_port *nbd_lane_port_get(struct nbd_lane *lane, struct nbd_export *export,
                                   uint32_t request_max); /* NULL: no memory */
void nbd_lane_port_put(struct nbd_lane *lane, struct nbd_port *port);

/* The connection has replies: they leave before the loop sleeps. */
void nbd_lane_dirty(struct nbd_lane *lane, struct nbd_conn *conn);
/* Any thread: every connection of the lane looks at conn->wanted. */
void nbd_lane_kick(struct nbd_lane *lane);
