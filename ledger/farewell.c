#include "ledger/farewell.h"

#include "common/log.h"
#include "common/mem.h"
#include "ledger/handle.h"
#include "metadata/paths.h"

struct farewell {
    struct ledger_client *client;
    struct census *census;
    struct auditor *core;
    bool *closed; /* by number: it took nothing new when the audit began */
    uint32_t n, at;
    bool whole, asking, gone;
    struct meta_call call;
    void (*done)(void *ctx);
    void *ctx;
};

struct farewell *farewell_new(struct ledger_client *client, struct census *census,
                              void (*done)(void *ctx), void *ctx)
{
    struct farewell *f = mem_new(struct farewell);

    f->client = client;
    f->census = census;
    f->done = done;
    f->ctx = ctx;
    return f;
}

static void end(struct farewell *f)
{
    mem_free(f->closed);
    mem_free(f);
}

void farewell_drop(struct farewell **farewell)
{
    struct farewell *f = *farewell;

    *farewell = NULL;
    if (!f)
        return;
    f->gone = true;
    if (!f->asking)
        end(f);
}

static bool is_closed(const struct farewell *f, uint32_t i)
{
    return census_is_leaving(f->census, i) && !census_is_writable(f->census, i);
}

void farewell_began(struct farewell *f)
{
    f->n = census_count(f->census);
    f->closed = mem_resize(f->closed, (f->n + 1) * sizeof *f->closed);
    for (uint32_t i = 0; i < f->n; i++)
        f->closed[i] = is_closed(f, i);
}

static uint64_t now(const struct farewell *f)
{
    return loop_now(f->client->loop);
}

static bool may_go(struct farewell *f, uint32_t i)
{
    if (!census_is_leaving(f->census, i) || !census_cookie_goes(f->census, i) ||
        !auditor_is_empty(f->core, i))
        return false;
    if (f->whole && f->closed[i] && is_closed(f, i))
        return true;
    auditor_again(f->core, i, now(f));
    return false;
}

static void go_on(struct farewell *f);

static void removed(struct meta_call *c, const struct meta_reply *r)
{
    struct farewell *f = container_of(c, struct farewell, call);

    f->asking = false;
    if (f->gone) {
        end(f);
        return;
    }
    const char *id = census_id(f->census, f->at);
    if (r->err) {
        auditor_again(f->core, f->at, now(f));
        log_event(LOG_WARN, "auditor.cookie_kept", F_STR("bookie", id), F_ERR(r->err));
    } else {
        log_event(LOG_INFO, "auditor.cookie_removed", F_STR("bookie", id));
    }
    f->at++;
    go_on(f);
}

/* False: its id is none that a key can have. */
static bool take_away(struct farewell *f)
{
    char cookie[META_KEY_MAX], leaving[META_KEY_MAX];
    const char *id = census_id(f->census, f->at);

    if (path_cookie(id, cookie) || path_leaving(id, leaving))
        return false;
    const struct meta_op ops[] = {{.kind = META_REMOVE, .key = cookie, .expected = META_ANY},
                                  {.kind = META_REMOVE, .key = leaving, .expected = META_ANY}};
    f->asking = true;
    f->call = (struct meta_call){.home = f->client->loop, .done = removed};
    meta_txn(f->client->meta, ops, sizeof ops / sizeof *ops, &f->call);
    return true;
}

static void go_on(struct farewell *f)
{
    for (; f->at < f->n; f->at++)
        if (may_go(f, f->at) && take_away(f))
            return;
    f->done(f->ctx);
}

void farewell_run(struct farewell *f, struct auditor *core, bool whole)
{
    f->core = core;
    f->whole = whole;
    f->at = 0;
    go_on(f);
}
