#include "ledger/repair.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "ledger/copier.h"
#include "ledger/handle.h"
#include "metadata/paths.h"

enum { RATE_WAIT_US = 50 * 1000, SPARE_TRIES = 16 };

struct repair {
    struct ledger_client *client;
    int64_t id;
    struct repair_conf conf;
    struct repair_report *report;
    struct replicator core;
    struct layout layout;
    char path[META_KEY_MAX];
    struct meta_call meta;
    struct ledger_call open;
    struct copier copier;
    bool copying; /* to `to`; else comparing */
    struct fragment fragment;
    entry_id last;
    uint32_t to;
    struct list_node tries;
    struct timer rate;
    struct task copied, ended;
    enum err copy_err, err;
    unsigned pending; /* calls and tasks under way */
    bool over;        /* done, or given up */
    void (*done)(void *ctx, enum err err);
    void *ctx;
};

struct
try {
    struct list_node node;
    struct link_request q;
    struct repair *repair;
    unsigned slot;
};

/* An entry as it is stored: the copier's item. */
struct item {
    struct slice stored;
    struct view payload; /* in it */
    int64_t length;
};

static struct bookies *bookies_of(const struct repair *r)
{
    return r->client->bookies;
}

static void end_tries(struct repair *r)
{
    struct list_node *node;

    while ((node = list_pop_front(&r->tries))) {
        struct try *t = list_entry(node, struct try, node);
        link_cancel(&t->q);
        mem_free(t);
    }
}

static void release(struct repair *r)
{
    if (!r->over || r->pending > 0)
        return;
    loop_cancel(r->client->loop, &r->rate);
    copier_stop(&r->copier);
    end_tries(r);
    layout_drop(&r->layout);
    client_release(r->client);
    mem_free(r);
}

/* True: it is still wanted. */
static bool came_back(struct repair *r)
{
    r->pending--;
    if (!r->over)
        return true;
    release(r);
    return false;
}

/* ---- entries --------------------------------------------------------------------------------- */

static struct try *try_new(struct repair *r, unsigned slot)
{
    struct try *t = mem_new(struct try);

    t->repair = r;
    t->slot = slot;
    list_push_back(&r->tries, &t->node);
    return t;
}

static struct repair *try_end(struct try *t)
{
    struct repair *r = t->repair;

    list_remove(&t->node);
    mem_free(t);
    return r;
}

static void drop(void *ctx, void *item)
{
    struct item *i = item;

    (void)ctx;
    slice_drop(&i->stored);
    mem_free(i);
}

static bool same(void *ctx, const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    (void)ctx;
    return x->length == y->length && x->payload.len == y->payload.len &&
           memcmp(x->payload.base, y->payload.base, x->payload.len) == 0;
}

static void rate_take(struct repair *r, size_t bytes)
{
    if (r->conf.rate->bytes_per_s)
        r->conf.rate->left -= (int64_t)bytes;
}

static bool may(void *ctx)
{
    struct repair *r = ctx;
    struct repair_rate *rate = r->conf.rate;
    uint64_t now = loop_now(r->client->loop), since = now - rate->at_us;

    if (!rate->bytes_per_s)
        return true;
    since = since > 1000 * 1000 ? 1000 * 1000 : since;
    rate->at_us = now;
    rate->left += (int64_t)(since * (rate->bytes_per_s / 1000) / 1000);
    if (rate->left > (int64_t)rate->bytes_per_s)
        rate->left = (int64_t)rate->bytes_per_s;
    if (rate->left > 0)
        return true;
    if (!timer_armed(&r->rate))
        loop_after(r->client->loop, &r->rate, RATE_WAIT_US);
    return false;
}

static void rate_due(struct timer *t)
{
    copier_go(&container_of(t, struct repair, rate)->copier);
}

static void read_done(struct link_request *q, enum err err, struct slice body)
{
    struct try *t = container_of(q, struct try, q);
    unsigned slot = t->slot;
    entry_id e = q->entry;
    struct repair *r = try_end(t);
    struct entry_header h;
    struct view payload;

    if (!err)
        err = entry_open(&r->layout.digest, slice_view(body), r->id, e, &h, &payload);
    if (err == ERR_CHECKSUM)
        log_event(LOG_ERROR, "ledger.entry_corrupt", F_I64("ledger", r->id), F_I64("entry", e),
                  F_STR("bookie", bookies_id(bookies_of(r), r->fragment.bookie[slot])));
    if (err) {
        copier_failed(&r->copier, slot, e, err);
        return;
    }
    struct item *i = mem_new(struct item);
    i->stored = slice_share(body);
    i->payload = payload;
    i->length = h.length;
    rate_take(r, body.len);
    copier_found(&r->copier, slot, e, i);
}

