/* Scans and assemblies of real files: what is found, what is refused, what is left as it was. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/bitset.h"
#include "engine/base/rng.h"

#include "engine/assemble.h"
#include "engine/create.h"
#include "tests/unit/suite.h"

#define MEMBERS     4
#define MEMBER_SIZE MIB(16)
#define PATH_BYTES  256

/* An array of files, a loop to serve it on, and the last scan. */
static struct rig {
    char dir[128];
    char paths[MEMBERS][PATH_BYTES];
    struct loop *loop;
    struct io_context *io;
    struct scan scan;
    bool scanned;
    struct array *array;
    struct diag diag;
    uint32_t count; /* members */
} rig;

static void
make_member_file(uint32_t i)
{
    int fd = open(rig.paths[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)MEMBER_SIZE) == 0);
    close(fd);
}

static int
create_on(struct blob *const *blobs, enum raid_level level, uint32_t count)
{
    const bool zeroed[MEMBERS] = {true, true, true, true};
    const struct create_options options = {.name = "tank",
                                           .level = level,
                                           .layout = layout_default(level),
                                           .chunk_bytes = level == RAID1 ? 0 : KIB(64),
                                           .consistency = "resync",
                                           .policy = "auto",
                                           .wall_ns = UINT64_C(1700000000) * SECOND_NS};
    struct create_result result;
    const struct create_members members = {.blobs = blobs, .zeroed = zeroed, .member_count = count};
    return create_array(&options, &members, &result, &rig.diag);
}

static void
rig_make(enum raid_level level, uint32_t count)
{
    const char *tmp = getenv("TEST_TMP");
    struct blob *blobs[MEMBERS] = {NULL};
    memset(&rig, 0, sizeof(rig));
    rig.count = count;
    snprintf(rig.dir, sizeof(rig.dir), "%s/assemble.XXXXXX", tmp != NULL ? tmp : "/tmp");
    CU_ASSERT_FATAL(mkdtemp(rig.dir) != NULL);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(rig.paths[i], PATH_BYTES, "%s/m%" PRIu32, rig.dir, i);
        make_member_file(i);
        CU_ASSERT_EQUAL_FATAL(blob_file_open(&blobs[i], rig.paths[i], false, &rig.diag), 0);
    }
    CU_ASSERT_EQUAL_FATAL(create_on(blobs, level, count), 0);
    for (uint32_t i = 0; i < count; i++)
        blob_close(blobs[i]);
    CU_ASSERT_EQUAL_FATAL(loop_create(&rig.loop, clock_real()), 0);
    CU_ASSERT_EQUAL_FATAL(io_context_create(&rig.io, rig.loop, IO_LIBAIO, 64, &rig.diag), 0);
}

static void
forget_scan(void)
{
    if (rig.scanned)
        scan_destroy(&rig.scan);
    rig.scanned = false;
}

static void
rig_end(void)
{
    forget_scan();
    io_context_destroy(rig.io);
    loop_destroy(rig.loop);
    for (uint32_t i = 0; i < rig.count; i++)
        unlink(rig.paths[i]);
    CU_ASSERT_EQUAL(rmdir(rig.dir), 0);
}

/* ---- doing it ------------------------------------------------------------------------------- */

/* The only array among these; its members are rig.paths[] of the roles in `which`. */
static struct found_array *
scan_specs_of(const char *const *specs, uint32_t count, const char *keep)
{
    forget_scan();
    CU_ASSERT_EQUAL_FATAL(scan_specs(&rig.scan, specs, count, keep), 0);
    rig.scanned = true;
    CU_ASSERT_EQUAL_FATAL(rig.scan.array_count, 1);
    return &rig.scan.arrays[0];
}

static struct found_array *
scan_roles(uint64_t which)
{
    const char *specs[MEMBERS];
    uint32_t count = 0;
    mask_for_each (i, which)
        specs[count++] = rig.paths[i];
    return scan_specs_of(specs, count, NULL);
}

static int
start(const struct found_array *found)
{
    const struct assemble_options how = {.io = rig.io, .loop = rig.loop};
    memset(&rig.diag, 0, sizeof(rig.diag));
    int err = assemble(&rig.array, found, &how, &rig.diag);
    if (err < 0)
        rig.array = NULL;
    return err;
}

