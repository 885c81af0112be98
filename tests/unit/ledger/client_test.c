/* The shell over real sockets, against fake bookies in the same loop. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/mem.h"
#include "ledger/client.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/fake_bookie.h"
#include "tests/lib/shaky_meta.h"
#include "tests/lib/suite.h"

enum { BOOKIES_MAX = 5, APPENDS_MAX = 300 };

/* One loop, one metadata store, some bookies, a client; the test's own thread waits. */
struct house {
    struct loop *loop;
    struct metadata *meta; /* the shaky one */
    struct shaky_meta *shaky;
    struct fake_bookie *bookie[BOOKIES_MAX];
    unsigned n;
    struct ledger_client_conf conf;
    struct ledger_client *client;
    struct bookies_watch watch;
    pthread_mutex_t lock;
    pthread_cond_t turned;
    unsigned happened; /* callbacks so far */
    unsigned seen;
};

static struct house h;

static void happen(void)
{
    pthread_mutex_lock(&h.lock);
    h.happened++;
    pthread_cond_signal(&h.turned);
    pthread_mutex_unlock(&h.lock);
}

static void await(unsigned n)
{
    pthread_mutex_lock(&h.lock);
    while (h.happened < h.seen + n)
        pthread_cond_wait(&h.turned, &h.lock);
    h.seen += n;
    pthread_mutex_unlock(&h.lock);
}

static void on_loop(void (*fn)(void *ctx), void *ctx)
{
    loop_call(h.loop, fn, ctx);
}

static void watched(struct bookies_watch *w)
{
    (void)w;
    if (ledger_client_ready(h.client) && ledger_client_bookies(h.client) == h.n) {
        ledger_client_unwatch(h.client, &h.watch);
        happen();
    }
}

static void bookies_start(void *ctx)
{
    (void)ctx;
    for (unsigned i = 0; i < h.n; i++)
        h.bookie[i] = fake_bookie_new(h.loop);
}

static void client_start(void *ctx)
{
    (void)ctx;
    h.client = ledger_client_new(h.loop, h.meta, &h.conf);
    h.watch.changed = watched;
    ledger_client_watch(h.client, &h.watch);
}

static void house_open(unsigned bookies)
{
    h.n = bookies;
    pthread_mutex_init(&h.lock, NULL);
    pthread_cond_init(&h.turned, NULL);
    h.loop = loop_new("test");
    loop_start(h.loop);
    ck_assert(meta_memory_open(&h.meta) == ERR_OK);
    h.shaky = shaky_meta_new(h.meta);
    h.meta = &h.shaky->base;
    on_loop(bookies_start, NULL);
    for (unsigned i = 0; i < h.n; i++) {
        char path[META_KEY_MAX];
        ck_assert(path_bookie(fake_bookie_id(h.bookie[i]), false, path) == ERR_OK);
        ck_assert(meta_put_wait(h.meta, path, (struct slice){0}, META_ABSENT) == ERR_OK);
    }
    on_loop(client_start, NULL);
    await(1);
}

static void stop(void *ctx)
{
    (void)ctx;
    ledger_client_drop(&h.client);
    for (unsigned i = 0; i < h.n; i++)
        fake_bookie_drop(&h.bookie[i]);
}

static void house_close(void)
{
    on_loop(stop, NULL);
    loop_drop(&h.loop);
    meta_close(&h.meta);
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
    happen();
}

static void do_create(void *ctx)
{
    struct order *o = ctx;
    struct ledger_tag tag = {"application", view_of("pulsar", 6)};

    o->call.done = call_done;
    ledger_create(h.client, o->quorum, o->above, &tag, 1, &o->call);
}

static struct ledger *create_above(struct quorum q, int64_t above, enum err *err)
{
    struct order o = {.quorum = q, .above = above};

    on_loop(do_create, &o);
    await(1);
    *err = o.err;
    return o.ledger;
}

static struct ledger *create(unsigned e, unsigned w, unsigned a)
{
    enum err err;
    struct ledger *l = create_above((struct quorum){e, w, a}, -1, &err);

    ck_assert_str_eq(err_name(err), "OK");
    return l;
}

static void do_open(void *ctx)
{
    struct order *o = ctx;

    o->call.done = call_done;
    ledger_open(h.client, o->id, o->how, &o->call);
}

