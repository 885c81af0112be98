#include "broker/managed_ledger/ml_node.h"

#include <assert.h>
#include <string.h>

enum { RETRY_US = 20 * 1000, RETRY_STEPS = 6 };

void ml_node_init(struct ml_node *n, const struct ml_node_ops *ops, int64_t version)
{
    *n = (struct ml_node){.ops = ops, .version = version};
    list_init(&n->waiting);
    list_init(&n->written);
}

void ml_node_clear(struct ml_node *n)
{
    assert(n->state == ML_NODE_IDLE || n->state == ML_NODE_FENCED);
    slice_drop(&n->value);
}

static void start(struct ml_node *n)
{
    if (n->state != ML_NODE_IDLE || list_empty(&n->waiting))
        return;
    while (!list_empty(&n->waiting))
        list_push_back(&n->written, list_pop_front(&n->waiting));
    n->state = ML_NODE_WRITING;
    n->tries = 0;
    n->value = n->ops->render(n);
    n->ops->put(n, slice_share(n->value), n->version);
}

static void answer(struct list_node *saves, enum err err)
{
    struct list_node mine;

    list_init(&mine);
    while (!list_empty(saves))
        list_push_back(&mine, list_pop_front(saves));
    while (!list_empty(&mine)) {
        struct ml_save *s = list_entry(list_pop_front(&mine), struct ml_save, node);
        s->done(s, err);
    }
}

static void settle(struct ml_node *n, enum err err, int64_t version)
{
    slice_drop(&n->value);
    n->version = version;
    n->state = err == ERR_FENCED ? ML_NODE_FENCED : ML_NODE_IDLE;
    if (!err)
        n->ops->stored(n);
    answer(&n->written, err);
    if (n->state == ML_NODE_FENCED)
        answer(&n->waiting, err);
    start(n);
}

static void again(struct ml_node *n, enum ml_node_state how)
{
    unsigned steps = n->tries < RETRY_STEPS ? n->tries : RETRY_STEPS;

    if (n->hurry) {
        settle(n, ERR_UNKNOWN_STATE, n->version);
        return;
    }
    n->state = how;
    n->tries++;
    n->ops->delay(n, (uint64_t)RETRY_US << steps);
}

enum err ml_node_save(struct ml_node *n, struct ml_save *s)
{
    if (n->state == ML_NODE_FENCED)
        return ERR_FENCED;
    list_push_back(&n->waiting, &s->node);
    start(n);
    return ERR_OK;
}

void ml_node_hurry(struct ml_node *n, bool on)
{
    n->hurry = on;
}

void ml_node_put_done(struct ml_node *n, enum err err, int64_t version)
{
    assert(n->state == ML_NODE_WRITING);
    if (!err) {
        settle(n, ERR_OK, version);
    } else if (err == ERR_NOT_READY) {
        again(n, ML_NODE_WRITING);
    } else if (err == ERR_BAD_VERSION && n->tries == 0) {
        settle(n, ERR_FENCED, n->version);
    } else if (err == ERR_BAD_VERSION || err_class(err) == CLASS_RETRY) {
        /* An earlier try, or this one, may have gone through. */
        again(n, ML_NODE_CHECKING);
    } else {
        settle(n, err, n->version);
    }
}

static bool is_ours(const struct ml_node *n, struct slice value, int64_t version)
{
    return version == n->version + 1 && value.len == n->value.len &&
           (value.len == 0 || memcmp(value.base, n->value.base, value.len) == 0);
}

void ml_node_got(struct ml_node *n, enum err err, struct slice value, int64_t version)
{
    assert(n->state == ML_NODE_CHECKING);
    if (err && err_class(err) == CLASS_RETRY) {
        again(n, ML_NODE_CHECKING);
    } else if (!err && is_ours(n, value, version)) {
        settle(n, ERR_OK, version);
    } else if (!err && version == n->version) {
        n->state = ML_NODE_WRITING;
        n->ops->put(n, slice_share(n->value), n->version);
    } else {
        settle(n, ERR_FENCED, n->version);
    }
}

void ml_node_delayed(struct ml_node *n)
{
    if (n->state == ML_NODE_WRITING)
        n->ops->put(n, slice_share(n->value), n->version);
    else if (n->state == ML_NODE_CHECKING)
        n->ops->get(n);
}
