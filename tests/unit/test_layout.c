#include <stdio.h>

#include "layouts/layout.h"
#include "layouts/level.h"
#include "tests/unit/suite.h"

#define C KIB(64)

static struct geometry
make(enum raid_level level, uint32_t layout, uint32_t members, uint64_t rows)
{
    struct geometry geometry = {
        .level = level,
        .layout = layout,
        .member_count = members,
        .chunk_bytes = C,
        .member_bytes = rows * C,
    };
    for (uint32_t role = 0; role < members; role++)
        geometry.role_bytes[role] = rows * C;
    CU_ASSERT_EQUAL_FATAL(geometry_init(&geometry, NULL), 0);
    return geometry;
}

/* Rows as in research/md.md: "P", "Q" or the array chunk number on each role. */
static void
expect_row(enum raid_level level, uint32_t layout, uint32_t members, uint64_t row,
           const char *expected)
{
    struct geometry geometry = make(level, layout, members, 64);
    struct row_roles roles;
    row_roles(&geometry, row, &roles);
    char text[256] = "";
    for (uint32_t role = 0; role < members; role++) {
        size_t used = strlen(text);
        if ((int32_t)role == roles.p)
            snprintf(text + used, sizeof(text) - used, "P ");
        else if ((int32_t)role == roles.q)
            snprintf(text + used, sizeof(text) - used, "Q ");
        else
            for (uint32_t i = 0; i < geometry.data_count; i++)
                if (roles.data_role[i] == role)
                    snprintf(text + used, sizeof(text) - used, "%u ",
                             (unsigned)(row * geometry.data_count + i));
    }
    if (strcmp(text, expected) != 0)
        printf("level %d layout %u row %u: %s, expected %s\n", (int)level, layout, (unsigned)row,
               text, expected);
    CU_ASSERT_STRING_EQUAL(text, expected);
}

static void
raid5_rows_are_as_md_writes_them(void)
{
    expect_row(RAID5, LEFT_SYMMETRIC, 4, 0, "0 1 2 P ");
    expect_row(RAID5, LEFT_SYMMETRIC, 4, 1, "4 5 P 3 ");
    expect_row(RAID5, LEFT_SYMMETRIC, 4, 2, "8 P 6 7 ");
    expect_row(RAID5, LEFT_SYMMETRIC, 4, 3, "P 9 10 11 ");
    expect_row(RAID5, LEFT_SYMMETRIC, 4, 4, "12 13 14 P ");
    expect_row(RAID5, LEFT_ASYMMETRIC, 4, 1, "3 4 P 5 ");
    expect_row(RAID5, LEFT_ASYMMETRIC, 4, 2, "6 P 7 8 ");
    expect_row(RAID5, RIGHT_ASYMMETRIC, 4, 0, "P 0 1 2 ");
    expect_row(RAID5, RIGHT_ASYMMETRIC, 4, 2, "6 7 P 8 ");
    expect_row(RAID5, RIGHT_SYMMETRIC, 4, 1, "5 P 3 4 ");
    expect_row(RAID5, RIGHT_SYMMETRIC, 4, 2, "7 8 P 6 ");
    expect_row(RAID5, PARITY_FIRST, 4, 7, "P 21 22 23 ");
    expect_row(RAID5, PARITY_LAST, 4, 7, "21 22 23 P ");
    expect_row(RAID4, 0, 4, 7, "21 22 23 P ");
    expect_row(RAID4, LEFT_SYMMETRIC, 4, 7, "21 22 23 P ");
}

