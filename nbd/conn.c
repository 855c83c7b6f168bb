/* THEORY OF OPERATION: a connection's life
 *
 *   accept ─▶ NEGOTIATE ─▶ MOVE ─▶ SERVE ─▶ DRAIN ─▶ ENDED ─▶ home, freed
 *                 │                  │         │        ▲
 *                 └──────────────────┴─────────┴▶ DEAD ─┘
 *
 * Negotiation happens on the first loop, where the exports are known; then the connection moves
 * to its lane's loop, with whatever is in its inbox and outbox, and home again when it has ended.
 *
 * NEGOTIATE  an option's header is read, then its whole payload, then one pure handler answers.
 * DRAIN      after DISC, end of file, a lost stream, or by order: nothing more is read, what is in
 *            flight is answered, then the connection ends.
 * DEAD       the peer is lost: replies are dropped as they come.
 *
 * C1 Only the loop of conn->lane touches a connection, but for `wanted` and the statistics.
 * C2 It ends from a step of its own, never from inside a completion or a callback of its device.
 * C3 It ends only when in_flight is 0; then nobody but the owner knows it.
 * C4 Nothing is read while there is no slot or memory for it, or while the outbox is long. */
#include "nbd/conn.h"

#include <string.h>
#include <sys/epoll.h>

#include "engine/base/check.h"
#include "engine/base/msg.h"

/* recv calls of one turn: one connection may not keep the loop for itself. */
#define RECEIVE_ROUNDS 4
/* Read no more options while so much waits to be sent. */
#define OUTBOX_BYTES_HIGH KIB(64)
/* Behind a payload this large comes another one, most likely: take little more than its header, so
 * that it, too, is received where it stays and not copied there from the inbox. */
#define PAYLOAD_BYTES_LARGE KIB(32)
#define NEXT_BYTES          ((uint32_t)KIB(4))
/* Make room at the end of the inbox when less than this is left. */
#define INBOX_BYTES_LOW KIB(64)

/* Messages in 10 s about what clients do, whatever they do. */
#define COMPLAINTS_MAX 8

static void conn_ready_in(struct loop_fd *watch, uint32_t events);
static void conn_ready_out(struct loop_fd *watch, uint32_t events);
static void conn_timer_fired(struct loop_timer *timer);
static void conn_resume(struct loop_step *step);
static void conn_end(struct loop_step *step);

struct nbd_conn *
nbd_conn_create(const struct nbd_conn_owner *owner, void *owner_ctx, struct nbd_lane *lane,
                struct nbd_transport *transport)
{
    struct nbd_conn *conn = calloc(1, sizeof(*conn));
    uint8_t *inbox = malloc(NBD_INBOX_BYTES); /* touched only as far as it is used */
    if (conn == NULL || inbox == NULL) {
        free(conn);
        free(inbox);
        transport->ops->close(transport);
        return NULL;
    }
    conn->owner = owner;
    conn->owner_ctx = owner_ctx;
    conn->lane = lane;
    conn->transport = transport;
    conn->inbox = inbox;
    conn->watch_in = (struct loop_fd){.fd = transport->fd_in, .ready = conn_ready_in};
    conn->watch_out = (struct loop_fd){.fd = transport->fd_out, .ready = conn_ready_out};
    conn->timer.fired = conn_timer_fired;
    conn->resume_step.run = conn_resume;
    conn->end_step.run = conn_end;
    nbd_reply_init(conn);
    list_push_back(&lane->conns, &conn->lane_node);
    return conn;
}

void
nbd_conn_free(struct nbd_conn *conn)
{
    check_eq(conn->phase, NBD_PHASE_ENDED);
    free(conn->inbox);
    free(conn);
}

/* ---- what it waits for ------------------------------------------------------------------- */
static bool
wants_input(const struct nbd_conn *conn)
{
    if (conn->phase == NBD_PHASE_NEGOTIATE)
        return nbd_outbox_waiting(&conn->outbox) < OUTBOX_BYTES_HIGH;
    return conn->phase == NBD_PHASE_SERVE && !conn->stalled; /* C4 */
}

