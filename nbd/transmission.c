/* THEORY OF OPERATION: transmission
 *
 * One recv fills the inbox with whatever is there; nbd_transmission_run() takes all whole requests
 * out of it and submits them, so at depth a system call serves many requests.
 *
 *   payload <= 16 KiB   waits in the inbox until it is whole, then is copied to aligned memory
 *   payload larger      its head is copied, the rest is received in place ("landing")
 *   refused payload     is skipped, whatever its reason (within limits)
 *
 * Admission is here and only here: a request needs a slot and memory before its header is taken.
 * Without them the connection is stalled: its inbox stays, its socket is not read, and TCP tells
 * the client to wait.  Below, nothing can fail for memory.
 *
 * T1 Every header that is taken gets exactly one reply, but for DISC and a lost stream.
 * T2 A payload is consumed exactly once on every path, also when the request is refused.
 * T3 done() may come after the client has gone: the slot lives in the connection, and the
 *    connection until in_flight is 0.  No completion can reach another connection. */
#include <string.h>

#include "engine/base/check.h"

#include "nbd/conn.h"

/* A refused payload of up to this is skipped and answered; a longer one ends the connection. */
#define SKIP_BYTES_MAX ((uint32_t)MIB(256))
/* What one connection may hold of the lane's memory, beyond its first request. */
#define HELD_BYTES_MAX MIB(64)
/* A request that has begun must be whole after this, and a second for each MiB of payload. */
#define PARTIAL_NS (30 * SECOND_NS)

enum take {
    TAKE_NEXT,
    TAKE_WAIT, /* for input, a slot or memory */
};

static void
set_in_flight(struct nbd_conn *conn, uint32_t count)
{
    __atomic_store_n(&conn->in_flight, count, __ATOMIC_RELAXED); /* statistics look at it */
}

static void
request_done(struct req *req)
{
    struct nbd_request *request = CONTAINER_OF(req, struct nbd_request, req);
    struct nbd_conn *conn = request->conn;
    check_gt(conn->in_flight, 0);
    set_in_flight(conn, conn->in_flight - 1);
    nbd_reply_queue(conn, request, nbd_command_error(req->err, req->flags));
    if (UNLIKELY(conn->phase != NBD_PHASE_SERVE || conn->refusing))
        nbd_conn_update(conn);
}

static void
submit(struct nbd_conn *conn, struct nbd_request *request)
{
    nbd_count(&conn->request_count, 1);
    set_in_flight(conn, conn->in_flight + 1);
    dev_submit(conn->port->dev, &request->req);
}

static void
lose_stream(struct nbd_conn *conn, const char *why)
{
    nbd_conn_complain(conn, why);
    nbd_conn_drain(conn);
}

static struct nbd_request *
stall(struct nbd_conn *conn)
{
    conn->stalled = true;
    return NULL;
}

/* A slot, with memory when the command moves data.  NULL: the connection is stalled. */
static struct nbd_request *
admit(struct nbd_conn *conn, const struct nbd_command_request *command, uint32_t memory_bytes)
{
    if (conn->requests.in_use == conn->requests.count)
        return stall(conn);
    void *memory = NULL;
    if (memory_bytes != 0) {
        if (conn->held_bytes != 0 && conn->held_bytes + memory_bytes > HELD_BYTES_MAX)
            return stall(conn);
        memory = nbd_lane_memory_get(conn->lane, conn, memory_bytes);
        if (memory == NULL)
            return stall(conn);
        conn->held_bytes += memory_bytes;
    }
    struct nbd_request *request = pool_get(&conn->requests);
    check(request != NULL);
    request->conn = conn;
    request->memory = memory;
    request->memory_bytes = memory_bytes;
    request->reply_bytes = command->type == NBD_CMD_READ ? memory_bytes : 0;
    request->reply.cookie = command->cookie;
    return request;
}

static void
fill_req(struct nbd_request *request, const struct nbd_command_request *command)
{
    struct req *req = &request->req;
    req->op = nbd_command_op(command);
    req->flags = nbd_command_req_flags(command);
    req->off_bytes = req->op == REQ_FLUSH ? 0 : command->off_bytes;
    req->len_bytes = req->op == REQ_FLUSH ? 0 : command->len_bytes;
    req->done = request_done;
    req->err = 0;
    req->iov = NULL;
    req->iov_count = 0;
    if (request->memory != NULL) {
        request->iov = (struct iovec){request->memory, request->memory_bytes};
        req->iov = &request->iov;
        req->iov_count = 1;
    }
}

/* Refuse it; the payload, if there is one, is skipped as it comes (T2). */
static enum take
refuse(struct nbd_conn *conn, const struct nbd_command_request *command, uint32_t error)
{
    struct nbd_request *request = admit(conn, command, 0);
    if (request == NULL)
        return TAKE_WAIT;
    conn->inbox_head += (uint32_t)sizeof(struct nbd_request_header);
    conn->skip_bytes = nbd_command_payload_bytes(command);
    request->reply_bytes = 0;
    nbd_reply_queue(conn, request, error);
    return TAKE_NEXT;
}

