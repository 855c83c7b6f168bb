#include "tests/sim/image_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layouts/parity.h"

struct images {
    const struct sim_array *sim;
    struct blob *blobs[DISKS_MAX]; /* by role; NULL: not in use */
    bool (*claimed)(const struct sim_array *sim, uint64_t sync_off_bytes);
    char *why;
    size_t why_bytes;
};

static bool
read_role(struct images *images, uint32_t role, uint64_t off_bytes, uint8_t *to, uint64_t len)
{
    int err = blob_read(images->blobs[role], to, len, images->sim->data_off_bytes + off_bytes);
    if (err < 0)
        snprintf(images->why, images->why_bytes, "role %" PRIu32 " at %" PRIu64 ": %s", role,
                 off_bytes, strerror(-err));
    return err == 0;
}

/* ---- parity -------------------------------------------------------------------------------- */

static bool
same_parity(struct images *images, uint64_t row, const char *name, const uint8_t *is,
            const uint8_t *should)
{
    uint64_t chunk = images->sim->geometry.chunk_bytes;
    for (uint64_t off = 0; off < chunk; off += SECTOR_BYTES) {
        if (memcmp(is + off, should + off, SECTOR_BYTES) == 0 ||
            !images->claimed(images->sim, row * chunk + off))
            continue;
        snprintf(images->why, images->why_bytes,
                 "row %" PRIu64 " at member offset %" PRIu64 ": %s does not agree with the data",
                 row, row * chunk + off, name);
        return false;
    }
    return true;
}

static bool
check_row(struct images *images, uint64_t row, uint8_t *memory)
{
    const struct geometry *geometry = &images->sim->geometry;
    uint64_t chunk = geometry->chunk_bytes;
    struct row_roles roles;
    const uint8_t *data[DISKS_MAX];
    uint8_t ones[DISKS_MAX], powers[DISKS_MAX];
    uint8_t *parity = memory + geometry->data_count * chunk, *is = parity + chunk;
    row_roles(geometry, row, &roles);
    for (uint32_t i = 0; i < geometry->data_count; i++) {
        data[i] = memory + i * chunk;
        ones[i] = 1;
        powers[i] = gf_pow2(roles.q_exponent[i]);
        if (images->blobs[roles.data_role[i]] == NULL)
            return true; /* nothing to compare with */
        if (!read_role(images, roles.data_role[i], row * chunk, memory + i * chunk, chunk))
            return false;
    }
    const int32_t role[] = {roles.p, roles.q};
    for (uint32_t k = 0; k < ARRAY_LEN(role); k++) {
        if (role[k] < 0 || images->blobs[role[k]] == NULL)
            continue;
        parity_sum(parity, data, k == 0 ? ones : powers, geometry->data_count, chunk);
        if (!read_role(images, (uint32_t)role[k], row * chunk, is, chunk) ||
            !same_parity(images, row, k == 0 ? "P" : "Q", is, parity))
            return false;
    }
    return true;
}

static bool
check_rows(struct images *images)
{
    const struct geometry *geometry = &images->sim->geometry;
    uint8_t *memory = malloc((geometry->data_count + 2) * geometry->chunk_bytes);
    check(memory != NULL);
    bool good = true;
    for (uint64_t row = 0; row < geometry->row_count && good; row++)
        good = check_row(images, row, memory);
    free(memory);
    return good;
}

/* ---- copies -------------------------------------------------------------------------------- */

static bool
check_block(struct images *images, uint64_t off_bytes)
{
    struct place places[DISKS_MAX];
    uint8_t first[BLOCK_BYTES], other[BLOCK_BYTES];
    uint32_t have = 0;
    uint32_t count = layout_places(&images->sim->geometry, off_bytes, places, DISKS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (images->blobs[places[i].role] == NULL)
            continue;
        if (!read_role(images, places[i].role, places[i].member_off_bytes,
                       have == 0 ? first : other, BLOCK_BYTES))
            return false;
        have++;
        for (uint64_t in = 0; in < BLOCK_BYTES && have > 1; in += SECTOR_BYTES)
            if (memcmp(first + in, other + in, SECTOR_BYTES) != 0 &&
                images->claimed(images->sim, off_bytes + in)) {
                snprintf(images->why, images->why_bytes,
                         "array offset %" PRIu64 ": the copy of role %" PRIu32 " is another",
                         off_bytes + in, places[i].role);
                return false;
            }
    }
    return true;
}

bool
image_check(const struct sim_array *sim,
            bool (*claimed)(const struct sim_array *sim, uint64_t sync_off_bytes), char *why,
            size_t why_bytes)
{
    struct images images = {.sim = sim, .claimed = claimed, .why = why, .why_bytes = why_bytes};
    const struct geometry *geometry = &sim->geometry;
    bool good = true;
    if (geometry->level == RAID0)
        return true;
    for (uint32_t role = 0; role < geometry->member_count; role++)
        if (sim->disk_of_role[role] != DISKS_MAX)
            check_eq(
                sim_member_blob(sim->disks[sim->disk_of_role[role]].member, &images.blobs[role]),
                0);
    if (geometry->parity_count != 0)
        good = check_rows(&images);
    for (uint64_t off = 0; geometry->parity_count == 0 && good && off < geometry->array_bytes;
         off += BLOCK_BYTES)
        good = check_block(&images, off);
    for (uint32_t role = 0; role < geometry->member_count; role++)
        blob_close(images.blobs[role]);
    return good;
}
