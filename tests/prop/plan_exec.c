#include "tests/prop/plan_exec.h"

#include "layouts/parity.h"

void
exec_init(struct exec *exec, const struct geometry *geometry)
{
    *exec = (struct exec){
        .geometry = geometry,
        .readable = mask_below(geometry->member_count),
        .writable = mask_below(geometry->member_count),
        .parity_trusted = true,
        .poison = true,
        .piece_max_bytes = EXEC_BAND_MAX,
        .member_max = EXEC_MEMBER_MAX,
        .fail_on_read = -1,
        .fail_on_write = -1,
        .slots = malloc((size_t)PLAN_SLOT_COUNT * EXEC_BAND_MAX),
    };
    check(exec->slots != NULL);
    for (uint32_t role = 0; role < geometry->member_count; role++) {
        exec->member[role] = calloc(1, EXEC_MEMBER_MAX);
        check(exec->member[role] != NULL);
    }
}

void
exec_destroy(struct exec *exec)
{
    for (uint32_t role = 0; role < MEMBERS_MAX; role++)
        free(exec->member[role]);
    free(exec->slots);
}

static uint8_t *
slot(struct exec *exec, uint32_t index)
{
    check_lt(index, PLAN_SLOT_COUNT);
    return exec->slots + (size_t)index * EXEC_BAND_MAX;
}

static void
run_sums(struct exec *exec, const struct plan *plan, uint32_t first, uint32_t end)
{
    for (uint32_t s = first; s < end; s++) {
        const struct plan_sum *sum = &plan->sums[s];
        const uint8_t *src[2 * MEMBERS_MAX];
        uint8_t coef[2 * MEMBERS_MAX];
        for (uint32_t t = 0; t < sum->term_count; t++) {
            src[t] = slot(exec, plan->terms[sum->term_first + t].slot);
            coef[t] = plan->terms[sum->term_first + t].coef;
            check_ne(coef[t], 0);
        }
        parity_sum(slot(exec, sum->dst), src, coef, sum->term_count, plan->len_bytes);
    }
}

/* False: a role failed and is out of the masks now. */
static bool
run_reads(struct exec *exec, const struct plan *plan)
{
    size_t used = exec->poison ? (size_t)exec->geometry->member_count * EXEC_BAND_MAX : 0;
    memset(slot(exec, PLAN_OLD(0)), 0xa5, used);
    memset(slot(exec, PLAN_NEW(0)), 0x5a, used);
    for (uint32_t i = 0; i < plan->read_count; i++) {
        const struct plan_io *io = &plan->reads[i];
        check_ne(exec->readable & mask_of(io->role), 0);
        check_le(io->member_off_bytes + plan->len_bytes, exec->member_max);
        memcpy(slot(exec, io->slot), exec->member[io->role] + io->member_off_bytes,
               plan->len_bytes);
        exec->reads++;
    }
    if (exec->fail_on_read < 0)
        return true;
    uint64_t failed = mask_of((uint32_t)exec->fail_on_read);
    exec->fail_on_read = -1;
    exec->readable &= ~failed;
    exec->writable &= ~failed;
    return false;
}

static void
run_writes(struct exec *exec, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->write_count; i++) {
        const struct plan_io *io = &plan->writes[i];
        check_ne(exec->writable & mask_of(io->role), 0);
        check_le(io->member_off_bytes + plan->len_bytes, exec->member_max);
        exec->writes++;
        if ((int32_t)io->role == exec->fail_on_write)
            continue;
        memcpy(exec->member[io->role] + io->member_off_bytes, slot(exec, io->slot),
               plan->len_bytes);
    }
    if (exec->fail_on_write >= 0) {
        exec->readable &= ~mask_of((uint32_t)exec->fail_on_write);
        exec->writable &= ~mask_of((uint32_t)exec->fail_on_write);
        exec->fail_on_write = -1;
    }
}

static struct plan_input
input_of(const struct exec *exec, const struct band *band)
{
    return (struct plan_input){
        .geometry = exec->geometry,
        .band = *band,
        .readable = exec->readable,
        .writable = exec->writable,
        .parity_trusted = exec->parity_trusted,
    };
}

/* Copy between a client range and the PLAN_NEW slots of a band, as far as they overlap. */
static bool
transfer(struct exec *exec, const struct band *band, uint64_t off, uint64_t len, uint8_t *out,
         const uint8_t *in)
{
    bool whole = true;
    for (uint32_t k = 0; k < band->data_count; k++) {
        uint64_t piece = band_data_off(exec->geometry, band, k);
        uint64_t from = MAX(piece, off), to = MIN(piece + band->len_bytes, off + len);
        whole = whole && from == piece && to == piece + band->len_bytes;
        uint8_t *bytes =
            slot(exec, PLAN_NEW(band_data_role(exec->geometry, band, k))) + (from - piece);
        if (out != NULL)
            memcpy(out + (from - off), bytes, to - from);
        if (in != NULL)
            memcpy(bytes, in + (from - off), to - from);
    }
    return whole;
}

