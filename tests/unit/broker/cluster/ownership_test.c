/* Two brokers' ownership over one store, each on its own loop. */
#include "broker/cluster/ownership.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "broker/cluster/ranges.h"
#include "broker/cluster/records.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/wait.h"
#include "tests/lib/shaky_meta.h"
#include "tests/lib/suite.h"

#define TOPIC  "persistent://public/default/t"
#define BUNDLE "public/default/0x80000000_0xc0000000"
#define OTHER  "persistent://public/default/c-partition-2"

static struct metadata *store;
static struct shaky_meta *shaky; /* the store, as its owner knows it */
static struct loops loops;

struct side {
    struct broker_urls urls;
    struct ownership *ownership;
    struct ownership_watch watch;
    sem_t losses;
    char lost[128];
};

static struct side a, b;

/* ---- calls that are waited for ---- */

struct waiting {
    sem_t done;
    enum err err;
    bool mine;
    char service[64], web[64];
    struct ownership_call call;
    struct ownership_move move;
};

static void started(void *ctx, enum err err)
{
    struct waiting *w = ctx;
    w->err = err;
    sem_post(&w->done);
}

static void stopped(void *ctx)
{
    started(ctx, ERR_OK);
}

static void found(struct ownership_call *c, enum err err, bool mine,
                  const struct broker_urls *where)
{
    struct waiting *w = container_of(c, struct waiting, call);

    w->mine = mine;
    if (!err) {
        snprintf(w->service, sizeof(w->service), "%s", where->service);
        snprintf(w->web, sizeof(w->web), "%s", where->web);
    }
    started(w, err);
}

static void moved(struct ownership_move *m, enum err err)
{
    started(container_of(m, struct waiting, move), err);
}

static void wait_for(sem_t *s)
{
    while (sem_wait(s))
        ;
}

static struct waiting find(struct side *s, const char *topic)
{
    struct waiting w = {.call = {.home = loops.at[0], .done = found}};

    sem_init(&w.done, 0, 0);
    ownership_find(s->ownership, topic, &w.call);
    wait_for(&w.done);
    return w;
}

static enum err move(struct side *s, const char *bundle, const char *to)
{
    struct waiting w = {.move = {.home = loops.at[0], .done = moved}};

    sem_init(&w.done, 0, 0);
    ownership_move(s->ownership, bundle, to, &w.move);
    wait_for(&w.done);
    return w.err;
}

static enum err start(struct side *s, const char *id)
{
    struct waiting w = {0};

    sem_init(&w.done, 0, 0);
    ownership_start(s->ownership, id, started, &w);
    wait_for(&w.done);
    return w.err;
}

static void stop(struct side *s)
{
    struct waiting w = {0};

    sem_init(&w.done, 0, 0);
    ownership_stop(s->ownership, stopped, &w);
    wait_for(&w.done);
}

/* A watch is a little late: asked until it is so. */
static void becomes(struct side *s, const char *topic, const char *service)
{
    for (;;) {
        struct waiting w = find(s, topic);
        if (!w.err && strcmp(w.service, service) == 0)
            return;
    }
}

static char *value_of(const char *key)
{
    struct slice value = {0};
    int64_t version;
    char *text = NULL;

    if (meta_get_wait(store, key, &value, &version) == ERR_OK)
        text = mem_string_n((const char *)value.base, value.len);
    slice_drop(&value);
    return text;
}

static bool exists(const char *key)
{
    char *text = value_of(key);

    mem_free(text);
    return text != NULL;
}

static void put(const char *key, const char *text)
{
    ck_assert_int_eq(meta_put_wait(store, key, slice_copy(text, strlen(text)), META_ANY), ERR_OK);
}

static void remove_key(const char *key)
{
    struct meta_wait w;

    meta_wait_begin(&w);
    meta_remove(store, key, META_ANY, &w.call);
    ck_assert_int_eq(meta_wait_end(&w), ERR_OK);
}

/* ---- two sides ---- */

static void lost(struct ownership_watch *w, const char *bundle)
{
    struct side *s = container_of(w, struct side, watch);

    snprintf(s->lost, sizeof(s->lost), "%s", bundle);
    sem_post(&s->losses);
}

static void side_open(struct side *s, struct loop *home, const char *service, const char *web)
{
    s->urls =
        (struct broker_urls){.service = service, .service_tls = "", .web = web, .web_tls = ""};
    s->ownership = ownership_claimed(home, store, &s->urls);
    s->watch = (struct ownership_watch){.home = loops.at[0], .lost = lost};
    sem_init(&s->losses, 0, 0);
    ownership_watch(s->ownership, &s->watch);
}

static void begin(void)
{
    struct metadata *inner;

    ck_assert_int_eq(meta_memory_open(&inner), ERR_OK);
    shaky = shaky_meta_new(inner);
    store = &shaky->base;
    loops_start(&loops, "t", 2);
    side_open(&a, loops.at[0], "pulsar://a:1", "http://a:2");
    side_open(&b, loops.at[1], "pulsar://b:1", "http://b:2");
    ck_assert_int_eq(start(&a, "a:2"), ERR_OK);
    ck_assert_int_eq(start(&b, "b:2"), ERR_OK);
}

