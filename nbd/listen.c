#include "nbd/listen.h"

#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "engine/base/check.h"
#include "engine/base/msg.h"

/* Clients taken in one turn, so that a storm of them does not hold up those who are served. */
#define ACCEPTS_PER_TURN 16
/* Without descriptors, look away for so long: some client may leave. */
#define BACK_OFF_NS (100 * MS_NS)

struct nbd_listener {
    struct loop *loop;
    struct loop_fd watch;
    struct loop_timer back_off;
    nbd_accepted *accepted;
    void *ctx;
    int spare_fd;      /* given up for a moment to turn a client away when there are no others */
    char path[108];    /* "": not a unix socket */
    dev_t path_device; /* to remove only what we made */
    ino_t path_inode;
    struct msg_limit complaints;
};

static void
describe_peer(int fd, char peer[128])
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof(address);
    struct ucred who = {0};
    char host[64], port[16];
    snprintf(peer, 128, "unknown");
    if (getpeername(fd, (struct sockaddr *)&address, &bytes) < 0)
        return;
    if (address.ss_family != AF_UNIX) {
        if (getnameinfo((struct sockaddr *)&address, bytes, host, sizeof(host), port, sizeof(port),
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0)
            snprintf(peer, 128, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
        return;
    }
    bytes = sizeof(who);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0)
        snprintf(peer, 128, "unix:pid=%ld,uid=%ld", (long)who.pid, (long)who.uid);
}

static int
open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* No descriptor for the client: turn it away with the spare one, so that it does not wait for a
 * greeting that never comes, and look away for a while. */
static void
out_of_descriptors(struct nbd_listener *listener)
{
    uint64_t now = loop_now_ns(listener->loop);
    if (msg_allowed(&listener->complaints, now, 1))
        msg(MSG_WARNING, "nbd: no file descriptors left for another client");
    if (listener->spare_fd >= 0) {
        close(listener->spare_fd);
        int fd = accept4(listener->watch.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            close(fd);
        listener->spare_fd = open_spare();
    }
    loop_unwatch(&listener->watch);
    loop_timer_set(listener->loop, &listener->back_off, now + BACK_OFF_NS);
}

static void
backed_off(struct loop_timer *timer)
{
    struct nbd_listener *listener = CONTAINER_OF(timer, struct nbd_listener, back_off);
    if (listener->spare_fd < 0)
        listener->spare_fd = open_spare();
    if (loop_watch(listener->loop, &listener->watch) < 0)
        loop_timer_set(listener->loop, timer, loop_now_ns(listener->loop) + BACK_OFF_NS);
}

static void
accept_clients(struct loop_fd *watch, uint32_t events)
{
    struct nbd_listener *listener = CONTAINER_OF(watch, struct nbd_listener, watch);
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        char peer[128];
        int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                out_of_descriptors(listener);
            return; /* what else there is concerns a client that has left already */
        }
        describe_peer(fd, peer);
        listener->accepted(listener->ctx, fd, peer);
    }
}

/* Takes the fd; it is bound. */
static int
start(struct nbd_listener **out, struct nbd_listener *listener, int fd, struct loop *loop)
{
    listener->loop = loop;
    listener->watch = (struct loop_fd){.fd = fd, .events = EPOLLIN, .ready = accept_clients};
    listener->back_off.fired = backed_off;
    listener->spare_fd = open_spare();
    int err = listen(fd, SOMAXCONN) < 0 ? -errno : loop_watch(loop, &listener->watch);
    if (err == 0)
        *out = listener;
    else
        nbd_listener_close(listener);
    return err;
}

void
nbd_listener_close(struct nbd_listener *listener)
{
    struct stat st;
    if (listener == NULL)
        return;
    loop_unwatch(&listener->watch);
    loop_timer_cancel(&listener->back_off);
    if (listener->path[0] != '\0' && lstat(listener->path, &st) == 0 &&
        st.st_dev == listener->path_device && st.st_ino == listener->path_inode)
        (void)unlink(listener->path);
    close(listener->watch.fd);
    if (listener->spare_fd >= 0)
        close(listener->spare_fd);
    free(listener);
}

/* ---- unix -------------------------------------------------------------------------------- */
/* Remove the socket that a server which is no more has left.  Only a refused connect() proves it.
 */
static int
remove_stale(const struct sockaddr_un *address)
{
    struct stat st;
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (lstat(address->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode))
        return -EEXIST;
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
        errno != ECONNREFUSED)
        return -EADDRINUSE;
    return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* A socket bound to the path, which nobody but us may connect to, from its first instant. */
