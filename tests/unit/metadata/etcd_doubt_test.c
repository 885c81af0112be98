/* Answers that are lost after the change was made, watches and sessions that lose etcd: one
 * etcd behind a proxy that misbehaves, and a second store that sees what really happened. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/etcd.h"
#include "metadata/metadata.h"
#include "tests/lib/etcd.h"
#include "tests/lib/proxy.h"
#include "tests/lib/suite.h"
#include "tests/unit/metadata/ask.h"
#include "tests/unit/metadata/listener.h"

#define is_err(call, e) ck_assert_str_eq(err_name((call).err), err_name(e))

static struct test_etcd etcd;
static struct proxy *proxy;
static char root[32];
static struct metadata *direct, *m;

static struct metadata *open_at(uint16_t port, uint64_t operation_ms)
{
    struct metadata *store = NULL;
    char url[128];

    snprintf(url, sizeof url, "etcd:http://127.0.0.1:%u%s", port, root);
    const struct meta_etcd_conf conf = {
        .url = url, .session_timeout_us = 1000000, .operation_timeout_us = operation_ms * 1000};
    ck_assert_int_eq(meta_etcd_open(&store, &conf), ERR_OK);
    return store;
}

static void begin_for(const char *name, uint64_t operation_ms)
{
    snprintf(root, sizeof root, "/%s", name);
    proxy = proxy_open(etcd.at[0].client);
    direct = open_at(etcd.at[0].client, 0);
    m = open_at(proxy_port(proxy), operation_ms);
    is_err(ask_get(m, "/warm"), ERR_NOT_FOUND);
}

static void begin(const char *name)
{
    begin_for(name, 0);
}

static void end(void)
{
    meta_close(&m);
    meta_close(&direct);
    proxy_close(&proxy);
}

/* ---- a call that is under way while the test goes on --------------------------------------- */

struct later {
    struct meta_call call;
    struct loop *loop;
    atomic_bool done;
    enum err err;
    int64_t version, first;
};

static void answered(struct meta_call *c, const struct meta_reply *r)
{
    struct later *l = container_of(c, struct later, call);

    l->err = r->err;
    l->version = r->version;
    l->first = r->first;
    atomic_store(&l->done, true);
}

static struct meta_call *later_begin(struct later *l)
{
    *l = (struct later){.loop = loop_new("later")};
    l->call = (struct meta_call){.home = l->loop, .done = answered};
    loop_start(l->loop);
    return &l->call;
}

static enum err later_end(struct later *l)
{
    while (!atomic_load(&l->done))
        sched_yield();
    loop_drop(&l->loop);
    return l->err;
}

static void await_text(const char *key, const char *text)
{
    for (;;) {
        struct answered a = ask_get(direct, key);
        if (!a.err && strcmp(a.text, text) == 0)
            return;
    }
}

static void await_gone(const char *key)
{
    while (ask_get(direct, key).err != ERR_NOT_FOUND)
        sched_yield();
}

/* ---- writes whose answer is lost ----------------------------------------------------------- */

START_TEST(a_create_is_recognised)
{
    struct later l;

    begin("create");
    proxy_set(proxy, PROXY_SWALLOW);
    meta_put(m, "/k", slice_text("mine"), META_ABSENT, later_begin(&l));
    await_text("/k", "mine");
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "OK");
    ck_assert_int_eq(l.version, 0);
    ck_assert_int_eq(ask_get(direct, "/k").version, 0);
    end();
}
END_TEST

START_TEST(a_compare_and_set_happens_once)
{
    struct later l;

    begin("cas");
    is_err(ask_put(m, "/k", "one", META_ABSENT), ERR_OK);
    proxy_set(proxy, PROXY_SWALLOW);
    meta_put(m, "/k", slice_text("two"), 0, later_begin(&l));
    await_text("/k", "two");
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "OK");
    ck_assert_int_eq(l.version, 1);
    ck_assert_int_eq(ask_get(direct, "/k").version, 1);
    end();
}
END_TEST

START_TEST(a_put_of_any_version_happens_once)
{
    struct later l;

    begin("any");
    is_err(ask_put(m, "/k", "one", META_ABSENT), ERR_OK);
    proxy_set(proxy, PROXY_SWALLOW);
    meta_put(m, "/k", slice_text("two"), META_ANY, later_begin(&l));
    await_text("/k", "two");
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "OK");
    ck_assert_int_eq(l.version, 1);
    ck_assert_int_eq(ask_get(direct, "/k").version, 1);
    end();
}
END_TEST

