/* THEORY OF OPERATION.  A scan looks at every path without locks and writes nothing.  What it found
 * may change before it is used, so assemble() opens (and thereby locks) every member first, then
 * looks at the superblocks once more: if one differs from what was decided on, nothing is started.
 * Only when nothing can be refused any more, members are mended (P4). */
#include "engine/assemble.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/mend.h"

#define ASSEMBLE_MAX (2 * MEMBERS_MAX)

/* ---- scan: what is there -------------------------------------------------------------------- */

struct identity {
    dev_t dev;
    ino_t ino;
};

static void
look_at(struct found_member *member, struct identity *identity)
{
    const char *path = member_spec_path(member->spec);
    struct blob *blob = NULL;
    struct stat status;
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    member->err = fd < 0 || fstat(fd, &status) != 0 ? -errno : 0;
    if (member->err < 0) {
        diag_set(&member->diag, DIAG_FAILED, "E_OPEN", member->err, "%s: cannot be opened: %s",
                 path, strerror(-member->err));
        return;
    }
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
        member->err = diag_set(&member->diag, DIAG_FAILED, "E_OPEN", -EINVAL,
                               "%s: neither a file nor a block device", path);
        return;
    }
    bool block = S_ISBLK(status.st_mode);
    *identity =
        (struct identity){block ? 0 : status.st_dev, block ? status.st_rdev : status.st_ino};
    member->err = blob_fd_open(&blob, fd, path, &member->diag);
    if (member->err == 0)
        member->err = probe_blob(blob, path, &member->probe, &member->diag);
    blob_close(blob);
}

/* One file by two names is one member. */
static bool
seen_before(const struct identity *identities, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (identities[i].ino == identities[count].ino &&
            identities[i].dev == identities[count].dev)
            return true;
    return false;
}

static int
look_at_all(struct scan *scan, const char *const *specs, uint32_t count)
{
    CLEANUP_FREE struct identity *identities = calloc(count + 1, sizeof(*identities));
    scan->members = calloc(count + 1, sizeof(*scan->members));
    if (identities == NULL || scan->members == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = scan->member_count;
        struct found_member *member = &scan->members[at];
        memset(member, 0, sizeof(*member));
        snprintf(member->spec, sizeof(member->spec), "%s", specs[i]);
        look_at(member, &identities[at]);
        if (member->err == 0 && seen_before(identities, at))
            probe_destroy(&member->probe);
        else
            scan->member_count++;
        if (member->err < 0) /* it has no identity to compare with */
            identities[at] = (struct identity){0, 0};
    }
    return 0;
}

/* ---- scan: what it makes -------------------------------------------------------------------- */

static struct found_array *
array_of(struct scan *scan, const uint8_t uuid[16])
{
    for (uint32_t i = 0; i < scan->array_count; i++)
        if (memcmp(scan->arrays[i].uuid, uuid, 16) == 0)
            return &scan->arrays[i];
    struct found_array *array = &scan->arrays[scan->array_count];
    array->members = calloc(scan->member_count, sizeof(struct found_member *));
    if (array->members == NULL)
        return NULL;
    scan->array_count++;
    memcpy(array->uuid, uuid, 16);
    return array;
}

static int
group(struct scan *scan)
{
    scan->arrays = calloc(scan->member_count + 1, sizeof(*scan->arrays));
    if (scan->arrays == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < scan->member_count; i++) {
        struct found_member *member = &scan->members[i];
        if (member->err < 0 || !member->probe.candidate.has_super)
            continue;
        struct found_array *array = array_of(scan, member->probe.candidate.super.array_uuid);
        if (array == NULL)
            return -ENOMEM;
        array->members[array->member_count++] = member;
        if (array->member_count == 1)
            snprintf(array->name, sizeof(array->name), "%s",
                     super_short_name(&member->probe.candidate.super));
    }
    return 0;
}

/* Without feature RAID0_LAYOUT nobody knows which of two maps a multi-zone RAID 0 was written with;
 * where they agree it does not matter (research/md.md 2.1). */
static int
check_raid0_zones(const struct geometry *geometry, struct diag *diag)
{
    for (uint32_t z = 1; z < geometry->zone_count; z++)
        if (geometry->zones[z].chunk_first % geometry->zones[z].width != 0)
            return diag_set(diag, DIAG_REFUSED, "E_LAYOUT_UNKNOWN", -EINVAL,
                            "the members are unequal and the superblock does not say by which of "
                            "md's two layouts; mdadm --assemble --update=layout-original or "
                            "layout-alternate records it");
    return 0;
}

int
geometry_of_super(const struct super *super, const uint64_t role_data_sectors[MEMBERS_MAX],
                  struct geometry *geometry, struct diag *diag)
{
    bool layout_known = super->level != 0 || (super->features & SUPER_RAID0_LAYOUT);
    *geometry = (struct geometry){
        .level = (enum raid_level)super->level,
        .layout = layout_known ? super->layout : RAID0_ORIGINAL,
        .member_count = super->raid_disks,
        .chunk_bytes = sectors_to_bytes(super->chunk_sectors),
        .member_bytes = sectors_to_bytes(super->used_sectors),
    };
    for (uint32_t role = 0; role < MEMBERS_MAX; role++)
        geometry->role_bytes[role] =
            super->level == 0 ? sectors_to_bytes(role_data_sectors[role]) : geometry->member_bytes;
    int err = geometry_init(geometry, diag);
    if (err == 0 && !layout_known)
        err = check_raid0_zones(geometry, diag);
    return err;
}

