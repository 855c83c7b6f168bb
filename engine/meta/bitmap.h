/* md write-intent bitmap (research/md.md section 3): header codec and bit arithmetic.  Pure. */
#pragma once

#include "engine/base/diag.h"
#include "engine/base/units.h"

#define BITMAP_HEADER_BYTES 256u
#define BITMAP_SLEEP_S      5u /* how long an idle bit stays, at least: md's default */

struct bitmap_header {
    uint32_t version; /* 4, or 3 */
    uint8_t array_uuid[16];
    uint64_t events, events_cleared;
    uint64_t sync_sectors;
    uint32_t state; /* bit 1 stale, bit 2 write error */
    uint32_t chunk_bytes;
    uint32_t daemon_sleep_s;
    uint32_t write_behind;
    uint32_t sectors_reserved;
    uint32_t nodes;
};

enum bitmap_verdict { BITMAP_OK, BITMAP_NONE, BITMAP_UNSUPPORTED, BITMAP_INSANE };

enum bitmap_verdict bitmap_decode(const uint8_t raw[BITMAP_HEADER_BYTES],
                                  struct bitmap_header *header, struct diag *diag);
void bitmap_encode(const struct bitmap_header *header, uint8_t raw[BITMAP_HEADER_BYTES]);
uint64_t bitmap_bit_count(const struct bitmap_header *header);
/* Header and bits, rounded up to a sector. */
uint64_t bitmap_total_bytes(const struct bitmap_header *header);
/* sr5's choice for a new array: chunk in bytes, so that the whole fits space_bytes. */
uint32_t bitmap_choose_chunk(uint64_t sync_bytes, uint64_t space_bytes);
