#include <string.h>

#include "engine/base/poison.h"
#include "engine/base/pool.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

#define COUNT 5u

struct object {
    uint64_t numbers[9]; /* 72 bytes: rounded up to 128 */
};

static struct pool pool;

static void
a_pool_gives_out_exactly_its_objects(void)
{
    struct object *objects[COUNT];
    CU_ASSERT_EQUAL_FATAL(pool_init(&pool, sizeof(struct object), COUNT), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        objects[i] = pool_get(&pool);
        CU_ASSERT_PTR_NOT_NULL_FATAL(objects[i]);
        CU_ASSERT_EQUAL((uintptr_t)objects[i] % 64, 0);
        memset(objects[i], (int)i + 1, sizeof(*objects[i]));
    }
    CU_ASSERT_PTR_NULL(pool_get(&pool));
    CU_ASSERT_EQUAL(pool.in_use, COUNT);
    for (unsigned i = 0; i < COUNT; i++) /* nobody wrote into a neighbour */
        CU_ASSERT_EQUAL(objects[i]->numbers[8], (i + 1) * UINT64_C(0x0101010101010101));
    pool_put(&pool, objects[2]);
    CU_ASSERT_PTR_EQUAL(pool_get(&pool), objects[2]);
    for (unsigned i = 0; i < COUNT; i++)
        pool_put(&pool, objects[i]);
    CU_ASSERT_EQUAL(pool.in_use, 0);
    pool_destroy(&pool);
}

static void
objects_begin_zeroed_and_come_back_as_they_were_put(void)
{
    CU_ASSERT_EQUAL_FATAL(pool_init(&pool, sizeof(struct object), 1), 0);
    struct object *object = pool_get(&pool);
    for (unsigned i = 1; i < 9; i++)
        CU_ASSERT_EQUAL(object->numbers[i], 0);
    object->numbers[1] = 17;
    pool_put(&pool, object);
    object = pool_get(&pool);
    CU_ASSERT_EQUAL(object->numbers[1], 17);
    pool_put(&pool, object);
    pool_destroy(&pool);
}

static void
an_empty_pool_and_a_zeroed_one_are_fine(void)
{
    CU_ASSERT_EQUAL_FATAL(pool_init(&pool, 8, 0), 0);
    CU_ASSERT_PTR_NULL(pool_get(&pool));
    pool_destroy(&pool);
    pool_destroy(&pool);
}

static void
too_much_memory_is_an_error(void)
{
    CU_ASSERT_EQUAL(pool_init(&pool, SIZE_MAX / 2 + 1, 4), -ENOMEM);
    pool_destroy(&pool);
}

static void
free_objects_are_poisoned_under_asan(void)
{
    CU_ASSERT_EQUAL_FATAL(pool_init(&pool, sizeof(struct object), 2), 0);
    struct object *object = pool_get(&pool);
    CU_ASSERT(!poisoned(object));
    object->numbers[8] = 1;
    pool_put(&pool, object);
#ifdef __SANITIZE_ADDRESS__
    CU_ASSERT(poisoned(object));
    CU_ASSERT(poisoned(&object->numbers[8]));
#endif
    pool_destroy(&pool);
}

static void
a_pool_can_be_abandoned_with_objects_in_use(void)
{
    CU_ASSERT_EQUAL_FATAL(pool_init(&pool, sizeof(struct object), 2), 0);
    CU_ASSERT_PTR_NOT_NULL(pool_get(&pool));
    pool_abandon(&pool);
    CU_ASSERT_PTR_NULL(pool.memory);
    pool_destroy(&pool); /* a zeroed one now */
}

static void
put_inside(void)
{
    pool_put(&pool, (uint8_t *)pool_get(&pool) + 64);
}

static void
put_foreign(void)
{
    static _Alignas(64) uint8_t foreign[128];
    pool_put(&pool, foreign);
}

static void
put_too_often(void)
{
    void *object = pool_get(&pool);
    pool_put(&pool, object);
    pool_put(&pool, object);
}

static void
destroy_in_use(void)
{
    if (pool_get(&pool) != NULL)
        pool_destroy(&pool);
}

static void
wrong_puts_are_bugs(void)
{
    char text[512];
    CU_ASSERT_EQUAL_FATAL(pool_init(&pool, sizeof(struct object), COUNT), 0);
    CU_ASSERT(dies(put_inside, text, sizeof(text)));
    CU_ASSERT(dies(put_foreign, text, sizeof(text)));
    CU_ASSERT(dies(put_too_often, text, sizeof(text)));
    CU_ASSERT(dies(destroy_in_use, text, sizeof(text)));
    pool_destroy(&pool);
}

SUITE_MAIN("pool", T(a_pool_gives_out_exactly_its_objects),
           T(objects_begin_zeroed_and_come_back_as_they_were_put),
           T(an_empty_pool_and_a_zeroed_one_are_fine), T(too_much_memory_is_an_error),
           T(free_objects_are_poisoned_under_asan), T(a_pool_can_be_abandoned_with_objects_in_use),
           T(wrong_puts_are_bugs))
