#include <string.h>

#include "bookie/bytes.h"
#include "bookie/request.h"
#include "common/mem.h"
#include "proto/bookkeeper.pb-c.h"

static const char no_auth[] = "AuthDisabledPlugin";

static void send_answer(struct session *s, const struct bookie_v3_answer *a, struct slice body)
{
    uint8_t front[BOOKIE_V3_FRONT];
    const size_t n = bookie_v3_write(front, a);
    uint8_t *into = session_front_room(s, n);
    if (into)
        memcpy(into, front, n);
    session_send_body(s, body);
}

static struct bookie_v3_answer answer_to(const struct bookie_v3 *v3, const struct bookie_request *q)
{
    return (struct bookie_v3_answer){.operation = v3->operation,
                                     .txn = v3->txn,
                                     .ledger = q->ledger,
                                     .entry = q->entry,
                                     .total = -1,
                                     .free_space = -1};
}

/* ---- what needs no ledger ------------------------------------------------------------------- */

static void answer_now(struct session *s, const struct bookie_v3 *v3,
                       const struct bookie_request *q, int32_t status)
{
    struct bookie_v3_answer a = answer_to(v3, q);
    a.status = status;
    if (q->op == BOOKIE_AUTH)
        a.small = view_of(no_auth, sizeof no_auth - 1);
    send_answer(s, &a, (struct slice){0});
}

static void start_tls(struct session *s, const struct bookie_v3 *v3, const struct bookie_request *q)
{
    const bool can = s->station->handlers->conf.tls && !s->is_secure;
    answer_now(s, v3, q, can ? BOOKIE_OK : BOOKIE_BAD_REQUEST);
    if (can)
        session_secure(s);
}

static void answer_info(struct session *s, const struct bookie_v3 *v3,
                        const struct bookie_request *q)
{
    const struct handlers_conf *conf = &s->station->handlers->conf;
    struct bookie_v3_answer a = answer_to(v3, q);
    uint64_t free_bytes = 0, total = 0;
    a.status = err_to_bookie(conf->space(conf->space_ctx, &free_bytes, &total));
    if (v3->requested & BOOKIE_INFO_TOTAL)
        a.total = (int64_t)total;
    if (v3->requested & BOOKIE_INFO_FREE)
        a.free_space = (int64_t)free_bytes;
    send_answer(s, &a, (struct slice){0});
}

/* ---- what needs one ------------------------------------------------------------------------- */

static void begin(struct session *s, const struct bookie_v3 *v3, const struct bookie_request *q,
                  struct slice frame)
{
    struct request *r = request_new(s, q);
    r->v3 = mem_new(struct v3_part);
    r->v3->head = *v3;
    r->v3->request = r;
    list_init(&r->v3->polling);
    if (q->op == BOOKIE_ADD || q->op == BOOKIE_WRITE_LAC)
        r->body = slice_part(frame, (size_t)(q->body.base - frame.base), q->body.len);
    if (q->op == BOOKIE_ADD)
        r->lac = (int64_t)get_u64(q->body.base + 16);
    request_send(r);
}

static void dispatch(struct session *s, const struct bookie_v3 *v3, const struct bookie_request *q,
                     struct slice frame)
{
    switch (q->op) {
    case BOOKIE_NOTHING:
        answer_now(s, v3, q, BOOKIE_BAD_REQUEST);
        break;
    case BOOKIE_START_TLS:
        start_tls(s, v3, q);
        break;
    case BOOKIE_AUTH:
        answer_now(s, v3, q, BOOKIE_OK);
        break;
    case BOOKIE_INFO:
        answer_info(s, v3, q);
        break;
    case BOOKIE_ADD:
    case BOOKIE_WRITE_LAC:
        if (q->has_key)
            begin(s, v3, q, frame);
        else
            answer_now(s, v3, q, BOOKIE_EUA);
        break;
    default:
        begin(s, v3, q, frame);
    }
}

void v3_frame(struct session *s, struct slice frame)
{
    struct bookie_request q;
    struct bookie_v3 v3;
    const enum err err = bookie_v3_read(slice_view(frame), &q, &v3);
    if (err == ERR_UNSUPPORTED_VERSION)
        answer_now(s, &v3, &q, BOOKIE_BAD_VERSION);
    else if (err)
        session_turn_away(s, "bookie.refused_frame", "not a request of protocol version 3");
    else
        dispatch(s, &v3, &q, frame);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void finish_read(struct request *r)
{
    struct v3_part *p = r->v3;
    const bool is_missing = r->status == BOOKIE_NO_ENTRY;
    if (p->head.wants_next && is_missing && r->ledger) {
        r->status = BOOKIE_OK; /* that the LAC is higher is an answer without the entry too */
        r->head.entry = -1;
    }
    if (r->status || !r->ledger)
        return;
    p->has_lac = true;
    p->max_lac = r->ledger->row.lac;
}

static void finish_read_lac(struct request *r)
{
    struct v3_part *p = r->v3;
    if ((r->status && r->status != BOOKIE_NO_ENTRY) || !r->ledger)
        return;
    p->explicit_len = r->ledger->row.explicit_len;
    memcpy(p->explicit_lac, r->ledger->row.explicit_lac, p->explicit_len);
    if (p->explicit_len > 0)
        r->status = BOOKIE_OK;
}

void v3_finishing(struct request *r)
{
    if (r->head.op == BOOKIE_READ)
        finish_read(r);
    else if (r->head.op == BOOKIE_READ_LAC)
        finish_read_lac(r);
}

void v3_answer(struct request *r)
{
    struct v3_part *p = r->v3;
    struct bookie_v3_answer a = answer_to(&p->head, &r->head);
    if (r->answer.len > 0 && session_has_too_much(r->session)) {
        slice_drop(&r->answer);
        r->status = BOOKIE_TOO_MANY;
    }
    a.status = r->status;
    a.has_lac = p->has_lac && !r->status;
    a.max_lac = p->max_lac;
    a.small = view_of(p->explicit_lac, r->status ? 0 : p->explicit_len);
    a.body_len = r->answer.len;
    send_answer(r->session, &a, r->answer);
    mem_free(p);
}
