/* THEORY OF OPERATION
 *
 * One update runs at a time.  Wishes that come while it runs are served together by the next one,
 * since they may want more than the running one says.  An update is three writes on every live
 * member, each durable (FUA) on all of them before the next begins:
 *
 *      SETTLE  only once: what was found may be in a cache only, left there by a killed daemon; it
 *              is made durable before anything is built on it
 *      BEGIN   events + 1; snapshot of what to say
 *      HEADER  bitmap header, through intent (it owns the bitmap's blocks)
 *      AREA    the older of the two sr5 slots: lineage, backup of the superblock
 *      SUPER   the superblock itself: from here on md sees the new state
 *      END     a member failed meanwhile, or was left behind by one event only: again; else tell
 *
 * Invariants
 *   M1  events never go down, nor stay (but for M6) when anything is written (md's decrement of a
 *       pure dirty-to-clean step is legal, ours is simpler).
 *   M2  after a member failed, or when one is absent at the start, the survivors' events exceed
 *       whatever it may hold by at least 2, since md accepts a member one behind as fresh.
 *   M3  a header or slot newer than the superblock is harmless (md: bitmap accepted if its events
 *       are not lower; area: its reader decides), older would be stale.  Hence the order.
 *   M4  `active` is true only while every live member durably says so; it is cleared before the
 *       first byte of an update that says otherwise is written.  An array opens without it, so
 *       that the first write leaves behind who is absent.
 *   M5  an update moves events by 1: a cut in the middle of it leaves members one apart, and all
 *       of them are fresh.  Two steps are two updates.
 *   M6  a member that was one behind when the array was opened is brought up first, by an update
 *       that moves neither events nor roles: else the next cut could leave it two behind, stale.
 *   I11 `failures_recorded` moves only at END, when all survivors have the update.
 *
 * RAID 0 has no state to record: md never writes its superblocks, nor do we.  A read-only array
 * writes nothing at all.  For both every question is answered "done". */
#include "engine/meta_io.h"

#include <stdlib.h>
#include <string.h>

#include "engine/array_core.h"

enum meta_stage { META_SETTLE, META_BEGIN, META_HEADER, META_AREA, META_SUPER, META_END };

#define MEMBER_MEMORY_BYTES (SUPER_BYTES + AREA_SLOT_BYTES)

static void meta_step(struct meta_io *meta);

static bool
writes_nothing(const struct meta_io *meta)
{
    return meta->array->read_only || meta->array->geometry.level == RAID0;
}

static uint8_t *
member_memory(const struct meta_io *meta, const struct member *member)
{
    return meta->memory + (size_t)member->index * MEMBER_MEMORY_BYTES;
}

static void
child_done(struct req *req)
{
    struct meta_child *child = CONTAINER_OF(req, struct meta_child, req);
    struct meta_io *meta = child->meta;
    child->member->in_flight--;
    if (req->err != 0 && member_live(child->member)) {
        child->member->write_errors++;
        if (!array_member_fail(meta->array, child->member, array_fault_of(req->err)))
            meta->err = -EIO;
    }
    if (--meta->pending == 0)
        meta_step(meta);
}

static void
submit(struct meta_io *meta, struct member *member, uint64_t off_bytes, uint8_t *from,
       uint32_t bytes)
{
    struct meta_child *child = &meta->children[member->index];
    child->meta = meta;
    child->member = member;
    child->iov = (struct iovec){.iov_base = from, .iov_len = bytes};
    child->req = (struct req){
        .op = REQ_WRITE,
        .flags = REQ_FUA,
        .off_bytes = off_bytes,
        .len_bytes = bytes,
        .iov = &child->iov,
        .iov_count = 1,
        .done = child_done,
    };
    meta->pending++;
    member->in_flight++;
    meta->array->stats.super_writes++;
    dev_submit(member->dev, &child->req);
}

static void
settled(struct req *req)
{
    struct meta_child *child = CONTAINER_OF(req, struct meta_child, req);
    struct meta_io *meta = child->meta;
    struct member *member = child->member;
    member->in_flight--;
    member->flushes++;
    if (req->err == 0)
        member->writes_flushed = MAX(member->writes_flushed, child->mark);
    else if (member_live(member) && !array_member_fail(meta->array, member, FAULT_FLUSH))
        meta->array->flush.lost = true; /* P3 */
    if (--meta->pending == 0)
        meta_step(meta);
}

