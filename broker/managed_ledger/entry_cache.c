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
    struct slab *gathering; /* small entries stand in it one behind the other, `used` so far */
    size_t used;
    struct cached *spare; /* by next */
    unsigned n_spare;
};

enum { FIRST_BUCKETS = 256, SPARE_MAX = 4096 };
enum { SMALL = 2048, GATHERED = 16 * 1024 };

/* Neighbours have neighbouring buckets: they come, are read and go one after the other. */
static size_t bucket_of(struct position at, size_t n_buckets)
{
    enum { LINE = 16 };
    uint64_t mixed = (uint64_t)at.ledger * 0x9e3779b97f4a7c15u + (uint64_t)at.entry / LINE;

    mixed *= 0xbf58476d1ce4e5b9u;
    return (size_t)((mixed >> 32) * LINE + ((mixed >> 28) + (uint64_t)at.entry) % LINE) &
           (n_buckets - 1);
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
    if (c->n_spare == SPARE_MAX) {
        mem_free(one);
        return;
    }
    one->next = c->spare;
    c->spare = one;
    c->n_spare++;
}

static struct cached *cached_new(struct entry_cache *c)
{
    struct cached *one = c->spare;

    if (!one)
        return mem_new(struct cached);
    c->spare = one->next;
    c->n_spare--;
    *one = (struct cached){0};
    return one;
}

void entry_cache_drop(struct entry_cache **c)
{
    while (!list_empty(&(*c)->oldest))
        evict(*c, list_entry((*c)->oldest.next, struct cached, age));
    for (struct cached *one; (one = (*c)->spare);) {
        (*c)->spare = one->next;
        mem_free(one);
    }
    slab_drop(&(*c)->gathering);
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

static void flatten(const struct chain *payload, uint8_t *to)
{
    for (unsigned i = 0; i < payload->n; i++) {
        if (payload->at[i].len > 0)
            memcpy(to, payload->at[i].base, payload->at[i].len);
        to += payload->at[i].len;
    }
}

/* A small one lives as long as its slab, as its neighbours do: they came and go together. */
static struct slice copy_of(struct entry_cache *c, const struct chain *payload, size_t len,
                            size_t *held)
{
    if (len > SMALL) {
        struct slab *own = slab_new(len);
        flatten(payload, slab_bytes(own));
        *held = slab_size(own);
        return slice_take(&own, len);
    }
    if (c->gathering && slab_size(c->gathering) - c->used < len)
        slab_drop(&c->gathering);
    if (!c->gathering) {
        c->gathering = slab_new(GATHERED);
        c->used = 0;
    }
    struct slice s = slice_of(c->gathering, c->used, len);
    flatten(payload, slab_bytes(c->gathering) + c->used);
    c->used += len;
    *held = len;
    return s;
}

static void keep_to_limit(struct entry_cache *c)
{
    for (; c->bytes > c->limit; c->evictions++)
        evict(c, list_entry(c->oldest.next, struct cached, age));
}

void entry_cache_put(struct entry_cache *c, struct position at, const struct chain *payload)
{
    size_t len = chain_len(payload);
    struct cached **place = place_of(c, at);

    if (len + sizeof(struct cached) > c->limit / 8 || *place)
        return;
    struct cached *one = cached_new(c);
    one->at = at;
    one->payload = copy_of(c, payload, len, &one->bytes);
    one->bytes += sizeof(*one);
    *place = one;
    list_push_back(&c->oldest, &one->age);
    c->bytes += one->bytes;
    if (++c->n > c->n_buckets)
        grow(c);
    keep_to_limit(c);
}

void entry_cache_set_limit(struct entry_cache *c, size_t bytes)
{
    c->limit = bytes;
    keep_to_limit(c);
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
