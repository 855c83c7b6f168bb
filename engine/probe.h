/* Reading everything a member's metadata says, damaged or not.  Blocking, reads only. */
#pragma once

#include "engine/base/blob.h"

#include "engine/meta/bitmap.h"
#include "engine/meta/decide.h"

#define PROBE_SIGNATURES_MAX 16

/* Something on the member that says what it is: "md1.2", "md0.90", "sr5", "ext4", "gpt"... */
struct probe_signature {
    char kind[32];
    uint64_t off_bytes, len_bytes; /* what has to be zeroed so that it is gone */
};

struct probe {
    struct candidate candidate; /* candidate.path points at path */
    char path[4096];
    struct {
        enum super_verdict verdict;
        struct diag diag;
        uint8_t array_uuid[16]; /* as found there, trusted or not */
        char name[33];
    } supers[3];  /* by minor */
    int read_err; /* some place could not be read; 0: all could */
    bool
        area_found; /* there is a valid slot; candidate.has_area: and it goes with the superblock */
    unsigned area_slot; /* 0 or 1: the newer one */
    enum bitmap_verdict bitmap_verdict;
    struct diag bitmap_diag; /* why not, when UNSUPPORTED or INSANE */
    struct bitmap_header bitmap;
    uint8_t *bitmap_raw; /* header and bits, as read; NULL: none.  Freed by probe_destroy() */
    uint64_t bitmap_raw_bytes;
    struct bad_range bad[BAD_RANGES_MAX];
    uint32_t bad_count;
    uint64_t used_by_log; /* reserved for the log */
    char foreign[128];    /* what libblkid finds there that is not ours: "ext4", "gpt"; "" none */
    struct probe_signature signatures[PROBE_SIGNATURES_MAX]; /* all of them, ours too */
    uint32_t signature_count;
};

/* 0 even when there is no superblock (look at verdicts); negative errno when reading failed and
 * nothing usable was found elsewhere. */
MUST_CHECK int probe_blob(struct blob *blob, const char *path, struct probe *probe,
                          struct diag *diag);
void probe_destroy(struct probe *probe);
