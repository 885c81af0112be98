#include "ledger/autorecovery.h"

#include "common/mem.h"
#include "ledger/audit.h"
#include "ledger/census.h"
#include "ledger/rereplicator.h"

struct autorecovery {
    struct autorecovery_conf conf;
    struct autorecovery_counts *counts;
    struct metadata *meta;
    struct loop *loop;
    struct ledger_client *client;
    struct census *census;
    struct audit *audit;
    struct rereplicator *rereplicator;
};

static void census_changed(void *ctx)
{
    struct autorecovery *a = ctx;

    audit_census_changed(a->audit);
    rereplicator_census_changed(a->rereplicator);
}

static void begin(void *ctx)
{
    struct autorecovery *a = ctx;

    a->client = ledger_client_new(a->loop, a->meta, &a->conf.client);
    a->census = census_new(a->loop, a->meta, census_changed, a);
    a->audit = audit_new(a->client, a->census, &a->conf, a->counts);
    a->rereplicator = rereplicator_new(a->client, a->census, &a->conf, a->counts);
}

struct autorecovery *autorecovery_start(const struct autorecovery_conf *conf, struct loop *loop,
                                        struct metadata *meta, struct autorecovery_counts *counts)
{
    struct autorecovery *a = mem_new(struct autorecovery);

    a->conf = *conf;
    a->counts = counts;
    a->meta = meta;
    a->loop = loop;
    loop_call(a->loop, begin, a);
    return a;
}

static void finish(void *ctx)
{
    struct autorecovery *a = ctx;

    rereplicator_drop(&a->rereplicator);
    audit_drop(&a->audit);
    census_drop(&a->census);
    ledger_client_drop(&a->client);
}

/* What waits for an answer of the metadata ends with it, by itself. */
void autorecovery_stop(struct autorecovery **autorecovery)
{
    struct autorecovery *a = *autorecovery;

    *autorecovery = NULL;
    if (!a)
        return;
    loop_call(a->loop, finish, a);
    mem_free(a);
}
