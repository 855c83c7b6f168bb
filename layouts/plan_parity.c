/* THEORY OF OPERATION
 *
 * Plans for RAID 4, 5 and 6 are linear algebra over GF(2^8), not cases.
 *
 * The old contents of a row's roles are columns x_r.  They satisfy one or two relations:
 *
 *      P:  x_p + sum x_d           = 0        d over the data roles
 *      Q:  x_q + sum 2^e(d) * x_d  = 0        (RAID 6)
 *
 * Whatever has to be computed, a *target*, is a linear form over the old columns, plus new data:
 *
 *      a missing role r            x_r
 *      P after a write of W        sum over data not in W of x_d         + sum over W of new_d
 *      Q after a write of W        the same with factors 2^e(d)
 *
 * Adding multiples of the relations changes a form but not its value.  So a target can be computed
 * from a set R of readable roles exactly when there are multipliers l_P, l_Q such that
 * target + l_P * P + l_Q * Q has no coefficient outside R: one equation for each role outside R,
 * two unknowns.  express() solves that.
 *
 * plan_write tries a few sets R and takes the solvable one with the fewest reads:
 *
 *      nothing                               full stripe
 *      W and the parities to be written      read-modify-write
 *      data not in W                         reconstruct-write
 *      all that can be read                  several roles missing
 *
 * Read-modify-write comes out as "x_p + x_w + new_w", a degraded write as its own formula, RAID 6
 * with any two roles gone as well; tests/prop compares the number of reads with the minimum over
 * all sets.
 *
 * It deliberately knows nothing about the log, about bytes, or about errors: a role that fails
 * leaves the masks, and the plan is made again. */
#include "layouts/level.h"
#include "layouts/parity.h"

enum { REL_P, REL_Q, REL_COUNT };
#define TARGETS_MAX PLAN_SUMS_MAX

struct form { /* coefficients of the old columns */
    uint8_t coef[MEMBERS_MAX];
};

struct row {
    const struct geometry *geometry;
    struct row_roles roles;
    uint64_t all, data, parity; /* masks of roles */
    uint64_t band;              /* data roles of the band: W */
    uint64_t member_off_bytes;
    struct form relation[REL_COUNT];
};

struct target {
    uint16_t dst;
    struct form form;
    const struct form *new_terms; /* W enters with these coefficients and PLAN_NEW, or NULL */
};

struct targets {
    uint32_t count;
    uint32_t recover_count; /* the first ones: forms of single missing roles */
    struct target list[TARGETS_MAX];
};

static void
row_init(struct row *row, const struct plan_input *input)
{
    const struct geometry *geometry = input->geometry;
    const struct band *band = &input->band;
    memset(row, 0, sizeof(*row));
    row->geometry = geometry;
    row_roles(geometry, band->row, &row->roles);
    row->all = mask_below(geometry->member_count);
    row->member_off_bytes = band->row * geometry->chunk_bytes + band->lo_bytes;
    for (uint32_t i = 0; i < geometry->data_count; i++) {
        uint32_t role = row->roles.data_role[i];
        row->data |= mask_of(role);
        if (i >= band->data_first && i - band->data_first < band->data_count)
            row->band |= mask_of(role);
        row->relation[REL_P].coef[role] = 1;
        if (row->roles.q >= 0)
            row->relation[REL_Q].coef[role] = gf_pow2(row->roles.q_exponent[i]);
    }
    row->parity = row->all & ~row->data;
    row->relation[REL_P].coef[row->roles.p] = 1;
    if (row->roles.q >= 0)
        row->relation[REL_Q].coef[row->roles.q] = 1;
}

static void
form_add(struct form *form, uint8_t factor, const struct form *other, uint32_t count)
{
    if (factor == 0)
        return;
    for (uint32_t role = 0; role < count; role++)
        form->coef[role] ^= factor == 1 ? other->coef[role] : gf_mul(factor, other->coef[role]);
}

static uint64_t
form_support(const struct form *form, uint32_t count)
{
    uint64_t support = 0;
    for (uint32_t role = 0; role < count; role++)
        if (form->coef[role] != 0)
            support |= mask_of(role);
    return support;
}

/* Rewrite `form` without the columns outside `allowed`, keeping its value; false: impossible.  With
 * a choice it keeps to the relation P. */
