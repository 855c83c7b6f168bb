/* THEORY OF OPERATION.  Everything read from a member is hostile.  Decoding goes in three steps:
 *
 *   recognise    magic, major version, max_dev (the checksum's length hangs on it), checksum
 *   fill         copy every field; nothing is interpreted
 *   judge        research/md.md 1.5, as strict as the kernel: features, padding, places, sizes
 *
 * so that even a damaged superblock can be shown, while only SUPER_OK may be used.  Encoding lays
 * the fields over `raw` as it was read, so that what we do not understand is kept. */
#include "engine/meta/super.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/bitset.h"

#include "engine/meta/super_format.h"

#define DATA_SECTORS_MIN   10u
#define BBLOG_SECTORS_MAX  8u
#define EVENTS_MAX         (UINT64_MAX / 2)
#define BBLOG_SHIFT_MAX    20u
#define SECTORS_MAX        (UINT64_MAX / SECTOR_BYTES)
#define LOGICAL_BLOCK_MAX  65536u
#define SUPER_TIME_MASK    ((UINT64_C(1) << SUPER_TIME_BITS) - 1)
#define SUPER_PPL_FEATURES (SUPER_PPL | SUPER_MULTIPLE_PPLS)

bool
super_place(uint32_t minor, uint64_t device_bytes, uint64_t *off_bytes)
{
    uint64_t sectors = device_bytes / SECTOR_BYTES;
    if (minor > 2 || sectors < 2 * (SUPER_BYTES / SECTOR_BYTES) + 8)
        return false;
    if (minor == 0)
        *off_bytes = sectors_to_bytes(round_down(sectors - 16, 8));
    else
        *off_bytes = minor == 1 ? 0 : SUPER_BYTES;
    return true;
}

static uint32_t
checksum(const uint8_t raw[SUPER_BYTES], uint32_t max_dev)
{
    uint32_t bytes = SUPER_HEADER_SIZE + 2 * max_dev;
    uint64_t sum = 0;
    uint32_t at = 0;
    for (; at + 4 <= bytes; at += 4) {
        struct le32 word;
        memcpy(&word, raw + at, sizeof(word));
        if (at != offsetof(struct super_disk, sb_csum))
            sum += le32_get(word);
    }
    if (at < bytes) {
        struct le16 half;
        memcpy(&half, raw + at, sizeof(half));
        sum += le16_get(half);
    }
    return (uint32_t)((sum & UINT32_MAX) + (sum >> 32));
}

/* The name as it may be shown: a terminal must not obey it. */
static void
copy_name(char name[33], const char set_name[32])
{
    size_t length = strnlen(set_name, 32);
    for (size_t i = 0; i < length; i++)
        name[i] = iscntrl((unsigned char)set_name[i]) ? '?' : set_name[i];
    name[length] = '\0';
}

static void
fill(struct super *s, const struct super_disk *d, const uint8_t *raw)
{
    s->features = le32_get(d->feature_map);
    memcpy(s->array_uuid, d->set_uuid, 16);
    copy_name(s->name, d->set_name);
    s->created_s = le64_get(d->ctime) & SUPER_TIME_MASK;
    s->level = (int32_t)le32_get(d->level);
    s->layout = le32_get(d->layout);
    s->used_sectors = le64_get(d->size);
    s->chunk_sectors = le32_get(d->chunksize);
    s->raid_disks = le32_get(d->raid_disks);
    if (s->features & SUPER_PPL_FEATURES) {
        s->ppl_offset_sectors = (int16_t)le16_get(d->ppl.offset);
        s->ppl_sectors = le16_get(d->ppl.size);
    } else {
        s->bitmap_offset_sectors = (int32_t)le32_get(d->bitmap_offset);
    }
    s->new_level = (int32_t)le32_get(d->new_level);
    s->reshape_position = le64_get(d->reshape_position);
    s->delta_disks = (int32_t)le32_get(d->delta_disks);
    s->new_layout = le32_get(d->new_layout);
    s->new_chunk_sectors = le32_get(d->new_chunk);
    s->new_offset_sectors = (int32_t)le32_get(d->new_offset);
    s->data_offset_sectors = le64_get(d->data_offset);
    s->data_sectors = le64_get(d->data_size);
    s->super_offset_sectors = le64_get(d->super_offset);
    s->recovery_offset_sectors = le64_get(d->recovery_offset);
    s->dev_number = le32_get(d->dev_number);
    s->corrected_reads = le32_get(d->cnt_corrected_read);
    memcpy(s->device_uuid, d->device_uuid, 16);
    s->devflags = d->devflags;
    s->bblog_shift = d->bblog_shift;
    s->bblog_sectors = le16_get(d->bblog_size);
    s->bblog_offset_sectors = (int32_t)le32_get(d->bblog_offset);
    s->updated_s = le64_get(d->utime) & SUPER_TIME_MASK;
    s->events = le64_get(d->events);
    s->resync_offset_sectors = le64_get(d->resync_offset);
    s->logical_block_bytes = le32_get(d->logical_block_size);
    s->max_dev = le32_get(d->max_dev);
    for (uint32_t i = 0; i < s->max_dev; i++) {
        struct le16 role;
        memcpy(&role, raw + SUPER_HEADER_SIZE + 2 * i, sizeof(role));
        s->roles[i] = le16_get(role);
    }
}

