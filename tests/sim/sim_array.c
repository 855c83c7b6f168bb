#include "tests/sim/sim_array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/create.h"
#include "tests/sim/sim_shrink.h"
#include "tests/sim/tap.h"

#define DISK_BYTES   MIB(16)
#define WALL_START_S UINT64_C(1760000000)

/* ---- making it ----------------------------------------------------------------------------- */

static int
create_members(struct sim_array *sim, uint64_t seed)
{
    const struct sim_plan *plan = &sim->plan;
    struct sim_config config = {.size_bytes = DISK_BYTES,
                                .logical_bytes = plan->logical_bytes,
                                .latency_ns_min = 20000,
                                .latency_ns_max = plan->latency_ns_max,
                                .volatile_cache = plan->volatile_cache,
                                .can_zero = plan->can_zero};
    for (uint32_t i = 0; i < plan->member_count; i++) {
        int err = sim_member_create(&sim->disks[i].member, sim->loop, &config, seed * 16 + i);
        if (err < 0)
            return err;
    }
    return 0;
}

static int
know_geometry(struct sim_array *sim, struct diag *diag)
{
    const struct sim_plan *plan = &sim->plan;
    sim->geometry = (struct geometry){.level = plan->level,
                                      .layout = plan->layout,
                                      .member_count = plan->member_count,
                                      .chunk_bytes = plan->level == RAID1 ? 0 : plan->chunk_bytes,
                                      .member_bytes = plan->used_bytes[0]};
    for (uint32_t i = 0; i < plan->member_count; i++)
        sim->geometry.role_bytes[i] = plan->used_bytes[i];
    return geometry_init(&sim->geometry, diag);
}

static int
create_metadata(struct sim_array *sim, struct diag *diag)
{
    const struct sim_plan *plan = &sim->plan;
    struct blob *blobs[DISKS_MAX] = {0};
    static const bool zeroed[DISKS_MAX] = {true, true, true, true, true, true, true, true};
    const struct create_members members = {
        .blobs = blobs, .zeroed = zeroed, .member_count = plan->member_count};
    struct create_result result;
    struct create_options options = {.name = "sim",
                                     .level = plan->level,
                                     .layout = plan->layout,
                                     .chunk_bytes = plan->chunk_bytes,
                                     .init = plan->resync_first ? INIT_RESYNC : INIT_LAZY,
                                     .consistency = "resync",
                                     .policy = "writethrough",
                                     .wall_ns = clock_wall_ns(&sim->clock.clock)};
    int err = 0;
    for (uint32_t i = 0; i < plan->member_count && err == 0; i++)
        err = sim_member_blob(sim->disks[i].member, &blobs[i]);
    if (err == 0)
        err = create_array(&options, &members, &result, diag);
    for (uint32_t i = 0; i < plan->member_count && err == 0; i++)
        err = sim_shrink(plan, blobs[i], i, diag);
    for (uint32_t i = 0; i < plan->member_count; i++)
        blob_close(blobs[i]);
    return err;
}

int
sim_array_create(struct sim_array *sim, const struct sim_plan *plan, struct trace *trace,
                 struct tap_watch *watch, uint64_t seed, struct diag *diag)
{
    memset(sim, 0, sizeof(*sim));
    sim->plan = *plan;
    sim->trace = trace;
    sim->watch = watch;
    clock_virtual_init(&sim->clock);
    sim->clock.wall_base_ns = WALL_START_S * SECOND_NS;
    trace->clock = &sim->clock.clock;
    int err = loop_create(&sim->loop, &sim->clock.clock);
    if (err == 0)
        err = create_members(sim, seed);
    if (err == 0)
        err = know_geometry(sim, diag);
    return err == 0 ? create_metadata(sim, diag) : err;
}

static void
forget_array(struct sim_array *sim)
{
    if (sim->array != NULL)
        array_abandon(sim->array);
    sim->array = NULL;
}

void
sim_array_destroy(struct sim_array *sim)
{
    if (sim->array != NULL)
        sim_array_power_cut(sim);
    for (uint32_t i = 0; i < sim->plan.member_count; i++)
        sim_member_destroy(sim->disks[i].member);
    if (sim->loop != NULL)
        loop_destroy(sim->loop);
}

/* ---- assembling ---------------------------------------------------------------------------- */

struct assembly {
    struct probe probes[DISKS_MAX];
    uint32_t disk[DISKS_MAX]; /* of each probe */
    uint32_t count;
    struct decision decision;
    struct array_member_open members[DISKS_MAX];
    uint32_t member_count, freshest;
};