static bool
wants_output(const struct nbd_conn *conn)
{
    return conn->send_blocked && conn->phase != NBD_PHASE_DEAD;
}

static int
set_events(struct nbd_conn *conn, struct loop_fd *watch, uint32_t events)
{
    if (events == 0 && watch->watched)
        loop_unwatch(watch); /* not "for nothing": a hang-up would be reported again and again */
    else if (events != 0 && watch->watched && watch->events != events)
        loop_rewatch(watch, events);
    else if (events != 0 && !watch->watched) {
        watch->events = events;
        return loop_watch(conn->lane->loop, watch);
    }
    return 0;
}

/* lazy: keep waiting for input that is not wanted just now; most stalls are over in this turn. */
static void
set_watches(struct nbd_conn *conn, bool lazy)
{
    bool keep = lazy && conn->phase == NBD_PHASE_SERVE && conn->watch_in.watched &&
                (conn->watch_in.events & EPOLLIN) != 0;
    uint32_t in = wants_input(conn) || keep ? EPOLLIN : 0;
    uint32_t out = wants_output(conn) ? EPOLLOUT : 0;
    int err;
    if (conn->transport->fd_in == conn->transport->fd_out)
        err = set_events(conn, &conn->watch_in, in | out);
    else
        err = MIN(set_events(conn, &conn->watch_in, in), set_events(conn, &conn->watch_out, out));
    if (err < 0) {
        msg(MSG_WARNING, "nbd: %s: cannot wait for it: %s", conn->peer, strerror(-err));
        nbd_conn_kill(conn);
    }
}

static bool
is_over(const struct nbd_conn *conn)
{
    if (conn->in_flight != 0) /* C3 */
        return false;
    if (conn->phase == NBD_PHASE_DRAIN)
        return nbd_reply_empty(conn);
    return conn->phase == NBD_PHASE_DEAD;
}

static void
unwatch(struct nbd_conn *conn)
{
    if (conn->watch_in.watched)
        loop_unwatch(&conn->watch_in);
    if (conn->watch_out.watched)
        loop_unwatch(&conn->watch_out);
}

void
nbd_conn_update(struct nbd_conn *conn)
{
    if (conn->phase == NBD_PHASE_ENDED || conn->phase == NBD_PHASE_MOVE)
        return;
    if (conn->phase == NBD_PHASE_SERVE && conn->refusing && conn->in_flight == 0)
        nbd_conn_drain(conn);
    if (conn->outbox.failed && conn->phase != NBD_PHASE_DEAD)
        nbd_conn_kill(conn);
    if (conn->phase != NBD_PHASE_DEAD)
        set_watches(conn, true);
    if (!is_over(conn))
        return;
    conn->phase = NBD_PHASE_ENDED;
    unwatch(conn);
    loop_defer(conn->lane->loop, &conn->end_step); /* C2 */
}

/* ---- ends -------------------------------------------------------------------------------- */
static void
stop_reading(struct nbd_conn *conn, enum nbd_phase phase)
{
    conn->phase = phase;
    conn->stalled = false;
    conn->skip_bytes = 0;
    conn->partial_since_ns = 0;
    if (list_linked(&conn->wait_node))
        list_remove(&conn->wait_node);
    nbd_transmission_abandon(conn);
}

void
nbd_conn_drain(struct nbd_conn *conn)
{
    if (conn->phase == NBD_PHASE_NEGOTIATE || conn->phase == NBD_PHASE_SERVE)
        stop_reading(conn, NBD_PHASE_DRAIN);
}

void
nbd_conn_kill(struct nbd_conn *conn)
{
    if (conn->phase == NBD_PHASE_DEAD || conn->phase == NBD_PHASE_ENDED)
        return;
    stop_reading(conn, NBD_PHASE_DEAD);
    unwatch(conn);
    nbd_reply_discard(conn);
}

