#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/rng.h"

#include "engine/io/io_sim.h"
#include "tests/unit/member_rig.h"
#include "tests/unit/suite.h"

#define MEMBER_BYTES MIB(1)
#define LOOK_BYTES   KIB(128) /* what is looked at after a cut */
#define SECTORS      (LOOK_BYTES / SECTOR_BYTES)

struct sim {
    struct clock_virtual clock;
    struct loop *loop;
    struct sim_member *member;
    struct dev *dev;
    uint8_t *memory; /* of the whole member */
};

static const struct sim_config usual = {.size_bytes = MEMBER_BYTES,
                                        .logical_bytes = SECTOR_BYTES,
                                        .latency_ns_min = 1000,
                                        .latency_ns_max = 900000,
                                        .volatile_cache = true,
                                        .can_zero = true};

static uint8_t member_memory[MEMBER_BYTES] __attribute__((aligned(BLOCK_BYTES)));

static void
sim_start_with(struct sim *sim, const struct sim_config *config, uint64_t seed)
{
    *sim = (struct sim){0};
    clock_virtual_init(&sim->clock);
    CU_ASSERT_EQUAL_FATAL(loop_create(&sim->loop, &sim->clock.clock), 0);
    CU_ASSERT_EQUAL_FATAL(sim_member_create(&sim->member, sim->loop, config, seed), 0);
    CU_ASSERT_EQUAL_FATAL(sim_member_open(sim->member, &sim->dev), 0);
    sim->memory = member_memory;
    memset(member_memory, 0, LOOK_BYTES);
}

static void
sim_start(struct sim *sim, uint64_t seed)
{
    sim_start_with(sim, &usual, seed);
}

static void
sim_end(struct sim *sim)
{
    dev_close(sim->dev);
    sim_member_destroy(sim->member);
    loop_destroy(sim->loop);
}

static int
call(struct sim *sim, enum req_op op, uint32_t flags, uint64_t off_bytes, uint64_t len_bytes)
{
    return member_rig_call(sim->loop, sim->dev, op, flags, off_bytes, sim->memory + off_bytes,
                           len_bytes);
}

static int
write_byte(struct sim *sim, uint8_t byte, uint32_t flags, uint64_t off_bytes, uint64_t len_bytes)
{
    memset(sim->memory + off_bytes, byte, len_bytes);
    return call(sim, REQ_WRITE, flags, off_bytes, len_bytes);
}

/* What the first sectors are filled with now, by a blob. */
static void
look(struct sim *sim, uint8_t values[SECTORS])
{
    struct blob *blob;
    CU_ASSERT_EQUAL_FATAL(sim_member_blob(sim->member, &blob), 0);
    CU_ASSERT_EQUAL(blob_read(blob, sim->memory, LOOK_BYTES, 0), 0);
    blob_close(blob);
    for (uint64_t s = 0; s < SECTORS; s++) {
        const uint8_t *sector = sim->memory + s * SECTOR_BYTES;
        values[s] = sector[0];
        CU_ASSERT_EQUAL(memcmp(sector, sector + 1, SECTOR_BYTES - 1), 0); /* whole sectors */
    }
}

/* ---- in peace -------------------------------------------------------------------------------- */

static void
a_simulated_member_keeps_the_contract(void)
{
    for (uint64_t seed = suite_seed(); seed < suite_seed() + 4; seed++) {
        struct sim sim;
        struct sim_config config = usual;
        config.logical_bytes = seed % 2 != 0 ? 512 : 4096;
        config.volatile_cache = seed % 4 < 2;
        sim_start_with(&sim, &config, seed);
        struct rig rig = {.loop = sim.loop, .dev = sim.dev};
        member_rig_contract(&rig, seed, 2000);
        sim_end(&sim);
    }
}

struct log {
    struct req reqs[64];
    struct iovec iov[64];
    uint8_t order[64];
    uint32_t count;
    uint64_t digest;
    bool done;
};
static struct log *current_log;

static void
logged_done(struct req *req)
{
    struct log *log = current_log;
    log->order[log->count++] = (uint8_t)(req - log->reqs);
    log->done = log->count == ARRAY_LEN(log->reqs);
}

