#include <string.h>

#include "engine/io/io_fault.h"
#include "engine/io/io_fault_rules.h"
#include "engine/io/io_sim.h"
#include "tests/unit/member_rig.h"
#include "tests/unit/suite.h"

#define MEMBER_BYTES MIB(4)

/* A fault device over a simulated member whose requests take one microsecond. */
struct faulty {
    struct clock_virtual clock;
    struct loop *loop;
    struct sim_member *member;
    struct dev *dev;
    uint8_t *memory;
};

static void
faulty_start(struct faulty *faulty, const char *rules)
{
    static const struct sim_config config = {.size_bytes = MEMBER_BYTES,
                                             .logical_bytes = SECTOR_BYTES,
                                             .latency_ns_min = 1000,
                                             .latency_ns_max = 1000,
                                             .can_zero = true};
    struct dev *below;
    clock_virtual_init(&faulty->clock);
    CU_ASSERT_EQUAL_FATAL(loop_create(&faulty->loop, &faulty->clock.clock), 0);
    CU_ASSERT_EQUAL_FATAL(sim_member_create(&faulty->member, faulty->loop, &config, 1), 0);
    CU_ASSERT_EQUAL_FATAL(sim_member_open(faulty->member, &below), 0);
    CU_ASSERT_EQUAL_FATAL(io_fault_create(&faulty->dev, below, faulty->loop, rules, NULL), 0);
    faulty->memory = member_rig_memory(KIB(64));
}

static void
faulty_end(struct faulty *faulty)
{
    dev_close(faulty->dev);
    sim_member_destroy(faulty->member);
    loop_destroy(faulty->loop);
    free(faulty->memory);
}

static int
call(struct faulty *faulty, enum req_op op, uint64_t off_bytes, uint64_t len_bytes)
{
    return member_rig_call(faulty->loop, faulty->dev, op, 0, off_bytes, faulty->memory, len_bytes);
}

/* ---- the grammar ----------------------------------------------------------------------------- */

static void
rules_are_read_with_their_numbers(void)
{
    struct fault_rules r;
    CU_ASSERT_EQUAL(fault_rules_parse(&r, "", NULL), 0);
    CU_ASSERT_EQUAL(r.count, 0);
    CU_ASSERT_EQUAL_FATAL(
        fault_rules_parse(&r,
                          "eio-read@4K+512,delay=20,short,short=2MiB,flip@0x10,eio-flush,"
                          "enospc@1MB+1GB,hang,gone,eio-write",
                          NULL),
        0);
    CU_ASSERT_EQUAL(r.count, 10);
    CU_ASSERT(r.rules[0].off_bytes == 4096 && r.rules[0].len_bytes == 512);
    CU_ASSERT(r.rules[1].kind == FAULT_DELAY && r.rules[1].value == 20);
    CU_ASSERT(r.rules[2].value == MIB(1) && r.rules[3].value == MIB(2));
    CU_ASSERT(r.rules[4].off_bytes == 16 && r.rules[4].len_bytes == 1);
    CU_ASSERT(r.rules[6].off_bytes == 1000000 && r.rules[6].len_bytes == 1000000000);
    CU_ASSERT_EQUAL(r.rules[9].len_bytes, UINT64_MAX);
    CU_ASSERT_PTR_NULL(fault_rules_find(&r, FAULT_EIO_READ, 0, 4096));
    CU_ASSERT_PTR_NOT_NULL(fault_rules_find(&r, FAULT_EIO_READ, 0, 4097));
    CU_ASSERT_PTR_NOT_NULL(fault_rules_find(&r, FAULT_EIO_WRITE, 7, 1));
}

static void
a_bad_rule_is_refused_and_the_known_ones_are_named(void)
{
    static const char *const bad[] = {
        "eio",
        "eio-read@",
        "eio-read@5+",
        "eio-read@5+0",
        "delay",
        "delay=",
        "delay=x",
        "delay=9999999999",
        "flip",
        "flip=3",
        "hang=1",
        "gone@1",
        "short@1",
        "hang,",
        ",hang",
        "hang,,gone",
        "eio-flush@",
        "delay=1x",
        "short=-1",
        "enospc=1",
        "eio-read @1",
        " hang",
        "HANG",
        "flip@1+2+3",
        "short=1KiBx",
        "eio-read@18446744073709551615+2",
        "short=99999999999999999999",
        "short=20000000T",
        "hang,hang,hang,hang,hang,hang,hang,hang,hang,hang,hang,hang,hang,hang,hang,hang,hang"};
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        struct fault_rules rules;
        struct diag diag = {0};
        CU_ASSERT_EQUAL(fault_rules_parse(&rules, bad[i], &diag), -EINVAL);
        CU_ASSERT_EQUAL(diag.class, DIAG_USAGE);
        CU_ASSERT_PTR_NOT_NULL(strstr(diag.fix[0], "eio-read[@OFF+LEN]"));
        CU_ASSERT_PTR_NOT_NULL(strstr(diag.fix[0], "flip@OFF[+LEN]"));
    }
}

