/* What an answer means for a write of which a try may have happened: a table. */
#include <stdio.h>
#include <string.h>

#include "metadata/etcd_guard.h"
#include "tests/lib/suite.h"

enum { FIRST = 100, NOW = 200 };

/* An answer of a failed condition, made of facts. */
struct facts {
    Etcd__TxnResponse r;
    Etcd__Header header;
    Etcd__ResponseOp op[2], *ops[2];
    Etcd__RangeResponse range[2];
    Etcd__KeyValue kv[2], *kvs[2];
};

static void set_fact(struct facts *f, size_t i, const struct etcd_fact *fact)
{
    etcd__response_op__init(&f->op[i]);
    etcd__range_response__init(&f->range[i]);
    etcd__key_value__init(&f->kv[i]);
    f->ops[i] = &f->op[i];
    f->kvs[i] = &f->kv[i];
    f->op[i].response_case = ETCD__RESPONSE_OP__RESPONSE_RANGE;
    f->op[i].range = &f->range[i];
    f->range[i].kvs = &f->kvs[i];
    f->range[i].n_kvs = fact->present;
    f->kv[i].version = fact->version + 1;
    f->kv[i].create_revision = fact->created;
    f->kv[i].mod_revision = fact->changed;
    f->kv[i].lease = fact->lease;
    f->kv[i].value = (ProtobufCBinaryData){.len = fact->value.len,
                                           .data = (uint8_t *)(uintptr_t)fact->value.base};
}

static void facts_make(struct facts *f, const struct etcd_fact *facts, size_t n)
{
    etcd__txn_response__init(&f->r);
    etcd__header__init(&f->header);
    f->header.revision = NOW;
    f->r.header = &f->header;
    f->r.responses = f->ops;
    f->r.n_responses = n;
    for (size_t i = 0; i < n; i++)
        set_fact(f, i, &facts[i]);
}

static const char *verdict_text(const struct etcd_verdict *v)
{
    static char out[64];

    if (v->kind == ETCD_AGAIN)
        return "again";
    if (v->kind == ETCD_FAILED)
        return err_name(v->err);
    snprintf(out, sizeof out, "done %lld", (long long)v->version);
    return out;
}

#define VALUE(s)                                           \
    {                                                      \
        .base = (const uint8_t *)(s), .len = sizeof(s) - 1 \
    }
#define ABSENT                 \
    {                          \
        .version = META_ABSENT \
    }
#define KEY(v, c, m, text)                                                                    \
    {                                                                                         \
        .present = true, .version = (v), .created = (c), .changed = (m), .value = VALUE(text) \
    }

