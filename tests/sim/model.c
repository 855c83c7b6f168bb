#include "tests/sim/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COPY_CURRENT UINT64_MAX /* the tag of what another copy holds now, not until some time */

/* ---- sets ---------------------------------------------------------------------------------- */

static void
set_push(struct content_set *set, const struct content *content, uint64_t tag)
{
    if (set->count == set->room) {
        set->room = set->room == 0 ? 1 : 2 * set->room;
        set->entries = realloc(set->entries, set->room * sizeof(*set->entries));
        check(set->entries != NULL);
    }
    set->entries[set->count++] = (struct content_entry){content, tag};
}

static void
set_add(struct content_set *set, const struct content *content, uint64_t tag)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->entries[i].tag == tag && content_same(set->entries[i].content, content))
            return;
    set_push(set, content, tag);
}

static bool
set_has(const struct content_set *set, const struct content *content)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (content_same(set->entries[i].content, content))
            return true;
    return false;
}

/* Add all of `from` under one tag; a content that is there already stays as it is. */
static void
set_join(struct content_set *set, const struct content_set *from, uint64_t tag)
{
    for (uint32_t i = 0; i < from->count; i++)
        if (!set_has(set, from->entries[i].content))
            set_push(set, from->entries[i].content, tag);
}

static void
set_clear(struct content_set *set)
{
    free(set->entries);
    *set = (struct content_set){0};
}

/* ---- sectors ------------------------------------------------------------------------------- */

struct span { /* the part of a sector that a request covers */
    uint64_t sector;
    uint32_t from, end;
};

static struct span
span_of(const struct model_io *io, uint64_t sector)
{
    uint64_t start = sector * SECTOR_BYTES;
    uint64_t from = MAX(io->off_bytes, start) - start;
    uint64_t end = MIN(io->off_bytes + io->len_bytes, start + SECTOR_BYTES) - start;
    return (struct span){sector, (uint32_t)from, (uint32_t)end};
}

static uint64_t
sector_first(uint64_t off_bytes)
{
    return off_bytes / SECTOR_BYTES;
}

static uint64_t
sector_end(uint64_t off_bytes, uint64_t len_bytes)
{
    return len_bytes == 0 ? off_bytes / SECTOR_BYTES
                          : div_ceil(off_bytes + len_bytes, SECTOR_BYTES);
}

/* The states are about to change: reads in flight may have seen them as they are. */
static void
touch(struct model *model, uint64_t index)
{
    struct sector *sector = &model->sectors[index];
    sector->changes++;
    list_for_each (node, &model->reads) {
        struct model_io *io = CONTAINER_OF(node, struct model_io, node);
        if (index < sector_first(io->off_bytes) ||
            index >= sector_end(io->off_bytes, io->len_bytes))
            continue;
        for (uint32_t i = 0; i < sector->states.count; i++)
            set_add(&io->before, sector->states.entries[i].content, index);
    }
}

static uint32_t
pending_slot(const struct sector *sector, const struct model_io *io)
{
    for (uint32_t i = 0; i < MODEL_PENDING_MAX; i++)
        if (sector->pending[i] == io)
            return i;
    return MODEL_PENDING_MAX;
}

static bool
has_pending(const struct sector *sector)
{
    for (uint32_t i = 0; i < MODEL_PENDING_MAX; i++)
        if (sector->pending[i] != NULL)
            return true;
    return false;
}

/* Every state also with each write in flight on top that is not in it yet. */
static void
close_states(struct model *model, uint64_t index)
{
    struct sector *sector = &model->sectors[index];
    for (uint32_t s = 0; s < sector->states.count; s++)
        for (uint32_t i = 0; i < MODEL_PENDING_MAX; i++) {
            const struct content_entry *state = &sector->states.entries[s];
            const struct model_io *io = sector->pending[i];
            if (io == NULL || (state->tag >> i & 1) != 0)
                continue;
            struct span span = span_of(io, index);
            const struct content *content =
                content_over(&model->pool, state->content, io->id, span.from, span.end);
            set_add(&sector->states, content, state->tag | UINT64_C(1) << i);
        }
}

/* ---- writes -------------------------------------------------------------------------------- */

