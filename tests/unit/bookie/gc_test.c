#include "bookie/gc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bookie/ledger_tomb.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "metadata/wait.h"
#include "tests/lib/shaky_meta.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/store.h"

/* A bookie's storage beside metadata in memory; rounds are asked for one by one. */
static struct store *store;
static struct metadata *meta;
static struct shaky_meta *shaky;
static struct gc *gc;
static struct bookie_conf conf;
static int64_t hidden; /* from listings; -1: none */

/* ---- metadata that leaves a ledger out of its listings -------------------------------------- */

struct hiding_call {
    struct meta_call inner;
    struct meta_call *call;
};

static struct metadata hiding;
static struct meta_ops hiding_ops;

static void without(struct meta_call *c, const struct meta_reply *r)
{
    struct hiding_call *h = container_of(c, struct hiding_call, inner);
    struct meta_item *kept = mem_alloc((r->count + 1) * sizeof kept[0]);
    struct meta_reply shown = *r;
    int64_t ledger;
    shown.items = kept;
    shown.count = 0;
    for (size_t i = 0; i < r->count; i++)
        if (hidden < 0 || path_ledger_id(r->items[i].key, &ledger) || ledger != hidden)
            kept[shown.count++] = r->items[i];
    struct meta_call *call = h->call;
    mem_free(h);
    call->done(call, &shown);
    mem_free(kept);
}

static void range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                  bool keys_only, struct meta_call *c)
{
    struct hiding_call *h = mem_new(struct hiding_call);
    (void)m;
    h->call = c;
    h->inner = (struct meta_call){.home = c->home, .done = without};
    shaky->base.ops->range(&shaky->base, prefix, after, limit, keys_only, &h->inner);
}

static void get(struct metadata *m, const char *key, struct meta_call *c)
{
    (void)m;
    shaky->base.ops->get(&shaky->base, key, c);
}

static void put(struct metadata *m, const char *key, struct slice value, int64_t expected,
                struct meta_call *c)
{
    (void)m;
    shaky->base.ops->put(&shaky->base, key, value, expected, c);
}

static void remove_key(struct metadata *m, const char *key, int64_t expected, struct meta_call *c)
{
    (void)m;
    shaky->base.ops->remove(&shaky->base, key, expected, c);
}

static void hold(struct metadata *m, const char *key, struct slice value, struct meta_call *c)
{
    (void)m;
    shaky->base.ops->hold(&shaky->base, key, value, c);
}

static void release(struct metadata *m, const char *key, struct meta_call *c)
{
    (void)m;
    shaky->base.ops->release(&shaky->base, key, c);
}

static void close_hiding(struct metadata *m)
{
    (void)m;
    struct metadata *base = &shaky->base;
    meta_close(&base);
}

/* changes: how far the store has come, besides. */
static void new_meta(const char *instance, unsigned changes)
{
    struct metadata *inner;
    ck_assert_int_eq(meta_memory_open(&inner), ERR_OK);
    shaky = shaky_meta_new(inner);
    hiding_ops = (struct meta_ops){.get = get,
                                   .put = put,
                                   .remove = remove_key,
                                   .range = range,
                                   .hold = hold,
                                   .release = release,
                                   .close = close_hiding};
    hiding = (struct metadata){.ops = &hiding_ops};
    meta = &hiding;
    if (instance)
        ck_assert_int_eq(
            meta_put_wait(meta, PATH_INSTANCE_ID, slice_copy(instance, strlen(instance)), META_ANY),
            ERR_OK);
    for (unsigned i = 0; i < changes; i++)
        ck_assert_int_eq(meta_put_wait(meta, "/other", (struct slice){0}, META_ANY), ERR_OK);
}

/* ---- ledgers -------------------------------------------------------------------------------- */

