/* THEORY OF OPERATION
 *
 * `image` is the bitmap as it should be: header and bits.  Whoever changes it marks the block
 * dirty; a *round* copies a run of dirty blocks to `staging` and writes it, durably, to every
 * member with a role; rounds follow each other while blocks are dirty.  One round at a time, so two
 * versions of a block are never in flight together, and one write serves every operation that
 * waits (group commit of intent bits).
 *
 *      begin:  bit clear? set it, dirty its block ── block dirty or in flight? wait for rounds
 *      end:    busy count down; at 0 the granule ages and is cleared one day (intent_clear.c)
 *
 * Invariants
 *   I1  intent_begin() is true, or its done() called, only when no block of the range is dirty or
 *       in flight: the bit is on every live member, before any member write.
 *   B1  a bit is cleared only when its granule is idle, in sync, its writes were flushed, and the
 *       array is not degraded: what a missing member missed must stay known for its return.
 *   B2  events_cleared reaches the disk before the clear it stands for (same rule as md's).
 *   B3  need_sync only shrinks by resync, so parity that may be wrong is never relied on.
 *
 * The header's events are written before the superblock's (meta_io M3): a bitmap is never older
 * than the superblock beside it.
 *
 * Without a bitmap on the members there are no bits; need_sync still says what resync has to do,
 * in granules of our own choosing. */
#include "engine/intent.h"

#include <stdlib.h>
#include <string.h>

#include "engine/array_core.h"

#define STAGING_BYTES           KIB(64)
#define GRANULES_WITHOUT_BITMAP 65536u /* resolution of resync when md keeps no bitmap */

static void write_round(struct intent *intent);

/* ---- bits and blocks -------------------------------------------------------------------- */

static uint64_t
bit_byte(uint64_t granule)
{
    return BITMAP_HEADER_BYTES + granule / 8;
}

bool
intent_bit(const struct intent *intent, uint64_t granule)
{
    return (intent->image[bit_byte(granule)] >> (granule % 8)) & 1;
}

static uint32_t
block_of(const struct intent *intent, uint64_t granule)
{
    return (uint32_t)(bit_byte(granule) / intent->block_bytes);
}

static void
bit_set(struct intent *intent, uint64_t granule)
{
    intent->image[bit_byte(granule)] |= (uint8_t)(1u << (granule % 8));
    bitset_set(intent->dirty, block_of(intent, granule));
}

void
intent_bit_clear(struct intent *intent, uint64_t granule)
{
    intent->image[bit_byte(granule)] &= (uint8_t) ~(1u << (granule % 8));
    bitset_set(intent->dirty, block_of(intent, granule));
}

void
intent_header_dirty(struct intent *intent)
{
    bitmap_encode(&intent->header, intent->image);
    bitset_set(intent->dirty, 0);
}

/* I1 */
static bool
blocks_durable(const struct intent *intent, uint32_t first, uint32_t last)
{
    if (intent->writing && first < intent->write_first + intent->write_count &&
        intent->write_first <= last)
        return false;
    return bitset_next(intent->dirty, intent->block_count, first) > last;
}

/* ---- writing rounds --------------------------------------------------------------------- */

static void
wake_waiters(struct intent *intent)
{
    struct list ready;
    list_init(&ready);
    list_for_each_safe (node, &intent->waiters) {
        struct intent_waiter *waiter = CONTAINER_OF(node, struct intent_waiter, node);
        if (!blocks_durable(intent, waiter->block_first, waiter->block_last) && intent->err == 0)
            continue;
        list_remove(node);
        list_push_back(&ready, node);
    }
    int err = intent->err;
    struct list_node *node;
    while ((node = list_pop_front(&ready)) != NULL) {
        struct intent_waiter *waiter = CONTAINER_OF(node, struct intent_waiter, node);
        waiter->done(waiter, err);
    }
}

static void
round_done(struct intent *intent)
{
    intent->writing = false;
    if (intent->err != 0) /* they must be written again before anyone may rely on them */
        for (uint32_t i = 0; i < intent->write_count; i++)
            bitset_set(intent->dirty, intent->write_first + i);
    wake_waiters(intent);
    if (!intent->writing && !list_empty(&intent->waiters))
        write_round(intent);
    if (!intent->writing)
        array_poke_stop(intent->array);
}

static void
child_done(struct req *req)
{
    struct intent_child *child = CONTAINER_OF(req, struct intent_child, req);
    struct intent *intent = child->intent;
    child->member->in_flight--;
    if (req->err != 0 && member_writable(child->member)) {
        child->member->write_errors++;
        if (!array_member_fail(intent->array, child->member, array_fault_of(req->err)))
            intent->err = -EIO;
    }
    if (--intent->pending == 0)
        round_done(intent);
}

