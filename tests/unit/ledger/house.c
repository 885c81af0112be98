#include "tests/unit/ledger/house.h"

#include <stdio.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/suite.h"

struct house house;

void house_happened(void)
{
    pthread_mutex_lock(&house.lock);
    house.happened++;
    pthread_cond_signal(&house.turned);
    pthread_mutex_unlock(&house.lock);
}

void house_await(unsigned n)
{
    pthread_mutex_lock(&house.lock);
    while (house.happened < house.seen + n)
        pthread_cond_wait(&house.turned, &house.lock);
    house.seen += n;
    pthread_mutex_unlock(&house.lock);
}

void house_call(void (*fn)(void *ctx), void *ctx)
{
    loop_call(house.loop, fn, ctx);
}

static void watched(struct bookies_watch *w)
{
    (void)w;
    unsigned expected = house.expected ? house.expected : house.n - house.hidden;

    if (ledger_client_ready(house.client) && ledger_client_bookies(house.client) == expected) {
        ledger_client_unwatch(house.client, &house.watch);
        house_happened();
    }
}

static void bookies_start(void *ctx)
{
    (void)ctx;
    for (unsigned i = 0; i < house.n; i++)
        house.bookie[i] = fake_bookie_new(house.loop);
}

static void client_start(void *ctx)
{
    (void)ctx;
    house.conf.counts = &house.counts;
    house.client = ledger_client_new(house.loop, house.meta, &house.conf);
    house.watch.changed = watched;
    ledger_client_watch(house.client, &house.watch);
}

void house_register(unsigned bookie)
{
    char path[META_KEY_MAX];

    ck_assert(path_bookie(fake_bookie_id(house.bookie[bookie]), false, path) == ERR_OK);
    ck_assert(meta_put_wait(house.meta, path, (struct slice){0}, META_ABSENT) == ERR_OK);
}

void house_open(unsigned bookies)
{
    house.n = bookies;
    pthread_mutex_init(&house.lock, NULL);
    pthread_cond_init(&house.turned, NULL);
    house.loop = loop_new("test");
    loop_start(house.loop);
    ck_assert(meta_memory_open(&house.meta) == ERR_OK);
    house.shaky = shaky_meta_new(house.meta);
    house.meta = &house.shaky->base;
    house_call(bookies_start, NULL);
    for (unsigned i = 0; i < house.n - house.hidden; i++)
        house_register(i);
    house_call(client_start, NULL);
    house_await(1);
}

static void stop(void *ctx)
{
    (void)ctx;
    ledger_client_drop(&house.client);
    for (unsigned i = 0; i < house.n; i++)
        fake_bookie_drop(&house.bookie[i]);
}

void house_close(void)
{
    house_call(stop, NULL);
    loop_drop(&house.loop);
    meta_close(&house.meta);
    house = (struct house){0}; /* its settings too */
}

/* ---- calls that wait ---- */

struct order {
    struct ledger_call call;
    struct quorum quorum;
    int64_t above, id;
    enum ledger_open_how how;
    enum err err;
    struct ledger *ledger;
};

static void call_done(struct ledger_call *c, enum err err, struct ledger *l)
{
    struct order *o = container_of(c, struct order, call);

    o->err = err;
    o->ledger = l;
    house_happened();
}

static void do_create(void *ctx)
{
    struct order *o = ctx;
    struct slice groups = {0};
    struct ledger_tag tags[] = {{"application", view_of("pulsar", 6)}, {.key = PLACEMENT_TAG}};

    if (house.groups)
        groups = placement_record_write(house.groups, house.second_groups);
    tags[1].value = slice_view(groups);
    o->call.done = call_done;
    ledger_create(house.client, o->quorum, o->above, tags, house.groups ? 2 : 1, &o->call);
    slice_drop(&groups);
}

struct ledger *house_create_above(struct quorum q, int64_t above, enum err *err)
{
    struct order o = {.quorum = q, .above = above};

    house_call(do_create, &o);
    house_await(1);
    *err = o.err;
    return o.ledger;
}

struct ledger *house_create(unsigned e, unsigned w, unsigned a)
{
    enum err err;
    struct ledger *l = house_create_above((struct quorum){e, w, a}, -1, &err);

    ck_assert_str_eq(err_name(err), "OK");
    return l;
}

static void do_open(void *ctx)
{
    struct order *o = ctx;

    o->call.done = call_done;
    ledger_open(house.client, o->id, o->how, &o->call);
}

