/* Plans of every level in every state they must work in, carried out on members in memory.
 *
 * The model is the array's bytes.  After whatever happened, every set of roles whose loss the level
 * tolerates is taken away in turn, and all is read and compared. */
#include <stdio.h>

#include "engine/base/rng.h"

#include "layouts/parity.h"
#include "tests/prop/plan_exec.h"
#include "tests/unit/suite.h"

static const struct config {
    enum raid_level level;
    uint32_t layout;
    uint32_t members;
} configs[] = {
    {RAID0, 1, 3},      {RAID1, 0, 2},        {RAID1, 0, 3},      {RAID4, 0, 4},
    {RAID5, 0, 4},      {RAID5, 1, 3},        {RAID5, 2, 2},      {RAID5, 2, 3},
    {RAID5, 2, 4},      {RAID5, 2, 6},        {RAID5, 3, 5},      {RAID5, 4, 4},
    {RAID5, 5, 4},      {RAID6, 0, 5},        {RAID6, 1, 5},      {RAID6, 2, 4},
    {RAID6, 2, 5},      {RAID6, 2, 7},        {RAID6, 3, 6},      {RAID6, 4, 5},
    {RAID6, 5, 5},      {RAID6, 8, 5},        {RAID6, 9, 5},      {RAID6, 10, 5},
    {RAID6, 16, 5},     {RAID6, 17, 5},       {RAID6, 18, 6},     {RAID6, 19, 5},
    {RAID6, 20, 5},     {RAID10, 0x102, 4},   {RAID10, 0x102, 3}, {RAID10, 0x103, 5},
    {RAID10, 0x201, 4}, {RAID10, 0x10201, 3}, {RAID10, 0x301, 4}, {RAID10, 0x40201, 5},
    {RAID10, 0x202, 4},
};

struct life {
    struct rng rng;
    struct geometry geometry;
    struct exec exec;
    uint8_t *image, *scratch;
};

static void
life_begin(struct life *life, const struct config *config, uint64_t seed)
{
    rng_seed(&life->rng, seed);
    uint64_t rows = config->level == RAID1 ? 17 : 2 * config->members;
    CU_ASSERT_FATAL(
        exec_geometry(&life->geometry, config->level, config->layout, config->members, rows));
    exec_init(&life->exec, &life->geometry);
    life->image = calloc(1, life->geometry.array_bytes);
    life->scratch = calloc(1, life->geometry.array_bytes);
}

static void
life_end(struct life *life)
{
    exec_destroy(&life->exec);
    free(life->image);
    free(life->scratch);
}

static uint64_t
all_roles(const struct life *life)
{
    return mask_below(life->geometry.member_count);
}

/* All parities of all rows agree with the data, on members that can be read. */
static bool
parity_agrees(struct life *life)
{
    const struct geometry *geometry = &life->geometry;
    uint8_t sum[EXEC_CHUNK];
    for (uint64_t row = 0; geometry->parity_count > 0 && row < geometry->row_count; row++) {
        struct row_roles roles;
        row_roles(geometry, row, &roles);
        const uint8_t *src[MEMBERS_MAX];
        uint8_t ones[MEMBERS_MAX], powers[MEMBERS_MAX];
        for (uint32_t i = 0; i < geometry->data_count; i++) {
            src[i] = life->exec.member[roles.data_role[i]] + row * EXEC_CHUNK;
            ones[i] = 1;
            powers[i] = gf_pow2(roles.q_exponent[i]);
        }
        parity_sum(sum, src, ones, geometry->data_count, EXEC_CHUNK);
        if (memcmp(sum, life->exec.member[roles.p] + row * EXEC_CHUNK, EXEC_CHUNK) != 0)
            return false;
        if (roles.q < 0)
            continue;
        parity_sum(sum, src, powers, geometry->data_count, EXEC_CHUNK);
        if (memcmp(sum, life->exec.member[roles.q] + row * EXEC_CHUNK, EXEC_CHUNK) != 0)
            return false;
    }
    return true;
}

