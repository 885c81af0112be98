/* The store of this process: one queue, one thread, one shelf.
 *
 *   any loop --submit--> queue --[store thread]--> stage, shelf --> answers, watch events
 *
 * Writes that wait together are one synced commit.  Answers and events are given only when
 * what they say is durable. */
#include <pthread.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "metadata/reply.h"
#include "metadata/shelf.h"
#include "metadata/stage.h"
#include "metadata/watch.h"

enum {
    QUEUE_MAX = 65536,
    QUEUE_BYTES_MAX = 64 * 1024 * 1024,
    GROUP_BYTES_MAX = 4 * 1024 * 1024,
    RANGE_BYTES_MAX = 16 * 1024 * 1024
};

enum request_kind { GET, RANGE, TXN, HOLD, RELEASE, COUNTER };

struct request {
    struct list_node node;
    enum request_kind kind;
    struct meta_call *call;
    char *key, *after;
    struct meta_op *ops;
    size_t n;
    struct slice value;
    size_t limit;
    bool keys_only;
    int64_t count;
    size_t bytes;
    struct answer *answer;
};

struct store {
    struct metadata metadata;
    struct stage stage;     /* the thread's */
    struct list_node group; /* the thread's: done, not yet committed */
    struct watch_hub *hub;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t more;
    struct list_node queue;
    size_t waiting, bytes;
    bool closing;
};

static struct store *store_of(struct metadata *m)
{
    return container_of(m, struct store, metadata);
}

static struct request *request_new(enum request_kind kind, const char *key, struct meta_call *c)
{
    struct request *r = mem_new(struct request);

    r->kind = kind;
    r->call = c;
    r->key = key ? mem_string(key) : NULL;
    r->bytes = sizeof *r + (key ? strlen(key) : 0);
    return r;
}

static void request_drop(struct request *r)
{
    for (size_t i = 0; i < r->n; i++) {
        mem_free((char *)(uintptr_t)r->ops[i].key);
        slice_drop(&r->ops[i].value);
    }
    mem_free(r->ops);
    slice_drop(&r->value);
    mem_free(r->key);
    mem_free(r->after);
    mem_free(r);
}

static void submit(struct store *s, struct request *r)
{
    pthread_mutex_lock(&s->lock);
    bool full = s->waiting == QUEUE_MAX || s->bytes + r->bytes > QUEUE_BYTES_MAX;
    if (!full) {
        list_push_back(&s->queue, &r->node);
        s->waiting++;
        s->bytes += r->bytes;
        pthread_cond_signal(&s->more);
    }
    pthread_mutex_unlock(&s->lock);
    if (full) {
        answer_error(r->call, ERR_BUSY);
        request_drop(r);
    }
}

/* ---- the thread: what each request does ----------------------------------------------------- */

static enum err do_get(struct store *s, struct request *r)
{
    struct key_item now = {0};

    TRY(stage_get(&s->stage, r->key, &now));
    r->answer->reply.value = now.value;
    r->answer->reply.version = now.version;
    return ERR_OK;
}

/* A range in the making: the shelf's keys and the held ones, merged. */
struct merge {
    const struct request *r;
    const struct key_map *held;
    size_t at;
    size_t bytes;
};

static bool wanted(const struct request *r, const char *key)
{
    return strncmp(key, r->key, strlen(r->key)) == 0;
}

static bool merge_take(struct merge *m, const struct key_item *i)
{
    struct answer *a = m->r->answer;

    if (m->r->after && strcmp(i->key, m->r->after) <= 0)
        return true;
    if (!wanted(m->r, i->key))
        return false;
    if (a->reply.count == m->r->limit || m->bytes > RANGE_BYTES_MAX) {
        a->reply.more = true;
        return false;
    }
    m->bytes += strlen(i->key) + (m->r->keys_only ? 0 : i->value.len);
    answer_item(a, i->key, m->r->keys_only ? (struct slice){0} : slice_share(i->value), i->version);
    return true;
}

