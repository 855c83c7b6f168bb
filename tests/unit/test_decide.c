#include <stdio.h>
#include <string.h>

#include "engine/base/bitset.h"
#include "engine/base/rng.h"

#include "tests/unit/sample.h"
#include "tests/unit/suite.h"

#define SET_MAX 16

/* A handful of candidates and what is decided about them. */
static struct set {
    struct candidate candidates[SET_MAX];
    uint32_t count;
    char paths[SET_MAX][16];
    struct decision decision;
    struct diag diag;
} set;

static struct super *
super_at(uint32_t i)
{
    return &set.candidates[i].super;
}

static struct super *
add(int32_t level, uint32_t disks, uint32_t dev, uint64_t events)
{
    struct candidate *candidate = &set.candidates[set.count];
    memset(candidate, 0, sizeof(*candidate));
    snprintf(set.paths[set.count], sizeof(set.paths[0]), "/m%u", (unsigned)set.count);
    candidate->path = set.paths[set.count++];
    candidate->device_bytes = SAMPLE_DEVICE_BYTES;
    candidate->has_super = true;
    sample_super(&candidate->super, level, disks, dev, events);
    return &candidate->super;
}

/* A healthy array of that many members. */
static void
healthy(int32_t level, uint32_t disks, uint64_t events)
{
    set.count = 0;
    for (uint32_t dev = 0; dev < disks; dev++)
        add(level, disks, dev, events);
}

static void
add_areas(void)
{
    for (uint32_t i = 0; i < set.count; i++) {
        set.candidates[i].has_area = true;
        sample_area(&set.candidates[i].area, super_at(i));
    }
}

/* Members of `mask` (candidate indexes). */
static int
judge_some(uint64_t mask, const char *keep)
{
    const struct candidate *some[SET_MAX] = {NULL};
    uint32_t count = 0;
    mask_for_each (i, mask)
        some[count++] = &set.candidates[i];
    memset(&set.diag, 0, sizeof(set.diag));
    int err = decide(some, count, keep, &set.decision, &set.diag);
    for (uint32_t i = 0; err == 0 && i < count; i++) {
        const struct decision_member *m = &set.decision.members[i];
        bool used = m->class <= MEMBER_REPLACEMENT;
        CU_ASSERT_EQUAL(m->candidate, i);
        CU_ASSERT_EQUAL(used, m->why[0] == '\0'); /* every unused one has a sentence */
    }
    return err;
}

static int
judge_all(void)
{
    return judge_some(mask_below(set.count), NULL);
}

static enum member_class
class_of(uint32_t i)
{
    return set.decision.members[i].class;
}

static void
refused_as(const char *code)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(set.diag.code);
    if (strcmp(set.diag.code, code) != 0)
        printf("\n  %s, not %s: %s\n", set.diag.code, code, set.diag.message);
    CU_ASSERT_STRING_EQUAL(set.diag.code, code);
}

static void
a_healthy_array_is_complete_in_any_order(void)
{
    struct rng rng;
    rng_seed(&rng, suite_seed());
    for (unsigned round = 0; round < 200; round++) {
        const struct candidate *shuffled[5];
        healthy(6, 5, 17);
        for (uint32_t i = 0; i < 5; i++)
            shuffled[i] = &set.candidates[i];
        for (uint32_t i = 4; i > 0; i--) {
            uint64_t j = rng_below(&rng, i + 1);
            const struct candidate *swap = shuffled[i];
            shuffled[i] = shuffled[j];
            shuffled[j] = swap;
        }
        CU_ASSERT_EQUAL(decide(shuffled, 5, NULL, &set.decision, &set.diag), 0);
        CU_ASSERT_EQUAL(set.decision.present_roles, 0x1f);
        CU_ASSERT_EQUAL(set.decision.listed_roles, 0x1f);
        CU_ASSERT(set.decision.complete && !set.decision.dirty);
        CU_ASSERT_EQUAL(super_role(&shuffled[set.decision.freshest]->super), 0);
        for (uint32_t i = 0; i < 5; i++)
            CU_ASSERT_EQUAL(set.decision.members[i].role, shuffled[i]->super.dev_number);
    }
}