static const struct {
    const char *name;
    struct meta_op op;
    bool in_doubt;
    struct etcd_fact fact;
    const char *means;
} singles[] = {
#define PUT(e)                             \
    {                                      \
        META_PUT, "/k", VALUE("mine"), (e) \
    }
#define REMOVE(e)                   \
    {                               \
        META_REMOVE, "/k", {0}, (e) \
    }
#define CHECK(e)                   \
    {                              \
        META_CHECK, "/k", {0}, (e) \
    }
    {"create: it exists", PUT(META_ABSENT), false, KEY(0, 50, 50, "x"), "BAD_VERSION"},
    {"set: another version", PUT(3), false, KEY(4, 50, 60, "x"), "BAD_VERSION"},
    {"set: gone", PUT(3), false, ABSENT, "BAD_VERSION"},
    {"set: a guard too old", PUT(3), false, KEY(3, 50, 150, "x"), "again"},
    {"put: a guard too old", PUT(META_ANY), false, KEY(9, 50, 150, "mine"), "again"},
    {"remove: gone", REMOVE(META_ANY), false, ABSENT, "NOT_FOUND"},
    {"remove: gone, a version", REMOVE(3), false, ABSENT, "NOT_FOUND"},
    {"remove: another version", REMOVE(3), false, KEY(4, 50, 60, "x"), "BAD_VERSION"},
    {"remove: a guard too old", REMOVE(META_ANY), false, KEY(4, 50, 150, "x"), "again"},
    {"check", CHECK(3), true, KEY(4, 50, 150, "x"), "BAD_VERSION"},

    {"create in doubt: ours", PUT(META_ABSENT), true, KEY(0, 150, 150, "mine"), "done 0"},
    {"create in doubt: it was there", PUT(META_ABSENT), true, KEY(0, 50, 50, "mine"),
     "BAD_VERSION"},
    {"create in doubt: theirs or after ours", PUT(META_ABSENT), true, KEY(0, 150, 150, "x"),
     "UNKNOWN_STATE"},
    {"create in doubt: changed since", PUT(META_ABSENT), true, KEY(1, 150, 160, "x"),
     "UNKNOWN_STATE"},
    {"set in doubt: ours", PUT(3), true, KEY(4, 50, 150, "mine"), "done 4"},
    {"set in doubt: theirs", PUT(3), true, KEY(4, 50, 150, "x"), "BAD_VERSION"},
    {"set in doubt: not yet", PUT(3), true, KEY(3, 50, 60, "x"), "again"},
    {"set in doubt: was another before", PUT(3), true, KEY(5, 50, 60, "x"), "BAD_VERSION"},
    {"set in doubt: changed since", PUT(3), true, KEY(5, 50, 160, "x"), "UNKNOWN_STATE"},
    {"set in doubt: gone", PUT(3), true, ABSENT, "UNKNOWN_STATE"},
    {"set in doubt: made again", PUT(3), true, KEY(0, 150, 150, "x"), "UNKNOWN_STATE"},
    {"put in doubt: ours", PUT(META_ANY), true, KEY(4, 50, 150, "mine"), "done 4"},
    {"put in doubt: the same before", PUT(META_ANY), true, KEY(4, 50, 60, "mine"), "again"},
    {"put in doubt: changed since", PUT(META_ANY), true, KEY(5, 50, 160, "x"), "again"},
    {"put in doubt: gone", PUT(META_ANY), true, ABSENT, "again"},
    {"remove in doubt: gone", REMOVE(META_ANY), true, ABSENT, "done 0"},
    {"remove in doubt: gone, a version", REMOVE(3), true, ABSENT, "done 0"},
    {"remove in doubt: not yet", REMOVE(3), true, KEY(3, 50, 60, "x"), "again"},
    {"remove in doubt: changed", REMOVE(3), true, KEY(4, 50, 150, "x"), "BAD_VERSION"},
    {"remove in doubt: changed, any", REMOVE(META_ANY), true, KEY(4, 50, 150, "x"), "again"},
    {"remove in doubt: made again", REMOVE(3), true, KEY(0, 150, 150, "x"), "UNKNOWN_STATE"},
};

START_TEST(one_key)
{
    struct etcd_guard g = {.since = FIRST, .first = FIRST, .in_doubt = singles[_i].in_doubt};
    const int64_t lease = 0;
    const struct etcd_write w = {.ops = &singles[_i].op, .n = 1, .leases = &lease};
    struct facts f;

    facts_make(&f, &singles[_i].fact, 1);
    struct etcd_verdict v = etcd_write_judge(&w, &g, &f.r);
    ck_assert_msg(strcmp(verdict_text(&v), singles[_i].means) == 0, "%s: %s, not %s",
                  singles[_i].name, verdict_text(&v), singles[_i].means);
    if (v.kind == ETCD_AGAIN) {
        ck_assert_int_eq(g.since, NOW);
        ck_assert_int_eq(g.first, singles[_i].in_doubt ? FIRST : NOW);
    }
}
END_TEST

static const struct {
    const char *name;
    struct etcd_fact put, removed;
    const char *means;
} pairs[] = {
    {"both ours", KEY(4, 50, 150, "mine"), ABSENT, "done 0"},
    {"neither yet", KEY(3, 50, 60, "x"), KEY(7, 50, 60, "x"), "again"},
    {"one not taken", KEY(4, 50, 150, "mine"), KEY(7, 50, 60, "x"), "BAD_VERSION"},
    {"another's put", KEY(4, 50, 150, "x"), ABSENT, "BAD_VERSION"},
    {"overwritten", KEY(5, 50, 160, "x"), ABSENT, "UNKNOWN_STATE"},
    {"removed, made again", KEY(4, 50, 150, "mine"), KEY(0, 160, 160, "x"), "UNKNOWN_STATE"},
};

START_TEST(several_keys)
{
    const struct meta_op ops[] = {PUT(3), REMOVE(7)};
    const int64_t leases[2] = {0};
    const struct etcd_write w = {.ops = ops, .n = 2, .leases = leases};
    struct etcd_guard g = {.since = FIRST, .first = FIRST, .in_doubt = true};
    const struct etcd_fact both[] = {pairs[_i].put, pairs[_i].removed};
    struct facts f;

    facts_make(&f, both, 2);
    struct etcd_verdict v = etcd_write_judge(&w, &g, &f.r);
    ck_assert_msg(strcmp(verdict_text(&v), pairs[_i].means) == 0, "%s: %s, not %s", pairs[_i].name,
                  verdict_text(&v), pairs[_i].means);
}
END_TEST

