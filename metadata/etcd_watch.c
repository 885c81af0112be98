#include "metadata/etcd_watch.h"

#include <string.h>

#include "common/log.h"
#include "metadata/etcd_inside.h"
#include "metadata/etcd_keys.h"
#include "metadata/etcd_txn.h"
#include "metadata/watch.h"

enum {
    MESSAGE_MAX = 64 * 1024 * 1024,
    REOPEN_US = 5000,
    REOPEN_MAX_US = 500000,
    REFUSED_US = 1000000,
    REFUSED = -1
};

struct prefix {
    struct list_node node;
    char *text; /* as the watches know it */
    unsigned watches;
    struct watch_hub *hub;
    /* the loop's */
    int64_t id;   /* of its watch on the stream; 0: none there; REFUSED: not for now */
    bool created; /* etcd has said so */
    int64_t next; /* the revision it has not heard of yet; 0: not known */
};

static struct etcd *etcd_of_stream(struct grpc_call *c)
{
    return container_of(c, struct etcd, watches.stream);
}

/* ---- asking --------------------------------------------------------------------------------- */

static void send(struct etcd *e, const Etcd__WatchRequest *m)
{
    grpc_send(&e->watches.stream, etcd_pack(&m->base));
}

/* A number of its own each time: what still comes for an old one is nobody's. */
static void create(struct etcd *e, struct prefix *p)
{
    struct etcd_span span = etcd_span_of(e->root, p->text, NULL);
    Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
    Etcd__WatchRequest m = ETCD__WATCH_REQUEST__INIT;

    if (p->next == 0 && etcd_revision(e) > 0)
        p->next = etcd_revision(e) + 1;
    p->id = ++e->watches.last_id;
    p->created = false;
    create.key = (ProtobufCBinaryData){.len = span.from_len, .data = span.from};
    create.range_end = (ProtobufCBinaryData){.len = span.to_len, .data = span.to};
    create.start_revision = p->next;
    create.watch_id = p->id;
    create.prev_kv = true; /* how many versions a key had when it goes */
    create.fragment = true;
    m.request_case = ETCD__WATCH_REQUEST__REQUEST_CREATE;
    m.create = &create;
    send(e, &m);
    etcd_span_drop(&span);
}

static void cancel(struct etcd *e, int64_t id)
{
    Etcd__WatchCancelRequest cancel = ETCD__WATCH_CANCEL_REQUEST__INIT;
    Etcd__WatchRequest m = ETCD__WATCH_REQUEST__INIT;

    cancel.watch_id = id;
    m.request_case = ETCD__WATCH_REQUEST__REQUEST_CANCEL;
    m.cancel = &cancel;
    send(e, &m);
}

static void prefix_free(struct prefix *p)
{
    list_remove(&p->node);
    watch_hub_drop(&p->hub);
    mem_free(p->text);
    mem_free(p);
}

/* What is wanted, and what there is on the stream, made the same. */
static void settle(struct etcd *e)
{
    struct etcd_watches *all = &e->watches;
    bool open = grpc_under_way(&all->stream);

    pthread_mutex_lock(&all->lock);
    list_each(&all->prefixes, n)
    {
        struct prefix *p = list_entry(n, struct prefix, node);
        if (p->watches == 0) {
            if (open && p->id > 0)
                cancel(e, p->id);
            prefix_free(p);
        } else if (open && !p->id) {
            create(e, p);
        }
    }
    pthread_mutex_unlock(&all->lock);
}

/* ---- hearing -------------------------------------------------------------------------------- */

/* The table is changed by other threads, but a prefix goes only on this one. */
static struct prefix *prefix_of(struct etcd *e, int64_t id)
{
    struct prefix *found = NULL;

    pthread_mutex_lock(&e->watches.lock);
    list_each(&e->watches.prefixes, n)
    {
        struct prefix *p = list_entry(n, struct prefix, node);
        if (p->id == id)
            found = p;
    }
    pthread_mutex_unlock(&e->watches.lock);
    return found;
}

static void tell(struct etcd *e, struct prefix *p, const Etcd__Event *event)
{
    const Etcd__KeyValue *kv = event->kv;
    bool gone = event->type == ETCD__EVENT__TYPE__DELETE;
    char *key = etcd_key_shown(e->root, view_of(kv->key.data, kv->key.len));

    if (!key || kv->mod_revision < p->next) {
        mem_free(key);
        return;
    }
    struct meta_change change = {
        .kind = gone ? META_CHANGED_REMOVED : META_CHANGED_PUT,
        .key = key,
        .version = gone ? (event->prev_kv ? event->prev_kv->version : 0) - 1 : kv->version - 1,
        .revision = etcd_shown(e, kv->mod_revision)};
    if (!gone)
        change.value = slice_copy(kv->value.data, kv->value.len);
    watch_tell(p->hub, &change);
    slice_drop(&change.value);
    mem_free(key);
}

