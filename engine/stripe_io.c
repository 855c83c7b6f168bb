/* Member requests of a stripe operation: which member serves a role, and what its answer means. */
#include "engine/array_core.h"

static struct member *
member_at(const struct array *array, uint32_t index)
{
    return index == NO_MEMBER ? NULL : &array->members[index];
}

/* Who can give [off, off+len) of a role: its member, else the replacement that has got so far. */
static struct member *
reader(const struct stripe_op *op, uint32_t role, uint64_t off_bytes, uint64_t len_bytes)
{
    const struct array *array = op->array;
    struct member *main = member_at(array, array->role_main[role]);
    if (main != NULL && !(op->bad_main & mask_of(role)) &&
        member_readable(main, off_bytes, len_bytes))
        return main;
    struct member *second = member_at(array, array->role_second[role]);
    if (second != NULL && !(op->bad_second & mask_of(role)) &&
        member_readable(second, off_bytes, len_bytes))
        return second;
    return NULL;
}

/* Copies lie at different member offsets (RAID 10). */
static void
mirror_masks(const struct stripe_op *op, uint64_t *readable)
{
    struct place places[MEMBERS_MAX];
    uint32_t count =
        layout_places(&op->array->geometry, op->band.array_off_bytes, places, MEMBERS_MAX);
    for (uint32_t i = 0; i < count; i++)
        if (reader(op, places[i].role, places[i].member_off_bytes, op->band.len_bytes) != NULL)
            *readable |= mask_of(places[i].role);
}