/* ---- the device ------------------------------------------------------------------------------ */

static void
without_rules_it_is_the_device_below(void)
{
    struct faulty f;
    faulty_start(&f, "");
    CU_ASSERT_TRUE(io_fault_is(f.dev));
    CU_ASSERT_EQUAL(dev_info(f.dev).size_bytes, MEMBER_BYTES);
    struct rig rig = {.loop = f.loop, .dev = f.dev};
    member_rig_contract(&rig, suite_seed(), 500);
    faulty_end(&f);
}

static void
errors_meet_what_their_range_touches(void)
{
    struct faulty f;
    struct diag diag;
    faulty_start(&f, "eio-read@4K+4K,eio-write@8K+1,enospc@16K+4K");
    CU_ASSERT_EQUAL(call(&f, REQ_READ, 0, KIB(4)), 0);
    CU_ASSERT_EQUAL(call(&f, REQ_READ, 0, KIB(4) + 512), -EIO);
    CU_ASSERT_EQUAL(call(&f, REQ_READ, KIB(8), KIB(4)), 0);
    CU_ASSERT_EQUAL(call(&f, REQ_WRITE, KIB(4), KIB(4)), 0);
    CU_ASSERT_EQUAL(call(&f, REQ_WRITE, KIB(8), 512), -EIO);
    CU_ASSERT_EQUAL(call(&f, REQ_ZERO, KIB(8), 512), -EIO);
    CU_ASSERT_EQUAL(call(&f, REQ_TRIM, KIB(8), 512), -EIO);
    CU_ASSERT_EQUAL(call(&f, REQ_WRITE, KIB(16), 512), -ENOSPC);
    CU_ASSERT_EQUAL(call(&f, REQ_FLUSH, 0, 0), 0);
    CU_ASSERT_EQUAL(io_fault_set(f.dev, "eio-flush,nonsense", &diag), -EINVAL);
    CU_ASSERT_EQUAL(call(&f, REQ_WRITE, KIB(8), 512), -EIO); /* nothing changed */
    CU_ASSERT_EQUAL(io_fault_set(f.dev, "eio-flush", &diag), 0);
    CU_ASSERT_EQUAL(call(&f, REQ_FLUSH, 0, 0), -EIO);
    CU_ASSERT_EQUAL(call(&f, REQ_WRITE, KIB(8), 512), 0);
    CU_ASSERT_EQUAL(io_fault_set(f.dev, "gone", &diag), 0);
    CU_ASSERT_EQUAL(call(&f, REQ_READ, 0, 512), -ENODEV);
    CU_ASSERT_EQUAL(call(&f, REQ_FLUSH, 0, 0), -ENODEV);
    CU_ASSERT_EQUAL(io_fault_set(f.dev, "", &diag), 0);
    CU_ASSERT_EQUAL(call(&f, REQ_FLUSH, 0, 0), 0);
    faulty_end(&f);
}

static void
only_a_fault_device_takes_rules(void)
{
    struct faulty f;
    struct diag diag;
    faulty_start(&f, "");
    sim_member_power_cut(f.member);
    struct dev *other;
    CU_ASSERT_EQUAL_FATAL(sim_member_open(f.member, &other), 0);
    CU_ASSERT_FALSE(io_fault_is(other));
    CU_ASSERT_EQUAL(io_fault_set(other, "gone", &diag), -ENOTSUP);
    dev_close(other);
    faulty_end(&f);
}

static uint32_t ended;
static int ended_err;

static void
count_done(struct req *req)
{
    ended++;
    ended_err = req->err;
}

static void
delays_add_to_the_time_of_every_request(void)
{
    struct faulty f;
    faulty_start(&f, "delay=20");
    uint64_t start_ns = f.clock.now_ns_value;
    struct req many[100];
    ended = 0;
    for (unsigned i = 0; i < ARRAY_LEN(many); i++) {
        many[i] = (struct req){.op = REQ_FLUSH, .done = count_done};
        dev_submit(f.dev, &many[i]);
    }
    CU_ASSERT_EQUAL(call(&f, REQ_READ, 0, 512), 0);
    CU_ASSERT_EQUAL(f.clock.now_ns_value - start_ns, 20 * MS_NS + 1000);
    CU_ASSERT_EQUAL(call(&f, REQ_READ, 0, 512), 0);
    CU_ASSERT_EQUAL(f.clock.now_ns_value - start_ns, 40 * MS_NS + 2000);
    CU_ASSERT_EQUAL(ended, ARRAY_LEN(many));
    faulty_end(&f);
}