static void name_ledger(int64_t ledger, const char *bookie, bool closed)
{
    char key[META_KEY_MAX];
    char *members[] = {(char *)(uintptr_t)bookie};
    Bookkeeper__LedgerMetadataFormat__Segment segment =
        BOOKKEEPER__LEDGER_METADATA_FORMAT__SEGMENT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment *segments[] = {&segment};
    Bookkeeper__LedgerMetadataFormat r = BOOKKEEPER__LEDGER_METADATA_FORMAT__INIT;
    segment.n_ensemblemember = 1;
    segment.ensemblemember = members;
    r.n_segment = 1;
    r.segment = segments;
    r.quorumsize = r.ensemblesize = 1;
    r.state = closed ? BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__CLOSED
                     : BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN;
    if (closed) {
        r.has_lastentryid = true;
        r.lastentryid = 9;
    }
    ck_assert_int_eq(path_ledger(ledger, key), ERR_OK);
    ck_assert_int_eq(meta_put_wait(meta, key, ledger_record_write(&r), META_ANY), ERR_OK);
}

static void remove_now(const char *key)
{
    struct meta_wait w;
    meta_wait_begin(&w);
    meta_remove(meta, key, META_ANY, &w.call);
    ck_assert_int_eq(meta_wait_end(&w), ERR_OK);
}

