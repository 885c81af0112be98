/* Ownership over the metadata: registry, bundles and records around the core in claimed.h.
 *
 *   any loop --errand--> home: topic -> bundle -> core --> back to the asker's loop
 */
#include <string.h>

#include "broker/cluster/bundles.h"
#include "broker/cluster/claimed.h"
#include "broker/cluster/registry.h"
#include "common/log.h"
#include "metadata/paths.h"

enum { ERRANDS_MAX = 200000, FIRST_PAUSE_US = 5000 };

enum shell_state { SHELL_NEW, SHELL_STARTING, SHELL_OPEN, SHELL_STOPPING, SHELL_STOPPED };

struct shell {
    struct ownership base;
    struct loop *home;
    struct metadata *meta;
    const struct broker_urls *self;
    enum shell_state state;
    struct registry registry;
    struct bundles *bundles;
    struct follower records;
    struct claimed core;
    unsigned errands; /* with the core or the bundles */
    bool listed, joined, core_stopped;
    char *id;
    struct task starting, stopping;
    void (*started)(void *ctx, enum err err);
    void *started_ctx;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

/* One question on its way: there, and back. */
struct errand {
    struct shell *shell;
    struct task task;
    char *topic; /* of a find */
    char *bundle, *to;
    struct ownership_call *call;
    struct ownership_move *move;
    struct topic_name name;
    struct bundles_ask ranges;
    struct claimed_ask ask;
    bool counted;
    enum err err;
    bool mine;
    struct broker_record at; /* its strings are where's */
};

static struct shell *shell_of(struct ownership *o)
{
    return container_of(o, struct shell, base);
}

/* ---- the way back ---- */

static void errand_free(struct errand *e)
{
    mem_free(e->topic);
    mem_free(e->bundle);
    mem_free(e->to);
    broker_record_drop(&e->at);
    mem_free(e);
}

static void arrive_back(struct task *t)
{
    struct errand *e = container_of(t, struct errand, task);
    const struct broker_urls where = {.service = e->at.service,
                                      .service_tls = e->at.service_tls,
                                      .web = e->at.web,
                                      .web_tls = e->at.web_tls};

    if (e->call)
        e->call->done(e->call, e->err, e->mine, e->err ? NULL : &where);
    else
        e->move->done(e->move, e->err);
    errand_free(e);
}

static void stop_if_idle(struct shell *s);

static void go_back(struct errand *e, enum err err)
{
    struct shell *s = e->shell;

    if (e->counted)
        s->errands--;
    topic_name_drop(&e->name);
    e->err = err;
    e->task.run = arrive_back;
    loop_post(e->call ? e->call->home : e->move->home, &e->task);
    stop_if_idle(s);
}

static struct broker_record copy_urls(const char *service, const char *service_tls, const char *web,
                                      const char *web_tls)
{
    return (struct broker_record){.service = mem_string(service),
                                  .service_tls = mem_string(service_tls),
                                  .web = mem_string(web),
                                  .web_tls = mem_string(web_tls)};
}

static void find_answered(struct errand *e, enum err err, const char *owner)
{
    struct shell *s = e->shell;
    const struct registered *b = err ? NULL : registry_find(&s->registry, owner);

    e->mine = !err && strcmp(owner, s->id) == 0;
    if (e->mine)
        e->at = copy_urls(s->self->service, s->self->service_tls, s->self->web, s->self->web_tls);
    else if (b)
        e->at =
            copy_urls(b->record.service, b->record.service_tls, b->record.web, b->record.web_tls);
    else if (!err)
        err = ERR_NOT_READY;
    go_back(e, err);
}

/* ---- effects of the core ---- */

static bool alive(void *ctx, const char *id, struct claimed_life *out)
{
    struct shell *s = ctx;
    const struct registered *b = registry_find(&s->registry, id);

    if (b)
        *out = (struct claimed_life){.nonce = b->record.nonce, .version = b->version};
    return b != NULL;
}

/* Something asked of the store about one bundle. */
struct step {
    struct meta_call call;
    struct shell *shell;
    char *bundle;
    char *id; /* whose registration is looked at */
    struct slice value;
    int64_t version; /* that a write gives the record */
    struct timer timer;
};

static struct step *step_new(struct shell *s, const char *bundle)
{
    struct step *step = mem_new(struct step);

