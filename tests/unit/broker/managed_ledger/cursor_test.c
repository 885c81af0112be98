/* The cursor's shell over real sockets, against fake bookies in the same loop; and real ones. */
#include "broker/managed_ledger/cursor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bookie/bookie.h"
#include "broker/managed_ledger/cursor_inside.h"
#include "common/mem.h"
#include "common/mem_pool.h"
#include "metadata/init.h"
#include "tests/lib/fake_bookie.h"
#include "tests/lib/suite.h"

enum { BOOKIES = 3, ENTRIES = 5000 };
#define ML_NAME "t/n/persistent/topic"

struct log_house {
    struct loop *loop;
    struct metadata *meta;
    struct fake_bookie *bookie[BOOKIES];
    struct ledger_client *client;
    struct bookies_watch watch;
    struct ml_conf conf;
    struct segments segments;
    struct mem_pool *pool;
    struct cursor_env env;
    struct cursor *cursor;
    struct position moved;
    enum err failed;
    pthread_mutex_t lock;
    pthread_cond_t turned;
    unsigned happened, seen;
};

static struct log_house h;

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
    if (!ledger_client_ready(h.client) || ledger_client_bookies(h.client) < BOOKIES)
        return;
    ledger_client_unwatch(h.client, w);
    happen();
}

static void start(void *ctx)
{
    (void)ctx;
    struct ledger_client_conf conf = {.add_timeout_us = 500 * 1000};
    h.client = ledger_client_new(h.loop, h.meta, &conf);
    h.watch.changed = watched;
    ledger_client_watch(h.client, &h.watch);
}

static void start_bookies(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < BOOKIES; i++)
        h.bookie[i] = fake_bookie_new(h.loop);
}

static void announce(int i)
{
    char path[META_KEY_MAX];
    ck_assert_int_eq(path_bookie(fake_bookie_id(h.bookie[i]), false, path), ERR_OK);
    ck_assert_int_eq(meta_put_wait(h.meta, path, (struct slice){0}, META_ABSENT), ERR_OK);
}

static void on_moved(struct cursor_env *e, struct cursor *c)
{
    (void)e;
    ck_assert(position_compare(cursor_durable_mark_delete(c), h.moved) > 0);
    h.moved = cursor_durable_mark_delete(c);
}

static void on_failed(struct cursor_env *e, struct cursor *c, enum err err)
{
    (void)e, (void)c;
    h.failed = err;
    happen();
}

static int64_t no_node(const struct cursor_env *e)
{
    (void)e;
    return META_ABSENT;
}

static void open_store(void)
{
    pthread_mutex_init(&h.lock, NULL);
    pthread_cond_init(&h.turned, NULL);
    h.loop = loop_new("test");
    loop_start(h.loop);
    ck_assert_int_eq(meta_memory_open(&h.meta), ERR_OK);
}

static void open_client(void)
{
    on_loop(start, NULL);
    await(1);
    h.conf = (struct ml_conf){
        .quorum = {3, 2, 2}, .cursor_max_entries = 50, .cursor_delta_delay_us = 1000};
    segments_add(&h.segments, (struct segment){.ledger = 3, .entries = ENTRIES});
    segments_add(&h.segments, (struct segment){.ledger = 9, .entries = ENTRIES, .open = true});
    h.pool = cursor_pool_new();
    h.env = (struct cursor_env){.home = h.loop,
                                .ledgers = h.client,
                                .meta = h.meta,
                                .pool = h.pool,
                                .conf = &h.conf,
                                .ml_name = ML_NAME,
                                .segments = &h.segments,
                                .moved = on_moved,
                                .failed = on_failed,
                                .node_version = no_node};
    h.moved = (struct position){3, -1};
}

static void log_house_open(void)
{
    open_store();
    on_loop(start_bookies, NULL);
    for (int i = 0; i < BOOKIES; i++)
        announce(i);
    open_client();
}

static void stop(void *ctx)
{
    (void)ctx;
    ledger_client_drop(&h.client);
    for (int i = 0; i < BOOKIES; i++)
        if (h.bookie[i])
            fake_bookie_drop(&h.bookie[i]);
}

