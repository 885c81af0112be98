#include "common/mem_pool.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/list.h"
#include "common/mem.h"

enum { CHUNK = 256 * 1024, CHUNK_LEAST = 8 }; /* bytes; objects */

/* Under the address sanitizer each is allocated by itself: a pool would hide its misuse. */
#if defined(__SANITIZE_ADDRESS__)
#define APART 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define APART 1
#endif
#endif
#ifndef APART
#define APART 0
#endif

struct chunk;

struct cell {
    struct chunk *chunk;
    union {
        struct cell *next; /* while it is free */
        uint64_t object[1];
    };
};

struct chunk {
    struct mem_pool *pool;
    struct list_node node; /* in pool.room, unless it is full */
    struct cell *free;
    unsigned used;
    unsigned fresh; /* never used so far, those behind all others: zeroes */
};

struct mem_pool {
    size_t cell, bytes; /* of a chunk */
    unsigned n;         /* cells in one */
    unsigned chunks;
    struct list_node room;
    bool dropped;
};

static struct cell *cell_at(struct chunk *c, unsigned i)
{
    return (struct cell *)(void *)((char *)(c + 1) + i * c->pool->cell);
}

/* ---- chunks ---- */

static struct chunk *map(struct mem_pool *p)
{
    struct chunk *c =
        mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (c == MAP_FAILED) {
        fprintf(stderr, "out of memory: %zu bytes\n", p->bytes);
        abort();
    }
    c->pool = p;
    c->fresh = p->n;
    list_push_front(&p->room, &c->node);
    p->chunks++;
    return c;
}

static void unmap(struct chunk *c)
{
    struct mem_pool *p = c->pool;

    list_remove(&c->node);
    munmap(c, p->bytes);
    if (--p->chunks == 0 && p->dropped)
        mem_free(p);
}

static bool is_only_one_with_room(const struct chunk *c)
{
    const struct list_node *room = &c->pool->room;

    return room->next == &c->node && room->prev == &c->node;
}

/* ---- objects ---- */

void *mem_pool_take(struct mem_pool *p)
{
    struct chunk *c;
    struct cell *cell;

    assert(!p->dropped);
    if (APART) {
        cell = mem_alloc(p->cell);
        return cell->object;
    }
    c = list_empty(&p->room) ? map(p) : list_entry(p->room.next, struct chunk, node);
    cell = c->free;
    if (cell) {
        c->free = cell->next;
        memset(cell->object, 0, p->cell - offsetof(struct cell, object));
    } else {
        cell = cell_at(c, p->n - c->fresh--);
        cell->chunk = c;
    }
    if (++c->used == p->n)
        list_remove(&c->node);
    return cell->object;
}

void mem_pool_give(void *object)
{
    struct cell *cell = object ? container_of(object, struct cell, object) : NULL;

    if (APART || !cell) {
        mem_free(cell);
        return;
    }
    struct chunk *c = cell->chunk;
    if (c->used-- == c->pool->n)
        list_push_front(&c->pool->room, &c->node);
    cell->next = c->free;
    c->free = cell;
    if (c->used == 0 && (c->pool->dropped || !is_only_one_with_room(c)))
        unmap(c);
}

/* ---- pools ---- */

struct mem_pool *mem_pool_new(size_t size)
{
    struct mem_pool *p = mem_new(struct mem_pool);
    const size_t object = size < sizeof(void *) ? sizeof(void *) : (size + 7) & ~(size_t)7;

    p->cell = offsetof(struct cell, object) + object;
    p->bytes = CHUNK;
    while (p->bytes < sizeof(struct chunk) + CHUNK_LEAST * p->cell)
        p->bytes *= 2;
    p->n = (unsigned)((p->bytes - sizeof(struct chunk)) / p->cell);
    list_init(&p->room);
    return p;
}

void mem_pool_drop(struct mem_pool **pool)
{
    struct mem_pool *p = *pool;

    *pool = NULL;
    if (!p)
        return;
    p->dropped = true;
    if (p->chunks == 0) {
        mem_free(p);
        return;
    }
    list_each(&p->room, n)
    {
        struct chunk *c = list_entry(n, struct chunk, node);
        if (c->used == 0) {
            unmap(c); /* there is one of them at most: p may be gone */
            return;
        }
    }
}

size_t mem_pool_bytes(const struct mem_pool *p)
{
    return p->chunks * p->bytes;
}