/* The payload of a WRITE begins in the inbox.  Small ones are whole there. */
static enum take
begin_payload(struct nbd_conn *conn, struct nbd_request *request)
{
    uint32_t have = MIN(conn->inbox_tail - conn->inbox_head, request->memory_bytes);
    memcpy(request->memory, conn->inbox + conn->inbox_head, have);
    conn->inbox_head += have;
    if (have == request->memory_bytes) {
        submit(conn, request);
        return TAKE_NEXT;
    }
    conn->incoming = request;
    conn->incoming_bytes = have;
    return TAKE_WAIT;
}

static enum take
accept_request(struct nbd_conn *conn, const struct nbd_command_request *command)
{
    uint32_t payload_bytes = nbd_command_payload_bytes(command);
    bool has_memory = command->type == NBD_CMD_READ || command->type == NBD_CMD_WRITE;
    uint32_t have = conn->inbox_tail - conn->inbox_head;
    if (payload_bytes <= NBD_SMALL_PAYLOAD_BYTES &&
        have < sizeof(struct nbd_request_header) + payload_bytes)
        return TAKE_WAIT;
    struct nbd_request *request = admit(conn, command, has_memory ? command->len_bytes : 0);
    if (request == NULL)
        return TAKE_WAIT;
    conn->inbox_head += (uint32_t)sizeof(struct nbd_request_header);
    fill_req(request, command);
    if (command->len_bytes == 0 && command->type != NBD_CMD_FLUSH)
        nbd_reply_queue(conn, request, 0);
    else if (payload_bytes != 0)
        return begin_payload(conn, request);
    else
        submit(conn, request);
    return TAKE_NEXT;
}

static enum take
take_request(struct nbd_conn *conn)
{
    struct nbd_command_request command;
    if (conn->inbox_tail - conn->inbox_head < sizeof(struct nbd_request_header))
        return TAKE_WAIT;
    const void *header = conn->inbox + conn->inbox_head;
    if (!nbd_command_decode(header, &command)) {
        lose_stream(conn, "not a request");
        return TAKE_WAIT;
    }
    if (command.type == NBD_CMD_DISC) {
        nbd_conn_drain(conn);
        return TAKE_WAIT;
    }
    if (nbd_command_payload_bytes(&command) > SKIP_BYTES_MAX) {
        lose_stream(conn, "an absurdly long write");
        return TAKE_WAIT;
    }
    uint32_t error = nbd_command_check(&command, &conn->limits);
    if (UNLIKELY(error == 0 && conn->refusing))
        error = NBD_ESHUTDOWN;
    if (UNLIKELY(error != 0))
        return refuse(conn, &command, error);
    return accept_request(conn, &command);
}

static void
skip(struct nbd_conn *conn)
{
    uint32_t skipped = MIN(conn->skip_bytes, conn->inbox_tail - conn->inbox_head);
    conn->inbox_head += skipped;
    conn->skip_bytes -= skipped;
}

/* Note since when the client owes us the rest of a request. */
static void
watch_partial(struct nbd_conn *conn, bool progress)
{
    bool partial =
        conn->inbox_head != conn->inbox_tail || conn->incoming != NULL || conn->skip_bytes != 0;
    if (!partial || conn->stalled || conn->phase != NBD_PHASE_SERVE) {
        conn->partial_since_ns = 0;
        return;
    }
    if (conn->partial_since_ns != 0 && !progress)
        return;
    uint64_t payload_bytes =
        conn->incoming != NULL ? conn->incoming->memory_bytes : conn->skip_bytes;
    conn->partial_since_ns = loop_now_ns(conn->lane->loop);
    conn->partial_max_ns = PARTIAL_NS + payload_bytes / MIB(1) * SECOND_NS;
    nbd_conn_watchdog(conn, conn->partial_since_ns + conn->partial_max_ns);
}

void
nbd_transmission_run(struct nbd_conn *conn)
{
    uint32_t head = conn->inbox_head;
    conn->stalled = false;
    while (conn->phase == NBD_PHASE_SERVE && conn->incoming == NULL) {
        skip(conn);
        if (conn->skip_bytes != 0 || take_request(conn) == TAKE_WAIT)
            break;
    }
    watch_partial(conn, conn->inbox_head != head);
    if (conn->inbox_head == conn->inbox_tail)
        conn->inbox_head = conn->inbox_tail = 0;
}

uint32_t
nbd_transmission_landing(struct nbd_conn *conn, struct iovec *iov)
{
    struct nbd_request *request = conn->incoming;
    if (request == NULL)
        return 0;
    *iov = (struct iovec){(uint8_t *)request->memory + conn->incoming_bytes,
                          request->memory_bytes - conn->incoming_bytes};
    return 1;
}

void
nbd_transmission_landed(struct nbd_conn *conn, uint32_t bytes)
{
    struct nbd_request *request = conn->incoming;
    conn->incoming_bytes += bytes;
    check_le(conn->incoming_bytes, request->memory_bytes);
    if (conn->incoming_bytes < request->memory_bytes)
        return;
    conn->incoming = NULL;
    conn->partial_since_ns = 0;
    submit(conn, request);
}

void
nbd_transmission_abandon(struct nbd_conn *conn)
{
    struct nbd_request *request = conn->incoming;
    conn->incoming = NULL;
    if (request != NULL)
        nbd_request_release(conn, request);
}

void
nbd_transmission_resume(struct nbd_conn *conn)
{
    if (conn->stalled && !list_linked(&conn->wait_node))
        loop_defer(conn->lane->loop, &conn->resume_step);
}
