#include "metadata/paths.h"

#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "metadata/names.h"
#include "tests/lib/suite.h"

/* ---- topic names ---------------------------------------------------------------------------- */

static const struct {
    const char *text, *full, *tenant, *ns, *local, *base;
    int32_t partition;
    bool persistent;
} good[] = {
    {"t", "persistent://public/default/t", "public", "default", "t",
     "persistent://public/default/t", -1, true},
    {"a/b/c", "persistent://a/b/c", "a", "b", "c", "persistent://a/b/c", -1, true},
    {"non-persistent://a/b/c-partition-3", "non-persistent://a/b/c-partition-3", "a", "b",
     "c-partition-3", "non-persistent://a/b/c", 3, false},
    {"persistent://a-=:._9/b/c d%?#", "persistent://a-=:._9/b/c d%?#", "a-=:._9", "b", "c d%?#",
     "persistent://a-=:._9/b/c d%?#", -1, true},
    {"\xe4\xb8\xbb\xe9\xa2\x98", "persistent://public/default/\xe4\xb8\xbb\xe9\xa2\x98", "public",
     "default", "\xe4\xb8\xbb\xe9\xa2\x98", "persistent://public/default/\xe4\xb8\xbb\xe9\xa2\x98",
     -1, true},
};

START_TEST(good_topic_names)
{
    struct topic_name n;

    ck_assert_int_eq(topic_name_parse(good[_i].text, &n), ERR_OK);
    ck_assert_str_eq(n.full, good[_i].full);
    ck_assert_str_eq(n.tenant, good[_i].tenant);
    ck_assert_str_eq(n.ns, good[_i].ns);
    ck_assert_str_eq(n.local, good[_i].local);
    ck_assert_str_eq(n.base, good[_i].base);
    ck_assert_int_eq(n.partition, good[_i].partition);
    ck_assert_int_eq(n.persistent, good[_i].persistent);
    topic_name_drop(&n);
    topic_name_drop(&n);
}
END_TEST

static const char *bad[] = {
    "",
    "/",
    "a/b",
    "a/b/",
    "a//c",
    "/b/c",
    "a/b/c/d",
    "persistent://",
    "persistent://a",
    "persistent://a/b",
    "persistent://a/b/",
    "persistent://a/cluster/b/c",
    "persistent://a/b/c/",
    "persistent:///b/c",
    "Persistent://a/b/c",
    "topic://a/b/c",
    "://a/b/c",
    "non-persistent://a/b",
    "persistent://a b/c/d",
    "persistent://a/c\xc3\xa9/d",
    "persistent://a/b/\xff",
    "persistent://a/b/\xc0\xaf",
    "persistent://a/b/\xed\xa0\x80",
    "persistent://a/b/\xf4\x90\x80\x80",
    "persistent://a/b/\xe2\x82",
};

START_TEST(bad_topic_names)
{
    struct topic_name n;

    ck_assert_msg(topic_name_parse(bad[_i], &n) == ERR_INVALID_NAME, "%s", bad[_i]);
    ck_assert_ptr_null(n.full);
}
END_TEST

START_TEST(local_names_have_a_limit)
{
    char name[NAME_LOCAL_MAX + 2];
    struct topic_name n;

    memset(name, 'x', sizeof name);
    name[NAME_LOCAL_MAX + 1] = '\0';
    ck_assert_int_eq(topic_name_parse(name, &n), ERR_INVALID_NAME);
    name[NAME_LOCAL_MAX] = '\0';
    ck_assert_int_eq(topic_name_parse(name, &n), ERR_OK);
    topic_name_drop(&n);
}
END_TEST

static const struct {
    const char *text;
    int32_t partition;
    const char *base;
} partitions[] = {
    {"t-partition-0", 0, "t"},
    {"t-partition-10", 10, "t"},
    {"t-partition-2147483647", 2147483647, "t"},
    {"t-partition-2147483648", -1, "t-partition-2147483648"},
    {"t-partition-99999999999999999999", -1, "t-partition-99999999999999999999"},
    {"t-partition-01", -1, "t-partition-01"},
    {"t-partition-00", -1, "t-partition-00"},
    {"t-partition-", -1, "t-partition-"},
    {"t-partition--1", -1, "t-partition--1"},
    {"t-partition-+1", -1, "t-partition-+1"},
    {"t-partition-1x", -1, "t-partition-1x"},
    {"t-partition-1-partition-2", 2, "t-partition-1"},
    {"t-partition-1-partition-x", -1, "t-partition-1-partition-x"},
    {"-partition-1", -1, "-partition-1"},
    {"t-partition-partition-4", 4, "t-partition"},
};

START_TEST(partition_suffixes)
{
    struct topic_name n;
    char *base = mem_format("persistent://public/default/%s", partitions[_i].base);

    ck_assert_int_eq(topic_name_parse(partitions[_i].text, &n), ERR_OK);
    ck_assert_int_eq(n.partition, partitions[_i].partition);
    ck_assert_str_eq(n.base, base);
    topic_name_drop(&n);
    mem_free(base);
}
END_TEST

