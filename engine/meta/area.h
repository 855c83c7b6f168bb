/* The sr5 area: what sr5 knows beyond md, in the gap between md's metadata and the data.
 *
 * It starts at AREA_OFF_BYTES of the member, so that it is found when the first MiB is gone:
 *
 *   0      slot A   (AREA_SLOT_BYTES, checksummed, generation)      written in turn: the newest
 *   16K    slot B   ("")                                            valid one counts
 *   32K    event ring (later), then the log up to data_offset (place reserved at create)
 *
 * A slot holds a backup of the superblock, the lineage, and the pointers to ring and log. It is
 * tagged with array uuid and event counter: when md has moved the counter since, the slot is stale
 * for everything but the superblock backup (decided by the reader). */
#pragma once

#include "engine/meta/super.h"

#define AREA_OFF_BYTES   MIB(1)
#define AREA_SLOT_BYTES  KIB(16)
#define AREA_MEMBERS_MAX 64u

struct area {
    uint64_t generation; /* +1 with every write; the higher valid slot counts */
    uint8_t array_uuid[16], device_uuid[16];
    uint64_t events;                   /* of the superblock it was written with */
    uint64_t area_bytes;               /* from AREA_OFF_BYTES to its end (= data_offset or less) */
    uint64_t log_off_bytes, log_bytes; /* absolute on the member; reserved, empty for now */
    uint64_t slack_bytes;              /* kept free at the end of the member */
    /* Lineage (P5): the last events at which each role was known in sync, by this member. */
    uint64_t role_events[AREA_MEMBERS_MAX];
    bool initialised;     /* false: parity of never-written stripes is not in sync (lazy init) */
    char consistency[16]; /* "log" or "resync" as asked at create */
    char policy[16];
    bool has_super;
    uint8_t super_raw[SUPER_BYTES]; /* backup; its own checksum applies */
};

/* The newer valid one of two slots (2*AREA_SLOT_BYTES bytes at AREA_OFF_BYTES).  False: none.
 * *slot is which, 0 or 1. */
bool area_decode(const uint8_t *raw, struct area *area, unsigned *slot);
void area_encode(const struct area *area, uint8_t raw[AREA_SLOT_BYTES]);