static void hear(struct etcd *e, struct prefix *p, const Etcd__WatchResponse *r)
{
    int64_t last = 0;

    for (size_t i = 0; i < r->n_events; i++) {
        if (!r->events[i]->kv)
            continue;
        tell(e, p, r->events[i]);
        last = r->events[i]->kv->mod_revision;
    }
    /* One revision may be in several fragments: until the last of them it is not over. */
    if (last > 0 && (r->fragment ? last : last + 1) > p->next)
        p->next = r->fragment ? last : last + 1;
}

/* Whoever lists after this sees all that was compacted. */
static void is_unsure(struct etcd *e, struct prefix *p)
{
    int64_t now = etcd_revision(e);

    log_event(LOG_INFO, "metadata.watch_compacted", F_STR("prefix", p->text),
              F_I64("from", p->next), F_I64("now", now));
    p->id = 0;
    p->next = now + 1;
    watch_tell_unsure(p->hub, etcd_shown(e, now));
}

void etcd_watches_went_back(struct etcd *e, int64_t now)
{
    struct etcd_watches *all = &e->watches;
    bool open = grpc_under_way(&all->stream);

    pthread_mutex_lock(&all->lock);
    list_each(&all->prefixes, n)
    {
        struct prefix *p = list_entry(n, struct prefix, node);
        if (open && p->id > 0)
            cancel(e, p->id);
        p->id = 0;
        p->next = now + 1;
        watch_tell_unsure(p->hub, etcd_shown(e, now));
    }
    pthread_mutex_unlock(&all->lock);
    settle(e);
}

/* A watch on what the store has not reached hears nothing, until it has. */
static void is_created(struct etcd *e, struct prefix *p, const Etcd__Header *h)
{
    p->created = true;
    if (h && h->revision < etcd_revision(e))
        etcd_doubt(e);
}

static void reopen_later(struct etcd *e);

/* A refusal names no watch, but they are answered in the order in which they were asked for. */
static struct prefix *oldest_not_created(struct etcd *e)
{
    struct prefix *oldest = NULL;

    pthread_mutex_lock(&e->watches.lock);
    list_each(&e->watches.prefixes, n)
    {
        struct prefix *p = list_entry(n, struct prefix, node);
        if (p->id > 0 && !p->created && (!oldest || p->id < oldest->id))
            oldest = p;
    }
    pthread_mutex_unlock(&e->watches.lock);
    return oldest;
}

static void on_again(struct timer *t)
{
    struct etcd *e = container_of(t, struct etcd, watches.again);

    pthread_mutex_lock(&e->watches.lock);
    list_each(&e->watches.prefixes, n)
    {
        struct prefix *p = list_entry(n, struct prefix, node);
        if (p->id == REFUSED)
            p->id = 0;
    }
    pthread_mutex_unlock(&e->watches.lock);
    settle(e);
}

static bool about_the_token(const char *reason)
{
    return strstr(reason, "auth token") || strstr(reason, "auth store is old") ||
           strstr(reason, "user name is empty");
}

static void was_canceled(struct etcd *e, struct prefix *p, const Etcd__WatchResponse *r)
{
    if (p && r->compact_revision > 0) {
        is_unsure(e, p);
        settle(e);
        return;
    }
    log_event(LOG_WARN, "metadata.watch_refused", F_STR("prefix", p ? p->text : "?"),
              F_STR("reason", r->cancel_reason));
    if (e->auth.user && about_the_token(r->cancel_reason)) {
        etcd_auth_refused(e, e->watches.token);
        grpc_cancel(&e->watches.stream);
        reopen_later(e);
    } else if (p) {
        p->id = REFUSED;
        loop_after(e->loop, &e->watches.again, REFUSED_US);
    }
}

static void on_message(struct grpc_call *c, struct view message)
{
    struct etcd *e = etcd_of_stream(c);
    Etcd__WatchResponse *r = etcd__watch_response__unpack(NULL, message.len, message.base);
    struct prefix *p = r ? prefix_of(e, r->watch_id) : NULL;

    if (r && !p && r->created && r->canceled)
        p = oldest_not_created(e);
    if (r)
        etcd_heard(e, r->header);
    if (p && !r->canceled) {
        e->watches.failures = 0;
        if (r->created)
            is_created(e, p, r->header);
        hear(e, p, r);
    } else if (p) {
        was_canceled(e, p, r);
    }
    if (r) {
        etcd__watch_response__free_unpacked(r, NULL);
        return;
    }
    log_event(LOG_WARN, "metadata.watch_refused", F_STR("reason", "malformed"));
    grpc_cancel(c);
    reopen_later(e);
}

/* ---- the stream ----------------------------------------------------------------------------- */

