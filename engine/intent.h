/* What may be out of sync: the write-intent bitmap at run time, and what waits for resync.
 *
 * A granule is what one bitmap bit stands for; the addresses here are *sync addresses*: member
 * bytes from data_offset, for RAID 10 array bytes (research/md.md 3).  Without a bitmap on the
 * members the same bookkeeping runs in memory only. */
#pragma once

#include "engine/base/bitset.h"
#include "engine/base/req.h"

#include "engine/loop/loop.h"
#include "engine/meta/bitmap.h"
#include "engine/waiters.h"

struct array;
struct probe;

struct intent_child {
    struct req req;
    struct iovec iov;
    struct intent *intent;
    struct member *member;
};

struct intent {
    struct array *array;
    bool enabled; /* false: RAID 0, nothing to keep */
    bool on_disk; /* the members carry a bitmap, and we keep it */
    uint32_t granule_shift;
    uint64_t granule_count;
    uint64_t *need_sync; /* granules whose redundancy may disagree with the data */
    uint64_t need_sync_count;
    uint16_t *busy;           /* writes in flight, per granule */
    uint8_t *age;             /* sweeps until an idle granule is cleared */
    uint64_t clearable_count; /* granules with age != 0: somebody may clear them one day */

    struct bitmap_header header;
    uint8_t *image; /* header and bits as they should be on disk */
    uint32_t block_bytes, block_count;
    uint64_t *dirty; /* blocks of image that the members do not have yet */

    /* The round that writes dirty blocks: one at a time. */
    bool writing;
    uint32_t write_first, write_count; /* blocks in flight */
    uint32_t pending;
    int err;
    uint8_t *staging; /* what is in flight; image may go on changing */
    struct list waiters;
    struct intent_child *children;

    /* Clearing, see intent_clear.c. */
    struct loop_timer sweep;
    uint32_t clear_stage;
    bool clearing, clear_all;
    struct flush_waiter flush;
    struct intent_waiter written;
    void (*cleared)(struct intent *intent);
};

/* bitmap: the probe of the member whose bitmap counts, or NULL.  `stale`: all bits count as set.
 * 0 or -ENOMEM. */
MUST_CHECK int intent_init(struct intent *intent, struct array *array, const struct probe *bitmap,
                           bool stale);
/* The bits of another member's bitmap count as well. */
void intent_add_bits(struct intent *intent, const struct probe *probe);
void intent_destroy(struct intent *intent);

/* I1: the bits of [off, off+len) are durable before any member write of it.  True when they are on
 * return; else done() follows.  Every begin has one end. */
bool intent_begin(struct intent *intent, uint64_t off_bytes, uint64_t len_bytes,
                  struct intent_waiter *waiter,
                  void (*done)(struct intent_waiter *waiter, int err));
void intent_end(struct intent *intent, uint64_t off_bytes, uint64_t len_bytes);

/* Is the redundancy of [off, off+len) known to agree with the data? */
bool intent_in_sync(const struct intent *intent, uint64_t off_bytes, uint64_t len_bytes);
void intent_mark_unsynced(struct intent *intent, uint64_t granule);
void intent_mark_synced(struct intent *intent, uint64_t granule);
/* The superblock's resync offset if the array were marked clean now, in sectors. */
uint64_t intent_resync_sectors(const struct intent *intent);
static inline uint64_t
intent_granule_bytes(const struct intent *intent)
{
    return UINT64_C(1) << intent->granule_shift;
}

/* Put `events` into the bitmap header on every member; true when done on return. */
bool intent_write_header(struct intent *intent, uint64_t events, struct intent_waiter *waiter,
                         void (*done)(struct intent_waiter *waiter, int err));

/* ---- intent_clear.c --------------------------------------------------------------------- */
/* Look after idle granules every daemon_sleep, as long as there are any. */
void intent_sweep_later(struct intent *intent);
/* Clear all that may be cleared, now; cleared() follows, perhaps from inside. */
void intent_clear_now(struct intent *intent, void (*cleared)(struct intent *intent));

/* How long an idle granule keeps its bit, in sweeps: FRESH, then DUE. */
enum { INTENT_AGE_DUE = 1, INTENT_AGE_FRESH = 3 };

/* Begin a round for those who wait (from the array's deferred step). */
void intent_run(struct intent *intent);

/* ---- for intent_clear.c ----------------------------------------------------------------- */
bool intent_bit(const struct intent *intent, uint64_t granule);
void intent_bit_clear(struct intent *intent, uint64_t granule);
void intent_header_dirty(struct intent *intent);
/* True when every dirty block is on the members. */
bool intent_write_dirty(struct intent *intent, struct intent_waiter *waiter,
                        void (*done)(struct intent_waiter *waiter, int err));
