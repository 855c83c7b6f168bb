/* A connection, from accept to the last completion (conn.c has the theory).
 *
 * Shared by conn.c (life, input), transmission.c (requests) and reply.c (output). */
#pragma once

#include "engine/base/pool.h"

#include "nbd/command.h"
#include "nbd/handshake.h"
#include "nbd/lane.h"
#include "nbd/transport.h"

#define NBD_INBOX_BYTES ((uint32_t)KIB(256))
/* A peer that takes nothing for so long while replies wait is cut off. */
#define NBD_SLOW_READER_NS (60 * SECOND_NS)

enum nbd_phase {
    NBD_PHASE_NEGOTIATE,
    NBD_PHASE_MOVE,  /* negotiated, on the way to its lane */
    NBD_PHASE_SERVE, /* reads requests */
    NBD_PHASE_DRAIN, /* reads no more; ends when everything is answered and sent */
    NBD_PHASE_DEAD,  /* sends no more; ends when the engine has let go of everything */
    NBD_PHASE_ENDED, /* on the way home to the server, which frees it */
};

/* What the server wants a connection to do; only grows. */
enum nbd_wanted {
    NBD_WANT_NOTHING,
    NBD_WANT_DRAIN,  /* answer what is in flight, say nothing to what comes */
    NBD_WANT_REFUSE, /* answer ESHUTDOWN to what comes meanwhile */
    NBD_WANT_END,    /* now */
};

/* A request slot: in use from the header's arrival until the reply is sent. */
struct nbd_request {
    struct nbd_request *next; /* in the reply queue; pool.h's while free */
    struct nbd_conn *conn;
    struct iovec iov;
    void *memory; /* of the lane; memory_bytes long */
    uint32_t memory_bytes;
    uint32_t reply_bytes; /* of data after the reply's header */
    struct nbd_simple_reply reply;
    struct req req;
};

/* Who made the connection.  Both are the last thing conn.c does with it for now. */
struct nbd_conn_owner {
    void (*negotiated)(struct nbd_conn *conn); /* handshake.chosen is set; on the first loop */
    void (*ended)(struct nbd_conn *conn);      /* on its lane's loop */
};

struct nbd_conn {
    const struct nbd_conn_owner *owner;
    void *owner_ctx;
    bool seated; /* owner's: counted as a client of its export */
    struct nbd_lane *lane;
    struct list_node owner_node; /* the first loop's, always */
    struct list_node lane_node;
    struct list_node dirty_node;
    struct list_node wait_node; /* for memory */
    enum nbd_phase phase;
    uint8_t wanted; /* enum nbd_wanted; atomic: the server writes, the lane reads */
    bool refusing;

    struct nbd_transport *transport;
    struct loop_fd watch_in, watch_out; /* one descriptor for both: watch_out is not used */
    struct loop_timer timer;
    struct loop_step resume_step, end_step;
    struct mail mail; /* to the lane, and later home */

    /* Input.  Bytes [inbox_head, inbox_tail) have been read and not been taken. */
    uint8_t *inbox;
    uint32_t inbox_head, inbox_tail;
    uint32_t skip_bytes;          /* of a payload nobody wants */
    struct nbd_request *incoming; /* its payload is landing in place */
    uint32_t incoming_bytes;      /* so many of it have */
    bool stalled;                 /* no slot or memory: nothing is read until there is */

    /* Negotiation. */
    struct nbd_handshake handshake;
    bool option_too_long; /* its header is in `option`, its payload is being skipped */
    struct nbd_option_header option;

    /* Transmission. */
    struct nbd_export *export;
    struct nbd_port *port;
    struct nbd_command_limits limits;
    struct pool requests;
    uint32_t in_flight;  /* submitted to the device */
    uint64_t held_bytes; /* payload memory, in flight or waiting to be sent */

    /* Output: the outbox first, then replies in order of completion. */
    struct nbd_outbox outbox;
    struct nbd_request *replies, **replies_end;
    uint64_t first_sent_bytes; /* of the first reply */
    bool send_blocked;

    /* Clocks of the limits; 0: not running. */
    uint64_t handshake_due_ns;
    uint64_t partial_since_ns; /* the request at the head of the inbox is not whole */
    uint64_t partial_max_ns;   /* and has so long */
    uint64_t blocked_since_ns; /* the peer reads nothing */

    /* Statistics; read from loops[0] while the lane counts. */
    uint64_t request_count, bytes_in, bytes_out;
    char peer[128];
    void (*closed)(void *ctx); /* of nbd_server_serve_fd() */
    void *closed_ctx;
};

/* ---- conn.c ------------------------------------------------------------------------------ */
/* Takes the transport, also when it fails (NULL: no memory). */
struct nbd_conn *nbd_conn_create(const struct nbd_conn_owner *owner, void *owner_ctx,
                                 struct nbd_lane *lane, struct nbd_transport *transport);
/* Greet, and negotiate until handshake_due_ns. */
void nbd_conn_start(struct nbd_conn *conn, const struct nbd_directory *directory,
                    uint64_t handshake_due_ns);
/* Leave its lane for another one: then nbd_conn_enter() over there. */
void nbd_conn_leave(struct nbd_conn *conn, struct nbd_lane *to);
/* Serve `export` in conn->lane, whose loop this is. */
void nbd_conn_enter(struct nbd_conn *conn);
void nbd_conn_free(struct nbd_conn *conn); /* after ended() */
/* Read no more, answer what there is, end. */
void nbd_conn_drain(struct nbd_conn *conn);
/* The peer is lost, or is to be: end as soon as the engine lets go. */
void nbd_conn_kill(struct nbd_conn *conn);
/* Do what conn->wanted says. */
void nbd_conn_obey(struct nbd_conn *conn);
/* Something changed: wait for other events, or end. */
void nbd_conn_update(struct nbd_conn *conn);

/* Log why its client is being closed; not more often than is good for the log. */
void nbd_conn_complain(struct nbd_conn *conn, const char *why);
/* See that the limits are checked at due_ns at the latest. */
void nbd_conn_watchdog(struct nbd_conn *conn, uint64_t due_ns);

/* ---- transmission.c ---------------------------------------------------------------------- */
/* Take all whole requests out of the inbox. */
void nbd_transmission_run(struct nbd_conn *conn);
/* Where the next bytes go: the rest of a landing payload (0 or 1 entries). */
uint32_t nbd_transmission_landing(struct nbd_conn *conn, struct iovec *iov);
/* So many have landed there. */
void nbd_transmission_landed(struct nbd_conn *conn, uint32_t bytes);
void nbd_transmission_abandon(struct nbd_conn *conn); /* the payload that was landing */
/* A slot or memory came free: go on with the inbox, in a later step. */
void nbd_transmission_resume(struct nbd_conn *conn);

/* ---- reply.c ----------------------------------------------------------------------------- */
void nbd_reply_init(struct nbd_conn *conn);
/* Queue the answer.  The request goes back to its pool when it has been sent. */
void nbd_reply_queue(struct nbd_conn *conn, struct nbd_request *request, uint32_t error);
/* Send what is queued, as far as the peer takes it. */
void nbd_reply_flush(struct nbd_conn *conn);
void nbd_reply_discard(struct nbd_conn *conn);
bool nbd_reply_empty(const struct nbd_conn *conn);
/* Give the slot and its memory back. */
void nbd_request_release(struct nbd_conn *conn, struct nbd_request *request);
void nbd_request_free_memory(struct nbd_conn *conn, struct nbd_request *request);

/* A counter that one thread writes and another may look at. */
static inline void
nbd_count(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}