/* ---- encoding ------------------------------------------------------------------------------- */

START_TEST(encodes_as_java_does)
{
    static const char *pairs[][2] = {
        {"azAZ09.-*_", "azAZ09.-*_"}, {"a b", "a+b"},         {"a+b", "a%2Bb"}, {"a/b", "a%2Fb"},
        {"~!'()", "%7E%21%27%28%29"}, {"\xc3\xa9", "%C3%A9"}, {"%41", "%2541"}, {"", ""},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *encoded = name_encode(pairs[i][0]), *back;
        ck_assert_str_eq(encoded, pairs[i][1]);
        ck_assert_int_eq(name_decode(encoded, &back), ERR_OK);
        ck_assert_str_eq(back, pairs[i][0]);
        mem_free(encoded);
        mem_free(back);
    }
}
END_TEST

START_TEST(whatever_is_encoded_is_decoded)
{
    uint64_t seed = 42;

    for (int round = 0; round < 20000; round++) {
        char text[40] = "";
        size_t len = (size_t)rng_below(&seed, sizeof text);
        for (size_t i = 0; i < len; i++)
            text[i] = (char)(1 + rng_below(&seed, 255));
        char *encoded = name_encode(text), *back;
        ck_assert_uint_eq(strspn(encoded, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789.-*_+%"),
                          strlen(encoded));
        ck_assert_int_eq(name_decode(encoded, &back), ERR_OK);
        ck_assert_str_eq(back, text);
        mem_free(encoded);
        mem_free(back);
    }
}
END_TEST

START_TEST(bad_encodings_are_refused)
{
    static const char *texts[] = {"%", "%4", "%4g", "%g4", "a%", "%00", "%-1", "% 1"};
    char *out;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(name_decode(texts[i], &out) == ERR_INVALID_NAME, "%s", texts[i]);
    ck_assert_int_eq(name_decode("%c3%A9", &out), ERR_OK);
    ck_assert_str_eq(out, "\xc3\xa9");
    mem_free(out);
}
END_TEST

/* ---- ledgers -------------------------------------------------------------------------------- */

static const struct {
    int64_t id;
    const char *key;
} ledgers[] = {
    {0, "/ledgers/00/0000/L0000"},
    {1, "/ledgers/00/0000/L0001"},
    {1234567890, "/ledgers/12/3456/L7890"},
    {2147483646, "/ledgers/21/4748/L3646"},
    {2147483647, "/ledgers/000/0000/0021/4748/L3647"},
    {4294967296, "/ledgers/000/0000/0042/9496/L7296"},
    {INT64_MAX, "/ledgers/922/3372/0368/5477/L5807"},
};

START_TEST(ledger_keys_go_both_ways)
{
    char key[META_KEY_MAX];
    int64_t id;

    ck_assert_int_eq(path_ledger(ledgers[_i].id, key), ERR_OK);
    ck_assert_str_eq(key, ledgers[_i].key);
    ck_assert_int_eq(path_ledger_id(key, &id), ERR_OK);
    ck_assert_int_eq(id, ledgers[_i].id);
}
END_TEST

START_TEST(other_keys_are_no_ledgers)
{
    static const char *keys[] = {
        "",
        "/ledgers",
        PATH_LAYOUT,
        PATH_INSTANCE_ID,
        "/ledgers/available/h:3181",
        "/ledgers/cookies/10.0.0.1:3181",
        "/ledgers/idgen/ID-0000000001",
        "/ledgers/idgen-long/HOB-0000000001",
        "/ledgers/underreplication/ledgers/0000/0000/0000/0001/urL0000000001",
        "/ledgers/00/0000/0001",
        "/ledgers/00/0000/L001",
        "/ledgers/00/0000/L0001/x",
        "/ledgers/0/00000/L0001",
        "/ledgers/21/4748/L3647",
        "/ledgers/000/0000/0021/4748/L3646",
        "/ledgers/999/9999/9999/9999/L9999",
        "/ledgers/000/0000/0021/4748/L36470",
        "/other/00/0000/L0001",
    };
    int64_t id;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ck_assert_msg(path_ledger_id(keys[i], &id) == ERR_NOT_FOUND, "%s", keys[i]);
    char key[META_KEY_MAX];
    ck_assert_int_eq(path_ledger(-1, key), ERR_INVALID_NAME);
}
END_TEST

START_TEST(any_ledger_key_goes_both_ways)
{
    uint64_t seed = 7;

    for (int round = 0; round < 20000; round++) {
        char key[META_KEY_MAX];
        int64_t id = (int64_t)(rng_next(&seed) >> (1 + rng_below(&seed, 62))), back;
        ck_assert_int_eq(path_ledger(id, key), ERR_OK);
        ck_assert_int_eq(path_ledger_id(key, &back), ERR_OK);
        ck_assert_int_eq(back, id);
    }
}
END_TEST

/* ---- the rest ------------------------------------------------------------------------------- */

START_TEST(keys_are_pulsars)
{
    char key[META_KEY_MAX];
    struct topic_name n;

    ck_assert_int_eq(path_bookie("h:3181", false, key), ERR_OK);
    ck_assert_str_eq(key, "/ledgers/available/h:3181");
    ck_assert_int_eq(path_bookie("h:3181", true, key), ERR_OK);
    ck_assert_str_eq(key, "/ledgers/available/readonly/h:3181");
    ck_assert_int_eq(path_cookie("h:3181", key), ERR_OK);
    ck_assert_str_eq(key, "/ledgers/cookies/h:3181");
    ck_assert_int_eq(path_namespace("t", "n", key), ERR_OK);
    ck_assert_str_eq(key, "/admin/policies/t/n");
    ck_assert_int_eq(path_local_policies("t", "n", key), ERR_OK);
    ck_assert_str_eq(key, "/admin/local-policies/t/n");
    ck_assert_int_eq(path_tenant("t", key), ERR_OK);
    ck_assert_str_eq(key, "/admin/policies/t");
    ck_assert_int_eq(path_cluster("c", key), ERR_OK);
    ck_assert_str_eq(key, "/admin/clusters/c");
    ck_assert_int_eq(topic_name_parse("t/n/a b-partition-2", &n), ERR_OK);
    ck_assert_int_eq(path_partitioned(&n, key), ERR_OK);
    ck_assert_str_eq(key, "/admin/partitioned-topics/t/n/persistent/a+b");
    char *ml = managed_ledger_name(&n);
    ck_assert_str_eq(ml, "t/n/persistent/a+b-partition-2");
    ck_assert_int_eq(path_managed_ledger(ml, key), ERR_OK);
    ck_assert_str_eq(key, "/managed-ledgers/t/n/persistent/a+b-partition-2");
    ck_assert_int_eq(path_cursor(ml, "sub/1", key), ERR_OK);
    ck_assert_str_eq(key, "/managed-ledgers/t/n/persistent/a+b-partition-2/sub%2F1");
    mem_free(ml);
    topic_name_drop(&n);
}
END_TEST

START_TEST(bad_parts_are_refused)
{
    static const char *no_entity[] = {"", "a/b", "a b", "\xc3\xa9", "a?"};
    static const char *no_bookie[] = {"", "a/b", "readonly", "a b"};
    char key[META_KEY_MAX], *longest = mem_alloc(META_KEY_MAX);

    for (size_t i = 0; i < sizeof no_entity / sizeof *no_entity; i++) {
        ck_assert_int_eq(path_tenant(no_entity[i], key), ERR_INVALID_NAME);
        ck_assert_int_eq(path_cluster(no_entity[i], key), ERR_INVALID_NAME);
        ck_assert_int_eq(path_namespace("t", no_entity[i], key), ERR_INVALID_NAME);
        ck_assert_int_eq(path_namespace(no_entity[i], "n", key), ERR_INVALID_NAME);
        ck_assert_int_eq(path_local_policies("t", no_entity[i], key), ERR_INVALID_NAME);
    }
    for (size_t i = 0; i < sizeof no_bookie / sizeof *no_bookie; i++) {
        ck_assert_int_eq(path_bookie(no_bookie[i], false, key), ERR_INVALID_NAME);
        ck_assert_int_eq(path_cookie(no_bookie[i], key), ERR_INVALID_NAME);
    }
    ck_assert_int_eq(path_cursor("t/n/persistent/a", "", key), ERR_INVALID_NAME);
    memset(longest, '/', META_KEY_MAX - 1);
    ck_assert_int_eq(path_cursor("t/n/persistent/a", longest, key), ERR_TOO_BIG);
    ck_assert_int_eq(path_managed_ledger(longest, key), ERR_TOO_BIG);
    mem_free(longest);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

int main(void)
{
    return suite_run("paths", (suite_case[]){SUITE_LOOP(good_topic_names, COUNT(good)),
                                             SUITE_LOOP(bad_topic_names, COUNT(bad)),
                                             SUITE_CASE(local_names_have_a_limit),
                                             SUITE_LOOP(partition_suffixes, COUNT(partitions)),
                                             SUITE_CASE(encodes_as_java_does),
                                             SUITE_CASE(whatever_is_encoded_is_decoded),
                                             SUITE_CASE(bad_encodings_are_refused),
                                             SUITE_LOOP(ledger_keys_go_both_ways, COUNT(ledgers)),
                                             SUITE_CASE(other_keys_are_no_ledgers),
                                             SUITE_CASE(any_ledger_key_goes_both_ways),
                                             SUITE_CASE(keys_are_pulsars),
                                             SUITE_CASE(bad_parts_are_refused),
                                             {0}});
}
