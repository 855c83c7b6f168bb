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

struct create_members {
    struct blob *const *blobs; /* members in role order, then spares; open for writing */
    const bool *zeroed;        /* [i]: that blob is known to read as zeroes (just made) */
    uint32_t member_count, spare_count;
};

/* With dry_run, blobs need not be open for writing. */
MUST_CHECK int create_array(const struct create_options *options,
                            const struct create_members *members, struct create_result *result,
                            struct diag *diag);