enum err house_open_ledger(int64_t id, enum ledger_open_how how, struct ledger **out)
{
    struct order o = {.id = id, .how = how};

    house_call(do_open, &o);
    house_await(1);
    *out = o.ledger;
    return o.err;
}

static void do_close(void *ctx)
{
    struct order *o = ctx;

    o->call.done = call_done;
    ledger_close(&o->ledger, &o->call);
}

enum err house_close_ledger(struct ledger **l)
{
    struct order o = {.ledger = *l};

    *l = NULL;
    house_call(do_close, &o);
    house_await(1);
    return o.err;
}

static void do_delete(void *ctx)
{
    struct order *o = ctx;

    o->call.done = call_done;
    ledger_delete(house.client, o->id, &o->call);
}

enum err house_delete_ledger(int64_t id)
{
    struct order o = {.id = id};

    house_call(do_delete, &o);
    house_await(1);
    return o.err;
}

static void do_drop(void *ctx)
{
    ledger_drop(ctx);
}

void house_drop(struct ledger **l)
{
    house_call(do_drop, l);
}

/* ---- appends ---- */

struct batch house_batch;

static void append_done(struct ledger_append *a, enum err err, entry_id id)
{
    unsigned i = (unsigned)(a - house_batch.append);

    house_batch.err[i] = err;
    house_batch.id[i] = id;
    house_batch.order[house_batch.done++] = i;
    chain_drop(&a->payload);
    house_happened();
}

static void do_append(void *ctx)
{
    struct batch *b = ctx;

    for (unsigned i = 0; i < b->n && !b->refused; i++) {
        struct ledger_append *a = &b->append[i];
        char text[64];
        int len = snprintf(text, sizeof text, "entry %u", i);
        chain_push(&a->payload, slice_copy(text, (size_t)len));
        a->crc = crc32c(text, (size_t)len);
        a->done = append_done;
        b->refused = ledger_append(b->ledger, a);
        if (b->refused)
            chain_drop(&a->payload);
        else
            b->accepted++;
    }
}

void house_append(struct ledger *l, unsigned n)
{
    memset(&house_batch, 0, sizeof house_batch);
    house_batch.ledger = l;
    house_batch.n = n;
    house_call(do_append, &house_batch);
}

void house_appended(struct ledger *l, unsigned n)
{
    house_append(l, n);
    ck_assert_uint_eq(house_batch.accepted, n);
    house_await(n);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_str_eq(err_name(house_batch.err[i]), "OK");
        ck_assert_uint_eq(house_batch.order[i], i);
        ck_assert_int_eq(house_batch.id[i], i);
    }
}

/* ---- reads ---- */

static void on_entry(struct ledger_read *r, entry_id id, struct slice payload)
{
    struct reading *g = container_of(r, struct reading, read);
    char text[64];
    int len = snprintf(text, sizeof text, "entry %d", (int)id);

    ck_assert_int_eq(id, g->read.first + (entry_id)g->got);
    ck_assert_uint_eq(payload.len, (size_t)len);
    ck_assert_mem_eq(payload.base, text, payload.len);
    slice_drop(&payload);
    g->got++;
    if (g->cancel_at && id == g->cancel_at) {
        ledger_read_cancel(r);
        house_happened();
    }
}

static void on_read(struct ledger_read *r, enum err err)
{
    struct reading *g = container_of(r, struct reading, read);

    g->err = err;
    g->done = true;
    house_happened();
}

void house_read_begin(void *ctx)
{
    struct reading *g = ctx;

    g->read.entry = on_entry;
    g->read.done = on_read;
    ledger_read(g->ledger, &g->read);
}

enum err house_read_range(struct ledger *l, entry_id first, entry_id last, unsigned *got)
{
    struct reading g = {.ledger = l, .read = {.first = first, .last = last}};

    house_call(house_read_begin, &g);
    house_await(1);
    *got = g.got;
    return g.err;
}

void house_reads_all(struct ledger *l, unsigned n)
{
    unsigned got;

    ck_assert_str_eq(err_name(house_read_range(l, 0, (entry_id)n - 1, &got)), "OK");
    ck_assert_uint_eq(got, n);
}

void house_knob(void (*turn)(struct fake_bookie_knobs *k), unsigned bookie)
{
    house_call((void (*)(void *))turn, fake_bookie_knobs(house.bookie[bookie]));
}