static void reopen_later(struct etcd *e)
{
    struct etcd_watches *all = &e->watches;
    uint64_t us = (uint64_t)REOPEN_US << (all->failures < 7 ? all->failures : 7);

    pthread_mutex_lock(&all->lock);
    list_each(&all->prefixes, n) list_entry(n, struct prefix, node)->id = 0;
    pthread_mutex_unlock(&all->lock);
    all->failures++;
    loop_after(e->loop, &all->timer, us < REOPEN_MAX_US ? us : REOPEN_MAX_US);
}

static void on_ended(struct grpc_call *c, int status, const char *text)
{
    struct etcd *e = etcd_of_stream(c);

    log_event(LOG_INFO, "metadata.watch_moved", F_I64("status", status), F_STR("reason", text));
    if (status == GRPC_UNAUTHENTICATED)
        etcd_auth_refused(e, e->watches.token);
    reopen_later(e);
}

static bool any_prefix(struct etcd *e)
{
    pthread_mutex_lock(&e->watches.lock);
    bool any = !list_empty(&e->watches.prefixes);
    pthread_mutex_unlock(&e->watches.lock);
    return any;
}

static void open_stream(struct etcd *e)
{
    struct etcd_watches *all = &e->watches;
    struct grpc_ask ask = {
        .path = "/etcdserverpb.Watch/Watch", .needs_leader = true, .goes_on = true};
    bool wanted = e->greeted && !grpc_under_way(&all->stream) && any_prefix(e);

    if (!wanted || !etcd_auth_ready(e))
        return;
    struct etcd_node *n = etcd_nodes_pick(e, all->failures ? all->at : NULL);
    if (!n)
        return;
    ask.token = e->auth.token;
    all->token = e->auth.number;
    all->at = n;
    grpc_open(n->conn, &all->stream, &ask);
}

void etcd_watches_wake(struct etcd *e)
{
    if (timer_armed(&e->watches.timer))
        return;
    open_stream(e);
    settle(e);
}

static void on_timer(struct timer *t)
{
    etcd_watches_wake(container_of(t, struct etcd, watches.timer));
}

static void on_changed(struct task *t)
{
    struct etcd *e = container_of(t, struct etcd, watches.changed);

    pthread_mutex_lock(&e->watches.lock);
    e->watches.posted = false;
    pthread_mutex_unlock(&e->watches.lock);
    etcd_watches_wake(e);
}

/* ---- what callers call ---------------------------------------------------------------------- */

static struct prefix *find(struct etcd *e, const char *text)
{
    list_each(&e->watches.prefixes, n)
    {
        struct prefix *p = list_entry(n, struct prefix, node);
        if (strcmp(p->text, text) == 0)
            return p;
    }
    return NULL;
}

/* What is answered to a call made after this has a revision that is not heard of yet. */
static struct prefix *add(struct etcd *e, const char *text)
{
    struct prefix *p = mem_new(struct prefix);
    int64_t now = etcd_revision(e);

    p->text = mem_string(text);
    p->hub = watch_hub_new();
    p->next = now ? now + 1 : 0;
    list_push_back(&e->watches.prefixes, &p->node);
    return p;
}

static void post_changed(struct etcd *e)
{
    if (e->watches.posted)
        return;
    e->watches.posted = true;
    loop_post(e->loop, &e->watches.changed);
}

void etcd_watch_add(struct etcd *e, const char *text, struct meta_watch *w)
{
    pthread_mutex_lock(&e->watches.lock);
    struct prefix *p = find(e, text);
    if (!p) {
        p = add(e, text);
        post_changed(e);
    }
    p->watches++;
    watch_add(p->hub, text, w);
    pthread_mutex_unlock(&e->watches.lock);
}

void etcd_watch_remove(struct etcd *e, struct meta_watch *w)
{
    pthread_mutex_lock(&e->watches.lock);
    struct prefix *p = find(e, w->prefix);
    if (p) {
        watch_remove(p->hub, w);
        if (--p->watches == 0)
            post_changed(e);
    }
    pthread_mutex_unlock(&e->watches.lock);
}

void etcd_watches_start(struct etcd *e)
{
    struct etcd_watches *all = &e->watches;

    pthread_mutex_init(&all->lock, NULL);
    list_init(&all->prefixes);
    all->changed.run = on_changed;
    all->timer.run = on_timer;
    all->again.run = on_again;
    all->stream.message = on_message;
    all->stream.ended = on_ended;
    all->stream.max = MESSAGE_MAX;
}

void etcd_watches_stop(struct etcd *e)
{
    struct etcd_watches *all = &e->watches;

    loop_cancel(e->loop, &all->timer);
    loop_cancel(e->loop, &all->again);
    grpc_cancel(&all->stream);
    list_each(&all->prefixes, n) prefix_free(list_entry(n, struct prefix, node));
}
