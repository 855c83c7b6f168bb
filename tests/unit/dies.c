#include "tests/unit/dies.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void
run_in_child(void (*run)(void), const int ends[2])
{
    const struct rlimit no_core = {0};
    setrlimit(RLIMIT_CORE, &no_core);
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    run();
    _exit(0);
}

bool
dies(void (*run)(void), char *text, size_t text_bytes)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0)
        run_in_child(run, ends);
    close(ends[1]);
    size_t used = 0;
    char chunk[256];
    for (ssize_t bytes; (bytes = read(ends[0], chunk, sizeof(chunk))) > 0;) {
        size_t part = text_bytes - 1 - used < (size_t)bytes ? text_bytes - 1 - used : (size_t)bytes;
        memcpy(text + used, chunk, part);
        used += part;
    }
    text[used] = '\0';
    close(ends[0]);
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}
