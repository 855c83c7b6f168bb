/* Address maps of the RAID levels: pure functions of a geometry.
 *
 * THEORY.  Array bytes are grouped into *bands*, the unit of planning: a band is a run of bytes at
 * the same member offset in one or more data roles of one row (stripe), all of the same length,
 * wholly inside the range asked for.  A contiguous range of a stripe is at most three bands:
 *
 *      chunk i      |....##########|      band A: [b, C) of chunk i .. j-1     (.)
 *      chunk i+1    |##############|      band B: [a, b) of chunk i .. j  ...
 *      chunk j      |#######.......|      and so on; see band_next()
 *
 * For mirrors a band is one run of array bytes with several copies; for RAID 0 one run in one
 * chunk.  Only layouts/ converts between array and member addresses.
 *
 * Member offsets count from the member's data_offset. */
#pragma once

#include "engine/base/bitset.h"
#include "engine/base/diag.h"

#define MEMBERS_MAX 64
#define ZONES_MAX   MEMBERS_MAX

/* md's level numbers (superblock `level`). */
enum raid_level {
    RAID0 = 0,
    RAID1 = 1,
    RAID4 = 4,
    RAID5 = 5,
    RAID6 = 6,
    RAID10 = 10,
};

/* md's layout numbers (research/md.md 2). */
enum raid5_layout {
    LEFT_ASYMMETRIC = 0,
    RIGHT_ASYMMETRIC = 1,
    LEFT_SYMMETRIC = 2,
    RIGHT_SYMMETRIC = 3,
    PARITY_FIRST = 4,
    PARITY_LAST = 5,
    DDF_ZERO_RESTART = 8,
    DDF_N_RESTART = 9,
    DDF_N_CONTINUE = 10,
    LEFT_ASYMMETRIC_6 = 16,
    RIGHT_ASYMMETRIC_6 = 17,
    LEFT_SYMMETRIC_6 = 18,
    RIGHT_SYMMETRIC_6 = 19,
    PARITY_FIRST_6 = 20,
};
enum raid0_layout { RAID0_ORIGINAL = 1, RAID0_ALTERNATE = 2 };

struct zone {             /* RAID0: rows [row_first, ...) over the roles that reach that far */
    uint64_t row_first;   /* member row, in chunks */
    uint64_t chunk_first; /* array chunk number of its first chunk */
    uint32_t width;
    uint8_t roles[MEMBERS_MAX]; /* in role order */
};

struct geometry {
    enum raid_level level;
    uint32_t layout;                  /* md's number */
    uint32_t member_count;            /* raid_disks: roles 0 .. member_count-1 */
    uint64_t chunk_bytes;             /* RAID1: 0 on disk; here a unit of planning, 64 KiB */
    uint64_t member_bytes;            /* used of each member (superblock `size`); RAID0: unused */
    uint64_t role_bytes[MEMBERS_MAX]; /* RAID0: data_size of each role; else = member_bytes */

    /* Derived by geometry_init(). */
    uint64_t array_bytes;
    uint32_t data_count;   /* data chunks in a row (RAID10: n; far: n) */
    uint32_t parity_count; /* 0, 1, 2 */
    uint32_t tolerance;    /* members that may fail in the worst case */
    uint64_t stripe_bytes; /* data bytes of a row: dev_info.optimal_bytes */
    uint64_t row_count;    /* how many rows band_of_row() knows; RAID0: of the longest member */
    uint32_t zone_count;   /* RAID0 */
    struct zone zones[ZONES_MAX];
    uint32_t near_copies, far_copies; /* RAID10 */
    bool far_offset;
    uint32_t far_set_size; /* RAID10 far-set mode: members of a set (the last takes the rest) */
    uint64_t far_stride_rows;
};

/* Check the free fields and fill the derived ones; RAID1's chunk_bytes is set to 64 KiB, and
 * role_bytes of all levels but RAID0 to member_bytes.  RAID0 layout 0 (md did not record it) is
 * accepted when both maps agree.  -EINVAL with *diag: E_GEOMETRY, E_LEVEL_UNKNOWN,
 * E_LAYOUT_UNKNOWN (also RAID10 layouts whose copies would collide: research/md.md 2.6). */
MUST_CHECK int geometry_init(struct geometry *geometry, struct diag *diag);

