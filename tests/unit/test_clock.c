#include <time.h>

#include "engine/base/clock.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

static struct clock_virtual virtual_clock;

static void
a_virtual_clock_moves_only_when_told(void)
{
    clock_virtual_init(&virtual_clock);
    struct clock *clock = &virtual_clock.clock;
    CU_ASSERT_EQUAL(clock_now_ns(clock), 0);
    uint64_t wall_ns = clock_wall_ns(clock);
    CU_ASSERT_EQUAL(clock_now_ns(clock), 0);
    clock_virtual_advance(&virtual_clock, 7 * SECOND_NS);
    clock_virtual_advance(&virtual_clock, 7 * SECOND_NS);
    CU_ASSERT_EQUAL(clock_now_ns(clock), 7 * SECOND_NS);
    CU_ASSERT_EQUAL(clock_wall_ns(clock), wall_ns + 7 * SECOND_NS);
}

static void
every_simulation_starts_at_the_same_date(void)
{
    struct tm date = {.tm_year = 2026 - 1900, .tm_mday = 1};
    clock_virtual_init(&virtual_clock);
    CU_ASSERT_EQUAL(clock_wall_ns(&virtual_clock.clock), (uint64_t)timegm(&date) * SECOND_NS);
}

static void
advance_backwards(void)
{
    clock_virtual_advance(&virtual_clock, 4);
}

static void
time_does_not_go_back(void)
{
    char text[256];
    clock_virtual_init(&virtual_clock);
    clock_virtual_advance(&virtual_clock, 5);
    CU_ASSERT(dies(advance_backwards, text, sizeof(text)));
    uint64_t last_ns = clock_now_ns(clock_real());
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t now_ns = clock_now_ns(clock_real());
        CU_ASSERT(now_ns >= last_ns);
        last_ns = now_ns;
    }
}

static void
the_real_wall_clock_is_that_of_the_system(void)
{
    time_t before = time(NULL);
    uint64_t wall_s = clock_wall_ns(clock_real()) / SECOND_NS;
    time_t after = time(NULL);
    CU_ASSERT(wall_s >= (uint64_t)before && wall_s <= (uint64_t)after + 1);
}

SUITE_MAIN("clock", T(a_virtual_clock_moves_only_when_told),
           T(every_simulation_starts_at_the_same_date), T(time_does_not_go_back),
           T(the_real_wall_clock_is_that_of_the_system))
