/* THEORY OF OPERATION.  A probe reads, from one member, everything that could say what it is: the
 * three places of an md superblock, the two slots of the sr5 area, the bitmap and the bad block log
 * of the superblock that counts, and foreign signatures.  It judges each by itself and never fails
 * for what it finds, only for what it cannot read.
 *
 * The superblock that counts is the valid one with the newest creation time; if there is none, the
 * backup in the area.  A backup may be older than what was lost, so it counts as not clean. */
#include "engine/probe.h"

#include <blkid/blkid.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/endian.h"

#include "engine/meta/region.h"

#define BITMAP_BYTES_MAX MIB(32)
#define MD_090_MAGIC     0xa92b4efcu
#define MD_090_UNIT      KIB(64)

static void
add_signature(struct probe *probe, const char *kind, uint64_t off_bytes, uint64_t len_bytes)
{
    if (probe->signature_count == PROBE_SIGNATURES_MAX)
        return;
    struct probe_signature *signature = &probe->signatures[probe->signature_count++];
    snprintf(signature->kind, sizeof(signature->kind), "%s", kind);
    signature->off_bytes = off_bytes;
    signature->len_bytes = len_bytes;
}

/* ---- md superblocks ------------------------------------------------------------------------- */

static void
read_supers(struct blob *blob, struct probe *probe, struct super supers[3])
{
    for (uint32_t minor = 0; minor < 3; minor++) {
        uint8_t raw[SUPER_BYTES];
        uint64_t off;
        char kind[16];
        if (!super_place(minor, blob->size_bytes, &off))
            continue;
        int err = blob_read(blob, raw, sizeof(raw), off);
        if (err < 0) { /* one bad sector must not hide the others */
            probe->read_err = err;
            probe->supers[minor].verdict = SUPER_INSANE;
            diag_set(&probe->supers[minor].diag, DIAG_FAILED, "E_READ", err,
                     "the place of the md 1.%u superblock cannot be read", (unsigned)minor);
            continue;
        }
        enum super_verdict verdict = super_decode(raw, minor, off, blob->size_bytes, &supers[minor],
                                                  &probe->supers[minor].diag);
        probe->supers[minor].verdict = verdict;
        snprintf(kind, sizeof(kind), "md1.%u", (unsigned)minor);
        if (verdict == SUPER_NONE)
            continue;
        add_signature(probe, kind, off, SUPER_BYTES);
        memcpy(probe->supers[minor].array_uuid, supers[minor].array_uuid, 16);
        memcpy(probe->supers[minor].name, supers[minor].name, sizeof(supers[minor].name));
    }
}

static void
read_md_090(struct blob *blob, struct probe *probe)
{
    struct {
        struct le32 magic, major;
    } head;
    if (blob->size_bytes < 2 * MD_090_UNIT)
        return;
    uint64_t off = round_down(blob->size_bytes, MD_090_UNIT) - MD_090_UNIT;
    int err = blob_read(blob, &head, sizeof(head), off);
    if (err < 0)
        probe->read_err = err;
    else if (le32_get(head.magic) == MD_090_MAGIC && le32_get(head.major) == 0)
        add_signature(probe, "md0.90", off, SUPER_BYTES);
}

/* ---- the sr5 area --------------------------------------------------------------------------- */

static void
read_area(struct blob *blob, struct probe *probe)
{
    uint8_t raw[2 * AREA_SLOT_BYTES];
    if (blob->size_bytes < AREA_OFF_BYTES + sizeof(raw))
        return;
    int err = blob_read(blob, raw, sizeof(raw), AREA_OFF_BYTES);
    if (err < 0) {
        probe->read_err = err;
        return;
    }
    struct area *area = &probe->candidate.area;
    if (!area_decode(raw, area, &probe->area_slot))
        return;
    probe->area_found = true;
    probe->candidate.has_area = area->area_bytes <= blob->size_bytes - AREA_OFF_BYTES;
    add_signature(probe, "sr5", AREA_OFF_BYTES, sizeof(raw));
}

/* Where the backup says that it belonged; its minor follows from that. */
static void
restore_backup(struct blob *blob, struct probe *probe)
{
    struct candidate *c = &probe->candidate;
    struct diag diag;
    if (!c->has_area || !c->area.has_super)
        return;
    for (uint32_t minor = 3; minor-- > 0;) {
        uint64_t off;
        if (!super_place(minor, blob->size_bytes, &off) ||
            super_decode(c->area.super_raw, minor, off, blob->size_bytes, &c->super, &diag) !=
                SUPER_OK)
            continue;
        c->has_super = true;
        c->super_from_backup = true;
        if (c->super.level != 0)
            c->super.resync_offset_sectors = 0; /* who knows what came after it was saved */
        return;
    }
}

