/* What a RAID level is made of: one table of pure functions a level, and pieces they share.
 *
 * The public functions of layout.h and plan.h look the level up and call through; nothing outside
 * layouts/ includes this.  docs/adding-a-layout.md walks through it with skeleton.c. */
#pragma once

#include "layouts/layout.h"
#include "layouts/plan.h"

struct layout_entry { /* a table ends with name NULL; names after the first of a number: aliases */
    const char *name;
    uint32_t number;
};

struct level_ops {
    enum raid_level level;
    const char *name;
    uint32_t member_min;
    bool chunk_pow2;      /* else any multiple of 4 KiB */
    bool any_layout;      /* the number means nothing on this level */
    uint32_t layout_main; /* what `create` takes by default */
    const struct layout_entry *layouts;
    /* Optional, for layouts that are no list.  Name and parse as in layout.h. */
    void (*layout_name)(uint32_t layout, char *out, size_t out_bytes);
    bool (*layout_parse)(const char *text, uint32_t *layout);

    /* All required.  init: the free fields have passed the checks common to all levels and the
     * derived ones are zero; fill them, or refuse with *diag. */
    int (*init)(struct geometry *geometry, struct diag *diag);
    bool (*band_next)(struct band_iter *iter, struct band *band);
    uint32_t (*data_role)(const struct geometry *geometry, const struct band *band, uint32_t k);
    bool (*band_of_row)(const struct geometry *geometry, uint64_t row, struct band *band);
    bool (*rows_inside)(const struct geometry *geometry, uint64_t off_bytes, uint64_t len_bytes,
                        struct row_range *rows);
    uint32_t (*places)(const struct geometry *geometry, uint64_t array_off_bytes, struct place *out,
                       uint32_t max);
    /* How many more roles may fail; negative: those available are not enough. */
    int32_t (*spare)(const struct geometry *geometry, uint64_t available_roles);
    int (*plan_read)(const struct plan_input *input, struct plan *plan);
    int (*plan_write)(const struct plan_input *input, struct plan *plan);
    int (*plan_sync)(const struct plan_input *input, uint64_t targets, struct plan *plan);
};

extern const struct level_ops raid0_ops, raid1_ops, raid4_ops, raid5_ops, raid6_ops, raid10_ops;
extern const struct level_ops skeleton_ops; /* not registered */

/* layout.c */
const struct level_ops *level_ops(enum raid_level level); /* NULL: unknown */
/* rows * chunk_bytes * data_chunks into array_bytes, or E_GEOMETRY when it does not fit. */
MUST_CHECK int geometry_set_size(struct geometry *geometry, uint64_t rows, uint64_t data_chunks,
                                 struct diag *diag);

/* band.c: the two kinds of bands. */
bool band_next_parity(struct band_iter *iter, struct band *band);
/* Runs that do not cross a multiple of unit_bytes (0: no such limit); locked in array space when
 * `locked`. */
bool band_next_run(struct band_iter *iter, uint64_t unit_bytes, bool locked, struct band *band);
bool band_of_row_parity(const struct geometry *geometry, uint64_t row, struct band *band);
bool rows_inside_parity(const struct geometry *geometry, uint64_t off_bytes, uint64_t len_bytes,
                        struct row_range *rows);
uint32_t places_parity(const struct geometry *geometry, uint64_t array_off_bytes, struct place *out,
                       uint32_t max);
uint32_t data_role_parity(const struct geometry *geometry, const struct band *band, uint32_t k);
int32_t spare_parity(const struct geometry *geometry, uint64_t available_roles);
/* Fields of a geometry that all parity levels derive the same way. */
MUST_CHECK int init_parity(struct geometry *geometry, uint32_t parity_count, struct diag *diag);

/* plan.c */
void plan_begin(struct plan *plan, const struct plan_input *input);
void plan_add_read(struct plan *plan, uint32_t role, uint16_t slot, uint64_t member_off_bytes);
void plan_add_write(struct plan *plan, uint32_t role, uint16_t slot, uint64_t member_off_bytes);
void plan_add_sum(struct plan *plan, uint16_t dst); /* terms follow */
void plan_add_term(struct plan *plan, uint16_t slot, uint8_t coef);

/* plan_mirror.c: bands whose places are copies of each other, one copy included. */
int plan_read_mirror(const struct plan_input *input, struct plan *plan);
int plan_write_mirror(const struct plan_input *input, struct plan *plan);
int plan_sync_mirror(const struct plan_input *input, uint64_t targets, struct plan *plan);
uint32_t data_role_mirror(const struct geometry *geometry, const struct band *band, uint32_t k);

/* plan_parity.c: rows whose roles satisfy one or two linear relations. */
int plan_read_parity(const struct plan_input *input, struct plan *plan);
int plan_write_parity(const struct plan_input *input, struct plan *plan);
int plan_sync_parity(const struct plan_input *input, uint64_t targets, struct plan *plan);

/* What RAID 4, 5 and 6 have in common; they differ in parities and rotation. */
#define PARITY_MAPS_AND_PLANS                                                                      \
    .band_next = band_next_parity, .data_role = data_role_parity,                                  \
    .band_of_row = band_of_row_parity, .rows_inside = rows_inside_parity, .places = places_parity, \
    .spare = spare_parity, .plan_read = plan_read_parity, .plan_write = plan_write_parity,         \
    .plan_sync = plan_sync_parity