static void
stopped(void *ctx, int err)
{
    CU_ASSERT_EQUAL(err, 0);
    *(bool *)ctx = true;
}

static void
stop(void)
{
    bool done = false;
    array_stop(rig.array, stopped, &done);
    CU_ASSERT_EQUAL(loop_run_until(rig.loop, &done), 0);
}

struct op {
    struct req req;
    bool done;
};

static void
op_done(struct req *req)
{
    CONTAINER_OF(req, struct op, req)->done = true;
}

static int
run_op(enum req_op kind, uint64_t off_bytes, void *memory)
{
    struct iovec iov = {memory, BLOCK_BYTES};
    struct op op = {.req = {.op = kind,
                            .off_bytes = off_bytes,
                            .len_bytes = BLOCK_BYTES,
                            .iov = &iov,
                            .iov_count = 1,
                            .done = op_done}};
    dev_submit(array_dev(rig.array), &op.req);
    CU_ASSERT_EQUAL(loop_run_until(rig.loop, &op.done), 0);
    return op.req.err;
}

static void
put(uint64_t off_bytes, uint8_t value)
{
    uint8_t memory[BLOCK_BYTES];
    memset(memory, value, sizeof(memory));
    CU_ASSERT_EQUAL(run_op(REQ_WRITE, off_bytes, memory), 0);
}

static int
get(uint64_t off_bytes)
{
    uint8_t memory[BLOCK_BYTES];
    int err = run_op(REQ_READ, off_bytes, memory);
    return err < 0 ? err : memory[BLOCK_BYTES - 1];
}

static struct array_status *
status(void)
{
    static struct array_status now;
    array_status(rig.array, &now);
    return &now;
}

static uint64_t
hash_files(void)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    uint8_t *bytes = malloc(MEMBER_SIZE);
    for (uint32_t i = 0; i < rig.count; i++) {
        int fd = open(rig.paths[i], O_RDONLY | O_CLOEXEC);
        CU_ASSERT_EQUAL(read(fd, bytes, MEMBER_SIZE), (ssize_t)MEMBER_SIZE);
        close(fd);
        for (uint64_t at = 0; at < MEMBER_SIZE; at += sizeof(uint64_t)) {
            uint64_t word;
            memcpy(&word, bytes + at, sizeof(word));
            hash = (hash ^ word) * UINT64_C(1099511628211);
        }
    }
    free(bytes);
    return hash;
}