static void read_from(void *ctx, unsigned slot, entry_id e)
{
    struct repair *r = ctx;
    struct try *t = try_new(r, slot);

    t->q.done = read_done;
    link_read(bookies_link(bookies_of(r), r->fragment.bookie[slot], LINK_PLAIN), &t->q,
              BOOKIE_HIGH_PRIORITY, r->id, e, NULL);
}

static void write_done(struct link_request *q, enum err err, struct slice body)
{
    struct try *t = container_of(q, struct try, q);
    unsigned slot = t->slot;
    entry_id e = q->entry;
    struct repair *r = try_end(t);

    (void)body;
    if (err && r->copying)
        bookies_suspect(bookies_of(r), r->to);
    r->report->entries += !err;
    copier_wrote(&r->copier, slot, e, err);
}

/* As a recovery's, so that a fenced ledger takes it and an old writer's key does not count. */
static void write_to(void *ctx, unsigned slot, entry_id e, void *item)
{
    struct repair *r = ctx;
    const struct item *i = item;
    struct try *t = try_new(r, slot);
    uint32_t bookie = r->copying ? r->to : r->fragment.bookie[slot];
    uint8_t front[BOOKIE_ADD_FRONT];
    const struct chain rest = {.n = 1, .at = {i->stored}};

    t->q.done = write_done;
    bookie_write_add(front, BOOKIE_RECOVERY_ADD, r->layout.key, i->stored.len);
    r->report->bytes += i->stored.len;
    link_add(bookies_link(bookies_of(r), bookie, LINK_RECOVERY), &t->q, r->id, e,
             view_of(front, sizeof front), &rest);
}

static void differ(void *ctx, entry_id e)
{
    struct repair *r = ctx;

    r->report->differ++;
    log_event(LOG_ERROR, "ledger.replicas_differ", F_I64("ledger", r->id), F_I64("entry", e));
}

static void lost(void *ctx, entry_id e)
{
    struct repair *r = ctx;

    r->report->lost++;
    log_event(LOG_ERROR, "ledger.entry_lost", F_I64("ledger", r->id), F_I64("entry", e));
}

static void *instead(void *ctx, entry_id e)
{
    struct repair *r = ctx;
    struct entry_header h = {.ledger = r->id, .entry = e, .lac = e - 1};
    uint8_t prefix[ENTRY_HEADER + DIGEST_SIZE_MAX];
    struct view payload;
    size_t n;

    if (!r->conf.instead || !r->conf.instead(r->conf.ctx, e, &payload, &h.length))
        return NULL;
    entry_prefix_with(&r->layout.digest, &h, payload, prefix, &n);
    struct slab *s = slab_new(n + payload.len);
    memcpy(slab_bytes(s), prefix, n);
    memcpy(slab_bytes(s) + n, payload.base, payload.len);
    struct item *i = mem_new(struct item);
    i->stored = slice_take(&s, n + payload.len);
    i->payload = view_of(i->stored.base + n, payload.len);
    i->length = h.length;
    return i;
}

static void copier_done(void *ctx, enum err err)
{
    struct repair *r = ctx;

    r->copy_err = err;
    r->pending++;
    loop_post(r->client->loop, &r->copied);
}

static const struct copier_effects copier_effects = {.may = may,
                                                     .read = read_from,
                                                     .write = write_to,
                                                     .same = same,
                                                     .drop = drop,
                                                     .differ = differ,
                                                     .lost = lost,
                                                     .instead = instead,
                                                     .done = copier_done};

static void note_copy(struct repair *r)
{
    const struct bookies *b = bookies_of(r);
    unsigned slot = r->copier.job.slot;

    log_event(r->copy_err ? LOG_WARN : LOG_INFO,
              r->copy_err ? "ledger.copy_failed" : "ledger.fragment_copied", F_I64("ledger", r->id),
              F_I64("first", r->fragment.first), F_I64("last", r->last),
              F_STR("from", bookies_id(b, r->fragment.bookie[slot])),
              F_STR("to", bookies_id(b, r->to)), F_U64("entries", r->copier.written),
              F_ERR(r->copy_err));
}

static void copied(struct task *t)
{
    struct repair *r = container_of(t, struct repair, copied);

    if (!came_back(r))
        return;
    loop_cancel(r->client->loop, &r->rate);
    end_tries(r);
    if (r->copying) {
        note_copy(r);
        replicator_copied(&r->core, r->copy_err);
    } else {
        replicator_compared(&r->core, r->copy_err, r->copier.written);
    }
}

/* ---- the replicator's effects ---------------------------------------------------------------- */

static void start_copier(struct repair *r, const struct fragment *f, entry_id last,
                         const struct copier_job *how)
{
    struct copier_job job = *how;

    r->fragment = *f;
    r->last = last;
    job.quorum = r->layout.facts.quorum;
    job.first = f->first;
    job.last = last;
    job.window = r->conf.window;
    copier_start(&r->copier, &job, &copier_effects, r);
}

