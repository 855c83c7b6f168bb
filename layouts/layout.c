/* THEORY OF OPERATION
 *
 * The registry: finds the table of a level (level.h) and calls through it, after the checks that
 * all levels share.  A geometry that geometry_init() has accepted cannot overflow: every array
 * offset and every member offset, in bytes, stays below 2^63 (BYTES_MAX).  All functions here and
 * below are pure: no I/O, no allocation, no clock, no state. */
#include "layouts/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "layouts/level.h"

#define BYTES_MAX       (UINT64_MAX / 2)
#define CHUNK_BYTES_MAX GIB(1)
#define RAID1_UNIT      KIB(64) /* RAID1 has no chunk; resync and planning need some unit */

static const struct level_ops *const levels[] = {
    &raid0_ops, &raid1_ops, &raid4_ops, &raid5_ops, &raid6_ops, &raid10_ops,
};

const struct level_ops *
level_ops(enum raid_level level)
{
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (levels[i]->level == level)
            return levels[i];
    return NULL;
}

static const struct level_ops *
ops_of(const struct geometry *geometry)
{
    const struct level_ops *ops = level_ops(geometry->level);
    check(ops != NULL); /* geometry_init() said so */
    return ops;
}

int
geometry_set_size(struct geometry *geometry, uint64_t rows, uint64_t data_chunks, struct diag *diag)
{
    uint64_t chunks, bytes;
    if (!mul_ok(rows, data_chunks, &chunks) || !mul_ok(chunks, geometry->chunk_bytes, &bytes) ||
        bytes == 0 || bytes > BYTES_MAX)
        return diag_set(diag, DIAG_FAILED, "E_GEOMETRY", -EINVAL,
                        "%" PRIu64 " rows of %" PRIu64 " data chunks of %" PRIu64
                        " bytes are no possible array size",
                        rows, data_chunks, geometry->chunk_bytes);
    geometry->array_bytes = bytes;
    return 0;
}

static int
check_free_fields(const struct geometry *geometry, const struct level_ops *ops, struct diag *diag)
{
    uint32_t count = geometry->member_count;
    uint64_t chunk = geometry->chunk_bytes;
    if (count < ops->member_min || count > MEMBERS_MAX)
        return diag_set(diag, DIAG_FAILED, "E_GEOMETRY", -EINVAL,
                        "%s takes %" PRIu32 " to %d members, not %" PRIu32, ops->name,
                        ops->member_min, MEMBERS_MAX, count);
    if (chunk == 0 || chunk % BLOCK_BYTES != 0 || chunk > CHUNK_BYTES_MAX)
        return diag_set(diag, DIAG_FAILED, "E_GEOMETRY", -EINVAL,
                        "a chunk of %" PRIu64 " bytes is not a multiple of 4 KiB up to 1 GiB",
                        chunk);
    if (ops->chunk_pow2 && !is_pow2(chunk))
        return diag_set(diag, DIAG_FAILED, "E_GEOMETRY", -EINVAL,
                        "%s needs a chunk that is a power of two, not %" PRIu64 " bytes", ops->name,
                        chunk);
    for (uint32_t role = 0; role < count; role++) {
        uint64_t bytes = geometry->role_bytes[role];
        uint64_t least = geometry->level == RAID1 ? SECTOR_BYTES : chunk;
        if (bytes < least || bytes > BYTES_MAX)
            return diag_set(diag, DIAG_FAILED, "E_GEOMETRY", -EINVAL,
                            "role %" PRIu32 " has %" PRIu64
                            " bytes for data, less than one chunk or more than any disk",
                            role, bytes);
    }
    return 0;
}

static bool
layout_listed(const struct level_ops *ops, uint32_t layout)
{
    for (const struct layout_entry *entry = ops->layouts; entry->name != NULL; entry++)
        if (entry->number == layout)
            return true;
    return ops->any_layout;
}

int
geometry_init(struct geometry *geometry, struct diag *diag)
{
    const struct level_ops *ops = level_ops(geometry->level);
    if (ops == NULL)
        return diag_set(diag, DIAG_FAILED, "E_LEVEL_UNKNOWN", -EINVAL,
                        "RAID level %d is not one of 0, 1, 4, 5, 6, 10", (int)geometry->level);
    if (geometry->level == RAID1)
        geometry->chunk_bytes = RAID1_UNIT;
    if (geometry->level != RAID0)
        for (uint32_t role = 0; role < MEMBERS_MAX; role++)
            geometry->role_bytes[role] = geometry->member_bytes;
    int err = check_free_fields(geometry, ops, diag);
    if (err < 0)
        return err;
    if (ops->layouts != NULL && !layout_listed(ops, geometry->layout))
        return diag_set(diag, DIAG_FAILED, "E_LAYOUT_UNKNOWN", -EINVAL,
                        "%s has no layout number %" PRIu32, ops->name, geometry->layout);

    struct geometry fresh = {
        .level = geometry->level,
        .layout = geometry->layout,
        .member_count = geometry->member_count,
        .chunk_bytes = geometry->chunk_bytes,
        .member_bytes = geometry->member_bytes,
    };
    memcpy(fresh.role_bytes, geometry->role_bytes, sizeof(fresh.role_bytes));
    err = ops->init(&fresh, diag);
    if (err == 0)
        *geometry = fresh;
    return err;
}

