#include "broker/managed_ledger/ml_node.h"

#include <assert.h>
#include <string.h>

#include "metadata/metadata.h"

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

static void look(struct ml_node *n)
{
    n->state = ML_NODE_CHECKING;
    n->ops->get(n);
}

/* All who wait share it. */
static void write(struct ml_node *n)
{
    while (!list_empty(&n->waiting))
        list_push_back(&n->written, list_pop_front(&n->waiting));
    n->state = ML_NODE_WRITING;
    n->tries = 0;
    n->writes = true;
    slice_drop(&n->value);
    n->value = n->ops->render(n);
    n->ops->put(n, slice_share(n->value), n->version);
}

static void start(struct ml_node *n)
{
    if (n->state != ML_NODE_IDLE)
        return;
    if (n->doubted) {
        n->doubted = false;
        n->unsure = true;
        n->tries = 0;
        look(n);
    } else if (!list_empty(&n->waiting)) {
        write(n);
    }
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
    bool wrote = n->writes, unsure = n->unsure;

    slice_drop(&n->value);
    n->version = version;
    n->writes = n->unsure = false;
    n->state = err == ERR_FENCED ? ML_NODE_FENCED : ML_NODE_IDLE;
    if (!err && wrote)
        n->ops->stored(n);
    if (unsure)
        n->ops->sure(n, err);
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

void ml_node_look(struct ml_node *n)
{
    if (n->state == ML_NODE_FENCED)
        return;
    n->doubted = true;
    start(n);
}

void ml_node_put_done(struct ml_node *n, enum err err, int64_t version)
{
    assert(n->state == ML_NODE_WRITING);
    if (!err) {
        settle(n, ERR_OK, version);
    } else if (err == ERR_NOT_READY) {
        again(n, ML_NODE_WRITING);
    } else if (err == ERR_BAD_VERSION && n->tries == 0) {
        look(n);
    } else if (err == ERR_BAD_VERSION || err_class(err) == CLASS_RETRY) {
        /* An earlier try, or this one, may have gone through. */
        again(n, ML_NODE_CHECKING);
    } else {
        settle(n, err, n->version);
    }
}

static bool is_ours(const struct ml_node *n, struct slice value, int64_t version)
{
    return n->writes && version == n->version + 1 && value.len == n->value.len &&
           (value.len == 0 || memcmp(value.base, n->value.base, value.len) == 0);
}

static void same(struct ml_node *n)
{
    if (!n->writes) {
        settle(n, ERR_OK, n->version);
        return;
    }
    n->state = ML_NODE_WRITING;
    n->ops->put(n, slice_share(n->value), n->version);
}

static void behind(struct ml_node *n, int64_t version)
{
    n->version = version;
    n->unsure = true;
    n->state = ML_NODE_MENDING;
    n->ops->mend(n);
}

void ml_node_got(struct ml_node *n, enum err err, struct slice value, int64_t version)
{
    bool absent = err == ERR_NOT_FOUND;

    assert(n->state == ML_NODE_CHECKING);
    if (err && err_class(err) == CLASS_RETRY) {
        again(n, ML_NODE_CHECKING);
        return;
    }
    if (!err && is_ours(n, value, version)) {
        settle(n, ERR_OK, version);
        return;
    }
    version = absent ? META_ABSENT : version;
    switch (err && !absent ? KIN_OTHER : n->ops->judge(n, absent ? NULL : &value, version)) {
    case KIN_SAME:
        same(n);
        break;
    case KIN_BEHIND:
        behind(n, version);
        break;
    case KIN_OTHER:
        settle(n, ERR_FENCED, n->version);
        break;
    }
}

/* What is written is what is so now: it may have changed while that was made sure of. */
void ml_node_mended(struct ml_node *n, enum err err)
{
    assert(n->state == ML_NODE_MENDING);
    if (err)
        again(n, ML_NODE_MENDING);
    else
        write(n);
}

void ml_node_delayed(struct ml_node *n)
{
    if (n->state == ML_NODE_WRITING)
        n->ops->put(n, slice_share(n->value), n->version);
    else if (n->state == ML_NODE_CHECKING)
        n->ops->get(n);
    else if (n->state == ML_NODE_MENDING)
        n->ops->mend(n);
}
