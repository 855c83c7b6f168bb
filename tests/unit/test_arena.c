#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/bitset.h"
#include "engine/base/poison.h"
#include "engine/base/rng.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

#define PAGES UINT64_C(150) /* no multiple of 64: the last word is a partial one */

static struct arena arena;

static void
start(uint64_t pages)
{
    CU_ASSERT_EQUAL_FATAL(arena_init(&arena, pages * BLOCK_BYTES), 0);
}

static void
every_page_can_be_had_and_no_more(void)
{
    static void *pages[PAGES];
    start(PAGES);
    for (uint64_t i = 0; i < PAGES; i++) {
        pages[i] = arena_get(&arena, BLOCK_BYTES);
        CU_ASSERT_PTR_NOT_NULL_FATAL(pages[i]);
        CU_ASSERT_EQUAL((uintptr_t)pages[i] % BLOCK_BYTES, 0);
        memset(pages[i], (int)i, BLOCK_BYTES);
    }
    CU_ASSERT_PTR_NULL(arena_get(&arena, 1));
    unsigned wrong = 0;
    for (uint64_t i = 0; i < PAGES; i++)
        wrong += ((uint8_t *)pages[i])[BLOCK_BYTES - 1] != i;
    CU_ASSERT_EQUAL(wrong, 0);
    for (uint64_t i = 0; i < PAGES; i++)
        arena_put(&arena, pages[i], BLOCK_BYTES);
    CU_ASSERT_EQUAL(arena.pages_used, 0);
    arena_destroy(&arena);
}

static void
sizes_are_rounded_up_to_pages(void)
{
    start(4);
    uint8_t *a = arena_get(&arena, 1), *b = arena_get(&arena, BLOCK_BYTES + 1);
    CU_ASSERT_EQUAL(arena.pages_used, 3);
    CU_ASSERT_PTR_NULL(arena_get(&arena, BLOCK_BYTES + 1));
    memset(b, 1, 2 * BLOCK_BYTES);
    arena_put(&arena, a, 1);
    arena_put(&arena, b, BLOCK_BYTES + 1);
    arena_destroy(&arena);
    CU_ASSERT_EQUAL_FATAL(arena_init(&arena, BLOCK_BYTES + 1), 0);
    CU_ASSERT_EQUAL(arena.page_count, 2);
    arena_destroy(&arena);
    arena_destroy(&arena); /* a zeroed one */
}

static void
the_lowest_run_that_is_long_enough_is_got(void)
{
    start(10);
    uint8_t *a = arena_get(&arena, 2 * BLOCK_BYTES), *b = arena_get(&arena, 3 * BLOCK_BYTES);
    uint8_t *c = arena_get(&arena, BLOCK_BYTES), *d = arena_get(&arena, BLOCK_BYTES);
    arena_put(&arena, a, 2 * BLOCK_BYTES);
    arena_put(&arena, c, BLOCK_BYTES); /* free: 0, 1, 5, 7 to 9 */
    CU_ASSERT_PTR_NULL(arena_get(&arena, 4 * BLOCK_BYTES));
    c = arena_get(&arena, 3 * BLOCK_BYTES);
    CU_ASSERT_PTR_EQUAL(c, arena.memory + 7 * BLOCK_BYTES);
    a = arena_get(&arena, BLOCK_BYTES);
    CU_ASSERT_PTR_EQUAL(a, arena.memory);
    uint8_t *e = arena_get(&arena, BLOCK_BYTES), *f = arena_get(&arena, BLOCK_BYTES);
    CU_ASSERT_PTR_EQUAL(e, arena.memory + BLOCK_BYTES);
    CU_ASSERT_PTR_EQUAL(f, arena.memory + 5 * BLOCK_BYTES);
    CU_ASSERT_PTR_NULL(arena_get(&arena, BLOCK_BYTES)); /* full */
    arena_put(&arena, a, BLOCK_BYTES);
    arena_put(&arena, c, 3 * BLOCK_BYTES);
    CU_ASSERT_PTR_NULL(arena_get(&arena, 4 * BLOCK_BYTES)); /* a run does not wrap around */
    arena_put(&arena, b, 3 * BLOCK_BYTES);
    arena_put(&arena, d, BLOCK_BYTES);
    arena_put(&arena, e, BLOCK_BYTES);
    arena_put(&arena, f, BLOCK_BYTES);
    arena_destroy(&arena);
}

static void
a_run_never_reaches_beyond_the_end(void)
{
    start(64); /* the bit set is full: nothing behind it stops a search */
    uint8_t *most = arena_get(&arena, 60 * BLOCK_BYTES);
    CU_ASSERT_PTR_NULL(arena_get(&arena, 5 * BLOCK_BYTES));
    uint8_t *rest = arena_get(&arena, 4 * BLOCK_BYTES);
    CU_ASSERT_PTR_EQUAL(rest, most + 60 * BLOCK_BYTES);
    arena_put(&arena, rest, 4 * BLOCK_BYTES);
    arena_put(&arena, most, 60 * BLOCK_BYTES);
    arena_destroy(&arena);
}

static void
what_is_put_is_got_again(void)
{
    start(PAGES);
    void *pages[8];
    for (unsigned round = 0; round < 3; round++) { /* it does not wander off */
        for (unsigned i = 0; i < 8; i++)
            pages[i] = arena_get(&arena, BLOCK_BYTES);
        CU_ASSERT_PTR_EQUAL(pages[7], arena.memory + 7 * BLOCK_BYTES);
        for (unsigned i = 0; i < 8; i++)
            arena_put(&arena, pages[i], BLOCK_BYTES);
    }
    arena_destroy(&arena);
}

