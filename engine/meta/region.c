/* THEORY OF OPERATION.  A member that sr5 creates:
 *
 *   0        4K          8K        bitmap_space    1M          2M         2M+log   device-slack
 *   | unused | superblock | bitmap | room for md | sr5 area | the log | data ... | slack |
 *
 * The superblock and bitmap lie where mdadm would put them; the area starts at 1 MiB so that it
 * survives the loss of the first; data starts at a whole MiB.  The slack lets a replacement that
 * is a little shorter (344 sectors are common among "equal" disks) still fit. */
#include "engine/meta/region.h"

#include <inttypes.h>

#include "engine/meta/area.h"

#define DEVICE_MIN       MIB(16)
#define SUPER_OFF        KIB(4)
#define BITMAP_OFF       KIB(8)
#define LOG_OFF          (AREA_OFF_BYTES + MIB(1)) /* behind slots and event ring */
#define LOG_MIN          MIB(1)
#define LOG_MAX          MIB(256)
#define LOG_SHARE        64
#define SLACK_MIN        KIB(256) /* 344 sectors and a little */
#define SLACK_MAX        MIB(64)
#define SLACK_SHARE      1024
#define SLACK_UNIT       KIB(64)
#define MIRROR_UNIT      KIB(64) /* a mirror's size, as mdadm rounds it */
#define BITMAP_SMALL_MAX GIB(8)
#define BITMAP_MID_MAX   GIB(200)

static uint64_t
clamp(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : MIN(value, high);
}

/* As much as mdadm reserves, so that md may grow the array without moving anything. */
static uint64_t
bitmap_space(uint64_t device_bytes)
{
    if (device_bytes <= BITMAP_SMALL_MAX)
        return KIB(4);
    return device_bytes <= BITMAP_MID_MAX ? KIB(64) : KIB(128);
}

int
region_choose(uint64_t device_bytes, uint64_t chunk_bytes, struct region *region, struct diag *diag)
{
    uint64_t device = round_down(device_bytes, BLOCK_BYTES);
    uint64_t unit = chunk_bytes != 0 ? chunk_bytes : MIRROR_UNIT;
    *region = (struct region){
        .super_off = SUPER_OFF,
        .bitmap_off = BITMAP_OFF,
        .bitmap_space = bitmap_space(device),
        .area_off = AREA_OFF_BYTES,
        .log_off = LOG_OFF,
        .log_bytes = clamp(round_down(device / LOG_SHARE, MIB(1)), LOG_MIN, LOG_MAX),
        .slack_bytes = round_up(clamp(device / SLACK_SHARE, SLACK_MIN, SLACK_MAX), SLACK_UNIT),
    };
    region->data_off = region->log_off + region->log_bytes;
    region->area_bytes = region->data_off - region->area_off;
    uint64_t need = MAX(DEVICE_MIN, region->data_off + region->slack_bytes + unit);
    if (device < need)
        return diag_set(diag, DIAG_REFUSED, "E_MEMBER_SHORT", -ENOSPC,
                        "too small: need=%" PRIu64 " have=%" PRIu64 " bytes", need, device_bytes);
    region->data_bytes = device - region->data_off;
    region->used_bytes = round_down(region->data_bytes - region->slack_bytes, unit);
    return 0;
}

/* Where the metadata of md that lies in front of the data ends. */
static uint64_t
md_metadata_end(const struct super *super)
{
    uint64_t start = super->super_offset_sectors;
    uint64_t end = sectors_to_bytes(start) + SUPER_BYTES;
    if ((super->features & (SUPER_PPL | SUPER_MULTIPLE_PPLS)) && super->ppl_offset_sectors > 0)
        end = MAX(end, sectors_to_bytes(start + (uint64_t)super->ppl_offset_sectors +
                                        super->ppl_sectors));
    if (super->bblog_sectors != 0 && super->bblog_offset_sectors > 0)
        end = MAX(end, sectors_to_bytes(start + (uint64_t)super->bblog_offset_sectors +
                                        super->bblog_sectors));
    if ((super->features & SUPER_BITMAP) && super->bitmap_offset_sectors > 0)
        end = MAX(end, sectors_to_bytes(start + (uint64_t)super->bitmap_offset_sectors) +
                           bitmap_space(UINT64_MAX));
    return end;
}

void
region_of_super(const struct super *super, struct region *region)
{
    uint64_t data_off = sectors_to_bytes(super->data_offset_sectors);
    *region = (struct region){
        .super_off = sectors_to_bytes(super->super_offset_sectors),
        .data_off = data_off,
        .data_bytes = sectors_to_bytes(super->data_sectors),
        .used_bytes =
            sectors_to_bytes(super->level == 0 ? super->data_sectors : super->used_sectors),
    };
    region->slack_bytes = region->data_bytes - region->used_bytes;
    if (super->features & SUPER_BITMAP)
        region->bitmap_off = (uint64_t)((int64_t)region->super_off +
                                        (int64_t)super->bitmap_offset_sectors * SECTOR_BYTES);
    bool front = super->minor != 0 && md_metadata_end(super) <= AREA_OFF_BYTES;
    if (!front || data_off < AREA_OFF_BYTES + 2 * AREA_SLOT_BYTES)
        return;
    region->area_off = AREA_OFF_BYTES;
    region->area_bytes = data_off - AREA_OFF_BYTES;
    if (data_off >= LOG_OFF + LOG_MIN) {
        region->log_off = LOG_OFF;
        region->log_bytes = MIN(data_off - LOG_OFF, LOG_MAX);
    }
}