static bool
reads_back(struct life *life, uint64_t readable)
{
    uint64_t before = life->exec.readable;
    life->exec.readable = readable;
    memset(life->scratch, 0xee, life->geometry.array_bytes);
    int err = exec_read(&life->exec, 0, life->geometry.array_bytes, life->scratch);
    life->exec.readable = before;
    return err == 0 && memcmp(life->scratch, life->image, life->geometry.array_bytes) == 0;
}

/* P1: the data is there, whatever else is lost within tolerance. */
static bool
survives_all_losses(struct life *life)
{
    uint64_t readable = life->exec.readable;
    for (uint64_t kept = 0; kept <= all_roles(life); kept++)
        if ((kept & ~readable) == 0 && layout_enough(&life->geometry, kept) &&
            !reads_back(life, kept))
            return false;
    return true;
}

static int
write_random(struct life *life)
{
    uint64_t total = life->geometry.array_bytes;
    uint64_t unit = rng_chance(&life->rng, 40) ? 1 : 512;
    uint64_t off = rng_below(&life->rng, total / unit) * unit;
    uint64_t most = rng_chance(&life->rng, 20) ? total : 3 * EXEC_CHUNK;
    most = MIN(most, total - off);
    uint64_t len = rng_range(&life->rng, 1, most / unit) * unit;
    life->exec.piece_max_bytes =
        rng_chance(&life->rng, 70) ? EXEC_BAND_MAX : rng_range(&life->rng, 1, 7) * 512;
    rng_fill(&life->rng, life->image + off, len);
    return exec_write(&life->exec, off, len, life->image + off);
}

static void
lose(struct life *life, uint32_t role)
{
    life->exec.readable &= ~mask_of(role);
    life->exec.writable &= ~mask_of(role);
    rng_fill(&life->rng, life->exec.member[role], EXEC_MEMBER_MAX);
}

static bool
may_lose(const struct life *life, uint32_t role)
{
    return life->exec.parity_trusted &&
           layout_enough(&life->geometry, life->exec.readable & ~mask_of(role));
}

/* ---- one thing at a time, everywhere -------------------------------------------------------- */

static void
any_tolerated_loss_before_or_after_a_write_gives_the_data_back(void)
{
    for (size_t c = 0; c < ARRAY_LEN(configs); c++) {
        struct life life;
        life_begin(&life, &configs[c], suite_seed() + c);
        CU_ASSERT(survives_all_losses(&life));
        for (unsigned i = 0; i < 4; i++)
            CU_ASSERT_EQUAL(write_random(&life), 0);
        CU_ASSERT(survives_all_losses(&life) && parity_agrees(&life));
        /* the same while roles are missing already */
        for (uint64_t kept = 0; kept < all_roles(&life); kept++) {
            if (!layout_enough(&life.geometry, kept))
                continue;
            life.exec.readable = life.exec.writable = kept;
            for (unsigned i = 0; i < 3; i++)
                CU_ASSERT_EQUAL(write_random(&life), 0);
            CU_ASSERT(survives_all_losses(&life));
            life.exec.writable = all_roles(&life); /* rebuilding: writable, not yet readable */
            CU_ASSERT_EQUAL(write_random(&life), 0);
            CU_ASSERT(survives_all_losses(&life));
            CU_ASSERT_EQUAL(exec_sync(&life.exec, all_roles(&life) & ~kept), 0);
            life.exec.readable = all_roles(&life);
            CU_ASSERT(parity_agrees(&life) && reads_back(&life, all_roles(&life)));
        }
        CU_ASSERT(survives_all_losses(&life));
        life_end(&life);
    }
}

