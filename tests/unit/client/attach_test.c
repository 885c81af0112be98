/* attach_test.c - finding the broker of a topic and staying with it. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/client/stage.h"

#define SECOND ((uint64_t)1000000)

static struct stage *patient_for(uint64_t us)
{
    return stage_with(&(struct client_conf){.operation_timeout_us = us}, 0);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

START_TEST(a_lookup_follows_redirects)
{
    struct stage *s = stage_new();
    struct fake_broker *owner = fake_broker_new(s->loop, 0);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(LOOKUP),
                                                .how = TRICK_REDIRECT,
                                                .port = fake_broker_port(s->broker)});
    fake_broker_trick(
        s->broker,
        (struct trick){.on = CMD(LOOKUP), .how = TRICK_REDIRECT, .port = fake_broker_port(owner)});
    stage_producer(s);
    stage_send(s, "a");
    until_story(s, "done", 1);
    ck_assert_str_eq(fake_broker_told(s->broker), "CONNECT\nLOOKUP t\nLOOKUP t authoritative\n");
    ck_assert_str_eq(fake_broker_told(owner),
                     "CONNECT\nLOOKUP t authoritative\nPRODUCER 0\nSEND 0 #0 'a'\n");
    client_close(&s->client);
    fake_broker_drop(&owner);
    stage_drop(&s);
}
END_TEST

START_TEST(redirects_without_end_are_an_error)
{
    struct stage *s = patient_for(SECOND / 2);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(LOOKUP),
                                                .times = 1000,
                                                .how = TRICK_REDIRECT,
                                                .port = fake_broker_port(s->broker)});
    s->producer = producer_open(s->client, &s->p);
    until_story(s, "failed NOT_READY", 1);
    ck_assert_str_eq(s->why, "sent from broker to broker without end");
    stage_drop(&s);
}
END_TEST

static const struct {
    int on, code;
    bool again;
    const char *story;
} refusals[] = {
    {CMD(LOOKUP), CODE(ServiceNotReady), true, NULL},
    {CMD(LOOKUP), CODE(MetadataError), true, NULL},
    {CMD(LOOKUP), CODE(UnknownError), true, NULL},
    {CMD(LOOKUP), CODE(PersistenceError), true, NULL},
    {CMD(LOOKUP), CODE(AuthorizationError), false, "failed FORBIDDEN\n"},
    {CMD(LOOKUP), CODE(AuthenticationError), false, "failed UNAUTHORIZED\n"},
    {CMD(LOOKUP), CODE(TopicNotFound), false, "failed TOPIC_NOT_FOUND\n"},
    {CMD(LOOKUP), CODE(TooManyRequests), false, "failed BUSY\n"},
    {CMD(LOOKUP), CODE(InvalidTopicName), false, "failed INVALID_NAME\n"},
    {CMD(PRODUCER), CODE(ServiceNotReady), true, NULL},
    {CMD(PRODUCER), CODE(MetadataError), true, NULL},
    {CMD(PRODUCER), CODE(ProducerBusy), false, "failed PRODUCER_BUSY\n"},
    {CMD(PRODUCER), CODE(ProducerBlockedQuotaExceededError), false, "failed NOT_ALLOWED\n"},
    {CMD(PRODUCER), CODE(TopicTerminatedError), false, "failed TERMINATED\n"},
    {CMD(PRODUCER), CODE(IncompatibleSchema), false, "failed NOT_ALLOWED\n"},
};

START_TEST(a_first_opening_is_tried_again_or_not)
{
    struct stage *s = stage_new();
    fake_broker_trick(
        s->broker,
        (struct trick){.on = refusals[_i].on, .how = TRICK_ERROR, .code = refusals[_i].code});
    s->producer = producer_open(s->client, &s->p);
    until_story(s, refusals[_i].again ? "ready" : "failed", 1);
    if (refusals[_i].again)
        ck_assert_uint_eq(fake_broker_count(s->broker, "LOOKUP"), 2);
    else
        ck_assert_str_eq(story(s), refusals[_i].story);
    stage_close_producer(s);
    until_story(s, "closed", 1);
    stage_drop(&s);
}
END_TEST

static const struct {
    int code;
    const char *story;
} later[] = {
    {CODE(ProducerBusy), NULL},
    {CODE(TooManyRequests), NULL},
    {CODE(AuthorizationError), NULL},
    {CODE(ProducerFenced), "failed FENCED"},
    {CODE(TopicTerminatedError), "failed TERMINATED"},
    {CODE(TopicNotFound), "failed TOPIC_NOT_FOUND"},
};

START_TEST(one_that_was_ready_gives_up_less_easily)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_trick(
        s->broker, (struct trick){.on = CMD(PRODUCER), .how = TRICK_ERROR, .code = later[_i].code});
    fake_broker_cut(s->broker);
    if (later[_i].story) {
        until_story(s, later[_i].story, 1);
    } else {
        until_told(s, "PRODUCER", 3);
        stage_send(s, "a");
        until_story(s, "done 0 1:0", 1);
    }
    stage_drop(&s);
}
END_TEST

START_TEST(a_broker_that_keeps_saying_no_is_believed_in_the_end)
{
    struct stage *s = patient_for(SECOND / 2);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(LOOKUP),
                                                .times = 1000,
                                                .how = TRICK_ERROR,
                                                .code = CODE(ServiceNotReady)});
    s->producer = producer_open(s->client, &s->p);
    until_story(s, "failed NOT_READY", 1);
    ck_assert_str_eq(s->why, "lookup failed");
    stage_drop(&s);
}
END_TEST

/* ---- brokers that are not there -------------------------------------------------------------- */