/* The held keys before `key`, or all that are left. */
static bool merge_held(struct merge *m, const char *key)
{
    while (m->at < m->held->n && (!key || strcmp(m->held->at[m->at]->key, key) < 0))
        if (!merge_take(m, m->held->at[m->at++]))
            return false;
    return true;
}

static bool merge_each(void *ctx, const struct key_item *i)
{
    struct merge *m = ctx;

    return merge_held(m, i->key) && merge_take(m, i);
}

static enum err do_range(struct store *s, struct request *r)
{
    const char *from = r->after && strcmp(r->after, r->key) > 0 ? r->after : r->key;
    struct merge m = {.r = r, .held = &s->stage.held, .at = key_map_from(&s->stage.held, from)};
    enum err e = s->stage.shelf->ops->walk(s->stage.shelf, from, r->keys_only, merge_each, &m);

    if (!e && !r->answer->reply.more)
        merge_held(&m, NULL);
    return e;
}

static enum err do_txn(struct store *s, struct request *r)
{
    TRY(stage_apply(&s->stage, r->ops, r->n));
    if (r->n == 1 && r->ops[0].kind == META_PUT)
        r->answer->reply.version = key_map_find(&s->stage.waiting, r->ops[0].key)->version;
    return ERR_OK;
}

static enum err do_hold(struct store *s, struct request *r)
{
    TRY(stage_hold(&s->stage, r->key, r->value));
    r->answer->reply.version = key_map_find(&s->stage.waiting, r->key)->version;
    return ERR_OK;
}

static enum err perform(struct store *s, struct request *r)
{
    switch (r->kind) {
    case GET:
        return do_get(s, r);
    case RANGE:
        return do_range(s, r);
    case TXN:
        return do_txn(s, r);
    case HOLD:
        return do_hold(s, r);
    case RELEASE:
        return stage_release(&s->stage, r->key);
    case COUNTER:
        return stage_count(&s->stage, r->key, r->count, &r->answer->reply.first);
    }
    return ERR_NOT_ALLOWED;
}

/* ---- the thread: groups --------------------------------------------------------------------- */

static void finish(struct store *s, struct request *r, enum err failed)
{
    if (failed) {
        answer_clear(r->answer);
        r->answer->reply = (struct meta_reply){.err = failed, .revision = s->stage.revision};
    }
    answer_post(r->answer);
    request_drop(r);
}

/* What was read in a group may rest on what was staged in it: they fail together. */
static void end_group(struct store *s)
{
    struct list_node *n;
    enum err e = stage_commit(&s->stage);

    for (size_t i = 0; !e && i < s->stage.n; i++)
        watch_tell(s->hub, &s->stage.changes[i]);
    stage_reset(&s->stage);
    while ((n = list_pop_front(&s->group)))
        finish(s, list_entry(n, struct request, node), e);
}

static void take(struct store *s, struct request *r)
{
    if (r->kind == RANGE || s->stage.bytes > GROUP_BYTES_MAX)
        end_group(s);
    r->answer = answer_new(r->call);
    r->answer->reply.err = perform(s, r);
    if (r->answer->reply.err)
        answer_clear(r->answer);
    r->answer->reply.revision = s->stage.revision;
    list_push_back(&s->group, &r->node);
}

/* Everything that waits, moved to `into`; false when there will be no more. */
static bool wait_for_requests(struct store *s, struct list_node *into)
{
    struct list_node *n;

    pthread_mutex_lock(&s->lock);
    while (list_empty(&s->queue) && !s->closing)
        pthread_cond_wait(&s->more, &s->lock);
    while ((n = list_pop_front(&s->queue)))
        list_push_back(into, n);
    bool open = !list_empty(into) || !s->closing;
    s->waiting = s->bytes = 0;
    pthread_mutex_unlock(&s->lock);
    return open;
}