/* Random gets and puts; `owner` says who holds each page. */
struct extent {
    uint8_t *memory;
    uint64_t bytes;
};

static uint8_t owner[PAGES];

static bool
run_is_free(uint64_t page_count)
{
    uint64_t run = 0;
    for (uint64_t i = 0; i < PAGES; i++) {
        run = owner[i] == 0 ? run + 1 : 0;
        if (run == page_count)
            return true;
    }
    return false;
}

/* Number of pages of the extent that are not `before`; all are `after` then. */
static unsigned
change_owner(const struct extent *extent, uint8_t before, uint8_t after)
{
    unsigned wrong = 0;
    uint64_t page = (uint64_t)(extent->memory - arena.memory) / BLOCK_BYTES;
    for (uint64_t end = page + div_ceil(extent->bytes, BLOCK_BYTES); page < end; page++) {
        wrong += owner[page] != before;
        owner[page] = after;
    }
    return wrong;
}

static void
extents_never_overlap_and_a_free_run_is_always_found(void)
{
    enum { EXTENTS = 100 };
    struct extent extents[EXTENTS] = {0};
    struct rng rng;
    rng_seed(&rng, suite_seed());
    unsigned wrong = 0;
    memset(owner, 0, sizeof(owner));
    start(PAGES);
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t who = (uint8_t)rng_below(&rng, EXTENTS);
        struct extent *extent = &extents[who];
        if (extent->memory != NULL) {
            wrong += change_owner(extent, (uint8_t)(who + 1), 0);
            arena_put(&arena, extent->memory, extent->bytes);
            extent->memory = NULL;
            continue;
        }
        uint64_t pages_max = rng_chance(&rng, 50) ? 1 : rng_chance(&rng, 90) ? 8 : 100;
        extent->bytes = rng_range(&rng, 1, pages_max * BLOCK_BYTES);
        bool fits = run_is_free(div_ceil(extent->bytes, BLOCK_BYTES));
        extent->memory = arena_get(&arena, extent->bytes);
        wrong += fits != (extent->memory != NULL);
        if (extent->memory != NULL)
            wrong += change_owner(extent, 0, (uint8_t)(who + 1));
        wrong += arena.pages_used != bitset_count(arena.used, PAGES);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    for (unsigned i = 0; i < EXTENTS; i++)
        if (extents[i].memory != NULL)
            arena_put(&arena, extents[i].memory, extents[i].bytes);
    arena_destroy(&arena);
}

static void
free_pages_are_poisoned_under_asan(void)
{
    start(4);
    uint8_t *page = arena_get(&arena, BLOCK_BYTES);
    CU_ASSERT(!poisoned(page));
    page[0] = page[BLOCK_BYTES - 1] = 1;
    arena_put(&arena, page, BLOCK_BYTES);
#ifdef __SANITIZE_ADDRESS__
    CU_ASSERT(poisoned(page));
    CU_ASSERT(poisoned(page + 3 * BLOCK_BYTES)); /* never given out */
#endif
    arena_destroy(&arena);
}

static void
impossible_sizes_are_errors(void)
{
    CU_ASSERT_EQUAL(arena_init(&arena, 0), -ENOMEM);
    CU_ASSERT_EQUAL(arena_init(&arena, UINT64_MAX), -ENOMEM);
    arena_destroy(&arena);
}

static void
an_arena_can_be_abandoned_with_pages_in_use(void)
{
    start(4);
    CU_ASSERT_PTR_NOT_NULL(arena_get(&arena, 1));
    arena_abandon(&arena);
    CU_ASSERT_PTR_NULL(arena.memory);
    arena_destroy(&arena); /* a zeroed one now */
}

static void
destroy_in_use(void)
{
    if (arena_get(&arena, 1) != NULL)
        arena_destroy(&arena);
}

static void
put_twice(void)
{
    void *page = arena_get(&arena, BLOCK_BYTES);
    arena_put(&arena, page, BLOCK_BYTES);
    arena_put(&arena, page, BLOCK_BYTES);
}

static void
put_more(void)
{
    arena_put(&arena, arena_get(&arena, BLOCK_BYTES), 2 * BLOCK_BYTES);
}

static void
put_unaligned(void)
{
    arena_put(&arena, (uint8_t *)arena_get(&arena, BLOCK_BYTES) + 1, 1);
}

static void
wrong_puts_are_bugs(void)
{
    char text[512];
    start(4);
    CU_ASSERT(dies(put_twice, text, sizeof(text)));
    CU_ASSERT(dies(put_more, text, sizeof(text)));
    CU_ASSERT(dies(put_unaligned, text, sizeof(text)));
    CU_ASSERT(dies(destroy_in_use, text, sizeof(text)));
    arena_destroy(&arena);
}

SUITE_MAIN("arena", T(every_page_can_be_had_and_no_more), T(sizes_are_rounded_up_to_pages),
           T(the_lowest_run_that_is_long_enough_is_got), T(a_run_never_reaches_beyond_the_end),
           T(what_is_put_is_got_again), T(extents_never_overlap_and_a_free_run_is_always_found),
           T(free_pages_are_poisoned_under_asan), T(impossible_sizes_are_errors),
           T(an_arena_can_be_abandoned_with_pages_in_use), T(wrong_puts_are_bugs))
