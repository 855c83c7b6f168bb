/* THEORY OF OPERATION
 *
 * A connection reads until a newline, hands the line over, and reads on when it is answered:
 *
 *     READING --line--> ASKED --answer--> WRITING --all out--> READING
 *
 *  S1  A connection in ASKED is not read from: at most one line per connection is in memory, at
 * most LINE_BYTES_MAX long, and at most CLIENTS_MAX connections. S2  A connection that goes while
 * ASKED leaves its struct to the answer, which frees it. */
#include "cli/ctl_server.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "engine/base/msg.h"
#include "engine/base/units.h"

#include "cli/json_fields.h"

#define LINE_BYTES_MAX MIB(1)
#define CLIENTS_MAX    32u

struct ctl_call {
    struct list_node node;
    struct ctl_server *server; /* NULL: the server has gone */
    struct loop_fd watch;      /* fd -1: the client has gone */
    char *line;                /* being read; room bytes */
    size_t have, room;
    bool asked;
    bool last; /* hang up when the answer is out */
    json_t *request;
    char *out; /* being written */
    size_t out_bytes, out_sent;
};

struct ctl_server {
    struct loop *loop;
    struct loop_fd listener;
    struct list clients;
    uint32_t client_count;
    struct ctl_handler handler;
    char path[108];
};

/* ---- connections --------------------------------------------------------------------------- */

static void
free_call(struct ctl_call *call)
{
    json_decref(call->request);
    free(call->line);
    free(call->out);
    free(call);
}

static void
hang_up(struct ctl_call *call)
{
    loop_unwatch(&call->watch);
    close(call->watch.fd);
    call->watch.fd = -1;
    list_remove(&call->node);
    struct ctl_server *server = call->server;
    call->server = NULL;
    if (server->client_count-- == CLIENTS_MAX)
        loop_rewatch(&server->listener, EPOLLIN);
    if (!call->asked) /* S2 */
        free_call(call);
}

static void
send_json(struct ctl_call *call, json_t *answer)
{
    call->asked = false;
    json_decref(call->request);
    call->request = NULL;
    if (call->watch.fd < 0) { /* S2 */
        json_decref(answer);
        free_call(call);
        return;
    }
    json_object_set_new(answer, "sr5", json_integer(1));
    call->out = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    check(call->out != NULL);
    call->out_bytes = strlen(call->out) + 1;
    call->out[call->out_bytes - 1] = '\n'; /* in place of the NUL */
    call->out_sent = 0;
    loop_rewatch(&call->watch, EPOLLOUT);
}

void
ctl_answer(struct ctl_call *call, json_t *result)
{
    check(result != NULL);
    send_json(call, json_pack("{s:o}", "result", result));
}

void
ctl_refuse(struct ctl_call *call, const struct diag *diag)
{
    json_t *fix = json_array();
    for (unsigned i = 0; i < DIAG_FIX_MAX && diag->fix[i][0] != '\0'; i++)
        json_array_append_new(fix, json_bytes(diag->fix[i]));
    send_json(call,
              json_pack("{s:{s:i, s:s, s:o, s:o}}", "error", "class", (int)diag->class, "code",
                        diag->code, "message", json_bytes(diag->message), "fix", fix));
}

static void
refuse_line(struct ctl_call *call, const char *why)
{
    struct diag diag;
    (void)diag_set(&diag, DIAG_USAGE, "E_PROTOCOL", -EPROTO, "%s", why);
    ctl_refuse(call, &diag);
}

/* ---- a request ------------------------------------------------------------------------------- */

static void
take_line(struct ctl_call *call, size_t line_bytes)
{
    json_error_t where;
    call->asked = true;
    loop_rewatch(&call->watch, 0);
    call->request = json_loadb(call->line, line_bytes, JSON_REJECT_DUPLICATES, &where);
    call->have -= line_bytes + 1;
    memmove(call->line, call->line + line_bytes + 1, call->have);
    const json_t *version = json_object_get(call->request, "sr5");
    const json_t *verb = json_object_get(call->request, "verb");
    const json_t *args = json_object_get(call->request, "args");
    if (!json_is_object(call->request))
        refuse_line(call, "a request is one JSON object on one line");
    else if (json_integer_value(version) != 1)
        refuse_line(call, "this daemon speaks version 1: \"sr5\": 1");
    else if (!json_is_string(verb) || (args != NULL && !json_is_object(args)))
        refuse_line(call, "a request has a \"verb\", and \"args\" that are an object");
    else
        call->server->handler.handle(call->server->handler.ctx, call, json_string_value(verb),
                                     args);
}

