/* Finding a topic: lookups, partitions, and the same over HTTP.  Raw frames over a socket, in front
 * of a real bookie. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"

/* ---- discovery ---- */

static void expect_lookup_error(uint64_t request, int code)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(LOOKUP_RESPONSE));
    ck_assert_uint_eq(c->lookuptopicresponse->request_id, request);
    ck_assert_int_eq((int)c->lookuptopicresponse->response, 2);
    ck_assert_int_eq((int)c->lookuptopicresponse->error, code);
}

static void expect_partitions_error(uint64_t request, int code)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(PARTITIONED_METADATA_RESPONSE));
    ck_assert_uint_eq(c->partitionmetadataresponse->request_id, request);
    ck_assert_int_eq((int)c->partitionmetadataresponse->response, 1);
    ck_assert_int_eq((int)c->partitionmetadataresponse->error, code);
}

static void expect_partitions(uint64_t request, unsigned n)
{
    const raw_command *c = raw_expect(r, RAW_TYPE(PARTITIONED_METADATA_RESPONSE));
    ck_assert_uint_eq(c->partitionmetadataresponse->request_id, request);
    ck_assert_int_eq((int)c->partitionmetadataresponse->response, 0);
    ck_assert_uint_eq(c->partitionmetadataresponse->partitions, n);
}

START_TEST(lookup_connects_here)
{
    char url[64];

    begin();
    snprintf(url, sizeof(url), "pulsar://127.0.0.1:%u", broker_port(inn->broker));
    raw_lookup(r, 5, TOPIC);
    const raw_command *c = raw_expect(r, RAW_TYPE(LOOKUP_RESPONSE));
    ck_assert_uint_eq(c->lookuptopicresponse->request_id, 5);
    ck_assert_int_eq((int)c->lookuptopicresponse->response, 1);
    ck_assert_str_eq(c->lookuptopicresponse->brokerserviceurl, url);
    ck_assert(c->lookuptopicresponse->authoritative);
    finish();
}
END_TEST

START_TEST(lookup_fails_in_its_own_form)
{
    begin();
    raw_lookup(r, 1, "persistent://nobody/nowhere/t");
    expect_lookup_error(1, 11);
    raw_lookup(r, 2, "a/b/c/d/e/f");
    expect_lookup_error(2, 17);
    char *longer = mem_alloc(5000);
    memset(longer, 'x', 4999);
    raw_lookup(r, 4, longer);
    expect_lookup_error(4, 17);
    mem_free(longer);
    finish();
}
END_TEST

START_TEST(an_unknown_listener_is_named)
{
    begin();
    RAW(base, LOOKUP, lookuptopic, CommandLookupTopic, COMMAND_LOOKUP_TOPIC, l);
    l.topic = (char *)(uintptr_t)TOPIC;
    l.request_id = 9;
    l.advertised_listener_name = (char *)(uintptr_t) "test";
    raw_put(r, &base);
    expect_lookup_error(9, 6);
    ck_assert_ptr_nonnull(
        strstr(r->got->lookuptopicresponse->message, "the broker do not have test listener"));
    finish();
}
END_TEST

START_TEST(partitions_are_what_the_metadata_says)
{
    char key[META_KEY_MAX];
    struct topic_name name;

    begin();
    ck_assert_int_eq(topic_name_parse(TOPIC, &name), ERR_OK);
    ck_assert_int_eq(path_partitioned(&name, key), ERR_OK);
    topic_name_drop(&name);
    raw_partitions(r, 1, TOPIC, true);
    expect_partitions(1, 0);
    raw_partitions(r, 2, TOPIC, false);
    expect_partitions_error(2, 11);
    ck_assert_int_eq(meta_put_wait(inn->meta, key, partitioned_record_write(3), META_ABSENT),
                     ERR_OK);
    raw_partitions(r, 3, TOPIC, false);
    expect_partitions(3, 3);
    raw_partitions(r, 4, "persistent://nobody/nowhere/t", true);
    expect_partitions_error(4, 11);

    raw_producer_ready(r, 1, TOPIC "-partition-2");
    raw_producer(r, 2, 50, TOPIC "-partition-3", NULL);
    raw_expect_error(r, 50, 11);
    raw_producer(r, 3, 51, TOPIC, NULL);
    raw_expect_error(r, 51, 22);
    finish();
}
END_TEST

START_TEST(without_auto_creation_topics_must_exist)
{
    begin_with("allowAutoTopicCreation=false");
    raw_partitions(r, 1, TOPIC, true);
    expect_partitions_error(1, 11);
    raw_producer(r, 1, 2, TOPIC, NULL);
    raw_expect_error(r, 2, 11);
    raw_subscribe(r, 1, 3, TOPIC, "s");
    raw_expect_error(r, 3, 11);
    finish();
}
END_TEST

/* ---- HTTP ---- */

static void http_says(const char *path, const char *status, const char *text)
{
    char *got = inn_get(inn, path);

    ck_assert_msg(strstr(got, status) && strstr(got, text), "%s: %s", path, got);
    mem_free(got);
}

START_TEST(http_routes)
{
    char url[64];

    begin();
    snprintf(url, sizeof(url), "\"brokerUrl\":\"pulsar://127.0.0.1:%u\"", broker_port(inn->broker));
    http_says("/status.html", "200", "OK");
    http_says("/admin/v2/brokers/health", "200", "ok");
    http_says("/admin/v2/brokers/ready", "200", "ok");
    http_says("/admin/v2/brokers/version", "200", LGM_VERSION);
    http_says("/metrics", "200", "pulsar_active_connections{cluster=\"test\"} 1");
    http_says("/lookup/v2/topic/persistent/public/default/t", "200", url);
    http_says("/lookup/v2/topic/persistent/public/default/t", "200", "\"brokerUrlTls\":");
    http_says("/lookup/v2/topic/persistent/no/where/t", "404", "reason");
    http_says("/lookup/v2/topic/persistent/public/default/t?listenerName=x", "400", "reason");
    http_says("/admin/v2/persistent/public/default/t/partitions", "404", "reason");
    http_says("/admin/v2/persistent/public/default/t/partitions?checkAllowAutoCreation=true", "200",
              "\"partitions\":0");
    http_says("/nothing/here", "404", "{\"reason\":");
    http_says("/lookup/v2/topic/nonsense/public/default/t", "412", "reason");
    finish();
}
END_TEST

int main(void)
{
    return suite_run("discovery", (suite_case[]){
                                      SUITE_CASE(lookup_connects_here),
                                      SUITE_CASE(lookup_fails_in_its_own_form),
                                      SUITE_CASE(an_unknown_listener_is_named),
                                      SUITE_CASE(partitions_are_what_the_metadata_says),
                                      SUITE_CASE(without_auto_creation_topics_must_exist),
                                      SUITE_CASE(http_routes),
                                      {0},
                                  });
}
