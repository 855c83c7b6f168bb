#include "engine/base/buf.h"

bool
buf_get(struct buf *buf, struct arena *arena, uint64_t bytes)
{
    uint8_t *data = arena_get(arena, bytes);
    if (data == NULL)
        return false;
    *buf = (struct buf){.data = data, .bytes = bytes, .arena = arena, .refs = 1};
    return true;
}

void
buf_ref(struct buf *buf)
{
    check_gt(buf->refs, 0);
    check_lt(buf->refs, UINT32_MAX);
    buf->refs++;
}

void
buf_unref(struct buf *buf)
{
    check_gt(buf->refs, 0);
    if (--buf->refs != 0)
        return;
    arena_put(buf->arena, buf->data, buf->bytes);
    *buf = (struct buf){0};
}