static void
conn_end(struct loop_step *step)
{
    struct nbd_conn *conn = CONTAINER_OF(step, struct nbd_conn, end_step);
    struct loop *loop = conn->lane->loop;
    check_eq(conn->in_flight, 0);
    check_eq(conn->held_bytes, 0);
    loop_timer_cancel(&conn->timer);
    loop_undefer(loop, &conn->resume_step);
    if (list_linked(&conn->dirty_node))
        list_remove(&conn->dirty_node);
    list_remove(&conn->lane_node);
    conn->transport->ops->close(conn->transport);
    nbd_outbox_destroy(&conn->outbox);
    pool_destroy(&conn->requests);
    if (conn->port != NULL)
        nbd_lane_port_put(conn->lane, conn->port);
    conn->owner->ended(conn);
}

void
nbd_conn_complain(struct nbd_conn *conn, const char *why)
{
    if (msg_allowed(&conn->lane->complaints, loop_now_ns(conn->lane->loop), COMPLAINTS_MAX))
        msg(MSG_NOTICE, "nbd: %s: %s; closing", conn->peer, why);
}

/* ---- limits of time ---------------------------------------------------------------------- */
void
nbd_conn_watchdog(struct nbd_conn *conn, uint64_t due_ns)
{
    if (!loop_timer_is_set(&conn->timer) || conn->timer.due_ns > due_ns)
        loop_timer_set(conn->lane->loop, &conn->timer, due_ns);
}

/* Kill it when the clock that began at since_ns has run out, or look again when it will have. */
static void
check_clock(struct nbd_conn *conn, uint64_t since_ns, uint64_t max_ns, const char *why)
{
    if (since_ns == 0 || conn->phase == NBD_PHASE_DEAD)
        return;
    if (loop_now_ns(conn->lane->loop) < since_ns + max_ns) {
        nbd_conn_watchdog(conn, since_ns + max_ns);
        return;
    }
    nbd_conn_complain(conn, why);
    nbd_conn_kill(conn);
}

static void
conn_timer_fired(struct loop_timer *timer)
{
    struct nbd_conn *conn = CONTAINER_OF(timer, struct nbd_conn, timer);
    check_clock(conn, conn->handshake_due_ns, 0, "did not finish its handshake in time");
    check_clock(conn, conn->partial_since_ns, conn->partial_max_ns, "stopped within a request");
    check_clock(conn, conn->blocked_since_ns, NBD_SLOW_READER_NS, "reads no replies");
    nbd_conn_update(conn);
}

/* ---- negotiation ------------------------------------------------------------------------- */
void
nbd_conn_start(struct nbd_conn *conn, const struct nbd_directory *directory,
               uint64_t handshake_due_ns)
{
    conn->handshake_due_ns = handshake_due_ns;
    nbd_conn_watchdog(conn, handshake_due_ns);
    nbd_handshake_init(&conn->handshake, directory, &conn->outbox);
    nbd_reply_flush(conn);
    nbd_conn_update(conn);
}

static void
heed(struct nbd_conn *conn, enum nbd_next next)
{
    switch (next) {
    case NBD_NEXT_OPTION:
        return;
    case NBD_NEXT_CLOSE:
        nbd_conn_drain(conn);
        return;
    case NBD_NEXT_TRANSMISSION:
        conn->phase = NBD_PHASE_MOVE;
        return;
    }
}

static void
answer_option(struct nbd_conn *conn, const uint8_t *payload)
{
    heed(conn, nbd_handshake_option(&conn->handshake, be32_get(conn->option.option), payload,
                                    be32_get(conn->option.length), &conn->outbox));
}

/* The payload of an option that is too long to keep, but not too long to be polite about. */
static bool
skip_option(struct nbd_conn *conn)
{
    uint32_t skipped = MIN(conn->skip_bytes, conn->inbox_tail - conn->inbox_head);
    conn->inbox_head += skipped;
    conn->skip_bytes -= skipped;
    if (conn->skip_bytes != 0)
        return false;
    conn->option_too_long = false;
    answer_option(conn, NULL);
    return true;
}

