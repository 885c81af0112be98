#include "ledger/bookie_link.h"

#include <assert.h>
#include <string.h>

#include "common/conn.h"
#include "common/log.h"
#include "common/mem.h"
#include "proto/bookie_v3.h"

enum {
    INFO_LEDGER = -1, /* in the table, of what concerns none */
    TABLE_FIRST = 64,
    REST_FIRST_US = 100 * 1000,
    REST_MAX_US = 5 * 1000 * 1000,
    DIAL_US = 3 * 1000 * 1000,
    BATCHES_AGAIN_US = 600 * 1000 * 1000, /* it may be a newer one by then */
    BATCH_FRONT =
        12,        /* what the answer to a batch read has in front of an entry, and a read's not */
    ADD_COST = 512 /* what an add holds besides the bytes of its frame */
};

enum link_state {
    LINK_IDLE,
    LINK_GREETING, /* dialling, and until the bookie has answered AUTH */
    LINK_READY,
    LINK_RESTING,
    LINK_GONE /* dropped while the task was posted, which ends it */
};

/* Frames wait for the greeting. */
struct parcel {
    struct list_node node;
    struct chain frame;
};

struct bookie_link {
    struct loop *loop;
    char *name, *host;
    uint16_t port;
    struct link_conf conf;
    enum link_state state;
    struct conn *conn;
    struct list_node parcels;
    size_t parcel_bytes;
    size_t add_bytes; /* of adds without an answer */
    uint64_t rest_us, rested_at;
    uint64_t heard_at;    /* the last frame from the bookie */
    int64_t batch_number; /* of the last batch read */
    bool knows_batches;   /* it has answered one, and has not closed a connection over any since */
    uint64_t batches_at;  /* it is not asked for any before */
    unsigned count, buckets; /* requests under way; a power of two */
    struct list_node *table;
    struct list_node adds, reads; /* each in order of deadline: the timeout is the same for all */
    struct list_node refused;     /* fail as soon as the caller's stack is gone */
    struct task refuse;
    bool refusing; /* the task waits */
    struct timer sweep;
};

/* ---- the table ---- */

/* Entries that follow each other lie side by side: they are asked and answered in a row. */
static struct list_node *bucket(const struct bookie_link *b, uint8_t op, int64_t ledger, entry_id e)
{
    uint64_t h = (uint64_t)ledger * 0x9e3779b97f4a7c15u + op;

    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return &b->table[((h >> 32) + (uint64_t)e) & (b->buckets - 1)];
}

static void table_make(struct bookie_link *b, unsigned buckets)
{
    b->buckets = buckets;
    b->table = mem_alloc(buckets * sizeof *b->table);
    for (unsigned i = 0; i < buckets; i++)
        list_init(&b->table[i]);
}

static void table_grow(struct bookie_link *b)
{
    struct list_node *old = b->table;
    unsigned n = b->buckets;

    table_make(b, 2 * n);
    for (unsigned i = 0; i < n; i++) {
        struct list_node *node;
        while ((node = list_pop_front(&old[i]))) {
            struct link_request *q = list_entry(node, struct link_request, by_key);
            list_push_back(bucket(b, q->op, q->ledger, q->entry), node);
        }
    }
    mem_free(old);
}

static struct link_request *find(const struct bookie_link *b, uint8_t op, int64_t ledger,
                                 entry_id e, int64_t number)
{
    list_each(bucket(b, op, ledger, e), node)
    {
        struct link_request *q = list_entry(node, struct link_request, by_key);
        if (q->op == op && q->ledger == ledger && q->entry == e && q->number == number)
            return q;
    }
    return NULL;
}

static void sweep_later(struct bookie_link *b);

static void enter(struct bookie_link *b, struct link_request *q)
{
    struct list_node *queue = q->op == BOOKIE_ADD ? &b->adds : &b->reads;

    if (b->count++ == 2 * b->buckets)
        table_grow(b);
    list_push_back(bucket(b, q->op, q->ledger, q->entry), &q->by_key);
    list_push_back(queue, &q->by_time);
    b->add_bytes += q->size;
    if (!timer_armed(&b->sweep))
        sweep_later(b);
}

