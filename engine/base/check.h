/* Checks that stay on in release builds and print both values.
 *
 * A failed check is a bug of ours: it prints the place, the expression and the values, and aborts.
 * Bytes from disk or wire never reach a check unvalidated: they are errno values.
 */
#pragma once

#include "engine/base/compiler.h"

NORETURN COLD void check_failed(const char *file, int line, const char *text);
NORETURN COLD void check_failed_u64(const char *file, int line, const char *text, uint64_t a,
                                    uint64_t b);

#define check(expr)                                                                                \
    do {                                                                                           \
        if (UNLIKELY(!(expr)))                                                                     \
            check_failed(__FILE__, __LINE__, #expr);                                               \
    } while (0)

#define CHECK_OP_(a, op, b)                                                                        \
    do {                                                                                           \
        uint64_t check_a_ = (uint64_t)(a);                                                         \
        uint64_t check_b_ = (uint64_t)(b);                                                         \
        if (UNLIKELY(!(check_a_ op check_b_)))                                                     \
            check_failed_u64(__FILE__, __LINE__, #a " " #op " " #b, check_a_, check_b_);           \
    } while (0)

/* Unsigned comparisons; both values are printed when they do not hold. */
#define check_eq(a, b) CHECK_OP_(a, ==, b)
#define check_ne(a, b) CHECK_OP_(a, !=, b)
#define check_lt(a, b) CHECK_OP_(a, <, b)
#define check_le(a, b) CHECK_OP_(a, <=, b)
#define check_gt(a, b) CHECK_OP_(a, >, b)
#define check_ge(a, b) CHECK_OP_(a, >=, b)
