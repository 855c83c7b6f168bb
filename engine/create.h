/* Making an array: read everything, check everything, then write; all or nothing (P4). */
#pragma once

#include "engine/base/blob.h"

#include "engine/probe.h"
#include "layouts/layout.h"

enum create_init { INIT_LAZY, INIT_ZERO, INIT_RESYNC };

struct create_options {
    const char *name; /* 1..32 bytes, no '/', no ':', printable */
    enum raid_level level;
    uint32_t layout;
    uint64_t chunk_bytes;
    enum create_init init;
    const char *consistency; /* "log" or "resync" */
    const char *policy;
    /* Hazards, each repeating a fact: NULL when not given. */
    const char *overwrite_array;     /* first 8 hex digits of the uuid found */
    const char *overwrite_signature; /* kind found: "ext4", "md1.2" */
    bool dry_run;
    uint64_t wall_ns; /* creation time */
};

struct create_result {
    uint8_t uuid[16];
    struct geometry geometry;
    uint64_t raw_bytes, metadata_bytes, log_bytes, slack_bytes, parity_bytes;
    uint64_t data_offset_bytes;
    bool in_sync; /* all members known to be zero: parity is right already */
};

/* blobs: the members in role order, then `spare_count` spares; opened for writing unless dry_run.
 * `zeroed[i]`: member i is known to read as zeroes everywhere (just made). */
MUST_CHECK int create_array(const struct create_options *options, struct blob *const *blobs,
                            const bool *zeroed, uint32_t member_count, uint32_t spare_count,
                            struct create_result *result, struct diag *diag);
