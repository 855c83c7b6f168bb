#include "engine/base/iov.h"

#include <string.h>

#include "engine/base/units.h"

uint64_t
iov_bytes(const struct iovec *iov, uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += iov[i].iov_len;
    return bytes;
}

/* A walk over the pieces of [off, off + len), one contiguous piece at a time. */
struct walk {
    const struct iovec *iov, *end;
    uint64_t skip, left;
};

static struct walk
walk_start(const struct iovec *iov, uint32_t count, uint64_t off, uint64_t len)
{
    return (struct walk){.iov = iov, .end = iov + count, .skip = off, .left = len};
}

static bool
walk_next(struct walk *walk, struct iovec *piece)
{
    if (walk->left == 0)
        return false;
    for (;;) {
        check(walk->iov < walk->end); /* the range lies inside */
        if (walk->skip < walk->iov->iov_len)
            break;
        walk->skip -= walk->iov->iov_len;
        walk->iov++;
    }
    piece->iov_base = (uint8_t *)walk->iov->iov_base + walk->skip;
    piece->iov_len = MIN(walk->iov->iov_len - walk->skip, walk->left);
    walk->left -= piece->iov_len;
    walk->skip = 0;
    walk->iov++;
    return true;
}

uint32_t
iov_slice(const struct iovec *iov, uint32_t count, uint64_t off, uint64_t len, struct iovec *out,
          uint32_t max)
{
    struct walk walk = walk_start(iov, count, off, len);
    uint32_t pieces = 0;
    for (struct iovec piece; walk_next(&walk, &piece);) {
        if (pieces == max)
            return 0;
        out[pieces++] = piece;
    }
    return pieces;
}

void
iov_copy_out(void *to, const struct iovec *iov, uint32_t count, uint64_t off, uint64_t len)
{
    struct walk walk = walk_start(iov, count, off, len);
    uint8_t *at = to;
    for (struct iovec piece; walk_next(&walk, &piece); at += piece.iov_len)
        memcpy(at, piece.iov_base, piece.iov_len);
}

void
iov_copy_in(const struct iovec *iov, uint32_t count, uint64_t off, const void *from, uint64_t len)
{
    struct walk walk = walk_start(iov, count, off, len);
    const uint8_t *at = from;
    for (struct iovec piece; walk_next(&walk, &piece); at += piece.iov_len)
        memcpy(piece.iov_base, at, piece.iov_len);
}

void
iov_zero(const struct iovec *iov, uint32_t count, uint64_t off, uint64_t len)
{
    struct walk walk = walk_start(iov, count, off, len);
    for (struct iovec piece; walk_next(&walk, &piece);)
        memset(piece.iov_base, 0, piece.iov_len);
}

bool
iov_aligned(const struct iovec *iov, uint32_t count, uint32_t align)
{
    check(is_pow2(align));
    uintptr_t bits = 0;
    for (uint32_t i = 0; i < count; i++)
        bits |= (uintptr_t)iov[i].iov_base | iov[i].iov_len;
    return (bits & (align - 1)) == 0;
}
