#include "tests/sim/content.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/hash.h"

#define BLOCK_CONTENTS 1024u
#define WORD_BYTES     8u
#define CHAIN_SHOWN    4u /* enough to recognise */

const struct content content_zero = {.id = WRITE_ID_ZERO, .end = SECTOR_BYTES};
const struct content content_any = {.any = true, .end = SECTOR_BYTES};

struct content_block {
    struct content_block *next;
    uint32_t used;
    struct content contents[BLOCK_CONTENTS];
};

void
content_pool_destroy(struct content_pool *pool)
{
    for (struct content_block *block; (block = pool->blocks) != NULL;) {
        pool->blocks = block->next;
        free(block);
    }
}

static struct content *
take(struct content_pool *pool)
{
    struct content_block *block = pool->blocks;
    if (block == NULL || block->used == BLOCK_CONTENTS) {
        block = malloc(sizeof(*block));
        check(block != NULL);
        block->next = pool->blocks;
        block->used = 0;
        pool->blocks = block;
    }
    return &block->contents[block->used++];
}

const struct content *
content_over(struct content_pool *pool, const struct content *base, uint32_t id, uint32_t from,
             uint32_t end)
{
    bool all = from == 0 && end == SECTOR_BYTES;
    check(from < end && end <= SECTOR_BYTES);
    if (all && id == WRITE_ID_ZERO)
        return &content_zero;
    if (!all && base->any)
        return base;
    struct content *content = take(pool);
    *content = (struct content){.id = id, .from = (uint16_t)from, .end = (uint16_t)end};
    while (!all && base->base != NULL && base->from >= from && base->end <= end)
        base = base->base; /* hidden completely */
    content->base = all ? NULL : base;
    return content;
}

bool
content_same(const struct content *a, const struct content *b)
{
    while (a != b) {
        if (a == NULL || b == NULL || a->any || b->any || a->id != b->id || a->from != b->from ||
            a->end != b->end)
            return false;
        a = a->base;
        b = b->base;
    }
    return true;
}

void
content_stamp(uint32_t id, uint64_t off_bytes, uint8_t *to, uint64_t len)
{
    if (id == WRITE_ID_ZERO) {
        memset(to, 0, len);
        return;
    }
    while (len > 0) {
        uint64_t word = hash_mix((uint64_t)id << 40 ^ off_bytes / WORD_BYTES);
        uint64_t skip = off_bytes % WORD_BYTES, part = MIN(WORD_BYTES - skip, len);
        memcpy(to, (const uint8_t *)&word + skip, part);
        to += part;
        off_bytes += part;
        len -= part;
    }
}

static void
render(const struct content *content, uint64_t index, uint8_t sector[SECTOR_BYTES])
{
    if (content->base != NULL)
        render(content->base, index, sector);
    content_stamp(content->id, index * SECTOR_BYTES + content->from, sector + content->from,
                  content->end - content->from);
}

bool
content_matches(const struct content *content, uint64_t index, const uint8_t *data, uint32_t from,
                uint32_t len)
{
    uint8_t sector[SECTOR_BYTES];
    if (content->any)
        return true;
    render(content, index, sector);
    return memcmp(sector + from, data, len) == 0;
}

void
content_describe(const struct content *content, char *out, size_t out_bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; content != NULL && i < CHAIN_SHOWN && used < out_bytes; i++) {
        if (content->any)
            used += (size_t)snprintf(out + used, out_bytes - used, "anything");
        else if (content->base == NULL)
            used += (size_t)snprintf(out + used, out_bytes - used, "write %" PRIu32, content->id);
        else
            used += (size_t)snprintf(out + used, out_bytes - used, "write %" PRIu32 " [%u,%u) on ",
                                     content->id, content->from, content->end);
        content = content->base;
    }
}