/* Ours happened, and was overwritten while we did not know: nobody can tell any more. */
START_TEST(an_overwritten_set_is_unknown)
{
    struct later l;

    begin("overwritten");
    is_err(ask_put(m, "/k", "one", META_ABSENT), ERR_OK);
    proxy_set(proxy, PROXY_SWALLOW);
    meta_put(m, "/k", slice_text("two"), 0, later_begin(&l));
    await_text("/k", "two");
    is_err(ask_put(direct, "/k", "three", 1), ERR_OK);
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "UNKNOWN_STATE");
    ck_assert_str_eq(ask_get(direct, "/k").text, "three");
    end();
}
END_TEST

/* Cut before it could leave; somebody else was faster. */
START_TEST(what_another_did_is_refused)
{
    struct later l;

    begin("another");
    is_err(ask_put(m, "/k", "one", META_ABSENT), ERR_OK);
    proxy_set(proxy, PROXY_CUT);
    meta_put(m, "/k", slice_text("two"), 0, later_begin(&l));
    is_err(ask_put(direct, "/k", "theirs", 0), ERR_OK);
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "BAD_VERSION");
    ck_assert_str_eq(ask_get(direct, "/k").text, "theirs");
    end();
}
END_TEST

START_TEST(a_removal_is_recognised)
{
    struct later l;

    begin("removal");
    is_err(ask_put(m, "/k", "one", META_ABSENT), ERR_OK);
    proxy_set(proxy, PROXY_SWALLOW);
    meta_remove(m, "/k", 0, later_begin(&l));
    await_gone("/k");
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "OK");
    end();
}
END_TEST

START_TEST(a_transaction_is_recognised)
{
    struct later l;

    begin("txn");
    is_err(ask_put(m, "/a", "1", META_ABSENT), ERR_OK);
    is_err(ask_put(m, "/b", "1", META_ABSENT), ERR_OK);
    struct meta_op ops[] = {{META_PUT, "/a", slice_text("2"), 0},
                            {META_PUT, "/c", slice_text("new"), META_ABSENT},
                            {META_REMOVE, "/b", {0}, 0},
                            {META_CHECK, "/d", {0}, META_ABSENT}};
    proxy_set(proxy, PROXY_SWALLOW);
    meta_txn(m, ops, 4, later_begin(&l));
    await_gone("/b");
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "OK");
    ck_assert_str_eq(ask_range(direct, "/", NULL, 9, false).text, "/a=2@1 /c=new@0");
    end();
}
END_TEST

START_TEST(a_counter_gives_no_number_twice)
{
    struct later l;

    begin("counter");
    ck_assert_int_eq(ask_counter(m, "/n", 10).first, 0);
    proxy_set(proxy, PROXY_SWALLOW);
    meta_counter(m, "/n", 10, later_begin(&l));
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "OK");
    ck_assert_int_ge(l.first, 10);
    ck_assert_int_ge(ask_counter(direct, "/n", 1).first, l.first + 10);
    end();
}
END_TEST

START_TEST(holding_and_releasing_are_recognised)
{
    struct later l;

    begin("hold");
    is_err(ask_hold(m, "/other", "x"), ERR_OK);
    proxy_set(proxy, PROXY_SWALLOW);
    meta_hold(m, "/h", slice_text("mine"), later_begin(&l));
    await_text("/h", "mine");
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "OK");
    ck_assert_int_eq(ask_get(direct, "/h").version, 0);
    is_err(ask_hold(direct, "/h", "theirs"), ERR_EXISTS);
    proxy_set(proxy, PROXY_SWALLOW);
    meta_release(m, "/h", later_begin(&l));
    await_gone("/h");
    proxy_set(proxy, PROXY_PASS);
    ck_assert_str_eq(err_name(later_end(&l)), "OK");
    end();
}
END_TEST

/* ---- too late ------------------------------------------------------------------------------- */