static int
probe_all(struct sim_array *sim, uint64_t absent, struct assembly *assembly, struct diag *diag)
{
    for (uint32_t i = 0; i < sim->plan.member_count; i++) {
        struct blob *blob;
        char path[16];
        if (sim->disks[i].gone || (absent & mask_of(i)))
            continue;
        int err = sim_member_blob(sim->disks[i].member, &blob);
        if (err < 0)
            return err;
        snprintf(path, sizeof(path), "disk%" PRIu32, i);
        err = probe_blob(blob, path, &assembly->probes[assembly->count], diag);
        blob_close(blob);
        if (err < 0)
            return err;
        assembly->probes[assembly->count].candidate.path = assembly->probes[assembly->count].path;
        assembly->disk[assembly->count++] = i;
    }
    return 0;
}

/* The bitmap of a member that counts; NULL: it has none that does. */
static const struct probe *
bitmap_of(const struct assembly *assembly, uint32_t i)
{
    const struct probe *probe = &assembly->probes[assembly->decision.members[i].candidate];
    return assembly->decision.members[i].class == MEMBER_ACTIVE &&
                   probe->bitmap_verdict == BITMAP_OK
               ? probe
               : NULL;
}

/* What the members say about redundancy (research/md.md 3.3): a place may be out of sync if any
 * member in use says so. */
static void
remember_claims(struct sim_array *sim, const struct assembly *assembly)
{
    const struct super *super = &assembly->probes[assembly->decision.freshest].candidate.super;
    sim->dirty = assembly->decision.dirty;
    sim->resync_from_bytes =
        MIN(super->resync_offset_sectors, UINT64_MAX / SECTOR_BYTES) * SECTOR_BYTES;
    sim->has_bits = false;
    memset(sim->bits, 0, sizeof(sim->bits));
    for (uint32_t i = 0; i < assembly->decision.member_count; i++) {
        const struct probe *probe = bitmap_of(assembly, i);
        if (probe == NULL)
            continue;
        check_gt(probe->bitmap_raw_bytes, BITMAP_HEADER_BYTES);
        uint64_t bytes = MIN(probe->bitmap_raw_bytes - BITMAP_HEADER_BYTES, sizeof(sim->bits));
        for (uint64_t byte = 0; byte < bytes; byte++)
            sim->bits[byte] |= probe->bitmap_raw[BITMAP_HEADER_BYTES + byte];
        sim->bits_chunk_bytes = probe->bitmap.chunk_bytes;
        sim->has_bits |= probe->bitmap.events >= super->events;
    }
}

bool
sim_array_claims(const struct sim_array *sim, uint64_t sync_off_bytes)
{
    if (!sim->dirty || sync_off_bytes < sim->resync_from_bytes)
        return true;
    if (!sim->has_bits)
        return false;
    uint64_t bit = sync_off_bytes / sim->bits_chunk_bytes;
    return (sim->bits[bit / 8] >> (bit % 8) & 1) == 0;
}

static int
judge(struct sim_array *sim, struct assembly *assembly, struct diag *diag)
{
    const struct candidate *candidates[DISKS_MAX];
    for (uint32_t i = 0; i < assembly->count; i++)
        candidates[i] = &assembly->probes[i].candidate;
    int err = decide(candidates, assembly->count, NULL, &assembly->decision, diag);
    if (err < 0)
        return err;
    for (uint32_t i = 0; i < assembly->decision.member_count; i++) {
        const struct decision_member *member = &assembly->decision.members[i];
        if (member->class != MEMBER_ACTIVE)
            trace_say(sim->trace, "disk%" PRIu32 " is %s: %s", assembly->disk[member->candidate],
                      member_class_name(member->class), member->why);
    }
    remember_claims(sim, assembly);
    return 0;
}

static int
open_members(struct sim_array *sim, struct assembly *assembly)
{
    for (uint32_t i = 0; i < assembly->decision.member_count; i++) {
        const struct decision_member *member = &assembly->decision.members[i];
        uint32_t disk = assembly->disk[member->candidate];
        struct array_member_open *open = &assembly->members[assembly->member_count];
        struct dev *dev;
        if (member->class != MEMBER_ACTIVE)
            continue;
        int err = sim_member_open(sim->disks[disk].member, &dev);
        if (err < 0)
            return err;
        *open = (struct array_member_open){.dev = tap_create(dev, sim->trace, sim->watch, disk),
                                           .probe = &assembly->probes[member->candidate],
                                           .class = member->class,
                                           .role = member->role};
        snprintf(open->path, sizeof(open->path), "disk%" PRIu32, disk);
        if (member->candidate == assembly->decision.freshest)
            assembly->freshest = assembly->member_count;
        sim->disk_of[assembly->member_count++] = disk;
        sim->disk_of_role[member->role] = disk;
        sim->roles_in_use |= mask_of(member->role);
    }
    return 0;
}

