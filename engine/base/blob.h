/* A synchronous byte store: how create, inspect, scan and assemble read and write metadata.
 *
 * Not for the data path.  Blocking; any alignment (the implementation rounds as its device needs).
 * Implemented over a file or device (engine/io/blob_file) and over a simulated member. */
#pragma once

#include "engine/base/compiler.h"

struct blob;

struct blob_ops {
    /* 0 or negative errno; all of len or an error (past the end: -EIO). */
    int (*read)(struct blob *blob, void *to, size_t len, uint64_t off_bytes);
    int (*write)(struct blob *blob, const void *from, size_t len, uint64_t off_bytes);
    int (*flush)(struct blob *blob);
    void (*close)(struct blob *blob); /* frees it */
};

struct blob {
    const struct blob_ops *ops;
    uint64_t size_bytes;
    uint32_t logical_bytes;
    uint32_t physical_bytes;
    char path[256]; /* for messages */
};

static inline int
blob_read(struct blob *blob, void *to, size_t len, uint64_t off_bytes)
{
    return blob->ops->read(blob, to, len, off_bytes);
}

static inline int
blob_write(struct blob *blob, const void *from, size_t len, uint64_t off_bytes)
{
    return blob->ops->write(blob, from, len, off_bytes);
}

static inline int
blob_flush(struct blob *blob)
{
    return blob->ops->flush(blob);
}

static inline void
blob_close(struct blob *blob)
{
    if (blob != NULL)
        blob->ops->close(blob);
}
