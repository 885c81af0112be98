#include "broker/managed_ledger/entry_cache.h"

#include <string.h>

#include "common/list.h"
#include "common/mem.h"

enum { RUN = 16, RECENT = 8 };

/* A slab that came from a socket, of which entries are kept where they lie: it counts whole. */
struct sheet {
    struct slab *slab; /* a reference of its own while more may come of it */
    size_t size;
    unsigned n;          /* entries of it that are here */
    struct source *from; /* NULL: no more will come of it */
};

/* Where entries came from of late, and how much of that they are. */
struct source {
    const struct slab *slab; /* to compare */
    const uint8_t *last;     /* payload: one before it is of the next use of the slab */
    size_t size, bytes;
    struct sheet *sheet; /* NULL: what came of it was copied */
};

/* Neighbours: they come, are read and go one after the other, so they are found with one look. */
struct run {
    struct list_node age;
    struct run *next; /* in its bucket; or spare */
    int64_t ledger;
    int64_t number; /* of their entry ids, divided by RUN */
    uint32_t here;  /* a bit an entry */
    uint32_t small; /* a bit an entry that stands in a slab of ours with others */
    struct slice at[RUN];
    struct sheet *sheet[RUN]; /* NULL: in none */
};

struct entry_cache {
    size_t limit, bytes;
    struct list_node oldest;
    struct run **buckets;
    size_t n_buckets, n_runs; /* a power of two; not more than buckets */
    uint64_t n, hits, misses, evictions;
    struct run *recent; /* found last */
    struct source sources[RECENT];
    unsigned next_source;
    bool is_dense;          /* most of the last source that ended were entries: they are shared */
    struct slab *gathering; /* small entries stand in it one behind the other, `used` so far */
    size_t used;
    struct run *spare; /* by next */
    unsigned n_spare;
};

enum { FIRST_BUCKETS = 256, SPARE_MAX = 256 };
enum { SMALL = 2048, GATHERED = 16 * 1024, DENSE = 2 };

static size_t bucket_of(int64_t ledger, int64_t number, size_t n_buckets)
{
    uint64_t mixed = (uint64_t)ledger * 0x9e3779b97f4a7c15u + (uint64_t)number;

    mixed *= 0xbf58476d1ce4e5b9u;
    return (size_t)(mixed >> 32) & (n_buckets - 1);
}

struct entry_cache *entry_cache_new(size_t bytes)
{
    struct entry_cache *c = mem_new(struct entry_cache);

    c->limit = bytes;
    c->n_buckets = FIRST_BUCKETS;
    c->buckets = mem_alloc(c->n_buckets * sizeof(struct run *));
    list_init(&c->oldest);
    return c;
}

static unsigned place_in_run(struct position at)
{
    return (unsigned)((uint64_t)at.entry % RUN);
}

/* Of a position before the first entry it is no run's. */
static int64_t number_of(struct position at)
{
    return (int64_t)((uint64_t)at.entry / RUN);
}

static bool is_of(const struct run *r, struct position at)
{
    return r->ledger == at.ledger && r->number == number_of(at);
}

static struct run *run_find(struct entry_cache *c, struct position at)
{
    if (c->recent && is_of(c->recent, at))
        return c->recent;
    struct run *r = c->buckets[bucket_of(at.ledger, number_of(at), c->n_buckets)];
    while (r && !is_of(r, at))
        r = r->next;
    if (r)
        c->recent = r;
    return r;
}

/* NULL: it is not here */
static struct slice *find(struct entry_cache *c, struct position at)
{
    struct run *r = run_find(c, at);

    return r && r->here >> place_in_run(at) & 1 ? &r->at[place_in_run(at)] : NULL;
}

static void grow(struct entry_cache *c)
{
    size_t old = c->n_buckets;
    struct run **from = c->buckets;

    c->n_buckets = old * 2;
    c->buckets = mem_alloc(c->n_buckets * sizeof(struct run *));
    for (size_t i = 0; i < old; i++) {
        while (from[i]) {
            struct run *one = from[i];
            struct run **to = &c->buckets[bucket_of(one->ledger, one->number, c->n_buckets)];
            from[i] = one->next;
            one->next = *to;
            *to = one;
        }
    }
    mem_free(from);
}

static struct run *run_new(struct entry_cache *c, struct position at)
{
    struct run *r = c->spare;

    if (r) {
        c->spare = r->next;
        c->n_spare--;
    } else {
        r = mem_new(struct run);
    }
    if (++c->n_runs > c->n_buckets)
        grow(c);
    struct run **place = &c->buckets[bucket_of(at.ledger, number_of(at), c->n_buckets)];
    r->ledger = at.ledger;
    r->number = number_of(at);
    r->here = r->small = 0;
    r->next = *place;
    *place = r;
    list_push_back(&c->oldest, &r->age);
    c->bytes += sizeof(*r);
    c->recent = r;
    return r;
}

/* Its entries are gone. */
static void run_end(struct entry_cache *c, struct run *r)
{
    struct run **place = &c->buckets[bucket_of(r->ledger, r->number, c->n_buckets)];

    while (*place != r)
        place = &(*place)->next;
    *place = r->next;
    list_remove(&r->age);
    c->bytes -= sizeof(*r);
    c->n_runs--;
    if (c->recent == r)
        c->recent = NULL;
    if (c->n_spare == SPARE_MAX) {
        mem_free(r);
        return;
    }
    r->next = c->spare;
    c->spare = r;
    c->n_spare++;
}

/* What an entry keeps besides others: one in a slab of its own that whole, a small one its part. */
static size_t held_by(const struct run *r, unsigned i)
{
    if (r->sheet[i])
        return 0;
    return r->small >> i & 1 ? r->at[i].len : slab_size(r->at[i].slab);
}

