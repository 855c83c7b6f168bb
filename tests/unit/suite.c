#include "tests/unit/suite.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static uint64_t seed_value;
static uint64_t seeds_asked;

uint64_t
suite_seed(void)
{
    return seed_value;
}

uint64_t
suite_seeds(uint64_t default_count)
{
    return seeds_asked != 0 ? seeds_asked : default_count;
}

static const struct option options[] = {
    {"seed", required_argument, NULL, 's'},
    {"seeds", required_argument, NULL, 'n'},
    {"only", required_argument, NULL, 'o'},
    {"limit", required_argument, NULL, 'l'},
    {NULL, 0, NULL, 0},
};

int
suite_run(int argc, char **argv, const char *name, const struct suite_test *tests, unsigned count)
{
    const char *only = "";
    unsigned limit_s = 300;
    if (getrandom(&seed_value, sizeof(seed_value), 0) != (ssize_t)sizeof(seed_value))
        seed_value = (uint64_t)getpid();
    seed_value &= UINT32_MAX; /* short enough to type */
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 's')
            seed_value = strtoull(optarg, NULL, 0);
        else if (c == 'n')
            seeds_asked = strtoull(optarg, NULL, 0);
        else if (c == 'o')
            only = optarg;
        else if (c == 'l')
            limit_s = (unsigned)strtoul(optarg, NULL, 0);
        else
            return 2;
    }
    alarm(limit_s); /* a test that hangs is a test that failed */
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%s: seed %" PRIu64 "\n", name, seed_value);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite(name, NULL, NULL);
    for (unsigned i = 0; i < count; i++)
        if (strstr(tests[i].name, only) != NULL)
            CU_add_test(suite, tests[i].name, tests[i].run);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_tests_failed();
    unsigned run = CU_get_number_of_tests_run();
    CU_cleanup_registry();
    printf("%s: %u passed, %u failed\n", name, run - failed, failed);
    return failed != 0 || run == 0;
}
