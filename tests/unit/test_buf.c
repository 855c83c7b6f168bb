#include <string.h>

#include "engine/base/buf.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

static struct arena arena;
static struct buf buf;

static void
the_last_reference_gives_the_memory_back(void)
{
    CU_ASSERT_EQUAL_FATAL(arena_init(&arena, KIB(16)), 0);
    CU_ASSERT_FATAL(buf_get(&buf, &arena, 5000));
    CU_ASSERT_EQUAL(buf.bytes, 5000);
    CU_ASSERT_EQUAL((uintptr_t)buf.data % BLOCK_BYTES, 0);
    memset(buf.data, 1, buf.bytes);
    buf_ref(&buf);
    buf_unref(&buf);
    CU_ASSERT_EQUAL(arena.pages_used, 2);
    CU_ASSERT_PTR_NOT_NULL(buf.data);
    buf_unref(&buf);
    CU_ASSERT_EQUAL(arena.pages_used, 0);
    CU_ASSERT_PTR_NULL(buf.data);
    arena_destroy(&arena);
}

static void
without_memory_nothing_is_got(void)
{
    struct buf other = {0};
    CU_ASSERT_EQUAL_FATAL(arena_init(&arena, KIB(8)), 0);
    CU_ASSERT_FATAL(buf_get(&buf, &arena, KIB(8)));
    CU_ASSERT(!buf_get(&other, &arena, 1));
    CU_ASSERT_EQUAL(other.refs, 0);
    buf_unref(&buf);
    arena_destroy(&arena);
}

static void
unref_nothing(void)
{
    buf_unref(&buf);
}

static void
ref_nothing(void)
{
    buf_ref(&buf);
}

static void
a_buf_without_references_may_not_be_used(void)
{
    char text[256];
    buf = (struct buf){0};
    CU_ASSERT(dies(unref_nothing, text, sizeof(text)));
    CU_ASSERT(dies(ref_nothing, text, sizeof(text)));
}

SUITE_MAIN("buf", T(the_last_reference_gives_the_memory_back), T(without_memory_nothing_is_got),
           T(a_buf_without_references_may_not_be_used))