static bool
settle(struct meta_io *meta)
{
    struct array *array = meta->array;
    meta->running = true;
    meta->pending = 1; /* ours (I3) */
    for (uint32_t i = 0; i < array->member_count; i++) {
        struct member *member = &array->members[i];
        struct meta_child *child = &meta->children[i];
        if (!member_live(member) || !member_needs_flush(member))
            continue;
        child->meta = meta;
        child->member = member;
        child->mark = member->writes_done;
        child->req = (struct req){.op = REQ_FLUSH, .done = settled};
        meta->pending++;
        member->in_flight++;
        dev_submit(member->dev, &child->req);
    }
    return --meta->pending == 0;
}

/* The superblock of one member as this update wants it. */
static void
compose_super(struct meta_io *meta, struct member *member)
{
    struct super *super = &member->super;
    super_drop_ppl(super); /* we do not maintain it: md must not replay it */
    super->events = meta->events;
    super->resync_offset_sectors = meta->active_running ? 0 : meta->clean_resync_sectors;
    super->updated_s = clock_wall_ns(meta->array->clock) / SECOND_NS;
    super->max_dev = meta->max_dev;
    memcpy(super->roles, meta->catch_up ? meta->roles_found : meta->roles, sizeof(super->roles));
}

static void
compose_area(struct meta_io *meta, struct member *member)
{
    struct area *area = &member->area;
    area->generation++;
    area->events = meta->events;
    for (uint32_t role = 0; role < meta->array->geometry.member_count; role++)
        if (meta->array->roles_online & mask_of(role))
            area->role_events[role] = meta->events;
    area->has_super = true;
    memcpy(area->super_raw, member_memory(meta, member), SUPER_BYTES);
}

static void
begin(struct meta_io *meta)
{
    list_splice_back(&meta->current, &meta->next);
    meta->running = true;
    meta->wanted = false;
    meta->err = 0;
    if (meta->failures_now != meta->failures_running)
        meta->rounds_owed = 2; /* M2 */
    if (!meta->catch_up)
        meta->events++; /* M1, M5 */
    meta->failures_running = meta->failures_now;
    meta->active_running = meta->want_active;
    check(meta->active_running || !meta->active); /* M4 */
}

static void
header_done(struct intent_waiter *waiter, int err)
{
    struct meta_io *meta = CONTAINER_OF(waiter, struct meta_io, header);
    if (err != 0)
        meta->err = err;
    meta_step(meta);
}

static bool
write_areas(struct meta_io *meta)
{
    struct array *array = meta->array;
    meta->pending = 1; /* ours (I3) */
    for (uint32_t i = 0; i < array->member_count; i++) {
        struct member *member = &array->members[i];
        if (!member_live(member))
            continue;
        uint8_t *memory = member_memory(meta, member);
        compose_super(meta, member);
        super_encode(&member->super, member->info.logical_bytes, memory);
        if (!member->has_area)
            continue;
        compose_area(meta, member);
        area_encode(&member->area, memory + SUPER_BYTES);
        member->area_slot = 1 - member->area_slot;
        submit(meta, member, AREA_OFF_BYTES + member->area_slot * AREA_SLOT_BYTES,
               memory + SUPER_BYTES, AREA_SLOT_BYTES);
    }
    return --meta->pending == 0;
}

static bool
write_supers(struct meta_io *meta)
{
    struct array *array = meta->array;
    meta->pending = 1; /* ours (I3) */
    for (uint32_t i = 0; i < array->member_count; i++) {
        struct member *member = &array->members[i];
        if (!member_live(member))
            continue;
        check_eq(member->super.events, meta->events); /* composed with the area */
        uint8_t *memory = member_memory(meta, member);
        uint32_t bytes = super_encode(&member->super, member->info.logical_bytes, memory);
        submit(meta, member, member->super_off_bytes, memory, bytes);
    }
    return --meta->pending == 0;
}

/* Was that only to catch up (M6), did a member fail under us, or is it not far enough behind yet
 * (M2)? */
static bool
again(struct meta_io *meta)
{
    if (meta->catch_up) {
        meta->catch_up = false;
        return true;
    }
    if (meta->failures_now != meta->failures_running)
        return true;
    if (meta->rounds_owed > 0)
        meta->rounds_owed--;
    return meta->rounds_owed > 0;
}

