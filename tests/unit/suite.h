/* A test program: CUnit with named sentences, a seed and a time limit.
 *
 *   static void raid5_degraded_read_rebuilds_the_missing_chunk(void) { CU_ASSERT(...); }
 *   SUITE_MAIN("layouts", T(raid5_degraded_read_rebuilds_the_missing_chunk), ...)
 *
 * Options of every program: --seed N (else random, printed), --seeds N (how many for random
 * tests), --only TEXT (tests whose name contains it), --limit SECONDS (default 300).
 * Ends with the line "NAME: N passed, N failed" and exit code 0 or 1. */
#pragma once

#include <CUnit/Basic.h>
#include <stdint.h>

struct suite_test {
    const char *name;
    void (*run)(void);
};

#define T(function)                                                                                \
    {                                                                                              \
#function, function                                                                        \
    }
#define SUITE_MAIN(suite_name, ...)                                                                \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct suite_test tests[] = {__VA_ARGS__};                                    \
        return suite_run(argc, argv, suite_name, tests, sizeof(tests) / sizeof(tests[0]));         \
    }

int suite_run(int argc, char **argv, const char *name, const struct suite_test *tests,
              unsigned count);
uint64_t suite_seed(void);                    /* this run's seed */
uint64_t suite_seeds(uint64_t default_count); /* --seeds N, else the default */