START_TEST(nobody_listens)
{
    struct client_conf conf = {.url = "pulsar://127.0.0.1:1", .operation_timeout_us = SECOND / 2};
    struct stage *s = stage_with(&conf, 0);
    s->producer = producer_open(s->client, &s->p);
    until_story(s, "failed CLOSED", 1);
    ck_assert_str_eq(s->why, "127.0.0.1:1 cannot be reached");
    stage_drop(&s);
}
END_TEST

START_TEST(the_next_host_of_the_url_is_tried)
{
    struct stage *s = stage_new();
    char url[64];
    snprintf(url, sizeof url, "pulsar://127.0.0.1:1,127.0.0.1:%u", fake_broker_port(s->broker));
    const struct client_conf conf = {.url = url, .operation_timeout_us = 10 * SECOND};
    client_close(&s->client);
    ck_assert_int_eq(client_open(&s->client, s->loop, &conf), ERR_OK);
    stage_producer(s);
    stage_drop(&s);
}
END_TEST

static const struct {
    struct trick trick;
    const char *failed;
} greetings[] = {
    {{.on = CMD(CONNECT), .how = TRICK_MUTE}, "failed TIMEOUT"},
    {{.on = CMD(CONNECT), .times = 1000, .how = TRICK_CUT}, "failed CLOSED"},
    {{.on = CMD(CONNECT), .times = 1000, .how = TRICK_GARBAGE}, "failed CLOSED"},
    {{.on = CMD(CONNECT), .times = 1000, .how = TRICK_WRONG_KIND}, "failed CLOSED"},
    {{.on = CMD(CONNECT), .times = 1000, .how = TRICK_ERROR, .code = CODE(AuthenticationError)},
     "failed CLOSED"},
    {{.on = CMD(LOOKUP), .how = TRICK_MUTE}, "failed TIMEOUT"},
    {{.on = CMD(PRODUCER), .how = TRICK_MUTE}, "failed TIMEOUT"},
    {{.on = CMD(LOOKUP), .times = 1000, .how = TRICK_WRONG_KIND}, "failed CLOSED"},
    {{.on = CMD(PRODUCER), .times = 1000, .how = TRICK_WRONG_KIND}, "failed CLOSED"},
};

/* The error may be that of the operation or of the connection: both end at the same time. */
START_TEST(a_broker_that_does_not_do_its_part)
{
    struct stage *s = patient_for(SECOND / 2);
    fake_broker_trick(s->broker, greetings[_i].trick);
    s->producer = producer_open(s->client, &s->p);
    until_story(s, "failed", 1);
    ck_assert_uint_eq(strlen(s->why) > 0, 1);
    if (greetings[_i].trick.times)
        ck_assert_uint_eq(story_count(s, greetings[_i].failed), 1);
    stage_drop(&s);
}
END_TEST