    step->shell = s;
    step->bundle = mem_string(bundle);
    return step;
}

static void step_free(struct step *step)
{
    slice_drop(&step->value);
    mem_free(step->bundle);
    mem_free(step->id);
    mem_free(step);
}

static void wrote(struct meta_call *c, const struct meta_reply *r)
{
    struct step *step = container_of(c, struct step, call);
    struct shell *s = step->shell;

    if (!r->err)
        follower_learn(&s->records, step->bundle, &step->value, step->version, r->revision);
    claimed_wrote(&s->core, step->bundle, r->err);
    step_free(step);
}

static void write(void *ctx, const struct claimed_write *w)
{
    struct shell *s = ctx;
    struct step *step = step_new(s, w->bundle);
    struct meta_op ops[3];
    char *keys[3] = {0};
    size_t n = 0;

    for (unsigned i = 0; i < w->checks; i++, n++) {
        keys[n] = mem_format(PATH_BROKERS "%s", w->check[i].id);
        ops[n] = (struct meta_op){.kind = META_CHECK,
                                  .key = keys[n],
                                  .expected =
                                      w->check[i].version < 0 ? META_ABSENT : w->check[i].version};
    }
    step->value = owner_record_write(w->owner, w->nonce);
    step->version = w->expected < 0 ? 0 : w->expected + 1;
    keys[n] = mem_format(PATH_OWNED "%s", w->bundle);
    ops[n] = (struct meta_op){.kind = META_PUT,
                              .key = keys[n],
                              .value = slice_share(step->value),
                              .expected = w->expected < 0 ? META_ABSENT : w->expected};
    step->call = (struct meta_call){.home = s->home, .done = wrote};
    meta_txn(s->meta, ops, n + 1, &step->call);
    for (size_t i = 0; i <= n; i++)
        mem_free(keys[i]);
}

static void read_back(struct meta_call *c, const struct meta_reply *r)
{
    struct step *step = container_of(c, struct step, call);
    struct shell *s = step->shell;
    enum err err = r->err;

    if (!err)
        follower_learn(&s->records, step->bundle, &r->value, r->version, r->revision);
    if (err == ERR_NOT_FOUND) {
        follower_learn(&s->records, step->bundle, NULL, -1, r->revision);
        err = ERR_OK;
    }
    claimed_read(&s->core, step->bundle, err);
    step_free(step);
}

static void read(void *ctx, const char *bundle)
{
    struct shell *s = ctx;
    struct step *step = step_new(s, bundle);
    char *key = mem_format(PATH_OWNED "%s", bundle);

    step->call = (struct meta_call){.home = s->home, .done = read_back};
    meta_get(s->meta, key, &step->call);
    mem_free(key);
}

static void looked(struct meta_call *c, const struct meta_reply *r)
{
    struct step *step = container_of(c, struct step, call);
    struct shell *s = step->shell;
    enum err err = r->err;

    if (!err || err == ERR_NOT_FOUND) {
        registry_learn(&s->registry, step->id, err ? NULL : &r->value, r->version, r->revision);
        err = ERR_OK;
    }
    claimed_looked(&s->core, step->bundle, err);
    step_free(step);
}

static void look(void *ctx, const char *bundle, const char *id)
{
    struct shell *s = ctx;
    struct step *step = step_new(s, bundle);
    char *key = mem_format(PATH_BROKERS "%s", id);

    step->id = mem_string(id);
    step->call = (struct meta_call){.home = s->home, .done = looked};
    meta_get(s->meta, key, &step->call);
    mem_free(key);
}

static void paused(struct timer *t)
{
    struct step *step = container_of(t, struct step, timer);

    claimed_paused(&step->shell->core, step->bundle);
    step_free(step);
}

static void pause_for(void *ctx, const char *bundle, unsigned tries)
{
    struct shell *s = ctx;
    struct step *step = step_new(s, bundle);

    step->timer.run = paused;
    loop_after(s->home, &step->timer, (uint64_t)FIRST_PAUSE_US << tries);
}

static void answer(void *ctx, struct claimed_ask *a, enum err err, const char *owner)
{
    struct errand *e = container_of(a, struct errand, ask);

    (void)ctx;
    if (e->call)
        find_answered(e, err, owner);
    else
        go_back(e, err);
}

static void lost(void *ctx, const char *bundle)
{
    struct shell *s = ctx;

    log_event(LOG_INFO, "bundle.lost", F_STR("bundle", bundle));
    ownership_tell_lost(&s->base, bundle);
}

static void core_stopped(void *ctx)
{
    struct shell *s = ctx;

    s->core_stopped = true;
    stop_if_idle(s);
}

static const struct claimed_effects effects = {alive,     write,  read, look,
                                               pause_for, answer, lost, core_stopped};

/* ---- records ---- */

static void record_told(void *ctx, const struct mirror_fact *f)
{
    struct shell *s = ctx;
    struct owner_record r = {0};
    bool was_mine = claimed_is_mine(&s->core, f->key);

    if (f->version < 0) {
        claimed_record(&s->core, f->key, NULL, NULL, -1);
        return;
    }
    if (owner_record_read(f->value, &r)) {
        log_event(LOG_WARN, "bundle.malformed", F_STR("bundle", f->key));
        claimed_record(&s->core, f->key, "", "", f->version);
        return;
    }
    claimed_record(&s->core, f->key, r.owner, r.nonce, f->version);
    if (!was_mine && claimed_is_mine(&s->core, f->key))
        log_event(LOG_INFO, "bundle.owned", F_STR("bundle", f->key));
    owner_record_drop(&r);
}

/* ---- start ---- */

static void say_if_started(struct shell *s)
{
    if (s->state != SHELL_STARTING || !s->listed || !s->joined)
        return;
    s->state = SHELL_OPEN;
    s->started(s->started_ctx, ERR_OK);
}

static void records_caught_up(struct follower *f)
{
    struct shell *s = container_of(f, struct shell, records);

    s->listed = true;
    say_if_started(s);
}

static void joined(void *ctx, enum err err)
{
    struct shell *s = ctx;

    s->joined = !err;
    if (err)
        s->started(s->started_ctx, err);
    else
        say_if_started(s);
}

static void left(void *ctx)
{
    struct shell *s = ctx;

    bundles_drop(&s->bundles);
    claimed_drop(&s->core);
    s->state = SHELL_STOPPED;
    s->stopped(s->stopped_ctx);
}

static void records_stopped(struct follower *f)
{
    struct shell *s = container_of(f, struct shell, records);

    registry_leave(&s->registry);
}

static void start_here(struct task *t)
{
    struct shell *s = container_of(t, struct shell, starting);

    s->state = SHELL_STARTING;
    s->registry = (struct registry){
        .home = s->home, .meta = s->meta, .joined = joined, .left = left, .ctx = s};
    registry_init(&s->registry);
    claimed_init(&s->core, &effects, s, s->id, s->registry.nonce);
    s->bundles = bundles_new(s->home, s->meta);
    s->records = (struct follower){.home = s->home,
                                   .meta = s->meta,
                                   .prefix = PATH_OWNED,
                                   .caught_up = records_caught_up,
                                   .stopped = records_stopped};
    mirror_init(&s->records.mirror, record_told, s);
    follower_start(&s->records);
    registry_join(&s->registry, s->id, s->self);
}

static void start(struct ownership *o, const char *id, void (*done)(void *ctx, enum err err),
                  void *ctx)
{
    struct shell *s = shell_of(o);

    if (!*id || strchr(id, '/')) {
        log_event(LOG_ERROR, "broker.config_refused", F_STR("key", "brokerId"), F_STR("value", id),
                  F_STR("reason", "it must be one element of a path"));
        done(ctx, ERR_BAD_CONFIG);
        return;
    }
    s->id = mem_string(id);
    s->started = done;
    s->started_ctx = ctx;
    s->starting.run = start_here;
    loop_post(s->home, &s->starting);
}

/* ---- stop ---- */

static void end_here(struct task *t)
{
    follower_stop(&container_of(t, struct shell, stopping)->records);
}

/* Nothing may come back to the core once its records and bundles are gone.  Posted: it may be
 * one of them that is being told. */
static void stop_if_idle(struct shell *s)
{
    if (s->state != SHELL_STOPPING || !s->core_stopped || s->errands > 0)
        return;
    s->core_stopped = false;
    s->stopping.run = end_here;
    loop_post(s->home, &s->stopping);
}

static void stop_here(struct task *t)
{
    struct shell *s = container_of(t, struct shell, stopping);

    if (s->state == SHELL_NEW) {
        s->state = SHELL_STOPPED;
        s->stopped(s->stopped_ctx);
        return;
    }
    s->state = SHELL_STOPPING;
    claimed_stop(&s->core);
}

static void stop(struct ownership *o, void (*done)(void *ctx), void *ctx)
{
    struct shell *s = shell_of(o);

    s->stopped = done;
    s->stopped_ctx = ctx;
    s->stopping.run = stop_here;
    loop_post(s->home, &s->stopping);
}

/* ---- questions ---- */

static void ranges_known(struct bundles_ask *a, enum err err, const struct ranges *r)
{
    struct errand *e = container_of(a, struct errand, ranges);
    char range[RANGE_TEXT];

    if (err) {
        go_back(e, err);
        return;
    }
    if (e->move && !ranges_have(r, strrchr(e->bundle, '/') + 1)) {
        go_back(e, ERR_NOT_FOUND);
        return;
    }
    if (e->call) {
        ranges_text(r, ranges_find(r, topic_hash(e->topic)), range);
        e->bundle = mem_format("%s/%s/%s", e->name.tenant, e->name.ns, range);
    }
    claimed_ask(&e->shell->core, e->bundle, &e->ask);
}

static bool admit(struct errand *e)
{
    struct shell *s = e->shell;

    if (s->state != SHELL_OPEN || s->errands >= ERRANDS_MAX) {
        go_back(e, s->state == SHELL_OPEN ? ERR_BUSY : ERR_NOT_READY);
        return false;
    }
    s->errands++;
    e->counted = true;
    e->ranges.done = ranges_known;
    return true;
}

static void find_here(struct task *t)
{
    struct errand *e = container_of(t, struct errand, task);

    if (!admit(e))
        return;
    if (topic_name_parse(e->topic, &e->name))
        go_back(e, ERR_INVALID_NAME);
    else
        bundles_ask(e->shell->bundles, e->name.tenant, e->name.ns, &e->ranges);
}

/* "tenant/namespace/range": whether it is one is known when its range is found. */
static void move_here(struct task *t)
{
    struct errand *e = container_of(t, struct errand, task);
    const char *ns = strchr(e->bundle, '/'), *range = strrchr(e->bundle, '/');

    if (!admit(e))
        return;
    if (!ns || ns == range) {
        go_back(e, ERR_NOT_FOUND);
        return;
    }
    char *tenant = mem_string_n(e->bundle, (size_t)(ns - e->bundle));
    char *name = mem_string_n(ns + 1, (size_t)(range - ns - 1));
    bundles_ask(e->shell->bundles, tenant, name, &e->ranges);
    mem_free(tenant);
    mem_free(name);
}

static struct errand *errand_new(struct ownership *o, void (*run)(struct task *t))
{
    struct errand *e = mem_new(struct errand);

    e->shell = shell_of(o);
    e->task.run = run;
    return e;
}

static void find(struct ownership *o, const char *topic, struct ownership_call *c)
{
    struct errand *e = errand_new(o, find_here);

    e->topic = mem_string(topic);
    e->call = c;
    e->ask.kind = CLAIMED_FIND;
    loop_post(e->shell->home, &e->task);
}

static void move(struct ownership *o, const char *bundle, const char *to, struct ownership_move *m)
{
    struct errand *e = errand_new(o, move_here);

    e->bundle = mem_string(bundle);
    e->to = mem_string(to);
    e->move = m;
    e->ask.kind = CLAIMED_MOVE;
    e->ask.to = e->to;
    loop_post(e->shell->home, &e->task);
}

static void close_it(struct ownership *o)
{
    struct shell *s = shell_of(o);

    mem_free(s->id);
    mem_free(s);
}

static const struct ownership_ops ops = {start, stop, find, move, close_it};

struct ownership *ownership_claimed(struct loop *home, struct metadata *meta,
                                    const struct broker_urls *self)
{
    struct shell *s = mem_new(struct shell);

    s->base.ops = &ops;
    list_init(&s->base.watches);
    s->home = home;
    s->meta = meta;
    s->self = self;
    return &s->base;
}
