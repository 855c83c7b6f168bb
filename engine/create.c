/* THEORY OF OPERATION.  Making an array never destroys what it refuses to, and never leaves half of
 * one:
 *
 *   check     options, sizes, sector sizes, duplicates, what every member carries (reads only)
 *   prepare   zero old signatures, write the area as "being created" (generation 0), bitmap
 *   zero      with --init zero: the data areas
 *   supers    the md superblocks
 *   commit    the area's second slot with generation 1
 *
 * Every stage is flushed on all members before the next begins.  A scan takes members whose area
 * says generation 0 (and on which nothing has happened since) for remains of an interrupted
 * creation, unless one of them has reached generation 1: by then every superblock is durable, and
 * the array is complete.  md does not look at the area: to it a cut among the superblocks shows an
 * incomplete array with nothing in it.  On an error everything is put back as it was. */
#include "engine/create.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <uuid/uuid.h>

#include "engine/base/bitset.h"

#include "engine/carried.h"
#include "engine/meta/region.h"
#include "engine/write_set.h"

#define SPARES_MAX        64u
#define MAX_DEV           128u /* as mdadm: the superblock fits a sector */
#define CHUNK_MIN         KIB(4)
#define CHUNK_MAX         MIB(64)
#define MIRROR_CHUNK      KIB(64) /* a mirror's unit of planning; 0 on disk */
#define ZERO_PIECE        MIB(1)
#define LOGICAL_MAX       4096u
#define CREATE_EVENTS     1u
#define CREATE_GENERATION 1u

enum create_phase { PHASE_PREPARE, PHASE_SUPERS, PHASE_COMMIT };

struct creation {
    const struct create_options *options;
    struct blob *const *blobs;
    const bool *zeroed;
    uint32_t member_count, spare_count, blob_count;
    struct create_result *result;
    struct diag *diag;
    struct region region; /* of the smallest; all members use its offsets */
    struct probe *probes;
    struct write_set set;
    uint8_t device_uuids[MEMBERS_MAX + SPARES_MAX][16];
};

/* ---- check: what was asked for -------------------------------------------------------------- */

static int
refuse(const struct creation *c, const char *code, const char *text)
{
    return diag_set(c->diag, DIAG_REFUSED, code, -EINVAL, "%s", text);
}

static bool
redundant(enum raid_level level)
{
    return level != RAID0;
}

static int
check_name(const struct creation *c)
{
    const char *name = c->options->name;
    size_t length = name == NULL ? 0 : strlen(name);
    if (length == 0 || length > 32)
        return refuse(c, "E_NAME", "a name has 1 to 32 bytes");
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || strchr("/:", name[i]) != NULL)
            return refuse(c, "E_NAME",
                          "a name has no blanks, no control characters, no '/' or ':'");
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || name[0] == '-')
        return refuse(c, "E_NAME", "a name is not '.' or '..' and does not begin with '-'");
    return 0;
}

static uint32_t
members_min(enum raid_level level)
{
    switch (level) {
    case RAID0:
    case RAID1:
    case RAID10:
        return 2;
    case RAID4:
    case RAID5:
        return 3;
    case RAID6:
        return 4;
    }
    return UINT32_MAX;
}

static int
check_options(const struct creation *c)
{
    const struct create_options *o = c->options;
    bool chunked = o->level != RAID1;
    int err = check_name(c);
    if (err < 0)
        return err;
    if (c->member_count < members_min(o->level) || c->member_count > MEMBERS_MAX)
        return diag_set(c->diag, DIAG_REFUSED, "E_GEOMETRY", -EINVAL,
                        "%s takes %" PRIu32 " to %u members, not %" PRIu32, level_name(o->level),
                        members_min(o->level), (unsigned)MEMBERS_MAX, c->member_count);
    if (c->spare_count > SPARES_MAX || (c->spare_count > 0 && !redundant(o->level)))
        return refuse(c, "E_GEOMETRY", "RAID 0 has no use for a spare; others take at most 64");
    if (chunked &&
        (!is_pow2(o->chunk_bytes) || o->chunk_bytes < CHUNK_MIN || o->chunk_bytes > CHUNK_MAX))
        return refuse(c, "E_GEOMETRY", "the chunk is a power of two from 4 KiB to 64 MiB");
    if (strcmp(o->consistency, "log") != 0 && strcmp(o->consistency, "resync") != 0)
        return refuse(c, "E_USAGE", "consistency is log or resync");
    if (strlen(o->policy) >= sizeof(((struct area *)0)->policy))
        return refuse(c, "E_USAGE", "there is no policy of that name");
    return 0;
}

