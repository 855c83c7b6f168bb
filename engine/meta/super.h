/* md superblock 1.x: decode, encode, and where it lies (research/md.md section 1).
 *
 * Decoding validates everything of 1.5: a struct super holds only sane values.  Fields that are not
 * understood are kept in `raw` and written back unchanged by encode. */
#pragma once

#include "engine/base/diag.h"
#include "engine/base/units.h"

#define SUPER_BYTES        4096u
#define SUPER_ROLES_MAX    1920u
#define SUPER_ROLE_SPARE   0xffffu
#define SUPER_ROLE_FAULTY  0xfffeu
#define SUPER_ROLE_JOURNAL 0xfffdu
#define SUPER_INFINITY     UINT64_MAX

enum super_feature {
    SUPER_BITMAP = 0x1,
    SUPER_RECOVERY = 0x2,
    SUPER_RESHAPE = 0x4,
    SUPER_BAD_BLOCKS = 0x8,
    SUPER_REPLACEMENT = 0x10,
    SUPER_RESHAPE_BACKWARDS = 0x20,
    SUPER_NEW_OFFSET = 0x40,
    SUPER_RECOVERY_BITMAP = 0x80,
    SUPER_CLUSTERED = 0x100,
    SUPER_JOURNAL = 0x200,
    SUPER_PPL = 0x400,
    SUPER_MULTIPLE_PPLS = 0x800,
    SUPER_RAID0_LAYOUT = 0x1000,
    SUPER_FEATURES_KNOWN = 0x1fff,
};

struct super {
    uint32_t minor; /* 0, 1, 2: where it lies */
    uint32_t features;
    uint8_t array_uuid[16];
    char name[33]; /* "host:name" or "name" */
    uint64_t created_s;
    int32_t level;
    uint32_t layout;
    uint64_t used_sectors; /* `size` */
    uint32_t chunk_sectors;
    uint32_t raid_disks;
    int32_t bitmap_offset_sectors; /* from the superblock; valid with SUPER_BITMAP */
    int16_t ppl_offset_sectors;
    uint16_t ppl_sectors;
    int32_t new_level;
    uint64_t reshape_position;
    int32_t delta_disks;
    uint32_t new_layout, new_chunk_sectors;
    int32_t new_offset_sectors;
    uint64_t data_offset_sectors;
    uint64_t data_sectors; /* `data_size` */
    uint64_t super_offset_sectors;
    uint64_t recovery_offset_sectors; /* valid with SUPER_RECOVERY; journal tail on a journal */
    uint32_t dev_number;
    uint32_t corrected_reads;
    uint8_t device_uuid[16];
    uint8_t devflags; /* 1 write-mostly, 2 failfast */
    uint8_t bblog_shift;
    uint16_t bblog_sectors;
    int32_t bblog_offset_sectors;
    uint64_t updated_s;
    uint64_t events;
    uint64_t resync_offset_sectors; /* SUPER_INFINITY: clean */
    uint32_t logical_block_bytes;   /* 0: not set (kernels before 6.19) */
    uint32_t max_dev;
    uint16_t roles[SUPER_ROLES_MAX];
    uint8_t raw[SUPER_BYTES]; /* as read; zero when made afresh */
};

enum super_verdict {
    SUPER_OK,
    SUPER_NONE,         /* no magic */
    SUPER_BAD_CHECKSUM, /* magic, but the sum differs: fields are filled as far as sane */
    SUPER_UNSUPPORTED,  /* unknown feature bits, non-zero padding, version */
    SUPER_INSANE,       /* out of range or contradictory */
};

/* Where a superblock of that minor version lies on a device of that size; false when too small. */
bool super_place(uint32_t minor, uint64_t device_bytes, uint64_t *off_bytes);
/* Decode SUPER_BYTES read at off_bytes of a device.  *diag says why when not SUPER_OK/SUPER_NONE.
 */
enum super_verdict super_decode(const uint8_t raw[SUPER_BYTES], uint32_t minor, uint64_t off_bytes,
                                uint64_t device_bytes, struct super *super, struct diag *diag);
/* Encode into `raw` (checks first what decode will check).  Returns bytes that must be written,
 * rounded up to logical_bytes. */
uint32_t super_encode(const struct super *super, uint32_t logical_bytes, uint8_t raw[SUPER_BYTES]);
/* This member's role by its own table: roles[dev_number]. */
uint16_t super_role(const struct super *super);
/* Does this table list the device as working in `role`?  Has it nobody there? */
bool super_lists(const struct super *table, uint32_t dev_number, uint16_t role);
bool super_vacant(const struct super *table, uint16_t role);
/* Clear the partial parity log's feature and place.  Every superblock that sr5 writes goes through
 * this: a log that we do not maintain must not be replayed (docs/on-disk-format.md). */
void super_drop_ppl(struct super *super);
/* uuid as md prints it: four groups of eight hex digits joined by ':'; out of 36 bytes. */
void super_uuid_text(const uint8_t uuid[16], char out[36]);
bool super_uuid_parse(const char *text, uint8_t uuid[16]); /* with or without separators */
/* The array's plain name: what follows "host:", else all of it. */
const char *super_short_name(const struct super *super);

/* Bad block log: `raw` of bblog_sectors*512 bytes, into absolute device byte ranges, sorted. */
struct bad_range {
    uint64_t off_bytes, len_bytes;
};
#define BAD_RANGES_MAX 512
uint32_t bad_blocks_decode(const uint8_t *raw, uint32_t bytes, uint8_t shift,
                           struct bad_range out[BAD_RANGES_MAX]);
