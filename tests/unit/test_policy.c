#include <string.h>

#include "engine/base/rng.h"

#include "cache/policy.h"
#include "engine/meta/area.h"
#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

#define QUESTIONS 1000

static struct policy_facts
random_facts(struct rng *rng, bool dirty)
{
    struct policy_facts facts = {.dirty_max_bytes = 1 + rng_below(rng, MIB(256))};
    facts.dirty_bytes = dirty ? rng_below(rng, facts.dirty_max_bytes + 1) : 0;
    facts.request_bytes = rng_below(rng, MIB(64) + 1);
    return facts;
}

/* What cache/policy.h demands of every policy, asked often. */
static void
obeys_the_contract(const struct policy *policy)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    CU_ASSERT_FATAL(policy->name != NULL && policy->on_write != NULL && policy->on_flush != NULL);
    CU_ASSERT(policy->name[0] != '\0');
    CU_ASSERT(strlen(policy->name) < sizeof(((struct area *)0)->policy));
    for (unsigned i = 0; i < QUESTIONS; i++) {
        struct policy_facts facts = random_facts(&rng, policy->keeps_dirty);
        enum policy_write on_write = policy->on_write(&facts);
        if (on_write == POLICY_WRITE_KEEP) {
            CU_ASSERT(policy->keeps_dirty);
            CU_ASSERT(facts.dirty_bytes + facts.request_bytes <= facts.dirty_max_bytes);
        }
        if (policy->on_flush(&facts) == POLICY_FLUSH_MEMBERS) /* P3 */
            CU_ASSERT_EQUAL(facts.dirty_bytes, 0);
        CU_ASSERT_EQUAL(policy->on_write(&facts), on_write); /* pure */
    }
}

static void
every_policy_obeys_the_contract(void)
{
    for (const struct policy *const *policy = policy_all(); *policy != NULL; policy++)
        obeys_the_contract(*policy);
    obeys_the_contract(&policy_skeleton);
}

static void
every_policy_is_found_by_its_name_and_no_other(void)
{
    for (const struct policy *const *policy = policy_all(); *policy != NULL; policy++)
        CU_ASSERT_PTR_EQUAL(policy_find((*policy)->name), *policy);
    CU_ASSERT_PTR_NULL(policy_find("skeleton"));
    CU_ASSERT_PTR_NULL(policy_find("writethroug"));
    CU_ASSERT_PTR_NULL(policy_find(""));
}

static void
the_default_is_one_of_them_and_keeps_nothing(void)
{
    CU_ASSERT_PTR_EQUAL(policy_find(policy_default()->name), policy_default());
    CU_ASSERT(!policy_default()->keeps_dirty);
}

static void
writethrough_answers_from_the_members(void)
{
    const struct policy_facts facts = {.dirty_max_bytes = MIB(1), .request_bytes = KIB(4)};
    CU_ASSERT_EQUAL(policy_writethrough.on_write(&facts), POLICY_WRITE_THROUGH);
    CU_ASSERT_EQUAL(policy_writethrough.on_flush(&facts), POLICY_FLUSH_MEMBERS);
    CU_ASSERT(!policy_wants_destage(&policy_writethrough, &facts));
}

static void
flush_dirty(void)
{
    const struct policy_facts facts = {.dirty_bytes = 1, .dirty_max_bytes = MIB(1)};
    (void)policy_writethrough.on_flush(&facts);
}

static void
writethrough_with_something_dirty_is_a_bug_that_stops(void)
{
    char text[256];
    CU_ASSERT(dies(flush_dirty, text, sizeof(text)));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "dirty_bytes"));
}

static void
skeleton_keeps_what_fits_and_destages_from_half_on(void)
{
    struct policy_facts facts = {.dirty_max_bytes = MIB(1), .request_bytes = KIB(4)};
    facts.dirty_bytes = MIB(1) - KIB(4);
    CU_ASSERT_EQUAL(policy_skeleton.on_write(&facts), POLICY_WRITE_KEEP);
    facts.dirty_bytes++;
    CU_ASSERT_EQUAL(policy_skeleton.on_write(&facts), POLICY_WRITE_THROUGH);
    CU_ASSERT_EQUAL(policy_skeleton.on_flush(&facts), POLICY_FLUSH_DESTAGE);
    facts.dirty_bytes = KIB(512);
    CU_ASSERT(policy_wants_destage(&policy_skeleton, &facts));
    facts.dirty_bytes--;
    CU_ASSERT(!policy_wants_destage(&policy_skeleton, &facts));
}

SUITE_MAIN("policy", T(every_policy_obeys_the_contract),
           T(every_policy_is_found_by_its_name_and_no_other),
           T(the_default_is_one_of_them_and_keeps_nothing),
           T(writethrough_answers_from_the_members),
           T(writethrough_with_something_dirty_is_a_bug_that_stops),
           T(skeleton_keeps_what_fits_and_destages_from_half_on))