static void log_house_close(void)
{
    on_loop(stop, NULL);
    loop_drop(&h.loop);
    meta_close(&h.meta);
    segments_clear(&h.segments);
    mem_pool_drop(&h.pool);
}

/* ---- calls that wait ------------------------------------------------------------------------- */

enum what { CREATE, OPEN, CLOSE, DELETE, ABANDON };

struct order {
    struct cursor_call call;
    enum what what;
    const char *name;
    struct cursor **at;
    const struct pairs *properties;
    enum err err;
};

static void call_done(struct cursor_call *c, enum err err, struct cursor *cursor)
{
    struct order *o = container_of(c, struct order, call);

    o->err = err;
    if (o->what == CREATE || o->what == OPEN)
        *o->at = cursor;
    happen();
}

static void give(void *ctx)
{
    struct order *o = ctx;

    o->call.done = call_done;
    o->call.properties = o->properties;
    switch (o->what) {
    case CREATE:
        cursor_create(&h.env, o->name, POSITION_EARLIEST, &o->call);
        break;
    case OPEN:
        cursor_open(&h.env, o->name, &o->call);
        break;
    case CLOSE:
        cursor_close(o->at, &o->call);
        break;
    case DELETE:
        cursor_delete(o->at, &o->call);
        break;
    case ABANDON:
        cursor_abandon(o->at);
        happen();
        break;
    }
}

static enum err order_at(enum what what, struct cursor **at)
{
    struct order o = {.what = what, .name = "sub/1", .at = at};

    on_loop(give, &o);
    await(1);
    return o.err;
}

static enum err order(enum what what)
{
    return order_at(what, &h.cursor);
}

struct acks {
    struct cursor_ack_call call;
    struct cursor *cursor;
    int64_t ledger, first, last, stride;
    enum { ONE, UPTO, RESET, LABEL } kind;
    const struct pairs *properties;
    enum err err;
};

static void ack_done(struct cursor_ack_call *c, enum err err)
{
    container_of(c, struct acks, call)->err = err;
    happen();
}

static void give_acks(void *ctx)
{
    struct acks *a = ctx;
    struct position p = {a->ledger, a->first};

    a->call.done = ack_done;
    if (a->kind == UPTO)
        cursor_ack_upto(a->cursor, p, &a->call);
    else if (a->kind == RESET)
        cursor_reset(a->cursor, p, &a->call);
    else if (a->kind == LABEL)
        cursor_set_properties(a->cursor, a->properties, &a->call);
    else
        for (; p.entry <= a->last; p.entry += a->stride)
            cursor_ack(a->cursor, &p, 1, p.entry + a->stride > a->last ? &a->call : NULL);
}

static enum err ack_of(struct acks a)
{
    a.cursor = h.cursor;
    on_loop(give_acks, &a);
    await(1);
    return a.err;
}

static enum err ack(int64_t ledger, int64_t first, int64_t last, int64_t stride)
{
    return ack_of((struct acks){.ledger = ledger, .first = first, .last = last, .stride = stride});
}

static void crash(void)
{
    ck_assert_int_eq(order(ABANDON), ERR_OK);
    ck_assert_int_eq(order(OPEN), ERR_OK);
    h.moved = cursor_durable_mark_delete(h.cursor);
}

static int64_t named_ledger(void)
{
    ManagedLedger__ManagedCursorInfo *r;
    char path[META_KEY_MAX];
    struct slice value;
    int64_t version, ledger;

    ck_assert_int_eq(path_cursor(ML_NAME, "sub/1", path), ERR_OK);
    ck_assert_int_eq(meta_get_wait(h.meta, path, &value, &version), ERR_OK);
    ck_assert_int_eq(cursor_record_read(slice_view(value), &r), ERR_OK);
    ledger = r->cursorsledgerid;
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
    slice_drop(&value);
    return ledger;
}

static bool ledger_is_there(int64_t id)
{
    char path[META_KEY_MAX];
    struct slice value;
    int64_t version;
    enum err err;

    ck_assert_int_eq(path_ledger(id, path), ERR_OK);
    err = meta_get_wait(h.meta, path, &value, &version);
    if (!err)
        slice_drop(&value);
    return err == ERR_OK;
}

