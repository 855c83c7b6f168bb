/* The NBD server: listeners, connections, exports (research/nbd.md).
 *
 * Lives on loops[0]; connections are spread over all loops. */
#pragma once

#include "engine/base/diag.h"

#include "nbd/export.h"

struct nbd_server;

struct nbd_server_config {
    struct loop **loops; /* loops[0] is where the server's functions may be called */
    uint32_t loop_count;
    uint64_t payload_bytes;              /* budget for payloads of each loop; 0: 256 MiB */
    uint32_t connections_max;            /* 0: 64 */
    uint32_t connections_max_per_export; /* 0: 16 */
    uint32_t handshake_timeout_ms;       /* 0: 10000 */
    uint32_t in_flight_max;              /* requests of a connection; 0: 128 */
};

/* Call it before the other loops' threads run. */
MUST_CHECK int nbd_server_create(struct nbd_server **out, const struct nbd_server_config *config,
                                 struct diag *diag);
/* Listen on a unix socket, mode 0600.  A stale socket file is replaced; one that answers is
 * E_IN_USE.  The file is removed when the server goes. */
MUST_CHECK int nbd_server_listen_unix(struct nbd_server *server, const char *path,
                                      struct diag *diag);
/* ADDR:PORT, [ADDR]:PORT, :PORT.  The caller has checked that plaintext was asked for. */
MUST_CHECK int nbd_server_listen_tcp(struct nbd_server *server, const char *address,
                                     struct diag *diag);
/* Serve one client on a connected descriptor (a socketpair, or stdin/stdout as two fds). closed()
 * when it has gone. */
MUST_CHECK int nbd_server_serve_fd(struct nbd_server *server, int fd_in, int fd_out,
                                   void (*closed)(void *ctx), void *ctx);

/* The export stays the caller's until remove's done(), or until the server has stopped. -EEXIST:
 * the name is taken. */
MUST_CHECK int nbd_server_add(struct nbd_server *server, struct nbd_export *export);
/* Stop serving it: new requests get ESHUTDOWN, in-flight ones end, then done(), which may be
 * called from inside when nobody is connected. */
void nbd_server_remove(struct nbd_server *server, struct nbd_export *export,
                       void (*done)(void *ctx), void *ctx);

enum nbd_stop {
    NBD_STOP_RESTART, /* finish what is in flight, close without error replies: clients retry */
    NBD_STOP_FINAL,   /* answer ESHUTDOWN, then close */
};
/* Close listeners and connections; idle clients do not delay it; stopped() at the latest shortly
 * after timeout_ms, and then the server is gone.  (Should a device still hold requests then, their
 * memory and what the loops know of it stay until it answers.)  Not called from inside. */
void nbd_server_stop(struct nbd_server *server, enum nbd_stop mode, uint32_t timeout_ms,
                     void (*stopped)(void *ctx), void *ctx);

struct nbd_client_status {
    char peer[128], export_name[256];
    uint64_t requests, in_flight, bytes_in, bytes_out;
    bool structured;
};
/* Copies up to max; returns how many there are (of loops other than the first: a snapshot). */
uint32_t nbd_server_clients(struct nbd_server *server, struct nbd_client_status *out, uint32_t max);
