/* THEORY OF OPERATION
 *
 * Bands of parity levels.  The part of a range that lies in one stripe starts at offset `lo` of
 * data chunk i and ends at offset `hi` of data chunk j.  For i < j, going down the chunk:
 *
 *      offset in chunk     i     i+1 .. j-1     j
 *      0  .. min            -         x         x      (lo > hi shown; '-': not in the range)
 *      min .. max           -         x         -      lo < hi:  x x x
 *      max .. C             x         x         -
 *
 * Between two cuts of {0, lo, hi, C} a data role is either wholly written or not at all, and the
 * covered data indexes are consecutive.  A segment that covers none (j == i+1, lo > hi) is
 * skipped.  Segments are cut further where a multiple of piece_max falls, so that only the first
 * piece of a segment is oddly aligned.
 *
 * Bands of all other levels are runs of array bytes. */
#include "layouts/level.h"

/* End of the piece that starts at pos: the next multiple of piece_max, or limit. */
static uint64_t
piece_end(uint64_t pos, uint64_t limit, uint64_t piece_max)
{
    uint64_t left = piece_max - pos % piece_max;
    return limit - pos < left ? limit : pos + left;
}

/* Start on the stripe that holds off_bytes: set its part of the range and its cuts. */
static void
cut_stripe(struct band_iter *iter)
{
    const struct geometry *geometry = iter->geometry;
    uint64_t chunk = geometry->chunk_bytes;
    uint64_t stripe_base = round_down(iter->off_bytes, geometry->stripe_bytes);
    iter->stripe_off = iter->off_bytes;
    iter->stripe_end = MIN(iter->end_bytes, stripe_base + geometry->stripe_bytes);
    uint64_t lo = iter->stripe_off % chunk;
    uint64_t hi = (iter->stripe_end - 1) % chunk + 1;
    bool one_chunk = iter->stripe_off / chunk == (iter->stripe_end - 1) / chunk;
    const uint64_t cuts[] = {one_chunk ? lo : 0, MIN(lo, hi), MAX(lo, hi), one_chunk ? hi : chunk};
    iter->cut_count = 0;
    iter->cut_index = 0;
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++)
        if (iter->cut_count == 0 || cuts[i] != iter->cut[iter->cut_count - 1])
            iter->cut[iter->cut_count++] = cuts[i];
}

bool
band_next_parity(struct band_iter *iter, struct band *band)
{
    const struct geometry *geometry = iter->geometry;
    uint64_t chunk = geometry->chunk_bytes;
    for (;;) {
        if (iter->cut_index + 1 >= iter->cut_count) {
            iter->off_bytes = MAX(iter->off_bytes, iter->stripe_end);
            if (iter->off_bytes == iter->end_bytes)
                return false;
            cut_stripe(iter);
        }
        uint64_t lo = iter->cut[iter->cut_index], segment_end = iter->cut[iter->cut_index + 1];
        uint64_t first = iter->stripe_off / chunk, last = (iter->stripe_end - 1) / chunk;
        if (lo < iter->stripe_off % chunk)
            first++;
        if (segment_end > (iter->stripe_end - 1) % chunk + 1)
            last--;
        uint64_t end = piece_end(lo, segment_end, iter->piece_max_bytes);
        iter->cut[iter->cut_index] = end; /* what is left of this segment */
        if (end == segment_end || first > last)
            iter->cut_index++;
        if (first > last)
            continue;
        uint64_t row = iter->stripe_off / geometry->stripe_bytes;
        *band = (struct band){
            .array_off_bytes = first * chunk + lo,
            .row = row,
            .lo_bytes = lo,
            .len_bytes = end - lo,
            .data_first = (uint32_t)(first - row * geometry->data_count),
            .data_count = (uint32_t)(last - first + 1),
            .lock_off = row * chunk + lo,
            .lock_len = end - lo,
        };
        return true;
    }
}

bool
band_next_run(struct band_iter *iter, uint64_t unit_bytes, bool locked, struct band *band)
{
    uint64_t off = iter->off_bytes;
    if (off == iter->end_bytes)
        return false;
    uint64_t end = iter->end_bytes;
    if (unit_bytes != 0)
        end = piece_end(off, end, unit_bytes);
    end = piece_end(off, end, iter->piece_max_bytes);
    *band = (struct band){
        .array_off_bytes = off,
        .lo_bytes = off % iter->geometry->chunk_bytes,
        .len_bytes = end - off,
        .data_count = 1,
        .lock_off = locked ? off : 0,
        .lock_len = locked ? end - off : 0,
    };
    iter->off_bytes = end;
    return true;
}

bool
band_of_row_parity(const struct geometry *geometry, uint64_t row, struct band *band)
{
    *band = (struct band){
        .array_off_bytes = row * geometry->stripe_bytes,
        .row = row,
        .len_bytes = geometry->chunk_bytes,
        .data_count = geometry->data_count,
        .lock_off = row * geometry->chunk_bytes,
        .lock_len = geometry->chunk_bytes,
    };
    return true;
}

bool
rows_inside_parity(const struct geometry *geometry, uint64_t off_bytes, uint64_t len_bytes,
                   struct row_range *rows)
{
    uint64_t first = div_ceil(off_bytes, geometry->stripe_bytes);
    uint64_t end = div_floor(off_bytes + len_bytes, geometry->stripe_bytes);
    if (first >= end)
        return false;
    *rows = (struct row_range){
        .array_off_bytes = first * geometry->stripe_bytes,
        .array_len_bytes = (end - first) * geometry->stripe_bytes,
        .member_off_bytes = first * geometry->chunk_bytes,
        .member_len_bytes = (end - first) * geometry->chunk_bytes,
        .roles = mask_below(geometry->member_count),
        .lock_off = first * geometry->chunk_bytes,
        .lock_len = (end - first) * geometry->chunk_bytes,
    };
    return true;
}

uint32_t
places_parity(const struct geometry *geometry, uint64_t array_off_bytes, struct place *out,
              uint32_t max)
{
    uint64_t chunk = geometry->chunk_bytes;
    uint64_t row = array_off_bytes / geometry->stripe_bytes;
    struct row_roles roles;
    row_roles(geometry, row, &roles);
    if (max > 0)
        out[0] = (struct place){
            .role = roles.data_role[array_off_bytes / chunk % geometry->data_count],
            .member_off_bytes = row * chunk + array_off_bytes % chunk,
        };
    return 1;
}

uint32_t
data_role_parity(const struct geometry *geometry, const struct band *band, uint32_t k)
{
    struct row_roles roles;
    row_roles(geometry, band->row, &roles);
    return roles.data_role[band->data_first + k];
}

int32_t
spare_parity(const struct geometry *geometry, uint64_t available_roles)
{
    uint32_t missing = mask_count(mask_below(geometry->member_count) & ~available_roles);
    return (int32_t)geometry->parity_count - (int32_t)missing;
}

int
init_parity(struct geometry *geometry, uint32_t parity_count, struct diag *diag)
{
    geometry->parity_count = parity_count;
    geometry->tolerance = parity_count;
    geometry->data_count = geometry->member_count - parity_count;
    geometry->stripe_bytes = geometry->data_count * geometry->chunk_bytes;
    geometry->row_count = geometry->member_bytes / geometry->chunk_bytes;
    return geometry_set_size(geometry, geometry->row_count, geometry->data_count, diag);
}