static void
hung_requests_go_on_when_the_rule_goes(void)
{
    struct faulty f;
    struct diag diag;
    static const char *const after[] = {"", "gone", "delay=5", "eio-flush"};
    static const int answers[] = {0, -ENODEV, 0, -EIO};
    for (unsigned i = 0; i < ARRAY_LEN(after); i++) {
        struct req a = {.op = REQ_FLUSH, .done = count_done}, b = a;
        faulty_start(&f, "hang");
        ended = 0;
        dev_submit(f.dev, &a);
        dev_submit(f.dev, &b);
        CU_ASSERT_EQUAL(loop_run(f.loop), -EDEADLK);
        CU_ASSERT_EQUAL(ended, 0);
        CU_ASSERT_EQUAL(io_fault_set(f.dev, after[i], &diag), 0);
        CU_ASSERT_EQUAL(ended, 0); /* not from inside */
        CU_ASSERT_EQUAL(loop_run(f.loop), -EDEADLK);
        CU_ASSERT_EQUAL(ended, 2);
        CU_ASSERT_EQUAL(ended_err, answers[i]);
        faulty_end(&f);
    }
}

static void
flips_invert_what_is_read_and_not_what_is_written(void)
{
    struct faulty f;
    struct diag diag;
    faulty_start(&f, "flip@1000+100,flip@4095");
    memset(f.memory, 0x11, KIB(8));
    CU_ASSERT_EQUAL(call(&f, REQ_WRITE, 0, KIB(8)), 0);
    CU_ASSERT_EQUAL(call(&f, REQ_READ, 0, KIB(8)), 0);
    for (unsigned i = 0; i < KIB(8); i++)
        CU_ASSERT_EQUAL(f.memory[i], (i >= 1000 && i < 1100) || i == 4095 ? 0xee : 0x11);
    CU_ASSERT_EQUAL(io_fault_set(f.dev, "", &diag), 0);
    CU_ASSERT_EQUAL(call(&f, REQ_READ, 0, KIB(8)), 0);
    CU_ASSERT(f.memory[1000] == 0x11 && f.memory[4095] == 0x11);
    faulty_end(&f);
}

static void
more_flipped_reads_than_copies_wait_for_one(void)
{
    struct faulty f;
    static struct req reqs[300];
    struct iovec iov[300];
    faulty_start(&f, "flip@0");
    ended = 0;
    for (unsigned i = 0; i < ARRAY_LEN(reqs); i++) {
        iov[i] = (struct iovec){f.memory, 512};
        reqs[i] = (struct req){
            .op = REQ_READ, .len_bytes = 512, .iov = &iov[i], .iov_count = 1, .done = count_done};
        dev_submit(f.dev, &reqs[i]);
    }
    CU_ASSERT_EQUAL(loop_run(f.loop), -EDEADLK);
    CU_ASSERT_EQUAL(ended, ARRAY_LEN(reqs));
    faulty_end(&f);
}

static void
a_short_device_is_that_much_smaller(void)
{
    struct faulty f;
    struct diag diag;
    faulty_start(&f, "short=1000");
    CU_ASSERT_EQUAL(dev_info(f.dev).size_bytes, MEMBER_BYTES - 1024); /* whole blocks */
    CU_ASSERT_EQUAL(io_fault_set(f.dev, "short=2M", &diag), 0);
    CU_ASSERT_EQUAL(dev_info(f.dev).size_bytes, MEMBER_BYTES - 1024); /* only at open */
    faulty_end(&f);
}

SUITE_MAIN("io_fault", T(rules_are_read_with_their_numbers),
           T(a_bad_rule_is_refused_and_the_known_ones_are_named),
           T(without_rules_it_is_the_device_below), T(errors_meet_what_their_range_touches),
           T(only_a_fault_device_takes_rules), T(delays_add_to_the_time_of_every_request),
           T(hung_requests_go_on_when_the_rule_goes),
           T(flips_invert_what_is_read_and_not_what_is_written),
           T(more_flipped_reads_than_copies_wait_for_one), T(a_short_device_is_that_much_smaller))