static void
sector_submit(struct model *model, uint64_t index, struct model_io *io)
{
    struct sector *sector = &model->sectors[index];
    uint32_t slot = pending_slot(sector, NULL);
    check_lt(slot, MODEL_PENDING_MAX);
    touch(model, index);
    sector->pending[slot] = io;
    sector->from_medium = false;
    close_states(model, index);
}

/* States that hold `bit`, without it; those that do not go, to the pasts unless `forget`. */
static void
require(struct sector *sector, uint64_t bit, uint64_t now, bool forget)
{
    struct content_set old = sector->states;
    sector->states = (struct content_set){0};
    for (uint32_t i = 0; i < old.count; i++)
        if (old.entries[i].tag & bit)
            set_add(&sector->states, old.entries[i].content, old.entries[i].tag & ~bit);
    for (uint32_t i = 0; i < old.count && !forget; i++)
        if (!(old.entries[i].tag & bit))
            set_add(&sector->pasts, old.entries[i].content, now);
    set_clear(&old);
}

static void
release(struct sector *sector, uint64_t bit)
{
    struct content_set old = sector->states;
    sector->states = (struct content_set){0};
    for (uint32_t i = 0; i < old.count; i++)
        set_add(&sector->states, old.entries[i].content, old.entries[i].tag & ~bit);
    set_clear(&old);
}

/* What ended before a flush was submitted will never be seen again. */
static void
drop_until(struct content_set *set, uint64_t until)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->count; i++)
        if (set->entries[i].tag > until)
            set->entries[kept++] = set->entries[i];
    set->count = kept;
}

static void
sector_done(struct model *model, uint64_t index, struct model_io *io, int err)
{
    struct sector *sector = &model->sectors[index];
    uint32_t slot = pending_slot(sector, io);
    check_lt(slot, MODEL_PENDING_MAX);
    uint64_t bit = UINT64_C(1) << slot;
    bool fua = (io->flags & REQ_FUA) != 0 && err == 0 && io->op != REQ_TRIM;
    touch(model, index);
    sector->pending[slot] = NULL;
    sector->settled = model->now;
    if (err != 0 || io->op == REQ_TRIM) { /* it happened or not, and is not flushed */
        release(sector, bit);
        set_join(&sector->pasts, &sector->states, model->now);
        return;
    }
    require(sector, bit, model->now, fua);
    check_gt(sector->states.count, 0);
    for (uint32_t i = 0; i < sector->copies.count; i++) /* overwritten, but not for good */
        if (sector->copies.entries[i].tag == COPY_CURRENT)
            sector->copies.entries[i].tag = model->now;
    if (fua) {
        drop_until(&sector->pasts, io->submitted);
        set_clear(&sector->copies);
    }
}

bool
model_has_room(const struct model *model, uint64_t off_bytes, uint64_t len_bytes)
{
    for (uint64_t i = sector_first(off_bytes); i < sector_end(off_bytes, len_bytes); i++)
        if (pending_slot(&model->sectors[i], NULL) == MODEL_PENDING_MAX)
            return false;
    return true;
}

/* ---- reads --------------------------------------------------------------------------------- */

static void
read_submit(struct model *model, struct model_io *io)
{
    uint64_t first = sector_first(io->off_bytes), end = sector_end(io->off_bytes, io->len_bytes);
    io->changes = malloc((end - first + 1) * sizeof(*io->changes));
    check(io->changes != NULL);
    for (uint64_t i = first; i < end; i++)
        io->changes[i - first] = model->sectors[i].changes;
    io->before = (struct content_set){0};
    list_push_back(&model->reads, &io->node);
}

static void
explain(struct model *model, const struct model_io *io, uint64_t index, const uint8_t *data)
{
    const struct sector *sector = &model->sectors[index];
    char text[160];
    if (model->why[0] != '\0')
        return;
    size_t used = (size_t)snprintf(
        model->why, model->why_bytes,
        "sector %" PRIu64 " read by %" PRIu64 "+%" PRIu64 " starts %02x%02x%02x%02x, may be:",
        index, io->off_bytes, io->len_bytes, data[0], data[1], data[2], data[3]);
    for (uint32_t i = 0; i < sector->states.count && used < model->why_bytes; i++) {
        content_describe(sector->states.entries[i].content, text, sizeof(text));
        used += (size_t)snprintf(model->why + used, model->why_bytes - used, " {%s}", text);
    }
    for (uint32_t i = 0; i < sector->pasts.count && used < model->why_bytes; i++) {
        content_describe(sector->pasts.entries[i].content, text, sizeof(text));
        used += (size_t)snprintf(model->why + used, model->why_bytes - used,
                                 " past{%s until %" PRIu64 "}", text, sector->pasts.entries[i].tag);
    }
}

