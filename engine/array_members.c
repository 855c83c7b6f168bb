/* Members going out of use, and what follows from their states. */
#include <inttypes.h>

#include "engine/base/msg.h"

#include "engine/array_core.h"

static void
set_state(struct member *member, enum member_state state)
{
    check(member_state_arrow(member->state, state));
    member->state = state;
}

void
array_states_changed(struct array *array)
{
    array->generation++;
    array->roles_online = 0;
    array->healthy = true;
    for (uint32_t role = 0; role < array->geometry.member_count; role++) {
        uint32_t index = array->role_main[role];
        if (array->role_second[role] != NO_MEMBER)
            array->healthy = false;
        if (index == NO_MEMBER || !member_in_sync(&array->members[index]))
            array->healthy = false;
        else
            array->roles_online |= mask_of(role);
        if (index != NO_MEMBER && array->members[index].bad_count != 0)
            array->healthy = false;
    }
}

enum member_fault
array_fault_of(int err)
{
    if (err == -ENODEV)
        return FAULT_GONE;
    return err == -ENOSPC ? FAULT_NO_SPACE : FAULT_WRITE;
}

bool
array_enough_without(const struct array *array, const struct member *member)
{
    bool counts = member->has_role && !member->replacement && member_in_sync(member);
    return !counts || layout_enough(&array->geometry, array->roles_online & ~mask_of(member->role));
}

static const char *
fault_text(enum member_fault fault)
{
    static const char *const texts[] = {
        [FAULT_NONE] = "nothing",
        [FAULT_ASSEMBLY] = "not usable when assembled",
        [FAULT_GONE] = "the device is gone",
        [FAULT_WRITE] = "a write failed",
        [FAULT_FLUSH] = "a flush failed",
        [FAULT_NO_SPACE] = "the file system under it is full",
        [FAULT_ADMIN] = "taken out by hand",
    };
    return texts[fault];
}

bool
array_member_fail(struct array *array, struct member *member, enum member_fault fault)
{
    if (member->state == MS_FAULTY)
        return true;
    check(member_live(member));
    if (!array_enough_without(array, member)) {
        array_member_suspect(array, member);
        return false; /* md keeps the last good copy, too: errors then go to whoever asks */
    }
    set_state(member, MS_FAULTY);
    member->fault = fault;
    member->fault_wall_ns = clock_wall_ns(array->clock);
    check_lt(member->super.dev_number, SUPER_ROLES_MAX);
    array->meta.roles[member->super.dev_number] = SUPER_ROLE_FAULTY;
    array_states_changed(array);
    msg(MSG_ERROR, "%s: member %s (role %" PRIu32 ") is out of use: %s", array->name, member->path,
        member->role, fault_text(fault));
    meta_io_failed(&array->meta);
    return true;
}

void
array_member_suspect(struct array *array, struct member *member)
{
    if (member->state != MS_ONLINE)
        return;
    set_state(member, MS_SUSPECT);
    member->fault_wall_ns = clock_wall_ns(array->clock);
    msg(MSG_WARNING, "%s: member %s (role %" PRIu32 ") had an error and stays in use", array->name,
        member->path, member->role);
}

uint64_t
array_sync_bytes(const struct array *array)
{
    return array->geometry.level == RAID10 ? array->geometry.array_bytes
                                           : array->geometry.member_bytes;
}
