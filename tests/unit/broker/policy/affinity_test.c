/* Which groups of bookies a namespace's ledgers are kept in: asked of the local policies. */
#include <pthread.h>
#include <string.h>

#include "broker/policy/affinity.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/suite.h"

static struct view text(const char *s)
{
    return view_of(s, strlen(s));
}

/* "first|second", or "-" for no rule. */
static void says(struct view rule, const char *wanted)
{
    struct placement_record r;

    if (strcmp(wanted, "-") == 0) {
        ck_assert_uint_eq(rule.len, 0);
        return;
    }
    ck_assert_int_eq(placement_record_read(rule, &r), ERR_OK);
    const char *bar = strchr(wanted, '|');
    ck_assert_uint_eq(strlen(r.groups), (size_t)(bar - wanted));
    ck_assert(strncmp(r.groups, wanted, strlen(r.groups)) == 0);
    ck_assert_str_eq(r.second_groups, bar + 1);
    placement_record_drop(&r);
}

#define GROUP(first, second)                                                                    \
    "{\"bundles\":{\"numBundles\":4},\"bookieAffinityGroup\":{"                                 \
    "\"bookkeeperAffinityGroupPrimary\":" first ",\"bookkeeperAffinityGroupSecondary\":" second \
    "}}"

START_TEST(local_policies_are_read)
{
    static const struct {
        const char *json, *rule;
    } all[] = {
        {GROUP("\"a,b\"", "\"c\""), "a,b|c"},
        {GROUP("\"a\"", "null"), "a|"},
        {GROUP("null", "null"), "-"},
        {"{\"bookieAffinityGroup\":null}", "-"},
        {"{\"bundles\":{}}", "-"},
        {"{\"bookieAffinityGroup\":7}", "-"},
    };
    struct slice rule;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ck_assert_int_eq(affinity_rule(text(all[i].json), &rule), ERR_OK);
        says(slice_view(rule), all[i].rule);
        slice_drop(&rule);
    }
    ck_assert_int_eq(affinity_rule(text("[]"), &rule), ERR_MALFORMED);
    ck_assert_int_eq(affinity_rule(text("{"), &rule), ERR_MALFORMED);
}
END_TEST

/* ---- asked, as a new ledger does ---- */

struct question {
    struct ledger_place place;
    struct affinity *affinity;
    const char *name, *wanted;
    pthread_mutex_t lock;
    pthread_cond_t told;
    bool answered;
};

static void told(struct ledger_place *p, enum err err, struct view rule)
{
    struct question *q = container_of(p, struct question, place);

    ck_assert_int_eq(err, ERR_OK);
    says(rule, q->wanted);
    pthread_mutex_lock(&q->lock);
    q->answered = true;
    pthread_cond_signal(&q->told);
    pthread_mutex_unlock(&q->lock);
}

static void ask_it(void *ctx)
{
    struct question *q = ctx;
    const struct ledger_tag tags[] = {{"application", text("pulsar")},
                                      {"pulsar/managed-ledger", text(q->name)}};
    struct ledger_placer *p = affinity_placer(q->affinity);

    q->place.told = told;
    p->ask(p, tags, 2, &q->place);
}

static void answers(struct loop *l, struct affinity *a, const char *name, const char *wanted)
{
    struct question q = {.affinity = a, .name = name, .wanted = wanted};

    pthread_mutex_init(&q.lock, NULL);
    pthread_cond_init(&q.told, NULL);
    loop_call(l, ask_it, &q);
    pthread_mutex_lock(&q.lock);
    while (!q.answered)
        pthread_cond_wait(&q.told, &q.lock);
    pthread_mutex_unlock(&q.lock);
}

START_TEST(asked_for_each_new_ledger)
{
    struct metadata *m;
    struct loop *l = loop_new("test");

    loop_start(l);
    ck_assert_int_eq(meta_memory_open(&m), ERR_OK);
    const char *json = GROUP("\"gold\"", "\"silver\"");
    ck_assert_int_eq(meta_put_wait(m, PATH_LOCAL_POLICIES "public/bound",
                                   slice_copy(json, strlen(json)), META_ABSENT),
                     ERR_OK);
    struct affinity *any = affinity_new(l, m, false), *strict = affinity_new(l, m, true);
    answers(l, any, "public/bound/persistent/t", "gold|silver");
    answers(l, any, "public/free/persistent/t", "-");
    answers(l, any, "nonsense", "-");
    answers(l, strict, "public/bound/persistent/t", "gold|silver");
    answers(l, strict, "public/free/persistent/t", "|");
    answers(l, strict, "pulsar/system/persistent/t", "-");
    affinity_drop(&any);
    affinity_drop(&strict);
    loop_drop(&l);
    meta_close(&m);
}
END_TEST

int main(void)
{
    return suite_run("affinity", (suite_case[]){SUITE_CASE(local_policies_are_read),
                                                SUITE_CASE(asked_for_each_new_ledger),
                                                {0}});
}
