/* What Apache's tools ask for besides: words of a namespace and of a partitioned topic, unloads,
 * sizes, racks, brokers; in the very form that they can read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/admin/desk.h"
#include "tests/unit/broker/session/scene.h"

#define TOPIC "persistent://public/default/t"
#define PATH  "/admin/v2/persistent/public/default/t"
#define NS    "/admin/v2/namespaces/public/default"
#define RACKS "/admin/v2/bookies/racks-info"

static void done(const char *method, const char *path, const char *json)
{
    char *got;
    int status = desk_ask(inn, method, path, json, &got);

    if (status != 204)
        printf("%s %s: %s\n", method, path, got);
    ck_assert_int_eq(status, 204);
    mem_free(got);
}

static void refused(const char *method, const char *path, const char *json, int status)
{
    ck_assert_int_eq(desk_ask(inn, method, path, json, NULL), status);
}

/* 200, and exactly this. */
static void answers(const char *method, const char *path, const char *json, const char *wanted)
{
    char *got;
    int status = desk_ask(inn, method, path, json, &got);
    const char *body = strstr(got, "\r\n\r\n");

    ck_assert_int_eq(status, 200);
    ck_assert_ptr_nonnull(body);
    ck_assert_str_eq(body + 4, wanted);
    mem_free(got);
}

static bool says(const char *path, const char *part)
{
    char *got;
    int status = desk_ask(inn, "GET", path, NULL, &got);
    bool is = status == 200 && strstr(got, part);

    if (!is)
        printf("%s: %s\n", path, got);
    mem_free(got);
    return is;
}

/* Java's client reads a body where there is a content type, and waits for it. */
START_TEST(an_unload_is_answered_with_nothing)
{
    static const char *const paths[] = {NS "/unload", NS "/0x00000000_0x40000000/unload",
                                        PATH "/unload"};

    begin();
    raw_producer_ready(r, 1, TOPIC);
    for (unsigned i = 0; i < 3; i++) {
        char *got;
        ck_assert_int_eq(desk_ask(inn, "PUT", paths[i], NULL, &got), 204);
        ck_assert_ptr_null(strstr(got, "Content-Type"));
        ck_assert_ptr_null(strstr(got, "Transfer-Encoding"));
        mem_free(got);
    }
    refused("PUT", "/admin/v2/persistent/public/default/none/unload", NULL, 404);
    finish();
}
END_TEST

#define AFFINITY NS "/persistence/bookieAffinity"

START_TEST(groups_of_a_namespace)
{
    char *got;

    begin();
    ck_assert_int_eq(desk_ask(inn, "GET", AFFINITY, NULL, &got), 204);
    mem_free(got);
    done("DELETE", AFFINITY, NULL);
    refused("POST", AFFINITY, "{}", 412);
    refused("POST", AFFINITY, "[]", 412);
    refused("POST", AFFINITY, "{\"bookkeeperAffinityGroupPrimary\":\"\"}", 412);
    refused("POST", AFFINITY,
            "{\"bookkeeperAffinityGroupPrimary\":\"a\",\"bookkeeperAffinityGroupSecondary\":7}",
            412);
    refused("POST", "/admin/v2/namespaces/public/none/persistence/bookieAffinity",
            "{\"bookkeeperAffinityGroupPrimary\":\"a\"}", 404);
    done("POST", AFFINITY,
         "{\"bookkeeperAffinityGroupPrimary\":\"a,b\",\"bookkeeperAffinityGroupSecondary\":null}");
    answers(
        "GET", AFFINITY, NULL,
        "{\"bookkeeperAffinityGroupPrimary\":\"a,b\",\"bookkeeperAffinityGroupSecondary\":null}");
    done("POST", AFFINITY,
         "{\"bookkeeperAffinityGroupPrimary\":\"c\",\"bookkeeperAffinityGroupSecondary\":\"d\"}");
    ck_assert(says(AFFINITY, "\"d\""));
    ck_assert(says(NS "/bundles", "0x40000000")); /* where they are looked for now */
    done("DELETE", AFFINITY, NULL);
    ck_assert_int_eq(desk_ask(inn, "GET", AFFINITY, NULL, NULL), 204);
    finish();
}
END_TEST

START_TEST(words_of_a_namespace)
{
    begin();
    answers("GET", NS "/properties", NULL, "{}");
    done("PUT", NS "/property/team/blue", NULL);
    done("PUT", NS "/properties", "{\"room\":\"a b\"}"); /* besides the other */
    done("PUT", NS "/property/room/a+b%20c", NULL);      /* no form */
    answers("GET", NS "/properties", NULL, "{\"team\":\"blue\",\"room\":\"a+b c\"}");
    answers("GET", NS "/property/team", NULL, "blue");
    answers("DELETE", NS "/property/team", NULL, "blue");
    refused("PUT", NS "/properties", "{\"n\":1}", 412);
    answers("GET", NS "/properties", NULL, "{\"room\":\"a+b c\"}");
    done("DELETE", NS "/properties", NULL);
    answers("GET", NS "/properties", NULL, "{}");
    finish();
}
END_TEST

