/* Maps and bands of every level, layout and small size: one-to-one, onto, covering. */
#include <stdio.h>

#include "engine/base/rng.h"

#include "tests/prop/plan_exec.h"
#include "tests/unit/suite.h"

#define CHUNK      EXEC_CHUNK
#define ROWS_MAX   64
#define CHUNKS_MAX (8 * ROWS_MAX)

static const struct {
    enum raid_level level;
    uint32_t layouts[16];
    uint32_t layout_count;
} families[] = {
    {RAID0, {1, 2}, 2},
    {RAID1, {0}, 1},
    {RAID4, {0}, 1},
    {RAID5, {0, 1, 2, 3, 4, 5}, 6},
    {RAID6, {0, 1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 18, 19, 20}, 14},
    {RAID10,
     {0x102, 0x103, 0x201, 0x301, 0x10201, 0x10301, 0x202, 0x10202, 0x40201, 0x20201, 0x50201,
      0x40202, 0x203},
     13},
};

/* Call visit() for all small geometries md could have made. */
static void
for_all_geometries(void (*visit)(const struct geometry *geometry))
{
    struct geometry geometry;
    unsigned visited = 0;
    for (size_t f = 0; f < ARRAY_LEN(families); f++)
        for (uint32_t l = 0; l < families[f].layout_count; l++)
            for (uint32_t members = 1; members <= 8; members++)
                for (uint64_t rows = 1; rows <= 12; rows++)
                    if (exec_geometry(&geometry, families[f].level, families[f].layouts[l], members,
                                      rows)) {
                        visit(&geometry);
                        visited++;
                    }
    CU_ASSERT(visited > 1000);
}

/* RAID 0 of members of different lengths. */
static void
for_unequal_raid0(void (*visit)(const struct geometry *geometry))
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (uint32_t i = 0; i < 200; i++) {
        struct geometry geometry = {
            .level = RAID0,
            .layout = 1 + i % 2,
            .member_count = (uint32_t)rng_range(&rng, 1, 8),
            .chunk_bytes = CHUNK * rng_range(&rng, 1, 3),
        };
        for (uint32_t role = 0; role < geometry.member_count; role++)
            geometry.role_bytes[role] =
                geometry.chunk_bytes * rng_range(&rng, 1, 6) + rng_below(&rng, CHUNK);
        int err = geometry_init(&geometry, NULL);
        CU_ASSERT_EQUAL_FATAL(err, 0);
        visit(&geometry);
    }
}

struct occupancy {
    bool used[MEMBERS_MAX][ROWS_MAX];
    uint64_t total;
};

static bool
occupy(struct occupancy *map, const struct geometry *geometry, uint32_t role, uint64_t row)
{
    if (role >= geometry->member_count || row >= ROWS_MAX || map->used[role][row])
        return false;
    map->used[role][row] = true;
    map->total++;
    return (row + 1) * geometry->chunk_bytes <=
           round_up(geometry->role_bytes[role], geometry->chunk_bytes);
}

/* Every array chunk and parity has places of its own; nothing of the used area is left over. */
static void
map_is_one_to_one_and_onto(const struct geometry *geometry)
{
    struct occupancy map = {0};
    struct place places[MEMBERS_MAX];
    uint64_t chunk = geometry->chunk_bytes, copies = 1, chunks = geometry->array_bytes / chunk;
    bool good = true;
    if (geometry->level == RAID1)
        chunks = div_ceil(geometry->array_bytes, chunk);
    for (uint64_t c = 0; c < chunks; c++) {
        copies = layout_places(geometry, c * chunk, places, MEMBERS_MAX);
        uint64_t roles = 0;
        for (uint32_t i = 0; i < copies; i++) {
            roles |= mask_of(places[i].role);
            good = good && places[i].member_off_bytes % chunk == 0 &&
                   occupy(&map, geometry, places[i].role, places[i].member_off_bytes / chunk);
        }
        good = good && mask_count(roles) == copies;
    }
    uint64_t want = chunks * copies;
    for (uint64_t row = 0; geometry->parity_count > 0 && row < geometry->row_count; row++) {
        struct row_roles roles;
        row_roles(geometry, row, &roles);
        good = good && occupy(&map, geometry, (uint32_t)roles.p, row);
        good = good && (roles.q < 0 || occupy(&map, geometry, (uint32_t)roles.q, row));
        want += geometry->parity_count;
    }
    CU_ASSERT(good && map.total == want);
    /* onto: whole members, but for what RAID10 has to round away */
    uint64_t space = 0;
    for (uint32_t role = 0; role < geometry->member_count; role++)
        space += geometry->level == RAID1 ? chunks : geometry->role_bytes[role] / chunk;
    if (geometry->level == RAID10)
        CU_ASSERT(space - want < copies * geometry->member_count)
    else
        CU_ASSERT_EQUAL(space, want);
}

