#include "ledger/bookie_racks.h"

#include <assert.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { RETRY_FIRST_US = 100 * 1000, RETRY_MAX_US = 5 * 1000 * 1000 };

struct bookie_racks {
    struct loop *loop;
    struct metadata *meta;
    struct bookies *table; /* NULL: dropped while a call is under way, which ends it */
    bool asking, stale;    /* stale: ask again when it is answered */
    uint64_t retry_us;
    struct meta_call call;
    struct meta_watch watch;
    struct timer retry;
};

static void place(void *ctx, const struct bookie_place *p)
{
    struct bookie_racks *r = ctx;

    bookies_place(r->table, p->bookie, p->group, p->rack);
}

static void look_only(void *ctx, const struct bookie_place *p)
{
    (void)ctx;
    (void)p;
}

/* What cannot be read changes nothing. */
static void learn(struct bookie_racks *r, struct view value)
{
    enum err err = bookie_racks_read(value, look_only, NULL);

    if (err) {
        log_event(LOG_WARN, "bookie.racks_unreadable", F_STR("key", PATH_BOOKIE_RACKS), F_ERR(err));
    } else {
        bookies_unplace(r->table);
        err = bookie_racks_read(value, place, r);
        assert(!err);
    }
    bookies_placed(r->table);
}

static void ask(struct bookie_racks *r);

static void answered(struct meta_call *c, const struct meta_reply *reply)
{
    struct bookie_racks *r = container_of(c, struct bookie_racks, call);

    r->asking = false;
    if (!r->table) {
        mem_free(r);
        return;
    }
    if (reply->err == ERR_OK || reply->err == ERR_NOT_FOUND) {
        r->retry_us = 0;
        learn(r, reply->err ? (struct view){0} : slice_view(reply->value));
    } else {
        r->retry_us = r->retry_us ? 2 * r->retry_us : RETRY_FIRST_US;
        if (r->retry_us > RETRY_MAX_US)
            r->retry_us = RETRY_MAX_US;
        loop_after(r->loop, &r->retry, r->retry_us);
    }
    if (r->stale)
        ask(r);
}

static void ask(struct bookie_racks *r)
{
    r->stale = r->asking;
    if (r->asking)
        return;
    loop_cancel(r->loop, &r->retry);
    r->asking = true;
    r->call = (struct meta_call){.home = r->loop, .done = answered};
    meta_get(r->meta, PATH_BOOKIE_RACKS, &r->call);
}

static void retry_now(struct timer *t)
{
    ask(container_of(t, struct bookie_racks, retry));
}

static void changed(struct meta_watch *w, const struct meta_change *c)
{
    if (c->kind == META_CHANGED_UNSURE || strcmp(c->key, PATH_BOOKIE_RACKS) == 0)
        ask(container_of(w, struct bookie_racks, watch));
}

struct bookie_racks *bookie_racks_new(struct loop *l, struct metadata *meta, struct bookies *table)
{
    struct bookie_racks *r = mem_new(struct bookie_racks);

    r->loop = l;
    r->meta = meta;
    r->table = table;
    r->retry.run = retry_now;
    r->watch = (struct meta_watch){.home = l, .changed = changed};
    meta_watch(meta, PATH_BOOKIE_RACKS, &r->watch);
    ask(r);
    return r;
}

void bookie_racks_drop(struct bookie_racks **racks)
{
    struct bookie_racks *r = *racks;

    *racks = NULL;
    if (!r)
        return;
    meta_unwatch(r->meta, &r->watch);
    loop_cancel(r->loop, &r->retry);
    r->table = NULL;
    if (!r->asking)
        mem_free(r);
}
