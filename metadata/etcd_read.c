/* What asks and changes nothing: get and range. */
#include <string.h>

#include "common/log.h"
#include "metadata/etcd_call.h"

enum {
    PAGE = 1000,
    PAGE_BYTES_MAX = 24 * 1024 * 1024,
    RANGE_BYTES_MAX = 16 * 1024 * 1024,
    RANGE_TRY_US = 1000000
};

static bool starts(struct etcd_call *c)
{
    (void)c;
    return true;
}

static Etcd__RangeResponse *read_answer(struct etcd_call *c, struct view message)
{
    Etcd__RangeResponse *r = etcd__range_response__unpack(NULL, message.len, message.base);

    if (r)
        etcd_call_heard(c, r->header);
    return r;
}

static struct slice value_of(const Etcd__KeyValue *kv)
{
    return slice_copy(kv->value.data, kv->value.len);
}

/* ---- get ------------------------------------------------------------------------------------ */

static struct slice ask_get(struct etcd_call *c)
{
    Etcd__RangeRequest m = ETCD__RANGE_REQUEST__INIT;

    m.key = etcd_text(c->key);
    return etcd_pack(&m.base);
}

static void got(struct etcd_call *c, struct view message)
{
    Etcd__RangeResponse *r = read_answer(c, message);
    enum err e = !r ? ERR_MALFORMED : r->n_kvs == 0 ? ERR_NOT_FOUND : ERR_OK;

    if (r && r->header) {
        etcd_show(c->etcd, &c->answer->reply, r->header->revision);
        c->answer->reply.store = r->header->cluster_id;
    }
    if (!e) {
        c->answer->reply.value = value_of(r->kvs[0]);
        c->answer->reply.version = r->kvs[0]->version - 1;
    }
    if (r)
        etcd__range_response__free_unpacked(r, NULL);
    etcd_call_end(c, e);
}

static const struct etcd_kind get_kind = {.path = "/etcdserverpb.KV/Range",
                                          .start = starts,
                                          .ask = ask_get,
                                          .answered = got,
                                          .failed = etcd_call_end};

void etcd_get(struct metadata *m, const char *key, struct meta_call *caller)
{
    struct etcd_call *c = etcd_call_new(etcd_of(m), &get_kind, caller);

    c->key = etcd_key(c->etcd->root, key);
    c->bytes += strlen(key);
    etcd_call_submit(c);
}

/* ---- range ---------------------------------------------------------------------------------- */

static bool start_range(struct etcd_call *c)
{
    c->page = PAGE;
    return true;
}

/* One more than is wanted tells whether there is more. */
static struct slice ask_page(struct etcd_call *c)
{
    Etcd__RangeRequest m = ETCD__RANGE_REQUEST__INIT;
    size_t wanted = c->limit - c->answer->reply.count;

    m.key = (ProtobufCBinaryData){.len = c->span.from_len, .data = c->span.from};
    m.range_end = (ProtobufCBinaryData){.len = c->span.to_len, .data = c->span.to};
    m.limit = (int64_t)(wanted < c->page ? wanted + 1 : c->page);
    m.revision = c->at_revision;
    m.keys_only = c->keys_only;
    return etcd_pack(&m.base);
}

/* False: enough. */
static bool take(struct etcd_call *c, const Etcd__KeyValue *kv)
{
    struct answer *a = c->answer;
    char *key = etcd_key_shown(c->etcd->root, view_of(kv->key.data, kv->key.len));

    if (!key)
        return true;
    if (a->reply.count == c->limit || c->got_bytes > RANGE_BYTES_MAX) {
        a->reply.more = true;
        mem_free(key);
        return false;
    }
    c->got_bytes += kv->key.len + kv->value.len;
    answer_item(a, key, c->keys_only ? (struct slice){0} : value_of(kv), kv->version - 1);
    mem_free(key);
    return true;
}

static bool take_page(struct etcd_call *c, const Etcd__RangeResponse *r)
{
    if (r->header && !c->at_revision) {
        c->at_revision = r->header->revision;
        etcd_show(c->etcd, &c->answer->reply, r->header->revision);
        c->answer->reply.store = r->header->cluster_id;
    }
    for (size_t i = 0; i < r->n_kvs; i++)
        if (!take(c, r->kvs[i]))
            return false;
    if (r->n_kvs == 0)
        return false;
    const Etcd__KeyValue *last = r->kvs[r->n_kvs - 1];
    etcd_span_after(&c->span, view_of(last->key.data, last->key.len));
    return r->more;
}

static void got_page(struct etcd_call *c, struct view message)
{
    Etcd__RangeResponse *r = read_answer(c, message);
    bool more = r && take_page(c, r);

    if (r)
        etcd__range_response__free_unpacked(r, NULL);
    if (more)
        etcd_rpc_again(&c->rpc);
    else
        etcd_call_end(c, r ? ERR_OK : ERR_MALFORMED);
}

/* A page that is too large is asked for in smaller ones.  What was read of a revision that has
 * been compacted meanwhile does not fit what can be read now: all over again. */
static void no_page(struct etcd_call *c, enum err e)
{
    if (e == ERR_TOO_BIG && c->page > 1) {
        c->page /= 8;
        if (c->page == 0)
            c->page = 1;
        etcd_rpc_again(&c->rpc);
    } else if (e == ERR_END && c->at_revision) {
        answer_clear(c->answer);
        c->got_bytes = 0;
        c->at_revision = 0;
        etcd_span_drop(&c->span);
        c->span = etcd_span_of("", c->prefix, c->after);
        etcd_rpc_again(&c->rpc);
    } else {
        etcd_call_end(c, e);
    }
}

static const struct etcd_kind range_kind = {.path = "/etcdserverpb.KV/Range",
                                            .answer_max = PAGE_BYTES_MAX,
                                            .timeout_us = RANGE_TRY_US,
                                            .start = start_range,
                                            .ask = ask_page,
                                            .answered = got_page,
                                            .failed = no_page};

void etcd_range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                bool keys_only, struct meta_call *caller)
{
    struct etcd_call *c = etcd_call_new(etcd_of(m), &range_kind, caller);

    c->prefix = etcd_key(c->etcd->root, prefix);
    c->span = etcd_span_of(c->etcd->root, prefix, after);
    c->after = after ? etcd_key(c->etcd->root, after) : NULL;
    c->limit = limit;
    c->keys_only = keys_only;
    c->bytes += strlen(prefix);
    etcd_call_submit(c);
}
