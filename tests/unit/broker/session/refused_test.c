/* A principal that may not: every command and every route says so, and does nothing. */
#include <stdatomic.h>
#include <string.h>

#include "broker/auth/authorize.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/admin/desk.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"

enum { NOT_AUTHORIZED = 4 };

static _Atomic unsigned refused, asked; /* a bit an action */

static enum err may(const struct authorizer *a, const struct principal *who, enum action what,
                    const char *resource)
{
    (void)a;
    (void)who;
    (void)resource;
    atomic_fetch_or(&asked, 1u << what);
    return refused >> what & 1 ? ERR_FORBIDDEN : ERR_OK;
}

static const struct authorizer guard = {.may = may};

static void begin_refusing(unsigned actions)
{
    refused = actions;
    asked = 0;
    inn = inn_new();
    inn->authorizer = &guard;
    inn_open(inn);
    r = another();
}

static unsigned only(enum action what)
{
    return 1u << what;
}

static void list(uint64_t request)
{
    RAW(base, GET_TOPICS_OF_NAMESPACE, gettopicsofnamespace, CommandGetTopicsOfNamespace,
        COMMAND_GET_TOPICS_OF_NAMESPACE, g);

    g.request_id = request;
    g.namespace_ = (char *)(uintptr_t) "public/default";
    raw_put(r, &base);
}

static void watch(uint64_t request)
{
    RAW(base, WATCH_TOPIC_LIST, watchtopiclist, CommandWatchTopicList, COMMAND_WATCH_TOPIC_LIST, w);

    w.request_id = request;
    w.watcher_id = 1;
    w.namespace_ = (char *)(uintptr_t) "public/default";
    w.topics_pattern = (char *)(uintptr_t) ".*";
    raw_put(r, &base);
}

static void expect_no_lookup(void)
{
    raw_lookup(r, 5, TOPIC);
    ck_assert_int_eq((int)raw_expect(r, RAW_TYPE(LOOKUP_RESPONSE))->lookuptopicresponse->error,
                     NOT_AUTHORIZED);
    raw_partitions(r, 6, TOPIC, true);
    ck_assert_int_eq((int)raw_expect(r, RAW_TYPE(PARTITIONED_METADATA_RESPONSE))
                         ->partitionmetadataresponse->error,
                     NOT_AUTHORIZED);
}

START_TEST(every_command)
{
    begin_refusing(~0u);
    expect_no_lookup();
    raw_producer(r, 1, 7, TOPIC, NULL);
    raw_expect_error(r, 7, NOT_AUTHORIZED);
    raw_subscribe(r, 1, 8, TOPIC, "s");
    raw_expect_error(r, 8, NOT_AUTHORIZED);
    list(9);
    raw_expect_error(r, 9, NOT_AUTHORIZED);
    watch(10);
    raw_expect_error(r, 10, NOT_AUTHORIZED);
    raw_expect_nothing(r);
    ck_assert_int_eq(inn_metric(inn, "pulsar_broker_topics_count") > 0, 0);
    ck_assert_uint_eq(asked & ~only(ACTION_MONITOR), only(ACTION_LOOKUP) | only(ACTION_PRODUCE) |
                                                         only(ACTION_CONSUME) | only(ACTION_LIST));
    finish();
}
END_TEST

START_TEST(what_is_not_refused_is_done)
{
    begin_refusing(only(ACTION_PRODUCE));
    raw_producer(r, 1, 7, TOPIC, NULL);
    raw_expect_error(r, 7, NOT_AUTHORIZED);
    raw_subscribed(r, 2, TOPIC, "s");
    refused = only(ACTION_CONSUME);
    raw_producer_ready(r, 1, TOPIC);
    raw_publish(r, 1, 0, "mine");
    raw_subscribe(r, 3, 8, TOPIC, "other");
    raw_expect_error(r, 8, NOT_AUTHORIZED);
    raw_flow(r, 2, 1); /* who is in stays in */
    raw_message(r, "mine");
    finish();
}
END_TEST

static const struct {
    const char *method, *path;
    enum action action;
} routes[] = {
#define X(method, path, handler, action) {method, path, action},
#include "broker/admin/jobs.def"
#include "broker/admin/routes.def"
#undef X
};

enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

/* {} becomes x, {word} that word. */
static char *path_of(const char *route)
{
    char *path = mem_string(route), *into = path;

    for (const char *at = route; *at; at++) {
        if (*at == '{' && at[1] == '}')
            *into++ = 'x';
        else if (*at != '{' && *at != '}')
            *into++ = *at;
    }
    *into = '\0';
    return path;
}

START_TEST(every_route)
{
    begin_refusing(~0u);
    for (unsigned i = 0; i < ROUTES; i++) {
        char *path = path_of(routes[i].path);
        asked = 0;
        int status = desk_ask(inn, routes[i].method, path, NULL, NULL);
        ck_assert_msg(status == 403, "%s %s: %d", routes[i].method, path, status);
        ck_assert_msg(asked != 0, "%s %s", routes[i].method, path);
        mem_free(path);
    }
    finish();
}
END_TEST

START_TEST(a_route_is_asked_for_as_what_it_is)
{
    begin_refusing(only(ACTION_ADMIN));
    ck_assert_int_eq(desk_ask(inn, "GET", "/metrics", NULL, NULL), 200);
    ck_assert_int_eq(desk_ask(inn, "GET", "/admin/v2/tenants", NULL, NULL), 403);
    ck_assert_int_eq(desk_ask(inn, "PUT", "/admin/v2/tenants/new", "{}", NULL), 403);
    refused = 0;
    ck_assert_int_eq(desk_ask(inn, "GET", "/admin/v2/tenants/new", NULL, NULL), 404);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("refused", (suite_case[]){SUITE_CASE(every_command),
                                               SUITE_CASE(what_is_not_refused_is_done),
                                               SUITE_CASE(every_route),
                                               SUITE_CASE(a_route_is_asked_for_as_what_it_is),
                                               {0}});
}
