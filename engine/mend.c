/* THEORY OF OPERATION.  Two things are wrong with a member and can be put right from what the
 * others, or it itself, know:
 *
 *   created    its creation was cut off in the last step, but another member says that it was
 *              completed: say so here, too, so that it is never taken for remains again
 *   superblock the one in its place is gone (firmware, a partitioning tool), the copy in the sr5
 *              area is there: md, and whoever else looks, should see the array as it is
 *
 * A copy is as old as the last update of this member.  Beside members whose own superblocks say
 * more it goes back as it was.  When nobody has one in its place, md may have written after the
 * copies were made: then they go back marked dirty, as decide() took them. */
#include "engine/mend.h"

#include <fcntl.h>
#include <string.h>

#include "engine/base/msg.h"

static int
write_at(const char *path, const void *from, size_t bytes, uint64_t off_bytes, struct diag *diag)
{
    struct blob *blob = NULL;
    CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    int err = fd < 0 ? -errno : blob_fd_open(&blob, fd, path, diag);
    if (err == 0)
        err = blob_write(blob, from, bytes, off_bytes);
    if (err == 0)
        err = blob_flush(blob);
    blob_close(blob);
    if (err < 0)
        return diag_set(diag, DIAG_FAILED, "E_WRITE", err, "%s: cannot be written: %s", path,
                        strerror(-err));
    return 0;
}

static int
finish_creation(const struct found_member *member, struct diag *diag)
{
    uint8_t slot[AREA_SLOT_BYTES];
    struct area area = member->probe.candidate.area;
    area.generation = 1;
    area_encode(&area, slot);
    return write_at(member_spec_path(member->spec), slot, sizeof(slot),
                    AREA_OFF_BYTES + (1 - member->probe.area_slot) * AREA_SLOT_BYTES, diag);
}

static int
restore_super(const struct found_array *found, const struct found_member *member, struct diag *diag)
{
    const struct candidate *c = &member->probe.candidate;
    const char *path = member_spec_path(member->spec);
    uint8_t raw[SUPER_BYTES];
    bool alone = found->members[found->decision.freshest]->probe.candidate.super_from_backup;
    if (alone)
        (void)super_encode(&c->super, SECTOR_BYTES, raw);
    else
        memcpy(raw, c->area.super_raw, sizeof(raw));
    int err =
        write_at(path, raw, sizeof(raw), sectors_to_bytes(c->super.super_offset_sectors), diag);
    if (err == 0)
        msg(MSG_WARNING, "%s: the superblock of %s was gone and is written again from its copy",
            found->name, path);
    return err;
}

int
mend_members(const struct found_array *found, struct diag *diag)
{
    const struct decision *d = &found->decision;
    int err = 0;
    for (uint32_t i = 0; i < d->member_count && err == 0; i++) {
        const struct found_member *member = found->members[d->members[i].candidate];
        if (candidate_unfinished(&member->probe.candidate))
            err = finish_creation(member, diag);
        if (err == 0 && member->probe.candidate.super_from_backup &&
            member_class_used(d->members[i].class))
            err = restore_super(found, member, diag);
    }
    return err;
}