static void *run(void *arg)
{
    struct store *s = arg;
    struct list_node taken, *n;

    list_init(&taken);
    while (wait_for_requests(s, &taken)) {
        while ((n = list_pop_front(&taken)))
            take(s, list_entry(n, struct request, node));
        end_group(s);
    }
    return NULL;
}

/* ---- the callers' side ---------------------------------------------------------------------- */

static void store_get(struct metadata *m, const char *key, struct meta_call *c)
{
    submit(store_of(m), request_new(GET, key, c));
}

static void store_txn(struct metadata *m, const struct meta_op *ops, size_t n, struct meta_call *c)
{
    struct request *r = request_new(TXN, NULL, c);

    r->ops = mem_alloc((n ? n : 1) * sizeof *r->ops);
    r->n = n;
    for (size_t i = 0; i < n; i++) {
        r->ops[i] = ops[i];
        r->ops[i].key = mem_string(ops[i].key);
        r->bytes += strlen(ops[i].key) + ops[i].value.len;
    }
    submit(store_of(m), r);
}

static void store_put(struct metadata *m, const char *key, struct slice value, int64_t expected,
                      struct meta_call *c)
{
    store_txn(m,
              &(struct meta_op){.kind = META_PUT, .key = key, .value = value, .expected = expected},
              1, c);
}

static void store_remove(struct metadata *m, const char *key, int64_t expected, struct meta_call *c)
{
    store_txn(m, &(struct meta_op){.kind = META_REMOVE, .key = key, .expected = expected}, 1, c);
}

static void store_range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                        bool keys_only, struct meta_call *c)
{
    struct request *r = request_new(RANGE, prefix, c);

    r->after = after ? mem_string(after) : NULL;
    r->limit = limit;
    r->keys_only = keys_only;
    submit(store_of(m), r);
}

static void store_hold(struct metadata *m, const char *key, struct slice value, struct meta_call *c)
{
    struct request *r = request_new(HOLD, key, c);

    r->value = value;
    r->bytes += value.len;
    submit(store_of(m), r);
}

static void store_release(struct metadata *m, const char *key, struct meta_call *c)
{
    submit(store_of(m), request_new(RELEASE, key, c));
}

static void store_counter(struct metadata *m, const char *key, int64_t n, struct meta_call *c)
{
    struct request *r = request_new(COUNTER, key, c);

    r->count = n;
    submit(store_of(m), r);
}

static void store_watch(struct metadata *m, const char *prefix, struct meta_watch *w)
{
    watch_add(store_of(m)->hub, prefix, w);
}

static void store_unwatch(struct metadata *m, struct meta_watch *w)
{
    watch_remove(store_of(m)->hub, w);
}

static void store_close(struct metadata *m)
{
    struct store *s = store_of(m);

    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    watch_hub_drop(&s->hub);
    struct shelf *shelf = s->stage.shelf;
    stage_end(&s->stage);
    shelf->ops->close(shelf);
    pthread_cond_destroy(&s->more);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static const struct meta_ops ops = {
    .get = store_get,
    .put = store_put,
    .remove = store_remove,
    .range = store_range,
    .txn = store_txn,
    .hold = store_hold,
    .release = store_release,
    .counter = store_counter,
    .watch = store_watch,
    .unwatch = store_unwatch,
    .close = store_close,
};

enum err store_open(struct metadata **out, struct shelf *shelf)
{
    struct store *s = mem_new(struct store);
    int failed;

    s->metadata.ops = &ops;
    stage_init(&s->stage, shelf);
    list_init(&s->group);
    list_init(&s->queue);
    s->hub = watch_hub_new();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    failed = pthread_create(&s->thread, NULL, run, s);
    if (failed) {
        log_event(LOG_ERROR, "metadata.failed", F_STR("what", "thread"), F_ERRNO(failed));
        watch_hub_drop(&s->hub);
        mem_free(s);
        shelf->ops->close(shelf);
        return err_of_errno(failed);
    }
    pthread_setname_np(s->thread, "metadata");
    *out = &s->metadata;
    return ERR_OK;
}