/* Redundancy full of rubbish, except that reads need only the data (mirrors: the first copy). */
static void
scramble_redundancy(struct life *life)
{
    const struct geometry *geometry = &life->geometry;
    for (uint64_t row = 0; geometry->parity_count > 0 && row < geometry->row_count; row++) {
        struct row_roles roles;
        row_roles(geometry, row, &roles);
        rng_fill(&life->rng, life->exec.member[roles.p] + row * EXEC_CHUNK, EXEC_CHUNK);
        if (roles.q >= 0)
            rng_fill(&life->rng, life->exec.member[roles.q] + row * EXEC_CHUNK, EXEC_CHUNK);
    }
    for (uint64_t off = 0; geometry->parity_count == 0 && off < geometry->array_bytes;
         off += EXEC_CHUNK) {
        struct place places[MEMBERS_MAX];
        uint32_t count = layout_places(geometry, off, places, ARRAY_LEN(places));
        uint32_t lowest = MEMBERS_MAX;
        for (uint32_t i = 0; i < count; i++)
            lowest = MIN(lowest, places[i].role);
        for (uint32_t i = 0; i < count; i++)
            if (places[i].role != lowest)
                rng_fill(&life->rng, life->exec.member[places[i].role] + places[i].member_off_bytes,
                         EXEC_CHUNK);
    }
    life->exec.parity_trusted = false;
}

static void
untrusted_redundancy_is_made_right_by_writes_and_by_resync(void)
{
    for (size_t c = 0; c < ARRAY_LEN(configs); c++) {
        struct life life;
        life_begin(&life, &configs[c], suite_seed() + c);
        scramble_redundancy(&life);
        for (uint64_t off = 0; off < life.geometry.array_bytes;) { /* write everything */
            uint64_t len = rng_range(&life.rng, 1, 9000);
            len = MIN(len, life.geometry.array_bytes - off);
            rng_fill(&life.rng, life.image + off, len);
            CU_ASSERT_EQUAL(exec_write(&life.exec, off, len, life.image + off), 0);
            off += len;
        }
        CU_ASSERT(parity_agrees(&life) && survives_all_losses(&life));
        scramble_redundancy(&life);
        CU_ASSERT_EQUAL(write_random(&life), 0);
        CU_ASSERT_EQUAL(exec_sync(&life.exec, EXEC_REDUNDANCY), 0);
        life.exec.parity_trusted = true;
        CU_ASSERT(parity_agrees(&life) && survives_all_losses(&life));
        life_end(&life);
    }
}

static void
a_role_that_fails_under_a_plan_costs_no_data(void)
{
    for (size_t c = 0; c < ARRAY_LEN(configs); c++)
        for (uint32_t role = 0; role < configs[c].members; role++)
            for (unsigned when = 0; when < 2; when++) {
                struct life life;
                life_begin(&life, &configs[c], suite_seed() + c);
                if (may_lose(&life, role)) {
                    CU_ASSERT_EQUAL(write_random(&life), 0);
                    *(when == 0 ? &life.exec.fail_on_read : &life.exec.fail_on_write) =
                        (int32_t)role;
                    CU_ASSERT_EQUAL(write_random(&life), 0);
                    CU_ASSERT(survives_all_losses(&life));
                    CU_ASSERT_EQUAL(write_random(&life), 0);
                    CU_ASSERT(survives_all_losses(&life));
                }
                life_end(&life);
            }
}

/* ---- everything at once --------------------------------------------------------------------- */

static void
step(struct life *life)
{
    struct exec *exec = &life->exec;
    uint32_t role = (uint32_t)rng_below(&life->rng, life->geometry.member_count);
    switch (rng_below(&life->rng, 8)) {
    case 0:
        if (may_lose(life, role))
            lose(life, role);
        break;
    case 1: /* a new member comes, empty */
        if ((exec->readable & mask_of(role)) == 0)
            exec->writable |= mask_of(role);
        break;
    case 2: /* all rebuilds end */
        if (exec->parity_trusted) {
            CU_ASSERT_EQUAL(exec_sync(exec, exec->writable & ~exec->readable), 0);
            exec->readable |= exec->writable;
        }
        break;
    case 3:
        if (may_lose(life, role))
            *(rng_chance(&life->rng, 50) ? &exec->fail_on_read : &exec->fail_on_write) =
                (int32_t)role;
        break;
    case 4:
        if (exec->readable == all_roles(life) && exec->fail_on_read < 0 && exec->fail_on_write < 0)
            scramble_redundancy(life);
        break;
    case 5:
        if (!exec->parity_trusted) {
            CU_ASSERT_EQUAL(exec_sync(exec, EXEC_REDUNDANCY), 0);
            exec->parity_trusted = true;
        }
        break;
    default:
        break;
    }
    CU_ASSERT_EQUAL(write_random(life), 0);
    exec->fail_on_read = exec->fail_on_write = -1;
    if (exec->parity_trusted)
        CU_ASSERT(survives_all_losses(life))
    else
        CU_ASSERT(reads_back(life, exec->readable));
}

