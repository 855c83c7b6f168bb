/* From an assembly to the array's first state: what is refused, who serves which role, what is in
 * sync.  Nothing is written (P4). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/array_core.h"
#include "engine/assemble.h"

#define BITMAP_SPACE_MIN KIB(4) /* what every member that sr5 made has for it */

/* ---- refusals ------------------------------------------------------------------------------- */

static int
refuse_unsupported(const struct array_open *how, const struct super *super, struct diag *diag)
{
    if (super->features & SUPER_RESHAPE)
        return diag_set(diag, DIAG_REFUSED, "E_RESHAPE", -EINVAL,
                        "the array is in the middle of a reshape, which only md can finish");
    if (super->features & SUPER_JOURNAL)
        return diag_set(diag, DIAG_REFUSED, "E_JOURNAL", -EINVAL,
                        "the array has an md journal device, whose contents sr5 cannot replay");
    bool dirty = super->resync_offset_sectors != SUPER_INFINITY;
    if ((super->features & (SUPER_PPL | SUPER_MULTIPLE_PPLS)) && dirty)
        return diag_set(diag, DIAG_REFUSED, "E_PPL_DIRTY", -EINVAL,
                        "the array was not stopped cleanly and has an md partial parity log, "
                        "which sr5 cannot replay");
    for (uint32_t i = 0; i < how->member_count; i++)
        if ((super->features & SUPER_BITMAP) && how->members[i].probe != NULL &&
            how->members[i].probe->bitmap_verdict == BITMAP_UNSUPPORTED)
            return diag_set(diag, DIAG_REFUSED, "E_LLBITMAP", -EINVAL,
                            "%s has a kind of bitmap that sr5 cannot keep", how->members[i].path);
    return 0;
}

static int
refuse_not_enough(const struct array *array, struct diag *diag)
{
    char missing[MEMBERS_MAX * 4] = "";
    size_t used = 0;
    mask_for_each (role, array->roles_all & ~array->roles_online)
        used += (size_t)snprintf(missing + used, sizeof(missing) - used, "%s%" PRIu64,
                                 used == 0 ? "" : ", ", role);
    return diag_set(diag, DIAG_OFFLINE, "E_NOT_ENOUGH_MEMBERS", -ENXIO,
                    "%s %s cannot be served without role %s", level_name(array->geometry.level),
                    array->name, missing);
}

/* ---- members -------------------------------------------------------------------------------- */

static void
load_state(struct member *member)
{
    const struct super *super = &member->super;
    member->frontier_bytes = super->features & SUPER_RECOVERY
                                 ? sectors_to_bytes(super->recovery_offset_sectors)
                                 : UINT64_MAX;
    member->fault = FAULT_NONE;
    switch (member->class) {
    case MEMBER_ACTIVE:
        member->state = MS_ONLINE;
        break;
    case MEMBER_RECOVERING:
    case MEMBER_REPLACEMENT:
        member->state = MS_REBUILDING;
        break;
    case MEMBER_SPARE:
        member->state = MS_SPARE;
        break;
    case MEMBER_JOURNAL:
    case MEMBER_STALE:
    case MEMBER_FAULTY:
    case MEMBER_DIVERGED:
    case MEMBER_FOREIGN:
    case MEMBER_DUPLICATE:
        member->state = MS_FAULTY;
        member->fault = FAULT_ASSEMBLY;
        break;
    }
    member->replacement = member->class == MEMBER_REPLACEMENT;
    member->has_role = member_writable(member);
}

static void
load_member(struct member *member, const struct array_member_open *open, bool read_only)
{
    const struct probe *probe = open->probe;
    member->dev = open->dev;
    member->info = dev_info(open->dev);
    snprintf(member->path, sizeof(member->path), "%s", open->path);
    member->class = open->class;
    member->role = open->role;
    member->super = probe->candidate.super;
    member->has_area = probe->candidate.has_area;
    if (member->has_area)
        member->area = probe->candidate.area;
    member->area_slot = probe->area_slot;
    member->super_restored = probe->candidate.super_from_backup;
    member->super_off_bytes = sectors_to_bytes(member->super.super_offset_sectors);
    member->data_off_bytes = sectors_to_bytes(member->super.data_offset_sectors);
    if (member->super.features & SUPER_BITMAP)
        member->bitmap_off_bytes =
            member->super_off_bytes +
            (uint64_t)((int64_t)member->super.bitmap_offset_sectors * SECTOR_BYTES);
    memcpy(member->bad, probe->bad, probe->bad_count * sizeof(member->bad[0]));
    member->bad_count = probe->bad_count;
    member->writes_done = !read_only; /* of a killed predecessor, perhaps still in its cache */
    load_state(member);
}