static void leave(struct link_request *q)
{
    list_remove(&q->by_key);
    list_remove(&q->by_time);
    q->link->count--;
    q->link->add_bytes -= q->size;
    q->link = NULL;
}

static void finish(struct link_request *q, enum err err, struct slice body)
{
    leave(q);
    q->done(q, err, body);
}

/* ---- deadlines ---- */

static struct link_request *first_of(struct list_node *queue)
{
    return list_empty(queue) ? NULL : list_entry(queue->next, struct link_request, by_time);
}

static void sweep_later(struct bookie_link *b)
{
    struct link_request *add = first_of(&b->adds), *read = first_of(&b->reads);
    uint64_t now = loop_now(b->loop), due = UINT64_MAX;

    if (add)
        due = add->due_us;
    if (read && read->due_us < due)
        due = read->due_us;
    if (due != UINT64_MAX)
        loop_after(b->loop, &b->sweep, due > now ? due - now : 0);
}

/* ---- failing ---- */

static void end(struct bookie_link *b)
{
    mem_free(b->table);
    mem_free(b->name);
    mem_free(b->host);
    mem_free(b);
}

static void refuse_now(struct task *t)
{
    struct bookie_link *b = container_of(t, struct bookie_link, refuse);
    struct list_node mine;
    struct list_node *node;

    b->refusing = false;
    if (b->state == LINK_GONE) {
        end(b);
        return;
    }
    list_init(&mine);
    while ((node = list_pop_front(&b->refused)))
        list_push_back(&mine, node);
    while ((node = list_pop_front(&mine))) {
        struct link_request *q = list_entry(node, struct link_request, by_time);
        finish(q, q->err, (struct slice){0});
    }
}

static void refuse_later(struct bookie_link *b, struct link_request *q, enum err err)
{
    b->count++;
    q->size = 0; /* its bytes are gone */
    q->err = err;
    list_init(&q->by_key);
    list_push_back(&b->refused, &q->by_time);
    if (!b->refusing)
        loop_post(b->loop, &b->refuse);
    b->refusing = true;
}

static void drop_parcels(struct bookie_link *b)
{
    struct list_node *node;

    while ((node = list_pop_front(&b->parcels))) {
        struct parcel *p = list_entry(node, struct parcel, node);
        chain_drop(&p->frame);
        mem_free(p);
    }
    b->parcel_bytes = 0;
}

static void fail_all(struct list_node *queue, enum err err)
{
    struct list_node mine;
    struct list_node *node;

    list_init(&mine);
    while ((node = list_pop_front(queue))) {
        list_remove(&list_entry(node, struct link_request, by_time)->by_key);
        list_push_back(&mine, node);
    }
    while ((node = list_pop_front(&mine)))
        finish(list_entry(node, struct link_request, by_time), err, (struct slice){0});
}

/* One that was there may be dialled again at once; one that could not be reached rests. */
static void rest(struct bookie_link *b)
{
    if (b->state == LINK_READY) {
        b->state = LINK_IDLE;
        return;
    }
    b->state = LINK_RESTING;
    b->rest_us = b->rest_us ? 2 * b->rest_us : REST_FIRST_US;
    if (b->rest_us > REST_MAX_US)
        b->rest_us = REST_MAX_US;
    b->rested_at = loop_now(b->loop) + b->rest_us;
}

/* ---- batch reads ---- */

static bool is_batch(const struct link_request *q)
{
    return q->op == BOOKIE_BATCH_READ;
}

/* It was closed, or silent, over this one. */
static void batch_failed(struct bookie_link *b)
{
    if (!b->knows_batches) {
        log_event(LOG_INFO, "bookie.without_batches", F_STR("bookie", b->name),
                  F_U64("again_us", BATCHES_AGAIN_US));
        b->batches_at = loop_now(b->loop) + BATCHES_AGAIN_US;
    }
    b->knows_batches = false;
}

