/* An export: a device under a name, as clients see it. */
#pragma once

#include "engine/base/dev.h"

#include "engine/loop/mailbox.h"

struct nbd_port;

/* The flush after the last client has left: leaving is no barrier, but nobody is there any more
 * who could ask for one.  Nobody waits for it but those who want the export back. */
struct nbd_parting {
    struct req req;
    void *server;
    struct nbd_port *port;
    bool running, again; /* again: somebody came and left while it ran */
};

struct nbd_export {
    char name[256];
    char description[256]; /* level, members, stripe width; for NBD_INFO_DESCRIPTION */
    struct dev *dev;
    struct mailbox *owner; /* a mailbox of the loop that owns dev (for connections on others) */
    struct loop *owner_loop;
    uint64_t size_bytes;
    uint32_t preferred_bytes; /* block size to advertise, power of two >= 4096 */
    bool read_only;
    bool rotational;
    /* server's own */
    struct list_node node;
    uint32_t connections;
    void (*removed)(void *ctx); /* of nbd_server_remove(), while clients are leaving */
    void *removed_ctx;
    struct nbd_parting parting;
};

/* The transmission flags of this export (proto.h). */
uint16_t nbd_export_flags(const struct nbd_export *export);

/* The exports by name, and how many clients they may have.  Lives on loops[0]. */
struct nbd_directory {
    struct list exports;
    uint32_t connections; /* past the negotiation */
    uint32_t connections_max, connections_max_per_export;
};

void nbd_directory_init(struct nbd_directory *directory, uint32_t connections_max,
                        uint32_t connections_max_per_export);
/* The name need not be terminated.  "" finds the only export there is.  NULL: none. */
struct nbd_export *nbd_directory_find(const struct nbd_directory *directory, const uint8_t *name,
                                      size_t bytes);
bool nbd_directory_has_room(const struct nbd_directory *directory, const struct nbd_export *export);
