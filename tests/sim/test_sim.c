/* Whole arrays on simulated members: README.md here says what and how. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "engine/base/msg.h"

#include "layouts/parity.h"
#include "tests/sim/run.h"
#include "tests/unit/suite.h"

#define SEEDS_DEFAULT  2000u
#define FAILURES_SHOWN 3u

/* A check of the engine's has failed: say which run it was. */
static void
aborted(int signal_number)
{
    (void)signal_number;
    signal(SIGABRT, SIG_DFL);
    run_print_running();
}

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void
no_acknowledged_byte_is_lost_within_tolerance(void)
{
    uint64_t failed = 0, hash, seeds = suite_seeds(SEEDS_DEFAULT);
    signal(SIGABRT, aborted);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(run_print_running);
    CU_ASSERT_EQUAL_FATAL(parity_selftest(), 0);
    for (uint64_t i = 0; i < seeds && failed < FAILURES_SHOWN; i++)
        if (!run_seed(suite_seed() + i, &hash)) {
            printf("again: --only no_ack --seed %" PRIu64 " --seeds 1\n", suite_seed() + i);
            failed++;
        }
    CU_ASSERT_EQUAL(failed, 0);
}

static void
a_seed_repeats_a_run_bit_for_bit(void)
{
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t first = 0, second = 1;
        bool good = run_seed(suite_seed() + i, &first);
        CU_ASSERT_EQUAL(run_seed(suite_seed() + i, &second), good);
        CU_ASSERT_EQUAL(first, second);
    }
}

SUITE_MAIN("sim", T(no_acknowledged_byte_is_lost_within_tolerance),
           T(a_seed_repeats_a_run_bit_for_bit))