/* One sentence of judgement; NULL is fine. */
struct judgement {
    enum super_verdict verdict;
    const char *text;
};
#define FINE             ((struct judgement){SUPER_OK, NULL})
#define INSANE(why)      ((struct judgement){SUPER_INSANE, (why)})
#define UNSUPPORTED(why) ((struct judgement){SUPER_UNSUPPORTED, (why)})

static struct judgement
judge_compatibility(const struct super *s, const struct super_disk *d)
{
    if (s->features & ~(uint32_t)SUPER_FEATURES_KNOWN)
        return UNSUPPORTED("it has feature bits that are not known here");
    if (le32_get(d->pad0) != 0)
        return UNSUPPORTED("bytes that must be zero are not (pad0)");
    for (size_t i = 0; i < sizeof(d->pad3); i++)
        if (d->pad3[i] != 0)
            return UNSUPPORTED("bytes that must be zero are not (pad3)");
    uint32_t logical = s->logical_block_bytes;
    if (logical != 0 &&
        (!is_pow2(logical) || logical < SECTOR_BYTES || logical > LOGICAL_BLOCK_MAX))
        return UNSUPPORTED("its logical block size is not one that exists");
    if ((s->features & SUPER_RAID0_LAYOUT) && s->level != 0)
        return INSANE("it has a RAID 0 layout but is not RAID 0");
    if ((s->features & SUPER_PPL_FEATURES) &&
        ((s->features & (SUPER_BITMAP | SUPER_JOURNAL)) || s->level != 5))
        return INSANE("a partial parity log does not go with its level, bitmap or journal");
    if ((s->features & SUPER_JOURNAL) && (s->features & SUPER_BITMAP))
        return INSANE("a journal does not go with a bitmap");
    return FINE;
}

/* [off, off+len) relative to the superblock, in sectors: inside the device, off the data and off
 * the superblock itself? */
static bool
aside_fits(const struct super *s, int64_t offset, uint64_t sectors, uint64_t device_sectors)
{
    int64_t start = (int64_t)s->super_offset_sectors + offset;
    if (offset == 0 || start < 0)
        return false;
    uint64_t first = (uint64_t)start;
    return first <= device_sectors && sectors <= device_sectors - first &&
           !ranges_overlap(first, sectors, s->data_offset_sectors, s->data_sectors) &&
           !ranges_overlap(first, sectors, s->super_offset_sectors, 1);
}

static struct judgement
judge_places(const struct super *s, uint64_t off_bytes, uint64_t device_bytes)
{
    uint64_t device = device_bytes / SECTOR_BYTES;
    if (s->super_offset_sectors != off_bytes / SECTOR_BYTES)
        return INSANE("it says that it lies elsewhere: a copy, or the device has changed its size");
    if (s->data_sectors < DATA_SECTORS_MIN)
        return INSANE("its data area is shorter than anything can be");
    if (s->data_offset_sectors > device || s->data_sectors > device - s->data_offset_sectors)
        return INSANE("its data area reaches beyond the end of the device: truncated?");
    uint64_t super_sectors = div_ceil(SUPER_HEADER_SIZE + 2 * s->max_dev, SECTOR_BYTES);
    if (ranges_overlap(s->super_offset_sectors, super_sectors, s->data_offset_sectors,
                       s->data_sectors) ||
        (s->minor != 0 && s->data_offset_sectors < s->super_offset_sectors))
        return INSANE("its data area covers the superblock");
    if (s->level != 0 && s->used_sectors > s->data_sectors)
        return INSANE("it uses more than its data area has");
    if ((s->features & SUPER_BITMAP) && !aside_fits(s, s->bitmap_offset_sectors, 1, device))
        return INSANE("its bitmap lies where it cannot");
    if ((s->features & SUPER_BAD_BLOCKS) &&
        (s->bblog_sectors == 0 || s->bblog_sectors > BBLOG_SECTORS_MAX ||
         s->bblog_shift > BBLOG_SHIFT_MAX ||
         !aside_fits(s, s->bblog_offset_sectors, s->bblog_sectors, device)))
        return INSANE("its bad block log lies where it cannot");
    return FINE;
}