static void
an_absent_member_makes_it_incomplete(void)
{
    healthy(5, 4, 17);
    CU_ASSERT_EQUAL(judge_some(0xb, NULL), 0);
    CU_ASSERT_EQUAL(set.decision.present_roles, 0xb);
    CU_ASSERT_EQUAL(set.decision.listed_roles, 0xf);
    CU_ASSERT(!set.decision.complete);
}

static void
one_event_behind_is_accepted_and_two_are_stale(void)
{
    healthy(5, 4, 17);
    super_at(2)->events = 16;
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT_EQUAL(class_of(2), MEMBER_ACTIVE);
    CU_ASSERT(set.decision.complete);
    super_at(2)->events = 15;
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT_EQUAL(class_of(2), MEMBER_STALE);
    CU_ASSERT(strstr(set.decision.members[2].why, "behind by 2 events") != NULL);
    CU_ASSERT_EQUAL(set.decision.present_roles, 0xb);
    CU_ASSERT(!set.decision.complete);
    CU_ASSERT_EQUAL(set.decision.events_max, 17);
}

/* md.md 1.7: disk 2 failed; the survivors at 4 with role table [0, 1, F]. */
static void
a_failed_member_is_not_used_and_the_rest_is_complete(void)
{
    static const uint16_t fates[] = {SUPER_ROLE_FAULTY, SUPER_ROLE_SPARE};
    for (unsigned fate = 0; fate < 2; fate++) {
        for (uint64_t events = 2; events <= 4; events++) { /* even of the same generation (D3) */
            healthy(5, 3, 4);
            super_at(0)->roles[2] = super_at(1)->roles[2] = fates[fate];
            super_at(2)->events = events;
            CU_ASSERT_EQUAL(judge_all(), 0);
            CU_ASSERT_EQUAL(class_of(2), fate == 0 ? MEMBER_FAULTY : MEMBER_STALE);
            CU_ASSERT_EQUAL(set.decision.present_roles, 3);
            CU_ASSERT_EQUAL(set.decision.listed_roles, 3);
            CU_ASSERT(set.decision.complete);
        }
    }
}

static void
a_stale_member_alone_decides_for_itself(void)
{
    healthy(5, 3, 4);
    super_at(0)->roles[2] = super_at(1)->roles[2] = SUPER_ROLE_FAULTY;
    super_at(2)->events = 2;
    CU_ASSERT_EQUAL(judge_some(0x4, NULL), 0); /* it cannot know better: but it is incomplete */
    CU_ASSERT_EQUAL(set.decision.present_roles, 4);
    CU_ASSERT(!set.decision.complete);
}

/* user-cases B5: a, then b were lost within moments; c went on to the end. */
static void
b5_the_old_drive_never_overwrites_the_new_ones(void)
{
    healthy(1, 3, 10);
    super_at(1)->events = 12;
    super_at(1)->roles[0] = SUPER_ROLE_FAULTY;
    super_at(2)->events = 14;
    super_at(2)->roles[0] = super_at(2)->roles[1] = SUPER_ROLE_FAULTY;
    for (uint64_t mask = 4; mask < 8; mask++) { /* every subset with c */
        CU_ASSERT_EQUAL(judge_some(mask, NULL), 0);
        CU_ASSERT_EQUAL(set.decision.present_roles, 4);
        CU_ASSERT(set.decision.complete);
    }
    CU_ASSERT_EQUAL(judge_some(3, NULL), 0); /* a and b: b counts, c is missed */
    CU_ASSERT_EQUAL(set.decision.present_roles, 2);
    CU_ASSERT(!set.decision.complete);
    CU_ASSERT_EQUAL(judge_some(1, NULL), 0);
    CU_ASSERT(!set.decision.complete);
}

/* Both halves of a mirror went on alone. */
static void
split(uint64_t events_a, uint64_t events_b, uint16_t fate)
{
    healthy(1, 2, 10);
    super_at(0)->events = events_a;
    super_at(0)->roles[1] = fate;
    super_at(1)->events = events_b;
    super_at(1)->roles[0] = fate;
}

