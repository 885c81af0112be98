#include "metadata/metadata.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/reply.h"

static enum err check_key(const char *key)
{
    size_t len = strlen(key);

    if (len == 0)
        return ERR_INVALID_NAME;
    return len > META_KEY_MAX ? ERR_TOO_BIG : ERR_OK;
}

static enum err check_put(const char *key, struct slice value)
{
    TRY(check_key(key));
    return value.len > META_VALUE_MAX ? ERR_TOO_BIG : ERR_OK;
}

/* True when the call has been refused. */
static bool refused(struct meta_call *c, enum err e)
{
    c->times = NULL;
    if (e)
        answer_error(c, e);
    return e != ERR_OK;
}

static void begins(struct metadata *m, struct meta_call *c, enum meta_kind kind)
{
    c->times = &m->times[kind];
    c->began_us = loop_clock();
}

void meta_get(struct metadata *m, const char *key, struct meta_call *c)
{
    if (!refused(c, check_key(key))) {
        begins(m, c, META_READS);
        m->ops->get(m, key, c);
    }
}

void meta_put(struct metadata *m, const char *key, struct slice value, int64_t expected,
              struct meta_call *c)
{
    if (refused(c, check_put(key, value))) {
        slice_drop(&value);
    } else {
        begins(m, c, META_WRITES);
        m->ops->put(m, key, value, expected, c);
    }
}

void meta_remove(struct metadata *m, const char *key, int64_t expected, struct meta_call *c)
{
    if (!refused(c, check_key(key))) {
        begins(m, c, META_REMOVES);
        m->ops->remove(m, key, expected, c);
    }
}

void meta_range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                bool keys_only, struct meta_call *c)
{
    bool long_key = strlen(prefix) > META_KEY_MAX || (after && strlen(after) > META_KEY_MAX);

    if (!refused(c, long_key ? ERR_TOO_BIG : ERR_OK)) {
        begins(m, c, META_READS);
        m->ops->range(m, prefix, after, limit, keys_only, c);
    }
}

static enum err check_txn(const struct meta_op *ops, size_t n)
{
    if (n > META_OPS_MAX)
        return ERR_TOO_BIG;
    for (size_t i = 0; i < n; i++)
        TRY(check_put(ops[i].key, ops[i].value));
    return ERR_OK;
}

void meta_txn(struct metadata *m, const struct meta_op *ops, size_t n, struct meta_call *c)
{
    if (!refused(c, check_txn(ops, n))) {
        begins(m, c, META_WRITES);
        m->ops->txn(m, ops, n, c);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct slice value = ops[i].value;
        slice_drop(&value);
    }
}

void meta_hold(struct metadata *m, const char *key, struct slice value, struct meta_call *c)
{
    if (refused(c, check_put(key, value))) {
        slice_drop(&value);
    } else {
        begins(m, c, META_WRITES);
        m->ops->hold(m, key, value, c);
    }
}

void meta_release(struct metadata *m, const char *key, struct meta_call *c)
{
    if (!refused(c, check_key(key))) {
        begins(m, c, META_REMOVES);
        m->ops->release(m, key, c);
    }
}

void meta_counter(struct metadata *m, const char *key, int64_t n, struct meta_call *c)
{
    enum err e = check_key(key);

    if (!e && n < 1)
        e = ERR_NOT_ALLOWED;
    if (!refused(c, e)) {
        begins(m, c, META_WRITES);
        m->ops->counter(m, key, n, c);
    }
}

void meta_watch(struct metadata *m, const char *prefix, struct meta_watch *w)
{
    m->ops->watch(m, prefix, w);
}

void meta_unwatch(struct metadata *m, struct meta_watch *w)
{
    assert(loop_is_mine(w->home));
    m->ops->unwatch(m, w);
}

/* That a key is not there is an answer. */
void meta_note(const struct meta_call *c, enum err err)
{
    if (!c->times)
        return;
    const bool good = err == ERR_OK || err == ERR_NOT_FOUND;
    histogram_note(good ? &c->times->good : &c->times->failed, loop_clock() - c->began_us);
}

void meta_render_times(const struct metadata *m, struct text *t, const char *labels)
{
    static const char name[] = "pulsar_metadata_store_ops_latency_ms";
    static const char *const types[META_KINDS] = {"get", "put", "del"};

    metric_head(t, name, "histogram", "ms of an operation of the metadata store");
    for (unsigned k = 0; k < META_KINDS; k++) {
        for (unsigned good = 0; good < 2; good++) {
            struct text all = {0};
            text_add(&all, "%s,name=\"metadata-store\",type=\"%s\",status=\"%s\"", labels, types[k],
                     good ? "success" : "fail");
            histogram_lines(t, name, good ? &m->times[k].good : &m->times[k].failed, all.at, 1e3);
            text_drop(&all);
        }
    }
}

void meta_close(struct metadata **m)
{
    if (*m)
        (*m)->ops->close(*m);
    *m = NULL;
}
