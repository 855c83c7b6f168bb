#include "engine/base/arena.h"

#include <sys/mman.h>

#include "engine/base/bitset.h"
#include "engine/base/poison.h"

#define NO_PAGE UINT64_MAX

int
arena_init(struct arena *arena, uint64_t bytes)
{
    *arena = (struct arena){0};
    if (bytes == 0 || bytes > INT64_MAX)
        return -ENOMEM;
    uint64_t page_count = div_ceil(bytes, BLOCK_BYTES);
    uint64_t word_count = BITSET_WORDS(page_count);
    uint64_t *used = calloc(word_count, sizeof(*used));
    if (used == NULL)
        return -ENOMEM;
    void *memory = mmap(NULL, page_count * BLOCK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(used);
        return -ENOMEM;
    }
    poison(memory, page_count * BLOCK_BYTES);
    bitset_set_range(used, page_count, word_count * 64 - page_count);
    *arena = (struct arena){.memory = memory, .used = used, .page_count = page_count};
    return 0;
}

void
arena_destroy(struct arena *arena)
{
    check_eq(arena->pages_used, 0);
    arena_abandon(arena);
}

void
arena_abandon(struct arena *arena)
{
    if (arena->memory != NULL) {
        unpoison(arena->memory, arena->page_count * BLOCK_BYTES);
        munmap(arena->memory, arena->page_count * BLOCK_BYTES);
    }
    free(arena->used);
    *arena = (struct arena){0};
}

/* The first run of page_count free pages; arena->first_free is the first free page. */
static uint64_t
find_run(const struct arena *arena, uint64_t page_count)
{
    uint64_t start = arena->first_free;
    while (page_count <= arena->page_count - start) {
        uint64_t end = bitset_next(arena->used, start + page_count, start);
        if (end == start + page_count)
            return start;
        start = bitset_next_clear(arena->used, arena->page_count, end + 1);
    }
    return NO_PAGE;
}

void *
arena_get(struct arena *arena, uint64_t bytes)
{
    check_gt(bytes, 0);
    uint64_t page_count = div_ceil(bytes, BLOCK_BYTES);
    if (page_count > arena->page_count - arena->pages_used)
        return NULL;
    arena->first_free = bitset_next_clear(arena->used, arena->page_count, arena->first_free);
    uint64_t page = find_run(arena, page_count);
    if (page == NO_PAGE)
        return NULL;
    bitset_set_range(arena->used, page, page_count);
    arena->pages_used += page_count;
    uint8_t *memory = arena->memory + page * BLOCK_BYTES;
    unpoison(memory, page_count * BLOCK_BYTES);
    return memory;
}

void
arena_put(struct arena *arena, void *memory, uint64_t bytes)
{
    uint64_t off_bytes = (uint64_t)((uint8_t *)memory - arena->memory);
    check_gt(bytes, 0);
    check_eq(off_bytes % BLOCK_BYTES, 0);
    uint64_t page = off_bytes / BLOCK_BYTES;
    uint64_t page_count = div_ceil(bytes, BLOCK_BYTES);
    check_lt(page, arena->page_count);
    check_le(page_count, arena->page_count - page);
    uint64_t end = page + page_count;
    check_eq(bitset_next_clear(arena->used, end, page), end); /* all of it is in use */
    bitset_clear_range(arena->used, page, page_count);
    arena->pages_used -= page_count;
    arena->first_free = MIN(arena->first_free, page);
    poison(memory, page_count * BLOCK_BYTES);
}