static void
every_map_is_one_to_one_and_onto(void)
{
    for_all_geometries(map_is_one_to_one_and_onto);
    for_unequal_raid0(map_is_one_to_one_and_onto);
}

static void
q_exponents_differ_within_a_row(void)
{
    for (uint32_t l = 0; l < families[4].layout_count; l++)
        for (uint32_t members = 4; members <= MEMBERS_MAX; members += 3) {
            struct geometry geometry;
            CU_ASSERT_FATAL(
                exec_geometry(&geometry, RAID6, families[4].layouts[l], members, ROWS_MAX));
            for (uint64_t row = 0; row < ROWS_MAX; row++) {
                struct row_roles roles;
                row_roles(&geometry, row, &roles);
                uint64_t seen = 0;
                for (uint32_t i = 0; i < geometry.data_count; i++)
                    seen |= mask_of(roles.q_exponent[i]);
                CU_ASSERT_EQUAL(mask_count(seen), geometry.data_count);
            }
        }
}

/* Bands of a range: every byte once, at the member offset places() says, on the role it says, and
 * locked in the space redundancy is in. */
static void
check_bands(const struct geometry *geometry, uint64_t off, uint64_t len, uint64_t piece_max)
{
    static uint8_t seen[CHUNKS_MAX * CHUNK * 3];
    memset(seen + off, 0, len);
    struct band_iter iter;
    struct band band;
    bool good = true;
    uint64_t covered = 0;
    band_iter_init(&iter, geometry, off, len, piece_max);
    while (band_next(&iter, &band)) {
        good = good && band.len_bytes > 0 && band.len_bytes <= piece_max && band.data_count > 0;
        good = good && (geometry->level == RAID0) == (band.lock_len == 0);
        for (uint32_t k = 0; k < band.data_count; k++) {
            uint64_t piece = band_data_off(geometry, &band, k);
            struct place places[MEMBERS_MAX], last[MEMBERS_MAX];
            uint32_t count = layout_places(geometry, piece, places, MEMBERS_MAX);
            layout_places(geometry, piece + band.len_bytes - 1, last, MEMBERS_MAX);
            uint64_t roles = 0;
            for (uint32_t i = 0; i < count; i++) {
                roles |= mask_of(places[i].role);
                good = good && last[i].role == places[i].role &&
                       last[i].member_off_bytes == places[i].member_off_bytes + band.len_bytes - 1;
            }
            good = good && band_data_role(geometry, &band, k) == mask_first(roles);
            if (band.lock_len != 0)
                good = good && band.lock_len == band.len_bytes &&
                       band.lock_off ==
                           (geometry->parity_count > 0 ? places[0].member_off_bytes : piece);
            good = good && piece >= off && piece + band.len_bytes <= off + len;
            for (uint64_t at = piece; good && at < piece + band.len_bytes; at++)
                good = seen[at]++ == 0;
            covered += band.len_bytes;
        }
    }
    CU_ASSERT(good && covered == len);
}