#define HELD(m, l, text)                                                            \
    {                                                                               \
        .present = true, .version = 0, .created = 50, .changed = (m), .lease = (l), \
        .value = VALUE(text)                                                        \
    }

static const struct {
    const char *name;
    bool in_doubt;
    struct etcd_fact fact;
    const char *hold, *release;
} held[] = {
    {"another's", false, HELD(150, 7, "mine"), "EXISTS", "NOT_FOUND"},
    {"nobody's", false, HELD(150, 0, "mine"), "EXISTS", "NOT_FOUND"},
    {"ours", false, HELD(150, 9, "mine"), "again", "again"},
    {"gone", false, ABSENT, "again", "NOT_FOUND"},
    {"in doubt, ours", true, HELD(150, 9, "mine"), "done 0", "again"},
    {"in doubt, ours before", true, HELD(60, 9, "mine"), "again", "again"},
    {"in doubt, gone", true, ABSENT, "again", "done 0"},
    {"in doubt, another's", true, HELD(150, 7, "mine"), "EXISTS", "NOT_FOUND"},
};

START_TEST(held_keys)
{
    struct etcd_guard g = {.since = FIRST, .first = FIRST, .in_doubt = held[_i].in_doubt}, h = g;
    struct etcd_hold hold = {.key = "/k", .value = VALUE("mine"), .lease = 9};
    struct facts f;

    facts_make(&f, &held[_i].fact, 1);
    struct etcd_verdict v = etcd_hold_judge(&hold, &g, &f.r);
    ck_assert_msg(strcmp(verdict_text(&v), held[_i].hold) == 0, "%s: %s", held[_i].name,
                  verdict_text(&v));
    if (v.kind == ETCD_AGAIN)
        ck_assert_int_eq(hold.refreshes, held[_i].fact.present);
    v = etcd_release_judge(9, &h, &f.r);
    ck_assert_msg(strcmp(verdict_text(&v), held[_i].release) == 0, "%s: %s", held[_i].name,
                  verdict_text(&v));
}
END_TEST

/* An answer that is not what was asked for is taken as one about absent keys. */
START_TEST(short_answers_are_safe)
{
    const struct meta_op ops[] = {PUT(3), REMOVE(7)};
    const int64_t leases[2] = {0};
    const struct etcd_write w = {.ops = ops, .n = 2, .leases = leases};
    struct etcd_guard g = {.since = FIRST, .first = FIRST};
    Etcd__TxnResponse r = ETCD__TXN_RESPONSE__INIT;

    struct etcd_verdict v = etcd_write_judge(&w, &g, &r);
    ck_assert_str_eq(verdict_text(&v), "BAD_VERSION");
    g.in_doubt = true;
    v = etcd_write_judge(&w, &g, &r);
    ck_assert_str_eq(verdict_text(&v), "UNKNOWN_STATE");
}
END_TEST

/* The largest transaction fits etcd's limits, and asks for values only when in doubt. */
START_TEST(the_largest_fits)
{
    struct meta_op ops[META_OPS_MAX];
    char keys[META_OPS_MAX][16];
    int64_t leases[META_OPS_MAX] = {0};
    const struct etcd_write w = {.ops = ops, .n = META_OPS_MAX, .leases = leases};
    struct etcd_guard g = {.since = FIRST, .first = FIRST};

    for (int i = 0; i < META_OPS_MAX; i++) {
        snprintf(keys[i], sizeof keys[i], "/%d", i);
        ops[i] = (struct meta_op){META_PUT, keys[i], VALUE("v"), i};
    }
    for (int doubt = 0; doubt < 2; doubt++) {
        g.in_doubt = doubt;
        struct slice s = etcd_write_ask(&w, &g);
        Etcd__TxnRequest *r = etcd__txn_request__unpack(NULL, s.len, s.base);
        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(r->n_compare, 2 * META_OPS_MAX);
        ck_assert_uint_eq(r->n_success, META_OPS_MAX);
        ck_assert_uint_eq(r->n_failure, META_OPS_MAX);
        ck_assert_int_eq(r->failure[0]->range->keys_only, !doubt);
        ck_assert(r->success[0]->put->ignore_lease);
        etcd__txn_request__free_unpacked(r, NULL);
        slice_drop(&s);
    }
}
END_TEST

int main(void)
{
    return suite_run("etcd_guard",
                     (suite_case[]){SUITE_LOOP(one_key, sizeof singles / sizeof *singles),
                                    SUITE_LOOP(several_keys, sizeof pairs / sizeof *pairs),
                                    SUITE_LOOP(held_keys, sizeof held / sizeof *held),
                                    SUITE_CASE(short_answers_are_safe),
                                    SUITE_CASE(the_largest_fits),
                                    {0}});
}
