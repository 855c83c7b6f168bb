/* The memory of a plan's slots.
 *
 * A slot that carries client data points straight into the client's memory when that is aligned for
 * the members and in one piece (two when nothing is computed from it); everything else lives in one
 * run of scratch pages. */
#include <string.h>

#include "engine/base/iov.h"

#include "engine/array_core.h"
#include "layouts/parity.h"

static uint8_t zero_bytes[STRIPE_ZERO_BYTES] __attribute__((aligned(BLOCK_BYTES)));

struct slot_set {
    uint64_t old, new; /* by role */
};

static uint64_t *
set_of(struct slot_set *set, uint16_t slot)
{
    check_lt(slot, PLAN_SLOT_COUNT);
    return slot < MEMBERS_MAX ? &set->old : &set->new;
}

static void
slot_add(struct slot_set *set, uint16_t slot)
{
    *set_of(set, slot) |= mask_of(slot % MEMBERS_MAX);
}

/* Which role's NEW slot carries the client's data piece k? */
static void
find_client_roles(struct stripe_op *op)
{
    const struct plan *plan = &op->plan;
    op->client_roles = 0;
    if (op->kind == STRIPE_SYNC)
        return;
    bool plain_read = op->kind == STRIPE_READ && plan->sum_count == 0 && op->band.data_count == 1;
    if (!op->array->has_parity || plain_read) {
        uint16_t slot = op->kind == STRIPE_READ ? plan->reads[0].slot : plan->writes[0].slot;
        check_ge(slot, MEMBERS_MAX);
        op->piece_role[0] = (uint8_t)(slot - MEMBERS_MAX);
        op->client_roles = mask_of(op->piece_role[0]);
        return;
    }
    struct row_roles roles;
    row_roles(&op->array->geometry, op->band.row, &roles);
    for (uint32_t k = 0; k < op->band.data_count; k++) {
        op->piece_role[k] = roles.data_role[op->band.data_first + k];
        op->client_roles |= mask_of(op->piece_role[k]);
    }
}

static uint64_t
piece_memory_off(const struct stripe_op *op, uint32_t k)
{
    uint64_t off =
        k == 0 ? op->band.array_off_bytes : band_data_off(&op->array->geometry, &op->band, k);
    return off - op->memory_off_bytes;
}

/* Let the slot be the client's memory, if that will do. */
static bool
use_client_memory(struct stripe_op *op, uint32_t k)
{
    struct stripe_slot *slot = &op->slots[PLAN_NEW(op->piece_role[k])];
    if (op->ragged)
        return false;
    if (op->iov == NULL) { /* zeroes */
        slot->iov[0] = (struct iovec){.iov_base = zero_bytes, .iov_len = op->plan.len_bytes};
        slot->iov_count = 1;
        return true;
    }
    uint32_t pieces_max = op->plan.sum_count != 0 ? 1 : 2;
    slot->iov_count = iov_slice(op->iov, op->iov_count, piece_memory_off(op, k), op->plan.len_bytes,
                                slot->iov, pieces_max);
    return slot->iov_count != 0 && iov_aligned(slot->iov, slot->iov_count, op->array->mem_align);
}

static void
collect_slots(const struct plan *plan, struct slot_set *set)
{
    for (uint32_t i = 0; i < plan->read_count; i++)
        slot_add(set, plan->reads[i].slot);
    for (uint32_t i = 0; i < plan->write_count; i++)
        slot_add(set, plan->writes[i].slot);
    for (uint32_t i = 0; i < plan->sum_count; i++)
        slot_add(set, plan->sums[i].dst);
    for (uint32_t i = 0; i < plan->term_count; i++)
        slot_add(set, plan->terms[i].slot);
}

static uint8_t *
give(struct stripe_op *op, uint64_t roles, uint16_t slot_base, uint8_t *at, uint64_t stride)
{
    mask_for_each (role, roles) {
        struct stripe_slot *slot = &op->slots[slot_base + role];
        slot->iov[0] = (struct iovec){.iov_base = at, .iov_len = op->plan.len_bytes};
        slot->iov_count = 1;
        at += stride;
    }
    return at;
}

bool
stripe_memory_get(struct stripe_op *op)
{
    struct array *array = op->array;
    struct slot_set set = {0};
    find_client_roles(op);
    op->client_direct = 0;
    if (op->client_roles != 0)
        for (uint32_t k = 0; k < op->band.data_count; k++)
            if (use_client_memory(op, k))
                op->client_direct |= mask_of(op->piece_role[k]);
    collect_slots(&op->plan, &set);
    set.new &= ~op->client_direct;
    uint32_t count = mask_count(set.old) + mask_count(set.new);
    if (count == 0)
        return true;
    uint64_t stride = round_up(op->plan.len_bytes, MAX(array->mem_align, 64u));
    op->scratch_bytes = count * stride;
    if (op->scratch_turn || list_empty(&array->scratch_waiters)) /* nobody overtakes */
        op->scratch = arena_get(&array->scratch, op->scratch_bytes);
    if (op->scratch == NULL) {
        op->stage--; /* this stage again, when there is room */
        if (op->scratch_turn)
            list_push_front(&array->scratch_waiters, &op->wait_node);
        else
            list_push_back(&array->scratch_waiters, &op->wait_node);
        return false;
    }
    uint8_t *at = give(op, set.old, PLAN_OLD(0), op->scratch, stride);
    give(op, set.new, PLAN_NEW(0), at, stride);
    return true;
}

