/* THEORY OF OPERATION
 *
 * Every array chunk has near * far copies (research/md.md 2.6).  The near copies of chunk c take
 * the consecutive positions c*near, c*near+1, ... of a matrix of n columns (roles); the far copies
 * of a position are `near` columns further inside its far set, and one stride of rows further down:
 *
 *      near=2, n=4       offset=2, n=3     far=2, n=4
 *      0  0  1  1        0  1  2           0  1  2  3      first half of the member
 *      2  2  3  3        2  0  1           4  5  6  7
 *                        3  4  5           ...
 *                        5  3  4           3  0  1  2      second half
 *
 * The layout word: bits 0-7 near, 8-15 far, 16 offset (stride of one row instead of half a member),
 * 17-18 far sets: 0 one set of all roles, 1 sets of n/far roles, 2 sets of near*far roles; the last
 * set takes the remainder.
 *
 * Some layout words md would accept make copies collide or share a member.  init() refuses all of
 * them by trying: each far step must permute the roles, and all copies of a position must lie on
 * different roles.  That makes every copy independent and the map one-to-one. */
#include <inttypes.h>
#include <stdio.h>

#include "layouts/level.h"

#define LAYOUT_BITS 19

static uint32_t
far_step(const struct geometry *geometry, uint32_t role)
{
    uint32_t size = geometry->far_set_size;
    uint32_t sets = geometry->member_count / size;
    uint32_t set = MIN(role / size, sets - 1);
    uint32_t set_first = set * size;
    uint32_t set_size = set == sets - 1 ? geometry->member_count - set_first : size;
    return set_first + (role - set_first + geometry->near_copies) % set_size;
}

static int
refuse_layout(const struct geometry *geometry, const char *why, struct diag *diag)
{
    return diag_set(diag, DIAG_FAILED, "E_LAYOUT_UNKNOWN", -EINVAL,
                    "raid10 layout 0x%" PRIx32 " with %" PRIu32 " members: %s", geometry->layout,
                    geometry->member_count, why);
}

static int
decode_layout(struct geometry *geometry, struct diag *diag)
{
    uint32_t layout = geometry->layout, set_mode = layout >> 17 & 3;
    geometry->near_copies = layout & 0xff;
    geometry->far_copies = layout >> 8 & 0xff;
    geometry->far_offset = layout >> 16 & 1;
    uint32_t copies = geometry->near_copies * geometry->far_copies;
    if (layout >> LAYOUT_BITS != 0 || set_mode == 3)
        return refuse_layout(geometry, "unknown bits are set", diag);
    if (copies < 2 || copies > geometry->member_count)
        return refuse_layout(geometry, "needs 2 copies or more, each on its own member", diag);
    geometry->far_set_size = set_mode == 0   ? geometry->member_count
                             : set_mode == 1 ? geometry->member_count / geometry->far_copies
                                             : copies;
    if (geometry->far_offset && geometry->near_copies > 1 &&
        geometry->member_count % geometry->near_copies != 0)
        return refuse_layout(geometry, "near and offset copies would collide", diag);
    return 0;
}

static int
check_copies(const struct geometry *geometry, struct diag *diag)
{
    uint64_t reached = 0;
    for (uint32_t first = 0; first < geometry->member_count; first++) {
        uint64_t copies = 0;
        for (uint32_t near = 0; near < geometry->near_copies; near++) {
            uint32_t role = (first + near) % geometry->member_count;
            for (uint32_t far = 0; far < geometry->far_copies; far++) {
                copies |= mask_of(role);
                role = far_step(geometry, role);
            }
        }
        if (mask_count(copies) != geometry->near_copies * geometry->far_copies)
            return refuse_layout(geometry, "copies would share a member", diag);
        reached |= mask_of(far_step(geometry, first));
    }
    if (reached != mask_below(geometry->member_count))
        return refuse_layout(geometry, "copies would collide", diag);
    return 0;
}

static int
raid10_init(struct geometry *geometry, struct diag *diag)
{
    int err = decode_layout(geometry, diag);
    if (err == 0)
        err = check_copies(geometry, diag);
    if (err < 0)
        return err;
    uint32_t n = geometry->member_count;
    uint32_t near = geometry->near_copies, far = geometry->far_copies, copies = near * far;
    check(n != 0 && near != 0 && far != 0); /* decode_layout() said so */
    /* md's order of divisions; rows < 2^51, so the products cannot wrap. */
    uint64_t rows = geometry->member_bytes / geometry->chunk_bytes / far;
    uint64_t chunks = rows * n / near;
    uint64_t used_rows = div_ceil(chunks * copies, n);
    geometry->far_stride_rows = geometry->far_offset ? 1 : used_rows / far;
    geometry->data_count = n;
    geometry->tolerance = copies - 1;
    geometry->stripe_bytes = (n % near == 0 ? n / near : n) * geometry->chunk_bytes;
    geometry->row_count = chunks;
    return geometry_set_size(geometry, 1, chunks, diag);
}

