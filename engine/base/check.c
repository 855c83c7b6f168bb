#include "engine/base/check.h"

#include <inttypes.h>
#include <stdio.h>

void
check_failed(const char *file, int line, const char *text)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, text);
    abort();
}

void
check_failed_u64(const char *file, int line, const char *text, uint64_t a, uint64_t b)
{
    fprintf(stderr,
            "%s:%d: check failed: %s: %" PRIu64 " and %" PRIu64 " (0x%" PRIx64 ", 0x%" PRIx64 ")\n",
            file, line, text, a, b, a, b);
    abort();
}
