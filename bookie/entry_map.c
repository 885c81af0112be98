#include "bookie/entry_map.h"

#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

enum { FIRST_ROOM = 256, LINE = 16 };

void entry_map_init(struct entry_map *m)
{
    *m = (struct entry_map){.seed = rng_seed()};
}

/* Neighbours lie in one line of the table, each at its own place, and lines anywhere: entries come
 * in order, and a run of thousands must not grow over another ledger's.  A line begins anywhere in
 * itself: the first entries of many ledgers must not all want the same place.  Where a place is
 * taken the next line's is tried, so that neighbours stay together. */
static uint32_t hash_of(const struct entry_map *m, int64_t ledger, int64_t entry)
{
    uint64_t state = m->seed ^ (uint64_t)ledger * 0x9e3779b97f4a7c15u ^ (uint64_t)entry / LINE;
    const uint64_t h = rng_next(&state);
    return (uint32_t)h * LINE + (uint32_t)(((h >> 32) + (uint64_t)entry) % LINE);
}

/* Where the entry is in the table, or the empty place where it would be. */
static uint32_t place_of(const struct entry_map *m, int64_t ledger, int64_t entry)
{
    uint32_t home = hash_of(m, ledger, entry) & m->mask, at = home;
    for (uint32_t i; (i = m->table[at]) != 0;) {
        const struct entry_slot *s = &m->slots[i - 1];
        if (s->ledger == ledger && s->entry == entry)
            break;
        at = (at + LINE) & m->mask;
        if (at == home) /* that place is taken in every line */
            home = at = (at + 1) & m->mask;
    }
    return at;
}

static void grow(struct entry_map *m)
{
    m->room = m->room ? m->room * 2 : FIRST_ROOM;
    m->slots = mem_resize(m->slots, m->room * sizeof m->slots[0]);
    mem_free(m->table);
    m->mask = m->room * 2 - 1;
    m->table = mem_alloc((m->mask + 1u) * sizeof m->table[0]);
    for (uint32_t i = 0; i < m->n; i++)
        m->table[place_of(m, m->slots[i].ledger, m->slots[i].entry)] = i + 1;
}

static struct entry_slot *slot_of(const struct entry_map *m, int64_t ledger, int64_t entry)
{
    if (m->n == 0)
        return NULL;
    const uint32_t i = m->table[place_of(m, ledger, entry)];
    return i ? &m->slots[i - 1] : NULL;
}

void entry_map_put(struct entry_map *m, int64_t ledger, int64_t entry, struct slice bytes)
{
    if (m->n == m->room)
        grow(m);
    uint32_t *place = &m->table[place_of(m, ledger, entry)];
    if (*place) {
        struct entry_slot *old = &m->slots[*place - 1];
        slice_drop(&old->bytes);
        old->bytes = bytes;
        return;
    }
    m->slots[m->n] = (struct entry_slot){ledger, entry, bytes};
    *place = ++m->n;
}

const struct slice *entry_map_find(const struct entry_map *m, int64_t ledger, int64_t entry)
{
    const struct entry_slot *s = slot_of(m, ledger, entry);
    return s && s->bytes.len > 0 ? &s->bytes : NULL;
}

void entry_map_forget(struct entry_map *m, int64_t ledger, int64_t entry)
{
    struct entry_slot *s = slot_of(m, ledger, entry);
    if (s)
        slice_drop(&s->bytes);
}

void entry_map_clear(struct entry_map *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        slice_drop(&m->slots[i].bytes);
    if (m->n > 0)
        memset(m->table, 0, (m->mask + 1u) * sizeof m->table[0]);
    m->n = 0;
}

void entry_map_end(struct entry_map *m)
{
    entry_map_clear(m);
    mem_free(m->slots);
    mem_free(m->table);
    *m = (struct entry_map){0};
}
