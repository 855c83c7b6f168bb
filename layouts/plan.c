/* THEORY OF OPERATION.  What a plan is: plan.h.  Here each public function finds the level's
 * planner and calls through, and here are the few lines with which planners write a plan:
 *
 *   plan_begin             an empty plan for this band
 *   plan_add_read, _write  one member I/O each; all as long as the band
 *   plan_add_sum           opens a sum; plan_add_term adds to the one opened last
 *
 * - A plan is complete or its planner says -EIO; nobody executes the half of one.
 * - Its tables cannot overflow: a band has at most MEMBERS_MAX roles, each is read once and written
 *   once, and at most PLAN_SUMS_MAX slots are computed from both slots of each.  So adding is a
 * check, not an error.
 * - It depends on its input alone (I9): no I/O, no allocation, no clock. */
#include "layouts/plan.h"

#include "layouts/level.h"

void
plan_begin(struct plan *plan, const struct plan_input *input)
{
    plan->method = PLAN_PLAIN;
    plan->len_bytes = input->band.len_bytes;
    plan->read_count = plan->write_count = plan->sum_count = plan->term_count = 0;
    plan->sum_merge_index = 0;
}

void
plan_add_read(struct plan *plan, uint32_t role, uint16_t slot, uint64_t member_off_bytes)
{
    check_lt(plan->read_count, PLAN_IOS_MAX);
    plan->reads[plan->read_count++] = (struct plan_io){(uint16_t)role, slot, member_off_bytes};
}

void
plan_add_write(struct plan *plan, uint32_t role, uint16_t slot, uint64_t member_off_bytes)
{
    check_lt(plan->write_count, PLAN_IOS_MAX);
    plan->writes[plan->write_count++] = (struct plan_io){(uint16_t)role, slot, member_off_bytes};
}

void
plan_add_sum(struct plan *plan, uint16_t dst)
{
    check_lt(plan->sum_count, PLAN_SUMS_MAX);
    plan->sums[plan->sum_count++] = (struct plan_sum){dst, (uint16_t)plan->term_count, 0};
}

void
plan_add_term(struct plan *plan, uint16_t slot, uint8_t coef)
{
    check_lt(plan->term_count, PLAN_TERMS_MAX);
    check_ne(plan->sum_count, 0);
    plan->terms[plan->term_count++] = (struct plan_term){slot, coef};
    plan->sums[plan->sum_count - 1].term_count++;
}

static const struct level_ops *
ops_of(const struct plan_input *input)
{
    const struct level_ops *ops = level_ops(input->geometry->level);
    check(ops != NULL);
    return ops;
}

int
plan_read(const struct plan_input *input, struct plan *plan)
{
    plan_begin(plan, input);
    return ops_of(input)->plan_read(input, plan);
}

int
plan_write(const struct plan_input *input, struct plan *plan)
{
    plan_begin(plan, input);
    return ops_of(input)->plan_write(input, plan);
}

int
plan_sync(const struct plan_input *input, uint64_t targets, struct plan *plan)
{
    plan_begin(plan, input);
    return ops_of(input)->plan_sync(input, targets, plan);
}