const char *level_name(enum raid_level level);              /* "raid5" */
bool level_parse(const char *text, enum raid_level *level); /* "5", "raid5" */
/* md's names: "left-symmetric", "near=2" prints as mdadm does ("near=2"), parse also "n2". */
void layout_name(enum raid_level level, uint32_t layout, char *out, size_t out_bytes);
bool layout_parse(enum raid_level level, const char *text, uint32_t *layout);
uint32_t layout_default(enum raid_level level); /* left-symmetric; near=2; RAID0 original */

struct band {
    uint64_t array_off_bytes; /* of the first byte of its first data role */
    uint64_t row;             /* stripe number; mirrors and RAID0: unused, 0 */
    uint64_t lo_bytes;        /* offset inside the chunk where the band starts */
    uint64_t len_bytes;       /* in each data role */
    uint32_t data_first;      /* first data index of the row (0 .. data_count-1) */
    uint32_t data_count;      /* consecutive data indexes covered, >= 1; mirrors and RAID0: 1 */
    /* Range to lock against others: two operations whose redundancy overlaps have overlapping
     * lock ranges.  The space is md's bitmap and resync space: member offsets for RAID4/5/6,
     * array offsets for RAID1/10.  len 0: needs no lock (RAID0). */
    uint64_t lock_off, lock_len;
};

/* Iterate over the bands of an array range: disjoint, covering it exactly, each with pieces of at
 * most piece_max bytes. Data piece k of a band starts at band_data_off(geometry, band, k). */
struct band_iter {
    const struct geometry *geometry;
    uint64_t off_bytes, end_bytes; /* what is left of the range */
    uint64_t piece_max_bytes;
    /* private to layouts/ */
    uint64_t stripe_off, stripe_end; /* of the range's part in this stripe */
    uint64_t cut[4];                 /* offsets in the chunk where the covered data roles change */
    uint32_t cut_count, cut_index;
};
void band_iter_init(struct band_iter *iter, const struct geometry *geometry, uint64_t off_bytes,
                    uint64_t len_bytes, uint64_t piece_max_bytes);
bool band_next(struct band_iter *iter, struct band *band);
/* Array offset of the k-th data piece of a band, k < band.data_count. */
uint64_t band_data_off(const struct geometry *geometry, const struct band *band, uint32_t k);
/* The role whose PLAN_NEW and PLAN_OLD slots hold the k-th data piece: its data role; for mirrors
 * the lowest role that has a copy. */
uint32_t band_data_role(const struct geometry *geometry, const struct band *band, uint32_t k);

/* Row `row` < row_count as one band, for resync: every data role, whole chunks.  row*chunk_bytes
 * is a position in md's resync space, so a row of a mirror is one chunk of array bytes (RAID1: the
 * last may be shorter; RAID10: row_count is the number of array chunks).  False: no such row. */
bool band_of_row(const struct geometry *geometry, uint64_t row, struct band *band);

/* Rows wholly inside [off, off+len): their member range is the same on every role, so one ZERO or
 * TRIM per member does it.  RAID0: the rows of the first zone that has any inside.  RAID1: the
 * range shrunk to whole blocks.  False when there are none (RAID10 far, and near when the roles
 * are not a multiple of the copies: never). */
struct row_range {
    uint64_t array_off_bytes, array_len_bytes;
    uint64_t member_off_bytes, member_len_bytes; /* from data_offset, on each role in `roles` */
    uint64_t roles;
    uint64_t lock_off, lock_len;
};
bool rows_inside(const struct geometry *geometry, uint64_t off_bytes, uint64_t len_bytes,
                 struct row_range *rows);

/* Where one array byte lives: for tests, explain, inspect.  Copies or the single data place.
 * Returns how many there are, and fills the first `max`; the first copy comes first. */
struct place {
    uint32_t role;
    uint64_t member_off_bytes;
};
uint32_t layout_places(const struct geometry *geometry, uint64_t array_off_bytes, struct place *out,
                       uint32_t max);
/* Roles of a row: parity roles and the role of each data index (RAID4/5/6). q = -1: none. */
struct row_roles {
    int32_t p, q;
    uint8_t data_role[MEMBERS_MAX];  /* of data index i */
    uint8_t q_exponent[MEMBERS_MAX]; /* e(d) of data index i: Q = sum g^e * d */
};
void row_roles(const struct geometry *geometry, uint64_t row, struct row_roles *out);

/* Can the array be served with these roles? (RAID10: a copy of every block; RAID0: all.) */
bool layout_enough(const struct geometry *geometry, uint64_t available_roles);
/* How many more members may fail, whichever they are, given those available now; 0 as well when
 * they are not enough. */
uint32_t layout_survivable(const struct geometry *geometry, uint64_t available_roles);
