#include "layouts/plan.h"
#include "tests/unit/suite.h"

#define C KIB(64)

static struct geometry geometry;
static struct plan plan;
static struct plan_input input;

/* Array of 8 rows, all roles in use, and the first band of [off, off+len). */
static void
set_up(enum raid_level level, uint32_t layout, uint32_t members, uint64_t off, uint64_t len)
{
    geometry = (struct geometry){
        .level = level,
        .layout = layout,
        .member_count = members,
        .chunk_bytes = C,
        .member_bytes = 8 * C,
    };
    for (uint32_t role = 0; role < members; role++)
        geometry.role_bytes[role] = 8 * C;
    CU_ASSERT_EQUAL_FATAL(geometry_init(&geometry, NULL), 0);
    input = (struct plan_input){
        .geometry = &geometry,
        .readable = mask_below(members),
        .writable = mask_below(members),
        .parity_trusted = true,
    };
    struct band_iter iter;
    band_iter_init(&iter, &geometry, off, len, MIB(1));
    CU_ASSERT_FATAL(band_next(&iter, &input.band));
}

static uint64_t
roles_of(const struct plan_io *ios, uint32_t count)
{
    uint64_t roles = 0;
    for (uint32_t i = 0; i < count; i++)
        roles |= mask_of(ios[i].role);
    return roles;
}

static void
expect(int err, enum plan_method method, uint64_t reads, uint64_t writes, uint32_t sums)
{
    CU_ASSERT_EQUAL(err, 0);
    CU_ASSERT_EQUAL(plan.method, method);
    CU_ASSERT_EQUAL(roles_of(plan.reads, plan.read_count), reads);
    CU_ASSERT_EQUAL(roles_of(plan.writes, plan.write_count), writes);
    CU_ASSERT_EQUAL(plan.sum_count, sums);
    CU_ASSERT_EQUAL(plan.len_bytes, input.band.len_bytes);
}

static void
raid5_small_write_reads_old_data_and_parity(void)
{
    set_up(RAID5, LEFT_SYMMETRIC, 5, 4096, 4096); /* 0 1 2 3 P */
    expect(plan_write(&input, &plan), PLAN_RMW, 0x11, 0x11, 1);
    CU_ASSERT_EQUAL(plan.reads[0].slot, PLAN_OLD(0));
    CU_ASSERT_EQUAL(plan.reads[0].member_off_bytes, 4096);
    CU_ASSERT_EQUAL(plan.writes[1].slot, PLAN_NEW(4));
    CU_ASSERT_EQUAL(plan.sums[0].dst, PLAN_NEW(4));
    CU_ASSERT_EQUAL(plan.sums[0].term_count, 3); /* old P, old and new data */
    CU_ASSERT_EQUAL(plan.sum_merge_index, 0);
}

static void
raid5_larger_write_reads_the_data_not_written(void)
{
    set_up(RAID5, LEFT_SYMMETRIC, 5, 0, 3 * C);
    expect(plan_write(&input, &plan), PLAN_RCW, 0x08, 0x17, 1);
    set_up(RAID5, LEFT_SYMMETRIC, 4, 0, C); /* 2 reads either way: the members written anyway */
    expect(plan_write(&input, &plan), PLAN_RMW, 0x09, 0x09, 1);
}

static void
full_stripe_write_reads_nothing(void)
{
    set_up(RAID6, LEFT_SYMMETRIC, 6, 0, 4 * C);
    expect(plan_write(&input, &plan), PLAN_FULL_STRIPE, 0, 0x3f, 2);
    input.readable = input.writable = 0x3b; /* nor when degraded */
    expect(plan_write(&input, &plan), PLAN_FULL_STRIPE, 0, 0x3b, 2);
}

static void
write_to_a_missing_role_goes_to_the_parity(void)
{
    set_up(RAID5, LEFT_SYMMETRIC, 4, 0, C);
    input.readable = input.writable = 0xe;
    expect(plan_write(&input, &plan), PLAN_RCW, 0x06, 0x08, 1);
}

static void
write_without_parity_member_is_plain(void)
{
    set_up(RAID5, LEFT_SYMMETRIC, 4, 0, C);
    input.readable = input.writable = 0x7;
    expect(plan_write(&input, &plan), PLAN_PLAIN, 0, 0x01, 0);
}

static void
ragged_write_to_a_missing_role_recovers_it_before_the_merge(void)
{
    set_up(RAID5, LEFT_SYMMETRIC, 4, 0, C);
    input.readable = input.writable = 0xe;
    input.need_old = true;
    expect(plan_write(&input, &plan), PLAN_RECOVER, 0x0e, 0x08, 2);
    CU_ASSERT_EQUAL(plan.sum_merge_index, 1);
    CU_ASSERT_EQUAL(plan.sums[0].dst, PLAN_OLD(0));
    CU_ASSERT_EQUAL(plan.sums[1].dst, PLAN_NEW(3));
}