#define ck_mark_delete(ledger_, entry_)                                                          \
    do {                                                                                         \
        ck_assert_int_eq(cursor_mark_delete(h.cursor).ledger, (ledger_));                        \
        ck_assert_int_eq(cursor_mark_delete(h.cursor).entry, (entry_));                          \
        ck_assert(                                                                               \
            position_equal(cursor_mark_delete(h.cursor), cursor_durable_mark_delete(h.cursor))); \
    } while (0)

/* ---- cases ----------------------------------------------------------------------------------- */

START_TEST(what_is_acknowledged_outlives_a_crash)
{
    log_house_open();
    ck_assert_int_eq(order(OPEN), ERR_SUBSCRIPTION_NOT_FOUND);
    ck_assert_int_eq(order(CREATE), ERR_OK);
    ck_assert_str_eq(cursor_name(h.cursor), "sub/1");
    ck_assert_int_eq(named_ledger(), -1);
    ck_assert_int_eq(ack(3, 0, 99, 1), ERR_OK);
    ck_mark_delete(3, 99);
    ck_assert(position_equal(h.moved, cursor_mark_delete(h.cursor)));
    ck_assert_int_eq(ack(3, 101, 4001, 2), ERR_OK);
    ck_assert_int_ge(named_ledger(), 0);
    crash();
    ck_mark_delete(3, 99);
    ck_assert_uint_eq(cursor_holes(h.cursor), 1951);
    ck_assert_int_eq(cursor_backlog(h.cursor), 2 * ENTRIES - 100 - 1951);
    for (int64_t i = 0; i < 120; i++) /* rolls */
        ck_assert_int_eq(ack(9, i * 2, i * 2, 1), ERR_OK);
    crash();
    ck_assert_uint_eq(cursor_holes(h.cursor), 1951 + 120);
    ck_assert_int_eq(order(ABANDON), ERR_OK);
    log_house_close();
}
END_TEST

START_TEST(a_close_leaves_pulsars_form)
{
    struct cursor *none;
    int64_t ledger;

    log_house_open();
    ck_assert_int_eq(order(CREATE), ERR_OK);
    ck_assert_int_eq(order_at(CREATE, &none), ERR_EXISTS);
    ck_assert_int_eq(ack(3, 1, 1999, 2), ERR_OK);
    ledger = named_ledger();
    ck_assert(ledger_is_there(ledger));
    ck_assert_int_eq(order(CLOSE), ERR_OK);
    ck_assert_int_eq(named_ledger(), -1);
    ck_assert(!ledger_is_there(ledger));
    ck_assert_int_eq(order(OPEN), ERR_OK);
    ck_assert_uint_eq(cursor_holes(h.cursor), 1000);
    ck_assert_int_eq(ack(3, 2001, 2003, 2), ERR_OK);
    ledger = named_ledger();
    ck_assert_int_eq(order(CLOSE), ERR_OK); /* too many for the node */
    ck_assert_int_eq(named_ledger(), ledger);
    ck_assert_int_eq(order(OPEN), ERR_OK);
    ck_assert_uint_eq(cursor_holes(h.cursor), 1002);
    ck_assert_int_eq(order(DELETE), ERR_OK);
    ck_assert(!ledger_is_there(ledger));
    ck_assert_int_eq(order(OPEN), ERR_SUBSCRIPTION_NOT_FOUND);
    log_house_close();
}
END_TEST

static void break_bookies(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < BOOKIES; i++) {
        fake_bookie_knobs(h.bookie[i])->on_add = (struct fault){.after = 3, .times = 2};
        fake_bookie_knobs(h.bookie[i])->add_status = 101;
    }
}

/* A field that nobody here knows: number 100, a varint. */
static const uint8_t foreign[] = {0xa0, 0x06, 0x2a};