static int
place_member(struct array *array, struct member *member, struct diag *diag)
{
    if (!member->has_role)
        return 0;
    check_lt(member->role, array->geometry.member_count);
    uint32_t *place =
        member->replacement ? &array->role_second[member->role] : &array->role_main[member->role];
    if (*place != NO_MEMBER)
        return diag_set(diag, DIAG_REFUSED, "E_GEOMETRY", -EINVAL,
                        "%s and %s both claim role %" PRIu32, array->members[*place].path,
                        member->path, member->role);
    *place = member->index;
    uint64_t used = array->geometry.role_bytes[member->role];
    if (used > member->info.size_bytes || member->data_off_bytes > member->info.size_bytes - used)
        return diag_set(diag, DIAG_REFUSED, "E_MEMBER_SHORT", -EINVAL,
                        "%s has %" PRIu64 " bytes, but its data reaches to %" PRIu64, member->path,
                        member->info.size_bytes, member->data_off_bytes + used);
    return 0;
}

static int
load_members(struct array *array, const struct array_open *how, struct diag *diag)
{
    const struct super *freshest = &how->members[how->freshest].probe->candidate.super;
    uint64_t role_data_sectors[MEMBERS_MAX];
    for (uint32_t role = 0; role < MEMBERS_MAX; role++)
        role_data_sectors[role] = freshest->data_sectors;
    array->member_count = how->member_count;
    array->members = calloc(how->member_count, sizeof(*array->members));
    if (array->members == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < how->member_count; i++) {
        struct member *member = &array->members[i];
        member->index = i;
        load_member(member, &how->members[i], how->read_only);
        if (member->has_role && !member->replacement && member->role < MEMBERS_MAX)
            role_data_sectors[member->role] = member->super.data_sectors;
    }
    int err = geometry_of_super(freshest, role_data_sectors, &array->geometry, diag);
    if (err != 0)
        return err;
    array->roles_all = mask_below(array->geometry.member_count);
    for (uint32_t role = 0; role < MEMBERS_MAX; role++)
        array->role_main[role] = array->role_second[role] = NO_MEMBER;
    for (uint32_t i = 0; i < array->member_count && err == 0; i++)
        err = place_member(array, &array->members[i], diag);
    return err;
}

/* Limits that are the strictest of all members'. */
static void
load_limits(struct array *array)
{
    array->block_bytes = SECTOR_BYTES;
    array->mem_align = 1;
    array->can_zero = true;
    for (uint32_t i = 0; i < array->member_count; i++) {
        const struct member *member = &array->members[i];
        if (!member->has_role)
            continue;
        array->block_bytes = MAX(array->block_bytes, member->info.logical_bytes);
        array->mem_align = MAX(array->mem_align, member->info.mem_align);
        array->can_zero = array->can_zero && member->info.can_zero;
    }
    array->has_parity = array->geometry.parity_count != 0;
    array->redundant = array->geometry.level != RAID0;
    array->size_bytes = round_down(array->geometry.array_bytes, BLOCK_BYTES);
}

/* ---- metadata ------------------------------------------------------------------------------- */

/* The bitmap that counts: the newest of a member in sync. */
static const struct probe *
find_bitmap(const struct array *array, const struct array_open *how)
{
    const struct probe *best = NULL;
    for (uint32_t i = 0; i < how->member_count; i++) {
        const struct member *member = &array->members[i];
        const struct probe *probe = how->members[i].probe;
        if (!member_in_sync(member) || !(member->super.features & SUPER_BITMAP) ||
            probe->bitmap_verdict != BITMAP_OK ||
            memcmp(probe->bitmap.array_uuid, array->uuid, sizeof(array->uuid)) != 0 ||
            probe->bitmap.sync_sectors < array_sync_bytes(array) / SECTOR_BYTES)
            continue;
        if (best == NULL || probe->bitmap.events > best->bitmap.events)
            best = probe;
    }
    return best;
}

/* Nothing is where the bitmaps of an array with sr5's areas should be: the fronts of its members
 * were zeroed, and what is not known counts as set. */
static bool
bitmaps_gone(const struct array *array, const struct array_open *how)
{
    for (uint32_t i = 0; i < array->member_count; i++) {
        const struct member *member = &array->members[i];
        if (member->has_role && (!(member->super.features & SUPER_BITMAP) || !member->has_area ||
                                 member->super.bitmap_offset_sectors < 0 ||
                                 member->bitmap_off_bytes + BITMAP_SPACE_MIN > AREA_OFF_BYTES ||
                                 how->members[i].probe->bitmap_verdict != BITMAP_NONE))
            return false;
    }
    return array->redundant;
}

