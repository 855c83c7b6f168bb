/* What a sector may hold, symbolically: who wrote which bytes of it last.
 *
 * THEORY.  Every write has an id and stamps each 8-byte word it covers with a function of (id,
 * address), so that its bytes are found nowhere else and by nobody else.  A content is then not 512
 * bytes but the id of the write that covered the whole sector, or a partial write over an older
 * content: a chain that ends at a full one.  Id 0 is zeroes.  Contents are never changed and live
 * as long as their pool. */
#pragma once

#include "engine/base/units.h"

#define WRITE_ID_ZERO 0u

struct content {
    uint32_t id;
    uint16_t from, end;         /* bytes of the sector that `id` wrote */
    bool any;                   /* nobody knows what is there */
    const struct content *base; /* what is under it; NULL: it covers all */
};

extern const struct content content_zero, content_any;

struct content_pool {
    struct content_block *blocks;
};

void content_pool_destroy(struct content_pool *pool);
/* A write's bytes [from, end) of a sector over what was there. */
const struct content *content_over(struct content_pool *pool, const struct content *base,
                                   uint32_t id, uint32_t from, uint32_t end);
bool content_same(const struct content *a, const struct content *b);
/* Does [from, from + len) of sector `index` look like that?  (`any` does with everything.) */
bool content_matches(const struct content *content, uint64_t index, const uint8_t *data,
                     uint32_t from, uint32_t len);
void content_describe(const struct content *content, char *out, size_t out_bytes);
/* The bytes that write `id` puts at [off, off + len) of the array. */
void content_stamp(uint32_t id, uint64_t off_bytes, uint8_t *to, uint64_t len);
