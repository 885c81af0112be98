#include "tests/lib/fake_bookie.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/conn.h"
#include "common/list.h"
#include "common/listener.h"
#include "common/mem.h"
#include "proto/bookie_v3.h"

struct stored {
    struct list_node node;
    int64_t ledger, entry;
    struct slice bytes;
};

struct fence {
    struct list_node node;
    int64_t ledger;
};

struct visitor {
    struct list_node node;
    struct fake_bookie *bookie;
    struct conn *conn;
    struct list_node late; /* answers */
};

/* An answer that takes its time. */
struct late {
    struct list_node node;
    struct timer timer;
    struct visitor *visitor;
    struct bookie_request request;
    int32_t status;
};

struct fake_bookie {
    struct loop *loop;
    struct listener *listener;
    char id[64];
    struct fake_bookie_knobs knobs;
    struct list_node stored, fences, visitors;
};

static struct stored *find(const struct fake_bookie *b, int64_t ledger, int64_t entry)
{
    struct stored *best = NULL;

    list_each(&b->stored, node)
    {
        struct stored *s = list_entry(node, struct stored, node);
        if (s->ledger != ledger)
            continue;
        if (s->entry == entry)
            return s;
        if (entry == -1 && (!best || s->entry > best->entry))
            best = s;
    }
    return best;
}

bool fake_bookie_is_fenced(const struct fake_bookie *b, int64_t ledger)
{
    list_each(&b->fences,
              node) if (list_entry(node, struct fence, node)->ledger == ledger) return true;
    return false;
}

static void forget(struct stored *s)
{
    list_remove(&s->node);
    slice_drop(&s->bytes);
    mem_free(s);
}

static void store(struct fake_bookie *b, int64_t ledger, int64_t entry, struct view bytes)
{
    struct stored *s = find(b, ledger, entry);

    if (s && s->entry == entry)
        forget(s);
    s = mem_new(struct stored);
    s->ledger = ledger;
    s->entry = entry;
    s->bytes = slice_copy(bytes.base, bytes.len);
    list_push_back(&b->stored, &s->node);
}

static void answer(struct visitor *v, const struct bookie_request *q, int32_t status,
                   struct view body)
{
    uint8_t front[BOOKIE_RESPONSE_SIZE];

    if (v->bookie->knobs.mute)
        return;
    bookie_write_response(front, q->version, q->op, status, q->ledger, q->entry, body.len);
    conn_send(v->conn, slice_copy(front, sizeof front));
    if (body.len > 0)
        conn_send(v->conn, slice_copy(body.base, body.len));
}

static void answer_late(struct timer *t)
{
    struct late *l = container_of(t, struct late, timer);

    list_remove(&l->node);
    answer(l->visitor, &l->request, l->status, (struct view){0});
    mem_free(l);
}

static void answer_add(struct visitor *v, const struct bookie_request *q, int32_t status)
{
    struct late *l;

    if (v->bookie->knobs.add_us == 0) {
        answer(v, q, status, (struct view){0});
        return;
    }
    l = mem_new(struct late);
    *l = (struct late){.timer.run = answer_late, .visitor = v, .request = *q, .status = status};
    list_push_back(&v->late, &l->node);
    loop_after(v->bookie->loop, &l->timer, v->bookie->knobs.add_us);
}

static void on_add(struct visitor *v, const struct bookie_request *q)
{
    struct fake_bookie *b = v->bookie;
    int32_t status = BOOKIE_OK;

    if (!(q->flags & BOOKIE_RECOVERY_ADD) && fake_bookie_is_fenced(b, q->ledger))
        status = BOOKIE_FENCED;
    else if (fault_strikes(&b->knobs.on_add))
        status = b->knobs.add_status;
    else
        store(b, q->ledger, q->entry, q->body);
    answer_add(v, q, status);
}

static bool knows(const struct fake_bookie *b, int64_t ledger)
{
    return fake_bookie_is_fenced(b, ledger) || find(b, ledger, -1);
}