static int
bind_unix(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int err = fchmod(fd, 0600) < 0 ? -errno : 0; /* bind() gives the file this mode */
    for (int attempt = 0; err == 0 && attempt < 2; attempt++) {
        if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
            return fd;
        err = -errno;
        if (err == -EADDRINUSE && attempt == 0)
            err = remove_stale(address);
    }
    close(fd);
    return err;
}

static int
cannot_listen(struct diag *diag, const char *where, int err)
{
    if (err == -EADDRINUSE)
        return diag_set(diag, DIAG_REFUSED, "E_IN_USE", err, "another server is listening on %s",
                        where);
    return diag_set(diag, DIAG_FAILED, "E_LISTEN", err, "cannot listen on %s: %s", where,
                    strerror(-err));
}

int
nbd_listen_unix(struct nbd_listener **out, struct loop *loop, const char *path,
                nbd_accepted *accepted, void *ctx, struct diag *diag)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    if (path[0] == '\0' || strlen(path) >= sizeof(address.sun_path))
        return diag_set(diag, DIAG_USAGE, "E_LISTEN_ADDRESS", -EINVAL,
                        "a socket's path has 1 to %zu bytes: %s", sizeof(address.sun_path) - 1,
                        path);
    strcpy(address.sun_path, path);
    struct nbd_listener *listener = calloc(1, sizeof(*listener));
    int fd = listener == NULL ? -ENOMEM : bind_unix(&address);
    if (fd < 0) {
        free(listener);
        return cannot_listen(diag, path, fd);
    }
    listener->accepted = accepted;
    listener->ctx = ctx;
    if (lstat(path, &st) == 0) {
        strcpy(listener->path, path);
        listener->path_device = st.st_dev;
        listener->path_inode = st.st_ino;
    }
    int err = start(out, listener, fd, loop);
    return err < 0 ? cannot_listen(diag, path, err) : 0;
}

/* ---- TCP --------------------------------------------------------------------------------- */
/* ADDR:PORT, [ADDR]:PORT or :PORT.  host is "" for all addresses. */
static bool
split_address(const char *address, char host[64], char port[8])
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon[1] == '\0' || strlen(colon + 1) > 5 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    size_t bytes = (size_t)(colon - address);
    bool brackets = bytes >= 2 && address[0] == '[' && colon[-1] == ']';
    if (brackets) {
        address++;
        bytes -= 2;
    }
    if (bytes >= 64 || (!brackets && memchr(address, ':', bytes) != NULL))
        return false;
    memcpy(host, address, bytes);
    host[bytes] = '\0';
    strcpy(port, colon + 1);
    return true;
}

static int
bind_tcp(const struct addrinfo *info, bool all)
{
    int yes = 1, only6 = !all;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (info->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only6, sizeof(only6));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0)
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

/* "" means every address: a v6 socket that takes v4 too, or v4 alone where there is no v6. */
static int
open_tcp(const char *host, const char *port, int *fd)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    bool all = host[0] == '\0';
    struct addrinfo *info = NULL;
    if (getaddrinfo(all ? "::" : host, port, &hints, &info) != 0)
        return -EINVAL;
    *fd = bind_tcp(info, all);
    freeaddrinfo(info);
    if (*fd >= 0 || !all || *fd == -EADDRINUSE)
        return 0;
    if (getaddrinfo("0.0.0.0", port, &hints, &info) != 0)
        return -EINVAL;
    *fd = bind_tcp(info, all);
    freeaddrinfo(info);
    return 0;
}

int
nbd_listen_tcp(struct nbd_listener **out, struct loop *loop, const char *address,
               nbd_accepted *accepted, void *ctx, struct diag *diag)
{
    char host[64], port[8];
    int fd = -1;
    if (!split_address(address, host, port) || open_tcp(host, port, &fd) < 0)
        return diag_set(diag, DIAG_USAGE, "E_LISTEN_ADDRESS", -EINVAL,
                        "'%s' is not ADDRESS:PORT, [ADDRESS]:PORT or :PORT", address);
    if (fd < 0)
        return cannot_listen(diag, address, fd);
    struct nbd_listener *listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        close(fd);
        return cannot_listen(diag, address, -ENOMEM);
    }
    listener->accepted = accepted;
    listener->ctx = ctx;
    int err = start(out, listener, fd, loop);
    return err < 0 ? cannot_listen(diag, address, err) : 0;
}