static void
raid6_rows_are_as_md_writes_them(void)
{
    expect_row(RAID6, LEFT_SYMMETRIC, 5, 0, "Q 0 1 2 P ");
    expect_row(RAID6, LEFT_SYMMETRIC, 5, 1, "3 4 5 P Q ");
    expect_row(RAID6, LEFT_SYMMETRIC, 5, 2, "7 8 P Q 6 ");
    expect_row(RAID6, LEFT_SYMMETRIC, 5, 3, "11 P Q 9 10 ");
    expect_row(RAID6, LEFT_SYMMETRIC, 5, 4, "P Q 12 13 14 ");
    expect_row(RAID6, RIGHT_SYMMETRIC, 5, 1, "5 P Q 3 4 ");
    expect_row(RAID6, RIGHT_SYMMETRIC, 5, 4, "Q 12 13 14 P ");
    expect_row(RAID6, DDF_N_RESTART, 5, 0, "0 1 2 P Q ");
    expect_row(RAID6, DDF_N_RESTART, 5, 1, "3 4 P Q 5 ");
    expect_row(RAID6, DDF_N_RESTART, 5, 4, "Q 12 13 14 P ");
    expect_row(RAID6, DDF_N_CONTINUE, 5, 0, "0 1 2 Q P ");
    expect_row(RAID6, DDF_N_CONTINUE, 5, 1, "4 5 Q P 3 ");
    expect_row(RAID6, DDF_N_CONTINUE, 5, 4, "P 12 13 14 Q ");
    expect_row(RAID6, LEFT_SYMMETRIC_6, 5, 1, "4 5 P 3 Q ");
    expect_row(RAID6, LEFT_SYMMETRIC_6, 5, 3, "P 9 10 11 Q ");
    expect_row(RAID6, PARITY_FIRST, 5, 3, "P Q 9 10 11 ");
    expect_row(RAID6, PARITY_LAST, 5, 3, "9 10 11 P Q ");
    expect_row(RAID6, PARITY_FIRST_6, 5, 3, "P 9 10 11 Q ");
}

static void
raid6_exponents_go_round_from_q_or_by_ddf_are_the_role(void)
{
    struct row_roles roles;
    struct geometry geometry = make(RAID6, LEFT_ASYMMETRIC, 5, 8);
    row_roles(&geometry, 2, &roles); /* 0 1 P Q 2: role 4 comes first */
    CU_ASSERT_EQUAL(roles.q_exponent[0], 1);
    CU_ASSERT_EQUAL(roles.q_exponent[1], 2);
    CU_ASSERT_EQUAL(roles.q_exponent[2], 0);
    geometry = make(RAID6, LEFT_SYMMETRIC, 5, 8);
    row_roles(&geometry, 2, &roles);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(roles.q_exponent[i], i);
    geometry = make(RAID6, DDF_ZERO_RESTART, 5, 8);
    row_roles(&geometry, 1, &roles); /* 3 P Q 4 5 */
    CU_ASSERT_EQUAL(roles.q_exponent[0], 0);
    CU_ASSERT_EQUAL(roles.q_exponent[1], 3);
    CU_ASSERT_EQUAL(roles.q_exponent[2], 4);
}

static void
expect_places(const struct geometry *geometry, uint64_t chunk, uint32_t count,
              const uint64_t (*role_row)[2])
{
    struct place places[4];
    CU_ASSERT_EQUAL(layout_places(geometry, chunk * C + 5, places, 4), count);
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(places[i].role, role_row[i][0]);
        CU_ASSERT_EQUAL(places[i].member_off_bytes, role_row[i][1] * C + 5);
    }
}

static void
raid10_copies_are_where_md_puts_them(void)
{
    struct geometry geometry = make(RAID10, 0x102, 3, 8); /* 0 0 1 | 1 2 2 | 3 3 4 */
    CU_ASSERT_EQUAL(geometry.array_bytes, 12 * C);
    expect_places(&geometry, 1, 2, (const uint64_t[][2]){{2, 0}, {0, 1}});
    geometry = make(RAID10, 0x201, 4, 368); /* row184 3 0 1 2 */
    CU_ASSERT_EQUAL(geometry.far_stride_rows, 184);
    expect_places(&geometry, 0, 2, (const uint64_t[][2]){{0, 0}, {1, 184}});
    expect_places(&geometry, 7, 2, (const uint64_t[][2]){{3, 1}, {0, 185}});
    geometry = make(RAID10, 0x301, 4, 15); /* stride 5: row5 3 0 1 2, row10 2 3 0 1 */
    expect_places(&geometry, 3, 3, (const uint64_t[][2]){{3, 0}, {0, 5}, {1, 10}});
    geometry = make(RAID10, 0x10201, 3, 8); /* 0 1 2 | 2 0 1 | 3 4 5 | 5 3 4 */
    expect_places(&geometry, 5, 2, (const uint64_t[][2]){{2, 2}, {0, 3}});
    geometry = make(RAID10, 0x40201, 5, 8); /* sets {0,1} {2,3,4} */
    expect_places(&geometry, 1, 2, (const uint64_t[][2]){{1, 0}, {0, 4}});
    expect_places(&geometry, 4, 2, (const uint64_t[][2]){{4, 0}, {2, 4}});
}