/* 64 writes and reads at once, then a power cut; all of it remembered. */
static void
run_logged(struct log *log, uint64_t seed, bool cut_early)
{
    struct sim sim;
    uint8_t values[SECTORS];
    sim_start(&sim, seed);
    *log = (struct log){0};
    current_log = log;
    for (uint32_t i = 0; i < ARRAY_LEN(log->reqs); i++) {
        uint64_t off = i / 2 * BLOCK_BYTES;
        if (i % 2 == 0)
            memset(sim.memory + off, (int)i + 1, BLOCK_BYTES);
        log->iov[i] = (struct iovec){sim.memory + off, BLOCK_BYTES};
        log->reqs[i] = (struct req){.op = i % 2 != 0 ? REQ_FLUSH : REQ_WRITE,
                                    .off_bytes = i % 2 != 0 ? 0 : off,
                                    .len_bytes = i % 2 != 0 ? 0 : BLOCK_BYTES,
                                    .iov = i % 2 != 0 ? NULL : &log->iov[i],
                                    .iov_count = i % 2 != 0 ? 0 : 1,
                                    .done = logged_done};
        dev_submit(sim.dev, &log->reqs[i]);
    }
    bool never = false;
    if (!cut_early)
        CU_ASSERT_EQUAL(loop_run_until(sim.loop, &log->done), 0);
    sim_member_power_cut(sim.member);
    CU_ASSERT_EQUAL(loop_run_until(sim.loop, &never), -EDEADLK);
    look(&sim, values);
    for (uint64_t s = 0; s < SECTORS; s++)
        log->digest = hash_mix(log->digest ^ values[s]);
    sim_end(&sim);
}

static void
the_same_seed_does_the_same_and_another_does_not(void)
{
    static struct log a, b, c;
    run_logged(&a, suite_seed(), false);
    run_logged(&b, suite_seed(), false);
    run_logged(&c, suite_seed() + 1, false);
    CU_ASSERT_EQUAL(memcmp(a.order, b.order, sizeof(a.order)), 0);
    CU_ASSERT_EQUAL(a.digest, b.digest);
    CU_ASSERT_NOT_EQUAL(memcmp(a.order, c.order, sizeof(a.order)), 0);
    run_logged(&a, suite_seed(), true);
    run_logged(&b, suite_seed(), true);
    CU_ASSERT_EQUAL(a.digest, b.digest);
    CU_ASSERT_EQUAL(a.count, 0); /* nothing completes after the cut */
}

/* ---- power cuts ------------------------------------------------------------------------------ */

static void
what_was_flushed_or_durable_survives_every_cut(void)
{
    for (uint64_t seed = suite_seed(); seed < suite_seed() + suite_seeds(200); seed++) {
        struct sim sim;
        uint8_t values[SECTORS];
        sim_start(&sim, seed);
        CU_ASSERT_EQUAL(write_byte(&sim, 1, 0, 0, KIB(32)), 0);
        CU_ASSERT_EQUAL(call(&sim, REQ_FLUSH, 0, 0, 0), 0);
        CU_ASSERT_EQUAL(write_byte(&sim, 2, 0, KIB(16), KIB(16)), 0);
        CU_ASSERT_EQUAL(write_byte(&sim, 3, REQ_FUA, KIB(24), KIB(16)), 0);
        CU_ASSERT_EQUAL(call(&sim, REQ_ZERO, REQ_FUA, KIB(39), 512), 0);
        sim_member_power_cut(sim.member);
        look(&sim, values);
        for (uint32_t s = 0; s < 32; s++)
            CU_ASSERT_EQUAL(values[s], 1);
        for (uint32_t s = 32; s < 48; s++)
            CU_ASSERT(values[s] == 1 || values[s] == 2);
        for (uint32_t s = 48; s < 80; s++)
            CU_ASSERT_EQUAL(values[s], s == 78 ? 0 : 3);
        sim_end(&sim);
    }
}

/* Over many cuts every version of a sector is seen, also mixed within one write. */
static void
any_version_since_the_last_flush_may_survive(void)
{
    bool seen[5] = {false}, mixed = false;
    for (uint64_t seed = suite_seed(); seed < suite_seed() + 100; seed++) {
        struct sim sim;
        uint8_t values[SECTORS];
        sim_start(&sim, seed);
        CU_ASSERT_EQUAL(write_byte(&sim, 1, REQ_FUA, 0, KIB(8)), 0);
        for (uint8_t version = 2; version <= 4; version++)
            CU_ASSERT_EQUAL(write_byte(&sim, version, 0, 0, KIB(8)), 0);
        sim_member_power_cut(sim.member);
        look(&sim, values);
        for (uint32_t s = 0; s < 16; s++) {
            CU_ASSERT_FATAL(values[s] >= 1 && values[s] <= 4);
            seen[values[s]] = true;
            mixed = mixed || values[s] != values[0];
        }
        sim_end(&sim);
    }
    CU_ASSERT(seen[1] && seen[2] && seen[3] && seen[4] && mixed);
}

