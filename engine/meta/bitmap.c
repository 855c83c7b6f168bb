/* THEORY OF OPERATION.  md's write-intent bitmap: bit b set means that the members may disagree in
 * [b * chunk, (b + 1) * chunk) of the range that is synced (of a member; RAID 10: of the array).
 *
 *   256 bytes header | bits, bit b in byte 256 + b/8 | zeroes to the end of the sector
 *
 * - A set bit may be a lie (it costs a resync); a clear bit never is.  When bits are set and
 * cleared: engine/intent.c.
 * - A header we do not understand is never written over: decoding tells NONE (no magic),
 * UNSUPPORTED (a kind of another program: hands off) and INSANE (damaged: resync everything) apart.
 * - Before a header has been decoded it is hostile: after BITMAP_OK chunk and size are such that no
 *   arithmetic on them overflows.  Whether the bits fit the space on the member, the caller has to
 *   ask: only it knows the space. */
#include "engine/meta/bitmap.h"

#include <inttypes.h>
#include <string.h>

#include "engine/meta/bitmap_format.h"

/* Of a new array.  Finer makes resync after an unclean stop shorter, coarser makes setting bits
 * rarer: a bit costs a durable write on every member before the data may go.  A thousandth of a
 * member is resynced soon enough; beyond 64 GiB it is md's 64 MiB. */
#define BITS_WANTED  1024u
#define CHUNK_MIN    MIB(1)
#define CHUNK_WANTED MIB(64)
#define CHUNK_MAX    MIB(2048) /* whatever the space */
#define SYNC_MAX     (UINT64_MAX / SECTOR_BYTES)
#define BITS_IN_BYTE 8

static enum bitmap_verdict
reject(struct diag *diag, enum bitmap_verdict verdict, const char *code, const char *why,
       uint64_t value)
{
    diag_set(diag, DIAG_REFUSED, code, -EINVAL, "the bitmap cannot be used: %s (%" PRIu64 ")", why,
             value);
    return verdict;
}

enum bitmap_verdict
bitmap_decode(const uint8_t raw[BITMAP_HEADER_BYTES], struct bitmap_header *header,
              struct diag *diag)
{
    struct bitmap_disk disk;
    memcpy(&disk, raw, sizeof(disk));
    memset(header, 0, sizeof(*header));
    if (le32_get(disk.magic) != BITMAP_MAGIC)
        return BITMAP_NONE;
    header->version = le32_get(disk.version);
    memcpy(header->array_uuid, disk.uuid, sizeof(header->array_uuid));
    header->events = le64_get(disk.events);
    header->events_cleared = le64_get(disk.events_cleared);
    header->sync_sectors = le64_get(disk.sync_size);
    header->state = le32_get(disk.state);
    header->chunk_bytes = le32_get(disk.chunksize);
    header->daemon_sleep_s = le32_get(disk.daemon_sleep);
    header->write_behind = le32_get(disk.write_behind);
    header->sectors_reserved = le32_get(disk.sectors_reserved);
    header->nodes = le32_get(disk.nodes);
    if (header->version == BITMAP_LOCKLESS)
        return reject(diag, BITMAP_UNSUPPORTED, "E_LLBITMAP", "it is lockless, version",
                      header->version);
    if (header->version == BITMAP_CLUSTERED || header->nodes != 0)
        return reject(diag, BITMAP_UNSUPPORTED, "E_CLUSTERED", "it is a cluster's, nodes",
                      header->nodes);
    if (header->version != BITMAP_LITTLE_ENDIAN && header->version != BITMAP_HOST_ENDIAN)
        return reject(diag, BITMAP_UNSUPPORTED, "E_BITMAP_UNKNOWN", "its version is not known",
                      header->version);
    if (!is_pow2(header->chunk_bytes) || header->chunk_bytes < SECTOR_BYTES)
        return reject(diag, BITMAP_INSANE, "E_BITMAP_DAMAGED", "its chunk size is absurd",
                      header->chunk_bytes);
    if (header->sync_sectors == 0 || header->sync_sectors > SYNC_MAX)
        return reject(diag, BITMAP_INSANE, "E_BITMAP_DAMAGED", "its size in sectors is absurd",
                      header->sync_sectors);
    return BITMAP_OK;
}

void
bitmap_encode(const struct bitmap_header *header, uint8_t raw[BITMAP_HEADER_BYTES])
{
    struct bitmap_disk disk = {0};
    check(header->version == BITMAP_LITTLE_ENDIAN || header->version == BITMAP_HOST_ENDIAN);
    check(is_pow2(header->chunk_bytes) && header->chunk_bytes >= SECTOR_BYTES);
    check(header->sync_sectors != 0 && header->sync_sectors <= SYNC_MAX);
    disk.magic = le32_make(BITMAP_MAGIC);
    disk.version = le32_make(header->version);
    memcpy(disk.uuid, header->array_uuid, sizeof(disk.uuid));
    disk.events = le64_make(header->events);
    disk.events_cleared = le64_make(header->events_cleared);
    disk.sync_size = le64_make(header->sync_sectors);
    disk.state = le32_make(header->state);
    disk.chunksize = le32_make(header->chunk_bytes);
    disk.daemon_sleep = le32_make(header->daemon_sleep_s);
    disk.write_behind = le32_make(header->write_behind);
    disk.sectors_reserved = le32_make(header->sectors_reserved);
    disk.nodes = le32_make(header->nodes);
    memcpy(raw, &disk, sizeof(disk));
}

uint64_t
bitmap_bit_count(const struct bitmap_header *header)
{
    return div_ceil(sectors_to_bytes(header->sync_sectors), header->chunk_bytes);
}

uint64_t
bitmap_total_bytes(const struct bitmap_header *header)
{
    uint64_t bits_bytes = div_ceil(bitmap_bit_count(header), BITS_IN_BYTE);
    return round_up(BITMAP_HEADER_BYTES + bits_bytes, SECTOR_BYTES);
}

uint32_t
bitmap_choose_chunk(uint64_t sync_bytes, uint64_t space_bytes)
{
    uint64_t chunk = CHUNK_MIN;
    check_gt(space_bytes, BITMAP_HEADER_BYTES);
    uint64_t bits_max = (space_bytes - BITMAP_HEADER_BYTES) * BITS_IN_BYTE;
    while (chunk < CHUNK_WANTED && div_ceil(sync_bytes, chunk) > BITS_WANTED)
        chunk *= 2;
    while (chunk < CHUNK_MAX && div_ceil(sync_bytes, chunk) > bits_max)
        chunk *= 2;
    return (uint32_t)chunk;
}
