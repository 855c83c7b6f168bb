#include "cli/process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

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

void
process_harden(void)
{
    /* ONFAULT: the caches are large and mostly untouched at first. */
    report("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0);
    report("PR_SET_IO_FLUSHER", prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0);
    CLEANUP_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    report("oom_score_adj", fd >= 0 && write(fd, "-1000", 5) == 5);
}