static void
submit(struct intent *intent, struct member *member)
{
    struct intent_child *child = &intent->children[member->index];
    uint64_t bytes = (uint64_t)intent->write_count * intent->block_bytes;
    child->intent = intent;
    child->member = member;
    child->iov = (struct iovec){.iov_base = intent->staging, .iov_len = bytes};
    child->req = (struct req){
        .op = REQ_WRITE,
        .flags = REQ_FUA,
        .off_bytes = member->bitmap_off_bytes + (uint64_t)intent->write_first * intent->block_bytes,
        .len_bytes = bytes,
        .iov = &child->iov,
        .iov_count = 1,
        .done = child_done,
    };
    intent->pending++;
    member->in_flight++;
    intent->array->stats.bitmap_writes++;
    dev_submit(member->dev, &child->req);
}

/* Write the first run of dirty blocks, gaps included, as far as staging reaches. */
static void
write_round(struct intent *intent)
{
    uint64_t first = bitset_next(intent->dirty, intent->block_count, 0);
    check_lt(first, intent->block_count);
    uint64_t last = first;
    for (uint64_t i = first; i < intent->block_count;
         i = bitset_next(intent->dirty, intent->block_count, i + 1)) {
        if ((i - first + 1) * intent->block_bytes > STAGING_BYTES)
            break;
        bitset_clear(intent->dirty, i);
        last = i;
    }
    intent->write_first = (uint32_t)first;
    intent->write_count = (uint32_t)(last - first + 1);
    memcpy(intent->staging, intent->image + first * intent->block_bytes,
           (size_t)intent->write_count * intent->block_bytes);
    intent->writing = true;
    intent->err = 0;
    intent->pending = 1; /* ours (I3) */
    struct array *array = intent->array;
    for (uint32_t i = 0; i < array->member_count; i++)
        if (member_writable(&array->members[i]) && array->members[i].has_bitmap)
            submit(intent, &array->members[i]);
    if (--intent->pending == 0)
        round_done(intent);
}

static bool
wait_for_blocks(struct intent *intent, uint32_t first, uint32_t last, struct intent_waiter *waiter,
                void (*done)(struct intent_waiter *waiter, int err))
{
    if (LIKELY(blocks_durable(intent, first, last)))
        return true;
    waiter->block_first = first;
    waiter->block_last = last;
    waiter->done = done;
    list_push_back(&intent->waiters, &waiter->node);
    if (!intent->writing)
        array_wake(intent->array); /* one write for all that ask in this turn */
    return false;
}

void
intent_run(struct intent *intent)
{
    if (!intent->writing && !list_empty(&intent->waiters))
        write_round(intent);
}

bool
intent_write_dirty(struct intent *intent, struct intent_waiter *waiter,
                   void (*done)(struct intent_waiter *waiter, int err))
{
    return wait_for_blocks(intent, 0, intent->block_count - 1, waiter, done);
}

bool
intent_write_header(struct intent *intent, uint64_t events, struct intent_waiter *waiter,
                    void (*done)(struct intent_waiter *waiter, int err))
{
    if (!intent->on_disk)
        return true;
    intent->header.events = events;
    intent_header_dirty(intent);
    return wait_for_blocks(intent, 0, 0, waiter, done);
}

/* ---- begin and end of a write ------------------------------------------------------------ */

bool
intent_begin(struct intent *intent, uint64_t off_bytes, uint64_t len_bytes,
             struct intent_waiter *waiter, void (*done)(struct intent_waiter *waiter, int err))
{
    if (!intent->on_disk)
        return true;
    uint64_t first = off_bytes >> intent->granule_shift;
    uint64_t last = (off_bytes + len_bytes - 1) >> intent->granule_shift;
    check_lt(last, intent->granule_count);
    for (uint64_t granule = first; granule <= last; granule++) {
        check_lt(intent->busy[granule], UINT16_MAX);
        intent->busy[granule]++;
        if (!intent_bit(intent, granule))
            bit_set(intent, granule);
        if (intent->age[granule] == 0)
            intent->clearable_count++;
        intent->age[granule] = INTENT_AGE_FRESH;
    }
    return wait_for_blocks(intent, block_of(intent, first), block_of(intent, last), waiter, done);
}

void
intent_end(struct intent *intent, uint64_t off_bytes, uint64_t len_bytes)
{
    if (!intent->on_disk)
        return;
    uint64_t first = off_bytes >> intent->granule_shift;
    uint64_t last = (off_bytes + len_bytes - 1) >> intent->granule_shift;
    for (uint64_t granule = first; granule <= last; granule++) {
        check_gt(intent->busy[granule], 0);
        intent->busy[granule]--;
    }
    intent_sweep_later(intent);
}

/* ---- what waits for resync --------------------------------------------------------------- */

bool
intent_in_sync(const struct intent *intent, uint64_t off_bytes, uint64_t len_bytes)
{
    if (LIKELY(intent->need_sync_count == 0))
        return true;
    uint64_t first = off_bytes >> intent->granule_shift;
    uint64_t last = (off_bytes + len_bytes - 1) >> intent->granule_shift;
    return bitset_next(intent->need_sync, intent->granule_count, first) > last;
}