static void sheet_settle(struct entry_cache *c, struct sheet *s)
{
    if (s->n > 0)
        return;
    if (s->from) {
        *s->from = (struct source){0};
        slab_drop(&s->slab);
    }
    c->bytes -= s->size + sizeof(*s);
    mem_free(s);
}

/* The first entry of the oldest run. */
static void evict(struct entry_cache *c)
{
    struct run *r = list_entry(c->oldest.next, struct run, age);
    const unsigned i = (unsigned)__builtin_ctz(r->here);

    c->bytes -= held_by(r, i);
    c->n--;
    slice_drop(&r->at[i]);
    if (r->sheet[i]) {
        r->sheet[i]->n--;
        sheet_settle(c, r->sheet[i]);
    }
    r->here &= r->here - 1;
    if (r->here == 0)
        run_end(c, r);
}

static void source_end(struct entry_cache *c, struct source *from)
{
    struct sheet *s = from->sheet;

    *from = (struct source){0};
    if (!s)
        return;
    s->from = NULL;
    slab_drop(&s->slab);
    sheet_settle(c, s);
}

void entry_cache_drop(struct entry_cache **c)
{
    for (unsigned i = 0; i < RECENT; i++)
        source_end(*c, &(*c)->sources[i]);
    while (!list_empty(&(*c)->oldest))
        evict(*c);
    for (struct run *one; (one = (*c)->spare);) {
        (*c)->spare = one->next;
        mem_free(one);
    }
    slab_drop(&(*c)->gathering);
    mem_free((*c)->buckets);
    mem_free(*c);
    *c = NULL;
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
static struct slice copy_small(struct entry_cache *c, const struct chain *payload, size_t len)
{
    if (c->gathering && slab_size(c->gathering) - c->used < len)
        slab_drop(&c->gathering);
    if (!c->gathering) {
        c->gathering = slab_new(GATHERED);
        c->used = 0;
    }
    struct slice s = slice_of(c->gathering, c->used, len);
    flatten(payload, slab_bytes(c->gathering) + c->used);
    c->used += len;
    return s;
}

static struct slice copy_large(const struct chain *payload, size_t len)
{
    struct slab *own = slab_new(len);

    flatten(payload, slab_bytes(own));
    return slice_take(&own, len);
}

static struct source *source_find(struct entry_cache *c, const struct slice *payload)
{
    for (unsigned i = 0; i < RECENT; i++)
        if (c->sources[i].slab == payload->slab)
            return &c->sources[i];
    return &c->sources[c->next_source++ % RECENT];
}

/* Where the payload lies, to be shared from there when it is dense. */
static struct source *source_of(struct entry_cache *c, const struct slice *payload)
{
    struct source *s = source_find(c, payload);

    if (s->slab != payload->slab || (!s->sheet && payload->base < s->last)) {
        if (s->slab)
            c->is_dense = s->bytes >= s->size / DENSE;
        source_end(c, s);
        *s = (struct source){.slab = payload->slab, .size = slab_size(payload->slab)};
    }
    s->last = payload->base;
    return s;
}

static struct sheet *sheet_of(struct entry_cache *c, struct source *from,
                              const struct slice *payload)
{
    if (!from->sheet && c->is_dense) {
        struct sheet *s = mem_new(struct sheet);
        struct slice whole = slice_share(*payload);
        *s = (struct sheet){.slab = whole.slab, .size = from->size, .from = from};
        c->bytes += s->size + sizeof(*s);
        from->sheet = s;
    }
    return from->sheet;
}

static bool is_its_own(const struct slice *payload)
{
    return slab_size(payload->slab) <= DENSE * payload->len;
}

/* Copies what would keep much else alive; shares the rest. */
static void place(struct entry_cache *c, struct run *r, unsigned i, const struct chain *payload,
                  size_t len)
{
    const struct slice *one = payload->n == 1 && payload->at[0].slab ? &payload->at[0] : NULL;

    r->sheet[i] = NULL;
    r->small &= ~(1u << i);
    if (one && is_its_own(one)) {
        r->at[i] = slice_share(*one);
        return;
    }
    if (one) {
        struct source *from = source_of(c, one);
        from->bytes += len;
        r->sheet[i] = sheet_of(c, from, one);
    }
    if (r->sheet[i]) {
        r->sheet[i]->n++;
        r->at[i] = slice_share(*one);
    } else if (len > SMALL) {
        r->at[i] = copy_large(payload, len);
    } else {
        r->at[i] = copy_small(c, payload, len);
        r->small |= 1u << i;
    }
}

static void keep_to_limit(struct entry_cache *c)
{
    for (; c->bytes > c->limit; c->evictions++)
        evict(c);
}

void entry_cache_put(struct entry_cache *c, struct position at, const struct chain *payload)
{
    const size_t len = chain_len(payload);
    const unsigned i = place_in_run(at);
    struct run *r = run_find(c, at);

    if (len + sizeof(*r) > c->limit / 8 || (r && r->here >> i & 1))
        return;
    if (!r)
        r = run_new(c, at);
    place(c, r, i, payload, len);
    r->here |= 1u << i;
    c->bytes += held_by(r, i);
    c->n++;
    keep_to_limit(c);
}

void entry_cache_set_limit(struct entry_cache *c, size_t bytes)
{
    c->limit = bytes;
    keep_to_limit(c);
}

bool entry_cache_has(struct entry_cache *c, struct position at)
{
    return find(c, at) != NULL;
}

bool entry_cache_get(struct entry_cache *c, struct position at, struct slice *out)
{
    const struct slice *one = find(c, at);

    if (one) {
        *out = slice_share(*one);
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
