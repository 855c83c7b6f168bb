#include <string.h>

#include "engine/array_state.h"
#include "tests/unit/suite.h"

static void
a_faulty_member_never_comes_back_by_itself(void)
{
    CU_ASSERT(!member_state_arrow(MS_FAULTY, MS_ONLINE));
    CU_ASSERT(!member_state_arrow(MS_FAULTY, MS_SUSPECT));
    CU_ASSERT(!member_state_arrow(MS_FAULTY, MS_REBUILDING));
    CU_ASSERT(member_state_arrow(MS_FAULTY, MS_MISSING));
}

static void
a_spare_is_rebuilt_before_it_is_online(void)
{
    CU_ASSERT(member_state_arrow(MS_SPARE, MS_REBUILDING));
    CU_ASSERT(!member_state_arrow(MS_SPARE, MS_ONLINE));
    CU_ASSERT(member_state_arrow(MS_REBUILDING, MS_ONLINE));
}

static void
whatever_is_in_use_may_fail(void)
{
    CU_ASSERT(member_state_arrow(MS_ONLINE, MS_FAULTY));
    CU_ASSERT(member_state_arrow(MS_SUSPECT, MS_FAULTY));
    CU_ASSERT(member_state_arrow(MS_REBUILDING, MS_FAULTY));
    CU_ASSERT(member_state_arrow(MS_SPARE, MS_FAULTY));
    CU_ASSERT(!member_state_arrow(MS_MISSING, MS_FAULTY));
}

static void
states_have_the_names_of_the_contract(void)
{
    static const char *const names[] = {"online",    "degraded", "rebuilding", "waiting",
                                        "read-only", "failed",   "stopped"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CU_ASSERT_STRING_EQUAL(array_state_name((enum array_state)i), names[i]);
    CU_ASSERT_STRING_EQUAL(member_state_name(MS_MISSING), "missing");
    CU_ASSERT_STRING_EQUAL(member_state_name(MS_FAULTY), "faulty");
}

SUITE_MAIN("array_state", T(a_faulty_member_never_comes_back_by_itself),
           T(a_spare_is_rebuilt_before_it_is_online), T(whatever_is_in_use_may_fail),
           T(states_have_the_names_of_the_contract))