static void finish(void)
{
    stop(&a);
    stop(&b);
    ownership_close(&a.ownership);
    ownership_close(&b.ownership);
    meta_close(&store);
    loops_stop(&loops);
}

/* ---- tests ---- */

START_TEST(both_name_the_first_that_was_asked)
{
    begin();
    struct waiting w = find(&a, TOPIC);
    ck_assert_int_eq(w.err, ERR_OK);
    ck_assert(w.mine);
    ck_assert_str_eq(w.web, "http://a:2");
    w = find(&b, TOPIC);
    ck_assert_int_eq(w.err, ERR_OK);
    ck_assert(!w.mine);
    ck_assert_str_eq(w.service, "pulsar://a:1");
    w = find(&b, OTHER);
    ck_assert(w.mine);
    ck_assert_int_eq(find(&a, "persistent://").err, ERR_INVALID_NAME);
    finish();
}
END_TEST

START_TEST(registrations_are_seen_where_tools_look)
{
    struct broker_record here, there;

    begin();
    char *ours = value_of(PATH_BROKERS "a:2"), *pulsars = value_of(PATH_LOAD_BROKERS "a:2");
    ck_assert_int_eq(broker_record_read(view_of(ours, strlen(ours)), &here), ERR_OK);
    ck_assert_int_eq(broker_record_read(view_of(pulsars, strlen(pulsars)), &there), ERR_OK);
    ck_assert_str_eq(there.service, "pulsar://a:1");
    ck_assert_str_eq(there.web, "http://a:2");
    ck_assert_str_eq(there.web_tls, "");
    ck_assert_str_eq(there.nonce, here.nonce);
    broker_record_drop(&here);
    broker_record_drop(&there);
    mem_free(ours);
    mem_free(pulsars);
    finish();
}
END_TEST

START_TEST(who_stops_is_followed_at_once)
{
    begin();
    ck_assert(find(&a, TOPIC).mine);
    stop(&a);
    ck_assert_int_eq(find(&a, TOPIC).err, ERR_NOT_READY);
    ck_assert(!exists(PATH_BROKERS "a:2"));
    ck_assert(!exists(PATH_LOAD_BROKERS "a:2"));
    becomes(&b, TOPIC, "pulsar://b:1");
    ownership_close(&a.ownership);
    side_open(&a, loops.at[0], "pulsar://a:1", "http://a:2");
    ck_assert_int_eq(find(&a, TOPIC).err, ERR_NOT_READY);
    ck_assert_int_eq(start(&a, "a:2"), ERR_OK);
    ck_assert_str_eq(find(&a, TOPIC).service, "pulsar://b:1");
    finish();
}
END_TEST

START_TEST(one_that_lost_its_registration_comes_back_and_keeps_what_it_had)
{
    begin();
    ck_assert(find(&a, TOPIC).mine);
    char *before = value_of(PATH_BROKERS "a:2");
    remove_key(PATH_BROKERS "a:2");
    char *after;
    while (!(after = value_of(PATH_BROKERS "a:2")))
        ;
    ck_assert_str_eq(before, after);
    ck_assert(find(&a, TOPIC).mine);
    becomes(&b, TOPIC, "pulsar://a:1");
    mem_free(before);
    mem_free(after);
    finish();
}
END_TEST

START_TEST(a_dead_ones_bundle_is_claimed)
{
    begin();
    put(PATH_OWNED BUNDLE, "{\"owner\":\"gone:1\",\"nonce\":\"x\"}");
    becomes(&b, TOPIC, "pulsar://b:1");
    put(PATH_OWNED BUNDLE, "{\"owner\":\"a:2\",\"nonce\":\"an earlier life\"}");
    wait_for(&b.losses);
    becomes(&b, TOPIC, "pulsar://b:1");
    put(PATH_OWNED BUNDLE, "not JSON");
    wait_for(&b.losses);
    becomes(&a, TOPIC, "pulsar://a:1");
    remove_key(PATH_OWNED BUNDLE);
    wait_for(&a.losses);
    becomes(&b, TOPIC, "pulsar://b:1");
    finish();
}
END_TEST

