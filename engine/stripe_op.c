/* THEORY OF OPERATION
 *
 * One machine serves every level and every situation.  The plan (layouts/plan.h) says which members
 * to read, what to add up and which members to write; the machine carries it out in this order:
 *
 *      LOCK      one operation per stripe at a time (I4)                R* W Z S
 *      PLAN      pure: masks of roles for exactly this band -> plan     R  W   S
 *      SCRATCH   memory for what is not the client's                    R* W   S
 *      ACTIVATE  "array active" is durable on the members                  W Z
 *      INTENT    the bitmap bits are durable (I1)                          W Z
 *      READ      old contents, or the client's data                     R  W   S
 *      COMPUTE   merge ragged client data, sums; copy out               R  W   S
 *      REPAIR    what could not be read is written again (P6)           R*
 *      WRITE     data and redundancy, on every member of each role         W Z S
 *      RECORD    who missed it is durable on the survivors (I11)           W Z S
 *      JUDGE     are the bytes computable from the survivors?              W Z S
 *      FINISH    give back lock, scratch, intent; done()                R  W Z S
 *
 *      R read, W write, Z zero rows, S sync; R* only when something has to be computed
 *
 * A member error is not a request error.  When a member cannot be read its role is masked out for
 * this operation; when a member fails, the generation of member states moves on; in both cases the
 * operation goes back to PLAN, as long as it has written nothing.  There is no other error path.
 *
 * Invariants
 *   I1  no member write before ACTIVATE and INTENT have passed.
 *   I2  done() once, last, and the op is not touched afterwards.
 *   I3  pending = children in flight, + 1 while submitting.
 *   I4  the lock is held from LOCK to FINISH; a plain read needs none: it touches one copy of bytes
 *       that a concurrent writer may change anyway.
 *   S1  nobody waits for a lock while holding scratch: the holder of the lock may wait for scratch.
 *   I9  a plan depends on geometry, masks, trust and range only.
 *   I11 a write that a member missed is not acknowledged before RECORD.
 *
 * Deliberately not here: retries, time-outs, ordering between clients' overlapping reads. */
#include "engine/stripe_op.h"

#include "engine/array_core.h"

enum op_stage {
    OP_LOCK,
    OP_PLAN,
    OP_SCRATCH,
    OP_ACTIVATE,
    OP_INTENT,
    OP_READ,
    OP_COMPUTE,
    OP_REPAIR,
    OP_WRITE,
    OP_RECORD,
    OP_JUDGE,
    OP_FINISH,
};

size_t
stripe_op_bytes(uint32_t member_count)
{
    return sizeof(struct stripe_op) + member_count * sizeof(struct stripe_io);
}

static bool
changes_members(const struct stripe_op *op)
{
    return op->kind == STRIPE_WRITE || op->kind == STRIPE_ZERO_ROWS;
}

/* ---- waiting ------------------------------------------------------------------------------ */

static void
lock_granted(struct range_lock *lock)
{
    stripe_op_step(CONTAINER_OF(lock, struct stripe_op, lock));
}

static void
meta_done(struct meta_waiter *waiter, int err)
{
    struct stripe_op *op = CONTAINER_OF(waiter, struct stripe_op, meta);
    if (err != 0) {
        op->err = err;
        op->stage = OP_FINISH;
    }
    stripe_op_step(op);
}

static void
intent_done(struct intent_waiter *waiter, int err)
{
    struct stripe_op *op = CONTAINER_OF(waiter, struct stripe_op, intent);
    if (err != 0) {
        op->err = err;
        op->stage = OP_FINISH;
    }
    stripe_op_step(op);
}

/* ---- stages -------------------------------------------------------------------------------- */

static bool
lock(struct stripe_op *op)
{
    if (op->locked)
        return true;
    op->locked = true;
    return range_lock_acquire(&op->array->locks, &op->lock, op->sync_off_bytes, op->sync_len_bytes,
                              lock_granted);
}

/* Mirrors whose copies agree: read where the head is, or where the queue is shortest. */
static uint64_t
preferred_copy(const struct stripe_op *op, uint64_t readable)
{
    const struct array *array = op->array;
    struct place places[MEMBERS_MAX];
    uint32_t count = layout_places(&array->geometry, op->band.array_off_bytes, places, MEMBERS_MAX);
    uint64_t best = 0;
    uint32_t best_load = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = array->role_main[places[i].role];
        if (index == NO_MEMBER || !(readable & mask_of(places[i].role)))
            continue;
        const struct member *member = &array->members[index];
        uint32_t load = 2 * member->in_flight + 1;
        if (member->super.devflags & 1) /* write-mostly: only when nobody else can */
            load += UINT16_MAX;
        if (member->read_end_bytes == member->data_off_bytes + places[i].member_off_bytes)
            load -= 1;
        if (load < best_load) {
            best_load = load;
            best = mask_of(places[i].role);
        }
    }
    return best;
}

