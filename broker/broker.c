#include "broker/broker.h"

#include <semaphore.h>
#include <string.h>

#include "broker/admin/admin.h"
#include "broker/cluster/ownership.h"
#include "broker/doors.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "broker/metrics.h"
#include "broker/policy/affinity.h"
#include "broker/policy/ns_policies.h"
#include "broker/policy/policies.h"
#include "broker/session/sessions.h"
#include "broker/topic/topics.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/memory_guard.h"
#include "ledger/client.h"
#include "metadata/init.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "proto/frame.h"

/* What the broker has on one loop. */
struct seat {
    struct broker *broker;
    struct loop *loop;
    unsigned index;
    struct affinity *affinity;
    struct ledger_client *ledgers;
    struct ml_env *managed_ledgers;
    struct policies *policies;
    struct topics *topics;
    struct sessions *sessions;
    struct ownership_watch watch;
    struct memory_ear ear;
};

struct broker {
    const struct broker_conf *conf;
    struct metadata *meta;
    struct loops *loops;
    struct broker_metrics metrics;
    struct memory_guard memory;
    const struct authorizer *authorizer;
    struct ownership *ownership;
    struct topics_map topics;
    struct seat seats[64];
    unsigned next_seat; /* for connections; the first loop's */
    struct doors doors;
    struct admin *admin;
    struct broker_ports ports;
    int64_t instance; /* of the first loop; the others follow */
    sem_t done;       /* starting and stopping wait here */
    enum err err;
};

static void wait_for(struct broker *b, unsigned n)
{
    while (n > 0)
        if (sem_wait(&b->done) == 0)
            n--;
}

static void one_is_done(void *ctx)
{
    struct broker *b = ctx;
    sem_post(&b->done);
}

/* ---- settings ---- */

static size_t mb(int64_t n)
{
    return (size_t)n * 1024 * 1024;
}

static size_t a_share(const struct broker *b, int64_t all_mb)
{
    return memory_guard_quarter(&b->memory, mb(all_mb)) / b->loops->n;
}

/* For entries that a loop's topics read and send, and as much again for those that its connections
 * have not sent. */
static size_t delivery_budget(const struct broker *b)
{
    return a_share(b, 2 * b->conf->reads_mb * b->loops->n) / 2;
}

/* Of all that publishes may take, a loop's topics have a quarter with the bookies at a time. */
static size_t publish_budget(const struct broker_conf *conf)
{
    return mb(conf->publish_buffer_mb) / 4;
}

/* One managed ledger may take half of what its loop may, and never less than two messages. */
static size_t pending_bytes(const struct broker_conf *conf)
{
    size_t half = publish_budget(conf) / 2;
    size_t least = 2 * ((size_t)conf->max_message_size + FRAME_PADDING);

    return half > least ? half : least;
}

static struct ml_conf ml_conf_of(const struct broker *b)
{
    const struct broker_conf *c = b->conf;

    return (struct ml_conf){
        .quorum = {.ensemble = (unsigned)c->ensemble,
                   .write = (unsigned)c->write_quorum,
                   .ack = (unsigned)c->ack_quorum},
        .max_entries_per_ledger = c->max_entries_per_ledger,
        .max_bytes_per_ledger = c->max_mb_per_ledger * 1024 * 1024,
        .min_rollover_ms = c->min_rollover_minutes * 60000,
        .max_rollover_ms = c->max_rollover_minutes * 60000,
        .retention_ms = c->retention_minutes < 0 ? -1 : c->retention_minutes * 60000,
        .retention_bytes = c->retention_mb < 0 ? -1 : c->retention_mb * 1024 * 1024,
        .pending_bytes = pending_bytes(c),
        .cache_bytes = a_share(b, c->cache_mb),
        .cursor_max_entries = c->cursor_max_entries,
        .cursor_delta_delay_us = c->cursor_delay_ms * 1000,
    };
}

static enum err refuse_word(const char *key, const char *value, const char *reason)
{
    log_event(LOG_ERROR, "broker.config_refused", F_STR("key", key), F_STR("value", value),
              F_STR("reason", reason));
    return ERR_BAD_CONFIG;
}

static enum err check_conf(const struct broker_conf *c)
{
    const unsigned types = ns_type_bits(c->subscription_types);
    bool known = strcmp(c->auto_topic_type, "partitioned") == 0 ||
                 strcmp(c->auto_topic_type, "non-partitioned") == 0;