static bool
express(const struct row *row, uint64_t allowed, struct form *form)
{
    const uint8_t *p = row->relation[REL_P].coef, *q = row->relation[REL_Q].coef;
    const uint8_t *t = form->coef;
    uint64_t outside = row->all & ~allowed;
    uint8_t factor_p = 0, factor_q = 0;
    if (outside != 0) {
        uint32_t a = mask_first(outside), b = a;
        uint8_t det = 0;
        mask_for_each (role, outside & (outside - 1)) {
            b = (uint32_t)role;
            det = gf_mul(p[a], q[b]) ^ gf_mul(p[b], q[a]);
            if (det != 0)
                break;
        }
        if (det != 0) { /* Cramer's rule */
            uint8_t inverse = gf_inv(det);
            factor_p = gf_mul(inverse, gf_mul(t[a], q[b]) ^ gf_mul(t[b], q[a]));
            factor_q = gf_mul(inverse, gf_mul(p[a], t[b]) ^ gf_mul(p[b], t[a]));
        } else if (p[a] != 0) {
            factor_p = gf_mul(t[a], gf_inv(p[a]));
        } else {
            factor_q = gf_mul(t[a], gf_inv(q[a]));
        }
    }
    form_add(form, factor_p, &row->relation[REL_P], row->geometry->member_count);
    form_add(form, factor_q, &row->relation[REL_Q], row->geometry->member_count);
    return (form_support(form, row->geometry->member_count) & outside) == 0;
}

/* False: more targets than one or two relations can give. */
static bool
target_role(struct targets *targets, uint32_t role, uint16_t dst)
{
    if (targets->count == TARGETS_MAX)
        return false;
    struct target *target = &targets->list[targets->count++];
    *target = (struct target){.dst = dst};
    target->form.coef[role] = 1;
    return true;
}

/* The parity `role` after a write of W. */
static void
target_parity(const struct row *row, uint32_t role, struct targets *targets)
{
    const struct form *relation = &row->relation[(int32_t)role == row->roles.p ? REL_P : REL_Q];
    check_lt(targets->count, TARGETS_MAX);
    struct target *target = &targets->list[targets->count++];
    *target = (struct target){.dst = PLAN_NEW(role), .new_terms = relation};
    mask_for_each (other, row->data & ~row->band)
        target->form.coef[other] = relation->coef[other];
}

/* Express all targets in `allowed`; true, and *reads (on entry: what is read anyway) extended. */
static bool
express_all(const struct row *row, uint64_t allowed, struct targets *targets, uint64_t *reads)
{
    for (uint32_t i = 0; i < targets->count; i++) {
        if (!express(row, allowed, &targets->list[i].form))
            return false;
        *reads |= form_support(&targets->list[i].form, row->geometry->member_count);
    }
    return true;
}

/* Old columns are in PLAN_OLD, those of roles in `in_place` in PLAN_NEW. */
static void
emit_sums(const struct row *row, const struct targets *targets, uint64_t in_place,
          struct plan *plan)
{
    for (uint32_t i = 0; i < targets->count; i++) {
        const struct target *target = &targets->list[i];
        plan_add_sum(plan, target->dst);
        mask_for_each (role, form_support(&target->form, row->geometry->member_count))
            plan_add_term(
                plan, (in_place & mask_of((uint32_t)role)) != 0 ? PLAN_NEW(role) : PLAN_OLD(role),
                target->form.coef[role]);
        if (target->new_terms != NULL)
            mask_for_each (role, row->band)
                plan_add_term(plan, PLAN_NEW(role), target->new_terms->coef[role]);
    }
    plan->sum_merge_index = targets->recover_count;
}

static void
emit_reads(const struct row *row, uint64_t roles, uint64_t in_place, struct plan *plan)
{
    mask_for_each (role, roles)
        plan_add_read(plan, (uint32_t)role,
                      (in_place & mask_of((uint32_t)role)) != 0 ? PLAN_NEW(role) : PLAN_OLD(role),
                      row->member_off_bytes);
}

static void
emit_writes(const struct row *row, uint64_t roles, struct plan *plan)
{
    mask_for_each (role, roles)
        plan_add_write(plan, (uint32_t)role, PLAN_NEW(role), row->member_off_bytes);
}