static void
raid10_sizes_round_as_md_rounds(void)
{
    struct geometry geometry = make(RAID10, 0x102, 3, 7);
    CU_ASSERT_EQUAL(geometry.array_bytes, 10 * C); /* 7 * 3 / 2 */
    geometry = make(RAID10, 0x201, 5, 9);
    CU_ASSERT_EQUAL(geometry.array_bytes, 20 * C); /* 9 / 2 * 5 */
    CU_ASSERT_EQUAL(geometry.far_stride_rows, 4);
    geometry = make(RAID10, 0x10201, 3, 9);
    CU_ASSERT_EQUAL(geometry.array_bytes, 12 * C);
}

static void
raid0_zones_follow_both_md_layouts(void)
{
    struct geometry geometry = {
        .level = RAID0,
        .layout = RAID0_ORIGINAL,
        .member_count = 3,
        .chunk_bytes = C,
        .role_bytes = {369 * C + 17, 496 * C, 624 * C + C - 1},
    };
    CU_ASSERT_EQUAL_FATAL(geometry_init(&geometry, NULL), 0);
    CU_ASSERT_EQUAL(geometry.array_bytes, 1489 * C);
    CU_ASSERT_EQUAL(geometry.zone_count, 3);
    expect_places(&geometry, 1106, 1, (const uint64_t[][2]){{2, 368}});
    expect_places(&geometry, 1107, 1, (const uint64_t[][2]){{2, 369}});
    expect_places(&geometry, 1108, 1, (const uint64_t[][2]){{1, 369}});
    expect_places(&geometry, 1361, 1, (const uint64_t[][2]){{2, 496}});
    geometry.layout = RAID0_ALTERNATE;
    CU_ASSERT_EQUAL_FATAL(geometry_init(&geometry, NULL), 0);
    expect_places(&geometry, 1107, 1, (const uint64_t[][2]){{1, 369}});
    expect_places(&geometry, 1108, 1, (const uint64_t[][2]){{2, 369}});
    geometry.layout = 0; /* not recorded, and it matters */
    struct diag diag;
    CU_ASSERT_EQUAL(geometry_init(&geometry, &diag), -EINVAL);
    CU_ASSERT_STRING_EQUAL(diag.code, "E_LAYOUT_UNKNOWN");
    geometry.role_bytes[0] = 370 * C; /* 1110 is a multiple of 2: both maps agree */
    CU_ASSERT_EQUAL(geometry_init(&geometry, NULL), 0);
}

static void
expect_refusal(enum raid_level level, uint32_t layout, uint32_t members, uint64_t chunk,
               uint64_t member_bytes, const char *code)
{
    struct geometry geometry = {
        .level = level,
        .layout = layout,
        .member_count = members,
        .chunk_bytes = chunk,
        .member_bytes = member_bytes,
    };
    for (uint32_t role = 0; role < MEMBERS_MAX; role++)
        geometry.role_bytes[role] = member_bytes;
    struct geometry before = geometry;
    struct diag diag = {.code = ""};
    CU_ASSERT_EQUAL(geometry_init(&geometry, &diag), -EINVAL);
    CU_ASSERT_STRING_EQUAL(diag.code, code);
    CU_ASSERT_EQUAL(geometry.array_bytes, before.array_bytes);
}

static void
impossible_geometries_are_refused(void)
{
    expect_refusal((enum raid_level)7, 0, 3, C, MIB(1), "E_LEVEL_UNKNOWN");
    expect_refusal(RAID5, 2, 1, C, MIB(1), "E_GEOMETRY");
    expect_refusal(RAID5, 2, 65, C, MIB(1), "E_GEOMETRY");
    expect_refusal(RAID5, 2, 3, 0, MIB(1), "E_GEOMETRY");
    expect_refusal(RAID5, 2, 3, 2048, MIB(1), "E_GEOMETRY");
    expect_refusal(RAID5, 2, 3, 12288, MIB(1), "E_GEOMETRY");
    expect_refusal(RAID5, 2, 3, C, C - 512, "E_GEOMETRY");
    expect_refusal(RAID5, 2, 3, C, UINT64_MAX, "E_GEOMETRY");
    expect_refusal(RAID5, 2, 64, C, UINT64_MAX / 2, "E_GEOMETRY");
    expect_refusal(RAID0, 1, 64, C, UINT64_MAX / 2, "E_GEOMETRY");
    expect_refusal(RAID10, 0x102, 64, C, UINT64_MAX / 2, "E_GEOMETRY");
    expect_refusal(RAID6, 2, 3, C, MIB(1), "E_GEOMETRY");
    expect_refusal(RAID5, 8, 4, C, MIB(1), "E_LAYOUT_UNKNOWN");
    expect_refusal(RAID6, 6, 4, C, MIB(1), "E_LAYOUT_UNKNOWN");
    expect_refusal(RAID0, 3, 4, C, MIB(1), "E_LAYOUT_UNKNOWN");
    expect_refusal(RAID10, 0x101, 4, C, MIB(1), "E_LAYOUT_UNKNOWN");
    expect_refusal(RAID10, 0x103, 2, C, MIB(1), "E_LAYOUT_UNKNOWN");
    expect_refusal(RAID10, 0x80102, 4, C, MIB(1), "E_LAYOUT_UNKNOWN");
    expect_refusal(RAID10, 0x60201, 4, C, MIB(1), "E_LAYOUT_UNKNOWN");
    expect_refusal(RAID10, 0x10202, 5, C, MIB(1), "E_LAYOUT_UNKNOWN"); /* near with offset */
    expect_refusal(RAID10, 0x20202, 5, C, MIB(1), "E_LAYOUT_UNKNOWN"); /* sets too small */
}