static bool
same_file(const struct blob *a, const struct blob *b)
{
    struct stat sa, sb;
    if (a == b || strcmp(a->path, b->path) == 0)
        return true;
    if (stat(a->path, &sa) != 0 || stat(b->path, &sb) != 0)
        return false;
    if (S_ISBLK(sa.st_mode) && S_ISBLK(sb.st_mode))
        return sa.st_rdev == sb.st_rdev;
    return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static int
check_blobs(const struct creation *c)
{
    for (uint32_t i = 0; i < c->blob_count; i++) {
        const struct blob *blob = c->blobs[i];
        for (uint32_t j = 0; j < i; j++)
            if (same_file(blob, c->blobs[j]))
                return diag_set(c->diag, DIAG_REFUSED, "E_DUPLICATE", -EINVAL,
                                "%s and %s are the same file or device", c->blobs[j]->path,
                                blob->path);
        if (blob->logical_bytes != c->blobs[0]->logical_bytes || blob->logical_bytes > LOGICAL_MAX)
            return diag_set(c->diag, DIAG_REFUSED, "E_SECTOR_SIZE", -EINVAL,
                            "array=%" PRIu32 " member=%" PRIu32 ": %s has sectors of another size",
                            c->blobs[0]->logical_bytes, blob->logical_bytes, blob->path);
    }
    return 0;
}

/* ---- check: what lies where ----------------------------------------------------------------- */

static uint64_t
role_used_bytes(const struct creation *c, uint32_t role)
{
    if (c->options->level != RAID0)
        return c->region.used_bytes;
    uint64_t device = round_down(c->blobs[role]->size_bytes, BLOCK_BYTES);
    uint64_t room = device - c->region.data_off - c->region.slack_bytes;
    return round_down(room, c->options->chunk_bytes);
}

/* Say which member region_choose() found too small. */
static int
name_short_member(const struct creation *c, uint32_t i, int err)
{
    char what[512];
    if (c->diag == NULL)
        return err;
    snprintf(what, sizeof(what), "%s", c->diag->message);
    return diag_set(c->diag, DIAG_REFUSED, "E_MEMBER_SHORT", err, "%s: %.300s", c->blobs[i]->path,
                    what);
}

static int
choose_geometry(struct creation *c)
{
    const struct create_options *o = c->options;
    uint32_t smallest = 0;
    for (uint32_t i = 1; i < c->member_count; i++)
        if (c->blobs[i]->size_bytes < c->blobs[smallest]->size_bytes)
            smallest = i;
    uint64_t chunk = o->level == RAID1 ? 0 : o->chunk_bytes;
    int err = region_choose(c->blobs[smallest]->size_bytes, chunk, &c->region, c->diag);
    if (err < 0)
        return name_short_member(c, smallest, err);
    for (uint32_t i = c->member_count; i < c->blob_count; i++) {
        uint64_t need = c->region.data_off + c->region.used_bytes;
        if (c->blobs[i]->size_bytes < need)
            return diag_set(c->diag, DIAG_REFUSED, "E_MEMBER_SHORT", -ENOSPC,
                            "%s: too small for a spare: need=%" PRIu64 " have=%" PRIu64 " bytes",
                            c->blobs[i]->path, need, c->blobs[i]->size_bytes);
    }
    struct geometry *g = &c->result->geometry;
    *g = (struct geometry){.level = o->level,
                           .layout = o->level == RAID1 || o->level == RAID4 ? 0 : o->layout,
                           .member_count = c->member_count,
                           .chunk_bytes = chunk != 0 ? chunk : MIRROR_CHUNK,
                           .member_bytes = o->level == RAID0 ? 0 : c->region.used_bytes};
    for (uint32_t role = 0; role < c->member_count; role++)
        g->role_bytes[role] = role_used_bytes(c, role);
    return geometry_init(g, c->diag);
}

static void
fill_result(struct creation *c)
{
    struct create_result *r = c->result;
    bool all_zero = true;
    uint64_t used = 0;
    for (uint32_t i = 0; i < c->member_count; i++) {
        r->raw_bytes += c->blobs[i]->size_bytes;
        used += role_used_bytes(c, i);
        all_zero &= c->zeroed[i] || c->options->init == INIT_ZERO;
    }
    r->log_bytes = c->region.log_bytes * c->member_count;
    r->metadata_bytes = c->region.data_off * c->member_count - r->log_bytes;
    r->slack_bytes = r->raw_bytes - used - r->metadata_bytes - r->log_bytes;
    r->parity_bytes = used - r->geometry.array_bytes;
    r->data_offset_bytes = c->region.data_off;
    r->in_sync = c->options->level == RAID0 || (all_zero && c->options->init != INIT_RESYNC);
}

/* ---- what is written ------------------------------------------------------------------------ */

static void
make_super(const struct creation *c, uint32_t i, struct super *s)
{
    const struct geometry *g = &c->result->geometry;
    bool raid0 = g->level == RAID0;
    uint64_t device = round_down(c->blobs[i]->size_bytes, BLOCK_BYTES);
    uint64_t data_bytes = raid0 ? role_used_bytes(c, i) : device - c->region.data_off;
    memset(s, 0, sizeof(*s));
    s->minor = 2;
    s->features = raid0 ? SUPER_RAID0_LAYOUT : SUPER_BITMAP;
    memcpy(s->array_uuid, c->result->uuid, 16);
    snprintf(s->name, sizeof(s->name), "%s", c->options->name);
    s->created_s = c->options->wall_ns / SECOND_NS;
    s->level = (int32_t)g->level;
    s->layout = g->layout;
    s->used_sectors = raid0 ? 0 : bytes_to_sectors(c->region.used_bytes);
    s->chunk_sectors = g->level == RAID1 ? 0 : (uint32_t)bytes_to_sectors(g->chunk_bytes);
    s->raid_disks = c->member_count;
    if (!raid0)
        s->bitmap_offset_sectors =
            (int32_t)bytes_to_sectors(c->region.bitmap_off - c->region.super_off);
    s->data_offset_sectors = bytes_to_sectors(c->region.data_off);
    s->data_sectors = bytes_to_sectors(data_bytes);
    s->super_offset_sectors = bytes_to_sectors(c->region.super_off);
    s->dev_number = i;
    memcpy(s->device_uuid, c->device_uuids[i], 16);
    s->updated_s = s->created_s;
    s->events = raid0 ? 0 : CREATE_EVENTS;
    s->resync_offset_sectors = c->result->in_sync ? SUPER_INFINITY : 0;
    s->max_dev = MAX_DEV;
    for (uint32_t dev = 0; dev < MAX_DEV; dev++)
        s->roles[dev] = dev < c->member_count ? (uint16_t)dev : SUPER_ROLE_SPARE;
}

static void
make_area(const struct creation *c, const struct super *s, const uint8_t *super_raw,
          struct area *area)
{
    memset(area, 0, sizeof(*area));
    memcpy(area->array_uuid, s->array_uuid, 16);
    memcpy(area->device_uuid, s->device_uuid, 16);
    area->events = s->events;
    area->area_bytes = c->region.area_bytes;
    area->log_off_bytes = c->region.log_off;
    area->log_bytes = c->region.log_bytes;
    area->slack_bytes = c->region.slack_bytes;
    for (uint32_t role = 0; role < c->member_count; role++)
        area->role_events[role] = s->events;
    area->initialised = c->result->in_sync;
    snprintf(area->consistency, sizeof(area->consistency), "%s", c->options->consistency);
    snprintf(area->policy, sizeof(area->policy), "%s", c->options->policy);
    area->has_super = true;
    memcpy(area->super_raw, super_raw, SUPER_BYTES);
}

static int
add_bitmap(struct creation *c, struct blob *blob, const struct super *s)
{
    const struct geometry *g = &c->result->geometry;
    uint64_t sync_bytes = g->level == RAID10 ? g->array_bytes : c->region.used_bytes;
    struct bitmap_header header = {.version = 4,
                                   .events = s->events,
                                   .events_cleared = s->events,
                                   .sync_sectors = bytes_to_sectors(sync_bytes),
                                   .daemon_sleep_s = BITMAP_SLEEP_S};
    memcpy(header.array_uuid, s->array_uuid, 16);
    header.chunk_bytes = bitmap_choose_chunk(sync_bytes, c->region.bitmap_space);
    check_le(bitmap_total_bytes(&header), c->region.bitmap_space);
    CLEANUP_FREE uint8_t *raw = calloc(1, c->region.bitmap_space);
    if (raw == NULL)
        return -ENOMEM;
    bitmap_encode(&header, raw);
    for (uint64_t bit = 0; !c->result->in_sync && bit < bitmap_bit_count(&header); bit++)
        raw[BITMAP_HEADER_BYTES + bit / 8] |= (uint8_t)(1u << bit % 8);
    return write_set_add(&c->set, PHASE_PREPARE, blob, c->region.bitmap_off, raw,
                         c->region.bitmap_space);
}

static int
add_member(struct creation *c, uint32_t i, struct super *s, struct area *area)
{
    struct blob *blob = c->blobs[i];
    uint8_t super_raw[SUPER_BYTES], slot[AREA_SLOT_BYTES];
    make_super(c, i, s);
    super_encode(s, blob->logical_bytes, super_raw);
    make_area(c, s, super_raw, area);
    area_encode(area, slot); /* generation 0: being created */
    int err = 0;
    for (uint32_t k = 0; k < c->probes[i].signature_count && err == 0; k++) {
        const struct probe_signature *old = &c->probes[i].signatures[k];
        err = write_set_add(&c->set, PHASE_PREPARE, blob, old->off_bytes, NULL, old->len_bytes);
    }
    if (err == 0)
        err = write_set_add(&c->set, PHASE_PREPARE, blob, AREA_OFF_BYTES, slot, sizeof(slot));
    if (err == 0)
        err = write_set_add(&c->set, PHASE_PREPARE, blob, AREA_OFF_BYTES + AREA_SLOT_BYTES, NULL,
                            AREA_SLOT_BYTES);
    if (err == 0 && (s->features & SUPER_BITMAP))
        err = add_bitmap(c, blob, s);
    if (err == 0)
        err = write_set_add(&c->set, PHASE_SUPERS, blob, c->region.super_off, super_raw,
                            sizeof(super_raw));
    area->generation = CREATE_GENERATION;
    area_encode(area, slot);
    if (err == 0)
        err = write_set_add(&c->set, PHASE_COMMIT, blob, AREA_OFF_BYTES + AREA_SLOT_BYTES, slot,
                            sizeof(slot));
    return err;
}

static int
add_members(struct creation *c)
{
    CLEANUP_FREE struct super *s = malloc(sizeof(*s));
    CLEANUP_FREE struct area *area = malloc(sizeof(*area));
    int err = s == NULL || area == NULL ? -ENOMEM : 0;
    uuid_generate(c->result->uuid);
    for (uint32_t i = 0; i < c->blob_count; i++)
        uuid_generate(c->device_uuids[i]);
    for (uint32_t i = 0; i < c->blob_count && err == 0; i++)
        err = add_member(c, i, s, area);
    if (err < 0)
        return diag_set(c->diag, DIAG_FAILED, "E_MEMORY", err, "not enough memory");
    return 0;
}

/* What the data areas held is gone from the first write on, so nothing of before is put back. */
static int
zero_data(struct creation *c)
{
    write_set_undo_wipes(&c->set);
    CLEANUP_FREE uint8_t *zeroes = calloc(1, ZERO_PIECE);
    if (zeroes == NULL)
        return diag_set(c->diag, DIAG_FAILED, "E_MEMORY", -ENOMEM, "not enough memory");
    for (uint32_t i = 0; i < c->member_count; i++) {
        uint64_t off = c->region.data_off, end = off + role_used_bytes(c, i);
        int err = 0;
        for (; !c->zeroed[i] && off < end && err == 0; off += ZERO_PIECE)
            err = blob_write(c->blobs[i], zeroes, MIN(ZERO_PIECE, end - off), off);
        if (err == 0)
            err = blob_flush(c->blobs[i]);
        if (err < 0)
            return diag_set(c->diag, DIAG_FAILED, "E_WRITE", err,
                            "%s: zeroing failed at byte %" PRIu64
                            ": %s; there is no array, and what the members held is lost",
                            c->blobs[i]->path, off, strerror(-err));
    }
    return 0;
}

static int
write_all(struct creation *c)
{
    int err = add_members(c);
    if (err == 0)
        err = write_set_load(&c->set, c->diag);
    if (err == 0)
        err = write_set_apply(&c->set, PHASE_PREPARE, c->diag);
    if (err == 0 && c->options->init == INIT_ZERO)
        err = zero_data(c);
    if (err == 0)
        err = write_set_apply(&c->set, PHASE_SUPERS, c->diag);
    if (err == 0)
        err = write_set_apply(&c->set, PHASE_COMMIT, c->diag);
    return err;
}

int
create_array(const struct create_options *options, const struct create_members *members,
             struct create_result *result, struct diag *diag)
{
    struct creation c = {.options = options,
                         .blobs = members->blobs,
                         .zeroed = members->zeroed,
                         .member_count = members->member_count,
                         .spare_count = members->spare_count,
                         .blob_count = members->member_count + members->spare_count,
                         .result = result,
                         .diag = diag};
    memset(result, 0, sizeof(*result));
    write_set_init(&c.set);
    int err = check_options(&c);
    if (err == 0)
        err = check_blobs(&c);
    if (err == 0)
        err = choose_geometry(&c);
    if (err < 0)
        return err;
    fill_result(&c);
    c.probes = calloc(c.blob_count, sizeof(*c.probes));
    if (c.probes == NULL)
        return diag_set(diag, DIAG_FAILED, "E_MEMORY", -ENOMEM, "not enough memory");
    err = carried_check(options, c.blobs, c.blob_count, c.probes, diag);
    if (err == 0 && !options->dry_run)
        err = write_all(&c);
    for (uint32_t i = 0; i < c.blob_count; i++)
        probe_destroy(&c.probes[i]);
    free(c.probes);
    write_set_destroy(&c.set);
    return err;
}