static uint32_t
raid10_places(const struct geometry *geometry, uint64_t array_off_bytes, struct place *out,
              uint32_t max)
{
    uint64_t chunk = geometry->chunk_bytes, n = geometry->member_count;
    uint64_t position = array_off_bytes / chunk * geometry->near_copies;
    uint64_t row_first = position / n * (geometry->far_offset ? geometry->far_copies : 1);
    uint32_t column = (uint32_t)(position % n), count = 0;
    for (uint32_t near = 0; near < geometry->near_copies; near++) {
        uint32_t role = column;
        uint64_t row = row_first;
        for (uint32_t far = 0; far < geometry->far_copies; far++) {
            if (count < max)
                out[count] = (struct place){
                    .role = role,
                    .member_off_bytes = row * chunk + array_off_bytes % chunk,
                };
            count++;
            role = far_step(geometry, role);
            row += geometry->far_stride_rows;
        }
        if (++column == n) {
            column = 0;
            row_first++;
        }
    }
    return count;
}

static bool
raid10_band_next(struct band_iter *iter, struct band *band)
{
    return band_next_run(iter, iter->geometry->chunk_bytes, true, band);
}

static bool
raid10_band_of_row(const struct geometry *geometry, uint64_t row, struct band *band)
{
    uint64_t chunk = geometry->chunk_bytes;
    *band = (struct band){
        .array_off_bytes = row * chunk,
        .len_bytes = chunk,
        .data_count = 1,
        .lock_off = row * chunk,
        .lock_len = chunk,
    };
    return true;
}

static bool
raid10_rows_inside(const struct geometry *geometry, uint64_t off_bytes, uint64_t len_bytes,
                   struct row_range *rows)
{
    bool contiguous = geometry->member_count % geometry->near_copies == 0 &&
                      (geometry->far_copies == 1 || geometry->far_offset);
    uint64_t stripe = geometry->stripe_bytes;
    uint64_t first = div_ceil(off_bytes, stripe), end = div_floor(off_bytes + len_bytes, stripe);
    if (!contiguous || first >= end)
        return false;
    uint64_t member_stripe = geometry->far_copies * geometry->chunk_bytes;
    *rows = (struct row_range){
        .array_off_bytes = first * stripe,
        .array_len_bytes = (end - first) * stripe,
        .member_off_bytes = first * member_stripe,
        .member_len_bytes = (end - first) * member_stripe,
        .roles = mask_below(geometry->member_count),
        .lock_off = first * stripe,
        .lock_len = (end - first) * stripe,
    };
    return true;
}

static int32_t
raid10_spare(const struct geometry *geometry, uint64_t available_roles)
{
    int32_t least = INT32_MAX; /* copies of the worst chunk; the roles repeat after n chunks */
    for (uint64_t row = 0; row < MIN(geometry->row_count, geometry->member_count); row++) {
        struct place places[MEMBERS_MAX];
        uint32_t count =
            raid10_places(geometry, row * geometry->chunk_bytes, places, ARRAY_LEN(places));
        int32_t left = 0;
        for (uint32_t i = 0; i < count; i++)
            left += (available_roles & mask_of(places[i].role)) != 0;
        least = MIN(least, left);
    }
    return least - 1;
}

static void
raid10_layout_name(uint32_t layout, char *out, size_t out_bytes)
{
    uint32_t near = layout & 0xff, far = layout >> 8 & 0xff;
    const char *far_word = layout >> 16 & 1 ? "offset" : "far";
    if (near != 1 && far != 1)
        snprintf(out, out_bytes, "near=%" PRIu32 ", %s=%" PRIu32, near, far_word, far);
    else if (far != 1)
        snprintf(out, out_bytes, "%s=%" PRIu32, far_word, far);
    else
        snprintf(out, out_bytes, "near=%" PRIu32, near);
}

/* "near=2", "n2", "far=2", "f2", "offset=2", "o2". */
static bool
raid10_layout_parse(const char *text, uint32_t *layout)
{
    static const char *const words[] = {"near", "far", "offset"};
    for (uint32_t kind = 0; kind < ARRAY_LEN(words); kind++) {
        size_t len = strlen(words[kind]);
        const char *digits = strncmp(text, words[kind], len) == 0 && text[len] == '=' ? text + len
                             : text[0] == words[kind][0]                              ? text
                                                                                      : NULL;
        if (digits == NULL || digits[1] < '1' || digits[1] > '9')
            continue;
        char *end;
        unsigned long copies = strtoul(digits + 1, &end, 10);
        if (*end != '\0' || copies > 0xff)
            return false;
        uint32_t count = (uint32_t)copies;
        *layout = kind == 0 ? 0x100 | count : kind == 1 ? 1 | count << 8 : 0x10001 | count << 8;
        return true;
    }
    return false;
}

const struct level_ops raid10_ops = {
    .level = RAID10,
    .name = "raid10",
    .member_min = 2,
    .chunk_pow2 = true,
    .layout_main = 0x102,
    .layout_name = raid10_layout_name,
    .layout_parse = raid10_layout_parse,
    .init = raid10_init,
    .band_next = raid10_band_next,
    .data_role = data_role_mirror,
    .band_of_row = raid10_band_of_row,
    .rows_inside = raid10_rows_inside,
    .places = raid10_places,
    .spare = raid10_spare,
    .plan_read = plan_read_mirror,
    .plan_write = plan_write_mirror,
    .plan_sync = plan_sync_mirror,
};