static void
bands_of_random_ranges(const struct geometry *geometry)
{
    struct rng rng;
    rng_seed(&rng, suite_seed() ^ geometry->array_bytes);
    uint64_t unit = rng_chance(&rng, 50) ? 512 : 1;
    uint64_t off = rng_below(&rng, geometry->array_bytes / unit) * unit;
    uint64_t len = rng_below(&rng, geometry->array_bytes - off + 1) / unit * unit;
    len = MIN(len, geometry->data_count * geometry->chunk_bytes * 2);
    check_bands(geometry, off, len, rng_chance(&rng, 50) ? MIB(1) : rng_range(&rng, 1, 5) * 512);
}

static void
bands_cover_any_range_exactly_once(void)
{
    for_all_geometries(bands_of_random_ranges);
    for_unequal_raid0(bands_of_random_ranges);
}

/* rows_inside(): exactly its array bytes (and their redundancy) are what it names on members. */
static void
check_rows(const struct geometry *geometry, uint64_t off, uint64_t len)
{
    struct row_range rows;
    if (!rows_inside(geometry, off, len, &rows))
        return;
    uint64_t unit = geometry->level == RAID1 ? BLOCK_BYTES : geometry->chunk_bytes;
    CU_ASSERT(rows.array_off_bytes >= off &&
              rows.array_off_bytes + rows.array_len_bytes <= off + len);
    uint64_t held = 0;
    bool good = true;
    for (uint64_t at = 0; at < rows.array_len_bytes; at += unit) {
        struct place places[MEMBERS_MAX];
        uint32_t count = layout_places(geometry, rows.array_off_bytes + at, places, MEMBERS_MAX);
        for (uint32_t i = 0; i < count; i++)
            good =
                good && (rows.roles & mask_of(places[i].role)) != 0 &&
                places[i].member_off_bytes >= rows.member_off_bytes &&
                places[i].member_off_bytes + unit <= rows.member_off_bytes + rows.member_len_bytes;
        held += count * unit;
    }
    held += geometry->parity_count * rows.member_len_bytes;
    CU_ASSERT(good && held == mask_count(rows.roles) * rows.member_len_bytes);
}

static void
rows_of_random_ranges(const struct geometry *geometry)
{
    struct rng rng;
    rng_seed(&rng, suite_seed() ^ geometry->array_bytes);
    uint64_t off = rng_below(&rng, geometry->array_bytes);
    check_rows(geometry, off, rng_below(&rng, geometry->array_bytes - off + 1));
    check_rows(geometry, 0, geometry->array_bytes);
    struct row_range rows;
    bool any = rows_inside(geometry, 0, geometry->array_bytes, &rows);
    bool none_possible =
        geometry->level == RAID10 && (geometry->member_count % geometry->near_copies != 0 ||
                                      (geometry->far_copies > 1 && !geometry->far_offset));
    CU_ASSERT_EQUAL(any, !none_possible);
    if (any && geometry->level != RAID0) /* all of the array is rows */
        CU_ASSERT_EQUAL(rows.array_len_bytes, geometry->array_bytes);
}

static void
rows_inside_name_what_their_members_hold(void)
{
    for_all_geometries(rows_of_random_ranges);
    for_unequal_raid0(rows_of_random_ranges);
}

static void
rows_for_resync_cover_the_array(const struct geometry *geometry)
{
    struct band band;
    uint64_t row = 0, covered = 0;
    bool good = true;
    for (; band_of_row(geometry, row, &band); row++) {
        good = good && band.array_off_bytes == covered && band.lock_len == band.len_bytes &&
               band.lock_off == row * geometry->chunk_bytes;
        covered += band.len_bytes * band.data_count;
    }
    CU_ASSERT(good);
    if (geometry->level == RAID0)
        CU_ASSERT_EQUAL(row, 0)
    else
        CU_ASSERT(row == geometry->row_count && covered == geometry->array_bytes);
}

static void
rows_of_resync_are_the_array_in_order(void)
{
    for_all_geometries(rows_for_resync_cover_the_array);
}