static bool flag_done;

static void
set_flag(struct req *req)
{
    CU_ASSERT_EQUAL(req->err, 0);
    flag_done = true;
}

static void
never_done(struct req *req)
{
    (void)req;
    CU_FAIL("done() after the machine died");
}

/* A flush covers what had completed when it was submitted, not what completes while it runs. */
static void
a_flush_covers_what_completed_before_it_and_no_more(void)
{
    bool later_lost = false;
    for (uint64_t seed = suite_seed(); seed < suite_seed() + 100; seed++) {
        struct sim sim;
        uint8_t values[SECTORS];
        struct req flush = {.op = REQ_FLUSH, .done = set_flag};
        sim_start(&sim, seed);
        CU_ASSERT_EQUAL(write_byte(&sim, 1, 0, 0, 512), 0);
        flag_done = false;
        dev_submit(sim.dev, &flush);
        CU_ASSERT_EQUAL(write_byte(&sim, 2, 0, 512, 512), 0);
        if (!flag_done)
            CU_ASSERT_EQUAL(loop_run_until(sim.loop, &flag_done), 0);
        sim_member_power_cut(sim.member);
        look(&sim, values);
        CU_ASSERT_EQUAL(values[0], 1);
        CU_ASSERT(values[1] == 0 || values[1] == 2);
        later_lost = later_lost || values[1] == 0;
        sim_end(&sim);
    }
    CU_ASSERT_TRUE(later_lost);
}

/* Kill or cut with one write in flight: it may be torn at sectors; it never ends. */
static void
die_in_flight(bool power, bool volatile_cache)
{
    bool old_seen = false, new_seen = false, torn = false;
    for (uint64_t seed = suite_seed(); seed < suite_seed() + 100; seed++) {
        struct sim sim;
        uint8_t values[SECTORS];
        struct sim_config config = usual;
        config.volatile_cache = volatile_cache;
        sim_start_with(&sim, &config, seed);
        CU_ASSERT_EQUAL(write_byte(&sim, 1, 0, 0, KIB(8)), 0);
        CU_ASSERT_EQUAL(call(&sim, REQ_FLUSH, 0, 0, 0), 0);
        struct iovec iov = {sim.memory, KIB(8)};
        struct req req = {
            .op = REQ_WRITE, .len_bytes = KIB(8), .iov = &iov, .iov_count = 1, .done = never_done};
        memset(sim.memory, 2, KIB(8));
        dev_submit(sim.dev, &req);
        if (power)
            sim_member_power_cut(sim.member);
        else
            sim_member_process_kill(sim.member);
        dev_submit(sim.dev, &req); /* swallowed */
        CU_ASSERT_EQUAL(loop_run(sim.loop), -EDEADLK);
        look(&sim, values);
        for (uint32_t s = 0; s < 16; s++) {
            CU_ASSERT(values[s] == 1 || values[s] == 2);
            old_seen = old_seen || values[s] == 1;
            new_seen = new_seen || values[s] == 2;
            torn = torn || values[s] != values[0];
        }
        dev_close(sim.dev);
        CU_ASSERT_EQUAL_FATAL(sim_member_open(sim.member, &sim.dev), 0);
        CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 0, KIB(8)), 0);
        sim_end(&sim);
    }
    CU_ASSERT(old_seen && new_seen && torn);
}

static void
a_write_in_flight_when_the_power_goes_may_be_torn(void)
{
    die_in_flight(true, true);
    die_in_flight(true, false);
}

static void
a_write_in_flight_when_the_process_dies_may_be_torn(void)
{
    die_in_flight(false, true);
    die_in_flight(false, false);
}

static void
a_killed_process_loses_no_completed_write(void)
{
    struct sim sim;
    uint8_t values[SECTORS];
    sim_start(&sim, suite_seed());
    CU_ASSERT_EQUAL(write_byte(&sim, 9, 0, 0, KIB(64)), 0);
    sim_member_process_kill(sim.member); /* the old device is forgotten, not closed */
    look(&sim, values);
    for (uint32_t s = 0; s < 128; s++)
        CU_ASSERT_EQUAL(values[s], 9);
    CU_ASSERT_EQUAL(sim_member_open(sim.member, &sim.dev), 0);
    sim_end(&sim);
}