/* What was read is what is there: other states never were (from the medium), or are pasts. */
static void
stick(struct sector *sector, uint64_t index, const uint8_t *data, struct span span)
{
    struct content_set old = sector->states;
    sector->states = (struct content_set){0};
    for (uint32_t i = 0; i < old.count; i++) {
        const struct content *content = old.entries[i].content;
        if (content_matches(content, index, data, span.from, span.end - span.from))
            set_push(&sector->states, content, old.entries[i].tag);
        else if (!sector->from_medium)
            set_add(&sector->pasts, content, sector->settled);
    }
    set_clear(&old);
}

static bool
sector_read(struct model *model, const struct model_io *io, uint64_t index, const uint8_t *data)
{
    struct sector *sector = &model->sectors[index];
    struct span span = span_of(io, index);
    uint32_t len = span.end - span.from;
    bool changed = sector->changes != io->changes[index - sector_first(io->off_bytes)];
    bool now = false, before = false;
    for (uint32_t i = 0; i < sector->states.count && !now; i++)
        now = content_matches(sector->states.entries[i].content, index, data, span.from, len);
    for (uint32_t i = 0; i < io->before.count && !now && !before; i++)
        before = io->before.entries[i].tag == index &&
                 content_matches(io->before.entries[i].content, index, data, span.from, len);
    if (!now && !before) {
        explain(model, io, index, data);
        return false;
    }
    if (now && !changed && sector->states.count > 1 && !has_pending(sector))
        stick(sector, index, data, span);
    return true;
}

static bool
read_done(struct model *model, struct model_io *io, int err, const uint8_t *data)
{
    uint64_t first = sector_first(io->off_bytes), end = sector_end(io->off_bytes, io->len_bytes);
    bool good = true;
    list_remove(&io->node);
    for (uint64_t i = first; i < end && err == 0 && good; i++) {
        uint64_t at = MAX(i * SECTOR_BYTES, io->off_bytes) - io->off_bytes;
        good = sector_read(model, io, i, data + at);
    }
    free(io->changes);
    set_clear(&io->before);
    return good;
}

/* ---- requests ------------------------------------------------------------------------------ */

void
model_submit(struct model *model, struct model_io *io)
{
    io->submitted = ++model->now;
    io->node = (struct list_node){0};
    if (io->op == REQ_READ)
        read_submit(model, io);
    if (io->op == REQ_TRIM || io->op == REQ_ZERO)
        io->id = WRITE_ID_ZERO;
    uint64_t end = sector_end(io->off_bytes, io->len_bytes);
    for (uint64_t i = sector_first(io->off_bytes);
         i < end && req_is_write(&(struct req){.op = io->op}); i++)
        sector_submit(model, i, io);
}

static void
flush_done(struct model *model, const struct model_io *io)
{
    for (uint64_t i = 0; i < model->sector_count; i++) {
        struct sector *sector = &model->sectors[i];
        drop_until(&sector->pasts, io->submitted);
        if (io->synced)
            set_clear(&sector->copies);
        else
            drop_until(&sector->copies, io->submitted);
    }
}

bool
model_done(struct model *model, struct model_io *io, int err, const uint8_t *data)
{
    model->now++;
    if (io->op == REQ_READ)
        return read_done(model, io, err, data);
    if (io->op == REQ_FLUSH && err == 0)
        flush_done(model, io);
    if (io->op == REQ_FLUSH || io->op == REQ_CACHE)
        return true;
    uint64_t end = sector_end(io->off_bytes, io->len_bytes);
    for (uint64_t i = sector_first(io->off_bytes); i < end; i++)
        sector_done(model, i, io, err);
    return true;
}

/* ---- death --------------------------------------------------------------------------------- */

