/* An export: a device under a name, as clients see it. */
#pragma once

#include "engine/base/dev.h"

#include "engine/loop/mailbox.h"

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
};