static int
open_array(struct sim_array *sim, const struct sim_open *how, struct assembly *assembly,
           struct diag *diag)
{
    struct array_open open = {.loop = sim->loop,
                              .members = assembly->members,
                              .read_only = how->read_only,
                              .accept_dirty_degraded = how->accept_dirty_degraded,
                              .scratch_bytes = how->scratch_bytes,
                              .request_max = how->request_max,
                              .idle_clean_ms = how->idle_clean_ms};
    sim->roles_in_use = 0;
    for (uint32_t role = 0; role < DISKS_MAX; role++)
        sim->disk_of_role[role] = DISKS_MAX;
    int err = open_members(sim, assembly);
    open.member_count = assembly->member_count;
    open.freshest = assembly->freshest;
    if (err == 0)
        err = array_open(&sim->array, &open, diag);
    if (err < 0) {
        for (uint32_t i = 0; i < assembly->member_count; i++)
            dev_close(assembly->members[i].dev);
        sim->array = NULL;
        return err;
    }
    sim->read_only = how->read_only;
    check_eq(array_geometry(sim->array)->array_bytes, sim->geometry.array_bytes);
    sim->data_off_bytes = sectors_to_bytes(
        assembly->probes[assembly->decision.freshest].candidate.super.data_offset_sectors);
    return 0;
}

int
sim_array_open(struct sim_array *sim, const struct sim_open *how, struct diag *diag)
{
    static struct assembly one; /* large, and needed often */
    struct assembly *assembly = &one;
    memset(assembly, 0, sizeof(*assembly));
    uint64_t changes = sim_array_changes(sim);
    int err = probe_all(sim, how->absent, assembly, diag);
    if (err == 0)
        err = judge(sim, assembly, diag);
    if (err == 0)
        err = open_array(sim, how, assembly, diag);
    for (uint32_t i = 0; i < assembly->count; i++)
        probe_destroy(&assembly->probes[i]);
    check_eq(sim_array_changes(sim), changes); /* opening writes nothing */
    trace_add(sim->trace, how->read_only ? "open-ro" : "open", sim->roles_in_use, how->absent,
              sim->dirty, err);
    return err;
}

/* ---- the end ------------------------------------------------------------------------------- */

void
sim_array_power_cut(struct sim_array *sim)
{
    trace_add(sim->trace, "POWER CUT", 0, 0, 0, 0);
    for (uint32_t i = 0; i < sim->plan.member_count; i++)
        sim_member_power_cut(sim->disks[i].member);
    forget_array(sim);
}

void
sim_array_kill(struct sim_array *sim)
{
    trace_add(sim->trace, "KILL", 0, 0, 0, 0);
    for (uint32_t i = 0; i < sim->plan.member_count; i++)
        sim_member_process_kill(sim->disks[i].member);
    forget_array(sim);
}

void
sim_array_stopped(struct sim_array *sim)
{
    trace_add(sim->trace, "stopped", 0, 0, 0, 0);
    sim->array = NULL;
}

uint64_t
sim_array_changes(const struct sim_array *sim)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim->plan.member_count; i++) {
        struct sim_counters counters = sim_member_counters(sim->disks[i].member);
        sum += counters.writes + counters.zeroes + counters.flushes;
    }
    return sum;
}

/* ---- unreadable places --------------------------------------------------------------------- */

void
sim_array_spoil(struct sim_array *sim, uint32_t index, uint64_t off_bytes)
{
    struct disk *disk = &sim->disks[index];
    struct blob *blob;
    if (disk->latent_count == LATENTS_MAX || disk->gone)
        return;
    struct latent *latent = &disk->latents[disk->latent_count];
    latent->off_bytes = off_bytes;
    latent->len_bytes = MIN(LATENT_BYTES, DISK_BYTES - off_bytes);
    check_eq(sim_member_blob(disk->member, &blob), 0);
    int err = blob_read(blob, latent->data, latent->len_bytes, off_bytes);
    blob_close(blob);
    if (err < 0)
        return; /* it is already */
    disk->latent_count++;
    trace_add(sim->trace, "spoil", index, off_bytes, latent->len_bytes, 0);
    sim_member_latent_error(disk->member, off_bytes, latent->len_bytes);
}

static void
heal(struct disk *disk)
{
    struct blob *blob;
    uint8_t sector[SECTOR_BYTES];
    if (disk->latent_count == 0 || disk->gone)
        return;
    sim_member_fail_writes(disk->member, 0);
    sim_member_fail_flushes(disk->member, 0);
    check_eq(sim_member_blob(disk->member, &blob), 0);
    for (uint32_t i = 0; i < disk->latent_count; i++) {
        struct latent *latent = &disk->latents[i];
        for (uint64_t at = 0; at < latent->len_bytes; at += SECTOR_BYTES)
            if (blob_read(blob, sector, SECTOR_BYTES, latent->off_bytes + at) == -EIO)
                check_eq(blob_write(blob, latent->data + at, SECTOR_BYTES, latent->off_bytes + at),
                         0);
    }
    check_eq(blob_flush(blob), 0);
    blob_close(blob);
    disk->latent_count = 0;
}

void
sim_array_heal(struct sim_array *sim)
{
    for (uint32_t i = 0; i < sim->plan.member_count; i++)
        heal(&sim->disks[i]);
}