static int
make_bitmap(const struct array *array, const struct super *super, struct probe **out)
{
    uint64_t bytes = array_sync_bytes(array);
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return -ENOMEM;
    (*out)->bitmap = (struct bitmap_header){
        .version = 4,
        .events = super->events,
        .events_cleared = super->events,
        .sync_sectors = bytes / SECTOR_BYTES,
        .chunk_bytes = bitmap_choose_chunk(bytes, BITMAP_SPACE_MIN),
        .daemon_sleep_s = BITMAP_SLEEP_S,
    };
    memcpy((*out)->bitmap.array_uuid, array->uuid, sizeof(array->uuid));
    return 0;
}

static void
find_unsynced(struct array *array, const struct super *super, bool stale)
{
    struct intent *intent = &array->intent;
    if (!array->redundant || super->resync_offset_sectors == SUPER_INFINITY)
        return;
    uint64_t from = MIN(super->resync_offset_sectors, UINT64_MAX / SECTOR_BYTES) * SECTOR_BYTES;
    for (uint64_t granule = from >> intent->granule_shift; granule < intent->granule_count;
         granule++)
        if (!intent->on_disk || stale || intent_bit(intent, granule))
            intent_mark_unsynced(intent, granule);
}

static int
load_intent(struct array *array, const struct array_open *how)
{
    const struct super *super = &array->members[how->freshest].super;
    const struct probe *bitmap = find_bitmap(array, how);
    bool stale = bitmap != NULL && bitmap->bitmap.events < super->events;
    CLEANUP_FREE struct probe *made = NULL;
    if (bitmap == NULL && bitmaps_gone(array, how)) {
        if (make_bitmap(array, super, &made) < 0)
            return -ENOMEM;
        bitmap = made;
        stale = true;
    }
    for (uint32_t i = 0; i < array->member_count; i++) {
        struct member *member = &array->members[i];
        member->has_bitmap = bitmap != NULL && member->has_role &&
                             (member->super.features & SUPER_BITMAP) &&
                             member->bitmap_off_bytes % array->block_bytes == 0;
    }
    int err = intent_init(&array->intent, array, bitmap, stale);
    for (uint32_t i = 0; i < array->member_count && err == 0 && bitmap != NULL; i++) {
        const struct probe *other = how->members[i].probe;
        if (member_in_sync(&array->members[i]) && other->bitmap_verdict == BITMAP_OK &&
            other->bitmap.chunk_bytes == bitmap->bitmap.chunk_bytes)
            intent_add_bits(&array->intent, other); /* one that had failed may know less */
    }
    if (err == 0)
        find_unsynced(array, super, stale);
    return err;
}

/* Roles of members that are not here go from the table with the next update, as md does it; and
 * they must be left behind by 2 events (M2). */
static void
drop_absent(struct array *array)
{
    struct meta_io *meta = &array->meta;
    bool absent = false;
    for (uint32_t number = 0; number < meta->max_dev; number++) {
        bool present = false;
        for (uint32_t i = 0; i < array->member_count; i++)
            present |=
                member_live(&array->members[i]) && array->members[i].super.dev_number == number;
        if (present || meta->roles[number] >= SUPER_ROLE_JOURNAL)
            continue;
        meta->roles[number] = SUPER_ROLE_SPARE;
        absent = true;
    }
    /* P1, I11: what it missed, or lost with its cache, is not acknowledged before that is recorded:
     * by a flush neither. */
    if (absent && !array->read_only && array->redundant)
        meta->failures_now++;
}

int
array_load(struct array *array, const struct array_open *how, struct diag *diag)
{
    const struct super *super = &how->members[how->freshest].probe->candidate.super;
    memcpy(array->uuid, super->array_uuid, sizeof(array->uuid));
    snprintf(array->name, sizeof(array->name), "%s", super_short_name(super));
    int err = refuse_unsupported(how, super, diag);
    if (err == 0)
        err = load_members(array, how, diag);
    if (err != 0)
        return err;
    load_limits(array);
    array_states_changed(array);
    if (!layout_enough(&array->geometry, array->roles_online))
        return refuse_not_enough(array, diag);
    err = load_intent(array, how);
    if (err == 0)
        err = meta_io_init(&array->meta, array, super);
    if (err != 0)
        return err;
    drop_absent(array);
    for (uint32_t i = 0; i < array->member_count; i++) /* M6 */
        array->meta.catch_up |= member_live(&array->members[i]) &&
                                array->members[i].super.events < super->events &&
                                array->meta.events == super->events;
    if (array->has_parity && array_degraded(array) && array->intent.need_sync_count != 0 &&
        !how->accept_dirty_degraded) {
        diag_fix(diag, "find the missing member: with all members present the array starts");
        return diag_set(diag, DIAG_REFUSED, "E_DIRTY_DEGRADED", -EIO,
                        "%s was not stopped cleanly and lacks a member: what is computed for it "
                        "from parity may be wrong (the write hole)",
                        array->name);
    }
    return 0;
}
