/* A blob in memory with faults: what create and probe are tested on.
 *
 * Writes are volatile until flushed.  All blobs of one mem_disk_set share a counter of writes and
 * flushes, so that "the k-th" is counted over all members. */
#pragma once

#include "engine/base/blob.h"
#include "engine/base/rng.h"

#define MEM_EDGE_BYTES (3u << 20) /* where metadata lies, at either end */

struct mem_faults {
    uint64_t operations; /* writes and flushes so far, over all blobs */
    uint64_t fail_at;    /* that operation fails with -EIO; 0: none */
    uint64_t cut_at;     /* from that operation on everything fails and nothing is done; 0: never */
    bool cut;
};

struct mem_blob {
    struct blob blob;
    struct mem_faults *faults;
    uint8_t *bytes;                     /* what a read sees */
    uint8_t *durable;                   /* what a flush made safe */
    uint64_t written_low, written_high; /* unflushed writes lie inside */
    bool data_written; /* something outside the first and last MEM_EDGE_BYTES was */
};

/* Zeroed; checks that memory is there. */
struct mem_blob *mem_blob_new(struct mem_faults *faults, uint64_t size_bytes, unsigned number);
void mem_blob_free(struct mem_blob *blob); /* also blob_close() */
/* Power is back: each unflushed sector has made it or not, by chance; faults are cleared by the
 * caller. */
void mem_blob_after_cut(struct mem_blob *blob, struct rng *rng);
/* Of both edges; with data_written that is all there is to know, in a fraction of the time. */
uint64_t mem_blob_hash(const struct mem_blob *blob);
