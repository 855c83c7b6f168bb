#include "tests/unit/array_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/assemble.h"

#define SUPER_OFF   4096u
#define BITMAP_OFF  8192u
#define BITMAP_UNIT KIB(16)
#define BBLOG_OFF   32768u

/* ---- a blob over memory ---------------------------------------------------------------------- */

struct mem_blob {
    struct blob blob;
    uint8_t *bytes;
};

static int
blob_read_memory(struct blob *blob, void *to, size_t len, uint64_t off)
{
    if (off + len > blob->size_bytes)
        return -EIO;
    memcpy(to, CONTAINER_OF(blob, struct mem_blob, blob)->bytes + off, len);
    return 0;
}

static const struct blob_ops mem_blob_ops = {.read = blob_read_memory};

/* ---- making members -------------------------------------------------------------------------- */

static void
write_member_metadata(struct rig *rig, uint32_t i)
{
    const struct rig_config *config = &rig->config;
    struct super super = {
        .minor = 2,
        .name = "host:rig",
        .created_s = 1,
        .level = (int32_t)config->level,
        .layout = config->layout,
        .raid_disks = config->member_count,
        .data_offset_sectors = rig->data_off_bytes / SECTOR_BYTES,
        .data_sectors = config->data_bytes / SECTOR_BYTES,
        .super_offset_sectors = SUPER_OFF / SECTOR_BYTES,
        .dev_number = i,
        .events = config->level == RAID0 ? 0 : 5,
        .resync_offset_sectors = config->dirty ? 0 : SUPER_INFINITY,
        .max_dev = 128,
    };
    if (config->level != RAID0)
        super.used_sectors = super.data_sectors;
    if (config->level != RAID1)
        super.chunk_sectors = (uint32_t)(config->chunk_bytes / SECTOR_BYTES);
    if (config->level == RAID0 && config->layout != 0)
        super.features |= SUPER_RAID0_LAYOUT;
    for (uint32_t k = 0; k < SUPER_ROLES_MAX; k++)
        super.roles[k] = k < config->member_count ? (uint16_t)k : SUPER_ROLE_SPARE;
    memset(super.array_uuid, 0xa5, 16);
    memset(super.device_uuid, (int)(0x10 + i), 16);
    if (i >= config->member_count) {
        super.features |= SUPER_REPLACEMENT | SUPER_RECOVERY;
        super.recovery_offset_sectors = config->replacement_frontier_bytes / SECTOR_BYTES;
    }
    if (config->replacement_frontier_bytes != 0)
        super.roles[config->member_count] = (uint16_t)config->replaced_role;
    if (config->bad_len_bytes != 0 && i == 0) {
        super.features |= SUPER_BAD_BLOCKS;
        super.bblog_offset_sectors = (BBLOG_OFF - SUPER_OFF) / SECTOR_BYTES;
        super.bblog_sectors = 8;
        memset(rig->memory[i] + BBLOG_OFF, 0xff, 4096);
        uint64_t entry = (rig->data_off_bytes + config->bad_off_bytes) / SECTOR_BYTES << 10 |
                         config->bad_len_bytes / SECTOR_BYTES;
        memcpy(rig->memory[i] + BBLOG_OFF, &entry, sizeof(entry));
    }
    if (config->bitmap) {
        super.features |= SUPER_BITMAP;
        super.bitmap_offset_sectors = (BITMAP_OFF - SUPER_OFF) / SECTOR_BYTES;
        struct bitmap_header header = {
            .version = 4,
            .events = super.events,
            .sync_sectors = super.used_sectors,
            .chunk_bytes = BITMAP_UNIT,
            .daemon_sleep_s = 5,
        };
        memcpy(header.array_uuid, super.array_uuid, 16);
        if (config->level == RAID10) {
            struct geometry geometry;
            uint64_t sectors[MEMBERS_MAX];
            for (uint32_t role = 0; role < MEMBERS_MAX; role++)
                sectors[role] = super.data_sectors;
            check_eq(geometry_of_super(&super, sectors, &geometry, NULL), 0);
            header.sync_sectors = geometry.array_bytes / SECTOR_BYTES;
        }
        bitmap_encode(&header, rig->memory[i] + BITMAP_OFF);
        if (config->dirty)
            memset(rig->memory[i] + BITMAP_OFF + BITMAP_HEADER_BYTES, 0xff, 2048);
    }
    super_encode(&super, 4096, rig->memory[i] + SUPER_OFF);
    if (config->area) {
        struct area area = {.generation = 1,
                            .events = super.events,
                            .area_bytes = rig->data_off_bytes - AREA_OFF_BYTES,
                            .has_super = true,
                            .consistency = "resync",
                            .policy = "writethrough"};
        memcpy(area.array_uuid, super.array_uuid, 16);
        memcpy(area.device_uuid, super.device_uuid, 16);
        memcpy(area.super_raw, rig->memory[i] + SUPER_OFF, SUPER_BYTES);
        for (uint32_t role = 0; role < config->member_count; role++)
            area.role_events[role] = super.events;
        area_encode(&area, rig->memory[i] + AREA_OFF_BYTES);
    }
}