/* More bytes; false when the client has gone or is hung up on. */
static bool
receive(struct ctl_call *call)
{
    check_lt(call->have, LINE_BYTES_MAX); /* step() sees to it */
    if (call->have == call->room) {
        call->room = MAX(2 * call->room, KIB(4));
        call->line = realloc(call->line, call->room);
        check(call->line != NULL);
    }
    ssize_t n = recv(call->watch.fd, call->line + call->have, call->room - call->have, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    call->have += (size_t)n;
    return n > 0;
}

static bool
transmit(struct ctl_call *call)
{
    ssize_t n = send(call->watch.fd, call->out + call->out_sent, call->out_bytes - call->out_sent,
                     MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    call->out_sent += (size_t)n;
    if (call->out_sent < call->out_bytes)
        return true;
    free(call->out);
    call->out = NULL;
    if (call->last)
        return false;
    loop_rewatch(&call->watch, EPOLLIN);
    return true;
}

/* Hand over a whole line, if there is one; cut off one that has no end. */
static void
step(struct ctl_call *call)
{
    const char *end = call->have != 0 ? memchr(call->line, '\n', call->have) : NULL;
    if (call->asked || call->out != NULL)
        return;
    if (end != NULL) {
        take_line(call, (size_t)(end - call->line));
    } else if (call->have == LINE_BYTES_MAX) {
        call->last = true;
        refuse_line(call, "a request has at most 1 MiB");
    }
}

static void
client_ready(struct loop_fd *watch, uint32_t events)
{
    struct ctl_call *call = CONTAINER_OF(watch, struct ctl_call, watch);
    bool alive = true;
    if (call->asked) /* nothing is watched but the end */
        alive = (events & (EPOLLHUP | EPOLLERR)) == 0;
    else if (call->out != NULL)
        alive = transmit(call);
    else
        alive = receive(call);
    if (!alive)
        hang_up(call);
    else
        step(call);
}

/* ---- the listener ---------------------------------------------------------------------------- */

static bool
peer_allowed(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static void
listener_ready(struct loop_fd *watch, uint32_t events)
{
    struct ctl_server *server = CONTAINER_OF(watch, struct ctl_server, listener);
    (void)events;
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct ctl_call *call = peer_allowed(fd) ? calloc(1, sizeof(*call)) : NULL;
    if (call == NULL) {
        close(fd);
        return;
    }
    call->server = server;
    call->watch = (struct loop_fd){.fd = fd, .events = EPOLLIN, .ready = client_ready};
    if (loop_watch(server->loop, &call->watch) < 0) {
        close(fd);
        free(call);
        return;
    }
    list_push_back(&server->clients, &call->node);
    if (++server->client_count == CLIENTS_MAX)
        loop_rewatch(&server->listener, 0); /* S1: the rest waits in the backlog */
}

/* Does somebody listen there? */
static bool
answers(const struct sockaddr_un *address)
{
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
}

static int
listen_at(struct ctl_server *server, struct diag *diag)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    memcpy(address.sun_path, server->path, sizeof(address.sun_path));
    if (answers(&address)) {
        (void)diag_set(diag, DIAG_BUSY, "E_IN_USE", -EADDRINUSE, "another sr5d answers on %s",
                       server->path);
        diag_fix(diag, "stop it, or choose other sockets: --control PATH --socket PATH");
        return -EADDRINUSE;
    }
    if (lstat(server->path, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(server->path); /* left by one that was killed */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    server->listener.fd = fd;
    mode_t mask = umask(0177);
    int err = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
                      listen(fd, SOMAXCONN) < 0
                  ? -errno
                  : 0;
    umask(mask);
    if (err == 0)
        err = loop_watch(server->loop, &server->listener);
    if (err < 0)
        return diag_set(diag, DIAG_FAILED, "E_OPEN", err, "cannot listen on %s: %s", server->path,
                        strerror(-err));
    return 0;
}

int
ctl_server_create(struct ctl_server **out, struct loop *loop, const char *path,
                  const struct ctl_handler *handler, struct diag *diag)
{
    struct ctl_server *server = calloc(1, sizeof(*server));
    check(server != NULL);
    check_lt(strlen(path), sizeof(server->path));
    server->loop = loop;
    server->handler = *handler;
    server->listener = (struct loop_fd){.fd = -1, .events = EPOLLIN, .ready = listener_ready};
    snprintf(server->path, sizeof(server->path), "%s", path);
    list_init(&server->clients);
    int err = listen_at(server, diag);
    if (err < 0) {
        if (server->listener.fd >= 0)
            close(server->listener.fd);
        free(server);
        return err;
    }
    *out = server;
    return 0;
}

void
ctl_server_destroy(struct ctl_server *server)
{
    if (server == NULL)
        return;
    list_for_each_safe (node, &server->clients) {
        hang_up(CONTAINER_OF(node, struct ctl_call, node));
    }
    loop_unwatch(&server->listener);
    close(server->listener.fd);
    unlink(server->path);
    free(server);
}
