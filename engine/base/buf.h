/* Reference-counted, page-aligned buffers out of an arena.
 *
 * A payload is received once into a buf and owned by the request until done(); a layer that needs
 * it longer takes a reference.  One loop owns a buf and its count. */
#pragma once

#include "engine/base/arena.h"

struct buf {
    uint8_t *data;
    uint64_t bytes; /* as asked for */
    struct arena *arena;
    uint32_t refs;
};

/* True when memory was there; *buf then holds one reference. */
MUST_CHECK bool buf_get(struct buf *buf, struct arena *arena, uint64_t bytes);
void buf_ref(struct buf *buf);
void buf_unref(struct buf *buf); /* the last one gives the memory back and zeroes *buf */
