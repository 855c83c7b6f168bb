/* A bounded pool of equal objects, all allocated when it is made.
 *
 * pool_get() returns NULL when all are in use: the caller waits, there is no other way to fail.
 * Objects are zeroed when the pool is made, and come back as they were put. Not thread-safe. */
#pragma once

#include "engine/base/list.h"

struct pool_free {
    struct pool_free *next;
};

struct pool {
    void *memory;
    struct pool_free *free;
    size_t object_bytes;
    uint32_t count;
    uint32_t in_use;
};

/* object_bytes is rounded up to 64; objects are 64-byte aligned.  0 or -ENOMEM. */
MUST_CHECK int pool_init(struct pool *pool, size_t object_bytes, uint32_t count);
void pool_destroy(struct pool *pool); /* accepts a zeroed one; nothing may be in use */
void pool_abandon(struct pool *pool); /* the same, whatever is in use (simulated death) */
/* The first sizeof(void *) bytes of a gotten object are undefined; the rest is as it was put. */
void *pool_get(struct pool *pool);
void pool_put(struct pool *pool, void *object);
