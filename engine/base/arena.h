/* Contiguous runs of 4 KiB pages out of one bounded, page-aligned region.
 *
 * All payload and scratch memory comes from arenas: the bound is known in advance, pages are
 * touched only when first used, and a request that does not fit now waits for space.
 *
 * The lowest first: a load that fits ten pages touches the same ten, which stay in the processor's
 * cache, and memory that was needed only once goes unused from then on.  Free pages are poisoned
 * under ASan.  Not thread-safe: an arena belongs to one loop. */
#pragma once

#include "engine/base/units.h"

struct arena {
    uint8_t *memory; /* page aligned, mmap'ed */
    uint64_t *used;  /* bit set: page in use, or beyond page_count */
    uint64_t page_count;
    uint64_t pages_used;
    uint64_t first_free; /* no page before it is free */
};

/* bytes is rounded up to pages.  0 or -ENOMEM. */
MUST_CHECK int arena_init(struct arena *arena, uint64_t bytes);
void arena_destroy(struct arena *arena); /* accepts a zeroed one; nothing may be in use */
void arena_abandon(struct arena *arena); /* the same, whatever is in use (simulated death) */
/* NULL when there is no run of round_up(bytes, 4096) now.  bytes > 0.  Contents are undefined. */
void *arena_get(struct arena *arena, uint64_t bytes);
void arena_put(struct arena *arena, void *memory, uint64_t bytes); /* the same bytes */
