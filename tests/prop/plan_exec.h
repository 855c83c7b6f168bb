/* A model executor: members in memory, plans carried out at once.
 *
 * It does what the engine's executor does, in sixty lines: reads, recoveries, merge of ragged data,
 * sums, writes; and plans again when a role fails before the first write. */
#pragma once

#include "layouts/plan.h"

#define EXEC_CHUNK      4096u
#define EXEC_BAND_MAX   EXEC_CHUNK
#define EXEC_BLOCK      512u /* what members read and write; client ranges may be finer */
#define EXEC_MEMBER_MAX (64u * EXEC_CHUNK)

struct exec {
    const struct geometry *geometry;
    uint8_t *member[MEMBERS_MAX]; /* member_max bytes each; its own by exec_init() */
    uint64_t member_max;
    uint64_t readable, writable;
    bool parity_trusted;
    bool poison; /* fill the slots with rubbish before each plan */
    uint64_t piece_max_bytes;
    /* Role that fails: at the next plan, after its reads or during its writes; -1: none. */
    int32_t fail_on_read, fail_on_write;
    uint64_t reads, writes; /* member I/Os so far */
    uint8_t *slots;         /* PLAN_SLOT_COUNT * EXEC_BAND_MAX */
};

void exec_init(struct exec *exec, const struct geometry *geometry);
void exec_destroy(struct exec *exec);
/* 0 or -EIO. */
int exec_read(struct exec *exec, uint64_t off, uint64_t len, uint8_t *data);
int exec_write(struct exec *exec, uint64_t off, uint64_t len, const uint8_t *data);
#define EXEC_REDUNDANCY UINT64_MAX
/* All rows: fill the roles in targets; EXEC_REDUNDANCY: parities, or all copies but the source. */
int exec_sync(struct exec *exec, uint64_t targets);
/* Fill *geometry and call geometry_init(); true when it was accepted. */
bool exec_geometry(struct geometry *geometry, enum raid_level level, uint32_t layout,
                   uint32_t member_count, uint64_t member_chunks);