static void
forget_requests(struct model *model)
{
    model->now++;
    for (struct list_node *node; (node = list_pop_front(&model->reads)) != NULL;) {
        struct model_io *io = CONTAINER_OF(node, struct model_io, node);
        free(io->changes);
        set_clear(&io->before);
    }
    for (uint64_t i = 0; i < model->sector_count; i++) {
        struct sector *sector = &model->sectors[i];
        if (!has_pending(sector))
            continue;
        memset(sector->pending, 0, sizeof(sector->pending));
        sector->settled = model->now;
        release(sector, UINT64_MAX);
    }
}

void
model_power_cut(struct model *model)
{
    forget_requests(model);
    for (uint64_t i = 0; i < model->sector_count; i++) {
        struct sector *sector = &model->sectors[i];
        sector->from_medium = true;
        if (sector->pasts.count == 0)
            continue;
        set_join(&sector->states, &sector->pasts, 0);
        set_clear(&sector->pasts);
    }
}

void
model_kill(struct model *model)
{
    forget_requests(model);
}

/* ---- allowances ---------------------------------------------------------------------------- */

bool
model_in_flight(const struct model *model, uint64_t sector)
{
    return has_pending(&model->sectors[sector]);
}

bool
model_unflushed(const struct model *model, uint64_t sector)
{
    return model->sectors[sector].pasts.count != 0;
}

void
model_lose(struct model *model, uint64_t sector)
{
    struct content_set old = model->sectors[sector].states;
    touch(model, sector);
    model->sectors[sector].states = (struct content_set){0};
    for (uint32_t i = 0; i < old.count; i++)
        set_add(&model->sectors[sector].states, &content_any, old.entries[i].tag);
    set_clear(&old);
    list_for_each (node, &model->reads)
        set_add(&CONTAINER_OF(node, struct model_io, node)->before, &content_any, sector);
}

void
model_copies_differ(struct model *model, uint64_t sector, bool power)
{
    struct sector *at = &model->sectors[sector];
    for (uint32_t i = 0; i < at->copies.count; i++)
        if (power) /* what had been overwritten in the cache may be back */
            at->copies.entries[i].tag = COPY_CURRENT;
    for (uint32_t i = 0; i < at->states.count; i++)
        if (at->states.count > 1 || at->copies.count != 0)
            set_add(&at->copies, at->states.entries[i].content, COPY_CURRENT);
}

void
model_copies_agree(struct model *model, uint64_t sector)
{
    set_clear(&model->sectors[sector].copies);
}

void
model_read_elsewhere(struct model *model, uint64_t sector)
{
    struct sector *at = &model->sectors[sector];
    if (at->copies.count == 0)
        return;
    touch(model, sector);
    for (uint32_t i = 0; i < at->copies.count; i++)
        if (at->copies.entries[i].tag == COPY_CURRENT &&
            !set_has(&at->states, at->copies.entries[i].content))
            set_push(&at->states, at->copies.entries[i].content, 0);
    close_states(model, sector);
    touch(model, sector);
}

bool
model_is_lost(const struct model *model, uint64_t off_bytes, uint64_t len_bytes)
{
    for (uint64_t i = sector_first(off_bytes); i < sector_end(off_bytes, len_bytes); i++)
        for (uint32_t s = 0; s < model->sectors[i].states.count; s++)
            if (model->sectors[i].states.entries[s].content->any)
                return true;
    return false;
}

/* ---- life ---------------------------------------------------------------------------------- */

void
model_init(struct model *model, uint64_t size_bytes, char *why, size_t why_bytes)
{
    *model = (struct model){.why = why, .why_bytes = why_bytes};
    list_init(&model->reads);
    model->sector_count = size_bytes / SECTOR_BYTES;
    model->sectors = calloc(model->sector_count, sizeof(*model->sectors));
    check(model->sectors != NULL);
    why[0] = '\0';
    for (uint64_t i = 0; i < model->sector_count; i++)
        set_push(&model->sectors[i].states, &content_zero, 0);
}

void
model_destroy(struct model *model)
{
    forget_requests(model);
    for (uint64_t i = 0; i < model->sector_count; i++) {
        set_clear(&model->sectors[i].states);
        set_clear(&model->sectors[i].pasts);
        set_clear(&model->sectors[i].copies);
    }
    free(model->sectors);
    content_pool_destroy(&model->pool);
}