START_TEST(late_answers_say_what_is_known)
{
    struct later l;

    begin_for("late", 600);
    proxy_set(proxy, PROXY_SWALLOW);
    meta_put(m, "/k", slice_text("v"), META_ABSENT, later_begin(&l));
    ck_assert_str_eq(err_name(later_end(&l)), "UNKNOWN_STATE");
    proxy_set(proxy, PROXY_CUT);
    is_err(ask_get(m, "/k"), ERR_NOT_READY);
    is_err(ask_put(m, "/k2", "v", META_ABSENT), ERR_NOT_READY);
    is_err(ask_range(m, "/", NULL, 9, true), ERR_NOT_READY);
    is_err(ask_counter(m, "/n", 1), ERR_NOT_READY);
    proxy_set(proxy, PROXY_PASS);
    while (ask_get(m, "/k").err == ERR_NOT_READY)
        sched_yield();
    ck_assert_str_eq(ask_get(m, "/k").text, "v");
    is_err(ask_get(m, "/k2"), ERR_NOT_FOUND);
    end();
}
END_TEST

/* ---- watches -------------------------------------------------------------------------------- */

static void compact(void)
{
    char json[64], body[1024];
    uint64_t revision = ask_get(direct, "/none").revision;

    snprintf(json, sizeof json, "{\"revision\":\"%llu\"}", (unsigned long long)revision);
    ck_assert_int_eq(test_etcd_ask(etcd.at[0].client, "/v3/kv/compaction", json, body, sizeof body),
                     200);
}

START_TEST(a_cut_watch_misses_nothing)
{
    begin("cut");
    struct listener *l = listener_new(m, "/w/");
    is_err(ask_put(direct, "/w/a", "0", META_ANY), ERR_OK);
    listener_await(l, "put /w/a=0");
    for (int round = 0; round < 5; round++) {
        char text[16], what[32];
        proxy_set(proxy, PROXY_CUT);
        for (int i = 0; i < 10; i++) {
            snprintf(text, sizeof text, "%d", 10 * round + i);
            is_err(ask_put(direct, "/w/b", text, META_ANY), ERR_OK);
        }
        proxy_set(proxy, PROXY_PASS);
        for (int i = 0; i < 10; i++) {
            snprintf(what, sizeof what, "put /w/b=%d", 10 * round + i);
            listener_await(l, what);
            ck_assert_uint_eq(listener_count(l, what), 1);
        }
    }
    ck_assert_uint_eq(listener_count(l, "unsure /w/"), 0);
    listener_drop(&l);
    end();
}
END_TEST

START_TEST(a_compacted_watch_is_told_to_list)
{
    begin("compacted");
    struct listener *l = listener_new(m, "/w/");
    is_err(ask_put(direct, "/w/a", "0", META_ANY), ERR_OK);
    listener_await(l, "put /w/a=0");
    proxy_set(proxy, PROXY_CUT);
    is_err(ask_put(direct, "/w/a", "1", META_ANY), ERR_OK);
    is_err(ask_remove(direct, "/w/a", META_ANY), ERR_OK);
    is_err(ask_put(direct, "/w/b", "1", META_ANY), ERR_OK);
    compact();
    proxy_set(proxy, PROXY_PASS);
    listener_await(l, "unsure /w/");
    ck_assert_str_eq(ask_range(m, "/w/", NULL, 9, false).text, "/w/b=1@0");
    is_err(ask_put(direct, "/w/c", "after", META_ANY), ERR_OK);
    listener_await(l, "put /w/c=after");
    ck_assert_uint_eq(listener_count(l, "unsure /w/"), 1);
    listener_drop(&l);
    end();
}
END_TEST

START_TEST(watches_come_and_go)
{
    begin("many");
    for (int i = 0; i < 20; i++) {
        struct listener *l = listener_new(m, "/w/"), *other = listener_new(m, "/w/");
        is_err(ask_put(direct, "/w/a", "x", META_ANY), ERR_OK);
        listener_await(l, "put /w/a=x");
        listener_drop(&l);
        is_err(ask_put(direct, "/w/a", "y", META_ANY), ERR_OK);
        listener_await(other, "put /w/a=y");
        listener_drop(&other);
    }
    end();
}
END_TEST

/* ---- the session ---------------------------------------------------------------------------- */