int
exec_read(struct exec *exec, uint64_t off, uint64_t len, uint8_t *data)
{
    struct band_iter iter;
    struct band band;
    struct plan plan;
    band_iter_init(&iter, exec->geometry, off, len, exec->piece_max_bytes);
    while (band_next(&iter, &band)) {
        do {
            struct plan_input input = input_of(exec, &band);
            int err = plan_read(&input, &plan);
            if (err < 0)
                return err;
        } while (!run_reads(exec, &plan));
        run_sums(exec, &plan, 0, plan.sum_count);
        transfer(exec, &band, off, len, data, NULL);
    }
    return 0;
}

static int
write_band(struct exec *exec, const struct band *band, uint64_t off, uint64_t len,
           const uint8_t *data)
{
    struct plan plan;
    struct plan_input input;
    do {
        input = input_of(exec, band);
        input.need_old = !transfer(exec, band, off, len, NULL, NULL);
        int err = plan_write(&input, &plan);
        if (err < 0)
            return err;
    } while (!run_reads(exec, &plan));
    run_sums(exec, &plan, 0, plan.sum_merge_index);
    for (uint32_t k = 0; input.need_old && k < band->data_count; k++) {
        uint32_t role = band_data_role(exec->geometry, band, k);
        memcpy(slot(exec, PLAN_NEW(role)), slot(exec, PLAN_OLD(role)), band->len_bytes);
    }
    transfer(exec, band, off, len, NULL, data);
    run_sums(exec, &plan, plan.sum_merge_index, plan.sum_count);
    run_writes(exec, &plan);
    return 0;
}

int
exec_write(struct exec *exec, uint64_t off, uint64_t len, const uint8_t *data)
{
    uint64_t first = round_down(off, EXEC_BLOCK), end = round_up(off + len, EXEC_BLOCK);
    struct band_iter iter;
    struct band band;
    band_iter_init(&iter, exec->geometry, first, end - first, exec->piece_max_bytes);
    while (band_next(&iter, &band)) {
        int err = write_band(exec, &band, off, len, data);
        if (err < 0)
            return err;
    }
    return 0;
}

static uint64_t
redundancy(const struct exec *exec, const struct band *band)
{
    uint64_t roles = 0;
    if (exec->geometry->parity_count > 0) {
        struct row_roles row;
        row_roles(exec->geometry, band->row, &row);
        roles = mask_of((uint32_t)row.p) | (row.q < 0 ? 0 : mask_of((uint32_t)row.q));
        return roles & exec->writable;
    }
    struct place places[MEMBERS_MAX];
    uint32_t count =
        layout_places(exec->geometry, band->array_off_bytes, places, ARRAY_LEN(places));
    for (uint32_t i = 0; i < count; i++)
        roles |= mask_of(places[i].role);
    return roles & exec->writable & ~mask_of(mask_first(roles & exec->readable));
}

int
exec_sync(struct exec *exec, uint64_t targets)
{
    struct band band;
    for (uint64_t row = 0; band_of_row(exec->geometry, row, &band); row++) {
        uint64_t lo = band.lo_bytes, array_off = band.array_off_bytes, len = band.len_bytes;
        for (uint64_t at = 0; at < len; at += EXEC_BAND_MAX) { /* RAID1 rows are longer */
            band.lo_bytes = lo + at;
            band.array_off_bytes = array_off + at;
            band.len_bytes = MIN(len - at, EXEC_BAND_MAX);
            struct plan plan;
            struct plan_input input = input_of(exec, &band);
            int err = plan_sync(
                &input, targets == EXEC_REDUNDANCY ? redundancy(exec, &band) : targets, &plan);
            if (err < 0)
                return err;
            check(run_reads(exec, &plan));
            run_sums(exec, &plan, 0, plan.sum_count);
            run_writes(exec, &plan);
        }
    }
    return 0;
}

bool
exec_geometry(struct geometry *geometry, enum raid_level level, uint32_t layout,
              uint32_t member_count, uint64_t member_chunks)
{
    *geometry = (struct geometry){
        .level = level,
        .layout = layout,
        .member_count = member_count,
        .chunk_bytes = EXEC_CHUNK,
        .member_bytes = member_chunks * EXEC_CHUNK,
    };
    for (uint32_t role = 0; role < member_count; role++)
        geometry->role_bytes[role] = geometry->member_bytes;
    check_le(geometry->member_bytes, EXEC_MEMBER_MAX);
    return geometry_init(geometry, NULL) == 0;
}