/* Writes the entry behind what is there; NO_ENTRY when it is not. */
static int32_t give(struct fake_bookie *b, int64_t ledger, int64_t entry, uint8_t *into,
                    size_t *len)
{
    const struct stored *s = find(b, ledger, entry);
    const size_t n = s ? s->bytes.len : 0;

    if (fault_strikes(&b->knobs.on_read))
        return b->knobs.read_status;
    if (!s)
        return knows(b, ledger) ? BOOKIE_NO_ENTRY : BOOKIE_NO_LEDGER;
    into[*len] = into[*len + 1] = 0;
    into[*len + 2] = (uint8_t)(n >> 8);
    into[*len + 3] = (uint8_t)n;
    memcpy(into + *len + 4, s->bytes.base, n);
    if (b->knobs.rotten)
        into[*len + 4 + n - 1] ^= 1;
    *len += 4 + n;
    return BOOKIE_OK;
}

/* Of small entries only. */
static void on_batch_read(struct visitor *v, const struct bookie_request *q)
{
    struct fake_bookie *b = v->bookie;
    const unsigned asked = (unsigned)q->max_count, most = b->knobs.batch_most;
    const size_t room = BOOKIE_BATCH_ID + (size_t)asked * 1024;
    struct slab *body = slab_new(room);
    uint8_t *into = slab_bytes(body);
    size_t len = BOOKIE_BATCH_ID;
    int32_t status = BOOKIE_OK;

    for (unsigned i = 0; i < BOOKIE_BATCH_ID; i++)
        into[i] = (uint8_t)((uint64_t)q->request_id >> (56 - 8 * i));
    unsigned n = 0;
    for (; n < asked && (!most || n < most) && len + 1024 <= room && !status; n++)
        status = give(b, q->ledger, q->entry + n, into, &len);
    answer(v, q, n > 1 ? BOOKIE_OK : status, view_of(into, len));
    slab_drop(&body);
}

static void leave(struct visitor *v);

/* The visitor may be gone then. */
static void on_batch(struct visitor *v, const struct bookie_request *q)
{
    struct fake_bookie *b = v->bookie;

    b->knobs.batch_reads++;
    if (b->knobs.batches == BATCHES_ANSWERED) {
        on_batch_read(v, q);
    } else if (b->knobs.batches == BATCHES_REFUSED) {
        answer(v, q, BOOKIE_BAD_REQUEST, (struct view){0});
    } else {
        conn_close(&v->conn);
        leave(v);
    }
}

static void on_read(struct visitor *v, const struct bookie_request *q)
{
    struct fake_bookie *b = v->bookie;

    b->knobs.reads++;
    if (q->flags & BOOKIE_DO_FENCING && !fake_bookie_is_fenced(b, q->ledger)) {
        struct fence *f = mem_new(struct fence);
        f->ledger = q->ledger;
        list_push_back(&b->fences, &f->node);
    }
    struct stored *s = find(b, q->ledger, q->entry);
    if (fault_strikes(&b->knobs.on_read)) {
        answer(v, q, b->knobs.read_status, (struct view){0});
    } else if (!s) {
        answer(v, q, knows(b, q->ledger) ? BOOKIE_NO_ENTRY : BOOKIE_NO_LEDGER, (struct view){0});
    } else {
        struct slice copy = slice_copy(s->bytes.base, s->bytes.len);
        if (b->knobs.rotten)
            slab_bytes(copy.slab)[copy.len - 1] ^= 1;
        answer(v, q, BOOKIE_OK, slice_view(copy));
        slice_drop(&copy);
    }
}

static void on_info(struct visitor *v, struct slice frame)
{
    const uint64_t space = v->bookie->knobs.free_space;
    uint8_t bytes[BOOKIE_V3_FRONT];
    struct bookie_request q;
    struct bookie_v3 v3;
    enum err err = bookie_v3_read(slice_view(frame), &q, &v3);

    assert(err == ERR_OK);
    assert(q.op == BOOKIE_INFO);
    const struct bookie_v3_answer a = {.operation = v3.operation,
                                       .txn = v3.txn,
                                       .status = space ? BOOKIE_OK : BOOKIE_EIO,
                                       .total = (v3.requested & BOOKIE_INFO_TOTAL) ? 1 : -1,
                                       .free_space = (int64_t)space};
    conn_send(v->conn, slice_copy(bytes, bookie_v3_write(bytes, &a)));
}

