/* partitions_test.c - asking how many partitions a topic has. */
#include <stdio.h>

#include "tests/unit/client/stage.h"

struct answer {
    bool came;
    enum err err;
    char text[64];
    unsigned partitions;
};

static void take(void *ctx, enum err err, const char *text, unsigned partitions)
{
    struct answer *a = ctx;

    ck_assert(!a->came);
    *a = (struct answer){.came = true, .err = err, .partitions = partitions};
    snprintf(a->text, sizeof(a->text), "%s", text ? text : "");
}

static void ask(struct stage *s, struct answer *a)
{
    *a = (struct answer){0};
    client_partitions(s->client, "t", take, a);
    while (!a->came)
        stage_run(s, 1000);
}

START_TEST(a_broker_is_asked)
{
    struct stage *s = stage_new();
    struct answer a;

    ask(s, &a);
    ck_assert_int_eq(a.err, ERR_OK);
    ck_assert_uint_eq(a.partitions, 0);
    fake_broker_partition(s->broker, 7);
    ask(s, &a);
    ck_assert_uint_eq(a.partitions, 7);
    ck_assert_str_eq(fake_broker_told(s->broker), "CONNECT\nPARTITIONS t\nPARTITIONS t\n");
    stage_drop(&s);
}
END_TEST

static const struct {
    int how, code;
    enum err err; /* of the answer: OK when it is asked again */
} refusals[] = {
    {TRICK_CUT, 0, ERR_OK},
    {TRICK_GARBAGE, 0, ERR_OK},
    {TRICK_WRONG_KIND, 0, ERR_OK},
    {TRICK_ERROR, CODE(ServiceNotReady), ERR_OK},
    {TRICK_ERROR, CODE(MetadataError), ERR_OK},
    {TRICK_ERROR, CODE(TooManyRequests), ERR_BUSY},
    {TRICK_ERROR, CODE(TopicNotFound), ERR_TOPIC_NOT_FOUND},
    {TRICK_ERROR, CODE(AuthorizationError), ERR_FORBIDDEN},
};

START_TEST(what_may_mend_is_asked_again)
{
    struct stage *s = stage_new();
    struct answer a;

    fake_broker_partition(s->broker, 3);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(PARTITIONED_METADATA),
                                                .how = refusals[_i].how,
                                                .code = refusals[_i].code});
    ask(s, &a);
    ck_assert_int_eq(a.err, refusals[_i].err);
    ck_assert_uint_eq(a.partitions, a.err ? 0 : 3);
    ck_assert_uint_eq(fake_broker_count(s->broker, "PARTITIONS t"), a.err ? 1 : 2);
    if (a.err)
        ck_assert_str_eq(a.text, "so it was asked for");
    stage_drop(&s);
}
END_TEST

START_TEST(it_is_not_asked_for_ever)
{
    struct stage *s = stage_with(&(struct client_conf){.operation_timeout_us = 300000}, 0);
    struct answer a;

    fake_broker_trick(
        s->broker,
        (struct trick){.on = CMD(PARTITIONED_METADATA), .times = 1000, .how = TRICK_MUTE});
    ask(s, &a);
    ck_assert_int_eq(a.err, ERR_TIMEOUT);
    fake_broker_untrick(s->broker);
    fake_broker_partition(s->broker, 1u << 30); /* nonsense */
    ask(s, &a);
    ck_assert_int_eq(a.err, ERR_MALFORMED);
    stage_drop(&s);
}
END_TEST

START_TEST(it_ends_with_the_client)
{
    struct stage *s = stage_new();
    struct answer a = {0};

    client_partitions(s->client, "t", take, &a);
    client_close(&s->client);
    ck_assert(a.came);
    ck_assert_int_eq(a.err, ERR_CLOSED);
    stage_drop(&s);
}
END_TEST

int main(void)
{
    return suite_run("partitions",
                     (suite_case[]){SUITE_CASE(a_broker_is_asked),
                                    SUITE_LOOP(what_may_mend_is_asked_again,
                                               sizeof(refusals) / sizeof(refusals[0])),
                                    SUITE_CASE(it_is_not_asked_for_ever),
                                    SUITE_CASE(it_ends_with_the_client),
                                    {0}});
}