static enum err open_ledger(int64_t id, enum ledger_open_how how, struct ledger **out)
{
    struct order o = {.id = id, .how = how};

    on_loop(do_open, &o);
    await(1);
    *out = o.ledger;
    return o.err;
}

static void do_close(void *ctx)
{
    struct order *o = ctx;

    o->call.done = call_done;
    ledger_close(&o->ledger, &o->call);
}

static enum err close_ledger(struct ledger **l)
{
    struct order o = {.ledger = *l};

    *l = NULL;
    on_loop(do_close, &o);
    await(1);
    return o.err;
}

static void do_delete(void *ctx)
{
    struct order *o = ctx;

    o->call.done = call_done;
    ledger_delete(h.client, o->id, &o->call);
}

static enum err delete_ledger(int64_t id)
{
    struct order o = {.id = id};

    on_loop(do_delete, &o);
    await(1);
    return o.err;
}

static void do_drop(void *ctx)
{
    ledger_drop(ctx);
}

static void drop(struct ledger **l)
{
    on_loop(do_drop, l);
}

/* ---- appends ---- */

struct batch {
    struct ledger *ledger;
    unsigned n, accepted;
    const char *text; /* %u is the entry's number */
    enum err refused;
    struct ledger_append append[APPENDS_MAX];
    enum err err[APPENDS_MAX];
    entry_id id[APPENDS_MAX];
    unsigned order[APPENDS_MAX], done;
};

static struct batch batch;

static void append_done(struct ledger_append *a, enum err err, entry_id id)
{
    unsigned i = (unsigned)(a - batch.append);

    batch.err[i] = err;
    batch.id[i] = id;
    batch.order[batch.done++] = i;
    chain_drop(&a->payload);
    happen();
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

static void append(struct ledger *l, unsigned n)
{
    memset(&batch, 0, sizeof batch);
    batch.ledger = l;
    batch.n = n;
    on_loop(do_append, &batch);
}

static void appended(struct ledger *l, unsigned n)
{
    append(l, n);
    ck_assert_uint_eq(batch.accepted, n);
    await(n);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_str_eq(err_name(batch.err[i]), "OK");
        ck_assert_uint_eq(batch.order[i], i);
        ck_assert_int_eq(batch.id[i], i);
    }
}

/* ---- reads ---- */

struct reading {
    struct ledger_read read;
    struct ledger *ledger;
    unsigned got;
    entry_id cancel_at; /* by its own callback */
    enum err err;
    bool done;
};

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
        happen();
    }
}

static void on_read(struct ledger_read *r, enum err err)
{
    struct reading *g = container_of(r, struct reading, read);

    g->err = err;
    g->done = true;
    happen();
}

static void do_read(void *ctx)
{
    struct reading *g = ctx;

    g->read.entry = on_entry;
    g->read.done = on_read;
    ledger_read(g->ledger, &g->read);
}

static enum err read_range(struct ledger *l, entry_id first, entry_id last, unsigned *got)
{
    struct reading g = {.ledger = l, .read = {.first = first, .last = last}};

    on_loop(do_read, &g);
    await(1);
    *got = g.got;
    return g.err;
}

static void reads_all(struct ledger *l, unsigned n)
{
    unsigned got;

    ck_assert_str_eq(err_name(read_range(l, 0, (entry_id)n - 1, &got)), "OK");
    ck_assert_uint_eq(got, n);
}

static void knob(void (*turn)(struct fake_bookie_knobs *k), unsigned bookie)
{
    on_loop((void (*)(void *))turn, fake_bookie_knobs(h.bookie[bookie]));
}

/* ---- stories ---- */

START_TEST(written_closed_read)
{
    house_open(3);
    struct ledger *l = create(3, 2, 2);
    int64_t id = ledger_id(l);
    appended(l, 100);
    ck_assert_int_eq(ledger_last_confirmed(l), 99);
    ck_assert_int_eq(ledger_length(l), 10 * 7 + 90 * 8);
    reads_all(l, 100);
    ck_assert_str_eq(err_name(close_ledger(&l)), "OK");
    ck_assert_str_eq(err_name(open_ledger(id, LEDGER_OPEN_READ, &l)), "OK");
    ck_assert(ledger_is_closed(l));
    ck_assert_int_eq(ledger_last_confirmed(l), 99);
    ck_assert_int_eq(ledger_length(l), 10 * 7 + 90 * 8);
    reads_all(l, 100);
    drop(&l);
    ck_assert_str_eq(err_name(delete_ledger(id)), "OK");
    ck_assert_str_eq(err_name(delete_ledger(id)), "OK");
    ck_assert_str_eq(err_name(open_ledger(id, LEDGER_OPEN_READ, &l)), "NO_LEDGER");
    house_close();
}
END_TEST

