#include "bookie/repair.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "ledger/autorecovery.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"

struct repair_daemon {
    struct metadata *meta;
    struct loop *home;
    struct autorecovery *autorecovery; /* NULL: not enabled */
    struct autorecovery_counts counts;
    struct meta_watch watch;
    struct meta_call call;
    bool asking, gone;
    char key[META_KEY_MAX];
    void (*leave)(void *ctx);
    void *ctx;
};

static const struct metric_def defs[] = {
    {"auditor_elected", METRIC_GAUGE, "1: this process looks for ledgers that lack copies",
     offsetof(struct autorecovery_counts, auditor)},
    {"auditor_lost_bookies", METRIC_GAUGE, "bookies with a cookie that are not registered",
     offsetof(struct autorecovery_counts, lost)},
    {"auditor_marked_ledgers", METRIC_COUNTER, "ledgers marked as lacking copies",
     offsetof(struct autorecovery_counts, marked)},
    {"auditor_lost_entries", METRIC_GAUGE, "entries without any replica, of the last comparison",
     offsetof(struct autorecovery_counts, entries_lost)},
    {"auditor_differing_entries", METRIC_GAUGE,
     "entries whose replicas contradict each other, of the last comparison",
     offsetof(struct autorecovery_counts, differ)},
    {"replication_worker_ledgers", METRIC_COUNTER, "ledgers brought back to full replication",
     offsetof(struct autorecovery_counts, repaired)},
    {"replication_worker_failures", METRIC_COUNTER, "repairs that failed and are tried again",
     offsetof(struct autorecovery_counts, failed)},
    {"replication_worker_entries", METRIC_COUNTER, "entries written to other bookies",
     offsetof(struct autorecovery_counts, entries)},
    {"replication_worker_bytes", METRIC_COUNTER, "their bytes",
     offsetof(struct autorecovery_counts, bytes)},
};

static void changed(struct meta_watch *w, const struct meta_change *c)
{
    struct repair_daemon *r = container_of(w, struct repair_daemon, watch);

    if (c->kind == META_CHANGED_PUT && strcmp(c->key, r->key) == 0)
        r->leave(r->ctx);
}

static void asked(struct meta_call *c, const struct meta_reply *reply)
{
    struct repair_daemon *r = container_of(c, struct repair_daemon, call);

    r->asking = false;
    if (r->gone)
        mem_free(r);
    else if (!reply->err)
        r->leave(r->ctx);
    else if (reply->err != ERR_NOT_FOUND)
        log_event(LOG_WARN, "bookie.leaving_unknown", F_ERR(reply->err));
}

static void ask(void *ctx)
{
    struct repair_daemon *r = ctx;

    r->asking = true;
    r->watch = (struct meta_watch){.home = r->home, .changed = changed};
    r->call = (struct meta_call){.home = r->home, .done = asked};
    meta_watch(r->meta, r->key, &r->watch);
    meta_get(r->meta, r->key, &r->call);
}

static uint64_t seconds(int64_t s)
{
    return (uint64_t)s * 1000 * 1000;
}

static uint64_t rate(int64_t bytes)
{
    return bytes < 1 ? 0 : (uint64_t)bytes;
}

static struct autorecovery *start(struct repair_daemon *r, const struct bookie_conf *c,
                                  const char *bookie_id, struct loop *loop)
{
    const struct autorecovery_conf conf = {
        .name = bookie_id,
        .lost_delay_us = seconds(c->lost_delay_s),
        .audit_us = seconds(c->audit_s),
        .scrub_us = seconds(c->scrub_s),
        .scrub_rate = rate(c->scrub_rate),
        .repair_rate = rate(c->repair_rate),
        .open_grace_us = (uint64_t)c->open_grace_ms * 1000,
        .retry_us = (uint64_t)c->repair_retry_ms * 1000,
        .entries = (unsigned)c->repair_entries,
        .client = {.place = {.distinct_hosts = c->different_hosts, .racks = true, .racks_min = 2}},
    };

    return autorecovery_start(&conf, loop, r->meta, &r->counts);
}

struct repair_daemon *repair_daemon_open(const struct bookie_conf *conf, const char *bookie_id,
                                         struct metadata *meta, struct loops *loops,
                                         void (*leave)(void *ctx), void *ctx)
{
    struct repair_daemon *r = mem_new(struct repair_daemon);

    r->meta = meta;
    r->home = loops->at[0];
    r->leave = leave;
    r->ctx = ctx;
    if (path_leaving(bookie_id, r->key))
        log_event(LOG_WARN, "bookie.leaving_unknown", F_ERR(ERR_INVALID_NAME));
    else
        loop_call(r->home, ask, r);
    if (conf->repair)
        r->autorecovery = start(r, conf, bookie_id, loops->at[loops->n - 1]);
    return r;
}

static void forget(void *ctx)
{
    struct repair_daemon *r = ctx;

    if (r->watch.home)
        meta_unwatch(r->meta, &r->watch);
    r->gone = true;
    if (!r->asking)
        mem_free(r);
}

void repair_daemon_close(struct repair_daemon **daemon)
{
    struct repair_daemon *r = *daemon;

    *daemon = NULL;
    if (!r)
        return;
    autorecovery_stop(&r->autorecovery);
    loop_call(r->home, forget, r);
}

void repair_daemon_render(const struct repair_daemon *r, struct text *t)
{
    metric_render(t, defs, sizeof defs / sizeof *defs, &r->counts, NULL);
}