const char *
level_name(enum raid_level level)
{
    const struct level_ops *ops = level_ops(level);
    return ops != NULL ? ops->name : "unknown";
}

bool
level_parse(const char *text, enum raid_level *level)
{
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        const char *name = levels[i]->name; /* "raid5": also without "raid" */
        if (strcasecmp(text, name) == 0 || strcmp(text, name + 4) == 0) {
            *level = levels[i]->level;
            return true;
        }
    }
    return false;
}

void
layout_name(enum raid_level level, uint32_t layout, char *out, size_t out_bytes)
{
    const struct level_ops *ops = level_ops(level);
    if (ops != NULL && ops->layout_name != NULL) {
        ops->layout_name(layout, out, out_bytes);
        return;
    }
    const char *name = ops != NULL && ops->any_layout ? "" : "unknown";
    for (const struct layout_entry *entry = ops != NULL ? ops->layouts : NULL;
         entry != NULL && entry->name != NULL; entry++)
        if (entry->number == layout) {
            name = entry->name;
            break;
        }
    snprintf(out, out_bytes, "%s", name);
}

bool
layout_parse(enum raid_level level, const char *text, uint32_t *layout)
{
    const struct level_ops *ops = level_ops(level);
    if (ops == NULL)
        return false;
    if (strcmp(text, "default") == 0) {
        *layout = ops->layout_main;
        return true;
    }
    if (ops->layout_parse != NULL)
        return ops->layout_parse(text, layout);
    for (const struct layout_entry *entry = ops->layouts; entry->name != NULL; entry++)
        if (strcasecmp(entry->name, text) == 0) {
            *layout = entry->number;
            return true;
        }
    return false;
}

uint32_t
layout_default(enum raid_level level)
{
    const struct level_ops *ops = level_ops(level);
    return ops != NULL ? ops->layout_main : 0;
}

void
band_iter_init(struct band_iter *iter, const struct geometry *geometry, uint64_t off_bytes,
               uint64_t len_bytes, uint64_t piece_max_bytes)
{
    check_le(off_bytes, geometry->array_bytes);
    check_le(len_bytes, geometry->array_bytes - off_bytes);
    check_ne(piece_max_bytes, 0);
    *iter = (struct band_iter){
        .geometry = geometry,
        .off_bytes = off_bytes,
        .end_bytes = off_bytes + len_bytes,
        .piece_max_bytes = piece_max_bytes,
    };
}

bool
band_next(struct band_iter *iter, struct band *band)
{
    return ops_of(iter->geometry)->band_next(iter, band);
}

uint64_t
band_data_off(const struct geometry *geometry, const struct band *band, uint32_t k)
{
    check_lt(k, band->data_count);
    return band->array_off_bytes + k * geometry->chunk_bytes;
}

uint32_t
band_data_role(const struct geometry *geometry, const struct band *band, uint32_t k)
{
    check_lt(k, band->data_count);
    return ops_of(geometry)->data_role(geometry, band, k);
}

bool
band_of_row(const struct geometry *geometry, uint64_t row, struct band *band)
{
    return row < geometry->row_count && ops_of(geometry)->band_of_row(geometry, row, band);
}

bool
rows_inside(const struct geometry *geometry, uint64_t off_bytes, uint64_t len_bytes,
            struct row_range *rows)
{
    check_le(off_bytes, geometry->array_bytes);
    check_le(len_bytes, geometry->array_bytes - off_bytes);
    return ops_of(geometry)->rows_inside(geometry, off_bytes, len_bytes, rows);
}

uint32_t
layout_places(const struct geometry *geometry, uint64_t array_off_bytes, struct place *out,
              uint32_t max)
{
    check_lt(array_off_bytes, geometry->array_bytes);
    return ops_of(geometry)->places(geometry, array_off_bytes, out, max);
}

bool
layout_enough(const struct geometry *geometry, uint64_t available_roles)
{
    return ops_of(geometry)->spare(geometry, available_roles) >= 0;
}

uint32_t
layout_survivable(const struct geometry *geometry, uint64_t available_roles)
{
    int32_t spare = ops_of(geometry)->spare(geometry, available_roles);
    return spare > 0 ? (uint32_t)spare : 0;
}
