/* What clients ask about the topics of a namespace: lists, and watches that are told of changes. */
#include <stdio.h>
#include <string.h>

#include "metadata/paths.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define NS "persistent://public/default/"

enum { PERSISTENT, NON_PERSISTENT, ALL };
enum { INVALID_NAME = 17, NOT_ALLOWED = 22 };

/* ---- what is there ---- */

static void key_of(const char *full, char key[META_KEY_MAX])
{
    struct topic_name name;

    ck_assert_int_eq(topic_name_parse(full, &name), ERR_OK);
    char *stored = managed_ledger_name(&name);
    ck_assert_int_eq(path_managed_ledger(stored, key), ERR_OK);
    mem_free(stored);
    topic_name_drop(&name);
}

static void make(const char *full)
{
    char key[META_KEY_MAX];

    key_of(full, key);
    ck_assert_int_eq(meta_put_wait(inn->meta, key, (struct slice){0}, META_ANY), ERR_OK);
}

static void make_below(const char *full, const char *below)
{
    char key[META_KEY_MAX];

    key_of(full, key);
    char *path = mem_format("%s/%s", key, below);
    ck_assert_int_eq(meta_put_wait(inn->meta, path, (struct slice){0}, META_ANY), ERR_OK);
    mem_free(path);
}

struct removal {
    struct meta_call call;
    atomic_bool done;
};

static void removed(struct meta_call *c, const struct meta_reply *reply)
{
    struct removal *m = container_of(c, struct removal, call);
    ck_assert_int_eq(reply->err, ERR_OK);
    m->done = true;
}

static void remove_topic(const char *full)
{
    struct removal m = {.call = {.home = inn->loops.at[0], .done = removed}};
    char key[META_KEY_MAX];

    key_of(full, key);
    meta_remove(inn->meta, key, META_ANY, &m.call);
    while (!m.done)
        continue;
}

/* ---- asking ---- */

static void ask(uint64_t request, const char *ns, int mode, const char *pattern, const char *hash)
{
    RAW(base, GET_TOPICS_OF_NAMESPACE, gettopicsofnamespace, CommandGetTopicsOfNamespace,
        COMMAND_GET_TOPICS_OF_NAMESPACE, g);

    g.request_id = request;
    g.namespace_ = (char *)(uintptr_t)ns;
    g.has_mode = true;
    g.mode = (Pulsar__Proto__CommandGetTopicsOfNamespace__Mode)mode;
    g.topics_pattern = (char *)(uintptr_t)pattern;
    g.topics_hash = (char *)(uintptr_t)hash;
    raw_put(r, &base);
}

/* Names without what all of them begin with, one after the other. */
static void expect_names(char *const *names, size_t n, const char *wanted)
{
    char text[1024] = "";

    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(strncmp(names[i], NS, strlen(NS)), 0);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
                 names[i] + strlen(NS));
    }
    ck_assert_str_eq(text, wanted);
}

static const Pulsar__Proto__CommandGetTopicsOfNamespaceResponse *answer(uint64_t request)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(GET_TOPICS_OF_NAMESPACE_RESPONSE));

    ck_assert_uint_eq(c->gettopicsofnamespaceresponse->request_id, request);
    return c->gettopicsofnamespaceresponse;
}

static void expect_list(uint64_t request, const char *names, bool filtered)
{
    const Pulsar__Proto__CommandGetTopicsOfNamespaceResponse *a = answer(request);

    expect_names(a->topics, a->n_topics, names);
    ck_assert_int_eq(a->filtered, filtered);
    ck_assert(a->changed);
}

static void watch(uint64_t request, uint64_t id, const char *ns, const char *pattern,
                  const char *hash)
{
    RAW(base, WATCH_TOPIC_LIST, watchtopiclist, CommandWatchTopicList, COMMAND_WATCH_TOPIC_LIST, w);

    w.request_id = request;
    w.watcher_id = id;
    w.namespace_ = (char *)(uintptr_t)ns;
    w.topics_pattern = (char *)(uintptr_t)pattern;
    w.topics_hash = (char *)(uintptr_t)hash;
    raw_put(r, &base);
}

static void unwatch(uint64_t request, uint64_t id)
{
    RAW(base, WATCH_TOPIC_LIST_CLOSE, watchtopiclistclose, CommandWatchTopicListClose,
        COMMAND_WATCH_TOPIC_LIST_CLOSE, w);

    w.request_id = request;
    w.watcher_id = id;
    raw_put(r, &base);
}

static void expect_watching(uint64_t request, uint64_t id, const char *names)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(WATCH_TOPIC_LIST_SUCCESS));
    const Pulsar__Proto__CommandWatchTopicListSuccess *ok = c->watchtopiclistsuccess;

    ck_assert_uint_eq(ok->request_id, request);
    ck_assert_uint_eq(ok->watcher_id, id);
    expect_names(ok->topic, ok->n_topic, names);
}

