/* THEORY OF OPERATION
 *
 * Which role of a row is parity, which holds data index i, and with which exponent it enters Q
 * (research/md.md 2.3 to 2.5).  A layout is three choices:
 *
 *   where P is     it walks left (n-1 - row mod n), right (row mod n), or stays first or last
 *   where Q is     right after P (ddf-N-continue: right before); none in RAID 4/5; the last role in
 *                  the -6 layouts, which are a RAID 5 over the other n-1 roles
 *   data order     symmetric: index 0 right after the parities, going round;
 *                  asymmetric: in role order, skipping the parities
 *
 * Q = sum of 2^e * data.  md counts e round from the role after Q, skipping parities; DDF takes the
 * role number itself. */
#include "layouts/level.h"

enum walk { WALK_LEFT, WALK_RIGHT, WALK_FIRST, WALK_LAST };

struct rotation {
    enum walk walk;
    bool symmetric;
    bool over_raid5; /* the -6 layouts */
    bool ddf;
};

static struct rotation
rotation_of(const struct geometry *geometry)
{
    if (geometry->level == RAID4)
        return (struct rotation){.walk = WALK_LAST};
    switch ((enum raid5_layout)geometry->layout) {
    case LEFT_ASYMMETRIC:
        return (struct rotation){.walk = WALK_LEFT};
    case RIGHT_ASYMMETRIC:
        return (struct rotation){.walk = WALK_RIGHT};
    case LEFT_SYMMETRIC:
        return (struct rotation){.walk = WALK_LEFT, .symmetric = true};
    case RIGHT_SYMMETRIC:
        return (struct rotation){.walk = WALK_RIGHT, .symmetric = true};
    case PARITY_FIRST:
        return (struct rotation){.walk = WALK_FIRST};
    case PARITY_LAST:
        return (struct rotation){.walk = WALK_LAST};
    case DDF_ZERO_RESTART:
        return (struct rotation){.walk = WALK_RIGHT, .ddf = true};
    case DDF_N_RESTART:
        return (struct rotation){.walk = WALK_LEFT, .ddf = true};
    case DDF_N_CONTINUE:
        return (struct rotation){.walk = WALK_LEFT, .symmetric = true, .ddf = true};
    case LEFT_ASYMMETRIC_6:
        return (struct rotation){.walk = WALK_LEFT, .over_raid5 = true};
    case RIGHT_ASYMMETRIC_6:
        return (struct rotation){.walk = WALK_RIGHT, .over_raid5 = true};
    case LEFT_SYMMETRIC_6:
        return (struct rotation){.walk = WALK_LEFT, .symmetric = true, .over_raid5 = true};
    case RIGHT_SYMMETRIC_6:
        return (struct rotation){.walk = WALK_RIGHT, .symmetric = true, .over_raid5 = true};
    case PARITY_FIRST_6:
        return (struct rotation){.walk = WALK_FIRST, .over_raid5 = true};
    }
    check(false && "geometry_init() lets no other layout pass");
    return (struct rotation){.walk = WALK_LEFT};
}

/* The role of P among `width` roles, of which the last `parities` positions count as last. */
static uint32_t
walk_to(enum walk walk, uint64_t row, uint32_t width, uint32_t parities)
{
    switch (walk) {
    case WALK_LEFT:
        return width - 1 - (uint32_t)(row % width);
    case WALK_RIGHT:
        return (uint32_t)(row % width);
    case WALK_FIRST:
        return 0;
    case WALK_LAST:
        return width - parities;
    }
    return 0;
}

static void
place_parity(const struct geometry *geometry, const struct rotation *rotation, uint64_t row,
             struct row_roles *out)
{
    uint32_t n = geometry->member_count;
    if (geometry->parity_count == 1 || rotation->over_raid5) {
        uint32_t width = rotation->over_raid5 ? n - 1 : n;
        out->p = (int32_t)walk_to(rotation->walk, row, width, 1);
        out->q = rotation->over_raid5 ? (int32_t)n - 1 : -1;
        return;
    }
    if (geometry->layout == DDF_N_RESTART)
        row++; /* starts one step further than left-asymmetric */
    uint32_t p = walk_to(rotation->walk, row, n, 2);
    out->p = (int32_t)p;
    out->q = (int32_t)(geometry->layout == DDF_N_CONTINUE ? (p + n - 1) % n : (p + 1) % n);
}

static void
place_data(const struct geometry *geometry, const struct rotation *rotation, struct row_roles *out)
{
    uint32_t n = geometry->member_count, index = 0;
    uint32_t start = rotation->symmetric ? (uint32_t)out->p + 1 : 0;
    uint32_t width = rotation->over_raid5 ? n - 1 : n;
    for (uint32_t i = 0; i < width; i++) {
        uint32_t role = (start + i) % width;
        if ((int32_t)role != out->p && (int32_t)role != out->q)
            out->data_role[index++] = (uint8_t)role;
    }
    check_eq(index, geometry->data_count);
}

static void
number_exponents(const struct geometry *geometry, const struct rotation *rotation,
                 struct row_roles *out)
{
    uint8_t exponent[MEMBERS_MAX];
    uint32_t n = geometry->member_count;
    uint8_t next = 0;
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t role = ((uint32_t)out->q + i) % n;
        if ((int32_t)role != out->p && (int32_t)role != out->q)
            exponent[role] = rotation->ddf ? (uint8_t)role : next++;
    }
    for (uint32_t i = 0; i < geometry->data_count; i++)
        out->q_exponent[i] = exponent[out->data_role[i]];
}

void
row_roles(const struct geometry *geometry, uint64_t row, struct row_roles *out)
{
    struct rotation rotation = rotation_of(geometry);
    place_parity(geometry, &rotation, row, out);
    place_data(geometry, &rotation, out);
    if (out->q >= 0)
        number_exponents(geometry, &rotation, out);
    else
        memset(out->q_exponent, 0, geometry->data_count);
}