void
intent_mark_unsynced(struct intent *intent, uint64_t granule)
{
    if (bitset_test(intent->need_sync, granule))
        return;
    bitset_set(intent->need_sync, granule);
    intent->need_sync_count++;
}

void
intent_mark_synced(struct intent *intent, uint64_t granule)
{
    check(bitset_test(intent->need_sync, granule)); /* B3: by resync, once */
    bitset_clear(intent->need_sync, granule);
    intent->need_sync_count--;
    if (intent->on_disk && intent->age[granule] == 0) { /* its bit may go, too */
        intent->age[granule] = INTENT_AGE_FRESH;
        intent->clearable_count++;
        intent_sweep_later(intent);
    }
}

uint64_t
intent_resync_sectors(const struct intent *intent)
{
    if (intent->need_sync_count == 0)
        return SUPER_INFINITY;
    uint64_t granule = bitset_next(intent->need_sync, intent->granule_count, 0);
    return (granule << intent->granule_shift) / SECTOR_BYTES;
}

/* ---- life ------------------------------------------------------------------------------- */

static void
choose_granules(struct intent *intent, const struct probe *bitmap)
{
    uint64_t bytes = array_sync_bytes(intent->array);
    if (bitmap != NULL) {
        intent->granule_shift = (uint32_t)__builtin_ctz(bitmap->bitmap.chunk_bytes);
    } else {
        intent->granule_shift = 20;
        while (bytes >> intent->granule_shift > GRANULES_WITHOUT_BITMAP)
            intent->granule_shift++;
    }
    intent->granule_count = div_ceil(bytes, UINT64_C(1) << intent->granule_shift);
}

static int
load_image(struct intent *intent, const struct probe *bitmap, bool stale)
{
    struct array *array = intent->array;
    intent->header = bitmap->bitmap;
    intent->block_bytes = array->block_bytes;
    uint64_t bytes = round_up(bit_byte(intent->granule_count - 1) + 1, intent->block_bytes);
    intent->block_count = (uint32_t)(bytes / intent->block_bytes);
    intent->image = calloc(1, bytes);
    intent->dirty = calloc(BITSET_WORDS(intent->block_count), sizeof(uint64_t));
    intent->busy = calloc(intent->granule_count, sizeof(*intent->busy));
    intent->age = calloc(intent->granule_count, sizeof(*intent->age));
    intent->staging = aligned_alloc(BLOCK_BYTES, STAGING_BYTES);
    intent->children = calloc(array->member_count, sizeof(*intent->children));
    if (intent->image == NULL || intent->dirty == NULL || intent->busy == NULL ||
        intent->age == NULL || intent->staging == NULL || intent->children == NULL)
        return -ENOMEM;
    if (bitmap->bitmap_raw != NULL)
        memcpy(intent->image, bitmap->bitmap_raw, MIN(bytes, bitmap->bitmap_raw_bytes));
    /* A crash may have cut a round off between members: what they hold may differ, so nothing
     * counts as durable (I1) until it has been written once. */
    for (uint32_t block = 0; block < intent->block_count; block++)
        bitset_set(intent->dirty, block);
    for (uint64_t granule = 0; granule < intent->granule_count; granule++) {
        if (stale)
            bit_set(intent, granule);
        if (intent_bit(intent, granule)) {
            intent->age[granule] = INTENT_AGE_FRESH;
            intent->clearable_count++;
        }
    }
    intent->on_disk = true;
    return 0;
}

void
intent_add_bits(struct intent *intent, const struct probe *probe)
{
    uint64_t granules = (probe->bitmap_raw_bytes - BITMAP_HEADER_BYTES) * 8;
    for (uint64_t granule = 0; granule < MIN(granules, intent->granule_count); granule++) {
        bool set = (probe->bitmap_raw[bit_byte(granule)] >> (granule % 8)) & 1;
        if (!set || intent_bit(intent, granule))
            continue;
        bit_set(intent, granule);
        intent->age[granule] = INTENT_AGE_FRESH;
        intent->clearable_count++;
    }
}

int
intent_init(struct intent *intent, struct array *array, const struct probe *bitmap, bool stale)
{
    *intent = (struct intent){.array = array};
    list_init(&intent->waiters);
    if (array->geometry.level == RAID0)
        return 0;
    intent->enabled = true;
    choose_granules(intent, bitmap);
    intent->need_sync = calloc(BITSET_WORDS(intent->granule_count), sizeof(uint64_t));
    if (intent->need_sync == NULL)
        return -ENOMEM;
    return bitmap != NULL ? load_image(intent, bitmap, stale) : 0;
}

void
intent_destroy(struct intent *intent)
{
    loop_timer_cancel(&intent->sweep);
    free(intent->need_sync);
    free(intent->busy);
    free(intent->age);
    free(intent->image);
    free(intent->dirty);
    free(intent->staging);
    free(intent->children);
    *intent = (struct intent){0};
}
