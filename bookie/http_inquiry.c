#include "bookie/http_inquiry.h"

#include <string.h>

#include "common/mem.h"

enum { PAGE = 1000 };

struct inquiry *inquiry_new(struct http_admin *a, struct http_request *r)
{
    struct inquiry *q = mem_new(struct inquiry);
    q->admin = a;
    q->request = r;
    q->to = INT64_MAX;
    http_calls_count(a, 1);
    return q;
}

static void end(struct inquiry *q, enum err err)
{
    struct http_admin *a = q->admin;
    if (err)
        http_reply_reason(q->request, 503, "the metadata store cannot be asked: %s", err_text(err));
    else
        q->finish(q);
    json_object_put(q->answer);
    mem_free(q);
    http_calls_count(a, -1);
}

void inquiry_reply(struct inquiry *q)
{
    http_reply_json(q->request, json_object_get(q->answer));
}

void inquiry_refuse(struct inquiry *q, const char *why)
{
    struct http_admin *a = q->admin;
    http_reply_reason(q->request, 400, "%s", why);
    json_object_put(q->answer);
    mem_free(q);
    http_calls_count(a, -1);
}

static void ask(struct inquiry *q, const char *after);

static void ask_next(struct inquiry *q)
{
    if (++q->at < q->n)
        ask(q, NULL);
    else
        end(q, ERR_OK);
}

static void got(struct meta_call *call, const struct meta_reply *r)
{
    struct inquiry *q = container_of(call, struct inquiry, call);
    const struct question *now = &q->questions[q->at];
    const struct meta_item item = {.key = now->key, .value = r->value, .version = r->version};
    if (r->err && r->err != ERR_NOT_FOUND) {
        end(q, r->err);
        return;
    }
    if (!r->err)
        now->take(q, &item);
    ask_next(q);
}

static void listed(struct meta_call *call, const struct meta_reply *r)
{
    struct inquiry *q = container_of(call, struct inquiry, call);
    if (r->err) {
        end(q, r->err);
        return;
    }
    for (size_t i = 0; i < r->count; i++)
        q->questions[q->at].take(q, &r->items[i]);
    if (r->more && r->count > 0)
        ask(q, r->items[r->count - 1].key);
    else
        ask_next(q);
}

static void ask(struct inquiry *q, const char *after)
{
    const struct question *now = &q->questions[q->at];
    q->call =
        (struct meta_call){.home = q->admin->loop, .done = now->ask == ASK_KEY ? got : listed};
    if (now->ask == ASK_KEY)
        meta_get(q->admin->meta, now->key, &q->call);
    else
        meta_range(q->admin->meta, now->key, after, PAGE, now->ask == ASK_KEYS, &q->call);
}

void inquiry_ask(struct inquiry *q, const struct question *questions, unsigned n,
                 void (*finish)(struct inquiry *q))
{
    q->questions = questions;
    q->n = n;
    q->at = 0;
    q->finish = finish;
    ask(q, NULL);
}

static void was_put(struct meta_call *call, const struct meta_reply *r)
{
    end(container_of(call, struct inquiry, call), r->err);
}

void inquiry_put(struct inquiry *q, const char *key, struct slice value)
{
    q->call = (struct meta_call){.home = q->admin->loop, .done = was_put};
    meta_put(q->admin->meta, key, value, META_ANY, &q->call);
}

static void was_removed(struct meta_call *call, const struct meta_reply *r)
{
    end(container_of(call, struct inquiry, call), r->err == ERR_NOT_FOUND ? ERR_OK : r->err);
}

void inquiry_remove(struct inquiry *q, const char *key)
{
    q->call = (struct meta_call){.home = q->admin->loop, .done = was_removed};
    meta_remove(q->admin->meta, key, META_ANY, &q->call);
}
