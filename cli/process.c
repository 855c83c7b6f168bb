#include "cli/process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "engine/base/compiler.h"
#include "engine/base/msg.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

static void
report(const char *what, bool done)
{
    if (!done)
        msg(MSG_DEBUG, "%s: %s", what, strerror(errno));
}

/* ONFAULT: the caches are large and mostly untouched at first.  Only without a limit: else some
 * later mmap() would fail. */
static bool
lock_memory(void)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0 && getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
        return false;
    if (limit.rlim_cur != RLIM_INFINITY) {
        errno = EPERM;
        return false;
    }
    return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}

void
process_harden(void)
{
    report("mlockall", lock_memory());
    report("PR_SET_IO_FLUSHER", prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0);
    CLEANUP_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    report("oom_score_adj", fd >= 0 && write(fd, "-1000", 5) == 5);
}
