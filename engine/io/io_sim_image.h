/* The contents of a simulated member: what is durable, and what is only in its volatile cache.
 *
 * THEORY: pages of 4 KiB in a hash, made when first touched.  A page has its durable sectors and,
 * oldest first, the versions that completed writes left in the cache; each version covers some of
 * the page's eight sectors.  A read sees the newest version of a sector, else the durable one.
 * A cache of real size writes back by itself: beyond VERSIONS_MAX the oldest becomes durable.
 * A bad (unreadable) sector is bad on the medium: what lies in the cache above it can be read. */
#pragma once

#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/base/units.h"

struct sim_page;

struct sim_image {
    struct hash pages;
    struct list all;   /* of pages, in the order they were made: runs repeat exactly */
    struct list dirty; /* those with versions */
    uint64_t sequence; /* of the newest version */
};

/* What a write brings to some sectors of a page. */
struct sim_patch {
    uint64_t page_index;
    uint8_t sectors;     /* bit n: sector n of the page */
    const uint8_t *data; /* a whole page, of which `sectors` count; NULL: zeroes */
};

MUST_CHECK int sim_image_init(struct sim_image *image);
void sim_image_destroy(struct sim_image *image); /* accepts a zeroed one */

/* Newest contents of a sector range.  -EIO when a sector is bad (nothing is copied then). */
MUST_CHECK int sim_image_read(const struct sim_image *image, void *to, uint64_t off_bytes,
                              uint64_t len_bytes);
void sim_image_cache(struct sim_image *image, const struct sim_patch *patch);
void sim_image_write_through(struct sim_image *image, const struct sim_patch *patch);
/* Every version up to `sequence` becomes durable. */
void sim_image_flush(struct sim_image *image, uint64_t sequence);
/* The cache is gone; each sector keeps what it had, or one of its versions. */
void sim_image_power_cut(struct sim_image *image, struct rng *rng);
/* Make [off, off+len) unreadable, or invert its bytes, whatever is in the cache. */
void sim_image_spoil(struct sim_image *image, uint64_t off_bytes, uint64_t len_bytes);
void sim_image_flip(struct sim_image *image, uint64_t off_bytes, uint64_t len_bytes);