static const struct trick once[] = {
    {.on = CMD(CONNECT), .how = TRICK_CUT},         {.on = CMD(CONNECT), .how = TRICK_GARBAGE},
    {.on = CMD(CONNECT), .how = TRICK_WRONG_KIND},  {.on = CMD(LOOKUP), .how = TRICK_CUT},
    {.on = CMD(LOOKUP), .how = TRICK_GARBAGE},      {.on = CMD(LOOKUP), .how = TRICK_WRONG_KIND},
    {.on = CMD(PRODUCER), .how = TRICK_CUT},        {.on = CMD(PRODUCER), .how = TRICK_GARBAGE},
    {.on = CMD(PRODUCER), .how = TRICK_WRONG_KIND}, {.on = CMD(SEND), .how = TRICK_CUT},
    {.on = CMD(SEND), .how = TRICK_GARBAGE},
};

START_TEST(what_goes_wrong_once_is_mended)
{
    struct stage *s = stage_new();
    fake_broker_trick(s->broker, once[_i]);
    stage_producer(s);
    stage_send(s, "a");
    until_story(s, "done 0 1:", 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CONNECT"), 2);
    stage_drop(&s);
}
END_TEST

/* ---- many on one link ------------------------------------------------------------------------ */

START_TEST(all_of_a_link_come_back)
{
    enum { N = 20 };
    struct stage *s = stage_new();
    struct producer *more[N];
    for (unsigned i = 0; i < N; i++)
        more[i] = producer_open(s->client, &s->p);
    until_story(s, "ready", N);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CONNECT"), 1);
    fake_broker_cut(s->broker);
    until_told(s, "PRODUCER", 2 * N);
    for (unsigned i = 0; i < N; i++)
        producer_close(&more[i], NULL, NULL);
    until_told(s, "CLOSE_PRODUCER", N);
    stage_drop(&s);
}
END_TEST

/* ---- keep-alive ------------------------------------------------------------------------------ */

START_TEST(a_ping_is_answered)
{
    struct stage *s = stage_new();
    stage_producer(s);
    fake_broker_ping(s->broker);
    until_told(s, "PONG", 1);
    stage_drop(&s);
}
END_TEST

static struct stage *attentive(void)
{
    return stage_with(
        &(struct client_conf){.operation_timeout_us = 10 * SECOND, .keep_alive_us = SECOND / 5}, 0);
}

START_TEST(a_broker_that_answers_pings_is_kept)
{
    struct stage *s = attentive();
    stage_producer(s);
    until_told(s, "PING", 5);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CONNECT"), 1);
    stage_drop(&s);
}
END_TEST

START_TEST(a_silent_broker_is_given_up)
{
    struct stage *s = attentive();
    stage_producer(s);
    fake_broker_trick(s->broker, (struct trick){.on = CMD(PING), .how = TRICK_MUTE});
    fake_broker_trick(s->broker, (struct trick){.on = CMD(SEND), .how = TRICK_MUTE});
    stage_send(s, "a");
    until_story(s, "done 0 1:0", 1);
    ck_assert_uint_eq(fake_broker_count(s->broker, "CONNECT"), 2);
    stage_drop(&s);
}
END_TEST

START_TEST(a_link_that_nobody_uses_ends)
{
    struct stage *s = attentive();
    stage_producer(s);
    stage_close_producer(s);
    until_story(s, "closed", 1);
    stage_run(s, SECOND);
    ck_assert_uint_le(fake_broker_count(s->broker, "PING"), 1);
    fake_broker_forget(s->broker);
    stage_producer(s);
    until_told(s, "CONNECT", 1);
    stage_drop(&s);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

int main(void)
{
    return suite_run(
        "attach", (suite_case[]){SUITE_CASE(a_lookup_follows_redirects),
                                 SUITE_CASE(redirects_without_end_are_an_error),
                                 SUITE_LOOP(a_first_opening_is_tried_again_or_not, COUNT(refusals)),
                                 SUITE_LOOP(one_that_was_ready_gives_up_less_easily, COUNT(later)),
                                 SUITE_CASE(a_broker_that_keeps_saying_no_is_believed_in_the_end),
                                 SUITE_CASE(nobody_listens),
                                 SUITE_CASE(the_next_host_of_the_url_is_tried),
                                 SUITE_LOOP(a_broker_that_does_not_do_its_part, COUNT(greetings)),
                                 SUITE_LOOP(what_goes_wrong_once_is_mended, COUNT(once)),
                                 SUITE_CASE(all_of_a_link_come_back),
                                 SUITE_CASE(a_ping_is_answered),
                                 SUITE_CASE(a_broker_that_answers_pings_is_kept),
                                 SUITE_CASE(a_silent_broker_is_given_up),
                                 SUITE_CASE(a_link_that_nobody_uses_ends),
                                 {0}});
}
