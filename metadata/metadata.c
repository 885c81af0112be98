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
    if (e)
        answer_error(c, e);
    return e != ERR_OK;
}

void meta_get(struct metadata *m, const char *key, struct meta_call *c)
{
    if (!refused(c, check_key(key)))
        m->ops->get(m, key, c);
}

void meta_put(struct metadata *m, const char *key, struct slice value, int64_t expected,
              struct meta_call *c)
{
    if (refused(c, check_put(key, value)))
        slice_drop(&value);
    else
        m->ops->put(m, key, value, expected, c);
}

void meta_remove(struct metadata *m, const char *key, int64_t expected, struct meta_call *c)
{
    if (!refused(c, check_key(key)))
        m->ops->remove(m, key, expected, c);
}

void meta_range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                bool keys_only, struct meta_call *c)
{
    bool long_key = strlen(prefix) > META_KEY_MAX || (after && strlen(after) > META_KEY_MAX);

    if (!refused(c, long_key ? ERR_TOO_BIG : ERR_OK))
        m->ops->range(m, prefix, after, limit, keys_only, c);
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
    if (refused(c, check_put(key, value)))
        slice_drop(&value);
    else
        m->ops->hold(m, key, value, c);
}

void meta_release(struct metadata *m, const char *key, struct meta_call *c)
{
    if (!refused(c, check_key(key)))
        m->ops->release(m, key, c);
}

void meta_counter(struct metadata *m, const char *key, int64_t n, struct meta_call *c)
{
    enum err e = check_key(key);

    if (!e && n < 1)
        e = ERR_NOT_ALLOWED;
    if (!refused(c, e))
        m->ops->counter(m, key, n, c);
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

void meta_close(struct metadata **m)
{
    if (*m)
        (*m)->ops->close(*m);
    *m = NULL;
}
