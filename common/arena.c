#include "common/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "common/mem.h"

#define BLOCK_FIRST ((size_t)4 << 10)
#define BLOCK_MAX   ((size_t)64 << 10)

struct block {
    struct block *older;
    size_t size;
    size_t used;
    alignas(max_align_t) uint8_t bytes[];
};

struct arena {
    struct block *newest; /* the oldest is the one that is kept */
    size_t given;
    size_t limit;
    bool was_short;
};

static struct block *block_new(struct block *older, size_t size)
{
    struct block *b = mem_resize(NULL, sizeof *b + size);
    *b = (struct block){.older = older, .size = size};
    return b;
}

struct arena *arena_new(size_t limit)
{
    struct arena *a = mem_new(struct arena);
    a->limit = limit;
    a->newest = block_new(NULL, BLOCK_FIRST);
    return a;
}

static size_t next_block_size(const struct arena *a, size_t needed)
{
    size_t size = a->newest->size * 2;
    if (size > BLOCK_MAX)
        size = BLOCK_MAX;
    return size > needed ? size : needed;
}

void *arena_alloc(struct arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    const size_t left = a->limit - a->given;
    if (size > left || size > SIZE_MAX / 2) {
        a->was_short = true;
        return NULL;
    }
    const size_t rounded = (size + align - 1) & ~(align - 1);
    if (rounded > a->newest->size - a->newest->used)
        a->newest = block_new(a->newest, next_block_size(a, rounded));
    void *p = a->newest->bytes + a->newest->used;
    a->newest->used += rounded;
    a->given += rounded < left ? rounded : left;
    return memset(p, 0, size);
}

char *arena_string(struct arena *a, const char *s, size_t len)
{
    char *copy = len < SIZE_MAX ? arena_alloc(a, len + 1) : NULL;
    if (copy && len > 0)
        memcpy(copy, s, len);
    return copy;
}

bool arena_was_short(const struct arena *a)
{
    return a->was_short;
}

static void drop_down_to(struct arena *a, const struct block *kept)
{
    while (a->newest != kept) {
        struct block *b = a->newest;
        a->newest = b->older;
        mem_free(b);
    }
}

void arena_reset(struct arena *a)
{
    const struct block *first = a->newest;
    while (first->older)
        first = first->older;
    drop_down_to(a, first);
    a->newest->used = 0;
    a->given = 0;
    a->was_short = false;
}

void arena_drop(struct arena **a)
{
    if (*a)
        drop_down_to(*a, NULL);
    mem_free(*a);
    *a = NULL;
}
