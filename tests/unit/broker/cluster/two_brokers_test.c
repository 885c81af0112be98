/* Two whole brokers over one store: clients are told where a topic is, and to go when it moves. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC  "persistent://public/default/t"
#define BUNDLE "public/default/0x80000000_0xc0000000" /* which it is in */

enum { CONNECT = 1, REDIRECT = 0, FAILED = 2 };

static struct broker *other;
static struct raw *n; /* a client of the other */

static void begin_two(void)
{
    begin_with("lgmClusterOwnership=true");
    ck_assert_int_eq(broker_start(&other, &inn->conf, inn->meta, &inn->loops), ERR_OK);
    n = raw_connect(broker_port(other));
}

static void finish_two(void)
{
    if (n)
        raw_drop(&n);
    broker_stop(&other);
    finish();
}

static void expect_lookup(struct raw *from, int response, const struct broker *at)
{
    char url[64];

    raw_lookup(from, 9, TOPIC);
    const raw_command *c = raw_expect(from, RAW_TYPE(LOOKUP_RESPONSE));
    snprintf(url, sizeof(url), "pulsar://127.0.0.1:%u", broker_port(at));
    ck_assert_int_eq((int)c->lookuptopicresponse->response, response);
    ck_assert_str_eq(c->lookuptopicresponse->brokerserviceurl, url);
}

/* Looked up again and again, as clients do. */
static void expect_soon(struct raw *from, int response, const struct broker *at)
{
    char url[64];

    snprintf(url, sizeof(url), "pulsar://127.0.0.1:%u", broker_port(at));
    for (;;) {
        raw_lookup(from, 9, TOPIC);
        const raw_command *c = raw_expect(from, RAW_TYPE(LOOKUP_RESPONSE));
        if ((int)c->lookuptopicresponse->response == response &&
            strcmp(c->lookuptopicresponse->brokerserviceurl, url) == 0)
            return;
    }
}

/* As clients do: again while the topic is on its way. */
static void producer_at_last(struct raw *to, uint64_t id)
{
    for (;;) {
        raw_producer(to, id, 1000 + id, TOPIC, NULL);
        const raw_command *c = raw_get(to);
        if (c->type == RAW_TYPE(PRODUCER_SUCCESS))
            return;
        if (c->type == RAW_TYPE(ERROR))
            ck_assert_int_eq((int)c->error->error, err_to_pulsar(ERR_NOT_READY));
        else
            ck_assert_int_eq(c->type, RAW_TYPE(CLOSE_PRODUCER));
    }
}

static void expect_both_closed(struct raw *of)
{
    bool producer = false, consumer = false;

    while (!producer || !consumer) {
        const raw_command *c = raw_get(of);
        ck_assert(c->type == RAW_TYPE(CLOSE_PRODUCER) || c->type == RAW_TYPE(CLOSE_CONSUMER));
        producer |= c->type == RAW_TYPE(CLOSE_PRODUCER);
        consumer |= c->type == RAW_TYPE(CLOSE_CONSUMER);
    }
}

