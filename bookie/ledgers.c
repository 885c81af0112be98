#include "bookie/ledgers.h"

#include <string.h>

#include "bookie/ledger_tomb.h"
#include "common/mem.h"
#include "common/rng.h"

enum { FIRST_BUCKETS = 1024, TRIES = 8, AT_MOST = 4 };

void ledgers_init(struct ledgers *t, struct device *devices, unsigned n)
{
    *t = (struct ledgers){.devices = devices, .n_devices = n, .seed = rng_seed()};
    t->mask = FIRST_BUCKETS - 1;
    t->buckets = mem_alloc(FIRST_BUCKETS * sizeof(struct ledger *));
    list_init(&t->used);
    for (unsigned i = 0; i < n; i++) {
        t->changes[i].generation = 1;
        list_init(&t->changes[i].dirty);
    }
}

void ledgers_end(struct ledgers *t)
{
    list_each(&t->used, node) mem_free(list_entry(node, struct ledger, used));
    mem_free(t->buckets);
    *t = (struct ledgers){0};
}

static struct ledger **bucket_of(struct ledgers *t, int64_t id)
{
    uint64_t state = t->seed ^ (uint64_t)id;
    return &t->buckets[(uint32_t)rng_next(&state) & t->mask];
}

static void grow(struct ledgers *t)
{
    struct ledger **old = t->buckets;
    const uint32_t n = t->mask + 1;
    t->mask = n * 2 - 1;
    t->buckets = mem_alloc((size_t)n * 2 * sizeof(struct ledger *));
    for (uint32_t i = 0; i < n; i++) {
        for (struct ledger *l = old[i], *next; l; l = next) {
            struct ledger **b = bucket_of(t, l->row.id);
            next = l->next;
            l->next = *b;
            *b = l;
        }
    }
    mem_free(old);
}

static bool is_clean(const struct ledgers *t, struct ledger *l)
{
    return l->changed_in <= t->changes[l->device->number].durable && !l->reading_in &&
           list_empty(&l->waiting) && list_empty(&l->reading) && list_empty(&l->watching) &&
           l->fence != LEDGER_FENCING;
}

static bool may_go(const struct ledgers *t, struct ledger *l)
{
    return !l->is_retired && is_clean(t, l);
}

static void evict(struct ledgers *t, struct ledger *l)
{
    struct ledger **at = bucket_of(t, l->row.id);
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    list_remove(&l->used);
    t->n--;
    mem_free(l);
}

/* The least recently used goes; those that may not stand in the queue again. */
static enum err make_room(struct ledgers *t)
{
    for (unsigned i = 0; i < TRIES && t->n >= LEDGERS_KEPT; i++) {
        struct list_node *node = list_pop_front(&t->used);
        struct ledger *l = list_entry(node, struct ledger, used);
        list_push_back(&t->used, node);
        if (may_go(t, l))
            evict(t, l);
    }
    return t->n < AT_MOST * LEDGERS_KEPT ? ERR_OK : ERR_BUSY;
}

static struct ledger *add(struct ledgers *t, struct device *d, const struct ledger_row *row)
{
    struct ledger *l = mem_new(struct ledger);
    l->device = d;
    l->row = *row;
    l->fence = row->fenced ? LEDGER_FENCED : LEDGER_OPEN;
    list_init(&l->waiting);
    list_init(&l->reading);
    list_init(&l->watching);
    list_init(&l->dirty);
    if (t->n > t->mask)
        grow(t);
    struct ledger **b = bucket_of(t, row->id);
    l->next = *b;
    *b = l;
    list_push_back(&t->used, &l->used);
    t->n++;
    return l;
}

static struct ledger *in_memory(struct ledgers *t, int64_t id)
{
    struct ledger *l = *bucket_of(t, id);
    while (l && l->row.id != id)
        l = l->next;
    return l;
}

