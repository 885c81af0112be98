#include "client/consumer_acks.h"

#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

struct entry_key {
    int64_t ledger, entry;
};

static unsigned entry_hash(const void *key)
{
    struct entry_key k;
    memcpy(&k, key, sizeof k);
    uint64_t seed = (uint64_t)k.ledger * 31 + (uint64_t)k.entry;
    return (unsigned)rng_next(&seed);
}

#define HASH_FUNCTION(key, len, hash) ((hash) = entry_hash(key))
#define uthash_malloc(size)           mem_alloc(size)
#define uthash_free(p, size)          mem_free(p)
#include <uthash.h>

/* An entry that was handed out in parts. */
struct expected {
    struct entry_key key;
    unsigned left; /* messages of a batch not acknowledged */
    unsigned size;
    uint64_t *todo; /* a bit each; NULL: a large message */
    struct message_id *pieces;
    unsigned n_pieces;
    UT_hash_handle hh;
};

struct acks {
    struct expected *expected;
    struct message_id *ids;
    unsigned n, room;
};

struct acks *acks_new(void)
{
    return mem_new(struct acks);
}

static struct expected *find(struct acks *a, struct message_id id)
{
    struct entry_key key = {.ledger = id.ledger, .entry = id.entry};
    struct expected *e;
    HASH_FIND(hh, a->expected, &key, sizeof key, e);
    return e;
}

static void forget(struct acks *a, struct expected *e)
{
    HASH_DEL(a->expected, e);
    mem_free(e->todo);
    mem_free(e->pieces);
    mem_free(e);
}

static struct expected *expect(struct acks *a, struct message_id id)
{
    struct expected *e = mem_new(struct expected);
    e->key = (struct entry_key){.ledger = id.ledger, .entry = id.entry};
    HASH_ADD(hh, a->expected, key, sizeof e->key, e);
    return e;
}

void acks_expect_batch(struct acks *a, struct message_id id, const struct batch_shape *shape)
{
    if (find(a, id))
        return;
    struct expected *e = expect(a, id);
    e->size = shape->size;
    e->todo = mem_alloc((shape->size + 63) / 64 * sizeof(uint64_t));
    for (unsigned i = 0; i < shape->size; i++)
        if (batch_wants(shape, i)) {
            e->todo[i / 64] |= 1ull << (i % 64);
            e->left++;
        }
}

void acks_expect_pieces(struct acks *a, struct message_id last, struct message_id *pieces,
                        unsigned n)
{
    struct expected *e = find(a, last);
    if (!e)
        e = expect(a, last);
    mem_free(e->pieces);
    e->pieces = pieces;
    e->n_pieces = n;
}

void acks_forget_batches(struct acks *a)
{
    struct expected *e, *next;
    HASH_ITER(hh, a->expected, e, next)
    {
        if (e->todo)
            forget(a, e);
    }
}

void acks_put_back(struct acks *a, const struct message_id *ids, unsigned n)
{
    if (n == 0)
        return;
    if (a->n + n > a->room) {
        a->room = (a->n + n) * 2;
        a->ids = mem_resize(a->ids, a->room * sizeof *a->ids);
    }
    memcpy(a->ids + a->n, ids, n * sizeof *ids);
    a->n += n;
}

static void done_with(struct expected *e, unsigned index)
{
    uint64_t bit = 1ull << (index % 64);
    if (index >= e->size || !(e->todo[index / 64] & bit))
        return;
    e->todo[index / 64] &= ~bit;
    e->left--;
}

void acks_one(struct acks *a, struct message_id id)
{
    struct expected *e = find(a, id);
    if (id.batch_index >= 0) {
        if (!e || !e->todo)
            return;
        done_with(e, (unsigned)id.batch_index);
        if (e->left > 0)
            return;
    }
    if (e)
        acks_put_back(a, e->pieces, e->n_pieces);
    acks_put_back(a, &id, 1);
    if (e)
        forget(a, e);
}

static bool is_before(const struct entry_key *e, struct message_id id)
{
    return e->ledger < id.ledger || (e->ledger == id.ledger && e->entry < id.entry);
}

bool acks_upto(struct acks *a, struct message_id id)
{
    struct expected *e, *next;
    HASH_ITER(hh, a->expected, e, next)
    {
        if (is_before(&e->key, id))
            forget(a, e);
    }
    e = find(a, id);
    if (id.batch_index >= 0) {
        if (!e || !e->todo)
            return false;
        for (unsigned i = 0; i <= (unsigned)id.batch_index && i < e->size; i++)
            done_with(e, i);
        if (e->left > 0)
            return false;
    }
    if (e)
        forget(a, e);
    return true;
}

unsigned acks_gathered(const struct acks *a)
{
    return a->n;
}

struct message_id *acks_take(struct acks *a, unsigned max, unsigned *n)
{
    *n = a->n < max ? a->n : max;
    if (*n == 0)
        return NULL;
    struct message_id *out = mem_alloc(*n * sizeof *out);
    memcpy(out, a->ids, *n * sizeof *out);
    a->n -= *n;
    memmove(a->ids, a->ids + *n, a->n * sizeof *out);
    return out;
}

void acks_drop(struct acks **a)
{
    struct expected *e, *next;
    HASH_ITER(hh, (*a)->expected, e, next)
    {
        forget(*a, e);
    }
    mem_free((*a)->ids);
    mem_free(*a);
    *a = NULL;
}
