/* md superblock 1.x as it lies on disk: 256 bytes, then dev_roles[].  All little-endian; sectors
 * are 512 bytes.  Only super.c looks at this. */
#pragma once

#include "engine/base/compiler.h"
#include "engine/base/endian.h"

#define SUPER_MAGIC       0xa92b4efcu
#define SUPER_HEADER_SIZE 256u
#define SUPER_TIME_BITS   40 /* of ctime and utime: seconds; above: microseconds */

struct PACKED super_disk {
    struct le32 magic;
    struct le32 major_version; /* 1 */
    struct le32 feature_map;
    struct le32 pad0; /* 0 */
    uint8_t set_uuid[16];
    char set_name[32]; /* NUL padded; may fill all */
    struct le64 ctime;
    struct le32 level; /* signed */
    struct le32 layout;
    struct le64 size; /* sectors used of each member */
    struct le32 chunksize;
    struct le32 raid_disks;
    union PACKED {
        struct le32 bitmap_offset; /* signed, sectors from the superblock */
        struct PACKED {
            struct le16 offset; /* signed */
            struct le16 size;
        } ppl;
    };
    struct le32 new_level; /* from here to new_offset: reshape only */
    struct le64 reshape_position;
    struct le32 delta_disks;
    struct le32 new_layout;
    struct le32 new_chunk;
    struct le32 new_offset;
    struct le64 data_offset;
    struct le64 data_size;
    struct le64 super_offset;
    struct le64 recovery_offset; /* journal_tail on a journal */
    struct le32 dev_number;
    struct le32 cnt_corrected_read;
    uint8_t device_uuid[16];
    uint8_t devflags;
    uint8_t bblog_shift;
    struct le16 bblog_size;
    struct le32 bblog_offset; /* signed */
    struct le64 utime;
    struct le64 events;
    struct le64 resync_offset;
    struct le32 sb_csum;
    struct le32 max_dev;
    struct le32 logical_block_size; /* kernels >= 6.19; else 0 */
    uint8_t pad3[28];               /* 0 */
};

_Static_assert(sizeof(struct super_disk) == SUPER_HEADER_SIZE, "md 1.x header");
_Static_assert(offsetof(struct super_disk, level) == 72, "md 1.x level");
_Static_assert(offsetof(struct super_disk, bitmap_offset) == 96, "md 1.x bitmap_offset");
_Static_assert(offsetof(struct super_disk, data_offset) == 128, "md 1.x data_offset");
_Static_assert(offsetof(struct super_disk, dev_number) == 160, "md 1.x dev_number");
_Static_assert(offsetof(struct super_disk, utime) == 192, "md 1.x utime");
_Static_assert(offsetof(struct super_disk, sb_csum) == 216, "md 1.x sb_csum");
