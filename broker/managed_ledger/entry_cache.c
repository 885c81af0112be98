#include "broker/managed_ledger/entry_cache.h"

#include <string.h>

#include "common/list.h"
#include "common/mem.h"

struct cached {
    struct list_node age;
    struct cached *next; /* in its bucket */
    struct position at;
    struct slice payload;
    size_t bytes;
};

struct entry_cache {
    size_t limit, bytes;
    struct list_node oldest;
    struct cached **buckets;
    size_t n_buckets, n; /* a power of two */
    uint64_t hits, misses, evictions;
};

enum { FIRST_BUCKETS = 256 };

static size_t bucket_of(struct position at, size_t n_buckets)
{
    uint64_t mixed = (uint64_t)at.ledger * 0x9e3779b97f4a7c15u + (uint64_t)at.entry;

    mixed *= 0xbf58476d1ce4e5b9u;
    return (size_t)(mixed >> 32) & (n_buckets - 1);
}

struct entry_cache *entry_cache_new(size_t bytes)
{
    struct entry_cache *c = mem_new(struct entry_cache);

    c->limit = bytes;
    c->n_buckets = FIRST_BUCKETS;
    c->buckets = mem_alloc(c->n_buckets * sizeof(struct cached *));
    list_init(&c->oldest);
    return c;
}

static struct cached **place_of(const struct entry_cache *c, struct position at)
{
    struct cached **p = &c->buckets[bucket_of(at, c->n_buckets)];

    while (*p && !position_equal((*p)->at, at))
        p = &(*p)->next;
    return p;
}

static void evict(struct entry_cache *c, struct cached *one)
{
    *place_of(c, one->at) = one->next;
    list_remove(&one->age);
    c->bytes -= one->bytes;
    c->n--;
    slice_drop(&one->payload);
    mem_free(one);
}

void entry_cache_drop(struct entry_cache **c)
{
    while (!list_empty(&(*c)->oldest))
        evict(*c, list_entry((*c)->oldest.next, struct cached, age));
    mem_free((*c)->buckets);
    mem_free(*c);
    *c = NULL;
}

static void grow(struct entry_cache *c)
{
    size_t old = c->n_buckets;
    struct cached **from = c->buckets;

    c->n_buckets = old * 2;
    c->buckets = mem_alloc(c->n_buckets * sizeof(struct cached *));
    for (size_t i = 0; i < old; i++) {
        while (from[i]) {
            struct cached *one = from[i];
            struct cached **to = &c->buckets[bucket_of(one->at, c->n_buckets)];
            from[i] = one->next;
            one->next = *to;
            *to = one;
        }
    }
    mem_free(from);
}

static struct slice flatten(const struct chain *payload, size_t len, size_t *held)
{
    struct slab *slab = slab_new(len);
    uint8_t *to = slab_bytes(slab);

    for (unsigned i = 0; i < payload->n; i++) {
        if (payload->at[i].len > 0)
            memcpy(to, payload->at[i].base, payload->at[i].len);
        to += payload->at[i].len;
    }
    *held = slab_size(slab);
    return slice_take(&slab, len);
}

void entry_cache_put(struct entry_cache *c, struct position at, const struct chain *payload)
{
    size_t len = chain_len(payload);
    struct cached **place = place_of(c, at);

    if (len + sizeof(struct cached) > c->limit / 8 || *place)
        return;
    struct cached *one = mem_new(struct cached);
    one->at = at;
    one->payload = flatten(payload, len, &one->bytes);
    one->bytes += sizeof(*one);
    *place = one;
    list_push_back(&c->oldest, &one->age);
    c->bytes += one->bytes;
    if (++c->n > c->n_buckets)
        grow(c);
    for (; c->bytes > c->limit; c->evictions++)
        evict(c, list_entry(c->oldest.next, struct cached, age));
}

bool entry_cache_has(const struct entry_cache *c, struct position at)
{
    return *place_of(c, at) != NULL;
}

bool entry_cache_get(struct entry_cache *c, struct position at, struct slice *out)
{
    const struct cached *one = *place_of(c, at);

    if (one) {
        *out = slice_share(one->payload);
        c->hits++;
    } else {
        c->misses++;
    }
    return one != NULL;
}

size_t entry_cache_bytes(const struct entry_cache *c)
{
    return c->bytes;
}

struct entry_cache_counts entry_cache_counts(const struct entry_cache *c)
{
    return (struct entry_cache_counts){
        .entries = c->n, .hits = c->hits, .misses = c->misses, .evictions = c->evictions};
}