/* False when it needs more input. */
static bool
take_option(struct nbd_conn *conn)
{
    uint32_t have = conn->inbox_tail - conn->inbox_head;
    const uint8_t *at = conn->inbox + conn->inbox_head;
    struct be32 flags;
    if (conn->option_too_long)
        return skip_option(conn);
    if (!conn->handshake.greeted) {
        if (have < sizeof(flags))
            return false;
        memcpy(&flags, at, sizeof(flags));
        conn->inbox_head += (uint32_t)sizeof(flags);
        heed(conn, nbd_handshake_flags(&conn->handshake, be32_get(flags)));
        return true;
    }
    if (have < sizeof(conn->option))
        return false;
    memcpy(&conn->option, at, sizeof(conn->option));
    uint32_t bytes = be32_get(conn->option.length);
    if (be64_get(conn->option.magic) != NBD_OPTION_MAGIC || bytes > NBD_OPTION_BYTES_MAX) {
        nbd_conn_drain(conn);
        return true;
    }
    conn->option_too_long = bytes > NBD_OPTION_BYTES_KEPT_MAX;
    if (!conn->option_too_long && have - sizeof(conn->option) < bytes)
        return false;
    conn->inbox_head += (uint32_t)sizeof(conn->option);
    conn->skip_bytes = conn->option_too_long ? bytes : 0;
    if (!conn->option_too_long) {
        conn->inbox_head += bytes;
        answer_option(conn, at + sizeof(conn->option));
    }
    return true;
}

static void
negotiate(struct nbd_conn *conn)
{
    while (wants_input(conn) && take_option(conn))
        ;
    if (conn->inbox_head == conn->inbox_tail)
        conn->inbox_head = conn->inbox_tail = 0;
    if (nbd_outbox_waiting(&conn->outbox) != 0)
        nbd_lane_dirty(conn->lane, conn);
}

void
nbd_conn_leave(struct nbd_conn *conn, struct nbd_lane *to)
{
    check_eq(conn->phase, NBD_PHASE_MOVE);
    unwatch(conn);
    loop_timer_cancel(&conn->timer);
    loop_undefer(conn->lane->loop, &conn->resume_step);
    if (list_linked(&conn->dirty_node))
        list_remove(&conn->dirty_node);
    list_remove(&conn->lane_node);
    conn->handshake_due_ns = 0;
    conn->lane = to;
}

void
nbd_conn_enter(struct nbd_conn *conn)
{
    check_eq(conn->phase, NBD_PHASE_MOVE);
    loop_assert_thread(conn->lane->loop);
    list_push_back(&conn->lane->conns, &conn->lane_node);
    conn->phase = NBD_PHASE_SERVE;
    conn->send_blocked = false; /* try again, and have the clock run here */
    conn->port = nbd_lane_port_get(conn->lane, conn->export, conn->requests.count);
    if (conn->port == NULL)
        nbd_conn_kill(conn);
    conn->limits = (struct nbd_command_limits){
        .size_bytes = conn->export->size_bytes,
        .payload_bytes_max =
            (uint32_t)MIN((uint64_t)NBD_PAYLOAD_BYTES_MAX, nbd_lane_memory_bytes_max(conn->lane)),
        .read_only = conn->export->read_only,
    };
    if (!nbd_reply_empty(conn))
        nbd_lane_dirty(conn->lane, conn);
    nbd_conn_obey(conn);
    nbd_transmission_run(conn); /* what came together with GO */
    nbd_conn_update(conn);
}

/* ---- input ------------------------------------------------------------------------------- */
static void
make_room(struct nbd_conn *conn)
{
    if (conn->inbox_head == 0 || NBD_INBOX_BYTES - conn->inbox_tail >= INBOX_BYTES_LOW)
        return;
    uint32_t rest = conn->inbox_tail - conn->inbox_head;
    memmove(conn->inbox, conn->inbox + conn->inbox_head, rest);
    conn->inbox_head = 0;
    conn->inbox_tail = rest;
}

