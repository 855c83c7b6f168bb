/* Memory that nobody may touch now: known to ASan, nothing at all without it. */
#pragma once

#include "engine/base/compiler.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

static inline void
poison(void *memory, size_t bytes)
{
    __asan_poison_memory_region(memory, bytes);
}

static inline void
unpoison(void *memory, size_t bytes)
{
    __asan_unpoison_memory_region(memory, bytes);
}

static inline bool
poisoned(const void *memory)
{
    return __asan_address_is_poisoned(memory);
}
#else
static inline void
poison(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}

static inline void
unpoison(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}

static inline bool
poisoned(const void *memory)
{
    (void)memory;
    return false;
}
#endif