static struct judgement
judge_geometry(const struct super *s)
{
    bool striped = s->level == 0 || (s->level >= 4 && s->level <= 6) || s->level == 10;
    if (striped && s->chunk_sectors == 0)
        return INSANE("its chunk size is zero");
    if (s->events > EVENTS_MAX)
        return INSANE("its event counter is about to overflow");
    if (s->raid_disks == 0 || s->raid_disks > SUPER_ROLES_MAX)
        return INSANE("its number of members is absurd");
    if (s->level > 0 && s->used_sectors == 0)
        return INSANE("it uses nothing of its members");
    uint16_t role = super_role(s);
    if (role < SUPER_ROLE_JOURNAL && role >= s->raid_disks)
        return INSANE("its role is beyond the number of members");
    return FINE;
}

static enum super_verdict
reject(struct diag *diag, uint32_t minor, struct judgement judgement)
{
    if (judgement.verdict == SUPER_UNSUPPORTED)
        diag_set(diag, DIAG_REFUSED, "E_SUPER_UNSUPPORTED", -EINVAL,
                 "the md 1.%" PRIu32 " superblock cannot be used: %s", minor, judgement.text);
    else
        diag_set(diag, DIAG_FAILED, "E_SUPER_DAMAGED", -EINVAL,
                 "the md 1.%" PRIu32 " superblock is damaged: %s", minor, judgement.text);
    return judgement.verdict;
}

enum super_verdict
super_decode(const uint8_t raw[SUPER_BYTES], uint32_t minor, uint64_t off_bytes,
             uint64_t device_bytes, struct super *super, struct diag *diag)
{
    struct super_disk disk;
    memcpy(&disk, raw, sizeof(disk));
    memset(super, 0, sizeof(*super));
    if (le32_get(disk.magic) != SUPER_MAGIC)
        return SUPER_NONE;
    memcpy(super->raw, raw, SUPER_BYTES);
    super->minor = minor;
    if (le32_get(disk.major_version) != 1)
        return reject(diag, minor, UNSUPPORTED("its major version is not 1"));
    if (le32_get(disk.max_dev) > SUPER_ROLES_MAX)
        return reject(diag, minor, INSANE("its role table is longer than the superblock"));
    fill(super, &disk, raw);
    if (checksum(raw, super->max_dev) != le32_get(disk.sb_csum)) {
        diag_set(diag, DIAG_FAILED, "E_SUPER_DAMAGED", -EINVAL,
                 "the md 1.%" PRIu32 " superblock is damaged: its checksum is %08" PRIx32
                 " and should be %08" PRIx32,
                 minor, le32_get(disk.sb_csum), checksum(raw, super->max_dev));
        return SUPER_BAD_CHECKSUM;
    }
    struct judgement judgement = judge_compatibility(super, &disk);
    if (judgement.verdict == SUPER_OK)
        judgement = judge_places(super, off_bytes, device_bytes);
    if (judgement.verdict == SUPER_OK)
        judgement = judge_geometry(super);
    return judgement.verdict == SUPER_OK ? SUPER_OK : reject(diag, minor, judgement);
}

/* Seconds change, the microseconds above them stay with seconds that did not. */
static struct le64
time_make(struct le64 old, uint64_t seconds)
{
    if ((le64_get(old) & SUPER_TIME_MASK) == seconds)
        return old;
    return le64_make(seconds & SUPER_TIME_MASK);
}

