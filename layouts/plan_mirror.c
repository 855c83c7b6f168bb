/* THEORY OF OPERATION
 *
 * Plans for bands that are one run of array bytes with one or more places: RAID 0, 1 and 10.  There
 * are no sums: any readable copy is the data, a write goes to every writable copy.  All I/O uses
 * the slots of the lowest role that has a copy (plan.h). */
#include "layouts/level.h"

struct copies {
    struct place places[MEMBERS_MAX];
    uint32_t count;
    uint64_t roles;
    uint32_t slot_role;
};

static void
copies_of(const struct geometry *geometry, const struct band *band, struct copies *out)
{
    out->count =
        layout_places(geometry, band->array_off_bytes, out->places, ARRAY_LEN(out->places));
    out->roles = 0;
    for (uint32_t i = 0; i < out->count; i++)
        out->roles |= mask_of(out->places[i].role);
    out->slot_role = mask_first(out->roles);
}

static uint64_t
offset_on(const struct copies *copies, uint32_t role)
{
    uint32_t i = 0;
    while (copies->places[i].role != role)
        i++;
    return copies->places[i].member_off_bytes;
}

uint32_t
data_role_mirror(const struct geometry *geometry, const struct band *band, uint32_t k)
{
    (void)k;
    struct copies copies;
    copies_of(geometry, band, &copies);
    return copies.slot_role;
}

/* One read of the lowest of `roles`, of `prefer` among them if there is one. */
static int
read_one(struct plan *plan, const struct copies *copies, uint64_t roles, uint64_t prefer,
         uint16_t slot)
{
    if (roles == 0)
        return -EIO;
    uint32_t role = mask_first((roles & prefer) != 0 ? roles & prefer : roles);
    plan_add_read(plan, role, slot, offset_on(copies, role));
    return 0;
}

static void
write_all(struct plan *plan, const struct copies *copies, uint64_t roles)
{
    mask_for_each (role, roles)
        plan_add_write(plan, (uint32_t)role, PLAN_NEW(copies->slot_role),
                       offset_on(copies, (uint32_t)role));
}

int
plan_read_mirror(const struct plan_input *input, struct plan *plan)
{
    struct copies copies;
    copies_of(input->geometry, &input->band, &copies);
    return read_one(plan, &copies, copies.roles & input->readable, input->prefer,
                    PLAN_NEW(copies.slot_role));
}

int
plan_write_mirror(const struct plan_input *input, struct plan *plan)
{
    struct copies copies;
    copies_of(input->geometry, &input->band, &copies);
    uint64_t targets = copies.roles & input->writable;
    if (targets == 0)
        return -EIO;
    write_all(plan, &copies, targets);
    if (!input->need_old)
        return 0;
    return read_one(plan, &copies, copies.roles & input->readable, input->prefer,
                    PLAN_OLD(copies.slot_role));
}

int
plan_sync_mirror(const struct plan_input *input, uint64_t targets, struct plan *plan)
{
    struct copies copies;
    copies_of(input->geometry, &input->band, &copies);
    targets &= copies.roles;
    if (targets == 0)
        return 0;
    if ((targets & ~input->writable) != 0)
        return -EIO;
    write_all(plan, &copies, targets);
    return read_one(plan, &copies, copies.roles & input->readable & ~targets, 0,
                    PLAN_NEW(copies.slot_role));
}
