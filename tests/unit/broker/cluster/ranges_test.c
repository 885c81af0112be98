/* Which bundle a topic is in. */
#include "broker/cluster/ranges.h"

#include <string.h>

#include "tests/lib/suite.h"

START_TEST(hash_is_zlibs)
{
    ck_assert_uint_eq(topic_hash("persistent://public/default/t"), 0x823cd929);
    ck_assert_uint_eq(topic_hash("persistent://a/b/c-partition-3"), 0x0b10e234);
    ck_assert_uint_eq(topic_hash(""), 0);
}
END_TEST

START_TEST(equal_ranges_cover_all)
{
    struct ranges r;
    char text[RANGE_TEXT];

    ranges_equal(&r, RANGES_DEFAULT);
    ck_assert_uint_eq(ranges_find(&r, 0), 0);
    ck_assert_uint_eq(ranges_find(&r, 0x3fffffff), 0);
    ck_assert_uint_eq(ranges_find(&r, 0x40000000), 1);
    ck_assert_uint_eq(ranges_find(&r, 0xbfffffff), 2);
    ck_assert_uint_eq(ranges_find(&r, 0xc0000000), 3);
    ck_assert_uint_eq(ranges_find(&r, 0xffffffff), 3);
    ranges_text(&r, 3, text);
    ck_assert_str_eq(text, "0xc0000000_0xffffffff");
    ck_assert(ranges_have(&r, "0x40000000_0x80000000"));
    ck_assert(!ranges_have(&r, "0x40000000_0x80000001"));
    ck_assert(!ranges_have(&r, "0x40000001_0x80000000"));
    ck_assert(!ranges_have(&r, "0x40000000"));
    ck_assert(!ranges_have(&r, ""));
    ranges_drop(&r);
    ranges_equal(&r, 1);
    ck_assert_uint_eq(ranges_find(&r, 0xffffffff), 0);
    ck_assert(ranges_have(&r, "0x00000000_0xffffffff"));
    ranges_drop(&r);
}
END_TEST

static const struct {
    const char *json;
    enum err err;
    unsigned n;
} policies[] = {
    {"{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x80000000\",\"0xffffffff\"]}}", ERR_OK, 2},
    {"{\"bundles\":{\"boundaries\":[\"0x0\",\"0xFFFFFFFF\"],\"numBundles\":7}}", ERR_OK, 1},
    {"{\"bundles\":{\"numBundles\":7}}", ERR_OK, 7},
    {"{\"bundles\":{\"boundaries\":null,\"numBundles\":3}}", ERR_OK, 3},
    {"{\"bundles\":{\"numBundles\":0}}", ERR_NOT_FOUND, 0},
    {"{\"bundles\":{}}", ERR_NOT_FOUND, 0},
    {"{\"bundles\":null}", ERR_NOT_FOUND, 0},
    {"{}", ERR_NOT_FOUND, 0},
    {"{\"bundles\":[]}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"numBundles\":-1}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"numBundles\":65537}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":{}}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":[]}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":[\"0x00000000\"]}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":[0,1]}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":[null,\"0xffffffff\"]}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":[\"0x00000001\",\"0xffffffff\"]}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0xfffffffe\"]}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":[\"0x00000000\",\"0x1ffffffff\"]}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":[\"0x0\",\"0x9\",\"0x9\",\"0xffffffff\"]}}", ERR_MALFORMED, 0},
    {"{\"bundles\":{\"boundaries\":[\"0x0\",\"0xg\",\"0xffffffff\"]}}", ERR_MALFORMED, 0},
    {"[]", ERR_MALFORMED, 0},
    {"", ERR_MALFORMED, 0},
    {"{\"bundles\":", ERR_MALFORMED, 0},
};

START_TEST(policies_are_read)
{
    struct ranges r;
    const char *json = policies[_i].json;

    ck_assert_int_eq(ranges_read(view_of(json, strlen(json)), &r), policies[_i].err);
    ck_assert_uint_eq(r.n, policies[_i].n);
    ck_assert((r.bounds != NULL) == (r.n > 0));
    ranges_drop(&r);
}
END_TEST

static const struct {
    const char *bundle, *topic;
    bool has;
} memberships[] = {
    {"public/default/0x80000000_0xc0000000", "persistent://public/default/t", true},
    {"public/default/0x823cd929_0x823cd92a", "persistent://public/default/t", true},
    {"public/default/0x80000000_0x823cd929", "persistent://public/default/t", false},
    {"public/default/0xc0000000_0xffffffff", "persistent://public/default/t", false},
    {"public/defaul/0x00000000_0xffffffff", "persistent://public/default/t", false},
    {"public/default/0x00000000_0xffffffff", "persistent://public/defaul/t", false},
    {"public/default/0x00000000_0xffffffff", "persistent://public/default/t", true},
    {"public/default/0x00000000", "persistent://public/default/t", false},
    {"public/default/x_y", "persistent://public/default/t", false},
    {"public", "persistent://public/default/t", false},
    {"public/default/0x00000000_0xffffffff", "t", false},
};

START_TEST(bundle_knows_its_topics)
{
    ck_assert_int_eq(bundle_has_topic(memberships[_i].bundle, memberships[_i].topic),
                     memberships[_i].has);
}
END_TEST

int main(void)
{
    return suite_run(
        "ranges",
        (suite_case[]){
            SUITE_CASE(hash_is_zlibs),
            SUITE_CASE(equal_ranges_cover_all),
            SUITE_LOOP(policies_are_read, sizeof(policies) / sizeof(policies[0])),
            SUITE_LOOP(bundle_knows_its_topics, sizeof(memberships) / sizeof(memberships[0])),
            {0},
        });
}
