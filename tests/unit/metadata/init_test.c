#include "metadata/init.h"

#include <string.h>

#include "common/mem.h"
#include "metadata/ids.h"
#include "metadata/paths.h"
#include "tests/lib/suite.h"
#include "tests/unit/metadata/ask.h"

static const struct cluster_urls urls = {.web_service = "http://h:8080",
                                         .broker_service = "pulsar://h:6650"};

static struct metadata *open_store(void)
{
    struct metadata *m = NULL;

    ck_assert_int_eq(meta_memory_open(&m), ERR_OK);
    return m;
}

static void value_is(struct metadata *m, const char *key, const char *expected)
{
    struct slice v = {0};
    int64_t version;

    ck_assert_int_eq(meta_get_wait(m, key, &v, &version), ERR_OK);
    char *text = mem_string_n((const char *)v.base, v.len);
    ck_assert_str_eq(text, expected);
    mem_free(text);
    slice_drop(&v);
}

START_TEST(a_new_cluster_has_all_it_needs)
{
    struct metadata *m = open_store();
    char *id = NULL, *again = NULL;

    ck_assert_int_eq(cluster_check(m, "c", &id), ERR_NOT_READY);
    ck_assert_int_eq(cluster_init(m, "c", &urls), ERR_OK);
    ck_assert_int_eq(cluster_check(m, "c", &id), ERR_OK);
    ck_assert_uint_eq(strlen(id), 36);
    value_is(m, "/admin/clusters/c",
             "{\"serviceUrl\":\"http://h:8080\",\"brokerServiceUrl\":\"pulsar://h:6650\"}");
    value_is(m, "/admin/policies/public", "{\"adminRoles\":[],\"allowedClusters\":[\"c\"]}");
    value_is(m, "/admin/policies/pulsar", "{\"adminRoles\":[],\"allowedClusters\":[\"c\"]}");
    value_is(m, "/admin/policies/public/default",
             "{\"auth_policies\":{\"namespace_auth\":{},\"destination_auth\":{},"
             "\"subscription_auth_roles\":{}},\"replication_clusters\":[\"c\"],"
             "\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x40000000\",\"0x80000000\","
             "\"0xc0000000\",\"0xffffffff\"],\"numBundles\":4},\"deleted\":false}");
    value_is(m, "/admin/local-policies/pulsar/system",
             "{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x40000000\",\"0x80000000\","
             "\"0xc0000000\",\"0xffffffff\"],\"numBundles\":4}}");

    uint64_t revision = ask_get(m, PATH_INSTANCE_ID).revision;
    ck_assert_int_eq(cluster_init(m, "c", &urls), ERR_OK);
    ck_assert_uint_eq(ask_get(m, PATH_INSTANCE_ID).revision, revision);
    ck_assert_int_eq(cluster_check(m, "c", &again), ERR_OK);
    ck_assert_str_eq(id, again);
    ck_assert_int_eq(cluster_check(m, "other", &again), ERR_NOT_READY);
    mem_free(id);
    mem_free(again);
    meta_close(&m);
}
END_TEST

START_TEST(what_is_there_stays)
{
    struct metadata *m = open_store();

    ask_put(m, "/admin/policies/public/default", "mine", META_ABSENT);
    ask_put(m, PATH_INSTANCE_ID, "old", META_ABSENT);
    ck_assert_int_eq(cluster_init(m, "c", &urls), ERR_OK);
    value_is(m, "/admin/policies/public/default", "mine");
    value_is(m, PATH_INSTANCE_ID, "old");
    ck_assert_int_eq(cluster_init(m, "no good", &urls), ERR_INVALID_NAME);
    meta_close(&m);
}
END_TEST

START_TEST(ledger_ids_come_from_our_bucket)
{
    struct metadata *m = open_store();

    ck_assert_int_eq(cluster_init(m, "c", &urls), ERR_OK);
    ck_assert_int_eq(ask_counter(m, PATH_LEDGER_COUNTER, 100).first, INT64_C(1) << 32);
    ck_assert_int_eq(ledger_ids_claim(m), ERR_OK);
    ck_assert_int_eq(ask_counter(m, PATH_LEDGER_COUNTER, 1).first, (INT64_C(1) << 32) + 100);
    value_is(m, PATH_LEDGER_BUCKET, "1");
    ck_assert_str_eq(ask_range(m, PATH_IDGEN_LONG, NULL, 9, true).text,
                     "/ledgers/idgen-long/HOB-0000000001=@0 "
                     "/ledgers/idgen-long/HOB-0000000002=@0");
    meta_close(&m);
}
END_TEST

/* Ours is above all that foreign clients have used, and below the one they go on with. */
START_TEST(foreign_buckets_are_not_taken)
{
    struct metadata *m = open_store();

    ask_put(m, PATH_IDGEN_LONG "HOB-0000000006", "", META_ABSENT);
    ask_put(m, PATH_IDGEN_LONG "HOB-0000000007", "", META_ABSENT);
    ask_put(m, PATH_IDGEN_LONG "HOB-0000000007/ID-0000000003", "", META_ABSENT);
    ask_put(m, PATH_IDGEN_LONG "HOB-not-a-number", "", META_ABSENT);
    ask_put(m, PATH_IDGEN_LONG "HOB-99999999999999999999", "", META_ABSENT);
    for (int i = 0; i < 1500; i++) {
        char *key = mem_format(PATH_IDGEN_LONG "HOB-0000000005/ID-%010d", i);
        ask_put(m, key, "", META_ABSENT);
        mem_free(key);
    }
    ck_assert_int_eq(ledger_ids_claim(m), ERR_OK);
    value_is(m, PATH_LEDGER_BUCKET, "8");
    ck_assert_int_eq(ask_counter(m, PATH_LEDGER_COUNTER, 1).first, INT64_C(8) << 32);
    ck_assert_int_eq(ask_get(m, PATH_IDGEN_LONG "HOB-0000000009").err, ERR_OK);
    meta_close(&m);
}
END_TEST

START_TEST(no_bucket_is_left)
{
    struct metadata *m = open_store();

    ask_put(m, PATH_IDGEN_LONG "HOB-2147483645", "", META_ABSENT);
    ck_assert_int_eq(ledger_ids_claim(m), ERR_EXISTS);
    ck_assert_int_eq(ask_get(m, PATH_LEDGER_COUNTER).err, ERR_NOT_FOUND);
    meta_close(&m);
}
END_TEST

int main(void)
{
    return suite_run("init", (suite_case[]){SUITE_CASE(a_new_cluster_has_all_it_needs),
                                            SUITE_CASE(what_is_there_stays),
                                            SUITE_CASE(ledger_ids_come_from_our_bucket),
                                            SUITE_CASE(foreign_buckets_are_not_taken),
                                            SUITE_CASE(no_bucket_is_left),
                                            {0}});
}