    if (!known)
        return refuse_word("allowAutoTopicCreationType", c->auto_topic_type,
                           "it is partitioned or non-partitioned");
    if (types == 0 || types == ~0u)
        return refuse_word("subscriptionTypesEnabled", c->subscription_types,
                           "some of Exclusive,Shared,Failover,Key_Shared");
    if (c->ack_quorum <= c->write_quorum && c->write_quorum <= c->ensemble)
        return ERR_OK;
    log_event(LOG_ERROR, "broker.config_refused", F_I64("ensemble", c->ensemble),
              F_I64("writeQuorum", c->write_quorum), F_I64("ackQuorum", c->ack_quorum),
              F_STR("reason", "ack quorum <= write quorum <= ensemble size must hold"));
    return ERR_BAD_CONFIG;
}

static struct ledger_client_conf bookies_conf(const struct broker_conf *c)
{
    return (struct ledger_client_conf){
        .add_timeout_us = (uint64_t)c->bookie_timeout_seconds * 1000000,
        .read_timeout_us = (uint64_t)c->bookie_timeout_seconds * 1000000,
        .second_read_us = (uint64_t)c->second_read_ms * 1000,
        .one_read_each = !c->batch_reads,
        .slow_us = (uint64_t)c->slow_publish_ms * 1000,
        .delay_changes = c->delay_changes,
        .place = {.distinct_hosts = c->different_hosts,
                  .racks = c->rack_aware,
                  .regions = c->region_aware,
                  .racks_min = (unsigned)c->racks_min,
                  .enforce_racks = c->enforce_racks,
                  .groups = c->isolation_groups,
                  .second_groups = c->second_groups,
                  .by_free_space = c->by_free_space,
                  .free_multiple = (unsigned)c->space_multiple,
                  .space_look_us = (uint64_t)c->space_look_s * 1000000,
                  .space_retry_us = (uint64_t)c->space_retry_s * 1000000,
                  .suspect_max_us = (uint64_t)c->quarantine_seconds * 1000000},
    };
}

/* ---- a loop's seat ---- */

static void seat_open(void *ctx)
{
    struct seat *s = ctx;
    struct broker *b = s->broker;
    const struct ml_conf ml = ml_conf_of(b);
    struct ledger_client_conf client = bookies_conf(b->conf);

    client.counts = &b->metrics.ledgers;
    s->affinity = affinity_new(s->loop, b->meta, b->conf->strict_affinity);
    client.placer = affinity_placer(s->affinity);
    s->ledgers = ledger_client_new(s->loop, b->meta, &client);
    s->managed_ledgers = ml_env_new(s->loop, s->ledgers, b->meta, &ml);
    s->policies = policies_new(s->loop, b->meta);
    s->topics = topics_new(&(struct topics_env){
        .home = s->loop,
        .meta = b->meta,
        .ledgers = s->managed_ledgers,
        .policies = s->policies,
        .ownership = b->ownership,
        .metrics = &b->metrics,
        .memory = &b->memory,
        .conf = b->conf,
        .instance = b->instance + s->index,
        .publish_budget = publish_budget(b->conf),
        .delivery_budget = delivery_budget(b),
    });
    s->sessions = sessions_new(&(struct sessions_env){
        .home = s->loop,
        .conf = b->conf,
        .meta = b->meta,
        .policies = s->policies,
        .ownership = b->ownership,
        .authorizer = b->authorizer,
        .topics = &b->topics,
        .metrics = &b->metrics,
        .memory = &b->memory,
        .unsent_budget = delivery_budget(b),
    });
}

static void memory_changed(struct memory_ear *e, enum memory_level level)
{
    struct seat *s = container_of(e, struct seat, ear);

    ml_env_squeeze(s->managed_ledgers, level);
    topics_read_on(s->topics);
}

static void bundle_lost(struct ownership_watch *w, const char *bundle)
{
    topics_lost(container_of(w, struct seat, watch)->topics, bundle);
}

static void seat_close_topics(void *ctx)
{
    struct seat *s = ctx;
    topics_close(s->topics, one_is_done, s->broker);
}

static void seat_close_sessions(void *ctx)
{
    struct seat *s = ctx;
    sessions_close(s->sessions, one_is_done, s->broker);
}

