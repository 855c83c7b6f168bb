#include "nbd/export.h"

#include <string.h>

#include "nbd/proto.h"

uint16_t
nbd_export_flags(const struct nbd_export *export)
{
    uint32_t flags = NBD_HAS_FLAGS | NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_SEND_TRIM |
                     NBD_SEND_WRITE_ZEROES | NBD_SEND_FAST_ZERO | NBD_SEND_CACHE |
                     NBD_CAN_MULTI_CONN;
    if (export->read_only)
        flags |= NBD_READ_ONLY;
    if (export->rotational)
        flags |= NBD_ROTATIONAL;
    return (uint16_t)flags;
}

void
nbd_directory_init(struct nbd_directory *directory, uint32_t connections_max,
                   uint32_t connections_max_per_export)
{
    *directory = (struct nbd_directory){
        .connections_max = connections_max,
        .connections_max_per_export = connections_max_per_export,
    };
    list_init(&directory->exports);
}

static bool
name_is(const struct nbd_export *export, const uint8_t *name, size_t bytes)
{
    return strlen(export->name) == bytes && memcmp(export->name, name, bytes) == 0;
}

struct nbd_export *
nbd_directory_find(const struct nbd_directory *directory, const uint8_t *name, size_t bytes)
{
    list_for_each (node, &directory->exports) {
        struct nbd_export *export = CONTAINER_OF(node, struct nbd_export, node);
        if (name_is(export, name, bytes))
            return export;
    }
    bool only_one = !list_empty(&directory->exports) &&
                    directory->exports.head.next == directory->exports.head.prev;
    if (bytes == 0 && only_one)
        return CONTAINER_OF(directory->exports.head.next, struct nbd_export, node);
    return NULL;
}

bool
nbd_directory_has_room(const struct nbd_directory *directory, const struct nbd_export *export)
{
    return directory->connections < directory->connections_max &&
           export->connections < directory->connections_max_per_export;
}
