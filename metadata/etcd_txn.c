#include "metadata/etcd_txn.h"

#include <assert.h>
#include <string.h>

enum { ARENA_MAX = 1024 * 1024 }; /* the steps only: what they say is borrowed */

ProtobufCBinaryData etcd_text(const char *s)
{
    return (ProtobufCBinaryData){.len = strlen(s), .data = (uint8_t *)(uintptr_t)s};
}

struct slice etcd_pack(const ProtobufCMessage *m)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    struct slab *s = slab_new(len ? len : 1);

    protobuf_c_message_pack(m, slab_bytes(s));
    return slice_take(&s, len);
}

void etcd_txn_begin(struct etcd_txn *t)
{
    t->arena = arena_new(ARENA_MAX);
    t->n = t->then.n = t->otherwise.n = 0;
}

static void *new_in(struct etcd_txn *t, size_t size)
{
    void *p = arena_alloc(t->arena, size);

    assert(p);
    return p;
}

static Etcd__Compare *condition(struct etcd_txn *t, const char *key, Etcd__Compare__Target target,
                                Etcd__Compare__Result result)
{
    Etcd__Compare *c = new_in(t, sizeof *c);

    assert(t->n < ETCD_TXN_MAX);
    etcd__compare__init(c);
    c->key = etcd_text(key);
    c->target = target;
    c->result = result;
    t->conditions[t->n++] = c;
    return c;
}

void etcd_txn_if_version(struct etcd_txn *t, const char *key, int64_t shown)
{
    Etcd__Compare *c =
        condition(t, key, ETCD__COMPARE__TARGET__VERSION, ETCD__COMPARE__RESULT__EQUAL);

    c->than_case = ETCD__COMPARE__THAN_VERSION;
    c->version = shown + 1;
}

static void if_created(struct etcd_txn *t, const char *key, Etcd__Compare__Result than_zero)
{
    Etcd__Compare *c = condition(t, key, ETCD__COMPARE__TARGET__CREATE, than_zero);

    c->than_case = ETCD__COMPARE__THAN_CREATE_REVISION;
    c->create_revision = 0;
}

void etcd_txn_if_absent(struct etcd_txn *t, const char *key)
{
    if_created(t, key, ETCD__COMPARE__RESULT__EQUAL);
}

void etcd_txn_if_present(struct etcd_txn *t, const char *key)
{
    if_created(t, key, ETCD__COMPARE__RESULT__GREATER);
}

void etcd_txn_if_lease(struct etcd_txn *t, const char *key, int64_t lease)
{
    Etcd__Compare *c =
        condition(t, key, ETCD__COMPARE__TARGET__LEASE, ETCD__COMPARE__RESULT__EQUAL);

    c->than_case = ETCD__COMPARE__THAN_LEASE;
    c->lease = lease;
}

void etcd_txn_if_unchanged(struct etcd_txn *t, const char *key, int64_t since)
{
    Etcd__Compare *c = condition(t, key, ETCD__COMPARE__TARGET__MOD, ETCD__COMPARE__RESULT__LESS);

    c->than_case = ETCD__COMPARE__THAN_MOD_REVISION;
    c->mod_revision = since + 1;
}

static Etcd__RequestOp *step(struct etcd_txn *t, struct etcd_steps *where,
                             Etcd__RequestOp__RequestCase kind)
{
    Etcd__RequestOp *op = new_in(t, sizeof *op);

    assert(where->n < ETCD_TXN_MAX);
    etcd__request_op__init(op);
    op->request_case = kind;
    where->at[where->n++] = op;
    return op;
}

void etcd_txn_put(struct etcd_txn *t, const char *key, struct slice value, int64_t lease)
{
    Etcd__PutRequest *put = new_in(t, sizeof *put);

    etcd__put_request__init(put);
    put->key = etcd_text(key);
    put->value = (ProtobufCBinaryData){.len = value.len, .data = (uint8_t *)(uintptr_t)value.base};
    put->lease = lease == ETCD_KEEP_LEASE ? 0 : lease;
    put->ignore_lease = lease == ETCD_KEEP_LEASE;
    step(t, &t->then, ETCD__REQUEST_OP__REQUEST_PUT)->put = put;
}

void etcd_txn_delete(struct etcd_txn *t, const char *key)
{
    Etcd__DeleteRangeRequest *d = new_in(t, sizeof *d);

    etcd__delete_range_request__init(d);
    d->key = etcd_text(key);
    step(t, &t->then, ETCD__REQUEST_OP__REQUEST_DELETE_RANGE)->delete_range = d;
}

void etcd_txn_read(struct etcd_txn *t, struct etcd_steps *where, const char *key, bool value_too)
{
    Etcd__RangeRequest *r = new_in(t, sizeof *r);

    etcd__range_request__init(r);
    r->key = etcd_text(key);
    r->keys_only = !value_too;
    step(t, where, ETCD__REQUEST_OP__REQUEST_RANGE)->range = r;
}

struct slice etcd_txn_end(struct etcd_txn *t)
{
    Etcd__TxnRequest m = ETCD__TXN_REQUEST__INIT;

    m.compare = t->conditions;
    m.n_compare = t->n;
    m.success = t->then.at;
    m.n_success = t->then.n;
    m.failure = t->otherwise.at;
    m.n_failure = t->otherwise.n;
    struct slice packed = etcd_pack(&m.base);
    arena_drop(&t->arena);
    return packed;
}
