/* From paths to an open array: probe, group by uuid, decide, open the members, array_open().
 * Blocking reads of metadata; used by the daemon at start and by `sr5 start`. */
#pragma once

#include "engine/array.h"
#include "engine/io/member_dev.h"

struct found_member {
    char spec[4096]; /* as given; may carry a fault: prefix */
    struct probe probe;
    int err; /* it could not be read: diag says why */
    struct diag diag;
};

/* What a scan found of one array. */
struct found_array {
    uint8_t uuid[16];
    char name[33];
    struct found_member **members; /* borrowed from the scan */
    uint32_t member_count;
    int err; /* decide() failed: diag */
    struct diag diag;
    struct decision decision;
    struct geometry geometry; /* valid when err == 0 */
    bool enough;              /* could be served now */
    bool complete;
};

struct scan {
    struct found_member *members;
    uint32_t member_count;
    struct found_array *arrays;
    uint32_t array_count;
};

/* Look at every spec (file, device; folders and globs already expanded by the caller), read-only,
 * without locks. Never fails as a whole but for memory. */
MUST_CHECK int scan_specs(struct scan *scan, const char *const *specs, uint32_t count,
                          const char *keep);
void scan_destroy(struct scan *scan);

/* The geometry that a superblock describes.  role_data_sectors: data_sectors of each role (used for
 * RAID 0 only).  -EINVAL with *diag: E_GEOMETRY, E_LAYOUT_UNKNOWN (also: an unequal RAID 0 whose
 * layout was never recorded, where it matters). */
MUST_CHECK int geometry_of_super(const struct super *super,
                                 const uint64_t role_data_sectors[MEMBERS_MAX],
                                 struct geometry *geometry, struct diag *diag);

struct assemble_options {
    bool read_only;
    struct io_context *io;
    struct loop *loop;
    uint64_t scratch_bytes;
};
/* Open the used members of a found array and the array over them. */
MUST_CHECK int assemble(struct array **out, const struct found_array *found,
                        const struct assemble_options *options, struct diag *diag);