static void
names_are_mdadms_and_parse_back(void)
{
    static const enum raid_level levels[] = {RAID0, RAID1, RAID4, RAID5, RAID6, RAID10};
    char name[64];
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        enum raid_level level;
        CU_ASSERT(level_parse(level_name(levels[i]), &level) && level == levels[i]);
        CU_ASSERT(level_parse(level_name(levels[i]) + 4, &level) && level == levels[i]);
        uint32_t layout;
        CU_ASSERT(layout_parse(levels[i], "default", &layout));
        CU_ASSERT_EQUAL(layout, layout_default(levels[i]));
    }
    for (uint32_t number = 0; number <= PARITY_FIRST_6; number++) {
        uint32_t parsed;
        layout_name(RAID6, number, name, sizeof(name));
        bool known = layout_parse(RAID6, name, &parsed);
        CU_ASSERT_EQUAL(known, strcmp(name, "unknown") != 0);
        CU_ASSERT(!known || parsed == number);
    }
    for (uint32_t copies = 2; copies <= 255; copies++)
        for (uint32_t kind = 0; kind < 3; kind++) {
            uint32_t number = kind == 0 ? 0x100 | copies : (kind == 1 ? 1 : 0x10001) | copies << 8;
            uint32_t parsed = 0;
            layout_name(RAID10, number, name, sizeof(name));
            CU_ASSERT(layout_parse(RAID10, name, &parsed) && parsed == number);
        }
    layout_name(RAID5, 2, name, sizeof(name));
    CU_ASSERT_STRING_EQUAL(name, "left-symmetric");
    layout_name(RAID6, 16, name, sizeof(name));
    CU_ASSERT_STRING_EQUAL(name, "left-asymmetric-6");
    layout_name(RAID10, 0x10201, name, sizeof(name));
    CU_ASSERT_STRING_EQUAL(name, "offset=2");
    layout_name(RAID10, 0x102, name, sizeof(name));
    CU_ASSERT_STRING_EQUAL(name, "near=2");
    uint32_t layout;
    CU_ASSERT(layout_parse(RAID10, "f3", &layout) && layout == 0x301);
    CU_ASSERT(layout_parse(RAID10, "near=3", &layout) && layout == 0x103);
    CU_ASSERT(layout_parse(RAID5, "ra", &layout) && layout == RIGHT_ASYMMETRIC);
    CU_ASSERT(!layout_parse(RAID10, "n", &layout));
    CU_ASSERT(!layout_parse(RAID10, "n2x", &layout));
    CU_ASSERT(!layout_parse(RAID10, "", &layout));
    CU_ASSERT(!layout_parse(RAID5, "diagonal", &layout));
    enum raid_level level;
    CU_ASSERT(!level_parse("raid", &level) && !level_parse("", &level) &&
              !level_parse("2", &level));
}