static void
lay_over(const struct super *s, struct super_disk *d)
{
    char shown[33];
    d->magic = le32_make(SUPER_MAGIC);
    d->major_version = le32_make(1);
    d->feature_map = le32_make(s->features);
    memcpy(d->set_uuid, s->array_uuid, 16);
    copy_name(shown, d->set_name);
    if (strcmp(shown, s->name) != 0) {
        memset(d->set_name, 0, sizeof(d->set_name));
        memcpy(d->set_name, s->name, strnlen(s->name, sizeof(d->set_name)));
    }
    d->ctime = time_make(d->ctime, s->created_s);
    d->level = le32_make((uint32_t)s->level);
    d->layout = le32_make(s->layout);
    d->size = le64_make(s->used_sectors);
    d->chunksize = le32_make(s->chunk_sectors);
    d->raid_disks = le32_make(s->raid_disks);
    if (s->features & SUPER_PPL_FEATURES) {
        d->ppl.offset = le16_make((uint16_t)s->ppl_offset_sectors);
        d->ppl.size = le16_make(s->ppl_sectors);
    } else {
        d->bitmap_offset = le32_make((uint32_t)s->bitmap_offset_sectors);
    }
    d->new_level = le32_make((uint32_t)s->new_level);
    d->reshape_position = le64_make(s->reshape_position);
    d->delta_disks = le32_make((uint32_t)s->delta_disks);
    d->new_layout = le32_make(s->new_layout);
    d->new_chunk = le32_make(s->new_chunk_sectors);
    d->new_offset = le32_make((uint32_t)s->new_offset_sectors);
    d->data_offset = le64_make(s->data_offset_sectors);
    d->data_size = le64_make(s->data_sectors);
    d->super_offset = le64_make(s->super_offset_sectors);
    d->recovery_offset = le64_make(s->recovery_offset_sectors);
    d->dev_number = le32_make(s->dev_number);
    d->cnt_corrected_read = le32_make(s->corrected_reads);
    memcpy(d->device_uuid, s->device_uuid, 16);
    d->devflags = s->devflags;
    d->bblog_shift = s->bblog_shift;
    d->bblog_size = le16_make(s->bblog_sectors);
    d->bblog_offset = le32_make((uint32_t)s->bblog_offset_sectors);
    d->utime = time_make(d->utime, s->updated_s);
    d->events = le64_make(s->events);
    d->resync_offset = le64_make(s->resync_offset_sectors);
    d->logical_block_size = le32_make(s->logical_block_bytes);
    d->max_dev = le32_make(s->max_dev);
}

uint32_t
super_encode(const struct super *super, uint32_t logical_bytes, uint8_t raw[SUPER_BYTES])
{
    check_le(super->max_dev, SUPER_ROLES_MAX);
    check(is_pow2(logical_bytes) && logical_bytes <= SUPER_BYTES);
    check_eq(super->features & ~(uint32_t)SUPER_FEATURES_KNOWN, 0);
    check_eq(judge_geometry(super).verdict, SUPER_OK);
    struct super_disk disk;
    memmove(raw, super->raw, SUPER_BYTES);
    memcpy(&disk, raw, sizeof(disk));
    lay_over(super, &disk);
    memcpy(raw, &disk, sizeof(disk));
    for (uint32_t i = 0; i < super->max_dev; i++) {
        struct le16 role = le16_make(super->roles[i]);
        memcpy(raw + SUPER_HEADER_SIZE + 2 * i, &role, sizeof(role));
    }
    disk.sb_csum = le32_make(checksum(raw, super->max_dev));
    memcpy(raw, &disk, sizeof(disk));
    return (uint32_t)round_up(SUPER_HEADER_SIZE + 2 * super->max_dev, logical_bytes);
}

uint16_t
super_role(const struct super *super)
{
    return super->dev_number < super->max_dev ? super->roles[super->dev_number] : SUPER_ROLE_SPARE;
}

bool
super_lists(const struct super *table, uint32_t dev_number, uint16_t role)
{
    return dev_number < table->max_dev && table->roles[dev_number] == role;
}

bool
super_vacant(const struct super *table, uint16_t role)
{
    for (uint32_t dev = 0; dev < table->max_dev; dev++)
        if (table->roles[dev] == role)
            return false;
    return true;
}

void
super_drop_ppl(struct super *super)
{
    if (!(super->features & SUPER_PPL_FEATURES))
        return;
    super->features &= ~(uint32_t)SUPER_PPL_FEATURES;
    super->ppl_offset_sectors = 0;
    super->ppl_sectors = 0;
    super->bitmap_offset_sectors = 0; /* the same bytes */
}

void
super_uuid_text(const uint8_t uuid[16], char out[36])
{
    for (unsigned i = 0; i < 16; i++)
        snprintf(out + 2 * i + i / 4, 4, "%02x%s", uuid[i], i % 4 == 3 && i < 15 ? ":" : "");
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool
super_uuid_parse(const char *text, uint8_t uuid[16])
{
    unsigned digits = 0;
    memset(uuid, 0, 16);
    for (const char *at = text; *at != '\0'; at++) {
        int value = hex_value(*at);
        if (value < 0 && (*at == ':' || *at == '-'))
            continue;
        if (value < 0 || digits == 32)
            return false;
        uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | value);
        digits++;
    }
    return digits == 32;
}

const char *
super_short_name(const struct super *super)
{
    const char *colon = strchr(super->name, ':');
    return colon != NULL && colon[1] != '\0' ? colon + 1 : super->name;
}