static void revoke_lease_of(const char *key)
{
    char json[160], body[2048], full[64], base64[96];
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0, len = (size_t)snprintf(full, sizeof full, "%s%s", root, key);

    for (size_t i = 0; i < len; i += 3) {
        unsigned v = (unsigned)(unsigned char)full[i] << 16;
        v |= i + 1 < len ? (unsigned)(unsigned char)full[i + 1] << 8 : 0;
        v |= i + 2 < len ? (unsigned char)full[i + 2] : 0;
        for (unsigned k = 0; k < 4; k++)
            base64[n++] = i + k <= len ? digits[v >> (18 - 6 * k) & 63] : '=';
    }
    snprintf(json, sizeof json, "{\"key\":\"%.*s\"}", (int)n, base64);
    ck_assert_int_eq(test_etcd_ask(etcd.at[0].client, "/v3/kv/range", json, body, sizeof body),
                     200);
    uint64_t lease = test_etcd_number(body, "lease");
    ck_assert_uint_ne(lease, 0);
    snprintf(json, sizeof json, "{\"ID\":\"%llu\"}", (unsigned long long)lease);
    ck_assert_int_eq(test_etcd_ask(etcd.at[0].client, "/v3/lease/revoke", json, body, sizeof body),
                     200);
}

START_TEST(held_keys_come_back_with_a_new_lease)
{
    begin("again");
    struct listener *l = listener_new(direct, "/h/");
    is_err(ask_hold(m, "/h/a", "1"), ERR_OK);
    is_err(ask_hold(m, "/h/b", "2"), ERR_OK);
    is_err(ask_put(m, "/h/b", "3", 0), ERR_OK);
    revoke_lease_of("/h/a");
    listener_await(l, "removed /h/b");
    listener_await(l, "put /h/b=3");
    await_text("/h/a", "1");
    revoke_lease_of("/h/b");
    await_gone("/h/a");
    is_err(ask_hold(m, "/h/c", "4"), ERR_OK);
    await_text("/h/a", "1");
    is_err(ask_hold(direct, "/h/a", "theirs"), ERR_EXISTS);
    listener_drop(&l);
    end();
}
END_TEST

START_TEST(a_key_that_another_took_is_left_to_them)
{
    begin("taken");
    struct listener *l = listener_new(m, "/h/");
    is_err(ask_hold(m, "/h/a", "mine"), ERR_OK);
    listener_await(l, "put /h/a=mine");
    proxy_set(proxy, PROXY_CUT);
    await_gone("/h/a"); /* a second or two */
    is_err(ask_hold(direct, "/h/a", "theirs"), ERR_OK);
    proxy_set(proxy, PROXY_PASS);
    listener_await(l, "removed /h/a");
    listener_await(l, "put /h/a=theirs");
    is_err(ask_hold(m, "/h/a", "mine"), ERR_EXISTS);
    is_err(ask_release(m, "/h/a"), ERR_NOT_FOUND);
    ck_assert_str_eq(ask_get(direct, "/h/a").text, "theirs");
    listener_drop(&l);
    end();
}
END_TEST

START_TEST(closing_gives_held_keys_back)
{
    begin("closing");
    is_err(ask_hold(m, "/h/a", "1"), ERR_OK);
    meta_close(&m);
    is_err(ask_get(direct, "/h/a"), ERR_NOT_FOUND);
    m = open_at(proxy_port(proxy), 0);
    end();
}
END_TEST

int main(void)
{
    if (!test_etcd_start(&etcd, 1, NULL))
        return test_etcd_skip();
    int failed =
        suite_run("etcd_doubt", (suite_case[]){SUITE_CASE(a_create_is_recognised),
                                               SUITE_CASE(a_compare_and_set_happens_once),
                                               SUITE_CASE(a_put_of_any_version_happens_once),
                                               SUITE_CASE(an_overwritten_set_is_unknown),
                                               SUITE_CASE(what_another_did_is_refused),
                                               SUITE_CASE(a_removal_is_recognised),
                                               SUITE_CASE(a_transaction_is_recognised),
                                               SUITE_CASE(a_counter_gives_no_number_twice),
                                               SUITE_CASE(holding_and_releasing_are_recognised),
                                               SUITE_CASE(late_answers_say_what_is_known),
                                               SUITE_CASE(a_cut_watch_misses_nothing),
                                               SUITE_CASE(a_compacted_watch_is_told_to_list),
                                               SUITE_CASE(watches_come_and_go),
                                               SUITE_CASE(held_keys_come_back_with_a_new_lease),
                                               SUITE_CASE(a_key_that_another_took_is_left_to_them),
                                               SUITE_CASE(closing_gives_held_keys_back),
                                               {0}});
    test_etcd_stop(&etcd);
    return failed;
}
