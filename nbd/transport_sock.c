/* Sockets, and for --stdio whatever the two descriptors are. */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "nbd/transport.h"

/* A dead TCP peer is noticed after about this long, in either direction. */
#define DEAD_PEER_S 60

struct sock {
    struct nbd_transport transport;
    int flags_in, flags_out; /* to restore: somebody else may share the open file */
};

static ssize_t
result(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
}

static ssize_t
sock_recv(struct nbd_transport *transport, struct iovec *iov, uint32_t count)
{
    if (count == 1)
        return result(recv(transport->fd_in, iov->iov_base, iov->iov_len, MSG_DONTWAIT));
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    return result(recvmsg(transport->fd_in, &message, MSG_DONTWAIT));
}

static ssize_t
sock_send(struct nbd_transport *transport, const struct iovec *iov, uint32_t count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count};
    return result(sendmsg(transport->fd_out, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static ssize_t
file_recv(struct nbd_transport *transport, struct iovec *iov, uint32_t count)
{
    return result(readv(transport->fd_in, iov, (int)count));
}

static ssize_t
file_send(struct nbd_transport *transport, const struct iovec *iov, uint32_t count)
{
    return result(writev(transport->fd_out, iov, (int)count));
}

static void
sock_close(struct nbd_transport *transport)
{
    struct sock *sock = CONTAINER_OF(transport, struct sock, transport);
    if (sock->flags_in >= 0)
        (void)fcntl(transport->fd_in, F_SETFL, sock->flags_in);
    if (sock->flags_out >= 0)
        (void)fcntl(transport->fd_out, F_SETFL, sock->flags_out);
    (void)shutdown(transport->fd_out, SHUT_WR); /* what was sent arrives before the end does */
    if (transport->fd_out != transport->fd_in)
        close(transport->fd_out);
    close(transport->fd_in);
    free(sock);
}

static const struct nbd_transport_ops sock_ops = {sock_recv, sock_send, sock_close};
static const struct nbd_transport_ops file_ops = {file_recv, file_send, sock_close};

static bool
is_socket(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void
set_option(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof(value)); /* a nicety each: may fail */
}

static void
tune_socket(int fd)
{
    int domain = 0;
    socklen_t bytes = sizeof(domain);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0)
        return;
    if (domain != AF_INET && domain != AF_INET6)
        return;
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); /* or each reply waits 40 ms for an ACK */
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, DEAD_PEER_S / 2);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, DEAD_PEER_S / 6);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, DEAD_PEER_S * 1000);
}

/* Sockets take MSG_DONTWAIT with each call; the rest must be told once. */
static int
make_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return flags;
}

int
nbd_transport_sock_create(struct nbd_transport **out, int fd_in, int fd_out)
{
    struct sock *sock = calloc(1, sizeof(*sock));
    int err = sock == NULL ? -ENOMEM : 0;
    bool files = !is_socket(fd_in) || !is_socket(fd_out);
    if (err == 0) {
        *sock = (struct sock){.transport = {files ? &file_ops : &sock_ops, fd_in, fd_out},
                              .flags_in = -1,
                              .flags_out = -1};
        tune_socket(fd_in);
        if (files) {
            signal(SIGPIPE, SIG_IGN); /* a pipe has no MSG_NOSIGNAL */
            sock->flags_in = make_nonblocking(fd_in);
            sock->flags_out = fd_in == fd_out ? -1 : make_nonblocking(fd_out);
            err = MIN(sock->flags_in, 0);
        }
    }
    if (err != 0) {
        free(sock);
        if (fd_out != fd_in)
            close(fd_out);
        close(fd_in);
        return err;
    }
    *out = &sock->transport;
    return 0;
}