/* user-cases B6 */
static void
b6_two_halves_written_apart_are_never_merged(void)
{
    static const uint16_t fates[] = {SUPER_ROLE_FAULTY, SUPER_ROLE_SPARE};
    for (unsigned fate = 0; fate < 2; fate++) {
        for (uint64_t a = 11; a < 16; a++) {
            for (uint64_t b = 11; b < 16; b++) {
                split(a, b, fates[fate]);
                CU_ASSERT_EQUAL(judge_all(), -EINVAL);
                refused_as("E_DIVERGED");
                CU_ASSERT(strstr(set.diag.message, "/m0") != NULL);
                CU_ASSERT(strstr(set.diag.message, "/m1") != NULL);
                for (uint32_t kept = 0; kept < 2; kept++) {
                    CU_ASSERT_EQUAL(judge_some(3, set.paths[kept]), 0);
                    CU_ASSERT_EQUAL(set.decision.freshest, kept);
                    CU_ASSERT_EQUAL(class_of(kept), MEMBER_ACTIVE);
                    CU_ASSERT_EQUAL(set.decision.present_roles, mask_of(kept));
                    CU_ASSERT(class_of(1 - kept) != MEMBER_ACTIVE);
                    CU_ASSERT_EQUAL(set.decision.events_max, MAX(a, b));
                }
                CU_ASSERT_EQUAL(judge_some(3, "/elsewhere"), -EINVAL);
                refused_as("E_DIVERGED");
            }
        }
    }
}

static void
two_pairs_of_raid10_written_apart_are_never_merged(void)
{
    healthy(10, 4, 10); /* near 2: {0,2} and {1,3} each hold everything */
    for (uint32_t i = 0; i < 4; i++) {
        super_at(i)->events = i % 2 == 0 ? 14 : 22;
        super_at(i)->roles[1 - i % 2] = SUPER_ROLE_SPARE;
        super_at(i)->roles[3 - i % 2] = SUPER_ROLE_SPARE;
    }
    CU_ASSERT_EQUAL(judge_all(), -EINVAL);
    refused_as("E_DIVERGED");
    CU_ASSERT_EQUAL(judge_some(0xf, "/m2"), 0);
    CU_ASSERT_EQUAL(set.decision.present_roles, 5);
    CU_ASSERT_EQUAL(class_of(1), MEMBER_DIVERGED);
    CU_ASSERT_EQUAL(class_of(3), MEMBER_DIVERGED);
    CU_ASSERT_EQUAL(judge_some(0xf, "/m3"), 0);
    CU_ASSERT_EQUAL(set.decision.present_roles, 10);
    CU_ASSERT_EQUAL(judge_some(0x5, NULL), 0); /* one side by itself is fine */
    CU_ASSERT_EQUAL(set.decision.present_roles, 5);
    CU_ASSERT(set.decision.complete);
}

/* Tables alone would say "stale"; the areas know that both went on. */
static void
the_lineage_sees_what_tables_have_forgotten(void)
{
    healthy(1, 2, 10);
    super_at(0)->events = 20;
    super_at(1)->events = 30;
    add_areas();
    set.candidates[0].area.role_events[1] = 10;
    set.candidates[1].area.role_events[0] = 10;
    CU_ASSERT_EQUAL(judge_all(), -EINVAL);
    refused_as("E_DIVERGED");
    set.candidates[1].area.role_events[0] = 20; /* 1 saw all of 0: 0 is just stale */
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT_EQUAL(class_of(0), MEMBER_STALE);
    set.candidates[1].area.role_events[0] = 10;
    set.candidates[0].area.events = 19; /* md has moved the counter since: not to be trusted */
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT_EQUAL(class_of(0), MEMBER_STALE);
}

