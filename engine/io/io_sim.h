/* Simulated members: the real device interface over memory, a virtual clock and a seed.
 *
 * THEORY: a member is a durable image and a volatile overlay.  A write completes (after a seeded
 * latency, out of order with others) into the overlay; FLUSH moves what had completed before it
 * was submitted into the image; FUA writes go to both.  At a power cut every sector of the overlay
 * independently becomes durable or is lost (any subset of sectors, and of several versions of one
 * sector the newest or an older one), also sectors of writes still in flight; nothing completes
 * afterwards until power_on.  The same seed does the same.  Sparse: never-written is zero. */
#pragma once

#include "engine/base/blob.h"
#include "engine/base/dev.h"
#include "engine/base/rng.h"

#include "engine/loop/loop.h"

struct sim_member;

struct sim_config {
    uint64_t size_bytes;
    uint32_t logical_bytes; /* 512 or 4096 */
    uint64_t latency_ns_min, latency_ns_max;
    bool volatile_cache; /* false: every completed write is durable */
    bool can_zero;
};

MUST_CHECK int sim_member_create(struct sim_member **out, struct loop *loop,
                                 const struct sim_config *config, uint64_t seed);
void sim_member_destroy(struct sim_member *member);
/* A fresh device over it; at most one open at a time.  Fails requests with -ENODEV while gone. */
MUST_CHECK int sim_member_open(struct sim_member *member, struct dev **out);
/* Synchronous access to what a read would see; after a power cut that is what is durable.  Writes
 * go to the cache like any other until the blob's flush.  May be used while a device is open. */
MUST_CHECK int sim_member_blob(struct sim_member *member, struct blob **out);

/* All members of one machine lose power at the same instant: call for each.  Requests in flight
 * never complete: their done() is not called and the caller drops them with their array, after
 * this call (the memory of writes in flight is read here).  The device is dead: it swallows what is
 * submitted to it, may be closed or forgotten, and a new one may be opened: the power is on again.
 */
void sim_member_power_cut(struct sim_member *member);
/* Only the process died: the caches and completed writes stay, writes in flight may or may not
 * have happened (whole sectors). */
void sim_member_process_kill(struct sim_member *member);
void sim_member_vanish(struct sim_member *member); /* -ENODEV from now on, in-flight ones too */
void sim_member_return(struct sim_member *member);
/* Sectors of [off, off+len) answer -EIO to reads until they are written; bytes of it are inverted.
 * What was in the cache there becomes durable before. */
void sim_member_latent_error(struct sim_member *member, uint64_t off_bytes, uint64_t len_bytes);
void sim_member_flip(struct sim_member *member, uint64_t off_bytes, uint64_t len_bytes);
/* Fail the next `count` writes (or flushes) with -EIO. A failed write may have happened in part. */
void sim_member_fail_writes(struct sim_member *member, uint32_t count);
void sim_member_fail_flushes(struct sim_member *member, uint32_t count);

struct sim_counters {
    uint64_t reads, writes, flushes, zeroes, read_bytes, write_bytes;
};
struct sim_counters sim_member_counters(const struct sim_member *member);