START_TEST(a_move_takes_it_away_from_its_owner)
{
    begin();
    ck_assert(find(&a, TOPIC).mine);
    ck_assert_int_eq(move(&b, BUNDLE, "b:2"), ERR_OK);
    wait_for(&a.losses);
    ck_assert_str_eq(a.lost, BUNDLE);
    ck_assert(bundle_has_topic(a.lost, TOPIC));
    ck_assert_str_eq(find(&a, TOPIC).service, "pulsar://b:1");
    ck_assert(find(&b, TOPIC).mine);
    ck_assert_int_eq(move(&a, BUNDLE, ""), ERR_OK);
    wait_for(&b.losses);
    ck_assert(find(&a, TOPIC).mine);
    ck_assert_int_eq(move(&a, BUNDLE, "nobody:1"), ERR_INVALID_NAME);
    ck_assert_int_eq(move(&a, "public/default/0x80000000_0xc0000001", ""), ERR_NOT_FOUND);
    ck_assert_int_eq(move(&a, "public/default/", ""), ERR_NOT_FOUND);
    ck_assert_int_eq(move(&a, "public", ""), ERR_NOT_FOUND);
    ck_assert_int_eq(move(&a, "", ""), ERR_NOT_FOUND);
    finish();
}
END_TEST

START_TEST(while_the_store_is_away_what_is_mine_is_mine)
{
    begin();
    ck_assert(find(&a, TOPIC).mine);
    shaky->away = (struct fault){.times = 1000000};
    ck_assert(find(&a, TOPIC).mine);
    ck_assert_int_eq(find(&a, OTHER).err, ERR_NOT_READY);
    ck_assert_int_eq(find(&a, "persistent://not/known/t").err, ERR_NOT_READY);
    ck_assert_int_eq(move(&a, BUNDLE, ""), ERR_NOT_READY);
    shaky->away = (struct fault){0};
    ck_assert(find(&a, OTHER).mine);
    finish();
}
END_TEST

START_TEST(it_stops_without_its_store)
{
    begin();
    ck_assert(find(&a, TOPIC).mine);
    shaky->away = (struct fault){.times = 1000000};
    stop(&a);
    stop(&b);
    shaky->away = (struct fault){0};
    ownership_close(&a.ownership);
    ownership_close(&b.ownership);
    meta_close(&store);
    loops_stop(&loops);
}
END_TEST

START_TEST(the_ranges_are_the_namespaces)
{
    begin();
    put("/admin/policies/public/default", "{\"bundles\":{\"numBundles\":1}}");
    ck_assert(find(&a, TOPIC).mine);
    ck_assert(exists(PATH_OWNED "public/default/0x00000000_0xffffffff"));
    put("/admin/local-policies/public/default",
        "{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x80000000\",\"0xffffffff\"]}}");
    while (move(&a, "public/default/0x80000000_0xffffffff", "b:2"))
        ;
    becomes(&a, TOPIC, "pulsar://b:1");
    put("/admin/local-policies/public/default", "{\"bundles\":17}");
    while (find(&a, TOPIC).err)
        ;
    finish();
}
END_TEST

/* What a killed process left does not keep the next one under its name waiting. */
START_TEST(an_earlier_life_is_replaced)
{
    struct side c = {0};
    const char *left = "{\"pulsarServiceUrl\":\"pulsar://c:0\",\"nonce\":\"earlier\"}";

    begin();
    put(PATH_BROKERS "c:2", left);
    put(PATH_LOAD_BROKERS "c:2", left);
    put(PATH_OWNED BUNDLE, "{\"owner\":\"c:2\",\"nonce\":\"earlier\"}");
    becomes(&a, TOPIC, "pulsar://c:0");
    side_open(&c, loops.at[0], "pulsar://c:1", "http://c:2");
    ck_assert_int_eq(start(&c, "c:2"), ERR_OK);
    becomes(&a, TOPIC, "pulsar://a:1");
    stop(&c);
    ck_assert(!exists(PATH_BROKERS "c:2"));
    ck_assert(!exists(PATH_LOAD_BROKERS "c:2"));
    ownership_close(&c.ownership);
    finish();
}
END_TEST

START_TEST(a_name_that_is_no_name_is_refused)
{
    struct side c = {0};

    begin();
    side_open(&c, loops.at[0], "pulsar://c:1", "http://c:2");
    ck_assert_int_eq(start(&c, "c/2"), ERR_BAD_CONFIG);
    ck_assert_int_eq(find(&c, TOPIC).err, ERR_NOT_READY);
    stop(&c);
    ownership_close(&c.ownership);
    finish();
}
END_TEST

int main(void)
{
    return suite_run(
        "ownership",
        (suite_case[]){
            SUITE_CASE(both_name_the_first_that_was_asked),
            SUITE_CASE(registrations_are_seen_where_tools_look),
            SUITE_CASE(who_stops_is_followed_at_once),
            SUITE_CASE(one_that_lost_its_registration_comes_back_and_keeps_what_it_had),
            SUITE_CASE(a_dead_ones_bundle_is_claimed),
            SUITE_CASE(a_move_takes_it_away_from_its_owner),
            SUITE_CASE(while_the_store_is_away_what_is_mine_is_mine),
            SUITE_CASE(it_stops_without_its_store),
            SUITE_CASE(the_ranges_are_the_namespaces),
            SUITE_CASE(an_earlier_life_is_replaced),
            SUITE_CASE(a_name_that_is_no_name_is_refused),
            {0},
        });
}