static void
random_lives_never_lose_a_byte(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (uint64_t i = 0; i < suite_seeds(60); i++) {
        struct life life;
        life_begin(&life, &configs[rng_below(&rng, ARRAY_LEN(configs))], rng_u64(&rng));
        for (unsigned s = 0; s < 12; s++)
            step(&life);
        life_end(&life);
    }
}

/* ---- how many reads ------------------------------------------------------------------------- */

/* Is the form a combination of unit vectors in `allowed` and the relations?  By elimination. */
static bool
reachable(const uint8_t *form, const uint8_t relation[2][MEMBERS_MAX], uint32_t n, uint64_t allowed)
{
    uint8_t rows[MEMBERS_MAX][3];
    uint32_t count = 0;
    for (uint32_t r = 0; r < n; r++)
        if ((allowed >> r & 1) == 0) {
            rows[count][0] = relation[0][r];
            rows[count][1] = relation[1][r];
            rows[count++][2] = form[r];
        }
    uint32_t done = 0;
    for (uint32_t column = 0; column < 2; column++) {
        uint32_t pivot = done;
        while (pivot < count && rows[pivot][column] == 0)
            pivot++;
        if (pivot == count)
            continue;
        for (uint32_t i = 0; i < 3; i++) {
            uint8_t swap = rows[done][i];
            rows[done][i] = rows[pivot][i];
            rows[pivot][i] = swap;
        }
        for (uint32_t r = done + 1; r < count; r++) {
            uint8_t factor = gf_mul(rows[r][column], gf_inv(rows[done][column]));
            for (uint32_t i = 0; i < 3; i++)
                rows[r][i] ^= gf_mul(factor, rows[done][i]);
        }
        done++;
    }
    for (uint32_t r = done; r < count; r++)
        if (rows[r][2] != 0)
            return false;
    return true;
}

/* Fewest roles of `usable` from which all that the write needs can be computed, or -1. */
static int
fewest_reads(const struct plan_input *input, uint64_t usable)
{
    const struct geometry *geometry = input->geometry;
    uint32_t n = geometry->member_count, target_count = 0;
    struct row_roles roles;
    row_roles(geometry, input->band.row, &roles);
    uint8_t relation[2][MEMBERS_MAX] = {{0}}, targets[MEMBERS_MAX][MEMBERS_MAX] = {{0}};
    relation[0][roles.p] = 1;
    if (roles.q >= 0)
        relation[1][roles.q] = 1;
    uint32_t first = input->band.data_first, end = first + input->band.data_count;
    for (uint32_t i = 0; i < geometry->data_count; i++) {
        relation[0][roles.data_role[i]] = 1;
        if (roles.q >= 0)
            relation[1][roles.data_role[i]] = gf_pow2(roles.q_exponent[i]);
        if (input->need_old && i >= first && i < end)
            targets[target_count++][roles.data_role[i]] = 1;
    }
    for (uint32_t parity = 0; parity < geometry->parity_count; parity++) {
        if ((input->writable & mask_of((uint32_t)(parity == 0 ? roles.p : roles.q))) == 0)
            continue;
        for (uint32_t i = 0; i < geometry->data_count; i++)
            if (i < first || i >= end)
                targets[target_count][roles.data_role[i]] = relation[parity][roles.data_role[i]];
        target_count++;
    }
    int best = -1;
    for (uint64_t set = 0; set < UINT64_C(1) << n; set++) {
        bool good = (set & ~usable) == 0 && (best < 0 || (int)mask_count(set) < best);
        for (uint32_t t = 0; good && t < target_count; t++)
            good = reachable(targets[t], relation, n, set);
        if (good)
            best = (int)mask_count(set);
    }
    return best;
}