static void
without_a_volatile_cache_a_completed_write_is_durable(void)
{
    struct sim_config config = usual;
    config.volatile_cache = false;
    for (uint64_t seed = suite_seed(); seed < suite_seed() + 20; seed++) {
        struct sim sim;
        uint8_t values[SECTORS];
        sim_start_with(&sim, &config, seed);
        CU_ASSERT_FALSE(dev_info(sim.dev).volatile_cache);
        CU_ASSERT_EQUAL(write_byte(&sim, 5, 0, 0, MEMBER_BYTES), 0);
        sim_member_power_cut(sim.member);
        look(&sim, values);
        for (uint32_t s = 0; s < SECTORS; s++)
            CU_ASSERT_EQUAL(values[s], 5);
        sim_end(&sim);
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

static void
a_vanished_member_answers_enodev_until_it_returns(void)
{
    struct sim sim;
    sim_start(&sim, suite_seed());
    CU_ASSERT_EQUAL(write_byte(&sim, 7, 0, 0, KIB(4)), 0);
    static struct log log;
    log = (struct log){0};
    current_log = &log;
    for (uint32_t i = 0; i < ARRAY_LEN(log.reqs); i++) {
        log.reqs[i] = (struct req){.op = REQ_FLUSH, .done = logged_done};
        dev_submit(sim.dev, &log.reqs[i]);
    }
    sim_member_vanish(sim.member);
    CU_ASSERT_EQUAL(log.count, 0); /* not from inside */
    CU_ASSERT_EQUAL(loop_run_until(sim.loop, &log.done), 0);
    for (uint32_t i = 0; i < ARRAY_LEN(log.reqs); i++)
        CU_ASSERT_EQUAL(log.reqs[i].err, -ENODEV);
    CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 0, KIB(4)), -ENODEV);
    struct blob *blob;
    CU_ASSERT_EQUAL(sim_member_blob(sim.member, &blob), 0);
    CU_ASSERT_EQUAL(blob_read(blob, sim.memory, 16, 3), -ENODEV);
    sim_member_return(sim.member);
    CU_ASSERT_EQUAL(blob_read(blob, sim.memory, 16, 3), 0);
    CU_ASSERT_EQUAL(sim.memory[0], 7);
    blob_close(blob);
    CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 0, KIB(4)), 0);
    sim_end(&sim);
}

static void
a_latent_error_lasts_until_the_sector_is_written(void)
{
    struct sim sim;
    sim_start(&sim, suite_seed());
    CU_ASSERT_EQUAL(write_byte(&sim, 7, 0, 0, KIB(8)), 0);
    sim_member_latent_error(sim.member, 1024, 512);
    CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 0, KIB(8)), -EIO);
    CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 0, 1024), 0);
    CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 1536, 512), 0);
    CU_ASSERT_EQUAL(write_byte(&sim, 8, 0, 1024, 512), 0);
    CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 0, KIB(8)), 0);
    CU_ASSERT(sim.memory[1023] == 7 && sim.memory[1024] == 8 && sim.memory[1536] == 7);
    CU_ASSERT_EQUAL(call(&sim, REQ_FLUSH, 0, 0, 0), 0);
    CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 0, KIB(8)), 0);
    sim_member_flip(sim.member, 10, 3);
    CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 0, 512), 0);
    CU_ASSERT(sim.memory[9] == 7 && sim.memory[10] == 0xf8 && sim.memory[12] == 0xf8 &&
              sim.memory[13] == 7);
    sim_end(&sim);
}

static void
the_next_writes_and_flushes_can_be_made_to_fail(void)
{
    struct sim sim;
    sim_start(&sim, suite_seed());
    sim_member_fail_writes(sim.member, 2);
    sim_member_fail_flushes(sim.member, 1);
    CU_ASSERT_EQUAL(write_byte(&sim, 1, 0, 0, 512), -EIO);
    CU_ASSERT_EQUAL(call(&sim, REQ_READ, 0, 512, 512), 0);
    CU_ASSERT_EQUAL(call(&sim, REQ_ZERO, 0, 0, 512), -EIO);
    CU_ASSERT_EQUAL(write_byte(&sim, 2, 0, 0, 512), 0);
    CU_ASSERT_EQUAL(call(&sim, REQ_FLUSH, 0, 0, 0), -EIO);
    CU_ASSERT_EQUAL(call(&sim, REQ_FLUSH, 0, 0, 0), 0);
    struct sim_counters counters = sim_member_counters(sim.member);
    CU_ASSERT(counters.reads == 1 && counters.writes == 2 && counters.flushes == 2 &&
              counters.zeroes == 1 && counters.write_bytes == 1024 && counters.read_bytes == 512);
    sim_end(&sim);
}