static enum err why_lost(struct bookie_link *b, bool was_ready)
{
    bool has_batches = false;

    list_each(&b->reads, node) has_batches |=
        is_batch(list_entry(node, struct link_request, by_time));
    if (!was_ready || !has_batches)
        return ERR_IO;
    const bool knew = b->knows_batches;

    batch_failed(b);
    return knew ? ERR_IO : ERR_UNSUPPORTED_VERSION;
}

static bool denies_batches(const struct bookie_response *r)
{
    return r->status == BOOKIE_BAD_REQUEST || r->status == BOOKIE_BAD_VERSION;
}

/* Its number is cut off the body.  A refusal may come without one. */
static struct link_request *batch_of(struct bookie_link *b, struct bookie_response *r)
{
    int64_t number = b->batch_number;

    if (bookie_batch_id(&r->body, &number) && !r->status)
        return NULL;
    if (denies_batches(r))
        batch_failed(b);
    else
        b->knows_batches = true;
    return find(b, r->op, r->ledger, r->entry, number);
}

bool link_takes_batches(const struct bookie_link *b)
{
    return b->batches_at <= loop_now(b->loop);
}

static void lost(struct bookie_link *b, enum err why)
{
    const enum err err = why_lost(b, b->state == LINK_READY);

    rest(b);
    log_event(LOG_WARN, "bookie.disconnected", F_STR("bookie", b->name), F_ERR(why),
              F_U64("rest_us", b->rest_us));
    drop_parcels(b);
    fail_all(&b->adds, ERR_IO);
    fail_all(&b->reads, err);
}

static unsigned expire(struct bookie_link *b, struct list_node *queue)
{
    struct link_request *q;
    unsigned n = 0;

    while ((q = first_of(queue)) && q->due_us <= loop_now(b->loop)) {
        log_event(LOG_WARN, "bookie.timed_out", F_STR("bookie", b->name),
                  F_I64("ledger", q->ledger), F_I64("entry", q->entry));
        if (is_batch(q) && !b->knows_batches)
            batch_failed(b);
        finish(q, ERR_TIMEOUT, (struct slice){0});
        n++;
    }
    return n;
}

/* Not a word since a request that is overdue now was made: the other end may be gone without
 * a trace, and a new connection will tell. */
static bool is_silent(const struct bookie_link *b)
{
    uint64_t limit = b->conf.add_timeout_us < b->conf.read_timeout_us ? b->conf.add_timeout_us
                                                                      : b->conf.read_timeout_us;

    return b->conn && b->heard_at + limit <= loop_now(b->loop);
}

static void sweep(struct timer *t)
{
    struct bookie_link *b = container_of(t, struct bookie_link, sweep);
    unsigned overdue = expire(b, &b->adds) + expire(b, &b->reads);

    if (overdue > 0 && is_silent(b)) {
        conn_close(&b->conn);
        lost(b, ERR_TIMEOUT);
    }
    if (!timer_armed(&b->sweep))
        sweep_later(b);
}

/* ---- the connection ---- */

static void greeted(struct bookie_link *b)
{
    struct list_node *node;

    b->state = LINK_READY;
    b->rest_us = 0;
    log_event(LOG_INFO, "bookie.connected", F_STR("bookie", b->name));
    while ((node = list_pop_front(&b->parcels))) {
        struct parcel *p = list_entry(node, struct parcel, node);
        conn_send_chain(b->conn, &p->frame);
        mem_free(p);
    }
    b->parcel_bytes = 0;
}

static void on_reply(struct bookie_link *b, struct bookie_response *r, struct slice frame)
{
    const bool batch = r->op == BOOKIE_BATCH_READ;
    struct link_request *q = batch ? batch_of(b, r) : find(b, r->op, r->ledger, r->entry, 0);
    struct slice body = {.slab = frame.slab, .base = r->body.base, .len = r->body.len};
    enum err err = bookie_status_to_err(r->status);

    if (batch && denies_batches(r))
        err = ERR_UNSUPPORTED_VERSION;
    if (q) /* else it was given up: its deadline has passed, or its owner is gone */
        finish(q, err, body);
}