static void unname_ledger(int64_t ledger)
{
    char key[META_KEY_MAX];
    ck_assert_int_eq(path_ledger(ledger, key), ERR_OK);
    remove_now(key);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void open_gc(void)
{
    const struct gc_conf c = {.conf = &conf,
                              .bookie_id = "b1",
                              .disk = fake_disk_of(store->disk),
                              .storage = store->storage,
                              .meta = meta};
    ck_assert_int_eq(gc_open(&gc, &c), ERR_OK);
}

static struct gc_state run_as(enum gc_depth depth)
{
    struct gc_state s;
    const struct timespec ms = {.tv_nsec = 1000000};
    gc_run_now(gc, depth);
    for (gc_state(gc, &s); s.is_forced; gc_state(gc, &s))
        nanosleep(&ms, NULL);
    return s;
}

static struct gc_state run(void)
{
    return run_as(GC_LISTING);
}

static void begin(void)
{
    hidden = -1;
    conf = (struct bookie_conf){.gc_wait_ms = 3600000,
                                .gc_moved_wait_ms = 3600000,
                                .gc_vanish_share = 0.1,
                                .gc_vanish_least = 3,
                                .gc_tomb_s = 1000,
                                .gc_major_threshold = 0.8,
                                .gc_minor_threshold = 0.2};
    store = store_new(2, 1);
    ck_assert_int_eq(store_start(store), ERR_OK);
    for (int64_t l = 0; l < STORE_LEDGERS; l++)
        for (int64_t e = 0; e < 10; e++)
            ck_assert_int_eq(store_add(store, l, e), ERR_OK);
    store_wait(store);
    ck_assert_int_eq(storage_flush(store->storage), ERR_OK);
    new_meta("instance", 0);
    for (int64_t l = 0; l < STORE_LEDGERS; l++)
        name_ledger(l, "b1", true);
    open_gc();
}

static void end(void)
{
    gc_close(&gc);
    meta_close(&meta);
    store_drop(&store);
}

static void restart(void)
{
    gc_close(&gc);
    store_crash(store);
    ck_assert_int_eq(store_start(store), ERR_OK);
    open_gc();
}

static enum err claim(int64_t ledger, struct ledger **out)
{
    return ledgers_claim(&storage_shard(store->storage, ledger)->ledgers, ledger, store_key, out);
}

static enum err find(int64_t ledger)
{
    struct ledger *l;
    return ledgers_find(&storage_shard(store->storage, ledger)->ledgers, ledger, &l);
}

static unsigned count_here(void)
{
    unsigned n = 0;
    for (int64_t l = 0; l < STORE_LEDGERS; l++)
        n += !find(l);
    return n;
}

START_TEST(a_ledger_goes_after_two_listings_without_it)
{
    struct ledger *l;
    begin();
    run();
    unname_ledger(3);
    run();
    ck_assert_int_eq(find(3), ERR_OK);
    run();
    ck_assert_int_eq(find(3), ERR_NO_LEDGER);
    ck_assert_uint_eq(count_here(), STORE_LEDGERS - 1);
    ck_assert_int_eq(claim(3, &l), ERR_FENCED); /* who comes late does not make it again */
    restart();
    ck_assert_int_eq(find(3), ERR_NO_LEDGER);
    ck_assert_int_eq(claim(3, &l), ERR_FENCED);
    ck_assert_uint_eq(count_here(), STORE_LEDGERS - 1);
    name_ledger(3, "b1", true); /* by whoever restored the metadata as it was */
    run();
    ck_assert_int_eq(claim(3, &l), ERR_OK);
    end();
}
END_TEST

START_TEST(what_is_in_memory_goes_after_it_was_written)
{
    begin();
    run();
    unname_ledger(3);
    ck_assert_int_eq(store_add(store, 3, 10), ERR_OK);
    store_wait(store);
    run();
    run();
    struct ledger *l;
    ck_assert_int_eq(claim(3, &l), ERR_FENCED); /* no more is taken */
    ck_assert_int_eq(storage_flush(store->storage), ERR_OK);
    run();
    ck_assert_int_eq(storage_flush(store->storage), ERR_OK);
    restart();
    ck_assert_int_eq(find(3), ERR_NO_LEDGER);
    end();
}
END_TEST

START_TEST(a_listing_that_lies_is_not_believed)
{
    begin();
    run();
    hidden = 3;
    for (unsigned i = 0; i < 5; i++)
        run();
    ck_assert_int_eq(find(3), ERR_OK);
    end();
}
END_TEST

START_TEST(a_listing_that_fails_is_none)
{
    struct gc_state s;
    begin();
    s = run();
    ck_assert_int_eq(s.listings, 1);
    unname_ledger(3);
    for (unsigned after = 0; after < 4; after++) {
        shaky->away = (struct fault){.after = after, .times = 1};
        run();
        shaky->away = (struct fault){0};
    }
    s = run();
    ck_assert_int_eq(find(3), ERR_NO_LEDGER);
    ck_assert_int_lt(s.listings, 6);
    ck_assert_int_eq(s.halt, GC_GOES);
    end();
}
END_TEST

START_TEST(the_trash_gives_back)
{
    struct ledger_tomb tomb;
    begin();
    conf.gc_trash_s = 3600;
    gc_close(&gc);
    open_gc();
    unname_ledger(3);
    run();
    run();
    run();
    struct entry_index *ix = store_device(store, 3)->index;
    ck_assert_int_eq(ledger_tomb_get(ix, 3, &tomb), ERR_OK);
    ck_assert_int_eq(tomb.kind, TOMB_TRASHED);
    ck_assert_int_eq(find(3), ERR_OK);
    restart();
    ix = store_device(store, 3)->index;
    name_ledger(3, "b1", true);
    run();
    ck_assert_int_eq(ledger_tomb_get(ix, 3, &tomb), ERR_NOT_FOUND);
    store_check(store, false);
    end();
}
END_TEST

START_TEST(too_many_at_once_halt_over_a_restart)
{
    begin();
    run();
    for (int64_t l = 0; l < 4; l++)
        unname_ledger(l);
    ck_assert_int_eq(run().halt, GC_TOO_MANY);
    for (int64_t l = 0; l < 4; l++)
        name_ledger(l, "b1", true);
    restart(); /* it halts although nothing is absent now */
    ck_assert_int_eq(run().halt, GC_TOO_MANY);
    for (int64_t l = 0; l < 4; l++)
        unname_ledger(l);
    run();
    ck_assert_uint_eq(count_here(), STORE_LEDGERS);
    gc_resume(gc);
    run();
    ck_assert_int_eq(run().halt, GC_GOES);
    run();
    ck_assert_uint_eq(count_here(), STORE_LEDGERS - 4);
    end();
}
END_TEST

/* The store is another one from now on: with so many changes. */
static enum gc_halt with_store(const char *instance, unsigned changes)
{
    gc_close(&gc);
    meta_close(&meta);
    new_meta(instance, changes);
    open_gc();
    run();
    run();
    const enum gc_halt halt = run().halt;
    ck_assert_uint_eq(count_here(), STORE_LEDGERS);
    return halt;
}

START_TEST(a_store_that_was_emptied_halts)
{
    begin();
    run();
    ck_assert_int_eq(with_store(NULL, 0), GC_OTHER_STORE);
    end();
}
END_TEST

START_TEST(an_older_store_halts)
{
    begin();
    run();
    ck_assert_int_eq(with_store("instance", 0), GC_OLDER_STORE);
    end();
}
END_TEST

START_TEST(an_older_store_that_has_gone_on_halts)
{
    begin();
    run();
    ck_assert_int_eq(with_store("instance", 1000), GC_BEACON_LOST);
    end();
}
END_TEST

START_TEST(a_deletion_that_was_cut_off_goes_on)
{
    const struct ledger_tomb going = {.kind = TOMB_GOING, .fenced = true};
    begin();
    unname_ledger(3);
    gc_close(&gc);
    ck_assert_int_eq(ledger_tomb_put(store_device(store, 3)->index, 3, &going), ERR_OK);
    open_gc();
    run();
    ck_assert_int_eq(find(3), ERR_NO_LEDGER);
    end();
}
END_TEST

START_TEST(what_moved_to_others_goes_and_may_come_again)
{
    char key[META_KEY_MAX];
    struct ledger *l;
    begin();
    conf.gc_moved_wait_ms = 0;
    gc_close(&gc);
    open_gc();
    name_ledger(1, "b2", false); /* still written: what names us may come */
    name_ledger(2, "b2", true);
    name_ledger(3, "b2", true); /* being repaired */
    ck_assert_int_eq(path_mark(3, key), ERR_OK);
    ck_assert_int_eq(meta_put_wait(meta, key, (struct slice){0}, META_ANY), ERR_OK);
    run();
    ck_assert_int_eq(find(1), ERR_OK);
    ck_assert_int_eq(find(2), ERR_NO_LEDGER);
    ck_assert_int_eq(find(3), ERR_OK);
    ck_assert_uint_eq(count_here(), STORE_LEDGERS - 1);
    ck_assert_int_eq(claim(2, &l), ERR_OK);
    ck_assert(l->row.fenced);
    ck_assert_int_eq(l->row.last, -1);
    end();
}
END_TEST

START_TEST(compaction_that_is_suspended_waits)
{
    begin();
    restart(); /* the logs are closed */
    gc_suspend(gc, true, true);
    struct gc_state s = run_as(GC_MAJOR);
    ck_assert(s.major_suspended);
    gc_unsuspend(gc, true, true);
    s = run_as(GC_MAJOR);
    ck_assert(!s.major_suspended);
    ck_assert_int_eq(s.majors, 2);
    store_check(store, false);
    end();
}
END_TEST

START_TEST(a_disk_that_gets_tight_is_looked_after)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    struct gc_state s;
    begin();
    atomic_store(&store->storage->devices[0].is_tight, true); /* before the first look */
    for (gc_state(gc, &s); s.minors == 0; gc_state(gc, &s))
        nanosleep(&ms, NULL);
    ck_assert_int_eq(s.majors, 0);
    store_check(store, false);
    end();
}
END_TEST

int main(void)
{
    return suite_run("gc", (suite_case[]){SUITE_CASE(a_ledger_goes_after_two_listings_without_it),
                                          SUITE_CASE(what_is_in_memory_goes_after_it_was_written),
                                          SUITE_CASE(a_listing_that_lies_is_not_believed),
                                          SUITE_CASE(a_listing_that_fails_is_none),
                                          SUITE_CASE(the_trash_gives_back),
                                          SUITE_CASE(too_many_at_once_halt_over_a_restart),
                                          SUITE_CASE(a_store_that_was_emptied_halts),
                                          SUITE_CASE(an_older_store_halts),
                                          SUITE_CASE(an_older_store_that_has_gone_on_halts),
                                          SUITE_CASE(a_deletion_that_was_cut_off_goes_on),
                                          SUITE_CASE(what_moved_to_others_goes_and_may_come_again),
                                          SUITE_CASE(compaction_that_is_suspended_waits),
                                          SUITE_CASE(a_disk_that_gets_tight_is_looked_after),
                                          {0}});
}
