/* THEORY OF OPERATION: the server
 *
 * Knows the exports, the listeners and every connection; all of that on loops[0].  A connection
 * negotiates there, is counted and given a lane when it has chosen an export ("seated"), and comes
 * home to be freed.  Between, the server speaks to it only through conn->wanted and a kick of its
 * lane, so a mail can never reach a connection that is no more.
 *
 * Clients that have not finished negotiating are not counted against connections_max: a crowd of
 * silent ones must not lock anybody out.  They are bounded apart; one too many, and the oldest has
 * to go.
 *
 * When the last client of an export has left, what it wrote is flushed in the background: leaving
 * is no barrier, but nobody is there any more who could ask for one.
 *
 * Stopping: listeners close, connections are told, come home, the lanes leave their loops, the
 * server is freed and stopped() called.  When that takes longer than it may, connections are cut;
 * what the devices still hold after that keeps memory, but no longer the caller. */
#include "nbd/server.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/msg.h"

#include "nbd/conn.h"
#include "nbd/lane.h"
#include "nbd/listen.h"

#define LISTENERS_MAX   16
#define NEGOTIATING_MAX 256
/* After connections have been cut, for those whose devices answer at once. */
#define CUT_NS (200 * MS_NS)

struct nbd_server {
    struct loop *loop;
    struct nbd_server_config config;
    struct nbd_directory directory;
    struct nbd_lane *lanes;
    uint32_t lane_next;
    uint32_t lanes_gone;
    struct nbd_listener *listeners[LISTENERS_MAX];
    uint32_t listener_count;
    struct list conns; /* oldest first */
    uint32_t negotiating;
    uint32_t partings; /* flushes after last clients, under way */
    bool stopping, leaving;
    struct loop_timer stop_timer;
    struct loop_step free_step;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

static void conn_negotiated(struct nbd_conn *conn);
static void conn_ended(struct nbd_conn *conn);
static const struct nbd_conn_owner conn_owner = {conn_negotiated, conn_ended};

static void
tell(struct nbd_conn *conn, enum nbd_wanted wanted)
{
    if (__atomic_load_n(&conn->wanted, __ATOMIC_RELAXED) >= wanted)
        return;
    __atomic_store_n(&conn->wanted, (uint8_t)wanted, __ATOMIC_RELEASE);
    nbd_lane_kick(conn->lane);
}

/* ---- connections come, are seated, come home ------------------------------------------------ */
static void
turn_oldest_away(struct nbd_server *server)
{
    list_for_each (node, &server->conns) {
        struct nbd_conn *conn = CONTAINER_OF(node, struct nbd_conn, owner_node);
        if (conn->seated || __atomic_load_n(&conn->wanted, __ATOMIC_RELAXED) == NBD_WANT_END)
            continue;
        tell(conn, NBD_WANT_END);
        return;
    }
}

static int
add_conn(struct nbd_server *server, int fd_in, int fd_out, const char *peer, struct nbd_conn **out)
{
    struct nbd_transport *transport;
    int err = nbd_transport_sock_create(&transport, fd_in, fd_out);
    if (err < 0)
        return err;
    struct nbd_conn *conn = nbd_conn_create(&conn_owner, server, &server->lanes[0], transport);
    if (conn == NULL)
        return -ENOMEM;
    snprintf(conn->peer, sizeof(conn->peer), "%s", peer);
    list_push_back(&server->conns, &conn->owner_node);
    if (server->negotiating++ >= NEGOTIATING_MAX)
        turn_oldest_away(server);
    *out = conn;
    return 0;
}

static void
start_conn(struct nbd_server *server, struct nbd_conn *conn)
{
    uint64_t timeout_ns = server->config.handshake_timeout_ms * MS_NS;
    nbd_conn_start(conn, &server->directory, loop_now_ns(server->loop) + timeout_ns);
}

static void
client_accepted(void *ctx, int fd, const char *peer)
{
    struct nbd_server *server = ctx;
    struct nbd_conn *conn;
    if (add_conn(server, fd, fd, peer, &conn) == 0)
        start_conn(server, conn);
}

int
nbd_server_serve_fd(struct nbd_server *server, int fd_in, int fd_out, void (*closed)(void *ctx),
                    void *ctx)
{
    struct nbd_conn *conn;
    loop_assert_thread(server->loop);
    int err = add_conn(server, fd_in, fd_out, fd_in == fd_out ? "a socket" : "stdio", &conn);
    if (err < 0)
        return err;
    conn->closed = closed;
    conn->closed_ctx = ctx;
    start_conn(server, conn);
    return 0;
}

static void
conn_arrives(struct mail *mail)
{
    nbd_conn_enter(CONTAINER_OF(mail, struct nbd_conn, mail));
}

/* It has chosen an export (its `chosen` was admitted in this very turn). */
static void
conn_negotiated(struct nbd_conn *conn)
{
    struct nbd_server *server = conn->owner_ctx;
    struct nbd_lane *lane = &server->lanes[server->lane_next++ % server->config.loop_count];
    conn->export = conn->handshake.chosen;
    conn->export->connections++;
    server->directory.connections++;
    server->negotiating--;
    conn->seated = true;
    if (pool_init(&conn->requests, sizeof(struct nbd_request), server->config.in_flight_max) < 0)
        tell(conn, NBD_WANT_END);
    nbd_conn_leave(conn, lane);
    if (lane == &server->lanes[0]) {
        nbd_conn_enter(conn);
    } else {
        conn->mail.deliver = conn_arrives;
        mailbox_post(lane->mailbox, &conn->mail);
    }
}

static void check_stopped(struct nbd_server *server);

/* Nobody uses it any more: no client, no parting flush. */
static void
export_unused(struct nbd_export *export)
{
    void (*removed)(void *ctx) = export->removed;
    if (export->connections != 0 || export->parting.running || removed == NULL)
        return;
    export->removed = NULL;
    removed(export->removed_ctx);
}

/* ---- the last client leaves ----------------------------------------------------------------- */
static void part(struct nbd_server *server, struct nbd_export *export);

static void
parted(struct req *req)
{
    struct nbd_parting *parting = CONTAINER_OF(req, struct nbd_parting, req);
    struct nbd_export *export = CONTAINER_OF(parting, struct nbd_export, parting);
    struct nbd_server *server = parting->server;
    if (req->err != 0)
        msg(MSG_WARNING, "nbd: %s: the flush after its last client failed: %s", export->name,
            strerror(-req->err));
    nbd_lane_port_put(&server->lanes[0], parting->port);
    parting->running = false;
    server->partings--;
    if (parting->again)
        part(server, export);
    export_unused(export);
    check_stopped(server);
}

static void
part(struct nbd_server *server, struct nbd_export *export)
{
    struct nbd_parting *parting = &export->parting;
    parting->again = parting->running;
    if (parting->running || export->read_only)
        return;
    parting->port = nbd_lane_port_get(&server->lanes[0], export, 1);
    if (parting->port == NULL)
        return; /* no memory, and nobody was promised anything */
    parting->server = server;
    parting->running = true;
    server->partings++;
    parting->req = (struct req){.op = REQ_FLUSH, .done = parted};
    dev_submit(parting->port->dev, &parting->req);
}

static void
export_left(struct nbd_server *server, struct nbd_export *export)
{
    if (--export->connections == 0)
        part(server, export);
    export_unused(export);
}

static void
conn_home(struct nbd_conn *conn)
{
    struct nbd_server *server = conn->owner_ctx;
    void (*closed)(void *ctx) = conn->closed;
    void *closed_ctx = conn->closed_ctx;
    struct nbd_export *export = conn->export;
    list_remove(&conn->owner_node);
    if (conn->seated)
        server->directory.connections--;
    else
        server->negotiating--;
    nbd_conn_free(conn);
    if (export != NULL)
        export_left(server, export);
    if (closed != NULL)
        closed(closed_ctx);
    check_stopped(server);
}

static void
conn_comes_home(struct mail *mail)
{
    conn_home(CONTAINER_OF(mail, struct nbd_conn, mail));
}

static void
conn_ended(struct nbd_conn *conn)
{
    struct nbd_server *server = conn->owner_ctx;
    if (conn->lane == &server->lanes[0]) {
        conn_home(conn);
        return;
    }
    conn->mail.deliver = conn_comes_home;
    mailbox_post(server->lanes[0].mailbox, &conn->mail);
}

/* ---- listeners and exports ---------------------------------------------------------------- */
static int
room_for_listener(const struct nbd_server *server, struct diag *diag)
{
    loop_assert_thread(server->loop);
    if (server->listener_count < LISTENERS_MAX)
        return 0;
    return diag_set(diag, DIAG_REFUSED, "E_LISTEN", -ENOSPC, "no more than %d sockets",
                    LISTENERS_MAX);
}

int
nbd_server_listen_unix(struct nbd_server *server, const char *path, struct diag *diag)
{
    int err = room_for_listener(server, diag);
    if (err == 0)
        err = nbd_listen_unix(&server->listeners[server->listener_count], server->loop, path,
                              client_accepted, server, diag);
    if (err == 0)
        server->listener_count++;
    return err;
}

int
nbd_server_listen_tcp(struct nbd_server *server, const char *address, struct diag *diag)
{
    int err = room_for_listener(server, diag);
    if (err == 0)
        err = nbd_listen_tcp(&server->listeners[server->listener_count], server->loop, address,
                             client_accepted, server, diag);
    if (err == 0)
        server->listener_count++;
    return err;
}

int
nbd_server_add(struct nbd_server *server, struct nbd_export *export)
{
    loop_assert_thread(server->loop);
    check(is_pow2(export->preferred_bytes));
    check_ge(export->preferred_bytes, 512);
    check_lt(export->size_bytes, UINT64_C(1) << 63); /* clients take it for a signed number */
    list_for_each (node, &server->directory.exports) {
        if (strcmp(CONTAINER_OF(node, struct nbd_export, node)->name, export->name) == 0)
            return -EEXIST;
    }
    export->connections = 0;
    export->removed = NULL;
    export->parting = (struct nbd_parting){0};
    list_push_back(&server->directory.exports, &export->node);
    return 0;
}

void
nbd_server_remove(struct nbd_server *server, struct nbd_export *export, void (*done)(void *ctx),
                  void *ctx)
{
    loop_assert_thread(server->loop);
    list_remove(&export->node);
    export->removed = done;
    export->removed_ctx = ctx;
    if (export->connections == 0) {
        export_unused(export);
        return;
    }
    list_for_each (node, &server->conns) {
        struct nbd_conn *conn = CONTAINER_OF(node, struct nbd_conn, owner_node);
        if (conn->export == export)
            tell(conn, NBD_WANT_REFUSE);
    }
}

/* ---- stopping ----------------------------------------------------------------------------- */
static void
report_stopped(struct nbd_server *server)
{
    void (*stopped)(void *ctx) = server->stopped;
    server->stopped = NULL;
    if (stopped != NULL)
        stopped(server->stopped_ctx);
}

static void
free_server(struct nbd_server *server)
{
    if (server->lanes != NULL)
        for (uint32_t i = server->config.loop_count; i-- > 0;)
            nbd_lane_destroy(&server->lanes[i]);
    free(server->lanes);
    free(server);
}

static void
server_free_step(struct loop_step *step)
{
    struct nbd_server *server = CONTAINER_OF(step, struct nbd_server, free_step);
    struct nbd_server last = *server;
    loop_timer_cancel(&server->stop_timer);
    while (list_pop_front(&server->directory.exports) != NULL)
        ; /* the caller's again */
    free_server(server);
    report_stopped(&last);
}

static void
lane_gone(struct mail *mail)
{
    struct nbd_lane *lane = CONTAINER_OF(mail, struct nbd_lane, gone);
    struct nbd_server *server = lane->owner_ctx;
    if (++server->lanes_gone == server->config.loop_count)
        loop_defer(server->loop, &server->free_step);
}

static void
check_stopped(struct nbd_server *server)
{
    if (!server->stopping || server->leaving || !list_empty(&server->conns) ||
        server->partings != 0)
        return;
    server->leaving = true;
    for (uint32_t i = 0; i < server->config.loop_count; i++)
        nbd_lane_leave(&server->lanes[i], server->lanes[0].mailbox);
}

static void
tell_all(struct nbd_server *server, enum nbd_wanted wanted)
{
    list_for_each (node, &server->conns)
        tell(CONTAINER_OF(node, struct nbd_conn, owner_node), wanted);
}

static void
stop_timer_fired(struct loop_timer *timer)
{
    struct nbd_server *server = CONTAINER_OF(timer, struct nbd_server, stop_timer);
    static const enum nbd_wanted cut = NBD_WANT_END;
    struct list_node *oldest = list_first(&server->conns);
    if (server->leaving)
        return;
    bool again = oldest != NULL &&
                 __atomic_load_n(&CONTAINER_OF(oldest, struct nbd_conn, owner_node)->wanted,
                                 __ATOMIC_RELAXED) != cut;
    tell_all(server, cut);
    if (again) {
        loop_timer_set(server->loop, timer, loop_now_ns(server->loop) + CUT_NS);
        return;
    }
    msg(MSG_WARNING, "nbd: stopped while a device still holds requests");
    report_stopped(server);
}

void
nbd_server_stop(struct nbd_server *server, enum nbd_stop mode, uint32_t timeout_ms,
                void (*stopped)(void *ctx), void *ctx)
{
    loop_assert_thread(server->loop);
    check(!server->stopping);
    server->stopping = true;
    server->stopped = stopped;
    server->stopped_ctx = ctx;
    while (server->listener_count != 0)
        nbd_listener_close(server->listeners[--server->listener_count]);
    loop_timer_set(server->loop, &server->stop_timer,
                   loop_now_ns(server->loop) + timeout_ms * MS_NS);
    tell_all(server, mode == NBD_STOP_RESTART ? NBD_WANT_DRAIN : NBD_WANT_REFUSE);
    check_stopped(server);
}

/* ---- what it knows ------------------------------------------------------------------------ */
static uint64_t
counted(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

uint32_t
nbd_server_clients(struct nbd_server *server, struct nbd_client_status *out, uint32_t max)
{
    uint32_t count = 0;
    loop_assert_thread(server->loop);
    list_for_each (node, &server->conns) {
        struct nbd_conn *conn = CONTAINER_OF(node, struct nbd_conn, owner_node);
        if (!conn->seated || count++ >= max)
            continue;
        struct nbd_client_status *status = &out[count - 1];
        *status = (struct nbd_client_status){
            .requests = counted(&conn->request_count),
            .in_flight = __atomic_load_n(&conn->in_flight, __ATOMIC_RELAXED),
            .bytes_in = counted(&conn->bytes_in),
            .bytes_out = counted(&conn->bytes_out),
        };
        snprintf(status->peer, sizeof(status->peer), "%s", conn->peer);
        snprintf(status->export_name, sizeof(status->export_name), "%s", conn->export->name);
    }
    return count;
}

/* ---- beginning ---------------------------------------------------------------------------- */
#define OR_DEFAULT(value, otherwise) ((value) != 0 ? (value) : (otherwise))

static void
fill_defaults(struct nbd_server_config *config)
{
    config->payload_bytes = OR_DEFAULT(config->payload_bytes, MIB(256));
    config->connections_max = OR_DEFAULT(config->connections_max, 64u);
    config->connections_max_per_export = OR_DEFAULT(config->connections_max_per_export, 16u);
    config->handshake_timeout_ms = OR_DEFAULT(config->handshake_timeout_ms, 10000u);
    config->in_flight_max = OR_DEFAULT(config->in_flight_max, 128u);
}

int
nbd_server_create(struct nbd_server **out, const struct nbd_server_config *config,
                  struct diag *diag)
{
    check_gt(config->loop_count, 0);
    struct nbd_server *server = calloc(1, sizeof(*server));
    struct nbd_lane *lanes = calloc(config->loop_count, sizeof(*lanes));
    if (server == NULL || lanes == NULL) {
        free(server);
        free(lanes);
        return diag_set(diag, DIAG_FAILED, "E_NO_MEMORY", -ENOMEM, "no memory for the server");
    }
    *server = (struct nbd_server){
        .loop = config->loops[0],
        .config = *config,
        .lanes = lanes,
        .stop_timer.fired = stop_timer_fired,
        .free_step.run = server_free_step,
    };
    fill_defaults(&server->config);
    list_init(&server->conns);
    nbd_directory_init(&server->directory, server->config.connections_max,
                       server->config.connections_max_per_export);
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < config->loop_count; i++) {
        err = nbd_lane_init(&lanes[i], config->loops[i], server->config.payload_bytes);
        lanes[i].owner_ctx = server;
        lanes[i].gone.deliver = lane_gone;
    }
    if (err < 0) {
        free_server(server);
        return diag_set(diag, DIAG_FAILED, "E_NO_MEMORY", err,
                        "cannot reserve %llu bytes of payload memory for each loop",
                        (unsigned long long)config->payload_bytes);
    }
    server->config.loops = NULL; /* the caller's array may be gone */
    *out = server;
    return 0;
}