static void seat_drop(void *ctx)
{
    struct seat *s = ctx;

    sessions_drop(&s->sessions);
    topics_drop(&s->topics);
    policies_drop(&s->policies);
    ml_env_drop(&s->managed_ledgers);
    ledger_client_drop(&s->ledgers);
    affinity_drop(&s->affinity);
}

static void on_seats(struct broker *b, void (*fn)(void *ctx))
{
    for (unsigned i = 0; i < b->loops->n; i++)
        loop_call(b->loops->at[i], fn, &b->seats[i]);
}

/* ---- connections ---- */

struct arrival {
    struct task task;
    struct sessions *sessions;
    int fd;
    struct tls *tls;
};

static void arrive(struct task *t)
{
    struct arrival *a = container_of(t, struct arrival, task);

    sessions_accept(a->sessions, a->fd, a->tls);
    mem_free(a);
}

static void on_accepted(void *ctx, int fd, struct tls *tls)
{
    struct broker *b = ctx;

    if (memory_guard_turns_away(&b->memory, fd))
        return;
    struct seat *s = &b->seats[b->next_seat++ % b->loops->n];
    struct arrival *a = mem_new(struct arrival);

    a->task.run = arrive;
    a->sessions = s->sessions;
    a->fd = fd;
    a->tls = tls;
    loop_post(s->loop, &a->task);
}

/* Their names are known once they are open: a port may have been picked then.  Nobody has come in
 * yet, since that too is this loop's work. */
static void open_doors(void *ctx)
{
    struct broker *b = ctx;
    const struct admin_env admin = {
        .home = b->loops->at[0],
        .conf = b->conf,
        .meta = b->meta,
        .ownership = b->ownership,
        .topics = &b->topics,
        .self = &b->doors.urls,
        .authorizer = b->authorizer,
        .metrics = &b->metrics,
        .tls = b->doors.web_tls,
    };

    b->err = doors_open(&b->doors, b->loops->at[0], on_accepted, b);
    if (!b->err)
        b->err = admin_open(&b->admin, &admin);
    if (b->err)
        return;
    b->ports = (struct broker_ports){.plain = doors_port(&b->doors),
                                     .tls = doors_port_tls(&b->doors),
                                     .web = admin_port(b->admin),
                                     .web_tls = admin_port_tls(b->admin)};
    doors_named(&b->doors, b->ports.web, b->ports.web_tls);
}

static void shut_doors(void *ctx)
{
    struct broker *b = ctx;

    doors_shut(&b->doors);
}

static void admin_shut(void *ctx)
{
    struct broker *b = ctx;

    if (b->admin)
        admin_close(b->admin, one_is_done, b);
    else
        one_is_done(b);
    b->admin = NULL;
}

/* ---- start ---- */

struct counting {
    struct meta_call call;
    struct broker *broker;
};

static void counted(struct meta_call *c, const struct meta_reply *r)
{
    struct counting *n = container_of(c, struct counting, call);

    n->broker->err = r->err;
    n->broker->instance = r->first;
    sem_post(&n->broker->done);
}

/* Numbers that no loop of any broker had before: names of producers are made of them. */
static enum err take_instances(struct broker *b)
{
    struct counting n = {.call = {.home = b->loops->at[0], .done = counted}, .broker = b};

    meta_counter(b->meta, PATH_PRODUCER_COUNTER, b->loops->n, &n.call);
    wait_for(b, 1);
    if (b->err)
        log_event(LOG_ERROR, "broker.not_started", F_STR("what", "the producer name counter"),
                  F_ERR(b->err));
    return b->err;
}

static void seats_take(struct broker *b)
{
    b->topics.n = b->loops->n;
    for (unsigned i = 0; i < b->loops->n; i++)
        b->seats[i] = (struct seat){.broker = b, .loop = b->loops->at[i], .index = i};
    on_seats(b, seat_open);
    for (unsigned i = 0; i < b->loops->n; i++) {
        struct seat *s = &b->seats[i];
        b->topics.at[i] = s->topics;
        s->ear = (struct memory_ear){.home = s->loop, .heard = memory_changed};
        memory_guard_listen(&b->memory, &s->ear);
        s->watch = (struct ownership_watch){.home = s->loop, .lost = bundle_lost};
        ownership_watch(b->ownership, &s->watch);
    }
}