static void
a_long_gone_member_of_a_rebuilt_array_is_only_stale(void)
{
    healthy(6, 5, 10); /* 1 failed; then 2 failed; both replaced by devices 5 and 6 */
    super_at(1)->events = 12;
    super_at(2)->events = 20;
    super_at(2)->roles[1] = SUPER_ROLE_FAULTY;
    super_at(0)->events = 90;
    *super_at(3) = *super_at(4) = *super_at(0);
    for (uint32_t i = 3; i < 5; i++) {
        super_at(i)->dev_number = i;
        memset(super_at(i)->device_uuid, (int)(0x10 + i), 16);
    }
    add(6, 5, 5, 90);
    add(6, 5, 6, 90);
    for (uint32_t i = 0; i < set.count; i++) {
        if (i == 1 || i == 2)
            continue;
        super_at(i)->roles[1] = super_at(i)->roles[2] = SUPER_ROLE_SPARE;
        super_at(i)->roles[5] = 1;
        super_at(i)->roles[6] = 2;
    }
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT_EQUAL(class_of(1), MEMBER_STALE);
    CU_ASSERT_EQUAL(class_of(2), MEMBER_STALE);
    CU_ASSERT_EQUAL(set.decision.present_roles, 0x1f);
    CU_ASSERT(set.decision.complete);
}

static void
an_adopted_disk_that_heard_first_does_not_outvote_the_others(void)
{
    healthy(5, 3, 10);
    super_at(0)->roles[2] = super_at(1)->roles[2] = SUPER_ROLE_SPARE;
    set.count = 2;
    struct super *fresh = add(5, 3, 3, 11); /* it alone got the update before the cut */
    fresh->features = SUPER_RECOVERY;
    fresh->roles[2] = SUPER_ROLE_SPARE;
    fresh->roles[3] = 2;
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT_EQUAL(set.decision.freshest, 0);
    CU_ASSERT_EQUAL(set.decision.present_roles, 3);
    CU_ASSERT_EQUAL(class_of(2), MEMBER_RECOVERING);
    CU_ASSERT_EQUAL(set.decision.members[2].role, 2);
}

static void
recovering_spares_and_replacements_have_their_places(void)
{
    healthy(5, 3, 10);
    super_at(1)->features = SUPER_RECOVERY;
    super_at(1)->recovery_offset_sectors = 4864;
    struct super *spare = add(5, 3, 3, 4); /* spares may lag */
    spare->roles[3] = SUPER_ROLE_SPARE;
    struct super *replacement = add(5, 3, 4, 10);
    for (uint32_t i = 0; i < set.count; i++)
        super_at(i)->roles[4] = 0;
    replacement->features = SUPER_REPLACEMENT | SUPER_RECOVERY;
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT_EQUAL(class_of(1), MEMBER_RECOVERING);
    CU_ASSERT_EQUAL(class_of(3), MEMBER_SPARE);
    CU_ASSERT_EQUAL(class_of(4), MEMBER_REPLACEMENT);
    CU_ASSERT_EQUAL(set.decision.members[4].role, 0);
    CU_ASSERT_EQUAL(set.decision.present_roles, 5);
    CU_ASSERT(set.decision.complete);
    replacement->features = SUPER_REPLACEMENT; /* done, and the original is gone */
    CU_ASSERT_EQUAL(judge_some(0x1e, NULL), 0);
    CU_ASSERT_EQUAL(set.decision.members[3].class, MEMBER_ACTIVE);
}

static void
raid0_counts_no_events(void)
{
    healthy(0, 3, 0);
    super_at(1)->data_sectors -= 1000;
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT_EQUAL(set.decision.present_roles, 7);
    CU_ASSERT(set.decision.complete && !set.decision.dirty);
}

static void
the_dirtier_word_counts(void)
{
    healthy(5, 3, 10);
    super_at(1)->resync_offset_sectors = 768;
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT(set.decision.dirty);
    CU_ASSERT_EQUAL(set.decision.freshest, 1);
    super_at(1)->events = 9; /* it missed the clean mark: all data was safe by then */
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT(!set.decision.dirty);
}