enum err ledgers_find(struct ledgers *t, int64_t id, struct ledger **out)
{
    struct device *d;
    struct ledger_row row;
    struct ledger *l = in_memory(t, id);
    *out = l;
    if (l) {
        list_remove(&l->used);
        list_push_back(&t->used, &l->used);
        return l->is_retired ? ERR_NO_LEDGER : ERR_OK;
    }
    TRY(device_of(t->devices, t->n_devices, id, &d, &row));
    TRY(make_room(t));
    *out = add(t, d, &row);
    return ERR_OK;
}

/* A row that was made again without its key takes the first one: it is fenced and in limbo. */
static enum err check_key(struct ledgers *t, struct ledger *l, const uint8_t key[MASTER_KEY_SIZE])
{
    static const uint8_t unknown[MASTER_KEY_SIZE];
    if (memcmp(l->row.key, key, MASTER_KEY_SIZE) == 0)
        return ERR_OK;
    if (memcmp(l->row.key, unknown, MASTER_KEY_SIZE) != 0)
        return ERR_UNAUTHORIZED;
    memcpy(l->row.key, key, MASTER_KEY_SIZE);
    ledger_changed(t, l);
    return ERR_OK;
}

/* What went is not made again; what moved to other bookies only by those who copy it here. */
static enum err look_for_tomb(struct device *d, struct ledger_row *row)
{
    struct ledger_tomb tomb;
    const enum err err = ledger_tomb_get(d->index, row->id, &tomb);
    if (err == ERR_NOT_FOUND)
        return ERR_OK;
    TRY(err);
    if (tomb.kind == TOMB_GOING || tomb.kind == TOMB_DELETED)
        return ERR_FENCED;
    row->fenced |= tomb.kind == TOMB_MOVED;
    return ERR_OK;
}

static enum err look_for_tombs(struct ledgers *t, struct ledger_row *row)
{
    for (unsigned i = 0; i < t->n_devices; i++)
        TRY(look_for_tomb(&t->devices[i], row));
    return ERR_OK;
}

enum err ledgers_claim(struct ledgers *t, int64_t id, const uint8_t key[MASTER_KEY_SIZE],
                       struct ledger **out)
{
    const enum err err = ledgers_find(t, id, out);
    if (!err)
        return check_key(t, *out, key);
    if (err != ERR_NO_LEDGER)
        return err;
    if (*out)
        return ERR_FENCED; /* it is retired */
    struct ledger_row row = {.id = id, .last = -1, .lac = -1};
    memcpy(row.key, key, MASTER_KEY_SIZE);
    struct device *d;
    TRY(look_for_tombs(t, &row));
    TRY(device_for(t->devices, t->n_devices, id, &d));
    TRY(make_room(t));
    *out = add(t, d, &row);
    ledger_changed(t, *out);
    return ERR_OK;
}

bool ledgers_retire(struct ledgers *t, int64_t id)
{
    struct ledger *l = in_memory(t, id);
    if (!l)
        l = add(t, &t->devices[0], &(struct ledger_row){.id = id, .last = -1, .lac = -1});
    l->is_retired = true;
    return is_clean(t, l);
}

void ledgers_unretire(struct ledgers *t, int64_t id)
{
    struct ledger *l = in_memory(t, id);
    if (!l || !l->is_retired)
        return;
    l->is_retired = false;
    if (is_clean(t, l))
        evict(t, l);
}

void ledger_changed(struct ledgers *t, struct ledger *l)
{
    struct ledger_changes *c = &t->changes[l->device->number];
    l->changed_in = c->generation;
    list_remove(&l->dirty);
    list_push_back(&c->dirty, &l->dirty);
}

void ledgers_freeze(struct ledgers *t, const struct device *d,
                    void (*each)(void *ctx, const struct ledger_row *row), void *ctx)
{
    struct ledger_changes *c = &t->changes[d->number];
    for (struct list_node *node; (node = list_pop_front(&c->dirty)) != NULL;)
        each(ctx, &list_entry(node, struct ledger, dirty)->row);
    c->generation++;
}

void ledgers_thaw(struct ledgers *t, const struct device *d)
{
    struct ledger_changes *c = &t->changes[d->number];
    c->durable = c->generation - 1;
}
