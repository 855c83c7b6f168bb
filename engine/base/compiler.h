/* What the compiler can do for us, under names that read well. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define PRINTF_LIKE(format_arg, first_arg) __attribute__((format(printf, format_arg, first_arg)))
#define NORETURN                           __attribute__((noreturn))
#define COLD                               __attribute__((cold))
#define MUST_CHECK                         __attribute__((warn_unused_result))
#define PACKED                             __attribute__((packed))
#define LIKELY(x)                          __builtin_expect(!!(x), 1)
#define UNLIKELY(x)                        __builtin_expect(!!(x), 0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
/* Through an integer, so that a pointer to const may be given where type is const, too. */
#define CONTAINER_OF(ptr, type, member) ((type *)((uintptr_t)(ptr)-offsetof(type, member)))
#define MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define MAX(a, b)                       ((a) > (b) ? (a) : (b))

/* Scope-long things end by themselves. */
#define CLEANUP_FREE  __attribute__((cleanup(cleanup_free_)))
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close_)))

static inline void
cleanup_free_(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

static inline void
cleanup_close_(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
