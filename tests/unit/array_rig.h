/* An array over members in memory, under a virtual clock, with a model of its bytes. */
#pragma once

#include "engine/array.h"
#include "tests/unit/mem_dev.h"

#define RIG_MEMBERS_MAX 12

struct rig_config {
    enum raid_level level;
    uint32_t layout;
    uint32_t member_count;
    uint64_t chunk_bytes;
    uint64_t data_bytes; /* of each member */
    uint32_t logical_bytes;
    bool bitmap, area;
    bool dirty; /* resync offset 0: nothing is known to be in sync */
    uint64_t seed;
    /* A replacement for that role, as one member more, in sync below the offset.  0 bytes: none. */
    uint32_t replaced_role;
    uint64_t replacement_frontier_bytes;
    /* Member 0 has a bad range in its md log (from the start of its data).  0 bytes: none. */
    uint64_t bad_off_bytes, bad_len_bytes;
};

struct rig {
    struct rig_config config;
    struct clock_virtual clock;
    struct loop *loop;
    struct rng rng;
    uint8_t *memory[RIG_MEMBERS_MAX]; /* the members' contents */
    uint32_t member_count;            /* a replacement included */
    uint64_t member_bytes, data_off_bytes;
    struct mem_dev *devs[RIG_MEMBERS_MAX]; /* NULL: not open */
    struct array *array;
    uint8_t *model;
    uint64_t size_bytes;
    /* Set before array_rig_open(). */
    bool deferred, read_only, no_background, accept_dirty_degraded;
    uint32_t request_max;
    uint64_t scratch_bytes;
    struct diag diag;
};

/* Members with superblocks as a clean (or dirty) md array would have them, all zero. */
void array_rig_init(struct rig *rig, const struct rig_config *config);
void array_rig_destroy(struct rig *rig); /* the array must be stopped or abandoned */
/* Probe, decide and open without the members in `missing` (bit i: member i). */
int array_rig_open(struct rig *rig, uint64_t missing);
void array_rig_stop(struct rig *rig);
void array_rig_abandon(struct rig *rig);

/* Submit and run the loop until done; err of the request. */
int array_rig_request(struct rig *rig, enum req_op op, uint32_t flags, uint64_t off, uint64_t len,
                      uint8_t *memory);
/* The same, with random contents of the range in the model. */
int array_rig_write(struct rig *rig, uint64_t off, uint64_t len, uint32_t flags);
/* Number of bytes that differ from the model in [off, off+len), UINT64_MAX on error. */
uint64_t array_rig_mismatches(struct rig *rig, uint64_t off, uint64_t len);
/* Reads everything with each tolerated set of `extra` more members missing (read-only); false and
 * a line on stderr when some byte differs from the model.  The array must be stopped. */
bool array_rig_survives_all_losses(struct rig *rig, uint64_t missing);
void array_rig_run_us(struct rig *rig, uint64_t us);
void array_rig_run_ms(struct rig *rig, uint64_t ms);