START_TEST(words_of_a_partitioned_topic)
{
    begin();
    done("PUT", PATH "/partitions", "{\"partitions\":2,\"properties\":{\"a\":\"b\"}}");
    answers("GET", PATH "/partitions", NULL,
            "{\"partitions\":2,\"deleted\":false,\"properties\":{\"a\":\"b\"}}");
    done("POST", PATH "/partitions", "3");
    answers("GET", PATH "/partitions", NULL,
            "{\"partitions\":3,\"deleted\":false,\"properties\":{\"a\":\"b\"}}");
    done("PUT", PATH "2/partitions", "2");
    answers("GET", PATH "2/partitions", NULL, "{\"partitions\":2,\"deleted\":false}");
    answers("GET", PATH "-partition-1/partitions", NULL, "{\"partitions\":0,\"deleted\":false}");
    finish();
}
END_TEST

static long size_behind(long ledger, long entry)
{
    char body[96], *got;

    snprintf(body, sizeof(body), "{\"ledgerId\":%ld,\"entryId\":%ld,\"partitionIndex\":-1}", ledger,
             entry);
    ck_assert_int_eq(desk_ask(inn, "PUT", PATH "/backlogSize", body, &got), 200);
    long size = strtol(strstr(got, "\r\n\r\n"), NULL, 10);
    mem_free(got);
    return size;
}

START_TEST(bytes_behind_a_message)
{
    begin();
    raw_producer_ready(r, 1, TOPIC);
    for (uint64_t i = 0; i < 10; i++)
        raw_publish(r, 1, i, "as long as all others");
    const long ledger = (long)r->got->send_receipt->message_id->ledgerid;
    ck_assert_int_eq(size_behind(ledger, 9), 0);
    ck_assert_int_gt(size_behind(ledger, 8), 21);
    ck_assert_int_eq(size_behind(ledger, 4), 5 * size_behind(ledger, 8));
    ck_assert_int_eq(size_behind(-1, -1), 10 * size_behind(ledger, 8));
    ck_assert_int_eq(size_behind(ledger + 1, 0), 0);
    refused("PUT", PATH "/backlogSize", "7", 412);
    finish();
}
END_TEST

START_TEST(where_a_bookie_stands)
{
    begin();
    answers("GET", RACKS, NULL, "{}");
    refused("GET", RACKS "/b:3181", NULL, 404);
    refused("DELETE", RACKS "/b:3181", NULL, 404);
    refused("POST", RACKS "/b:3181", "{\"rack\":\"/r1\"}", 412); /* of which group? */
    refused("POST", RACKS "/b:3181?group=g", "{\"hostname\":\"h\"}", 412);
    done("POST", RACKS "/b:3181?group=g", "{\"rack\":\"/r1\",\"hostname\":\"h\"}");
    done("POST", RACKS "/c:3181?group=g", "{\"rack\":\"/r2\"}");
    answers("GET", RACKS "/b:3181", NULL, "{\"rack\":\"/r1\",\"hostname\":\"h\"}");
    done("POST", RACKS "/b:3181?group=other", "{\"rack\":\"/r3\"}"); /* it moves */
    answers("GET", RACKS, NULL,
            "{\"g\":{\"c:3181\":{\"rack\":\"/r2\"}},\"other\":{\"b:3181\":{\"rack\":\"/r3\"}}}");
    done("DELETE", RACKS "/b:3181", NULL);
    done("DELETE", RACKS "/c:3181", NULL);
    answers("GET", RACKS, NULL, "{}");
    refused("DELETE", RACKS "/c:3181", NULL, 404);
    finish();
}
END_TEST

START_TEST(what_a_broker_is_set_to_and_serves)
{
    begin();
    ck_assert(says("/admin/v2/brokers/internal-configuration", "\"ledgersRootPath\":\"/ledgers\""));
    ck_assert(says("/admin/v2/brokers/configuration/runtime", "\"clusterName\":\"test\""));
    answers("GET", "/admin/v2/brokers/configuration/values", NULL, "{}");
    refused("POST", "/admin/v2/brokers/configuration/clusterName/x", NULL, 412);
    refused("DELETE", "/admin/v2/brokers/configuration/clusterName", NULL, 412);
    const char *owned = "/admin/v2/brokers/test/h:8080/ownedNamespaces";
    ck_assert(says(owned, "\"public/default/0x00000000_0x40000000\":"
                          "{\"broker_assignment\":\"shared\",\"is_controlled\":false,"
                          "\"is_active\":true}"));
    refused("GET", "/admin/v2/brokers/other/h:8080/ownedNamespaces", NULL, 404);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("tools", (suite_case[]){SUITE_CASE(an_unload_is_answered_with_nothing),
                                             SUITE_CASE(groups_of_a_namespace),
                                             SUITE_CASE(words_of_a_namespace),
                                             SUITE_CASE(words_of_a_partitioned_topic),
                                             SUITE_CASE(bytes_behind_a_message),
                                             SUITE_CASE(where_a_bookie_stands),
                                             SUITE_CASE(what_a_broker_is_set_to_and_serves),
                                             {0}});
}