static void
finish(struct meta_io *meta)
{
    if (meta->err == 0) {
        meta->failures_recorded = meta->failures_running;         /* I11 */
        meta->active = meta->active_running && meta->want_active; /* M4: or is it taken back? */
    } else {
        meta->active = false; /* nobody knows: mark again before the next write (M4) */
    }
    struct list done;
    list_init(&done);
    list_splice_back(&done, &meta->current);
    struct list_node *node;
    while ((node = list_pop_front(&done)) != NULL) {
        struct meta_waiter *waiter = CONTAINER_OF(node, struct meta_waiter, node);
        waiter->done(waiter, meta->err);
    }
}

static void
meta_step(struct meta_io *meta)
{
    for (;;) {
        switch ((enum meta_stage)meta->stage++) { /* advance first */
        case META_SETTLE:
            if (!settle(meta))
                return;
            break;
        case META_BEGIN:
            begin(meta);
            break;
        case META_HEADER:
            if (!intent_write_header(&meta->array->intent, meta->events, &meta->header,
                                     header_done))
                return;
            break;
        case META_AREA:
            if (!write_areas(meta))
                return;
            break;
        case META_SUPER:
            if (!write_supers(meta))
                return;
            break;
        case META_END:
            meta->stage = META_BEGIN;
            if (meta->err == 0 && again(meta))
                break;
            finish(meta);
            if (list_empty(&meta->next) && !meta->wanted) {
                meta->running = false;
                array_poke_stop(meta->array);
                return;
            }
            break;
        }
    }
}

void
meta_io_update(struct meta_io *meta, struct meta_waiter *waiter,
               void (*done)(struct meta_waiter *waiter, int err))
{
    waiter->done = done;
    if (writes_nothing(meta)) {
        done(waiter, 0);
        return;
    }
    list_push_back(&meta->next, &waiter->node);
    if (!meta->running)
        meta_step(meta);
}

void
meta_io_kick(struct meta_io *meta)
{
    if (writes_nothing(meta))
        return;
    meta->wanted = true;
    if (!meta->running)
        meta_step(meta);
}

void
meta_io_failed(struct meta_io *meta)
{
    meta->failures_now++;
    if (writes_nothing(meta))
        meta->failures_recorded = meta->failures_now;
    else
        meta_io_kick(meta);
}

bool
meta_io_record(struct meta_io *meta, struct meta_waiter *waiter,
               void (*done)(struct meta_waiter *waiter, int err))
{
    if (LIKELY(meta->failures_recorded == meta->failures_now))
        return true;
    waiter->done = done;
    list_push_back(&meta->next, &waiter->node);
    if (!meta->running)
        meta_step(meta);
    return false;
}

bool
meta_io_activate(struct meta_io *meta, struct meta_waiter *waiter,
                 void (*done)(struct meta_waiter *waiter, int err))
{
    if (LIKELY(meta->active) || writes_nothing(meta))
        return true;
    meta->want_active = true;
    waiter->done = done;
    list_push_back(&meta->next, &waiter->node);
    if (!meta->running)
        meta_step(meta);
    return false;
}

int
meta_io_init(struct meta_io *meta, struct array *array, const struct super *freshest)
{
    *meta = (struct meta_io){
        .array = array,
        .events = freshest->events,
        .max_dev = freshest->max_dev,
        .clean_resync_sectors = freshest->resync_offset_sectors,
        .want_active = freshest->resync_offset_sectors == 0,
    };
    list_init(&meta->next);
    list_init(&meta->current);
    memcpy(meta->roles, freshest->roles, sizeof(meta->roles));
    memcpy(meta->roles_found, freshest->roles, sizeof(meta->roles_found));
    meta->children = calloc(array->member_count, sizeof(*meta->children));
    meta->memory = aligned_alloc(BLOCK_BYTES, array->member_count * MEMBER_MEMORY_BYTES);
    if (meta->children == NULL || meta->memory == NULL)
        return -ENOMEM;
    memset(meta->memory, 0, array->member_count * MEMBER_MEMORY_BYTES);
    return 0;
}

void
meta_io_destroy(struct meta_io *meta)
{
    free(meta->children);
    free(meta->memory);
    meta->children = NULL;
    meta->memory = NULL;
}
