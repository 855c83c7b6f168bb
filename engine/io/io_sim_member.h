/* What the two ways to a simulated member share: requests (io_sim.c) and blobs (io_sim_blob.c). */
#pragma once

#include "engine/io/io_sim.h"
#include "engine/io/io_sim_image.h"

struct sim_member {
    struct loop *loop;
    struct sim_config config;
    uint64_t seed;
    struct rng rng;
    struct sim_image image;
    struct list devs;    /* all not closed: at most one is not dead */
    struct list flights; /* in the order of submission */
    bool gone;
    uint32_t fail_writes, fail_flushes;
    struct sim_counters counters;
};

/* To the cache, or (durable) through it. */
void sim_put(struct sim_member *member, const struct sim_patch *patch, bool durable);
/* Counts down; false when it was 0. */
bool sim_take_one(uint32_t *count);

/* Bits of the sectors [off, off+len) of one page. */
static inline uint8_t
sim_sector_bits(uint64_t off_in_page, uint64_t len_bytes)
{
    uint32_t first = (uint32_t)(off_in_page / SECTOR_BYTES);
    uint32_t count = (uint32_t)(len_bytes / SECTOR_BYTES);
    return (uint8_t)(((1u << count) - 1) << first);
}