static void add_foreign_field(void)
{
    char path[META_KEY_MAX];
    struct slice value, more;
    int64_t version;

    ck_assert_int_eq(path_cursor(ML_NAME, "sub/1", path), ERR_OK);
    ck_assert_int_eq(meta_get_wait(h.meta, path, &value, &version), ERR_OK);
    struct slab *slab = slab_new(value.len + sizeof(foreign));
    memcpy(slab_bytes(slab), value.base, value.len);
    memcpy(slab_bytes(slab) + value.len, foreign, sizeof(foreign));
    more = slice_take(&slab, value.len + sizeof(foreign));
    ck_assert_int_eq(meta_put_wait(h.meta, path, more, version), ERR_OK);
    slice_drop(&value);
}

static bool has_foreign_field(void)
{
    char path[META_KEY_MAX];
    struct slice value;
    int64_t version;

    ck_assert_int_eq(path_cursor(ML_NAME, "sub/1", path), ERR_OK);
    ck_assert_int_eq(meta_get_wait(h.meta, path, &value, &version), ERR_OK);
    bool found = memmem(value.base, value.len, foreign, sizeof(foreign)) != NULL;
    slice_drop(&value);
    return found;
}

static void ck_property(const char *name, const char *value)
{
    const char *found = pairs_find(cursor_properties(h.cursor), name);

    ck_assert_msg(found && strcmp(found, value) == 0, "%s is %s", name, found ? found : "absent");
}

static enum err label(const struct pairs *p)
{
    return ack_of((struct acks){.kind = LABEL, .properties = p});
}

START_TEST(properties_outlive_crashes_and_every_form)
{
    struct pairs words = {0}, others = {0};
    struct order make = {.what = CREATE, .name = "sub/1", .at = &h.cursor, .properties = &words};

    pairs_set(&words, "owner", "billing");
    pairs_set(&words, "tier", "1");
    pairs_set(&others, "tier", "2");
    log_house_open();
    on_loop(give, &make);
    await(1);
    ck_assert_int_eq(make.err, ERR_OK);
    ck_property("owner", "billing");
    ck_assert_int_eq(ack(3, 1, 1, 1), ERR_OK); /* a ledger of deltas now */
    crash();
    ck_property("owner", "billing");
    ck_property("tier", "1");
    ck_assert_int_eq(order(CLOSE), ERR_OK); /* inline */
    add_foreign_field();
    ck_assert_int_eq(order(OPEN), ERR_OK);
    ck_property("owner", "billing");

    ck_assert_int_eq(label(&others), ERR_OK);
    ck_assert_int_eq(named_ledger(), -1); /* nothing but the node was written */
    crash();
    ck_assert_uint_eq(cursor_properties(h.cursor)->n, 1);
    ck_property("tier", "2");
    ck_assert_uint_eq(cursor_holes(h.cursor), 1);
    ck_assert_int_eq(ack(3, 3, 2403, 2), ERR_OK);
    ck_assert_int_eq(label(&words), ERR_OK);
    ck_assert_int_ge(named_ledger(), 0);
    crash();
    ck_property("owner", "billing");
    ck_assert_int_eq(order(CLOSE), ERR_OK); /* PositionInfo: too many for the node */
    ck_assert_int_ge(named_ledger(), 0);
    ck_assert_int_eq(order(OPEN), ERR_OK);
    ck_property("tier", "1");
    ck_assert_uint_eq(cursor_holes(h.cursor), 1202);
    ck_assert_int_eq(label(&(struct pairs){0}), ERR_OK);
    crash();
    ck_assert_uint_eq(cursor_properties(h.cursor)->n, 0);
    ck_assert(has_foreign_field());
    ck_assert_int_eq(order(CLOSE), ERR_OK);
    pairs_drop(&words);
    pairs_drop(&others);
    log_house_close();
}
END_TEST

START_TEST(a_ledger_that_fails_is_followed_by_another)
{
    int64_t first;

    log_house_open();
    ck_assert_int_eq(order(CREATE), ERR_OK);
    ck_assert_int_eq(ack(3, 5, 5, 1), ERR_OK);
    first = named_ledger();
    on_loop(break_bookies, NULL);
    for (int64_t i = 0; i < 20; i++)
        ck_assert_int_eq(ack(3, 7 + 2 * i, 7 + 2 * i, 1), ERR_OK);
    ck_assert_int_ne(named_ledger(), first);
    crash();
    ck_assert_uint_eq(cursor_holes(h.cursor), 21);
    ck_assert_int_eq(order(CLOSE), ERR_OK);
    log_house_close();
}
END_TEST