static void
choose_super(struct blob *blob, struct probe *probe, const struct super supers[3])
{
    struct candidate *c = &probe->candidate;
    for (uint32_t minor = 3; minor-- > 0;) {
        if (probe->supers[minor].verdict != SUPER_OK ||
            (c->has_super && supers[minor].created_s <= c->super.created_s))
            continue;
        c->has_super = true;
        c->super = supers[minor];
    }
    if (!c->has_super) {
        restore_backup(blob, probe);
        return;
    }
    /* An area of another array, or whose place data now covers, is left over from before. */
    struct region room;
    region_of_super(&c->super, &room);
    if (c->has_area && (room.area_bytes == 0 || c->area.area_bytes > room.area_bytes ||
                        memcmp(c->area.array_uuid, c->super.array_uuid, 16) != 0 ||
                        memcmp(c->area.device_uuid, c->super.device_uuid, 16) != 0))
        c->has_area = false;
}

/* ---- bitmap and bad blocks ------------------------------------------------------------------ */

/* Bytes from the bitmap's start to what follows it. */
static uint64_t
bitmap_room(const struct super *s, uint64_t off, uint64_t device_bytes)
{
    uint64_t end = device_bytes;
    uint64_t super = sectors_to_bytes(s->super_offset_sectors);
    uint64_t data = sectors_to_bytes(s->data_offset_sectors);
    if (super > off)
        end = MIN(end, super);
    if (data > off)
        end = MIN(end, data);
    return MIN(end - off, BITMAP_BYTES_MAX);
}

/* Then all of it counts as set; no reason not to use the member. */
static int
bitmap_unreadable(struct probe *probe, int err)
{
    probe->bitmap_verdict = BITMAP_INSANE;
    diag_set(&probe->bitmap_diag, DIAG_FAILED, "E_READ", err, "the bitmap cannot be read");
    return 0;
}

static int
read_bitmap(struct blob *blob, struct probe *probe)
{
    const struct super *s = &probe->candidate.super;
    uint8_t head[BITMAP_HEADER_BYTES];
    probe->bitmap_verdict = BITMAP_NONE;
    if (!probe->candidate.has_super || !(s->features & SUPER_BITMAP))
        return 0;
    /* In range: super_decode() has looked. */
    uint64_t off =
        sectors_to_bytes((uint64_t)((int64_t)s->super_offset_sectors + s->bitmap_offset_sectors));
    int err = blob_read(blob, head, sizeof(head), off);
    if (err < 0)
        return bitmap_unreadable(probe, err);
    probe->bitmap_verdict = bitmap_decode(head, &probe->bitmap, &probe->bitmap_diag);
    if (probe->bitmap_verdict != BITMAP_NONE)
        probe->candidate.bitmap_version = probe->bitmap.version;
    if (probe->bitmap_verdict != BITMAP_OK)
        return 0;
    bool ours = memcmp(probe->bitmap.array_uuid, s->array_uuid, 16) == 0;
    bool sized = s->level == 10 || probe->bitmap.sync_sectors == s->used_sectors;
    uint64_t bytes = bitmap_total_bytes(&probe->bitmap);
    if (!ours || !sized || bytes > bitmap_room(s, off, blob->size_bytes)) {
        diag_set(&probe->bitmap_diag, DIAG_FAILED, "E_BITMAP_DAMAGED", -EINVAL,
                 "the bitmap cannot be used: %s",
                 !ours ? "another array's" : "its size is not the array's");
        probe->bitmap_verdict = BITMAP_INSANE;
        return 0;
    }
    probe->bitmap_raw = malloc(bytes);
    if (probe->bitmap_raw == NULL)
        return -ENOMEM;
    probe->bitmap_raw_bytes = bytes;
    err = blob_read(blob, probe->bitmap_raw, bytes, off);
    if (err == 0)
        return 0;
    probe_destroy(probe);
    return bitmap_unreadable(probe, err);
}