static void
fill_input(struct stripe_op *op)
{
    struct array *array = op->array;
    struct plan_input *input = &op->input;
    input->geometry = &array->geometry;
    input->band = op->band;
    stripe_masks(op, &input->readable, &input->writable);
    input->need_old = op->ragged && op->kind == STRIPE_WRITE;
    input->prefer = 0;
    input->parity_trusted = true;
    if (!array->redundant)
        return;
    input->parity_trusted = intent_in_sync(&array->intent, op->sync_off_bytes, op->sync_len_bytes);
    /* In a region not in sync every read comes from the same copy: the lowest (md.md 2.2). */
    if (op->kind == STRIPE_READ && !array->has_parity && input->parity_trusted)
        input->prefer = preferred_copy(op, input->readable);
}

/* Resync: the parities of the row, or every copy but the one that is read. */
static uint64_t
sync_targets(const struct stripe_op *op)
{
    const struct plan_input *input = &op->input;
    uint64_t targets = 0;
    if (op->array->has_parity) {
        struct row_roles roles;
        row_roles(input->geometry, input->band.row, &roles);
        targets = mask_of((uint32_t)roles.p);
        if (roles.q >= 0)
            targets |= mask_of((uint32_t)roles.q);
        return targets;
    }
    struct place places[MEMBERS_MAX];
    uint32_t count =
        layout_places(input->geometry, input->band.array_off_bytes, places, MEMBERS_MAX);
    for (uint32_t i = 0; i < count; i++)
        targets |= mask_of(places[i].role) & input->writable;
    uint64_t sources = targets & input->readable;
    return sources == 0 ? targets : targets & ~mask_of(mask_first(sources));
}

static int
make_plan(struct stripe_op *op)
{
    op->failed_read = false;
    op->generation = op->array->generation;
    if (op->kind == STRIPE_ZERO_ROWS)
        return 0;
    fill_input(op);
    if (op->kind == STRIPE_READ)
        return plan_read(&op->input, &op->plan);
    if (op->kind == STRIPE_WRITE)
        return plan_write(&op->input, &op->plan);
    return plan_sync(&op->input, sync_targets(op), &op->plan);
}

/* A read that has to compute or repair needs the stripe to itself; scratch is not held yet (S1). */
static bool
needs_lock_now(const struct stripe_op *op)
{
    return !op->locked && op->array->redundant && (op->plan.sum_count != 0 || op->bad_main != 0);
}

static bool
activate(struct stripe_op *op)
{
    struct array *array = op->array;
    if (!op->active_write) {
        op->active_write = true; /* from now on the array is not idle */
        array->writes_in_flight++;
        array->writes_begun++;
    }
    return meta_io_activate(&array->meta, &op->meta, meta_done);
}

static bool
mark_intent(struct stripe_op *op)
{
    if (op->intent_held || !op->array->intent.on_disk)
        return true;
    op->intent_held = true;
    return intent_begin(&op->array->intent, op->sync_off_bytes, op->sync_len_bytes, &op->intent,
                        intent_done);
}

/* After reads: must it be planned again?  Nothing has been written yet. */
static bool
plan_again(struct stripe_op *op)
{
    if (!op->failed_read && (op->kind == STRIPE_READ || op->generation == op->array->generation))
        return false;
    stripe_memory_put(op);
    op->stage = op->locked ? OP_PLAN : OP_LOCK;
    return true;
}

/* Did enough members take it that every byte is computable without those that did not? */
static int
judge(struct stripe_op *op)
{
    if (LIKELY(op->write_failed == 0 && op->generation == op->array->generation))
        return 0;
    if (op->write_err == -EOPNOTSUPP)
        return op->write_err; /* zeroed here, not there: whoever asked writes it all */
    int failed = op->write_err != 0 ? op->write_err : -EIO;
    if (op->kind == STRIPE_SYNC)
        return op->write_failed != 0 ? failed : 0;
    if (op->kind == STRIPE_ZERO_ROWS) {
        uint64_t good = op->array->roles_online & ~op->write_failed;
        return layout_enough(&op->array->geometry, good) ? 0 : failed;
    }
    for (uint32_t i = 0; i < op->plan.write_count; i++) { /* what was written is readable again */
        op->bad_main &= ~mask_of(op->plan.writes[i].role);
        op->bad_second &= ~mask_of(op->plan.writes[i].role);
    }
    uint64_t writable;
    stripe_masks(op, &op->input.readable, &writable);
    op->input.readable &= ~op->write_failed;
    return plan_read(&op->input, &op->plan) == 0 ? 0 : failed;
}