static void expect_update(uint64_t id, const char *added, const char *gone, const char *hash)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(WATCH_TOPIC_UPDATE));
    const Pulsar__Proto__CommandWatchTopicUpdate *u = c->watchtopicupdate;

    ck_assert_uint_eq(u->watcher_id, id);
    expect_names(u->new_topics, u->n_new_topics, added);
    expect_names(u->deleted_topics, u->n_deleted_topics, gone);
    if (hash)
        ck_assert_str_eq(u->topics_hash, hash);
}

/* ---- lists ---- */

START_TEST(topics_are_listed)
{
    begin();
    ask(1, "public/default", PERSISTENT, NULL, NULL);
    expect_list(1, "", false);
    make(NS "b");
    make(NS "a");
    make(NS "t-partition-0");
    make(NS "__change_events");
    make_below(NS "a", "sub");
    make_below(NS "a", "another");
    make("persistent://public/other/x");
    ask(2, "public/default", PERSISTENT, NULL, NULL);
    expect_list(2, "a b t-partition-0", false);
    ask(3, "public/default", ALL, "persistent://public/default/(b|t)", NULL);
    expect_list(3, "b t-partition-0", true);
    ask(4, "public/default", NON_PERSISTENT, NULL, NULL);
    expect_list(4, "", false);
    ask(5, "no/where", PERSISTENT, NULL, NULL);
    expect_list(5, "", false);
    finish();
}
END_TEST

START_TEST(a_known_list_is_not_sent_again)
{
    begin();
    make(NS "b");
    make(NS "a");
    ask(1, "public/default", PERSISTENT, NULL, "00000000");
    ck_assert_str_eq(answer(1)->topics_hash, "c7559e98");
    ask(2, "public/default", PERSISTENT, NULL, "c7559e98");
    const Pulsar__Proto__CommandGetTopicsOfNamespaceResponse *a = answer(2);
    ck_assert_uint_eq(a->n_topics, 0);
    ck_assert(!a->changed);
    ck_assert_str_eq(a->topics_hash, "c7559e98");
    ask(3, "public/default", PERSISTENT, "public/default/a", "c7559e98");
    a = answer(3);
    ck_assert(a->changed && a->filtered);
    ck_assert_str_eq(a->topics_hash, "e4a876e3");
    finish();
}
END_TEST

/* What we cannot or may not evaluate, the client does. */
START_TEST(patterns_that_are_not_ours)
{
    char pattern[52];

    begin();
    make(NS "aa");
    make(NS "b");
    ask(1, "public/default", PERSISTENT, "public/default/(", NULL);
    expect_list(1, "aa b", false);
    ask(2, "public/default", PERSISTENT, "public/default/(.)\\1", NULL);
    expect_list(2, "aa b", false);
    memset(pattern, 'a', 51);
    pattern[51] = '\0';
    ask(3, "public/default", PERSISTENT, pattern, NULL);
    expect_list(3, "aa b", false);
    ask(4, "public/default", PERSISTENT, pattern + 1, NULL);
    expect_list(4, "", true);
    finish();
}
END_TEST

START_TEST(names_of_no_namespace)
{
    begin();
    ask(1, "public", PERSISTENT, NULL, NULL);
    raw_expect_error(r, 1, INVALID_NAME);
    ask(2, "a/b/c", PERSISTENT, NULL, NULL);
    raw_expect_error(r, 2, INVALID_NAME);
    ask(3, "", PERSISTENT, NULL, NULL);
    raw_expect_error(r, 3, INVALID_NAME);
    watch(4, 1, "public", ".*", NULL);
    raw_expect_error(r, 4, NOT_ALLOWED);
    finish();
}
END_TEST

START_TEST(a_list_that_fits_no_frame)
{
    char name[1000];

    begin_with("maxMessageSize=1024");
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), NS "%d-%0700d", i, i);
        make(name);
    }
    ask(1, "public/default", PERSISTENT, NULL, NULL);
    raw_expect_error(r, 1, NOT_ALLOWED);
    ask(2, "public/default", PERSISTENT, "public/default/7-.*", NULL);
    ck_assert_uint_eq(answer(2)->n_topics, 1);
    watch(3, 1, "public/default", ".*", NULL);
    raw_expect_error(r, 3, NOT_ALLOWED);
    watch(4, 1, "public/default", "public/default/7-.*", NULL);
    ck_assert_uint_eq(
        raw_expect(r, RAW_TYPE(WATCH_TOPIC_LIST_SUCCESS))->watchtopiclistsuccess->n_topic, 1);
    finish();
}
END_TEST