/* Gives the answer to PUT path. */
static char *put(const struct broker *to, const char *path)
{
    char *request = mem_format(
        "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", path);
    int fd = raw_socket(broker_web_port(to));
    char *got = mem_alloc(8192);
    size_t len = 0;
    ssize_t more;

    ck_assert_int_eq(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    while ((more = read(fd, got + len, 8191 - len)) > 0)
        len += (size_t)more;
    close(fd);
    mem_free(request);
    return got;
}

static void expect_put(const struct broker *to, const char *path, int status, const char *header)
{
    char *got = put(to, path), line[32];

    snprintf(line, sizeof(line), "HTTP/1.1 %d", status);
    ck_assert_msg(strncmp(got, line, strlen(line)) == 0, "%s: %s", path, got);
    ck_assert_msg(!header || strstr(got, header), "%s: %s", path, got);
    mem_free(got);
}

static void open_here(void)
{
    raw_producer_ready(r, 1, TOPIC);
    raw_subscribed(r, 2, TOPIC, "s");
    raw_flow(r, 2, 100);
    raw_publish(r, 1, 0, "one");
    raw_message(r, "one");
}

START_TEST(only_the_owner_serves)
{
    begin_two();
    expect_lookup(r, CONNECT, inn->broker);
    expect_lookup(n, REDIRECT, inn->broker);
    raw_producer(n, 1, 7, TOPIC, NULL);
    raw_expect_error(n, 7, err_to_pulsar(ERR_NOT_READY));
    open_here();
    finish_two();
}
END_TEST

START_TEST(a_moved_bundle_takes_its_clients_along)
{
    begin_two();
    open_here();
    char *path = mem_format("/admin/v2/namespaces/" BUNDLE "/unload?destinationBroker=127.0.0.1:%u",
                            broker_web_port(other));
    expect_put(other, path, 204, NULL);
    expect_both_closed(r);
    expect_soon(r, REDIRECT, other);
    expect_lookup(n, CONNECT, other);
    raw_producer(r, 1, 7, TOPIC, NULL);
    raw_expect_error(r, 7, err_to_pulsar(ERR_NOT_READY));
    producer_at_last(n, 1);
    raw_publish(n, 1, 0, "two");
    raw_subscribed(n, 2, TOPIC, "s");
    raw_flow(n, 2, 100);
    raw_message(n, "one");
    raw_message(n, "two");
    mem_free(path);
    finish_two();
}
END_TEST

START_TEST(bundles_that_cannot_be_moved)
{
    begin_two();
    expect_put(other, "/admin/v2/namespaces/public/default/0x0_0x1/unload", 412, "no such bundle");
    expect_put(other, "/admin/v2/namespaces/" BUNDLE "/unload?destinationBroker=nobody:1", 412,
               "not alive");
    expect_put(other, "/admin/v2/namespaces/" BUNDLE "/unload", 204, NULL);
    finish_two();
}
END_TEST

START_TEST(an_unloaded_topic_is_loaded_anew)
{
    char location[128];

    begin_two();
    open_here();
    snprintf(location, sizeof(location),
             "Location: http://127.0.0.1:%u/admin/v2/persistent/public/default/t/unload",
             broker_web_port(inn->broker));
    expect_put(other, "/admin/v2/persistent/public/default/t/unload", 307, location);
    expect_put(inn->broker, "/admin/v2/persistent/public/default/t/unload", 204, NULL);
    expect_both_closed(r);
    expect_put(inn->broker, "/admin/v2/persistent/public/default/absent/unload", 404, NULL);
    expect_lookup(r, CONNECT, inn->broker);
    producer_at_last(r, 1);
    raw_publish(r, 1, 1, "two");
    finish_two();
}
END_TEST

START_TEST(who_stops_leaves_its_bundles_to_the_others)
{
    begin_two();
    open_here();
    inn_stop_broker(inn);
    expect_both_closed(r);
    raw_drop(&r);
    expect_lookup(n, CONNECT, other);
    raw_producer_ready(n, 1, TOPIC);
    raw_subscribed(n, 2, TOPIC, "s");
    raw_flow(n, 2, 100);
    raw_message(n, "one");
    finish_two();
}
END_TEST

/* The whole bundle is the only broker's own. */
START_TEST(alone_it_unloads_too)
{
    begin();
    open_here();
    expect_put(inn->broker, "/admin/v2/namespaces/" BUNDLE "/unload", 204, NULL);
    expect_both_closed(r);
    producer_at_last(r, 1);
    expect_put(inn->broker, "/admin/v2/namespaces/" BUNDLE "/unload?destinationBroker=b:1", 412,
               NULL);
    expect_put(inn->broker, "/admin/v2/persistent/public/default/t/unload", 204, NULL);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("two brokers", (suite_case[]){
                                        SUITE_CASE(only_the_owner_serves),
                                        SUITE_CASE(a_moved_bundle_takes_its_clients_along),
                                        SUITE_CASE(bundles_that_cannot_be_moved),
                                        SUITE_CASE(an_unloaded_topic_is_loaded_anew),
                                        SUITE_CASE(who_stops_leaves_its_bundles_to_the_others),
                                        SUITE_CASE(alone_it_unloads_too),
                                        {0},
                                    });
}