START_TEST(a_reset_is_durable_and_tells_the_node)
{
    log_house_open();
    ck_assert_int_eq(order(CREATE), ERR_OK);
    ck_assert_int_eq(ack_of((struct acks){.ledger = 9, .first = 77, .kind = UPTO}), ERR_OK);
    ck_assert_int_eq(ack_of((struct acks){.ledger = 3, .first = 11, .kind = RESET}), ERR_OK);
    crash();
    ck_mark_delete(3, 11);
    ck_assert_int_eq(order(CLOSE), ERR_OK);
    log_house_close();
}
END_TEST

static void delete_done(struct ledger_call *c, enum err err, struct ledger *l)
{
    (void)c, (void)err, (void)l;
    happen();
}

static void delete_ledger(void *ctx)
{
    static struct ledger_call call = {.done = delete_done};
    ledger_delete(h.client, *(int64_t *)ctx, &call);
}

START_TEST(without_its_ledger_it_falls_back_to_the_node)
{
    int64_t ledger;

    log_house_open();
    ck_assert_int_eq(order(CREATE), ERR_OK);
    ck_assert_int_eq(ack(3, 0, 9, 1), ERR_OK);
    ck_assert_int_eq(ack(3, 10, 19, 1), ERR_OK);
    ck_assert_int_eq(order(ABANDON), ERR_OK);
    ledger = named_ledger();
    on_loop(delete_ledger, &ledger);
    await(1);
    ck_assert_int_eq(order(OPEN), ERR_OK);
    ck_assert_int_le(cursor_mark_delete(h.cursor).entry, 9);
    ck_assert_int_eq(order(CLOSE), ERR_OK);
    log_house_close();
}
END_TEST

START_TEST(of_two_owners_one_fails)
{
    struct cursor *old, *young;
    struct acks a = {.ledger = 3, .first = 7, .last = 7, .stride = 1};

    log_house_open();
    ck_assert_int_eq(order(CREATE), ERR_OK);
    ck_assert_int_eq(ack(3, 5, 5, 1), ERR_OK);
    old = h.cursor;
    ck_assert_int_eq(order_at(OPEN, &young), ERR_OK); /* fences the ledger */
    h.cursor = young;
    h.moved = (struct position){3, -1};
    ck_assert_int_eq(ack(3, 9, 9, 1), ERR_OK); /* and now has the node */
    a.cursor = old;
    on_loop(give_acks, &a);
    await(2);
    ck_assert_int_eq(a.err, ERR_FENCED);
    ck_assert_int_eq(h.failed, ERR_FENCED);
    ck_assert_int_eq(order_at(CLOSE, &old), ERR_FENCED);
    crash();
    ck_assert_uint_eq(cursor_holes(h.cursor), 2);
    ck_assert_int_eq(order(CLOSE), ERR_OK);
    log_house_close();
}
END_TEST

static void set_ensemble(void *ctx)
{
    h.conf.quorum.ensemble = *(unsigned *)ctx;
}

START_TEST(waits_for_bookies)
{
    struct acks a = {.ledger = 3, .first = 5, .last = 5, .stride = 1};
    unsigned too_many = BOOKIES + 1, enough = BOOKIES;
    char path[META_KEY_MAX];

    log_house_open();
    ck_assert_int_eq(order(CREATE), ERR_OK);
    on_loop(set_ensemble, &too_many);
    a.cursor = h.cursor;
    on_loop(give_acks, &a);
    ck_assert_int_eq(path_bookie("127.0.0.1:1", false, path), ERR_OK);
    on_loop(set_ensemble, &enough);
    ck_assert_int_eq(meta_put_wait(h.meta, path, (struct slice){0}, META_ABSENT), ERR_OK);
    await(1);
    ck_assert_int_eq(a.err, ERR_OK);
    ck_assert_int_eq(order(CLOSE), ERR_OK);
    log_house_close();
}
END_TEST

/* ---- real bookies ---------------------------------------------------------------------------- */