static void
enough_and_survivable_count_the_worst_case(void)
{
    struct geometry geometry = make(RAID5, LEFT_SYMMETRIC, 4, 8);
    CU_ASSERT_EQUAL(layout_survivable(&geometry, 0xf), 1);
    CU_ASSERT_EQUAL(layout_survivable(&geometry, 0x7), 0);
    CU_ASSERT(layout_enough(&geometry, 0x7) && !layout_enough(&geometry, 0x3));
    geometry = make(RAID10, 0x102, 4, 8);
    CU_ASSERT_EQUAL(geometry.tolerance, 1);
    CU_ASSERT_EQUAL(layout_survivable(&geometry, 0xf), 1);
    CU_ASSERT(layout_enough(&geometry, 0x5) && !layout_enough(&geometry, 0xc));
    CU_ASSERT_EQUAL(layout_survivable(&geometry, 0x7), 0);
    geometry = make(RAID10, 0x103, 6, 8);
    CU_ASSERT_EQUAL(layout_survivable(&geometry, 0x3e), 1);
    geometry = make(RAID1, 0, 3, 8);
    CU_ASSERT_EQUAL(layout_survivable(&geometry, 0x7), 2);
    CU_ASSERT(!layout_enough(&geometry, 0));
    geometry = make(RAID0, 1, 3, 8);
    CU_ASSERT(layout_enough(&geometry, 0x7) && !layout_enough(&geometry, 0x3));
}

static void
a_stripe_is_at_most_three_bands_of_wholly_written_roles(void)
{
    struct geometry geometry = make(RAID5, LEFT_SYMMETRIC, 4, 8);
    struct band_iter iter;
    struct band band;
    /* [1.25, 2.5) chunks: in-chunk [0, .25): chunk 2; [.25, .5): both; [.5, 1): chunk 1 */
    band_iter_init(&iter, &geometry, C + C / 4, C + C / 4, MIB(1));
    CU_ASSERT(band_next(&iter, &band) && band.data_first == 2 && band.data_count == 1);
    CU_ASSERT(band.lo_bytes == 0 && band.len_bytes == C / 4 && band.array_off_bytes == 2 * C);
    CU_ASSERT(band_next(&iter, &band) && band.data_first == 1 && band.data_count == 2);
    CU_ASSERT(band.lo_bytes == C / 4 && band.lock_off == C / 4 && band.lock_len == C / 4);
    CU_ASSERT(band_next(&iter, &band) && band.data_first == 1 && band.data_count == 1);
    CU_ASSERT(band.lo_bytes == C / 2 && band.len_bytes == C / 2);
    CU_ASSERT(!band_next(&iter, &band) && !band_next(&iter, &band));
    /* the end of one chunk and the start of the next do not meet */
    band_iter_init(&iter, &geometry, C - 512, 1024, MIB(1));
    CU_ASSERT(band_next(&iter, &band) && band.data_first == 1 && band.len_bytes == 512);
    CU_ASSERT(band_next(&iter, &band) && band.data_first == 0 && band.lo_bytes == C - 512);
    CU_ASSERT(!band_next(&iter, &band));
    band_iter_init(&iter, &geometry, 0, 0, 1);
    CU_ASSERT(!band_next(&iter, &band));
}

static void
skeleton_level_maps_members_one_after_the_other(void)
{
    struct geometry geometry = {.member_count = 3, .chunk_bytes = C, .member_bytes = 5 * C + 7};
    CU_ASSERT_EQUAL_FATAL(skeleton_ops.init(&geometry, NULL), 0);
    CU_ASSERT_EQUAL(geometry.array_bytes, 15 * C);
    struct place place;
    CU_ASSERT_EQUAL(skeleton_ops.places(&geometry, 7 * C + 1, &place, 1), 1);
    CU_ASSERT(place.role == 1 && place.member_off_bytes == 2 * C + 1);
    struct band_iter iter;
    struct band band;
    band_iter_init(&iter, &geometry, 4 * C, 2 * C, MIB(1));
    CU_ASSERT(skeleton_ops.band_next(&iter, &band) && band.len_bytes == C);
    CU_ASSERT(!skeleton_ops.band_of_row(&geometry, 0, &band));
    struct row_range rows;
    CU_ASSERT(!skeleton_ops.rows_inside(&geometry, 0, 15 * C, &rows));
    CU_ASSERT(skeleton_ops.spare(&geometry, 7) == 0 && skeleton_ops.spare(&geometry, 3) < 0);
}

SUITE_MAIN("layout", T(raid5_rows_are_as_md_writes_them), T(raid6_rows_are_as_md_writes_them),
           T(raid6_exponents_go_round_from_q_or_by_ddf_are_the_role),
           T(raid10_copies_are_where_md_puts_them), T(raid10_sizes_round_as_md_rounds),
           T(raid0_zones_follow_both_md_layouts), T(impossible_geometries_are_refused),
           T(names_are_mdadms_and_parse_back), T(enough_and_survivable_count_the_worst_case),
           T(a_stripe_is_at_most_three_bands_of_wholly_written_roles),
           T(skeleton_level_maps_members_one_after_the_other))
