/* How bytes come and go: a small vtable, so that the rest does not know about sockets or TLS. */
#pragma once

#include <sys/uio.h>

#include "engine/base/compiler.h"

struct nbd_transport;

struct nbd_transport_ops {
    /* Required.  Bytes moved (> 0), 0 for end of file (recv), -EAGAIN when it would wait, or
     * another negative errno when the peer is lost.  Never blocks, never raises SIGPIPE. */
    ssize_t (*recv)(struct nbd_transport *transport, struct iovec *iov, uint32_t count);
    ssize_t (*send)(struct nbd_transport *transport, const struct iovec *iov, uint32_t count);
    /* Required.  Closes the descriptors and frees it. */
    void (*close)(struct nbd_transport *transport);
};

struct nbd_transport {
    const struct nbd_transport_ops *ops;
    int fd_in, fd_out; /* to wait for; may be the same */
};

/* Owns the descriptors, also when it fails.  Sets TCP_NODELAY and keepalive where they apply.
 * 0 or negative errno. */
MUST_CHECK int nbd_transport_sock_create(struct nbd_transport **out, int fd_in, int fd_out);