static void copy(void *ctx, const struct fragment *f, entry_id last, unsigned slot, uint32_t to,
                 uint32_t avoid)
{
    struct repair *r = ctx;

    r->copying = true;
    r->to = to;
    start_copier(r, f, last,
                 &(struct copier_job){.what = COPIER_COPY, .slot = slot, .avoid = avoid});
}

static void compare(void *ctx, const struct fragment *f, entry_id last, bool sample)
{
    struct repair *r = ctx;

    r->copying = false;
    start_copier(r, f, last, &(struct copier_job){.what = COPIER_COMPARE, .sample = sample});
}

static void looked(struct meta_call *c, const struct meta_reply *reply)
{
    struct repair *r = container_of(c, struct repair, meta);
    enum err err = reply->err == ERR_NOT_FOUND ? ERR_NO_LEDGER : reply->err;

    if (!came_back(r))
        return;
    if (!err)
        err = layout_read(&r->layout, bookies_of(r), slice_view(reply->value), reply->version);
    replicator_saw(&r->core, err, &r->layout.facts, r->layout.fragments, r->layout.n);
}

static void look(void *ctx)
{
    struct repair *r = ctx;

    r->pending++;
    r->meta = (struct meta_call){.home = r->client->loop, .done = looked};
    meta_get(r->client->meta, r->path, &r->meta);
}

static void changed(struct meta_call *c, const struct meta_reply *reply)
{
    struct repair *r = container_of(c, struct repair, meta);

    if (!came_back(r))
        return;
    r->report->moved += !reply->err;
    replicator_changed(&r->core, reply->err);
}

static void change(void *ctx, unsigned fragment, unsigned slot, uint32_t to)
{
    struct repair *r = ctx;

    r->pending++;
    r->meta = (struct meta_call){.home = r->client->loop, .done = changed};
    meta_put(r->client->meta, r->path, layout_moved(&r->layout, bookies_of(r), fragment, slot, to),
             r->layout.version, &r->meta);
}

static void recovered(struct ledger_call *c, enum err err, struct ledger *l)
{
    struct repair *r = container_of(c, struct repair, open);

    ledger_drop(&l);
    if (came_back(r))
        replicator_recovered(&r->core, err);
}

static void recover(void *ctx)
{
    struct repair *r = ctx;

    r->pending++;
    r->open = (struct ledger_call){.done = recovered};
    ledger_open(r->client, r->id, LEDGER_OPEN_RECOVER, &r->open);
}

static bool is_bad(void *ctx, uint32_t bookie)
{
    struct repair *r = ctx;

    return r->conf.is_bad(r->conf.ctx, bookies_id(bookies_of(r), bookie));
}

/* One that is registered may be on its way out: it is avoided from then on. */
static bool spare(void *ctx, const uint32_t *members, unsigned slot, uint32_t *out)
{
    struct repair *r = ctx;
    const struct bookies_wish wish = layout_wish(&r->layout);

    for (unsigned i = 0; i < SPARE_TRIES; i++) {
        if (!bookies_replace(bookies_of(r), &wish, members, slot, true, out))
            return false;
        if (!is_bad(r, *out))
            return true;
        bookies_suspect(bookies_of(r), *out);
    }
    return false;
}

static void ended(struct task *t)
{
    struct repair *r = container_of(t, struct repair, ended);

    if (!came_back(r))
        return;
    r->over = true;
    void (*done)(void *ctx, enum err err) = r->done;
    void *ctx = r->ctx;
    enum err err = r->err;
    release(r);
    done(ctx, err);
}

static void core_done(void *ctx, enum err err)
{
    struct repair *r = ctx;

    r->err = err;
    r->pending++;
    loop_post(r->client->loop, &r->ended);
}

static const struct replicator_effects effects = {.look = look,
                                                  .is_bad = is_bad,
                                                  .spare = spare,
                                                  .copy = copy,
                                                  .change = change,
                                                  .recover = recover,
                                                  .compare = compare,
                                                  .done = core_done};

struct repair *repair_start(struct ledger_client *c, int64_t ledger, struct replicator_how how,
                            const struct repair_conf *conf, struct repair_report *report,
                            void (*done)(void *ctx, enum err err), void *ctx)
{
    struct repair *r = mem_new(struct repair);

    client_hold(c);
    r->client = c;
    r->id = ledger;
    r->conf = *conf;
    r->report = report;
    r->done = done;
    r->ctx = ctx;
    r->rate.run = rate_due;
    r->copied.run = copied;
    r->ended.run = ended;
    r->copier.effects = &copier_effects;
    list_init(&r->tries);
    if (path_ledger(ledger, r->path))
        core_done(r, ERR_NO_LEDGER);
    else
        replicator_start(&r->core, how, &effects, r);
    return r;
}

void repair_abandon(struct repair **repair)
{
    struct repair *r = *repair;

    *repair = NULL;
    if (!r)
        return;
    r->over = true;
    loop_cancel(r->client->loop, &r->rate);
    copier_stop(&r->copier);
    end_tries(r);
    release(r);
}
