#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/member_rig.h"
#include "tests/unit/suite.h"

static void
contract_on(const char *directory, uint32_t depth)
{
    struct rig rig;
    if (!member_rig_open(&rig, &io_backend_uring, directory, depth, MIB(1)))
        return;
    member_rig_contract(&rig, suite_seed(), 3000);
    member_rig_close(&rig);
}

static void
io_uring_keeps_the_contract_on_a_disk(void)
{
    contract_on(RIG_DISK, 64);
    contract_on(RIG_DISK, 3);
}

static void
io_uring_keeps_the_contract_in_memory(void)
{
    contract_on(RIG_MEMORY, 64);
}

static void
io_uring_reports_the_end_of_a_file_that_shrank(void)
{
    struct rig rig;
    if (!member_rig_open(&rig, &io_backend_uring, RIG_DISK, 4, MIB(1)))
        return;
    uint8_t *memory = member_rig_memory(KIB(64));
    CU_ASSERT_EQUAL(truncate(rig.path, KIB(32)), 0);
    CU_ASSERT_EQUAL(member_rig_io(&rig, REQ_READ, 0, 0, memory, KIB(64)), -EIO);
    free(memory);
    member_rig_close(&rig);
}

/* As a container does: io_uring_setup() is -EPERM from now on. */
static bool
forbid_io_uring(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = ARRAY_LEN(program), .filter = program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static int
create_when_forbidden(void)
{
    struct loop *loop;
    struct io_context *context;
    struct diag diag = {0};
    if (!forbid_io_uring())
        return 77;
    if (loop_create(&loop, clock_real()) != 0)
        return 1;
    int err = io_context_create(&context, loop, IO_URING, 8, &diag);
    bool right = err == -EPERM && strcmp(diag.code, "E_IO_URING_FORBIDDEN") == 0 &&
                 strstr(diag.fix[0], "--io libaio") != NULL;
    loop_destroy(loop); /* nothing stayed registered */
    return right ? 0 : 1;
}

static void
a_host_that_forbids_io_uring_is_told_to_use_libaio(void)
{
    pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0)
        _exit(create_when_forbidden());
    int status;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        printf("skipped: no seccomp\n");
    else
        CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

SUITE_MAIN("io_uring", T(io_uring_keeps_the_contract_on_a_disk),
           T(io_uring_keeps_the_contract_in_memory),
           T(io_uring_reports_the_end_of_a_file_that_shrank),
           T(a_host_that_forbids_io_uring_is_told_to_use_libaio))