static int
find_geometry(struct found_array *array)
{
    const struct decision *d = &array->decision;
    const struct super *freshest = &array->members[d->freshest]->probe.candidate.super;
    uint64_t role_data_sectors[MEMBERS_MAX];
    for (uint32_t role = 0; role < MEMBERS_MAX; role++)
        role_data_sectors[role] = freshest->data_sectors; /* a guess where one is missing */
    for (uint32_t i = 0; i < d->member_count; i++)
        if (d->members[i].class == MEMBER_ACTIVE)
            role_data_sectors[d->members[i].role] =
                array->members[i]->probe.candidate.super.data_sectors;
    return geometry_of_super(freshest, role_data_sectors, &array->geometry, &array->diag);
}

static int
judge(struct found_array *array, const char *keep)
{
    CLEANUP_FREE const struct candidate **candidates =
        calloc(array->member_count, sizeof(const struct candidate *));
    if (candidates == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < array->member_count; i++)
        candidates[i] = &array->members[i]->probe.candidate;
    array->err = decide(candidates, array->member_count, keep, &array->decision, &array->diag);
    if (array->err == 0)
        array->err = find_geometry(array);
    if (array->err < 0)
        return 0;
    const struct decision *d = &array->decision;
    snprintf(array->name, sizeof(array->name), "%s",
             super_short_name(&candidates[d->freshest]->super));
    array->enough = layout_enough(&array->geometry, d->present_roles);
    array->complete = d->complete;
    return 0;
}

int
scan_specs(struct scan *scan, const char *const *specs, uint32_t count, const char *keep)
{
    memset(scan, 0, sizeof(*scan));
    int err = look_at_all(scan, specs, count);
    if (err == 0)
        err = group(scan);
    for (uint32_t i = 0; i < scan->array_count && err == 0; i++)
        err = judge(&scan->arrays[i], keep);
    if (err < 0)
        scan_destroy(scan);
    return err;
}

void
scan_destroy(struct scan *scan)
{
    for (uint32_t i = 0; i < scan->member_count; i++)
        probe_destroy(&scan->members[i].probe);
    for (uint32_t i = 0; i < scan->array_count; i++)
        free(scan->arrays[i].members);
    free(scan->members);
    free(scan->arrays);
    memset(scan, 0, sizeof(*scan));
}

/* ---- assemble ------------------------------------------------------------------------------- */

static int
check_unchanged(const struct found_member *member, struct diag *diag)
{
    const struct candidate *was = &member->probe.candidate;
    const char *path = member_spec_path(member->spec);
    uint8_t raw[SUPER_BYTES];
    struct blob *blob = NULL;
    if (was->super_from_backup)
        return 0;
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int err = fd < 0 ? -errno : blob_fd_open(&blob, fd, path, diag);
    if (err == 0)
        err = blob_read(blob, raw, sizeof(raw), sectors_to_bytes(was->super.super_offset_sectors));
    blob_close(blob);
    if (err < 0)
        return diag_set(diag, DIAG_FAILED, "E_READ", err, "%s: cannot be read: %s", path,
                        strerror(-err));
    if (memcmp(raw, was->super.raw, sizeof(raw)) != 0)
        return diag_set(diag, DIAG_BUSY, "E_CHANGED", -EAGAIN,
                        "%s: somebody has written its superblock since it was looked at", path);
    return 0;
}

static int
open_members(const struct found_array *found, const struct assemble_options *options,
             struct array_open *how, struct array_member_open *members, struct diag *diag)
{
    const struct decision *d = &found->decision;
    for (uint32_t i = 0; i < d->member_count; i++) {
        const struct found_member *from = found->members[d->members[i].candidate];
        struct array_member_open *to = &members[how->member_count];
        struct member_open open = {.spec = from->spec, .read_only = options->read_only};
        if (!member_class_used(d->members[i].class))
            continue;
        *to = (struct array_member_open){
            .probe = &from->probe, .class = d->members[i].class, .role = d->members[i].role};
        int err = member_dev_open(&to->dev, options->io, &open, diag);
        if (err < 0)
            return err;
        snprintf(to->path, sizeof(to->path), "%.255s", member_spec_path(from->spec));
        if (i == d->freshest)
            how->freshest = how->member_count;
        how->member_count++;
        err = check_unchanged(from, diag);
        if (err < 0)
            return err;
    }
    return 0;
}

int
assemble(struct array **out, const struct found_array *found,
         const struct assemble_options *options, struct diag *diag)
{
    if (found->err < 0) {
        if (diag != NULL)
            *diag = found->diag;
        return found->err;
    }
    CLEANUP_FREE struct array_member_open *members = calloc(ASSEMBLE_MAX, sizeof(*members));
    struct array_open how = {.loop = options->loop,
                             .members = members,
                             .read_only = options->read_only,
                             .scratch_bytes = options->scratch_bytes};
    if (members == NULL)
        return diag_set(diag, DIAG_FAILED, "E_MEMORY", -ENOMEM, "not enough memory");
    int err = open_members(found, options, &how, members, diag);
    if (err == 0)
        err = array_open(out, &how, diag);
    if (err < 0) {
        for (uint32_t i = 0; i < how.member_count; i++)
            dev_close(members[i].dev);
        return err;
    }
    err = options->read_only ? 0 : mend_members(found, diag);
    if (err < 0)
        array_abandon(*out);
    return err;
}