struct street {
    char dir[256];
    struct loops loops;
    struct bookie_conf conf[BOOKIES];
    struct bookie *bookie[BOOKIES];
};

static void set(struct street *s, int i, const char *fmt)
{
    char text[512];
    snprintf(text, sizeof text, fmt, s->dir, i);
    ck_assert_int_eq(config_set(&bookie_config_table, &s->conf[i], text, "test"), ERR_OK);
}

static void street_open(struct street *s)
{
    const struct cluster_urls urls = {0};
    const char *tmp = getenv("TMPDIR");

    snprintf(s->dir, sizeof s->dir, "%s/lgm-cursor-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(s->dir));
    ck_assert_int_eq(cluster_init(h.meta, "test", &urls), ERR_OK);
    for (int i = 0; i < BOOKIES; i++) {
        ck_assert_int_eq(config_defaults(&bookie_config_table, &s->conf[i]), ERR_OK);
        set(s, i, "journalDirectories=%s/journal-%d");
        set(s, i, "ledgerDirectories=%s/ledgers-%d");
        set(s, i, "bookieId=%.0sb%d");
        set(s, i, "bookiePort=0");
        set(s, i, "advertisedAddress=127.0.0.1");
        set(s, i, "listenAddress=127.0.0.1");
        set(s, i, "journalMaxSizeMB=16");
    }
}

static void street_wake(struct street *s)
{
    loops_start(&s->loops, "io", 1);
    for (int i = 0; i < BOOKIES; i++)
        ck_assert_int_eq(bookie_start(&s->bookie[i], &s->conf[i], h.meta, &s->loops, disk_real()),
                         ERR_OK);
}

static void street_sleep(struct street *s)
{
    for (int i = 0; i < BOOKIES; i++)
        bookie_stop(&s->bookie[i]);
    loops_stop(&s->loops);
}

static void street_close(struct street *s)
{
    char command[300];

    for (int i = 0; i < BOOKIES; i++)
        config_drop(&bookie_config_table, &s->conf[i]);
    snprintf(command, sizeof command, "rm -rf '%s'", s->dir);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(real_bookies_keep_it_over_a_restart)
{
    static struct street s;

    open_store();
    street_open(&s);
    street_wake(&s);
    open_client();
    ck_assert_int_eq(order(CREATE), ERR_OK);
    ck_assert_int_eq(ack(3, 1, 3999, 2), ERR_OK);
    for (int64_t i = 0; i < 60; i++)
        ck_assert_int_eq(ack(9, i * 2, i * 2, 1), ERR_OK);
    ck_assert_int_eq(order(ABANDON), ERR_OK);
    street_sleep(&s);
    street_wake(&s);
    ck_assert_int_eq(order(OPEN), ERR_OK); /* waits until they are found again */
    ck_assert_uint_eq(cursor_holes(h.cursor), 2060);
    ck_assert_int_eq(order(CLOSE), ERR_OK);
    ck_assert_int_ge(named_ledger(), 0);
    ck_assert_int_eq(order(OPEN), ERR_OK);
    ck_assert_uint_eq(cursor_holes(h.cursor), 2060);
    ck_assert_int_eq(order(DELETE), ERR_OK);
    on_loop(stop, NULL);
    street_sleep(&s);
    loop_drop(&h.loop);
    meta_close(&h.meta);
    segments_clear(&h.segments);
    street_close(&s);
}
END_TEST

int main(void)
{
    return suite_run("cursor",
                     (suite_case[]){SUITE_CASE(what_is_acknowledged_outlives_a_crash),
                                    SUITE_CASE(a_close_leaves_pulsars_form),
                                    SUITE_CASE(properties_outlive_crashes_and_every_form),
                                    SUITE_CASE(a_ledger_that_fails_is_followed_by_another),
                                    SUITE_CASE(a_reset_is_durable_and_tells_the_node),
                                    SUITE_CASE(without_its_ledger_it_falls_back_to_the_node),
                                    SUITE_CASE(of_two_owners_one_fails),
                                    SUITE_CASE(waits_for_bookies),
                                    SUITE_CASE(real_bookies_keep_it_over_a_restart),
                                    {0}});
}