static void
what_only_md_can_handle_is_refused_by_name(void)
{
    static const struct {
        uint32_t features;
        int32_t level;
        uint64_t resync;
        uint32_t bitmap_version;
        const char *code;
    } cases[] = {
        {SUPER_RESHAPE | SUPER_NEW_OFFSET, 5, SUPER_INFINITY, 0, "E_RESHAPE"},
        {SUPER_CLUSTERED | SUPER_BITMAP, 1, SUPER_INFINITY, 5, "E_CLUSTERED"},
        {SUPER_JOURNAL, 5, SUPER_INFINITY, 0, "E_JOURNAL"},
        {SUPER_MULTIPLE_PPLS, 5, 0, 0, "E_PPL_DIRTY"},
        {SUPER_PPL, 5, 0, 0, "E_PPL_DIRTY"},
        {SUPER_MULTIPLE_PPLS, 5, SUPER_INFINITY, 0, NULL},
        {SUPER_BITMAP, 1, SUPER_INFINITY, 6, "E_LLBITMAP"},
        {SUPER_BITMAP, 1, 0, 4, NULL},
        {0, -1, SUPER_INFINITY, 0, "E_LEVEL_UNKNOWN"},
        {0, 7, SUPER_INFINITY, 0, "E_LEVEL_UNKNOWN"},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        healthy(cases[k].level, 3, 10);
        for (uint32_t i = 0; i < 3; i++) {
            super_at(i)->features = cases[k].features;
            super_at(i)->resync_offset_sectors = cases[k].resync;
            set.candidates[i].bitmap_version = cases[k].bitmap_version;
        }
        CU_ASSERT_EQUAL(judge_all(), cases[k].code == NULL ? 0 : -EINVAL);
        if (cases[k].code != NULL)
            refused_as(cases[k].code);
    }
    set.count = 0;
    add(1, 65, 0, 10);
    CU_ASSERT_EQUAL(judge_all(), -EINVAL);
    refused_as("E_TOO_MANY_MEMBERS");
}

static void
copies_of_a_member_are_refused_unless_one_is_chosen(void)
{
    healthy(5, 3, 10);
    add(5, 3, 1, 10);
    CU_ASSERT_EQUAL(judge_all(), -EINVAL);
    refused_as("E_DUPLICATE");
    CU_ASSERT(strstr(set.diag.message, "/m1") != NULL && strstr(set.diag.message, "/m3") != NULL);
    CU_ASSERT_EQUAL(judge_some(0xf, "/m3"), 0);
    CU_ASSERT_EQUAL(class_of(1), MEMBER_DUPLICATE);
    CU_ASSERT_EQUAL(class_of(3), MEMBER_ACTIVE);
    memset(super_at(3)->device_uuid, 0x77, 16); /* another device that claims the same role */
    CU_ASSERT_EQUAL(judge_all(), -EINVAL);
    refused_as("E_DUPLICATE");
}

static void
strangers_are_left_out(void)
{
    healthy(5, 3, 10);
    struct super *other = add(5, 3, 3, 500);
    memset(other->array_uuid, 0x11, 16);
    struct super *shaped = add(5, 3, 4, 10);
    shaped->chunk_sectors = 256;
    for (uint32_t i = 0; i < set.count; i++)
        super_at(i)->roles[4] = 2;
    add(5, 3, 5, 0);
    set.candidates[5].has_super = false;
    CU_ASSERT_EQUAL(judge_some(0x3b, NULL), 0);
    CU_ASSERT_EQUAL(class_of(2), MEMBER_FOREIGN);
    CU_ASSERT_EQUAL(class_of(3), MEMBER_FOREIGN);
    CU_ASSERT_EQUAL(class_of(4), MEMBER_FOREIGN);
    CU_ASSERT_EQUAL(set.decision.events_max, 10);
}

static void
without_a_data_member_there_is_nothing(void)
{
    CU_ASSERT_EQUAL(judge_some(0, NULL), -EINVAL);
    refused_as("E_NO_MEMBERS");
    set.count = 0;
    add(5, 3, 3, 10)->roles[3] = SUPER_ROLE_SPARE;
    CU_ASSERT_EQUAL(judge_all(), -EINVAL);
    refused_as("E_NO_MEMBERS");
}