/* Several pages, many at a time, names in no order. */
START_TEST(many_topics_many_lists)
{
    enum { TOPICS = 1300, ASKED = 40 };
    bool answered[ASKED] = {false};
    char name[100];

    begin();
    for (unsigned i = 0; i < TOPICS; i++) {
        snprintf(name, sizeof(name), NS "%s%u", i % 3 ? "t" : "\xc3\xa9", i * 7919 % TOPICS);
        make(name);
    }
    for (uint64_t i = 0; i < ASKED; i++)
        ask(i, "public/default", PERSISTENT, NULL, NULL);
    for (uint64_t i = 0; i < ASKED; i++) { /* in any order */
        const Pulsar__Proto__CommandGetTopicsOfNamespaceResponse *a =
            raw_expect(r, RAW_TYPE(GET_TOPICS_OF_NAMESPACE_RESPONSE))->gettopicsofnamespaceresponse;
        ck_assert(a->request_id < ASKED && !answered[a->request_id]);
        answered[a->request_id] = true;
        ck_assert_uint_eq(a->n_topics, TOPICS);
        for (size_t k = 1; k < a->n_topics; k++)
            ck_assert_int_lt(strcmp(a->topics[k - 1], a->topics[k]), 0);
    }
    for (uint64_t i = 0; i < ASKED; i++)
        ask(i, "public/default", PERSISTENT, NULL, NULL);
    finish(); /* with lists under way */
}
END_TEST

/* ---- watches ---- */

START_TEST(changes_are_told)
{
    begin();
    make(NS "a1");
    make(NS "b1");
    watch(1, 7, "public/default", "persistent://public/default/a.*", NULL);
    expect_watching(1, 7, "a1");
    make(NS "a2");
    expect_update(7, "a2", "", NULL);
    make(NS "b2");
    make(NS "__transaction_buffer_snapshot");
    make(NS "a2"); /* a new value only */
    make_below(NS "a1", "sub");
    remove_topic(NS "a1");
    expect_update(7, "", "a1", NULL);
    remove_topic(NS "a2");
    expect_update(7, "", "a2", "00000000");
    raw_expect_nothing(r);
    unwatch(2, 7);
    raw_expect_success(r, 2);
    unwatch(3, 7);
    raw_expect_success(r, 3);
    finish();
}
END_TEST

START_TEST(a_known_list_is_not_told_again)
{
    begin();
    make(NS "a");
    make(NS "b");
    watch(1, 1, "public/default", "public/default/.*", "c7559e98");
    expect_watching(1, 1, "");
    ck_assert_str_eq(r->got->watchtopiclistsuccess->topics_hash, "c7559e98");
    watch(2, 2, "public/default", "public/default/.*", "e4a876e3");
    expect_watching(2, 2, "a b");
    finish();
}
END_TEST

/* Several that share a pattern, and one that does not; one of them goes with its connection. */
START_TEST(watchers_of_several_connections)
{
    begin();
    struct raw *first = r, *second = another();
    make(NS "a");
    watch(1, 1, "public/default", "public/default/.*", NULL);
    expect_watching(1, 1, "a");
    watch(2, 2, "public/default", "public/default/.*", NULL);
    expect_watching(2, 2, "a");
    watch(3, 3, "public/default", "public/default/x.*", NULL);
    expect_watching(3, 3, "");
    r = second;
    watch(1, 1, "public/default", "public/default/.*", NULL);
    expect_watching(1, 1, "a");
    make(NS "b");
    expect_update(1, "b", "", "c7559e98");
    raw_drop(&second);
    r = first;
    expect_update(1, "b", "", "c7559e98");
    expect_update(2, "b", "", "c7559e98");
    make(NS "x");
    for (int i = 0; i < 3; i++)
        raw_expect(r, RAW_TYPE(WATCH_TOPIC_UPDATE));
    unwatch(4, 1);
    raw_expect_success(r, 4);
    unwatch(5, 3);
    raw_expect_success(r, 5);
    remove_topic(NS "x");
    expect_update(2, "", "x", "c7559e98");
    watch(6, 2, "public/default", "public/default/b", NULL); /* in place of the one before */
    expect_watching(6, 2, "b");
    remove_topic(NS "a");
    remove_topic(NS "b");
    expect_update(2, "", "b", "00000000");
    finish();
}
END_TEST

