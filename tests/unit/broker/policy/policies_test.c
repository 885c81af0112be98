/* What a namespace's JSON says, and that the cache of it is neither old nor endless. */
#include "broker/policy/policies.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "broker/policy/topic_facts.h"
#include "tests/lib/suite.h"

static struct ns_policies read_ns(const char *json)
{
    struct ns_policies p;

    ck_assert_int_eq(ns_policies_read(view_of(json, strlen(json)), &p), ERR_OK);
    return p;
}

START_TEST(what_json_says)
{
    struct ns_policies p = read_ns("{}");
    ck_assert(p.exists && !p.creation_set && !p.retention_set && !p.persistence_set);
    ck_assert(!read_ns("{\"deleted\":true}").exists);
    p = read_ns("{\"retention_policies\":{\"retentionTimeInMinutes\":3,\"retentionSizeInMB\":-1}}");
    ck_assert(p.retention_set && p.retention_minutes == 3 && p.retention_mb == -1);
    p = read_ns("{\"autoTopicCreationOverride\":{\"allowAutoTopicCreation\":true,"
                "\"topicType\":\"partitioned\",\"defaultNumPartitions\":7}}");
    ck_assert(p.creation_set && p.creation.allowed && p.creation.partitions == 7);
    p = read_ns("{\"autoTopicCreationOverride\":{\"allowAutoTopicCreation\":false}}");
    ck_assert(p.creation_set && !p.creation.allowed && p.creation.partitions == 0);
    p = read_ns("{\"persistence\":{\"bookkeeperEnsemble\":3,\"bookkeeperWriteQuorum\":2,"
                "\"bookkeeperAckQuorum\":1}}");
    ck_assert(p.persistence_set && p.ensemble == 3 && p.write_quorum == 2 && p.ack_quorum == 1);
    p = read_ns("{\"persistence\":{\"bookkeeperEnsemble\":1,\"bookkeeperWriteQuorum\":2,"
                "\"bookkeeperAckQuorum\":1}}");
    ck_assert(!p.persistence_set);
    p = read_ns("{\"max_producers_per_topic\":3,\"max_consumers_per_topic\":0,"
                "\"max_unacked_messages_per_consumer\":-1,"
                "\"subscription_types_enabled\":[\"Shared\",\"Key_Shared\",\"Other\"],"
                "\"autoSubscriptionCreationOverride\":{\"allowAutoSubscriptionCreation\":false}}");
    ck_assert(p.limit[NS_PRODUCERS].set && p.limit[NS_PRODUCERS].most == 3);
    ck_assert(p.limit[NS_CONSUMERS].set && p.limit[NS_CONSUMERS].most == 0);
    ck_assert(!p.limit[NS_UNACKED].set && !p.limit[NS_SUBSCRIPTIONS].set);
    ck_assert_uint_eq(p.types, ns_type_bits("Shared,Key_Shared"));
    ck_assert_uint_eq(ns_type_bits("Shared,Other"), ~0u);
    ck_assert(p.subscription_creation_set && !p.subscription_creation);
    static const char *const broken[] = {"", "[", "[]", "7", "\"x\"", "{"};
    for (unsigned i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        ck_assert_int_eq(ns_policies_read(view_of(broken[i], strlen(broken[i])), &p),
                         ERR_MALFORMED);
}
END_TEST

START_TEST(who_decides_what_is_made)
{
    const struct topic_creation yes = {.allowed = true, .partitions = 4}, no = {0};
    struct topic_facts f = {.ns_exists = true};
    struct topic_name t, part, system;

    ck_assert_int_eq(topic_facts_name("persistent://a/b/t", &t), ERR_OK);
    ck_assert_int_eq(topic_facts_name("persistent://a/b/t-partition-1", &part), ERR_OK);
    ck_assert_int_eq(topic_facts_name("persistent://pulsar/system/x", &system), ERR_OK);
    ck_assert_int_eq(topic_facts_creation(&f, &t, yes).partitions, 4);
    ck_assert_int_eq(topic_facts_creation(&f, &part, yes).partitions, 0);
    ck_assert(topic_facts_creation(&f, &part, yes).allowed);
    ck_assert(!topic_facts_creation(&f, &t, no).allowed);
    ck_assert(topic_facts_creation(&f, &system, no).allowed);
    f.ns.creation_set = true;
    f.ns.creation.allowed = true;
    ck_assert(topic_facts_creation(&f, &t, no).allowed);
    f.going = true;
    ck_assert(!topic_facts_creation(&f, &part, yes).allowed);
    topic_name_drop(&t);
    topic_name_drop(&part);
    topic_name_drop(&system);
}
END_TEST

/* ---- the cache ---- */

static struct loop *loop;
static struct metadata *inner;
static struct metadata counted; /* counts what is read */
static struct meta_ops counting_ops;
static unsigned reads, changes;
static char changed[64];
static struct meta_watch *watches[2];
static struct policies *policies;

static void count_get(struct metadata *m, const char *key, struct meta_call *c)
{
    (void)m;
    reads++;
    meta_get(inner, key, c);
}

static void note_watch(struct metadata *m, const char *prefix, struct meta_watch *w)
{
    (void)m;
    watches[strcmp(prefix, PATH_POLICIES) == 0 ? 0 : 1] = w;
    meta_watch(inner, prefix, w);
}

static void forward_unwatch(struct metadata *m, struct meta_watch *w)
{
    (void)m;
    meta_unwatch(inner, w);
}

static void on_changed(void *ctx, const char *ns)
{
    (void)ctx;
    changes++;
    snprintf(changed, sizeof(changed), "%s", ns ? ns : "any");
}

static void on_loop_open(void *ctx)
{
    (void)ctx;
    policies = policies_new(loop, &counted);
    policies_listen(policies, on_changed, NULL);
}

static void on_loop_close(void *ctx)
{
    (void)ctx;
    policies_drop(&policies);
}

static void begin(void)
{
    counting_ops =
        (struct meta_ops){.get = count_get, .watch = note_watch, .unwatch = forward_unwatch};
    counted.ops = &counting_ops;
    loop = loop_new("policies");
    ck_assert_int_eq(meta_memory_open(&inner), ERR_OK);
    loop_start(loop);
    loop_call(loop, on_loop_open, NULL);
}

static void finish(void)
{
    loop_call(loop, on_loop_close, NULL);
    loop_drop(&loop);
    meta_close(&inner);
}

struct asking {
    struct policies_ask ask;
    struct topic_name name; /* NULL full: the namespace a/b */
    sem_t done;
    enum err err;
    struct policies_fact fact;
};

static void answered(struct policies_ask *a, enum err err, const struct policies_fact *f)
{
    struct asking *one = container_of(a, struct asking, ask);

    one->err = err;
    one->fact = *f;
    sem_post(&one->done);
}

static void ask(void *ctx)
{
    struct asking *one = ctx;

    one->ask.done = answered;
    if (one->name.full)
        policies_partitioned(policies, &one->name, &one->ask);
    else
        policies_namespace(policies, "a", "b", &one->ask);
}

static struct policies_fact asked(const char *topic)
{
    struct asking one = {0};

    sem_init(&one.done, 0, 0);
    if (topic)
        ck_assert_int_eq(topic_facts_name(topic, &one.name), ERR_OK);
    loop_call(loop, ask, &one);
    while (sem_wait(&one.done))
        ;
    ck_assert_int_eq(one.err, ERR_OK);
    if (topic)
        topic_name_drop(&one.name);
    return one.fact;
}

static void put(const char *key, const char *value)
{
    ck_assert_int_eq(meta_put_wait(inner, key, slice_copy(value, strlen(value)), META_ANY), ERR_OK);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

#define NS "/admin/policies/a/b"

START_TEST(read_once_until_it_changes)
{
    begin();
    ck_assert(!asked(NULL).there);
    put(NS, "{}");
    ck_assert(asked(NULL).there);
    unsigned before = reads;
    for (unsigned i = 0; i < 10; i++)
        ck_assert(!asked(NULL).ns.retention_set);
    ck_assert_uint_eq(reads, before);
    put(NS, "{\"retention_policies\":{\"retentionTimeInMinutes\":1,\"retentionSizeInMB\":1}}");
    loop_call(loop, nothing, NULL); /* the watch was posted before this */
    ck_assert(asked(NULL).ns.retention_set);
    ck_assert_uint_eq(reads, before + 1);
    ck_assert_uint_ge(changes, 2);
    ck_assert_str_eq(changed, "a/b");
    finish();
}
END_TEST

START_TEST(what_is_absent_is_asked_for_each_time)
{
    begin();
    for (unsigned i = 0; i < 3; i++)
        ck_assert(!asked("persistent://a/b/t").there);
    ck_assert_uint_eq(reads, 3);
    put("/admin/partitioned-topics/a/b/persistent/t", "{\"partitions\":5}");
    ck_assert_int_eq(asked("persistent://a/b/t-partition-3").topic.partitions, 5);
    ck_assert_int_eq(asked("persistent://a/b/t").topic.partitions, 5);
    ck_assert_uint_eq(reads, 4);
    finish();
}
END_TEST

static void doubt(void *ctx)
{
    const struct meta_change unsure = {.kind = META_CHANGED_UNSURE, .key = PATH_POLICIES};

    (void)ctx;
    watches[0]->changed(watches[0], &unsure);
}

START_TEST(a_doubtful_watch_drops_everything)
{
    begin();
    put(NS, "{}");
    asked(NULL);
    unsigned before = reads;
    loop_call(loop, doubt, NULL);
    ck_assert_uint_eq(policies_kept(policies), 0);
    ck_assert_str_eq(changed, "any");
    asked(NULL);
    ck_assert_uint_eq(reads, before + 1);
    finish();
}
END_TEST

static struct asking racing;

static void ask_and_forget(void *ctx)
{
    (void)ctx;
    racing.ask.done = answered;
    policies_namespace(policies, "a", "b", &racing.ask);
    policies_forget(policies, NS);
}

START_TEST(what_changes_while_it_is_read_is_not_kept)
{
    begin();
    put(NS, "{}");
    loop_call(loop, nothing, NULL);
    sem_init(&racing.done, 0, 0);
    loop_call(loop, ask_and_forget, NULL);
    while (sem_wait(&racing.done))
        ;
    unsigned before = reads;
    asked(NULL);
    ck_assert_uint_eq(reads, before + 1);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("policies",
                     (suite_case[]){SUITE_CASE(what_json_says),
                                    SUITE_CASE(who_decides_what_is_made),
                                    SUITE_CASE(read_once_until_it_changes),
                                    SUITE_CASE(what_is_absent_is_asked_for_each_time),
                                    SUITE_CASE(a_doubtful_watch_drops_everything),
                                    SUITE_CASE(what_changes_while_it_is_read_is_not_kept),
                                    {0}});
}