/* A read during a write shows old or new, sector by sector. */
static void
a_read_during_a_write_shows_old_or_new_sectors(void)
{
    bool old_seen = false, new_seen = false;
    for (uint64_t seed = suite_seed(); seed < suite_seed() + 50; seed++) {
        struct sim sim;
        sim_start(&sim, seed);
        CU_ASSERT_EQUAL(write_byte(&sim, 1, 0, 0, KIB(8)), 0);
        uint8_t *to = sim.memory + KIB(512);
        struct iovec iov = {sim.memory, KIB(8)};
        struct req req = {
            .op = REQ_WRITE, .len_bytes = KIB(8), .iov = &iov, .iov_count = 1, .done = set_flag};
        memset(sim.memory, 2, KIB(8));
        flag_done = false;
        dev_submit(sim.dev, &req);
        CU_ASSERT_EQUAL(member_rig_call(sim.loop, sim.dev, REQ_READ, 0, 0, to, KIB(8)), 0);
        for (uint64_t at = 0; at < KIB(8); at += 512) {
            CU_ASSERT(to[at] == 1 || to[at] == 2);
            CU_ASSERT_EQUAL(memcmp(to + at, to + at + 1, 511), 0);
            old_seen = old_seen || to[at] == 1;
            new_seen = new_seen || to[at] == 2;
        }
        if (!flag_done)
            CU_ASSERT_EQUAL(loop_run_until(sim.loop, &flag_done), 0);
        sim_end(&sim);
    }
    CU_ASSERT(old_seen && new_seen);
}

/* ---- blobs ----------------------------------------------------------------------------------- */

static void
a_blob_reads_and_writes_any_range_and_its_flush_makes_it_durable(void)
{
    struct rng rng;
    struct sim sim;
    struct blob *blob;
    rng_seed(&rng, suite_seed());
    sim_start(&sim, suite_seed());
    uint8_t *model = member_rig_memory(KIB(64));
    CU_ASSERT_EQUAL_FATAL(sim_member_blob(sim.member, &blob), 0);
    for (uint32_t i = 0; i < 500; i++) {
        uint64_t off = rng_below(&rng, KIB(64)), len = rng_range(&rng, 1, KIB(64) - off);
        if (rng_chance(&rng, 50)) {
            rng_fill(&rng, model + off, len);
            CU_ASSERT_EQUAL(blob_write(blob, model + off, len, off), 0);
        } else {
            CU_ASSERT_EQUAL(blob_read(blob, sim.memory, len, off), 0);
            CU_ASSERT_EQUAL(memcmp(sim.memory, model + off, len), 0);
        }
    }
    CU_ASSERT_EQUAL(blob_flush(blob), 0);
    CU_ASSERT_EQUAL(blob_write(blob, "lost or not", 11, KIB(100)), 0);
    sim_member_power_cut(sim.member);
    CU_ASSERT_EQUAL(blob_read(blob, sim.memory, KIB(64), 0), 0);
    CU_ASSERT_EQUAL(memcmp(sim.memory, model, KIB(64)), 0);
    CU_ASSERT_EQUAL(blob_read(blob, sim.memory, 2, MEMBER_BYTES - 1), -EIO);
    CU_ASSERT_EQUAL(blob_write(blob, sim.memory, 1, MEMBER_BYTES), -EIO);
    blob_close(blob);
    free(model);
    sim_end(&sim);
}

SUITE_MAIN("io_sim", T(a_simulated_member_keeps_the_contract),
           T(the_same_seed_does_the_same_and_another_does_not),
           T(what_was_flushed_or_durable_survives_every_cut),
           T(any_version_since_the_last_flush_may_survive),
           T(a_flush_covers_what_completed_before_it_and_no_more),
           T(a_write_in_flight_when_the_power_goes_may_be_torn),
           T(a_write_in_flight_when_the_process_dies_may_be_torn),
           T(a_killed_process_loses_no_completed_write),
           T(without_a_volatile_cache_a_completed_write_is_durable),
           T(a_vanished_member_answers_enodev_until_it_returns),
           T(a_latent_error_lasts_until_the_sector_is_written),
           T(the_next_writes_and_flushes_can_be_made_to_fail),
           T(a_read_during_a_write_shows_old_or_new_sectors),
           T(a_blob_reads_and_writes_any_range_and_its_flush_makes_it_durable))
