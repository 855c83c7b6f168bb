/* THEORY OF OPERATION: replies
 *
 * A finished request is queued here and its connection marked dirty; before the loop sleeps, the
 * lane's hook sends everything that is queued with one sendmsg per connection: header and payload
 * of each reply are two entries of its iovec.  What the socket does not take waits for EPOLLOUT.
 *
 * R1 The slot and its memory stay until the last byte is sent; so slots bound what is queued.
 * R2 One writer: bytes of one reply are never interleaved with another's.
 * R3 A dead connection queues nothing; its requests are released as they are done.
 * R4 A peer that takes nothing for 60 s while something waits is cut off. */
#include <limits.h>
#include <string.h>

#include "engine/base/check.h"

#include "nbd/conn.h"

void
nbd_reply_init(struct nbd_conn *conn)
{
    conn->replies = NULL;
    conn->replies_end = &conn->replies;
}

bool
nbd_reply_empty(const struct nbd_conn *conn)
{
    return conn->replies == NULL && nbd_outbox_waiting(&conn->outbox) == 0;
}

void
nbd_request_free_memory(struct nbd_conn *conn, struct nbd_request *request)
{
    if (request->memory == NULL)
        return;
    check_ge(conn->held_bytes, request->memory_bytes);
    conn->held_bytes -= request->memory_bytes;
    nbd_lane_memory_put(conn->lane, request->memory, request->memory_bytes);
    request->memory = NULL;
}

void
nbd_request_release(struct nbd_conn *conn, struct nbd_request *request)
{
    nbd_request_free_memory(conn, request);
    pool_put(&conn->requests, request);
    nbd_transmission_resume(conn);
}

void
nbd_reply_queue(struct nbd_conn *conn, struct nbd_request *request, uint32_t error)
{
    if (conn->phase == NBD_PHASE_DEAD) { /* R3 */
        nbd_request_release(conn, request);
        return;
    }
    request->reply.magic = be32_make(NBD_SIMPLE_REPLY_MAGIC);
    request->reply.error = be32_make(error);
    if (error != 0 || request->reply_bytes == 0) {
        request->reply_bytes = 0;
        nbd_request_free_memory(conn, request);
    }
    request->next = NULL;
    *conn->replies_end = request;
    conn->replies_end = &request->next;
    nbd_lane_dirty(conn->lane, conn);
}

static void
add(struct iovec *iov, uint32_t *count, void *data, uint64_t bytes, uint64_t *skip)
{
    uint64_t skipped = MIN(*skip, bytes);
    *skip -= skipped;
    if (bytes != skipped)
        iov[(*count)++] = (struct iovec){(uint8_t *)data + skipped, bytes - skipped};
}

static uint32_t
gather(struct nbd_conn *conn, struct iovec *iov, uint64_t *total)
{
    struct nbd_outbox *outbox = &conn->outbox;
    uint32_t count = 0;
    uint64_t skip = 0;
    *total = nbd_outbox_waiting(outbox);
    if (*total != 0)
        add(iov, &count, outbox->data + outbox->sent, *total, &skip);
    skip = conn->first_sent_bytes;
    for (struct nbd_request *r = conn->replies; r != NULL && count + 2 <= IOV_MAX; r = r->next) {
        *total += sizeof(r->reply) + r->reply_bytes - skip;
        add(iov, &count, &r->reply, sizeof(r->reply), &skip);
        add(iov, &count, r->memory, r->reply_bytes, &skip);
    }
    return count;
}

/* So many bytes have left: release what is complete. */
static void
account(struct nbd_conn *conn, uint64_t bytes)
{
    uint64_t from_outbox = MIN(bytes, (uint64_t)nbd_outbox_waiting(&conn->outbox));
    conn->outbox.sent += from_outbox;
    conn->first_sent_bytes += bytes - from_outbox;
    while (conn->replies != NULL) {
        struct nbd_request *first = conn->replies;
        uint64_t whole = sizeof(first->reply) + first->reply_bytes;
        if (conn->first_sent_bytes < whole)
            return;
        conn->first_sent_bytes -= whole;
        conn->replies = first->next;
        if (conn->replies == NULL)
            conn->replies_end = &conn->replies;
        nbd_request_release(conn, first); /* R1 */
    }
    check_eq(conn->first_sent_bytes, 0);
}

static void
block(struct nbd_conn *conn, bool progress)
{
    uint64_t now = loop_now_ns(conn->lane->loop);
    conn->send_blocked = true;
    if (progress || conn->blocked_since_ns == 0)
        conn->blocked_since_ns = now;
    nbd_conn_watchdog(conn, conn->blocked_since_ns + NBD_SLOW_READER_NS); /* R4 */
}

void
nbd_reply_flush(struct nbd_conn *conn)
{
    if (conn->send_blocked || conn->phase == NBD_PHASE_DEAD)
        return;
    while (!nbd_reply_empty(conn)) {
        struct iovec iov[IOV_MAX];
        uint64_t total;
        uint32_t count = gather(conn, iov, &total);
        ssize_t sent = conn->transport->ops->send(conn->transport, iov, count);
        if (sent < 0 && sent != -EAGAIN) { /* it has gone; that is no news to anybody */
            nbd_conn_kill(conn);
            return;
        }
        if (sent > 0) {
            nbd_count(&conn->bytes_out, (uint64_t)sent);
            account(conn, (uint64_t)sent);
        }
        if (sent < 0 || (uint64_t)sent < total) {
            block(conn, sent > 0);
            return;
        }
    }
    conn->blocked_since_ns = 0;
    if (conn->phase == NBD_PHASE_NEGOTIATE && conn->inbox_head != conn->inbox_tail)
        loop_defer(conn->lane->loop, &conn->resume_step); /* options may have waited for room */
}

void
nbd_reply_discard(struct nbd_conn *conn)
{
    nbd_outbox_destroy(&conn->outbox);
    while (conn->replies != NULL) {
        struct nbd_request *first = conn->replies;
        conn->replies = first->next;
        nbd_request_release(conn, first);
    }
    nbd_reply_init(conn);
    conn->first_sent_bytes = 0;
}