/* The one thing that is asked in version 3. */
static bool is_info(const struct bookie_link *b, struct slice frame)
{
    return b->state == LINK_READY && frame.len > 0 && frame.base[0] == BOOKIE_V3_FIRST_BYTE;
}

static void on_info(struct bookie_link *b, struct slice frame)
{
    struct link_request *q = find(b, BOOKIE_INFO, INFO_LEDGER, INFO_LEDGER, 0);

    if (q)
        finish(q, ERR_OK, frame);
}

static void on_frame(void *ctx, struct slice frame)
{
    struct bookie_link *b = ctx;
    struct bookie_response r;

    b->heard_at = loop_now(b->loop);
    if (is_info(b, frame)) {
        on_info(b, frame);
        slice_drop(&frame);
        return;
    }
    enum err err = bookie_response_read(slice_view(frame), &r);

    if (err || (b->state == LINK_GREETING && r.op != BOOKIE_AUTH)) {
        log_event(LOG_WARN, "bookie.misspoke", F_STR("bookie", b->name), F_ERR(err));
        conn_close(&b->conn);
        lost(b, ERR_MALFORMED);
    } else if (r.op != BOOKIE_AUTH) {
        on_reply(b, &r, frame);
    } else if (b->state == LINK_GREETING) {
        greeted(b);
    }
    slice_drop(&frame);
}

static void on_closed(void *ctx, enum err why)
{
    struct bookie_link *b = ctx;

    b->conn = NULL;
    lost(b, why);
}

static const struct conn_handler handler = {.frame = on_frame, .closed = on_closed};

static void dial(struct bookie_link *b)
{
    struct conn_conf conf = {.frame_max = BOOKIE_FRAME_MAX + BATCH_FRONT,
                             .write_high = SIZE_MAX, /* LINK_BYTES_MAX bounds it; always read */
                             .tls = b->conf.tls,
                             .dial_timeout_us = DIAL_US,
                             .tls_name = b->conf.tls ? b->host : NULL};

    b->state = LINK_GREETING;
    b->heard_at = loop_now(b->loop);
    b->conn = conn_dial(b->loop, b->host, b->port, &conf, &handler, b);
    conn_send(b->conn, bookie_auth_request());
}

static enum err wake(struct bookie_link *b)
{
    if (!b->host)
        return ERR_NOT_READY;
    if (b->state == LINK_RESTING && loop_now(b->loop) < b->rested_at)
        return ERR_NOT_READY;
    if (b->state == LINK_IDLE || b->state == LINK_RESTING)
        dial(b);
    if (conn_waiting(b->conn) + b->parcel_bytes > LINK_BYTES_MAX)
        return ERR_BUSY;
    return ERR_OK;
}

/* One that is frozen takes bytes without an end: what nobody waits for any more is not kept. */
static bool has_no_room(const struct bookie_link *b, const struct link_request *q)
{
    return q->op == BOOKIE_ADD && b->add_bytes > 0 &&
           b->add_bytes + q->size > b->conf.add_bytes_max;
}

static void send_frame(struct bookie_link *b, struct view front, const struct chain *rest)
{
    if (b->state == LINK_READY) {
        conn_send_behind(b->conn, front, rest);
        return;
    }
    struct parcel *p = mem_new(struct parcel);
    chain_push(&p->frame, slice_copy(front.base, front.len));
    for (unsigned i = 0; i < rest->n; i++)
        chain_push(&p->frame, slice_share(rest->at[i]));
    b->parcel_bytes += chain_len(&p->frame);
    list_push_back(&b->parcels, &p->node);
}

static void request(struct bookie_link *b, struct link_request *q, struct view front,
                    const struct chain *rest)
{
    enum err err = wake(b);

    if (!err && has_no_room(b, q))
        err = ERR_BUSY;
    if (err) {
        refuse_later(b, q, err);
        return;
    }
    q->due_us = loop_now(b->loop) +
                (q->op == BOOKIE_ADD ? b->conf.add_timeout_us : b->conf.read_timeout_us);
    enter(b, q);
    send_frame(b, front, rest);
}

