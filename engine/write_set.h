/* A set of metadata writes to several blobs, in phases: all of it or nothing.
 *
 * Added first, then loaded (the bytes that are there now are read and kept), then applied phase by
 * phase; every phase ends with a flush of each blob it touched, so that what a later phase writes
 * is never durable before an earlier one.  When a write or flush fails, everything applied so far
 * is put back, last phase first.  Blocking; not for the data path. */
#pragma once

#include "engine/base/blob.h"
#include "engine/base/check.h"
#include "engine/base/diag.h"

struct write_set_entry {
    struct blob *blob;
    uint64_t off_bytes;
    size_t len;
    uint8_t *bytes, *before; /* before: NULL until loaded */
    unsigned phase;
    bool touched; /* written, perhaps only in part */
};

struct write_set {
    struct write_set_entry *entries;
    size_t count, room;
    bool undo_wipes; /* what was there cannot come back: undo writes zeroes */
};

void write_set_init(struct write_set *set);
void write_set_destroy(struct write_set *set);
/* Copies `bytes` (NULL: zeroes).  Phases may be added in any order.  0 or -ENOMEM. */
MUST_CHECK int write_set_add(struct write_set *set, unsigned phase, struct blob *blob,
                             uint64_t off_bytes, const void *bytes, size_t len);
/* Read what is there now, for undo.  Writes nothing.  *diag: E_READ. */
MUST_CHECK int write_set_load(struct write_set *set, struct diag *diag);
/* Write one phase and flush.  On error everything is put back before it returns; *diag: E_WRITE
 * says whether that worked, too. */
MUST_CHECK int write_set_apply(struct write_set *set, unsigned phase, struct diag *diag);
/* From now on undo leaves zeroes instead of what was loaded: the data that the old signatures spoke
 * of has been overwritten meanwhile, and bringing them back would be a lie. */
void write_set_undo_wipes(struct write_set *set);
/* Put everything back.  0, or the first error; goes on behind it. */
int write_set_undo(struct write_set *set);