void
array_rig_init(struct rig *rig, const struct rig_config *config)
{
    memset(rig, 0, sizeof(*rig));
    rig->config = *config;
    rig->deferred = true;
    clock_virtual_init(&rig->clock);
    rig->clock.wall_base_ns = 1700000000 * SECOND_NS;
    check_eq(loop_create(&rig->loop, &rig->clock.clock), 0);
    rng_seed(&rig->rng, config->seed);
    rig->data_off_bytes = config->area ? MIB(2) : KIB(64);
    rig->member_bytes = rig->data_off_bytes + config->data_bytes + KIB(64);
    rig->member_count = config->member_count + (config->replacement_frontier_bytes != 0);
    for (uint32_t i = 0; i < rig->member_count; i++) {
        rig->memory[i] = aligned_alloc(4096, rig->member_bytes);
        check(rig->memory[i] != NULL);
        memset(rig->memory[i], 0, rig->member_bytes);
        write_member_metadata(rig, i);
    }
}

void
array_rig_destroy(struct rig *rig)
{
    check(rig->array == NULL);
    for (uint32_t i = 0; i < rig->member_count; i++)
        free(rig->memory[i]);
    free(rig->model);
    loop_destroy(rig->loop);
}

/* ---- opening --------------------------------------------------------------------------------- */

int
array_rig_open(struct rig *rig, uint64_t missing)
{
    static struct probe probes[RIG_MEMBERS_MAX];
    const struct candidate *candidates[RIG_MEMBERS_MAX] = {0};
    uint32_t member_of[RIG_MEMBERS_MAX], count = 0;
    for (uint32_t i = 0; i < rig->member_count; i++) {
        if (missing & (UINT64_C(1) << i))
            continue;
        struct mem_blob blob = {.blob = {.ops = &mem_blob_ops,
                                         .size_bytes = rig->member_bytes,
                                         .logical_bytes = rig->config.logical_bytes},
                                .bytes = rig->memory[i]};
        char path[32];
        snprintf(path, sizeof(path), "mem/%" PRIu32, i);
        check_eq(probe_blob(&blob.blob, path, &probes[count], &rig->diag), 0);
        check(probes[count].candidate.has_super);
        member_of[count] = i;
        candidates[count] = &probes[count].candidate;
        count++;
    }
    static struct decision decision;
    int err = decide(candidates, count, NULL, &decision, &rig->diag);
    struct array_member_open members[RIG_MEMBERS_MAX] = {0};
    uint32_t opened = 0, freshest = 0;
    for (uint32_t k = 0; err == 0 && k < count; k++) {
        const struct decision_member *member = &decision.members[k];
        uint32_t i = member_of[member->candidate];
        if (member->class > MEMBER_SPARE)
            continue;
        rig->devs[i] = mem_dev_open(rig->loop, rig->memory[i], rig->member_bytes,
                                    rig->config.logical_bytes, &rig->rng);
        rig->devs[i]->deferred = rig->deferred;
        members[opened] = (struct array_member_open){
            .dev = &rig->devs[i]->dev,
            .probe = &probes[member->candidate],
            .class = member->class,
            .role = member->role,
        };
        snprintf(members[opened].path, sizeof(members[opened].path), "mem/%" PRIu32, i);
        if (member->candidate == decision.freshest)
            freshest = opened;
        opened++;
    }
    struct array_open how = {
        .loop = rig->loop,
        .members = members,
        .member_count = opened,
        .freshest = freshest,
        .read_only = rig->read_only,
        .no_background = rig->no_background,
        .accept_dirty_degraded = rig->accept_dirty_degraded,
        .request_max = rig->request_max,
        .scratch_bytes = rig->scratch_bytes,
    };
    if (err == 0)
        err = array_open(&rig->array, &how, &rig->diag);
    for (uint32_t k = 0; k < count; k++)
        probe_destroy(&probes[k]);
    if (err != 0) {
        for (uint32_t i = 0; i < opened; i++)
            dev_close(members[i].dev);
        memset(rig->devs, 0, sizeof(rig->devs));
        return err;
    }
    rig->size_bytes = dev_info(array_dev(rig->array)).size_bytes;
    if (rig->model == NULL)
        rig->model = calloc(1, rig->size_bytes);
    return 0;
}

