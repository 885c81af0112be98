#include "broker/managed_ledger/cursor_parts.h"

#include <string.h>

#include "common/mem.h"

enum { WORD_BITS = 64 };

static struct cursor_part *find(const struct cursor_parts *p, struct position at)
{
    struct cursor_part *part;

    HASH_FIND(hh, p->by_position, &at, sizeof(at), part);
    return part;
}

static void drop(struct cursor_parts *p, struct cursor_part *part)
{
    p->words -= part->n;
    HASH_DEL(p->by_position, part);
    mem_free(part);
}

static unsigned without_zeros(const uint64_t *words, unsigned n)
{
    while (n > 0 && words[n - 1] == 0)
        n--;
    return n;
}

unsigned cursor_parts_count(const struct cursor_parts *p)
{
    return HASH_COUNT(p->by_position);
}

const struct cursor_part *cursor_parts_find(const struct cursor_parts *p, struct position at)
{
    return find(p, at);
}

static bool add(struct cursor_parts *p, struct position at, const uint64_t *words, unsigned n)
{
    struct cursor_part *part;

    if (n > CURSOR_PART_WORDS || p->words + n > CURSOR_PARTS_WORDS)
        return false;
    if (!p->by_position || position_compare(at, p->lowest) < 0)
        p->lowest = at;
    part = mem_alloc(sizeof(*part) + n * sizeof(words[0]));
    part->at = at;
    part->n = n;
    memcpy(part->words, words, n * sizeof(words[0]));
    p->words += n;
    HASH_ADD(hh, p->by_position, at, sizeof(part->at), part);
    return true;
}

bool cursor_parts_set(struct cursor_parts *p, struct position at, const uint64_t *words, unsigned n)
{
    cursor_parts_remove(p, at);
    n = without_zeros(words, n);
    return n > 0 && add(p, at, words, n);
}

enum cursor_parts_outcome cursor_parts_and(struct cursor_parts *p, struct position at,
                                           const uint64_t *words, unsigned n)
{
    struct cursor_part *part = find(p, at);
    uint64_t changed = 0;

    n = without_zeros(words, n);
    if (!part) {
        if (n == 0)
            return PARTS_EMPTY;
        return add(p, at, words, n) ? PARTS_KEPT : PARTS_FULL;
    }
    for (unsigned i = 0; i < part->n; i++) {
        uint64_t left = i < n ? part->words[i] & words[i] : 0;
        changed |= part->words[i] ^ left;
        part->words[i] = left;
    }
    if (!changed)
        return PARTS_SAME;
    n = without_zeros(part->words, part->n);
    if (n == 0) {
        drop(p, part);
        return PARTS_EMPTY;
    }
    p->words -= part->n - n;
    part->n = n;
    return PARTS_KEPT;
}

void cursor_parts_remove(struct cursor_parts *p, struct position at)
{
    struct cursor_part *part = find(p, at);

    if (part)
        drop(p, part);
}

void cursor_parts_remove_upto(struct cursor_parts *p, struct position upto)
{
    struct cursor_part *part, *next;
    struct position lowest = POSITION_LATEST;

    if (!p->by_position || position_compare(upto, p->lowest) < 0)
        return;
    HASH_ITER(hh, p->by_position, part, next)
    {
        if (position_compare(part->at, upto) <= 0)
            drop(p, part);
        else if (position_compare(part->at, lowest) < 0)
            lowest = part->at;
    }
    p->lowest = lowest;
}

void cursor_parts_drop(struct cursor_parts *p)
{
    cursor_parts_remove_upto(p, POSITION_LATEST);
}

uint32_t cursor_part_left(const struct cursor_part *part, uint32_t messages)
{
    uint32_t left = 0;

    for (unsigned i = 0; i < part->n && (uint64_t)i * WORD_BITS < messages; i++) {
        uint32_t bits = messages - i * WORD_BITS;
        uint64_t mask = bits < WORD_BITS ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
        left += (uint32_t)__builtin_popcountll(part->words[i] & mask);
    }
    return left;
}

const struct cursor_part *cursor_parts_next(const struct cursor_parts *p,
                                            const struct cursor_part *before)
{
    return before ? (const struct cursor_part *)before->hh.next : p->by_position;
}