void
stripe_masks(const struct stripe_op *op, uint64_t *readable, uint64_t *writable)
{
    const struct array *array = op->array;
    if (LIKELY(array->healthy && (op->bad_main | op->bad_second) == 0)) {
        *readable = *writable = array->roles_all;
        return;
    }
    *readable = *writable = 0;
    for (uint32_t role = 0; role < array->geometry.member_count; role++) {
        const struct member *main = member_at(array, array->role_main[role]);
        const struct member *second = member_at(array, array->role_second[role]);
        if ((main != NULL && member_writable(main)) || (second != NULL && member_writable(second)))
            *writable |= mask_of(role);
    }
    if (!array->has_parity) {
        mirror_masks(op, readable);
        return;
    }
    struct place place; /* the same member offset on every role of the row */
    check_ge(layout_places(&array->geometry, op->band.array_off_bytes, &place, 1), 1);
    for (uint32_t role = 0; role < array->geometry.member_count; role++)
        if (reader(op, role, place.member_off_bytes, op->band.len_bytes) != NULL)
            *readable |= mask_of(role);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void
read_failed(struct stripe_op *op, const struct stripe_io *io, int err)
{
    struct member *member = io->member;
    member->read_errors++;
    op->failed_read = true;
    *(member->replacement ? &op->bad_second : &op->bad_main) |= mask_of(io->role);
    if (err == -ENODEV) {
        member->gone = true;
        if (member_writable(member))
            (void)array_member_fail(op->array, member, FAULT_GONE);
    } else {
        array_member_suspect(op->array, member); /* P6: a bad sector costs no member */
    }
}

static void
read_done(struct req *req)
{
    struct stripe_io *io = CONTAINER_OF(req, struct stripe_io, req);
    struct stripe_op *op = io->op;
    io->member->in_flight--;
    io->member->reads++;
    if (LIKELY(req->err == 0)) {
        io->member->read_bytes += req->len_bytes;
        io->member->gone = false;
    } else {
        read_failed(op, io, req->err);
    }
    if (--op->pending == 0)
        stripe_op_step(op);
}

static void
write_failed(struct stripe_op *op, struct member *member, uint16_t role, int err)
{
    if (op->kind == STRIPE_ZERO_ROWS && err == -EOPNOTSUPP) {
        op->write_err = -EOPNOTSUPP; /* not the member's fault: the request is written instead */
        op->write_failed |= mask_of(role);
        return;
    }
    member->write_errors++;
    member->gone = err == -ENODEV;
    if (member_writable(member))
        (void)array_member_fail(op->array, member, array_fault_of(err));
    if (member->replacement)
        return; /* the role's own member decides */
    op->write_failed |= mask_of(role);
    if (op->write_err == 0)
        op->write_err = err == -ENOSPC ? -ENOSPC : -EIO;
}

static void
write_done(struct req *req)
{
    struct stripe_io *io = CONTAINER_OF(req, struct stripe_io, req);
    struct stripe_op *op = io->op;
    struct member *member = io->member;
    member->in_flight--;
    member->writes++;
    if (LIKELY(req->err == 0)) {
        member->write_bytes += req->len_bytes;
        member->gone = false;
        if (!(req->flags & REQ_FUA))
            member->writes_done++;
        if (UNLIKELY(member->bad_count != 0) &&
            member_forget_bad(member, req->off_bytes - member->data_off_bytes, req->len_bytes))
            array_states_changed(op->array);
    } else {
        member->writes_done++; /* some of it may have landed: a flush concerns it */
        write_failed(op, member, io->role, req->err);
    }
    if (--op->pending == 0)
        stripe_op_step(op);
}

/* ---- questions ------------------------------------------------------------------------------ */

/* To io->member, which the caller has chosen. */
static void
submit(struct stripe_op *op, struct stripe_io *io, enum req_op what, const struct plan_io *where,
       const struct stripe_slot *slot, void (*done)(struct req *req))
{
    struct member *member = io->member;
    struct req *req = &io->req;
    io->op = op;
    io->role = where->role;
    req->op = what;
    req->flags = op->flags;
    req->off_bytes = member->data_off_bytes + where->member_off_bytes;
    req->len_bytes = op->kind == STRIPE_ZERO_ROWS ? op->rows.member_len_bytes : op->plan.len_bytes;
    req->iov = slot != NULL ? slot->iov : NULL;
    req->iov_count = slot != NULL ? slot->iov_count : 0;
    req->err = 0;
    req->done = done;
    req->dev_node = (struct list_node){0};
    op->pending++;
    member->in_flight++;
    dev_submit(member->dev, req);
}

bool
stripe_io_read(struct stripe_op *op)
{
    op->pending = 1; /* ours (I3) */
    for (uint32_t i = 0; i < op->plan.read_count; i++) {
        const struct plan_io *where = &op->plan.reads[i];
        const struct stripe_slot *slot = &op->slots[where->slot];
        struct member *member =
            reader(op, where->role, where->member_off_bytes, op->plan.len_bytes);
        if (member == NULL) { /* failed since it was planned */
            op->failed_read = true;
            continue;
        }
        member->read_end_bytes =
            member->data_off_bytes + where->member_off_bytes + op->plan.len_bytes;
        op->ios[i].member = member;
        submit(op, &op->ios[i], REQ_READ, where, slot, read_done);
    }
    return --op->pending == 0;
}

/* One write (or zero) to each member of the role. */
static void
write_role(struct stripe_op *op, uint32_t *next, const struct plan_io *where, enum req_op what,
           const struct stripe_slot *slot)
{
    struct array *array = op->array;
    const uint32_t index[] = {array->role_main[where->role], array->role_second[where->role]};
    bool submitted = false;
    for (uint32_t i = 0; i < ARRAY_LEN(index); i++) {
        struct member *member = member_at(array, index[i]);
        if (member == NULL || !member_writable(member))
            continue;
        struct stripe_io *io = &op->ios[(*next)++];
        io->member = member;
        submit(op, io, what, where, slot, write_done);
        submitted = true;
    }
    if (!submitted) /* failed since it was planned, or (zeroes) missing anyway */
        op->write_failed |= mask_of(where->role);
}

bool
stripe_io_write(struct stripe_op *op)
{
    uint32_t next = 0;
    op->pending = 1; /* ours (I3) */
    for (uint32_t i = 0; i < op->plan.write_count; i++)
        write_role(op, &next, &op->plan.writes[i], REQ_WRITE, &op->slots[op->plan.writes[i].slot]);
    return --op->pending == 0;
}

bool
stripe_io_zero_rows(struct stripe_op *op)
{
    uint32_t next = 0;
    op->pending = 1; /* ours (I3) */
    mask_for_each (role, op->rows.roles) {
        struct plan_io where = {.role = (uint16_t)role,
                                .member_off_bytes = op->rows.member_off_bytes};
        write_role(op, &next, &where, REQ_ZERO, NULL);
    }
    return --op->pending == 0;
}

/* ---- repair --------------------------------------------------------------------------------- */

/* A failure costs nothing: the sector was bad before, and the data is elsewhere. */
static void
repair_done(struct req *req)
{
    struct stripe_io *io = CONTAINER_OF(req, struct stripe_io, req);
    struct stripe_op *op = io->op;
    struct member *member = io->member;
    member->in_flight--;
    member->writes++;
    member->writes_done++;
    if (req->err == 0)
        member->repaired++;
    else
        member->write_errors++;
    if (--op->pending == 0)
        stripe_op_step(op);
}

bool
stripe_io_repair(struct stripe_op *op)
{
    const struct array *array = op->array;
    struct place places[MEMBERS_MAX];
    uint32_t next = 0, count = 0;
    /* Only under the lock, and only where the other copies are known to be right. */
    if (!op->locked || array->read_only || !op->input.parity_trusted)
        return true;
    op->pending = 1; /* ours (I3) */
    for (uint32_t k = 0; k < op->band.data_count; k++) {
        uint64_t off =
            k == 0 ? op->band.array_off_bytes : band_data_off(&array->geometry, &op->band, k);
        count = layout_places(&array->geometry, off, places, MEMBERS_MAX);
        for (uint32_t i = 0; i < count; i++) {
            struct member *member = member_at(array, array->role_main[places[i].role]);
            if (!(op->bad_main & mask_of(places[i].role)) || !member_in_sync(member))
                continue;
            const struct plan_io where = {.role = (uint16_t)places[i].role,
                                          .member_off_bytes = places[i].member_off_bytes};
            const struct stripe_slot *slot = &op->slots[PLAN_NEW(op->piece_role[k])];
            struct stripe_io *io = &op->ios[next++];
            io->member = member;
            submit(op, io, REQ_WRITE, &where, slot, repair_done);
        }
    }
    return --op->pending == 0;
}