static void
set_flag(void *ctx, int err)
{
    check_eq(err, 0);
    *(bool *)ctx = true;
}

void
array_rig_stop(struct rig *rig)
{
    bool stopped = false;
    array_stop(rig->array, set_flag, &stopped);
    check_eq(loop_run_until(rig->loop, &stopped), 0);
    rig->array = NULL;
    memset(rig->devs, 0, sizeof(rig->devs));
}

void
array_rig_abandon(struct rig *rig)
{
    array_abandon(rig->array);
    rig->array = NULL;
    memset(rig->devs, 0, sizeof(rig->devs));
}

/* ---- requests -------------------------------------------------------------------------------- */

struct waiting {
    struct req req;
    bool done;
};

static void
request_done(struct req *req)
{
    CONTAINER_OF(req, struct waiting, req)->done = true;
}

int
array_rig_request(struct rig *rig, enum req_op op, uint32_t flags, uint64_t off, uint64_t len,
                  uint8_t *memory)
{
    struct iovec iov = {.iov_base = memory, .iov_len = len};
    struct waiting waiting = {.req = {
                                  .op = op,
                                  .flags = flags,
                                  .off_bytes = off,
                                  .len_bytes = len,
                                  .iov = memory != NULL ? &iov : NULL,
                                  .iov_count = memory != NULL,
                                  .done = request_done,
                              }};
    dev_submit(array_dev(rig->array), &waiting.req);
    check_eq(loop_run_until(rig->loop, &waiting.done), 0);
    return waiting.req.err;
}

int
array_rig_write(struct rig *rig, uint64_t off, uint64_t len, uint32_t flags)
{
    rng_fill(&rig->rng, rig->model + off, len);
    return array_rig_request(rig, REQ_WRITE, flags, off, len, rig->model + off);
}

uint64_t
array_rig_mismatches(struct rig *rig, uint64_t off, uint64_t len)
{
    uint8_t *got = aligned_alloc(4096, round_up(len, 4096));
    check(got != NULL);
    memset(got, 0xee, len);
    uint64_t different = 0;
    if (array_rig_request(rig, REQ_READ, 0, off, len, got) != 0)
        different = UINT64_MAX;
    for (uint64_t i = 0; different != UINT64_MAX && i < len; i++)
        different += got[i] != rig->model[off + i];
    free(got);
    return different;
}

static bool
reads_back(struct rig *rig, uint64_t missing)
{
    int err = array_rig_open(rig, missing);
    if (err != 0) {
        fprintf(stderr, "without %" PRIx64 ": open: %s\n", missing, rig->diag.message);
        return false;
    }
    uint64_t bad = array_rig_mismatches(rig, 0, rig->size_bytes);
    array_rig_stop(rig);
    if (bad != 0)
        fprintf(stderr, "without %" PRIx64 ": %" PRIu64 " bytes differ\n", missing, bad);
    return bad == 0;
}

bool
array_rig_survives_all_losses(struct rig *rig, uint64_t missing)
{
    uint32_t n = rig->member_count;
    bool ok = true;
    struct geometry geometry;
    bool read_only = rig->read_only;
    rig->read_only = true;
    if (array_rig_open(rig, missing) != 0) {
        fprintf(stderr, "open: %s\n", rig->diag.message);
        return false;
    }
    geometry = *array_geometry(rig->array);
    array_rig_stop(rig);
    for (uint64_t lost = 0; lost < (UINT64_C(1) << n); lost++) {
        if (lost & missing)
            continue;
        uint64_t left = mask_below(n) & ~lost & ~missing;
        if (mask_count(lost) > 2 || !layout_enough(&geometry, left))
            continue;
        ok = reads_back(rig, lost | missing) && ok;
    }
    rig->read_only = read_only;
    return ok;
}

struct alarm {
    struct loop_timer timer;
    bool fired;
};

static void
alarm_fired(struct loop_timer *timer)
{
    CONTAINER_OF(timer, struct alarm, timer)->fired = true;
}

void
array_rig_run_us(struct rig *rig, uint64_t us)
{
    struct alarm alarm = {.timer.fired = alarm_fired};
    loop_timer_set(rig->loop, &alarm.timer, loop_now_ns(rig->loop) + us * 1000);
    check_eq(loop_run_until(rig->loop, &alarm.fired), 0);
}

void
array_rig_run_ms(struct rig *rig, uint64_t ms)
{
    array_rig_run_us(rig, ms * 1000);
}
