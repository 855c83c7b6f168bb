/* Reading everything a member's metadata says, damaged or not.  Blocking, reads only. */
#pragma once

#include "engine/base/blob.h"

#include "engine/meta/bitmap.h"
#include "engine/meta/decide.h"

struct probe {
    struct candidate candidate; /* candidate.path points at path */
    char path[4096];
    struct {
        enum super_verdict verdict;
        struct diag diag;
    } supers[3]; /* by minor */
    enum bitmap_verdict bitmap_verdict;
    struct bitmap_header bitmap;
    uint8_t *bitmap_raw; /* header and bits, as read; NULL: none.  Freed by probe_destroy() */
    uint64_t bitmap_raw_bytes;
    struct bad_range bad[BAD_RANGES_MAX];
    uint32_t bad_count;
    uint64_t used_by_log; /* reserved for the log */
    char foreign[128];    /* what libblkid finds there that is not ours: "ext4", "gpt"; "" none */
};

/* 0 even when there is no superblock (look at verdicts); negative errno when reading failed. */
MUST_CHECK int probe_blob(struct blob *blob, const char *path, struct probe *probe,
                          struct diag *diag);
void probe_destroy(struct probe *probe);