static void
compare_with_fewest(const struct plan_input *input)
{
    const struct geometry *geometry = input->geometry;
    struct row_roles roles;
    row_roles(geometry, input->band.row, &roles);
    uint64_t all = mask_below(geometry->member_count), data = 0, band = 0;
    for (uint32_t i = 0; i < geometry->data_count; i++) {
        data |= mask_of(roles.data_role[i]);
        if (i - input->band.data_first < input->band.data_count)
            band |= mask_of(roles.data_role[i]);
    }
    uint64_t written = band | (all & ~data);
    uint64_t wrong = (written & ~input->writable) | (all & ~written & ~input->readable);
    int fewest = -1;
    if (mask_count(wrong) <= geometry->parity_count) {
        fewest = fewest_reads(input, input->readable & (input->parity_trusted ? all : data));
        mask_for_each (role, all & ~data) /* not trusted: rather one than two that may disagree */
            if (fewest < 0)
                fewest = fewest_reads(input, input->readable & (data | mask_of((uint32_t)role)));
        if (fewest < 0)
            fewest = fewest_reads(input, input->readable);
    }
    struct plan plan;
    int err = plan_write(input, &plan);
    CU_ASSERT_EQUAL(err, fewest < 0 ? -EIO : 0);
    if (err == 0 && (int)plan.read_count != fewest)
        printf("level %d n %u band %u+%u readable %x writable %x trusted %d old %d: %u reads, "
               "not %d\n",
               (int)geometry->level, geometry->member_count, input->band.data_first,
               input->band.data_count, (unsigned)input->readable, (unsigned)input->writable,
               input->parity_trusted, input->need_old, plan.read_count, fewest);
    if (err == 0)
        CU_ASSERT_EQUAL((int)plan.read_count, fewest);
}

static void
writes_take_the_fewest_reads_possible(void)
{
    static const struct config shapes[] = {{RAID5, 2, 2}, {RAID5, 2, 3}, {RAID5, 2, 5},
                                           {RAID6, 2, 4}, {RAID6, 0, 5}, {RAID6, 2, 6},
                                           {RAID6, 2, 7}};
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
        struct geometry geometry;
        CU_ASSERT_FATAL(
            exec_geometry(&geometry, shapes[s].level, shapes[s].layout, shapes[s].members, 8));
        uint64_t all = mask_below(geometry.member_count);
        for (uint64_t readable = 0; readable <= all; readable++)
            for (uint32_t bits = 0; bits < 24; bits++)
                for (uint32_t first = 0; first < geometry.data_count; first++) {
                    struct plan_input input = {
                        .geometry = &geometry,
                        .readable = readable,
                        .writable = bits / 4 == 0       ? readable
                                    : bits / 4 % 3 == 1 ? all
                                                        : rng_u64(&rng) & all,
                        .parity_trusted = bits & 1,
                        .need_old = bits & 2,
                    };
                    CU_ASSERT(band_of_row(&geometry, rng_below(&rng, 8), &input.band));
                    input.band.data_first = first;
                    input.band.data_count =
                        (uint32_t)rng_range(&rng, 1, geometry.data_count - first);
                    compare_with_fewest(&input);
                }
    }
}

SUITE_MAIN("plans", T(any_tolerated_loss_before_or_after_a_write_gives_the_data_back),
           T(untrusted_redundancy_is_made_right_by_writes_and_by_resync),
           T(a_role_that_fails_under_a_plan_costs_no_data), T(random_lives_never_lose_a_byte),
           T(writes_take_the_fewest_reads_possible))