int
plan_read_parity(const struct plan_input *input, struct plan *plan)
{
    struct row row;
    row_init(&row, input);
    struct targets targets = {0};
    mask_for_each (role, row.band & ~input->readable)
        if (!target_role(&targets, (uint32_t)role, PLAN_NEW(role)))
            return -EIO;
    uint64_t reads = row.band & input->readable;
    if (!express_all(&row, input->readable, &targets, &reads))
        return -EIO;
    if (targets.count > 0)
        plan->method = PLAN_RECOVER;
    emit_reads(&row, reads, row.band, plan);
    emit_sums(&row, &targets, row.band, plan);
    return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

struct choice {
    uint32_t read_count; /* UINT32_MAX: nothing found yet */
    uint64_t reads;
    enum plan_method method;
    struct targets targets;
};

/* Take `allowed` if it solves the targets with fewer reads than the best so far. */
static void
try_reading(const struct row *row, uint64_t allowed, uint64_t reads, enum plan_method method,
            const struct targets *targets, struct choice *best)
{
    struct choice trial = {.reads = reads, .method = method, .targets = *targets};
    if (!express_all(row, allowed, &trial.targets, &trial.reads))
        return;
    trial.read_count = mask_count(trial.reads);
    if (trial.read_count < best->read_count)
        *best = trial;
}

/* usable: what may be read.  need: written roles whose old content is needed. */
static void
choose(const struct row *row, uint64_t usable, uint64_t need, const struct targets *targets,
       struct choice *best)
{
    uint64_t parities = 0;
    for (uint32_t i = targets->recover_count; i < targets->count; i++)
        parities |= mask_of(targets->list[i].dst - PLAN_NEW(0));
    uint64_t reads = need & usable;
    try_reading(row, reads, reads, PLAN_FULL_STRIPE, targets, best);
    try_reading(row, (row->band | parities) & usable, reads, PLAN_RMW, targets, best);
    try_reading(row, ((row->data & ~row->band) | need) & usable, reads, PLAN_RCW, targets, best);
    /* Any other way leaves out two columns at most and reads k roles or more, no fewer than these
     when they are possible. */
    if (best->read_count == UINT32_MAX)
        try_reading(row, usable, reads, PLAN_RECOVER, targets, best);
}

static int
write_targets(const struct row *row, const struct plan_input *input, struct targets *targets)
{
    *targets = (struct targets){0};
    if (input->need_old)
        mask_for_each (role, row->band & ~input->readable)
            if (!target_role(targets, (uint32_t)role, PLAN_OLD(role)) ||
                targets->count > row->geometry->parity_count)
                return -EIO;
    targets->recover_count = targets->count;
    mask_for_each (role, row->parity & input->writable)
        target_parity(row, (uint32_t)role, targets);
    return 0;
}

int
plan_write_parity(const struct plan_input *input, struct plan *plan)
{
    struct row row;
    row_init(&row, input);
    /* Afterwards these do not hold what they should: written roles that cannot be written, and
     * other data that cannot be read.  No more than the parities can make up for (P1). */
    uint64_t written = row.band | row.parity;
    uint64_t wrong = (written & ~input->writable) | (row.data & ~written & ~input->readable);
    if (mask_count(wrong) > row.geometry->parity_count)
        return -EIO;
    struct targets targets;
    int err = write_targets(&row, input, &targets);
    if (err < 0)
        return err;

    struct choice best = {.read_count = UINT32_MAX};
    uint64_t need = input->need_old ? row.band : 0, readable = row.all & input->readable;
    choose(&row, input->parity_trusted ? readable : readable & row.data, need, &targets, &best);
    /* Two parities that are not trusted may contradict each other: rather one, and all the data. */
    mask_for_each (role, row.parity & readable)
        if (best.read_count == UINT32_MAX)
            choose(&row, (readable & row.data) | mask_of((uint32_t)role), need, &targets, &best);
    if (best.read_count == UINT32_MAX)
        choose(&row, readable, need, &targets, &best);
    if (best.read_count == UINT32_MAX)
        return -EIO;

    if (best.targets.count == 0)
        plan->method = PLAN_PLAIN;
    else if (row.band == row.data)
        plan->method = PLAN_FULL_STRIPE;
    else
        plan->method = best.method;
    emit_reads(&row, best.reads, 0, plan);
    emit_sums(&row, &best.targets, 0, plan);
    emit_writes(&row, written & input->writable, plan);
    return 0;
}

int
plan_sync_parity(const struct plan_input *input, uint64_t targets_mask, struct plan *plan)
{
    struct row row;
    row_init(&row, input);
    check_eq(row.band, row.data);
    uint64_t roles = row.all & targets_mask;
    if ((roles & ~input->writable) != 0)
        return -EIO;
    struct targets targets = {0};
    mask_for_each (role, roles)
        if (!target_role(&targets, (uint32_t)role, PLAN_NEW(role)))
            return -EIO;
    uint64_t reads = 0;
    if (!express_all(&row, input->readable & ~roles, &targets, &reads))
        return -EIO;
    plan->method = targets.count > 0 ? PLAN_RECOVER : PLAN_PLAIN;
    emit_reads(&row, reads, 0, plan);
    emit_sums(&row, &targets, 0, plan);
    emit_writes(&row, roles, plan);
    return 0;
}