void link_add(struct bookie_link *b, struct link_request *q, int64_t ledger, entry_id e,
              struct view front, const struct chain *rest)
{
    q->link = b;
    q->op = BOOKIE_ADD;
    q->number = 0;
    q->ledger = ledger;
    q->entry = e;
    q->size = (uint32_t)(front.len + chain_len(rest)) + ADD_COST;
    request(b, q, front, rest);
}

void link_read(struct bookie_link *b, struct link_request *q, uint16_t flags, int64_t ledger,
               entry_id e, const uint8_t key[MASTER_KEY_SIZE])
{
    static const struct chain nothing;
    uint8_t bytes[BOOKIE_FENCE_SIZE];
    const size_t n = bookie_write_read(bytes, flags, ledger, e, key);

    q->link = b;
    q->op = BOOKIE_READ;
    q->number = 0;
    q->size = 0;
    q->ledger = ledger;
    q->entry = e;
    request(b, q, view_of(bytes, n), &nothing);
}

void link_read_batch(struct bookie_link *b, struct link_request *q, int64_t ledger, entry_id first,
                     unsigned n, size_t max_bytes)
{
    static const struct chain nothing;
    uint8_t bytes[BOOKIE_BATCH_SIZE];

    q->link = b;
    q->op = BOOKIE_BATCH_READ;
    q->number = ++b->batch_number;
    q->size = 0;
    q->ledger = ledger;
    q->entry = first;
    bookie_write_batch_read(bytes, ledger, first, q->number, (int32_t)n, (int64_t)max_bytes);
    request(b, q, view_of(bytes, sizeof bytes), &nothing);
}

void link_info(struct bookie_link *b, struct link_request *q)
{
    static const struct chain nothing;
    struct slice frame = bookie_info_request();

    q->link = b;
    q->op = BOOKIE_INFO;
    q->number = 0;
    q->size = 0;
    q->ledger = q->entry = INFO_LEDGER;
    request(b, q, slice_view(frame), &nothing);
    slice_drop(&frame);
}

bool link_is_down(const struct bookie_link *b)
{
    return !b->host || (b->state == LINK_RESTING && loop_now(b->loop) < b->rested_at);
}

void link_cancel(struct link_request *q)
{
    if (q->link)
        leave(q);
}

/* ---- life ---- */

struct bookie_link *link_new(struct loop *l, const char *name, const struct link_conf *conf)
{
    struct bookie_link *b = mem_new(struct bookie_link);

    b->loop = l;
    b->name = mem_string(name);
    b->conf = *conf;
    if (!b->conf.add_bytes_max)
        b->conf.add_bytes_max = LINK_BYTES_MAX;
    table_make(b, TABLE_FIRST);
    list_init(&b->adds);
    list_init(&b->reads);
    list_init(&b->refused);
    list_init(&b->parcels);
    b->refuse.run = refuse_now;
    b->sweep.run = sweep;
    return b;
}

void link_set_address(struct bookie_link *b, const char *host, uint16_t port)
{
    bool same = b->host && strcmp(b->host, host) == 0 && b->port == port;

    b->rested_at = 0;
    b->rest_us = 0;
    b->batches_at = 0;
    if (same)
        return;
    mem_free(b->host);
    b->host = mem_string(host);
    b->port = port;
    if (!b->conn)
        return;
    conn_close(&b->conn);
    lost(b, ERR_CLOSED);
    b->rested_at = 0;
}

void link_drop(struct bookie_link **link)
{
    struct bookie_link *b = *link;

    *link = NULL;
    if (!b)
        return;
    assert(b->count == 0);
    loop_cancel(b->loop, &b->sweep);
    if (b->conn)
        conn_close(&b->conn);
    drop_parcels(b);
    b->state = LINK_GONE;
    if (!b->refusing)
        end(b);
}