/* A write that failed half-way leaves a parity that agrees with nothing: it may not stand in for a
 * member after the next start, and nothing may call the array clean (B3, P2). */
static void
distrust(const struct stripe_op *op)
{
    struct intent *intent = &op->array->intent;
    uint64_t last = (op->sync_off_bytes + op->sync_len_bytes - 1) >> intent->granule_shift;
    for (uint64_t i = op->sync_off_bytes >> intent->granule_shift; i <= last; i++)
        intent_mark_unsynced(intent, i);
}

static void
finish(struct stripe_op *op)
{
    struct array *array = op->array;
    if (UNLIKELY(op->err == -EIO && op->write_failed != 0) && array->has_parity)
        distrust(op);
    stripe_memory_put(op);
    if (op->intent_held)
        intent_end(&array->intent, op->sync_off_bytes, op->sync_len_bytes);
    if (op->locked)
        range_lock_release(&op->lock);
    if (op->active_write && --array->writes_in_flight == 0)
        array_clean_idle(&array->clean);
    op->done(op);
}

static void
count_method(struct stripe_op *op)
{
    struct array_stats *stats = &op->array->stats;
    if (op->kind == STRIPE_READ) {
        stats->degraded_reads += op->plan.method == PLAN_RECOVER;
        return;
    }
    stats->full_stripe_writes += op->plan.method == PLAN_FULL_STRIPE;
    stats->rmw_writes += op->plan.method == PLAN_RMW;
    stats->rcw_writes += op->plan.method == PLAN_RCW;
}

void
stripe_op_step(struct stripe_op *op)
{
    for (;;) {
        switch ((enum op_stage)op->stage++) { /* advance first: children may complete at once */
        case OP_LOCK:                         /* I4 */
            if (!lock(op))
                return;
            break;
        case OP_PLAN: /* I9 */
            op->err = make_plan(op);
            if (op->err != 0)
                op->stage = OP_FINISH;
            else if (needs_lock_now(op))
                op->stage = OP_LOCK;
            break;
        case OP_SCRATCH:
            if (op->kind != STRIPE_ZERO_ROWS && !stripe_memory_get(op))
                return;
            if (!changes_members(op) || !op->array->redundant)
                op->stage = OP_READ;
            break;
        case OP_ACTIVATE:
            if (!activate(op))
                return;
            break;
        case OP_INTENT: /* I1 */
            if (!mark_intent(op))
                return;
            break;
        case OP_READ:
            if (op->kind != STRIPE_ZERO_ROWS && op->plan.read_count != 0 && !stripe_io_read(op))
                return;
            break;
        case OP_COMPUTE:
            if (op->kind == STRIPE_ZERO_ROWS || plan_again(op))
                break;
            count_method(op);
            stripe_memory_compute(op);
            break;
        case OP_REPAIR: /* P6 */
            if (op->kind != STRIPE_READ)
                break;
            op->stage = OP_FINISH;
            if (op->bad_main != 0 && !stripe_io_repair(op))
                return;
            break;
        case OP_WRITE:
            if (!(op->kind == STRIPE_ZERO_ROWS ? stripe_io_zero_rows(op) : stripe_io_write(op)))
                return;
            break;
        case OP_RECORD: /* I11 */
            if (!meta_io_record(&op->array->meta, &op->meta, meta_done))
                return;
            break;
        case OP_JUDGE:
            op->err = judge(op);
            break;
        case OP_FINISH:
            finish(op); /* I2 */
            return;
        }
    }
}

/* What is locked and marked.  Layouts without redundancy ask for no lock, but here a write may have
 * to read and merge a block first, and must not lose another write to that block. */
static void
choose_range(struct stripe_op *op)
{
    bool rows = op->kind == STRIPE_ZERO_ROWS;
    op->sync_off_bytes = rows ? op->rows.lock_off : op->band.lock_off;
    op->sync_len_bytes = rows ? op->rows.lock_len : op->band.lock_len;
    if (op->sync_len_bytes != 0)
        return;
    op->sync_off_bytes = rows ? op->rows.array_off_bytes : op->band.array_off_bytes;
    op->sync_len_bytes = rows ? op->rows.array_len_bytes : op->band.len_bytes;
}

void
stripe_op_start(struct stripe_op *op)
{
    op->err = 0;
    op->write_err = 0;
    op->pending = 0;
    op->locked = op->intent_held = op->active_write = op->failed_read = false;
    op->scratch_turn = false;
    op->bad_main = op->bad_second = op->write_failed = 0;
    op->scratch = NULL;
    choose_range(op);
    op->stage = op->kind == STRIPE_READ ? OP_PLAN : OP_LOCK;
    stripe_op_step(op);
}