START_TEST(ids_grow_and_stay_above)
{
    enum err err;
    struct quorum one = {1, 1, 1};

    house_open(1);
    struct ledger *a = create(1, 1, 1);
    struct ledger *b = create_above(one, ledger_id(a), &err);
    ck_assert_int_gt(ledger_id(b), ledger_id(a));
    struct ledger *c = create_above(one, ledger_id(b) + 1000, &err);
    ck_assert_str_eq(err_name(err), "OK");
    ck_assert_int_gt(ledger_id(c), ledger_id(b) + 1000);
    drop(&a);
    drop(&b);
    drop(&c);
    house_close();
}
END_TEST

START_TEST(too_few_bookies)
{
    enum err err;

    house_open(2);
    struct ledger *l = create_above((struct quorum){3, 2, 2}, -1, &err);
    ck_assert_str_eq(err_name(err), "NOT_ENOUGH_BOOKIES");
    ck_assert_ptr_null(l);
    house_close();
}
END_TEST

/* The writer's handle is left alone, as by a broker that has died. */
START_TEST(recovered_from_a_silent_writer)
{
    struct ledger *l, *r;
    enum ledger_open_how how = LEDGER_OPEN_READ;

    house_open(3);
    l = create(3, 3, 2);
    int64_t id = ledger_id(l);
    appended(l, 50);
    /* Its last entry is not yet known as confirmed to any bookie. */
    ck_assert_str_eq(err_name(open_ledger(id, how, &r)), "OK");
    ck_assert_int_le(ledger_last_confirmed(r), 48);
    drop(&r);
    ck_assert_str_eq(err_name(open_ledger(id, LEDGER_OPEN_RECOVER, &r)), "OK");
    ck_assert(ledger_is_closed(r));
    ck_assert_int_eq(ledger_last_confirmed(r), 49);
    ck_assert_int_eq(ledger_length(r), 10 * 7 + 40 * 8);
    reads_all(r, 50);
    /* And now the writer comes back. */
    append(l, 1);
    ck_assert_uint_eq(batch.accepted, 1);
    await(1);
    ck_assert_str_eq(err_name(batch.err[0]), "FENCED");
    ck_assert_str_eq(err_name(close_ledger(&l)), "FENCED");
    drop(&r);
    house_close();
}
END_TEST