static void
remains_of_a_creation_are_no_array(void)
{
    healthy(5, 3, 1);
    add_areas();
    for (uint32_t i = 0; i < 3; i++)
        set.candidates[i].area.generation = 0;
    CU_ASSERT_EQUAL(judge_all(), -EINVAL);
    refused_as("E_CREATE_UNFINISHED");
    set.candidates[2].area.generation = 1; /* one that says so is enough: all were durable */
    CU_ASSERT_EQUAL(judge_all(), 0);
    CU_ASSERT(set.decision.complete);
    set.candidates[2].area.generation = 0;
    super_at(1)->events = 2; /* or one on which something has happened since */
    CU_ASSERT_EQUAL(judge_all(), 0);
}

/* Whatever is in the (decoded) superblocks: no crash, and never two active members in one role. */
static void
random_histories_keep_the_invariants(void)
{
    struct rng rng;
    static const int32_t levels[] = {0, 1, 5, 6, 10};
    rng_seed(&rng, suite_seed());
    for (uint64_t round = 0; round < suite_seeds(20000); round++) {
        uint32_t disks = (uint32_t)rng_range(&rng, 3, 6);
        healthy(levels[rng_below(&rng, 5)], disks, 10);
        for (uint32_t i = 0; i < disks; i++) {
            struct super *s = super_at(i);
            s->events += rng_below(&rng, 4);
            if (rng_chance(&rng, 30))
                s->roles[rng_below(&rng, disks)] = (uint16_t)(0xfffd + rng_below(&rng, 3));
            if (rng_chance(&rng, 10))
                s->roles[rng_below(&rng, disks + 2)] = (uint16_t)rng_below(&rng, disks);
            if (rng_chance(&rng, 10))
                s->features |= rng_chance(&rng, 50) ? SUPER_RECOVERY : SUPER_REPLACEMENT;
            if (rng_chance(&rng, 20))
                s->resync_offset_sectors = rng_below(&rng, 1000);
            if (rng_chance(&rng, 5))
                s->dev_number = (uint32_t)rng_below(&rng, 200);
        }
        if (judge_some(rng_below(&rng, mask_of(disks)), set.paths[rng_below(&rng, disks)]) < 0) {
            CU_ASSERT_PTR_NOT_NULL(set.diag.code);
            continue;
        }
        uint64_t active = 0;
        for (uint32_t i = 0; i < set.decision.member_count; i++) {
            const struct decision_member *m = &set.decision.members[i];
            if (m->class != MEMBER_ACTIVE)
                continue;
            CU_ASSERT(!(active & mask_of(m->role)));
            active |= mask_of(m->role);
        }
        CU_ASSERT_EQUAL(active, set.decision.present_roles);
    }
}

SUITE_MAIN("decide", T(a_healthy_array_is_complete_in_any_order),
           T(an_absent_member_makes_it_incomplete),
           T(one_event_behind_is_accepted_and_two_are_stale),
           T(a_failed_member_is_not_used_and_the_rest_is_complete),
           T(a_stale_member_alone_decides_for_itself),
           T(b5_the_old_drive_never_overwrites_the_new_ones),
           T(b6_two_halves_written_apart_are_never_merged),
           T(two_pairs_of_raid10_written_apart_are_never_merged),
           T(the_lineage_sees_what_tables_have_forgotten),
           T(a_long_gone_member_of_a_rebuilt_array_is_only_stale),
           T(an_adopted_disk_that_heard_first_does_not_outvote_the_others),
           T(recovering_spares_and_replacements_have_their_places), T(raid0_counts_no_events),
           T(the_dirtier_word_counts), T(what_only_md_can_handle_is_refused_by_name),
           T(copies_of_a_member_are_refused_unless_one_is_chosen), T(strangers_are_left_out),
           T(without_a_data_member_there_is_nothing), T(remains_of_a_creation_are_no_array),
           T(random_histories_keep_the_invariants))
