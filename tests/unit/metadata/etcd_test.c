#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/etcd.h"
#include "metadata/metadata.h"
#include "metadata/wait.h"
#include "tests/lib/etcd.h"
#include "tests/lib/suite.h"
#include "tests/unit/metadata/ask.h"
#include "tests/unit/metadata/conformance.h"

static struct test_etcd etcd;

static struct metadata *open_at(const char *root)
{
    char url[256];
    struct metadata *m = NULL;

    test_etcd_url(&etcd, root, url, sizeof url);
    const struct meta_etcd_conf conf = {.url = url};
    ck_assert_int_eq(meta_etcd_open(&m, &conf), ERR_OK);
    return m;
}

/* One etcd for all: each case has a root of its own. */
START_TEST(conforms)
{
    char root[32];

    snprintf(root, sizeof root, "/case-%d", _i);
    struct metadata *m = open_at(root);
    conformance_run(_i, m);
    meta_close(&m);
    ck_assert_ptr_null(m);
}
END_TEST

/* ---- ranges that are larger than an answer of etcd ------------------------------------------ */

struct listing {
    struct meta_wait wait;
    size_t count, bytes;
    bool more;
    char last[64];
};

static void look(struct meta_wait *w, const struct meta_reply *r)
{
    struct listing *l = container_of(w, struct listing, wait);

    l->count = r->count;
    l->more = r->more;
    for (size_t i = 0; i < r->count; i++) {
        ck_assert(strcmp(r->items[i].key, l->last) > 0);
        snprintf(l->last, sizeof l->last, "%s", r->items[i].key);
        l->bytes += r->items[i].value.len;
    }
}

static void list(struct metadata *m, struct listing *l, const char *prefix, size_t limit)
{
    char after[64];

    snprintf(after, sizeof after, "%s", l->last);
    meta_wait_begin(&l->wait);
    l->wait.look = look;
    meta_range(m, prefix, *after ? after : NULL, limit, false, &l->wait.call);
    ck_assert_int_eq(meta_wait_end(&l->wait), ERR_OK);
}

START_TEST(many_keys_are_listed)
{
    enum { GROUPS = 60 };
    struct metadata *m = open_at("/many");
    char keys[META_OPS_MAX][32];
    struct meta_op ops[META_OPS_MAX];

    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < META_OPS_MAX; i++) {
            snprintf(keys[i], sizeof keys[i], "/m/%02d-%02d", g, i);
            ops[i] = (struct meta_op){META_PUT, keys[i], slice_text("v"), META_ABSENT};
        }
        ck_assert_int_eq(ask_txn(m, ops, META_OPS_MAX).err, ERR_OK);
    }
    struct listing l = {0};
    list(m, &l, "/m/", 100000);
    ck_assert_uint_eq(l.count, GROUPS * META_OPS_MAX);
    ck_assert(!l.more);
    l = (struct listing){0};
    list(m, &l, "/m/", 2500);
    ck_assert_uint_eq(l.count, 2500);
    ck_assert(l.more);
    list(m, &l, "/m/", 2500);
    ck_assert_uint_eq(l.count, GROUPS * META_OPS_MAX - 2500);
    ck_assert(!l.more);
    meta_close(&m);
}
END_TEST

START_TEST(large_values_are_listed)
{
    enum { VALUES = 40 };
    struct metadata *m = open_at("/large");
    struct listing l = {.more = true};
    size_t count = 0;
    int lists = 0;
    char key[32];

    for (int i = 0; i < VALUES; i++) {
        struct slab *s = slab_new(META_VALUE_MAX);
        memset(slab_bytes(s), i, META_VALUE_MAX);
        snprintf(key, sizeof key, "/l/%02d", i);
        ck_assert_int_eq(meta_put_wait(m, key, slice_take(&s, META_VALUE_MAX), META_ABSENT),
                         ERR_OK);
    }
    for (; l.more; lists++) {
        list(m, &l, "/l/", 1000);
        count += l.count;
    }
    ck_assert_uint_eq(count, VALUES);
    ck_assert_uint_eq(l.bytes, (size_t)VALUES * META_VALUE_MAX);
    ck_assert_int_gt(lists, 1);
    meta_close(&m);
}
END_TEST

/* What does not fit one request of etcd is refused, not tried for ever. */
START_TEST(too_large_transactions_are_refused)
{
    struct metadata *m = open_at("/too-large");
    struct meta_op ops[2] = {{META_PUT, "/a", {0}, META_ANY}, {META_PUT, "/b", {0}, META_ANY}};

    for (int i = 0; i < 2; i++) {
        struct slab *s = slab_new(META_VALUE_MAX);
        memset(slab_bytes(s), i, META_VALUE_MAX);
        ops[i].value = slice_take(&s, META_VALUE_MAX);
    }
    ck_assert_str_eq(err_name(ask_txn(m, ops, 2).err), "TOO_BIG");
    meta_close(&m);
}
END_TEST

int main(void)
{
    if (!test_etcd_start(&etcd, 1, NULL))
        return test_etcd_skip();
    int failed = suite_run("etcd", (suite_case[]){SUITE_LOOP(conforms, conformance_count()),
                                                  SUITE_CASE(many_keys_are_listed),
                                                  SUITE_CASE(large_values_are_listed),
                                                  SUITE_CASE(too_large_transactions_are_refused),
                                                  {0}});
    test_etcd_stop(&etcd);
    return failed;
}