static void on_frame(void *ctx, struct slice frame)
{
    struct visitor *v = ctx;
    struct bookie_request q;

    if (frame.base[0] == BOOKIE_V3_FIRST_BYTE) {
        on_info(v, frame);
        slice_drop(&frame);
        return;
    }
    enum err err = bookie_request_read(slice_view(frame), &q);
    assert(err == ERR_OK);
    if (q.op == BOOKIE_AUTH)
        conn_send(v->conn, bookie_auth_response(q.version, "AuthDisabledPlugin"));
    else if (q.op == BOOKIE_ADD)
        on_add(v, &q);
    else if (q.op == BOOKIE_READ)
        on_read(v, &q);
    else if (q.op == BOOKIE_BATCH_READ)
        on_batch(v, &q);
    slice_drop(&frame);
}

static void leave(struct visitor *v)
{
    for (struct list_node *n; (n = list_pop_front(&v->late));) {
        struct late *l = list_entry(n, struct late, node);
        loop_cancel(v->bookie->loop, &l->timer);
        mem_free(l);
    }
    list_remove(&v->node);
    mem_free(v);
}

static void on_closed(void *ctx, enum err why)
{
    (void)why;
    leave(ctx);
}

static const struct conn_handler handler = {.frame = on_frame, .closed = on_closed};

static void accepted(void *ctx, int fd)
{
    struct fake_bookie *b = ctx;
    struct conn_conf conf = {.frame_max = BOOKIE_FRAME_MAX, .write_high = 64 << 20};
    struct visitor *v = mem_new(struct visitor);

    v->bookie = b;
    list_init(&v->late);
    list_push_back(&b->visitors, &v->node);
    v->conn = conn_accepted(b->loop, fd, &conf, &handler, v);
}

struct fake_bookie *fake_bookie_new(struct loop *l)
{
    struct fake_bookie *b = mem_new(struct fake_bookie);

    b->loop = l;
    list_init(&b->stored);
    list_init(&b->fences);
    list_init(&b->visitors);
    enum err err = listener_open(&b->listener, l, "127.0.0.1", 0, accepted, b);
    assert(err == ERR_OK);
    snprintf(b->id, sizeof b->id, "127.0.0.1:%u", (unsigned)listener_port(b->listener));
    return b;
}

struct fake_bookie_knobs *fake_bookie_knobs(struct fake_bookie *b)
{
    return &b->knobs;
}

const char *fake_bookie_id(const struct fake_bookie *b)
{
    return b->id;
}

void fake_bookie_cut(struct fake_bookie *b)
{
    list_each(&b->visitors, node)
    {
        struct visitor *v = list_entry(node, struct visitor, node);
        conn_close(&v->conn);
        leave(v);
    }
}

void fake_bookie_deaf(struct fake_bookie *b)
{
    if (b->listener)
        listener_close(&b->listener);
    fake_bookie_cut(b);
}

void fake_bookie_drop(struct fake_bookie **bookie)
{
    struct fake_bookie *b = *bookie;

    *bookie = NULL;
    fake_bookie_deaf(b);
    list_each(&b->stored, node) forget(list_entry(node, struct stored, node));
    list_each(&b->fences, node) mem_free(list_entry(node, struct fence, node));
    mem_free(b);
}

bool fake_bookie_has(const struct fake_bookie *b, int64_t ledger, int64_t entry)
{
    return find(b, ledger, entry) != NULL;
}

void fake_bookie_put(struct fake_bookie *b, const struct digest *d, const struct entry_header *h,
                     const char *payload)
{
    uint8_t bytes[512];
    size_t n, len = strlen(payload);

    entry_prefix_with(d, h, view_of(payload, len), bytes, &n);
    assert(n + len <= sizeof bytes);
    memcpy(bytes + n, payload, len);
    store(b, h->ledger, h->entry, view_of(bytes, n + len));
}

void fake_bookie_forget(struct fake_bookie *b, int64_t ledger, int64_t entry)
{
    struct stored *s = find(b, ledger, entry);

    if (s)
        forget(s);
}