static int
read_bad_blocks(struct blob *blob, struct probe *probe)
{
    const struct super *s = &probe->candidate.super;
    uint8_t raw[BAD_RANGES_MAX * sizeof(struct le64)];
    if (!probe->candidate.has_super || !(s->features & SUPER_BAD_BLOCKS))
        return 0;
    uint64_t bytes = sectors_to_bytes(s->bblog_sectors);
    check_le(bytes, sizeof(raw));
    uint64_t off =
        sectors_to_bytes((uint64_t)((int64_t)s->super_offset_sectors + s->bblog_offset_sectors));
    int err = blob_read(blob, raw, bytes, off);
    if (err == 0)
        probe->bad_count = bad_blocks_decode(raw, (uint32_t)bytes, s->bblog_shift, probe->bad);
    return err;
}

/* ---- foreign signatures --------------------------------------------------------------------- */

/* One value of a libblkid result, or NULL. */
static const char *
value_of(blkid_probe blkid, const char *name, size_t *bytes)
{
    const char *value = NULL;
    return blkid_probe_lookup_value(blkid, name, &value, bytes) == 0 ? value : NULL;
}

static bool
is_ours(const char *kind)
{
    return strcmp(kind, "linux_raid_member") == 0; /* looked at closely above */
}

/* Note what libblkid has just found; false when it could not be hidden to look further. */
static bool
note_found(blkid_probe blkid, struct probe *probe)
{
    size_t magic_bytes = 0, bytes;
    const char *kind = value_of(blkid, "TYPE", &bytes);
    const char *off = value_of(blkid, "SBMAGIC_OFFSET", &bytes);
    const char *magic = value_of(blkid, "SBMAGIC", &magic_bytes);
    if (kind == NULL || off == NULL) {
        kind = value_of(blkid, "PTTYPE", &bytes);
        off = value_of(blkid, "PTMAGIC_OFFSET", &bytes);
        magic = value_of(blkid, "PTMAGIC", &magic_bytes);
    }
    if (kind == NULL)
        return false;
    if (!is_ours(kind) && probe->foreign[0] == '\0')
        snprintf(probe->foreign, sizeof(probe->foreign), "%s", kind);
    if (off == NULL || magic == NULL || magic_bytes == 0)
        return false;
    uint64_t at = strtoull(off, NULL, 10);
    if (!is_ours(kind))
        add_signature(probe, kind, at, magic_bytes);
    return blkid_probe_hide_range(blkid, at, magic_bytes) == 0 && blkid_probe_step_back(blkid) == 0;
}

static void
look_for_foreign(struct probe *probe)
{
    struct stat status;
    if (stat(probe->path, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)))
        return;
    blkid_probe blkid = blkid_new_probe_from_filename(probe->path);
    if (blkid == NULL)
        return;
    blkid_probe_enable_superblocks(blkid, 1);
    blkid_probe_set_superblocks_flags(blkid, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_MAGIC |
                                                 BLKID_SUBLKS_BADCSUM);
    blkid_probe_enable_partitions(blkid, 1);
    blkid_probe_set_partitions_flags(blkid, BLKID_PARTS_MAGIC | BLKID_PARTS_FORCE_GPT);
    for (unsigned i = 0; i < 2 * PROBE_SIGNATURES_MAX && blkid_do_probe(blkid) == 0; i++)
        if (!note_found(blkid, probe))
            break;
    blkid_free_probe(blkid);
}

int
probe_blob(struct blob *blob, const char *path, struct probe *probe, struct diag *diag)
{
    struct super *supers = calloc(3, sizeof(*supers));
    memset(probe, 0, sizeof(*probe));
    snprintf(probe->path, sizeof(probe->path), "%s", path);
    probe->candidate.path = probe->path;
    probe->candidate.device_bytes = blob->size_bytes;
    for (unsigned minor = 0; minor < 3; minor++)
        probe->supers[minor].verdict = SUPER_NONE;
    int err = supers == NULL ? -ENOMEM : 0;
    if (err == 0) {
        read_supers(blob, probe, supers);
        read_md_090(blob, probe);
        read_area(blob, probe);
        choose_super(blob, probe, supers);
        err = probe->candidate.has_super ? 0 : probe->read_err;
    }
    if (err == 0)
        err = read_bitmap(blob, probe);
    if (err == 0)
        err = read_bad_blocks(blob, probe);
    free(supers);
    if (err < 0) {
        probe_destroy(probe);
        return diag_set(diag, DIAG_FAILED, "E_READ", err, "%s: the metadata cannot be read: %s",
                        path, strerror(-err));
    }
    if (probe->candidate.has_area)
        probe->used_by_log = probe->candidate.area.log_bytes;
    look_for_foreign(probe);
    return 0;
}

void
probe_destroy(struct probe *probe)
{
    free(probe->bitmap_raw);
    probe->bitmap_raw = NULL;
    probe->bitmap_raw_bytes = 0;
}
