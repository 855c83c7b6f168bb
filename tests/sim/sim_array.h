/* An array on simulated members: made, assembled, opened, killed as the daemon would do it, but in
 * one process and under one virtual clock.
 *
 * Members are made by create_array() and then shrunk: the superblocks say that only a few hundred
 * KiB are used, so that requests meet often and everything can be read again and again.  Some runs
 * take the bitmap or the sr5 area away, as on members that md made. */
#pragma once

#include "engine/base/rng.h"

#include "engine/array.h"
#include "engine/io/io_sim.h"
#include "tests/sim/tap.h"

#define DISKS_MAX    8u
#define LATENTS_MAX  4u
#define LATENT_BYTES KIB(4)

struct latent { /* an unreadable place, and what was there */
    uint64_t off_bytes, len_bytes;
    uint8_t data[LATENT_BYTES];
};

struct disk {
    struct sim_member *member;
    bool gone;   /* vanished, or pulled out: no candidate */
    bool out;    /* it failed or was not there when the array last ran: may be found stale */
    bool missed; /* a write was acknowledged without it: it must never be used again (P5) */
    struct latent latents[LATENTS_MAX];
    uint32_t latent_count;
};

/* What one seed decides about the array. */
struct sim_plan {
    enum raid_level level;
    uint32_t layout, member_count;
    uint64_t chunk_bytes;
    uint64_t used_bytes[DISKS_MAX]; /* of each member; all equal but for RAID 0 */
    uint32_t logical_bytes, bitmap_chunk_bytes;
    bool bitmap, area, resync_first; /* resync_first: created as not in sync */
    bool volatile_cache, can_zero;
    uint64_t latency_ns_max;
};

struct sim_array {
    struct loop *loop;
    struct clock_virtual clock;
    struct trace *trace;
    struct tap_watch *watch; /* told of member errors */
    struct sim_plan plan;
    struct disk disks[DISKS_MAX];

    struct geometry geometry;
    uint64_t data_off_bytes; /* the same on every member */

    struct array *array; /* NULL: not open */
    bool read_only;
    uint32_t disk_of[DISKS_MAX];      /* of the open array's members, by index */
    uint32_t disk_of_role[DISKS_MAX]; /* DISKS_MAX: none */
    uint64_t roles_in_use;

    /* What the members said when it was last assembled. */
    bool dirty;
    uint64_t resync_from_bytes;
    bool has_bits;
    uint32_t bits_chunk_bytes;
    uint8_t bits[4096];
};

struct sim_open {
    uint64_t absent; /* mask of disks that are not there */
    bool read_only, accept_dirty_degraded;
    uint64_t scratch_bytes;
    uint32_t request_max, idle_clean_ms;
};

/* 0, or a negative errno with *diag. */
MUST_CHECK int sim_array_create(struct sim_array *sim, const struct sim_plan *plan,
                                struct trace *trace, struct tap_watch *watch, uint64_t seed,
                                struct diag *diag);
void sim_array_destroy(struct sim_array *sim); /* whatever state it is in */
/* Probe, decide, open.  Errors as decide() and array_open() say. */
MUST_CHECK int sim_array_open(struct sim_array *sim, const struct sim_open *how, struct diag *diag);
/* Everything loses power, or only the process dies.  The array is gone afterwards. */
void sim_array_power_cut(struct sim_array *sim);
void sim_array_kill(struct sim_array *sim);
/* array_stop() has called back. */
void sim_array_stopped(struct sim_array *sim);

/* Does the disk's word, when it was assembled, call sync address `off_bytes` in sync? */
bool sim_array_claims(const struct sim_array *sim, uint64_t sync_off_bytes);
/* Sum of writes, zeroes and flushes that any member got. */
uint64_t sim_array_changes(const struct sim_array *sim);

/* Make a place of a member's data unreadable; and readable again, unless it was written since. */
void sim_array_spoil(struct sim_array *sim, uint32_t disk, uint64_t off_bytes);
void sim_array_heal(struct sim_array *sim);