/* Survivable against trying all sets of failures. */
static void
try_all_failures(const struct geometry *geometry)
{
    uint64_t all = mask_below(geometry->member_count);
    uint32_t least = geometry->member_count + 1; /* failures of the smallest set that is too many */
    for (uint64_t lost = 0; lost <= all; lost++)
        if (!layout_enough(geometry, all & ~lost))
            least = MIN(least, mask_count(lost));
    CU_ASSERT_EQUAL(layout_survivable(geometry, all), least - 1);
    CU_ASSERT(geometry->tolerance == least - 1 ||
              (geometry->level == RAID10 && geometry->row_count < geometry->member_count));
}

static void
survivable_is_the_worst_case_of_all_failures(void)
{
    for_all_geometries(try_all_failures);
}

/* ---- geometries from a hostile superblock --------------------------------------------------- */

static uint64_t
hostile_number(struct rng *rng)
{
    uint64_t bits = rng_below(rng, 65);
    uint64_t value = bits == 64 ? rng_u64(rng) : rng_u64(rng) & ((UINT64_C(1) << bits) - 1);
    return rng_chance(rng, 60) ? value & ~UINT64_C(4095) : value;
}

static void
hostile_geometry(struct rng *rng, struct geometry *geometry)
{
    static const enum raid_level levels[] = {RAID0, RAID1, RAID4, RAID5, RAID6, RAID10};
    *geometry = (struct geometry){
        .level = levels[rng_below(rng, ARRAY_LEN(levels))],
        .member_count = (uint32_t)rng_below(rng, rng_chance(rng, 90) ? 66 : UINT32_MAX),
        .chunk_bytes =
            rng_chance(rng, 80) ? UINT64_C(1) << rng_below(rng, 33) : hostile_number(rng),
        .member_bytes = hostile_number(rng),
    };
    geometry->layout = (uint32_t)rng_below(rng, 24);
    if (geometry->level == RAID10)
        geometry->layout = (uint32_t)(rng_below(rng, 5) | rng_below(rng, 5) << 8 |
                                      rng_below(rng, 2) << 16 | rng_below(rng, 5) << 17);
    for (uint32_t role = 0; role < MEMBERS_MAX; role++)
        geometry->role_bytes[role] = hostile_number(rng) | geometry->chunk_bytes;
}

/* Everything at the far end stays inside the members. */
static bool
end_is_inside(const struct geometry *geometry)
{
    uint64_t last = geometry->array_bytes - 1;
    struct place places[MEMBERS_MAX];
    uint32_t count = layout_places(geometry, last, places, ARRAY_LEN(places));
    bool good = count > 0 && count <= geometry->member_count;
    for (uint32_t i = 0; good && i < count; i++)
        good = places[i].role < geometry->member_count &&
               places[i].member_off_bytes < geometry->role_bytes[places[i].role];
    struct band_iter iter;
    struct band band;
    uint64_t len = MIN(geometry->array_bytes, KIB(64)), covered = 0;
    band_iter_init(&iter, geometry, geometry->array_bytes - len, len, KIB(64));
    while (band_next(&iter, &band))
        covered += band.len_bytes * band.data_count;
    struct row_range rows;
    if (rows_inside(geometry, 0, geometry->array_bytes, &rows))
        good = good && rows.array_len_bytes <= geometry->array_bytes;
    return good && covered == len && layout_enough(geometry, UINT64_MAX) &&
           layout_survivable(geometry, UINT64_MAX) >= geometry->tolerance;
}

static void
hostile_geometries_are_refused_or_safe(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    unsigned accepted = 0;
    for (uint64_t i = 0; i < suite_seeds(20000); i++) {
        struct geometry geometry;
        hostile_geometry(&rng, &geometry);
        if (geometry_init(&geometry, NULL) == 0) {
            CU_ASSERT(end_is_inside(&geometry));
            accepted++;
        }
    }
    CU_ASSERT(accepted > suite_seeds(20000) / 100);
}

SUITE_MAIN("maps", T(every_map_is_one_to_one_and_onto), T(q_exponents_differ_within_a_row),
           T(bands_cover_any_range_exactly_once), T(rows_inside_name_what_their_members_hold),
           T(rows_of_resync_are_the_array_in_order),
           T(survivable_is_the_worst_case_of_all_failures),
           T(hostile_geometries_are_refused_or_safe))