static void
arrived(struct nbd_conn *conn, uint32_t bytes, uint32_t landing_bytes)
{
    uint32_t landed = MIN(bytes, landing_bytes);
    nbd_count(&conn->bytes_in, bytes);
    conn->inbox_tail += bytes - landed;
    if (landed != 0)
        nbd_transmission_landed(conn, landed);
    if (conn->phase == NBD_PHASE_NEGOTIATE)
        negotiate(conn);
    else
        nbd_transmission_run(conn);
}

/* Read what is there and take it.  A short read means that there is no more just now. */
static void
receive(struct nbd_conn *conn)
{
    for (int round = 0; round < RECEIVE_ROUNDS && wants_input(conn); round++) {
        struct iovec iov[2];
        make_room(conn);
        uint32_t count = nbd_transmission_landing(conn, iov);
        uint32_t landing = count != 0 ? (uint32_t)iov[0].iov_len : 0;
        uint32_t room = NBD_INBOX_BYTES - conn->inbox_tail;
        if (landing != 0 && conn->incoming->memory_bytes >= PAYLOAD_BYTES_LARGE)
            room = MIN(room, NEXT_BYTES);
        check_gt(room, 0);
        iov[count++] = (struct iovec){conn->inbox + conn->inbox_tail, room};
        ssize_t got = conn->transport->ops->recv(conn->transport, iov, count);
        if (got == -EAGAIN)
            return;
        if (got < 0) {
            nbd_conn_kill(conn);
            return;
        }
        if (got == 0) { /* also a half-close: it may still read */
            nbd_conn_drain(conn);
            return;
        }
        arrived(conn, (uint32_t)got, landing);
        if ((uint64_t)got < (uint64_t)landing + room)
            return;
    }
}

/* What is there already gets an answer; what comes later, as long as something is in flight. */
static void
refuse_requests(struct nbd_conn *conn)
{
    conn->refusing = true;
    if (wants_input(conn))
        receive(conn);
}

void
nbd_conn_obey(struct nbd_conn *conn)
{
    enum nbd_wanted wanted = __atomic_load_n(&conn->wanted, __ATOMIC_ACQUIRE);
    if (wanted == NBD_WANT_NOTHING)
        return;
    if (wanted == NBD_WANT_END || conn->phase == NBD_PHASE_NEGOTIATE)
        nbd_conn_kill(conn);
    else if (wanted == NBD_WANT_DRAIN)
        nbd_conn_drain(conn);
    else
        refuse_requests(conn);
    nbd_conn_update(conn);
}

static void
unblock(struct nbd_conn *conn)
{
    conn->send_blocked = false;
    nbd_reply_flush(conn);
}

/* The end of a callback. */
static void
hand_on(struct nbd_conn *conn)
{
    if (conn->phase == NBD_PHASE_MOVE)
        conn->owner->negotiated(conn); /* may have gone to another thread */
    else
        nbd_conn_update(conn);
}

static void
conn_ready_in(struct loop_fd *watch, uint32_t events)
{
    struct nbd_conn *conn = CONTAINER_OF(watch, struct nbd_conn, watch_in);
    uint32_t broken = events & (EPOLLHUP | EPOLLERR);
    bool both = conn->transport->fd_in == conn->transport->fd_out;
    if (both && wants_output(conn) && ((events & EPOLLOUT) != 0 || broken != 0))
        unblock(conn);
    if ((events & EPOLLIN) != 0 || broken != 0) {
        if (wants_input(conn))
            receive(conn);
        else if (conn->phase == NBD_PHASE_SERVE)
            set_watches(conn, false);
    }
    hand_on(conn);
}

static void
conn_ready_out(struct loop_fd *watch, uint32_t events)
{
    struct nbd_conn *conn = CONTAINER_OF(watch, struct nbd_conn, watch_out);
    (void)events;
    unblock(conn);
    nbd_conn_update(conn);
}

static void
conn_resume(struct loop_step *step)
{
    struct nbd_conn *conn = CONTAINER_OF(step, struct nbd_conn, resume_step);
    if (conn->phase == NBD_PHASE_NEGOTIATE)
        negotiate(conn);
    else
        nbd_transmission_run(conn);
    hand_on(conn);
}