/* Refused with that code, and not a byte has changed (P4). */
static void
refused(const struct found_array *found, const char *code)
{
    uint64_t before = hash_files();
    CU_ASSERT(start(found) < 0);
    CU_ASSERT_STRING_EQUAL(rig.diag.code, code);
    CU_ASSERT_EQUAL(hash_files(), before);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void
a_complete_array_starts_in_any_order(void)
{
    rig_make(RAID5, 4);
    struct rng rng;
    rng_seed(&rng, suite_seed());
    CU_ASSERT_EQUAL_FATAL(start(scan_roles(0xf)), 0);
    for (uint64_t i = 0; i < 16; i++)
        put(i * KIB(64), (uint8_t)(i + 1));
    stop();
    for (unsigned turn = 0; turn < 6; turn++) {
        const char *specs[MEMBERS] = {rig.paths[0], rig.paths[1], rig.paths[2], rig.paths[3]};
        for (uint32_t i = MEMBERS; i-- > 1;) {
            uint64_t j = rng_range(&rng, 0, i);
            const char *other = specs[j];
            specs[j] = specs[i];
            specs[i] = other;
        }
        struct found_array *found = scan_specs_of(specs, MEMBERS, NULL);
        CU_ASSERT(found->err == 0 && found->enough && found->complete && !found->decision.dirty);
        CU_ASSERT_STRING_EQUAL(found->name, "tank");
        CU_ASSERT_EQUAL_FATAL(start(found), 0);
        CU_ASSERT_EQUAL(status()->state, AS_ONLINE);
        for (uint64_t i = 0; i < 16; i++)
            CU_ASSERT_EQUAL(get(i * KIB(64)), (int)i + 1);
        array_abandon(rig.array);
    }
    rig_end();
}

static void
a_degraded_one_says_so_and_a_stale_member_is_left_out(void)
{
    rig_make(RAID5, 4);
    struct found_array *found = scan_roles(0xd);
    CU_ASSERT(found->err == 0 && found->enough && !found->complete);
    CU_ASSERT_EQUAL(found->decision.present_roles, 0xd);
    CU_ASSERT_EQUAL_FATAL(start(found), 0);
    CU_ASSERT_EQUAL(status()->state, AS_DEGRADED);
    for (uint64_t i = 0; i < 8; i++)
        put(i * KIB(64), (uint8_t)(i + 100));
    stop();

    found = scan_roles(0xf);
    CU_ASSERT(found->err == 0 && found->enough);
    CU_ASSERT_EQUAL(found->decision.members[1].class, MEMBER_STALE);
    CU_ASSERT_NOT_EQUAL(found->decision.members[1].why[0], '\0');
    CU_ASSERT_EQUAL_FATAL(start(found), 0);
    CU_ASSERT_EQUAL(status()->state, AS_DEGRADED);
    for (uint64_t i = 0; i < 8; i++)
        CU_ASSERT_EQUAL(get(i * KIB(64)), (int)i + 100);
    stop();
    rig_end();
}

static void
too_few_are_not_enough(void)
{
    rig_make(RAID5, 4);
    struct found_array *found = scan_roles(0x9);
    CU_ASSERT(found->err == 0 && !found->enough && !found->complete);
    refused(found, "E_NOT_ENOUGH_MEMBERS");
    rig_end();
}

static void
one_file_by_several_names_is_one_member_and_a_copy_is_refused(void)
{
    char link[PATH_BYTES + 8], command[3 * PATH_BYTES];
    rig_make(RAID5, 3);
    snprintf(link, sizeof(link), "%s.link", rig.paths[0]);
    CU_ASSERT_EQUAL(symlink(rig.paths[0], link), 0);
    const char *specs[] = {rig.paths[0], link, rig.paths[1], rig.paths[2], rig.paths[1]};
    struct found_array *found = scan_specs_of(specs, 5, NULL);
    CU_ASSERT_EQUAL(rig.scan.member_count, 3);
    CU_ASSERT(found->err == 0 && found->complete);
    unlink(link);

    snprintf(command, sizeof(command), "cp --sparse=always %s %s", rig.paths[0], link);
    CU_ASSERT_EQUAL(system(command), 0);
    found = scan_specs_of(specs, 5, NULL);
    CU_ASSERT_EQUAL(rig.scan.member_count, 4);
    CU_ASSERT_STRING_EQUAL(found->diag.code, "E_DUPLICATE");
    refused(found, "E_DUPLICATE");
    found = scan_specs_of(specs, 5, link);
    CU_ASSERT_EQUAL(found->err, 0);
    CU_ASSERT_EQUAL(found->decision.members[0].class, MEMBER_DUPLICATE);
    CU_ASSERT_EQUAL(found->decision.members[1].class, MEMBER_ACTIVE);
    unlink(link);
    rig_end();
}

static void
what_is_no_member_does_not_hinder(void)
{
    rig_make(RAID1, 2);
    const char *specs[] = {"/nonexistent", rig.dir, rig.paths[0], "/dev/null", rig.paths[1]};
    struct found_array *found = scan_specs_of(specs, 5, NULL);
    CU_ASSERT_EQUAL(rig.scan.member_count, 5);
    CU_ASSERT(found->err == 0 && found->complete && found->member_count == 2);
    CU_ASSERT(rig.scan.members[0].err < 0 && rig.scan.members[1].err < 0);
    CU_ASSERT_STRING_EQUAL(rig.scan.members[3].diag.code, "E_OPEN");
    rig_end();
}

static void
a_fault_spec_is_opened_behind_its_wrapper(void)
{
    char fault[PATH_BYTES + 32];
    rig_make(RAID1, 2);
    snprintf(fault, sizeof(fault), "fault:eio-read:%s", rig.paths[0]);
    const char *specs[] = {fault, rig.paths[1]};
    CU_ASSERT_EQUAL_FATAL(start(scan_specs_of(specs, 2, NULL)), 0);
    put(0, 42);
    for (unsigned i = 0; i < 8; i++)
        CU_ASSERT_EQUAL(get(0), 42);
    CU_ASSERT(status()->members[0].read_errors > 0);
    CU_ASSERT_STRING_EQUAL(status()->members[0].path, rig.paths[0]);
    stop();
    rig_end();
}

static void
members_in_use_are_refused(void)
{
    struct blob *held;
    rig_make(RAID5, 3);
    CU_ASSERT_EQUAL_FATAL(blob_file_open(&held, rig.paths[2], false, &rig.diag), 0);
    struct found_array *found = scan_roles(0x7); /* a scan does not mind */
    CU_ASSERT(found->err == 0 && found->complete);
    refused(found, "E_IN_USE");
    CU_ASSERT(strstr(rig.diag.message, rig.paths[2]) != NULL);
    blob_close(held);
    CU_ASSERT_EQUAL_FATAL(start(found), 0); /* the members that were opened were let go */
    array_abandon(rig.array);
    rig_end();
}

static void
what_changed_since_the_scan_is_not_started(void)
{
    rig_make(RAID5, 3);
    CU_ASSERT_EQUAL_FATAL(start(scan_roles(0x7)), 0);
    struct scan old = rig.scan;
    rig.scanned = false;
    put(0, 1);
    stop();
    refused(&old.arrays[0], "E_CHANGED");
    CU_ASSERT_EQUAL(rig.diag.class, DIAG_BUSY);
    scan_destroy(&old);
    CU_ASSERT_EQUAL_FATAL(start(scan_roles(0x7)), 0);
    stop();
    rig_end();
}

/* As if cut off: the slots of generation 1 are gone from these members. */
static void
unfinish(uint64_t which)
{
    static const uint8_t zeroes[AREA_SLOT_BYTES];
    mask_for_each (i, which) {
        int fd = open(rig.paths[i], O_RDWR | O_CLOEXEC);
        uint8_t raw[2 * AREA_SLOT_BYTES];
        struct area area;
        unsigned slot;
        CU_ASSERT_EQUAL(pread(fd, raw, sizeof(raw), AREA_OFF_BYTES), (ssize_t)sizeof(raw));
        CU_ASSERT_FATAL(area_decode(raw, &area, &slot) && area.generation == 1);
        CU_ASSERT_EQUAL(
            pwrite(fd, zeroes, sizeof(zeroes), (off_t)(AREA_OFF_BYTES + slot * AREA_SLOT_BYTES)),
            (ssize_t)sizeof(zeroes));
        close(fd);
    }
}

static void
an_unfinished_creation_is_refused_or_finished(void)
{
    rig_make(RAID5, 3);
    unfinish(0x6);
    struct found_array *found = scan_roles(0x6); /* nobody here says that it was completed */
    CU_ASSERT_STRING_EQUAL(found->diag.code, "E_CREATE_UNFINISHED");
    refused(found, "E_CREATE_UNFINISHED");
    refused(scan_roles(0x1), "E_NOT_ENOUGH_MEMBERS");
    CU_ASSERT_EQUAL_FATAL(start(scan_roles(0x7)), 0); /* member 0 knows better: tell the others */
    array_abandon(rig.array);
    CU_ASSERT_EQUAL(scan_roles(0x6)->err, 0);
    rig_end();
}

static void
a_refusal_does_not_finish_a_creation(void)
{
    rig_make(RAID5, 4);
    unfinish(0x2);
    refused(scan_roles(0x3), "E_NOT_ENOUGH_MEMBERS");
    rig_end();
}

SUITE_MAIN("engine/assemble", T(a_complete_array_starts_in_any_order),
           T(a_degraded_one_says_so_and_a_stale_member_is_left_out), T(too_few_are_not_enough),
           T(one_file_by_several_names_is_one_member_and_a_copy_is_refused),
           T(what_is_no_member_does_not_hinder), T(a_fault_spec_is_opened_behind_its_wrapper),
           T(members_in_use_are_refused), T(what_changed_since_the_scan_is_not_started),
           T(an_unfinished_creation_is_refused_or_finished),
           T(a_refusal_does_not_finish_a_creation))
