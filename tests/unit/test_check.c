#include <string.h>

#include "engine/base/check.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

static char text[1024];
static int evaluated;

static uint64_t
count_and_return(uint64_t value)
{
    evaluated++;
    return value;
}

static void
checks_that_hold_do_nothing_and_evaluate_once(void)
{
    evaluated = 0;
    check(count_and_return(1) == 1);
    check_eq(count_and_return(7), count_and_return(7));
    check_ne(1, 2);
    check_lt(1, 2);
    check_le(2, 2);
    check_gt(UINT64_MAX, 0);
    check_ge(2, 2);
    CU_ASSERT_EQUAL(evaluated, 3);
}

static void
fail_plain(void)
{
    check(evaluated == -1);
}

static void
a_failed_check_tells_place_and_expression(void)
{
    CU_ASSERT(dies(fail_plain, text, sizeof(text)));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "test_check.c:"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "evaluated == -1"));
}

static void
fail_eq(void)
{
    check_eq(count_and_return(4096), 4097);
}

static void
a_failed_comparison_tells_both_values(void)
{
    CU_ASSERT(dies(fail_eq, text, sizeof(text)));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "count_and_return(4096) == 4097"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "4096 and 4097"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "0x1001"));
}

static void
fail_ne(void)
{
    check_ne(evaluated, evaluated);
}

static void
fail_lt(void)
{
    check_lt(5, 5);
}

static void
fail_le(void)
{
    check_le(6, 5);
}

static void
fail_gt(void)
{
    check_gt(5, 5);
}

static void
fail_ge(void)
{
    check_ge(5, 6);
}

static void
each_comparison_can_fail(void)
{
    CU_ASSERT(dies(fail_ne, text, sizeof(text)));
    CU_ASSERT(dies(fail_lt, text, sizeof(text)));
    CU_ASSERT(dies(fail_le, text, sizeof(text)));
    CU_ASSERT(dies(fail_gt, text, sizeof(text)));
    CU_ASSERT(dies(fail_ge, text, sizeof(text)));
}

SUITE_MAIN("check", T(checks_that_hold_do_nothing_and_evaluate_once),
           T(a_failed_check_tells_place_and_expression), T(a_failed_comparison_tells_both_values),
           T(each_comparison_can_fail))