START_TEST(recovered_when_empty)
{
    struct ledger *l, *r;

    house_open(2);
    l = create(2, 2, 2);
    ck_assert_str_eq(err_name(open_ledger(ledger_id(l), LEDGER_OPEN_RECOVER, &r)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(r), -1);
    ck_assert_int_eq(ledger_length(r), 0);
    unsigned got;
    ck_assert_str_eq(err_name(read_range(r, 0, -1, &got)), "OK");
    drop(&r);
    /* Recovery of a closed one is done at once. */
    ck_assert_str_eq(err_name(open_ledger(ledger_id(l), LEDGER_OPEN_RECOVER, &r)), "OK");
    drop(&r);
    /* The writer, which has seen nothing of it, may not close; the end is the same though. */
    ck_assert_str_eq(err_name(close_ledger(&l)), "OK");
    house_close();
}
END_TEST

static void turn_down_next_add(struct fake_bookie_knobs *k)
{
    k->on_add = (struct fault){.after = 20, .times = 1};
    k->add_status = BOOKIE_EIO;
}

/* One bookie fails: what is not confirmed fails in order, the rest is there. */
START_TEST(failed_bookie_ends_the_ledger)
{
    struct ledger *l, *r;
    unsigned ok = 0;

    house_open(3);
    l = create(3, 3, 3);
    int64_t id = ledger_id(l);
    knob(turn_down_next_add, 1);
    append(l, 100);
    await(batch.accepted);
    while (batch.err[ok] == ERR_OK)
        ok++;
    ck_assert_uint_le(ok, 20); /* fewer if the refusal was faster than the others' acks */
    for (unsigned i = 0; i < batch.accepted; i++) {
        ck_assert_uint_eq(batch.order[i], i);
        ck_assert(i < ok || err_class(batch.err[i]) == CLASS_RETRY);
    }
    ck_assert_str_eq(err_name(close_ledger(&l)), "OK");
    ck_assert_str_eq(err_name(open_ledger(id, LEDGER_OPEN_READ, &r)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(r), (entry_id)ok - 1);
    reads_all(r, ok);
    drop(&r);
    house_close();
}
END_TEST

static void go_mute(struct fake_bookie_knobs *k)
{
    k->mute = true;
}

/* A bookie that does not answer delays nothing as long as Qa others do; then it is given up. */
START_TEST(silent_bookie_is_slow_then_dead)
{
    struct ledger *l;

    h.conf.add_timeout_us = 300 * 1000;
    house_open(3);
    l = create(3, 3, 2);
    knob(go_mute, 2);
    appended(l, 10);
    do
        append(l, 1);
    while (!batch.refused && (await(1), batch.err[0] == ERR_OK));
    ck_assert_int_eq(err_class(batch.refused ? batch.refused : batch.err[0]), CLASS_RETRY);
    ck_assert_str_eq(err_name(close_ledger(&l)), "OK");
    house_close();
}
END_TEST

static void do_cut(void *ctx)
{
    fake_bookie_cut(ctx);
}

START_TEST(cut_connection_ends_the_ledger)
{
    struct ledger *l;

    house_open(1);
    l = create(1, 1, 1);
    appended(l, 10);
    knob(go_mute, 0);
    append(l, 10);
    on_loop(do_cut, h.bookie[0]);
    await(10);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_str_eq(err_name(batch.err[i]), "IO");
    ck_assert_str_eq(err_name(close_ledger(&l)), "OK");
    house_close();
}
END_TEST

static void go_rotten(struct fake_bookie_knobs *k)
{
    k->rotten = true;
}

/* A reader goes to the next replica; when all are rotten it says so. */
START_TEST(rotten_entries_are_read_elsewhere)
{
    struct ledger *l;
    unsigned got;

    house_open(3);
    l = create(3, 3, 2);
    appended(l, 30);
    ck_assert_str_eq(err_name(close_ledger(&l)), "OK");
    ck_assert_str_eq(err_name(open_ledger(0, LEDGER_OPEN_READ, &l)), "OK");
    knob(go_rotten, 0);
    reads_all(l, 30);
    knob(go_rotten, 1);
    reads_all(l, 30);
    knob(go_rotten, 2);
    ck_assert_str_eq(err_name(read_range(l, 0, 29, &got)), "CHECKSUM");
    ck_assert_uint_eq(got, 0);
    drop(&l);
    house_close();
}
END_TEST

static void do_deaf(void *ctx)
{
    fake_bookie_deaf(ctx);
}

/* A dead bookie hinders neither recovery nor reading; without a spare the two others hold it. */
START_TEST(recovered_with_a_dead_bookie)
{
    struct ledger *l, *r;

    house_open(3);
    l = create(3, 3, 2);
    int64_t id = ledger_id(l);
    appended(l, 20);
    on_loop(do_deaf, h.bookie[1]);
    ck_assert_str_eq(err_name(open_ledger(id, LEDGER_OPEN_RECOVER, &r)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(r), 19);
    reads_all(r, 20);
    drop(&r);
    drop(&l);
    house_close();
}
END_TEST

START_TEST(read_is_cancelled_by_its_own_callback)
{
    struct ledger *l;

    house_open(1);
    l = create(1, 1, 1);
    appended(l, 100);
    struct reading g = {.ledger = l, .read = {.first = 0, .last = 99}, .cancel_at = 10};
    on_loop(do_read, &g);
    await(1);
    reads_all(l, 100);
    ck_assert_uint_eq(g.got, 11);
    ck_assert(!g.done);
    drop(&l);
    house_close();
}
END_TEST

START_TEST(window_is_bounded)
{
    struct ledger *l;

    h.conf.window_entries = 100;
    house_open(1);
    l = create(1, 1, 1);
    append(l, 200);
    ck_assert_str_eq(err_name(batch.refused), "BUSY");
    ck_assert_uint_eq(batch.accepted, 100);
    await(100);
    drop(&l);
    house_close();
}
END_TEST

/* Handles may go at any time: nothing is called back, nothing leaks (asan). */
START_TEST(dropped_in_flight)
{
    struct ledger *l;

    house_open(3);
    knob(go_mute, 0);
    l = create(3, 3, 3);
    append(l, 100);
    drop(&l);
    for (unsigned i = 0; i < batch.accepted; i++)
        chain_drop(&batch.append[i].payload);
    house_close();
}
END_TEST

/* A ledger of somebody else's: HMAC and a password, both in the metadata. */
START_TEST(foreign_digest_and_password)
{
    Bookkeeper__LedgerMetadataFormat m = BOOKKEEPER__LEDGER_METADATA_FORMAT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment s = BOOKKEEPER__LEDGER_METADATA_FORMAT__SEGMENT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment *only = &s;
    char path[META_KEY_MAX];
    struct ledger *l;

    house_open(1);
    char *member = (char *)(uintptr_t)fake_bookie_id(h.bookie[0]);
    struct digest d = digest_of(DIGEST_HMAC, view_of("secret", 6));
    s.n_ensemblemember = 1;
    s.ensemblemember = &member;
    m.quorumsize = m.ensemblesize = 1;
    m.state = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN;
    m.n_segment = 1;
    m.segment = &only;
    m.has_digesttype = 1;
    m.digesttype = BOOKKEEPER__LEDGER_METADATA_FORMAT__DIGEST_TYPE__HMAC;
    m.has_password = 1;
    m.password.data = (uint8_t *)(uintptr_t) "secret";
    m.password.len = 6;
    ck_assert(path_ledger(7, path) == ERR_OK);
    ck_assert(meta_put_wait(h.meta, path, ledger_record_write(&m), META_ABSENT) == ERR_OK);
    for (int e = 0; e < 3; e++) {
        char text[32];
        snprintf(text, sizeof text, "entry %d", e);
        fake_bookie_put(h.bookie[0], &d, &(struct entry_header){7, e, e - 1, 7 * (e + 1)}, text);
    }
    ck_assert_str_eq(err_name(open_ledger(7, LEDGER_OPEN_READ, &l)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(l), 1);
    ck_assert_int_eq(ledger_length(l), 14);
    drop(&l);
    ck_assert_str_eq(err_name(open_ledger(7, LEDGER_OPEN_RECOVER, &l)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(l), 2);
    ck_assert_int_eq(ledger_length(l), 21);
    reads_all(l, 3);
    drop(&l);
    house_close();
}
END_TEST

/* Each way in which the store's answer to a create may fail, at each of its calls. */
START_TEST(created_by_a_shaky_store)
{
    enum err err;

    house_open(1);
    h.shaky->unsure = (struct fault){.times = 1};
    struct ledger *a = create(1, 1, 1); /* it was made, and is found to be ours */
    int64_t first = ledger_id(a);
    appended(a, 3);
    ck_assert_str_eq(err_name(close_ledger(&a)), "OK");
    h.shaky->forgotten = (struct fault){.times = 2};
    a = create(1, 1, 1);
    ck_assert_int_eq(ledger_id(a), first + 1);
    drop(&a);
    /* Somebody else has the next id. */
    char path[META_KEY_MAX];
    ck_assert(path_ledger(first + 2, path) == ERR_OK);
    ck_assert(meta_put_wait(h.meta, path, slice_copy("x", 1), META_ABSENT) == ERR_OK);
    a = create(1, 1, 1);
    ck_assert_int_eq(ledger_id(a), first + 3);
    drop(&a);
    h.shaky->away = (struct fault){.times = 1};
    a = create_above((struct quorum){1, 1, 1}, -1, &err);
    ck_assert_str_eq(err_name(err), "NOT_READY");
    ck_assert_ptr_null(a);
    house_close();
}
END_TEST

/* The store goes away at the n-th call of a close, and comes back; nothing is given up. */
START_TEST(closed_through_a_shaky_store)
{
    struct ledger *l;

    house_open(1);
    for (unsigned n = 0; n < 4; n++) {
        l = create(1, 1, 1);
        int64_t id = ledger_id(l);
        appended(l, 5);
        h.shaky->away = (struct fault){.after = n / 2, .times = 2};
        if (n % 2)
            h.shaky->unsure = (struct fault){.times = 1};
        else
            h.shaky->forgotten = (struct fault){.times = 1};
        ck_assert_str_eq(err_name(close_ledger(&l)), "OK");
        ck_assert_str_eq(err_name(open_ledger(id, LEDGER_OPEN_READ, &l)), "OK");
        ck_assert(ledger_is_closed(l));
        ck_assert_int_eq(ledger_last_confirmed(l), 4);
        drop(&l);
        h.shaky->away = h.shaky->unsure = h.shaky->forgotten = (struct fault){0};
    }
    house_close();
}
END_TEST

/* A recovery fails wherever the store does, and the next one finishes it. */
START_TEST(recovered_through_a_shaky_store)
{
    house_open(3);
    for (unsigned n = 0; n < 6; n++) {
        struct ledger *r, *l = create(3, 3, 2);
        int64_t id = ledger_id(l);
        appended(l, 10);
        h.shaky->away = (struct fault){.after = n, .times = 1};
        h.shaky->unsure = (struct fault){.after = n % 2, .times = n / 2};
        enum err err;
        while ((err = open_ledger(id, LEDGER_OPEN_RECOVER, &r)))
            ck_assert_int_eq(err_class(err), CLASS_RETRY);
        ck_assert_int_eq(ledger_last_confirmed(r), 9);
        reads_all(r, 10);
        drop(&r);
        drop(&l);
        h.shaky->away = h.shaky->unsure = (struct fault){0};
    }
    house_close();
}
END_TEST

START_TEST(deleted_through_a_shaky_store)
{
    house_open(1);
    struct ledger *l = create(1, 1, 1);
    int64_t id = ledger_id(l);
    ck_assert_str_eq(err_name(close_ledger(&l)), "OK");
    h.shaky->unsure = (struct fault){.times = 3};
    ck_assert_str_eq(err_name(delete_ledger(id)), "OK");
    h.shaky->away = (struct fault){.times = 1};
    ck_assert_str_eq(err_name(delete_ledger(id)), "NOT_READY");
    house_close();
}
END_TEST

/* With a spare the dead bookie's place is taken, and the metadata says so. */
START_TEST(recovered_onto_a_spare)
{
    struct ledger *l, *r;
    unsigned spare = 0;

    house_open(4);
    l = create(3, 3, 3);
    int64_t id = ledger_id(l);
    appended(l, 20);
    while (fake_bookie_has(h.bookie[spare], id, 0))
        spare++;
    on_loop(do_deaf, h.bookie[(spare + 1) % 4]);
    ck_assert_str_eq(err_name(open_ledger(id, LEDGER_OPEN_RECOVER, &r)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(r), 19);
    ck_assert(fake_bookie_has(h.bookie[spare], id, 19));
    reads_all(r, 20);
    drop(&r);
    drop(&l);
    house_close();
}
END_TEST

/* A bookie that was cut off is dialled again by the next ledger. */
START_TEST(dials_again)
{
    struct ledger *l;

    house_open(1);
    for (unsigned i = 0; i < 3; i++) {
        l = create(1, 1, 1);
        appended(l, 10);
        ck_assert_str_eq(err_name(close_ledger(&l)), "OK");
        on_loop(do_cut, h.bookie[0]);
    }
    house_close();
}
END_TEST

static void counted(struct bookies_watch *w)
{
    (void)w;
    happen();
}

static void watch_again(void *ctx)
{
    (void)ctx;
    h.watch.changed = counted;
    ledger_client_watch(h.client, &h.watch);
}

static void count_bookies(void *ctx)
{
    *(unsigned *)ctx = ledger_client_bookies(h.client);
}

static void stop_watching(void *ctx)
{
    (void)ctx;
    ledger_client_unwatch(h.client, &h.watch);
}

struct removal {
    struct meta_call call;
    char path[META_KEY_MAX];
};

static void removed(struct meta_call *c, const struct meta_reply *r)
{
    (void)c;
    ck_assert(r->err == ERR_OK);
    happen();
}

static void do_remove(void *ctx)
{
    struct removal *r = ctx;

    r->call = (struct meta_call){.home = h.loop, .done = removed};
    meta_remove(h.meta, r->path, META_ANY, &r->call);
}

/* A bookie that goes read-only takes no new ledgers, and is read as before. */
START_TEST(bookies_come_and_go)
{
    struct removal gone;
    unsigned n = 9;
    enum err err;

    house_open(2);
    struct ledger *l = create(2, 2, 2);
    appended(l, 10);
    on_loop(watch_again, NULL);
    ck_assert(path_bookie(fake_bookie_id(h.bookie[0]), true, gone.path) == ERR_OK);
    ck_assert(meta_put_wait(h.meta, gone.path, (struct slice){0}, META_ABSENT) == ERR_OK);
    await(1);
    on_loop(count_bookies, &n);
    ck_assert_uint_eq(n, 2); /* both records are there for a moment */
    ck_assert(path_bookie(fake_bookie_id(h.bookie[0]), false, gone.path) == ERR_OK);
    on_loop(do_remove, &gone);
    await(2);
    on_loop(count_bookies, &n);
    ck_assert_uint_eq(n, 1);
    struct ledger *none = create_above((struct quorum){2, 2, 2}, -1, &err);
    ck_assert_str_eq(err_name(err), "NOT_ENOUGH_BOOKIES");
    ck_assert_ptr_null(none);
    reads_all(l, 10);
    ck_assert(meta_put_wait(h.meta, gone.path, (struct slice){0}, META_ABSENT) == ERR_OK);
    await(1);
    on_loop(count_bookies, &n);
    ck_assert_uint_eq(n, 2);
    on_loop(stop_watching, NULL);
    drop(&l);
    house_close();
}
END_TEST

static void turn_down_reads(struct fake_bookie_knobs *k)
{
    k->on_read = (struct fault){.times = 1000000};
    k->read_status = BOOKIE_TOO_MANY;
}

/* Nobody can be asked: the attempt ends, the ledger stays in recovery, the writer is out. */
START_TEST(recovery_that_cannot_know)
{
    struct ledger *l, *r;

    house_open(1);
    l = create(1, 1, 1);
    int64_t id = ledger_id(l);
    appended(l, 5);
    knob(turn_down_reads, 0);
    ck_assert_str_eq(err_name(open_ledger(id, LEDGER_OPEN_RECOVER, &r)), "BUSY");
    ck_assert_ptr_null(r);
    ck_assert_str_eq(err_name(open_ledger(id, LEDGER_OPEN_READ, &r)), "BUSY");
    ck_assert_str_eq(err_name(close_ledger(&l)), "FENCED");
    house_close();
}
END_TEST

int main(void)
{
    return suite_run("client", (suite_case[]){SUITE_CASE(written_closed_read),
                                              SUITE_CASE(ids_grow_and_stay_above),
                                              SUITE_CASE(too_few_bookies),
                                              SUITE_CASE(recovered_from_a_silent_writer),
                                              SUITE_CASE(recovered_when_empty),
                                              SUITE_CASE(failed_bookie_ends_the_ledger),
                                              SUITE_CASE(silent_bookie_is_slow_then_dead),
                                              SUITE_CASE(cut_connection_ends_the_ledger),
                                              SUITE_CASE(rotten_entries_are_read_elsewhere),
                                              SUITE_CASE(recovered_with_a_dead_bookie),
                                              SUITE_CASE(read_is_cancelled_by_its_own_callback),
                                              SUITE_CASE(window_is_bounded),
                                              SUITE_CASE(dropped_in_flight),
                                              SUITE_CASE(foreign_digest_and_password),
                                              SUITE_CASE(created_by_a_shaky_store),
                                              SUITE_CASE(closed_through_a_shaky_store),
                                              SUITE_CASE(recovered_through_a_shaky_store),
                                              SUITE_CASE(deleted_through_a_shaky_store),
                                              SUITE_CASE(recovered_onto_a_spare),
                                              SUITE_CASE(dials_again),
                                              SUITE_CASE(bookies_come_and_go),
                                              SUITE_CASE(recovery_that_cannot_know),
                                              {0}});
}
