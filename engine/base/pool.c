#include "engine/base/pool.h"

#include <string.h>

#include "engine/base/poison.h"
#include "engine/base/units.h"

#define OBJECT_ALIGN 64u /* a cache line: neighbours do not share one */

static void
push_free(struct pool *pool, void *object)
{
    struct pool_free *free_object = object;
    free_object->next = pool->free;
    pool->free = free_object;
    poison(object, pool->object_bytes);
}

int
pool_init(struct pool *pool, size_t object_bytes, uint32_t count)
{
    check_gt(object_bytes, 0);
    *pool = (struct pool){.object_bytes = round_up(object_bytes, OBJECT_ALIGN), .count = count};
    uint64_t bytes;
    if (!mul_ok(pool->object_bytes, MAX(count, 1u), &bytes))
        return -ENOMEM;
    pool->memory = aligned_alloc(OBJECT_ALIGN, bytes);
    if (pool->memory == NULL)
        return -ENOMEM;
    memset(pool->memory, 0, bytes);
    for (uint32_t i = count; i-- > 0;) /* the first object is the first to be got */
        push_free(pool, (uint8_t *)pool->memory + i * pool->object_bytes);
    return 0;
}

void
pool_destroy(struct pool *pool)
{
    check_eq(pool->in_use, 0);
    pool_abandon(pool);
}

void
pool_abandon(struct pool *pool)
{
    if (pool->memory != NULL)
        unpoison(pool->memory, pool->object_bytes * pool->count);
    free(pool->memory);
    *pool = (struct pool){0};
}

void *
pool_get(struct pool *pool)
{
    struct pool_free *object = pool->free;
    if (object == NULL)
        return NULL;
    unpoison(object, pool->object_bytes);
    pool->free = object->next;
    pool->in_use++;
    check_le(pool->in_use, pool->count);
    return object;
}

void
pool_put(struct pool *pool, void *object)
{
    size_t off = (size_t)((uint8_t *)object - (uint8_t *)pool->memory);
    check_lt(off, pool->object_bytes * pool->count);
    check_eq(off % pool->object_bytes, 0);
    check(!poisoned(object)); /* put twice */
    check_gt(pool->in_use, 0);
    pool->in_use--;
    push_free(pool, object);
}