void
stripe_memory_wake(struct array *array)
{
    struct list_node *node;
    while ((node = list_pop_front(&array->scratch_waiters)) != NULL) {
        struct stripe_op *op = CONTAINER_OF(node, struct stripe_op, wait_node);
        op->scratch_turn = true;
        stripe_op_step(op);
        if (list_first(&array->scratch_waiters) == node)
            return; /* still no room for it: the others wait behind it */
    }
}

void
stripe_memory_put(struct stripe_op *op)
{
    if (op->scratch == NULL)
        return;
    arena_put(&op->array->scratch, op->scratch, op->scratch_bytes);
    op->scratch = NULL;
    if (!list_empty(&op->array->scratch_waiters))
        array_wake(op->array);
}

static uint8_t *
slot_bytes(struct stripe_op *op, uint16_t slot)
{
    check_eq(op->slots[slot].iov_count, 1);
    return op->slots[slot].iov[0].iov_base;
}

/* Client data into the NEW slots that are not the client's own memory (ragged: over the old). */
static void
merge(struct stripe_op *op)
{
    uint64_t len = op->plan.len_bytes;
    for (uint32_t k = 0; op->client_roles != 0 && k < op->band.data_count; k++) {
        uint16_t role = op->piece_role[k];
        if (op->client_direct & mask_of(role))
            continue;
        uint8_t *to = slot_bytes(op, PLAN_NEW(role));
        uint64_t from_off = piece_memory_off(op, k);
        if (op->ragged) {
            check_eq(op->band.data_count, 1);
            memcpy(to, slot_bytes(op, PLAN_OLD(role)), len);
            to += op->part_off_bytes - op->band.array_off_bytes;
            from_off = op->part_off_bytes - op->memory_off_bytes;
            len = op->part_len_bytes;
        }
        if (op->iov == NULL)
            memset(to, 0, len);
        else
            iov_copy_out(to, op->iov, op->iov_count, from_off, len);
    }
}

/* And back, after a read. */
static void
copy_out(struct stripe_op *op)
{
    for (uint32_t k = 0; k < op->band.data_count; k++) {
        uint16_t role = op->piece_role[k];
        if (op->client_direct & mask_of(role))
            continue;
        const uint8_t *from = slot_bytes(op, PLAN_NEW(role));
        uint64_t to_off =
            op->ragged ? op->part_off_bytes - op->memory_off_bytes : piece_memory_off(op, k);
        uint64_t len = op->ragged ? op->part_len_bytes : op->plan.len_bytes;
        if (op->ragged)
            from += op->part_off_bytes - op->band.array_off_bytes;
        iov_copy_in(op->iov, op->iov_count, to_off, from, len);
    }
}

/* The sources of a sum: where they are, and their coefficients. */
struct sources {
    const uint8_t *from[PARITY_SOURCES_MAX];
    uint8_t coef[PARITY_SOURCES_MAX];
};

static void
sources_of(struct stripe_op *op, const struct plan_sum *sum, struct sources *out)
{
    check_le(sum->term_count, ARRAY_LEN(out->from));
    for (uint32_t i = 0; i < sum->term_count; i++) {
        const struct plan_term *term = &op->plan.terms[sum->term_first + i];
        out->from[i] = slot_bytes(op, term->slot);
        out->coef[i] = term->coef;
    }
}

static bool
same_sources(const struct plan *plan, const struct plan_sum *a, const struct plan_sum *b)
{
    if (a->term_count != b->term_count)
        return false;
    for (uint32_t i = 0; i < a->term_count; i++)
        if (plan->terms[a->term_first + i].slot != plan->terms[b->term_first + i].slot)
            return false;
    return true;
}

/* Sums [first, end); two of the same sources (P and Q) in one pass over them. */
static void
run_sums(struct stripe_op *op, uint32_t first, uint32_t end)
{
    const struct plan *plan = &op->plan;
    struct sources a, b;
    for (uint32_t i = first; i < end; i++) {
        const struct plan_sum *sum = &plan->sums[i];
        sources_of(op, sum, &a);
        uint8_t *dst = slot_bytes(op, sum->dst);
        if (i + 1 == end || !same_sources(plan, sum, sum + 1)) {
            parity_sum(dst, a.from, a.coef, sum->term_count, plan->len_bytes);
            continue;
        }
        i++;
        sources_of(op, sum + 1, &b);
        uint8_t *const both[] = {dst, slot_bytes(op, (sum + 1)->dst)};
        parity_sum2(both, a.from, a.coef, b.coef, sum->term_count, plan->len_bytes);
    }
}

void
stripe_memory_compute(struct stripe_op *op)
{
    run_sums(op, 0, op->plan.sum_merge_index);
    if (op->kind == STRIPE_WRITE)
        merge(op);
    run_sums(op, op->plan.sum_merge_index, op->plan.sum_count);
    if (op->kind == STRIPE_READ)
        copy_out(op);
}