/* All that is made while somebody watches is told once, in however many updates. */
START_TEST(a_burst)
{
    enum { TOPICS = 3000 };
    char name[100];
    unsigned told = 0;

    begin();
    watch(1, 1, "public/default", "public/default/.*", NULL);
    expect_watching(1, 1, "");
    for (unsigned i = 0; i < TOPICS; i++) {
        snprintf(name, sizeof(name), NS "t%u", i);
        make(name);
    }
    while (told < TOPICS) {
        const raw_command *c = raw_expect(r, RAW_TYPE(WATCH_TOPIC_UPDATE));
        ck_assert_uint_eq(c->watchtopicupdate->n_deleted_topics, 0);
        told += (unsigned)c->watchtopicupdate->n_new_topics;
    }
    ck_assert_uint_eq(told, TOPICS);
    char *hash = mem_string(r->got->watchtopicupdate->topics_hash);
    ask(2, "public/default", PERSISTENT, NULL, hash);
    ck_assert(!answer(2)->changed);
    mem_free(hash);
    finish();
}
END_TEST

START_TEST(watches_that_are_refused)
{
    begin();
    watch(1, 1, "public/default", "(", NULL);
    raw_expect_error(r, 1, NOT_ALLOWED);
    watch(2, 1, "public/default", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL);
    raw_expect_error(r, 2, NOT_ALLOWED);
    make(NS "aa");
    watch(3, 1, "public/default", "public/default/(.)\\1", NULL);
    raw_expect_error(r, 3, NOT_ALLOWED);
    for (uint64_t i = 0; i < 1000; i++) {
        watch(i, i, "public/default", "public/default/.*", NULL);
        expect_watching(i, i, "aa");
    }
    watch(4, 1000, "public/default", "public/default/.*", NULL);
    raw_expect_error(r, 4, NOT_ALLOWED);
    finish();
}
END_TEST

/* As many patterns as a loop has views. */
START_TEST(too_many_patterns)
{
    char pattern[50];

    begin();
    for (uint64_t i = 0; i <= 1000; i++) {
        struct raw *mine = r;
        if (i == 1000) {
            for (unsigned k = 0; k < inn->loops.n; k++) {
                r = another(); /* one of them is on the loop of the first */
                watch(i, i, "public/default", "public/default/more", NULL);
                const raw_command *c = raw_get(r);
                if (c->type == RAW_TYPE(ERROR))
                    break;
                raw_drop(&r);
            }
            ck_assert_int_eq((int)r->got->type, RAW_TYPE(ERROR));
            raw_drop(&r);
            r = mine;
            break;
        }
        snprintf(pattern, sizeof(pattern), "public/default/t%u", (unsigned)i);
        watch(i, i, "public/default", pattern, NULL);
        expect_watching(i, i, "");
    }
    make(NS "t500");
    expect_update(500, "t500", "", NULL);
    finish();
}
END_TEST

START_TEST(without_evaluation)
{
    begin_with("enableBrokerSideSubscriptionPatternEvaluation=false");
    make(NS "a");
    ask(1, "public/default", PERSISTENT, "public/default/b", NULL);
    expect_list(1, "a", false);
    watch(2, 1, "public/default", ".*", NULL);
    raw_expect_error(r, 2, NOT_ALLOWED);
    raw_drop(&r);
    r = raw_dial(broker_port(inn->broker));
    RAW(base, CONNECT, connect, CommandConnect, COMMAND_CONNECT, c);
    c.client_version = (char *)(uintptr_t) "raw";
    raw_put(r, &base);
    ck_assert(
        !raw_expect(r, RAW_TYPE(CONNECTED))->connected->feature_flags->supports_topic_watchers);
    finish();
}
END_TEST

START_TEST(watchers_are_advertised)
{
    begin();
    raw_drop(&r);
    r = raw_dial(broker_port(inn->broker));
    RAW(base, CONNECT, connect, CommandConnect, COMMAND_CONNECT, c);
    c.client_version = (char *)(uintptr_t) "raw";
    raw_put(r, &base);
    ck_assert(
        raw_expect(r, RAW_TYPE(CONNECTED))->connected->feature_flags->supports_topic_watchers);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("topics", (suite_case[]){
                                   SUITE_CASE(topics_are_listed),
                                   SUITE_CASE(a_known_list_is_not_sent_again),
                                   SUITE_CASE(patterns_that_are_not_ours),
                                   SUITE_CASE(names_of_no_namespace),
                                   SUITE_CASE(a_list_that_fits_no_frame),
                                   SUITE_CASE(many_topics_many_lists),
                                   SUITE_CASE(changes_are_told),
                                   SUITE_CASE(a_known_list_is_not_told_again),
                                   SUITE_CASE(watchers_of_several_connections),
                                   SUITE_CASE(a_burst),
                                   SUITE_CASE(watches_that_are_refused),
                                   SUITE_CASE(too_many_patterns),
                                   SUITE_CASE(without_evaluation),
                                   SUITE_CASE(watchers_are_advertised),
                                   {0},
                               });
}