static void
untrusted_parity_is_not_used_while_data_suffices(void)
{
    set_up(RAID5, LEFT_SYMMETRIC, 6, 0, 4096); /* RMW would be 2 reads */
    input.parity_trusted = false;
    expect(plan_write(&input, &plan), PLAN_RCW, 0x1e, 0x21, 1);
    input.readable = input.writable = 0x3d; /* other data missing: no other way */
    expect(plan_write(&input, &plan), PLAN_RMW, 0x21, 0x21, 1);
}

static void
writes_beyond_tolerance_are_refused(void)
{
    for (uint64_t off = 0; off < 6 * C; off += C)
        for (uint64_t roles = 0; roles < 16; roles++) {
            set_up(RAID5, LEFT_SYMMETRIC, 4, off, 4096);
            input.readable = input.writable = roles;
            CU_ASSERT_EQUAL(plan_write(&input, &plan), mask_count(roles) < 3 ? -EIO : 0);
        }
    set_up(RAID0, RAID0_ORIGINAL, 2, 0, 4096);
    input.writable = 2;
    CU_ASSERT_EQUAL(plan_write(&input, &plan), -EIO);
    set_up(RAID1, 0, 2, 0, 4096);
    input.writable = 0;
    CU_ASSERT_EQUAL(plan_write(&input, &plan), -EIO);
}

static void
degraded_read_recovers_into_the_clients_memory(void)
{
    set_up(RAID6, LEFT_SYMMETRIC, 6, 0, 4 * C); /* Q 0 1 2 3 P */
    input.readable = 0x3d;
    expect(plan_read(&input, &plan), PLAN_RECOVER, 0x3c, 0, 1);
    CU_ASSERT_EQUAL(plan.sums[0].dst, PLAN_NEW(1));
    CU_ASSERT_EQUAL(plan.terms[0].slot, PLAN_NEW(2)); /* read for the client anyway */
    CU_ASSERT_EQUAL(plan.terms[3].slot, PLAN_OLD(5)); /* parity: scratch */
    input.readable = 0x39;
    expect(plan_read(&input, &plan), PLAN_RECOVER, 0x39, 0, 2);
    input.readable = 0x3c; /* Q is not needed */
    expect(plan_read(&input, &plan), PLAN_RECOVER, 0x3c, 0, 1);
    input.readable = 0x31;
    CU_ASSERT_EQUAL(plan_read(&input, &plan), -EIO);
}

static void
mirrors_read_what_is_preferred_and_use_the_lowest_slots(void)
{
    set_up(RAID1, 0, 3, C, 4096);
    input.prefer = 0x4;
    expect(plan_read(&input, &plan), PLAN_PLAIN, 0x4, 0, 0);
    CU_ASSERT_EQUAL(plan.reads[0].slot, PLAN_NEW(0));
    input.readable = 0x2;
    expect(plan_read(&input, &plan), PLAN_PLAIN, 0x2, 0, 0);
    input.need_old = true;
    input.writable = 0x6;
    expect(plan_write(&input, &plan), PLAN_PLAIN, 0x2, 0x6, 0);
    CU_ASSERT_EQUAL(plan.reads[0].slot, PLAN_OLD(0));
    CU_ASSERT_EQUAL(plan.writes[1].slot, PLAN_NEW(0));
    input.readable = 0;
    CU_ASSERT_EQUAL(plan_write(&input, &plan), -EIO);
}

static void
sync_writes_targets_from_what_it_may_trust(void)
{
    set_up(RAID6, LEFT_SYMMETRIC, 5, 0, 3 * C); /* Q 0 1 2 P */
    expect(plan_sync(&input, 0x11, &plan), PLAN_RECOVER, 0x0e, 0x11, 2);
    input.readable = 0x1b;
    expect(plan_sync(&input, 0x04, &plan), PLAN_RECOVER, 0x1a, 0x04, 1);
    CU_ASSERT_EQUAL(plan_sync(&input, 0x07, &plan), -EIO);
    input.writable = 0x1b;
    CU_ASSERT_EQUAL(plan_sync(&input, 0x04, &plan), -EIO);
    set_up(RAID10, 0x102, 4, 0, C);
    expect(plan_sync(&input, 0xe, &plan), PLAN_PLAIN, 0x1, 0x2, 0);
    expect(plan_sync(&input, 0xc, &plan), PLAN_PLAIN, 0, 0, 0); /* no copy here */
    CU_ASSERT_EQUAL(plan_sync(&input, 0x3, &plan), -EIO);
}

SUITE_MAIN("plan", T(raid5_small_write_reads_old_data_and_parity),
           T(raid5_larger_write_reads_the_data_not_written), T(full_stripe_write_reads_nothing),
           T(write_to_a_missing_role_goes_to_the_parity), T(write_without_parity_member_is_plain),
           T(ragged_write_to_a_missing_role_recovers_it_before_the_merge),
           T(untrusted_parity_is_not_used_while_data_suffices),
           T(writes_beyond_tolerance_are_refused),
           T(degraded_read_recovers_into_the_clients_memory),
           T(mirrors_read_what_is_preferred_and_use_the_lowest_slots),
           T(sync_writes_targets_from_what_it_may_trust))