/* ---- its place among the brokers ---- */

static struct ownership *ownership_of(struct broker *b)
{
    if (!b->conf->cluster_ownership)
        return ownership_standalone(&b->doors.urls);
    return ownership_claimed(b->loops->at[0], b->meta, &b->doors.urls);
}

static void joined(void *ctx, enum err err)
{
    struct broker *b = ctx;

    b->err = err;
    sem_post(&b->done);
}

static enum err join(struct broker *b)
{
    const char *host = broker_urls_host(&b->doors.urls);

    ownership_start(b->ownership, *b->conf->broker_id ? b->conf->broker_id : host, joined, b);
    wait_for(b, 1);
    if (b->err)
        log_event(LOG_ERROR, "broker.not_started", F_STR("what", "its place in the cluster"),
                  F_ERR(b->err));
    return b->err;
}

static enum err check_cluster(struct broker *b)
{
    char *instance_id = NULL;
    enum err err = cluster_check(b->meta, b->conf->cluster, &instance_id);

    mem_free(instance_id);
    return err;
}

static enum err start(struct broker *b)
{
    TRY(check_conf(b->conf));
    TRY(doors_prepare(&b->doors, b->conf));
    TRY(check_cluster(b));
    TRY(take_instances(b));
    seats_take(b);
    memory_guard_start(&b->memory, b->loops->at[0]);
    loop_call(b->loops->at[0], open_doors, b);
    TRY(b->err);
    return join(b);
}

enum err broker_start(struct broker **out, const struct broker_conf *conf, struct metadata *meta,
                      struct loops *loops)
{
    return broker_start_guarded(out, conf, authorizer_allow_all(), meta, loops);
}

enum err broker_start_guarded(struct broker **out, const struct broker_conf *conf,
                              const struct authorizer *authorizer, struct metadata *meta,
                              struct loops *loops)
{
    struct broker *b = mem_new(struct broker);

    b->conf = conf;
    b->meta = meta;
    b->loops = loops;
    b->authorizer = authorizer;
    b->ownership = ownership_of(b);
    memory_guard_init(&b->memory, &(struct memory_guard_conf){.limit_mb = conf->memory_mb,
                                                              .level = &b->metrics.memory_level,
                                                              .limit = &b->metrics.memory_limit});
    sem_init(&b->done, 0, 0);
    enum err err = start(b);
    if (err) {
        broker_stop(&b);
        return err;
    }
    log_event(LOG_INFO, "broker.started", F_STR("cluster", conf->cluster),
              F_U64("port", b->ports.plain), F_U64("port_tls", b->ports.tls),
              F_U64("web_port", b->ports.web), F_U64("web_port_tls", b->ports.web_tls));
    *out = b;
    return ERR_OK;
}

/* ---- stop ---- */

/* Bundles are given up once their topics are closed, so that whoever takes them finds nobody
 * to fence; clients that were told to go find it by then, or soon. */
static void close_all(struct broker *b)
{
    loop_call(b->loops->at[0], shut_doors, b);
    on_seats(b, seat_close_topics);
    wait_for(b, b->loops->n);
    ownership_stop(b->ownership, one_is_done, b);
    wait_for(b, 1);
    on_seats(b, seat_close_sessions);
    wait_for(b, b->loops->n);
    loop_call(b->loops->at[0], admin_shut, b);
    wait_for(b, 1);
    on_seats(b, seat_drop);
}

void broker_stop(struct broker **bp)
{
    struct broker *b = *bp;

    if (!b)
        return;
    *bp = NULL;
    memory_guard_stop(&b->memory);
    if (b->topics.n > 0) {
        close_all(b);
        log_event(LOG_INFO, "broker.stopped", F_STR("cluster", b->conf->cluster));
    }
    ownership_close(&b->ownership);
    doors_drop(&b->doors);
    sem_destroy(&b->done);
    mem_free(b);
}

struct memory_guard *broker_memory(struct broker *b)
{
    return &b->memory;
}

struct broker_ports broker_ports(const struct broker *b)
{
    return b->ports;
}

uint16_t broker_port(const struct broker *b)
{
    return b->ports.plain;
}

uint16_t broker_web_port(const struct broker *b)
{
    return b->ports.web;
}
