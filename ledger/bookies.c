#include "ledger/bookies.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "ledger/placement.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum {
    LIST_PAGE = 500,
    RETRY_FIRST_US = 50 * 1000,
    RETRY_MAX_US = 2 * 1000 * 1000,
    SUSPECT_US = 30 * 1000 * 1000
};

struct bookie {
    char *id;
    bool writable;
    unsigned seen_writable; /* the listing that it was last in */
    uint64_t suspect_until;
    uint32_t uses;
    struct bookie_link *link[2];
};

struct bookies {
    struct loop *loop;
    struct metadata *meta;
    struct link_conf conf;
    uint64_t seed;
    uint32_t n, room;
    struct bookie **at;
    unsigned writable;
    bool ready;
    enum { LIST_RESTING, LIST_RUNNING, LIST_STALE /* running, and must run again */ } listing;
    bool gone; /* dropped while listing */
    unsigned round;
    uint64_t retry_us;
    struct meta_call call;
    struct meta_watch watch;
    struct timer retry;
    struct list_node watchers;
};

/* ---- the table ---- */

static struct bookie *bookie_of(const struct bookies *b, uint32_t number)
{
    return b->at[number];
}

static void address_by_id(struct bookie *k)
{
    char *host;
    uint16_t port;

    if (parse_host_port(k->id, &host, &port))
        return;
    link_set_address(k->link[LINK_PLAIN], host, port);
    link_set_address(k->link[LINK_RECOVERY], host, port);
    mem_free(host);
}

static struct bookie *bookie_new(struct bookies *b, const char *id)
{
    struct bookie *k = mem_new(struct bookie);

    k->id = mem_string(id);
    k->link[LINK_PLAIN] = link_new(b->loop, id, &b->conf);
    k->link[LINK_RECOVERY] = link_new(b->loop, id, &b->conf);
    address_by_id(k);
    return k;
}

uint32_t bookies_number(struct bookies *b, const char *id)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (strcmp(b->at[i]->id, id) == 0)
            return i;
    if (b->n == b->room) {
        b->room = b->room ? 2 * b->room : 8;
        b->at = mem_resize(b->at, b->room * sizeof *b->at);
    }
    b->at[b->n] = bookie_new(b, id);
    return b->n++;
}

const char *bookies_id(const struct bookies *b, uint32_t number)
{
    return bookie_of(b, number)->id;
}

struct bookie_link *bookies_link(struct bookies *b, uint32_t number, enum link_kind kind)
{
    return bookie_of(b, number)->link[kind];
}

static void set_writable(struct bookies *b, struct bookie *k, bool writable)
{
    if (k->writable == writable)
        return;
    k->writable = writable;
    b->writable += writable ? 1u : -1u;
    log_event(writable ? LOG_INFO : LOG_WARN, writable ? "bookie.found" : "bookie.lost",
              F_STR("bookie", k->id), F_U64("writable", b->writable));
}

static void tell(struct bookies *b)
{
    list_each(&b->watchers, node)
    {
        struct bookies_watch *w = list_entry(node, struct bookies_watch, node);
        w->changed(w);
    }
}

/* ---- what the metadata says ---- */

/* The bookie id of a key, NULL for another kind of key. */
static const char *id_of(const char *key, bool *read_only)
{
    size_t all = strlen(PATH_BOOKIES), ro = strlen(PATH_BOOKIES_READONLY);

    *read_only = strncmp(key, PATH_BOOKIES_READONLY, ro) == 0;
    const char *id = key + (*read_only ? ro : all);
    if (strncmp(key, PATH_BOOKIES, all) != 0 || *id == '\0' || strchr(id, '/'))
        return NULL;
    return !*read_only && strcmp(id, "readonly") == 0 ? NULL : id;
}

static struct bookie *learn(struct bookies *b, const char *id, struct view value)
{
    struct bookie *k = bookie_of(b, bookies_number(b, id));
    struct bookie_record r;
    enum err err = bookie_record_read(id, value, &r);

    if (err) {
        log_event(LOG_WARN, "bookie.record_unreadable", F_STR("bookie", id), F_ERR(err));
        return k;
    }
    link_set_address(k->link[LINK_PLAIN], r.host, r.port);
    link_set_address(k->link[LINK_RECOVERY], r.host, r.port);
    bookie_record_drop(&r);
    return k;
}

static void list(struct bookies *b);

static void retry_now(struct timer *t)
{
    list(container_of(t, struct bookies, retry));
}

static void take_item(struct bookies *b, const struct meta_item *item)
{
    bool read_only;
    const char *id = id_of(item->key, &read_only);

    if (!id)
        return;
    struct bookie *k = learn(b, id, slice_view(item->value));
    if (!read_only)
        k->seen_writable = b->round;
}

static void listed_all(struct bookies *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        set_writable(b, b->at[i], b->at[i]->seen_writable == b->round);
    b->ready = true;
    b->retry_us = 0;
    bool again = b->listing == LIST_STALE;
    b->listing = LIST_RESTING;
    if (again)
        list(b);
    tell(b);
}

static void end(struct bookies *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        link_drop(&b->at[i]->link[LINK_PLAIN]);
        link_drop(&b->at[i]->link[LINK_RECOVERY]);
        mem_free(b->at[i]->id);
        mem_free(b->at[i]);
    }
    mem_free(b->at);
    mem_free(b);
}

static void listed(struct meta_call *c, const struct meta_reply *r)
{
    struct bookies *b = container_of(c, struct bookies, call);

    if (b->gone) {
        end(b);
        return;
    }
    if (r->err) {
        b->listing = LIST_RESTING;
        b->retry_us = b->retry_us ? 2 * b->retry_us : RETRY_FIRST_US;
        if (b->retry_us > RETRY_MAX_US)
            b->retry_us = RETRY_MAX_US;
        loop_after(b->loop, &b->retry, b->retry_us);
        return;
    }
    for (size_t i = 0; i < r->count; i++)
        take_item(b, &r->items[i]);
    if (r->more && r->count > 0)
        meta_range(b->meta, PATH_BOOKIES, r->items[r->count - 1].key, LIST_PAGE, false, &b->call);
    else
        listed_all(b);
}

static void list(struct bookies *b)
{
    if (b->listing != LIST_RESTING) {
        b->listing = LIST_STALE;
        return;
    }
    loop_cancel(b->loop, &b->retry);
    b->listing = LIST_RUNNING;
    b->round++;
    b->call = (struct meta_call){.home = b->loop, .done = listed};
    meta_range(b->meta, PATH_BOOKIES, NULL, LIST_PAGE, false, &b->call);
}

/* A change while a listing runs may be older or newer than what it shows: list again. */
static void changed(struct meta_watch *w, const struct meta_change *c)
{
    struct bookies *b = container_of(w, struct bookies, watch);
    bool read_only;
    const char *id = c->kind == META_CHANGED_UNSURE ? NULL : id_of(c->key, &read_only);

    if (c->kind == META_CHANGED_UNSURE || b->listing != LIST_RESTING || !b->ready) {
        list(b);
        return;
    }
    if (!id)
        return;
    struct bookie *k = bookie_of(b, bookies_number(b, id));
    if (c->kind == META_CHANGED_PUT)
        k = learn(b, id, slice_view(c->value));
    if (!read_only)
        set_writable(b, k, c->kind == META_CHANGED_PUT);
    tell(b);
}

/* ---- choosing ---- */

static size_t candidates(const struct bookies *b, const uint32_t *not_these, unsigned n,
                         struct placement_bookie *out)
{
    size_t count = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        bool excluded = !b->at[i]->writable;
        for (unsigned k = 0; k < n; k++)
            excluded |= not_these[k] == i;
        if (!excluded)
            out[count++] =
                (struct placement_bookie){.bookie = i,
                                          .uses = b->at[i]->uses,
                                          .suspect = loop_now(b->loop) < b->at[i]->suspect_until};
    }
    return count;
}

static enum err choose(struct bookies *b, const uint32_t *not_these, unsigned excluded, unsigned n,
                       uint32_t *out)
{
    struct placement_bookie *live = mem_alloc((b->n + 1) * sizeof *live);
    size_t count = candidates(b, not_these, excluded, live);
    enum err err = placement_choose(live, count, n, &b->seed, out);

    mem_free(live);
    return err;
}

enum err bookies_choose(struct bookies *b, unsigned n, uint32_t *out)
{
    return choose(b, NULL, 0, n, out);
}

bool bookies_spare(struct bookies *b, const uint32_t *not_these, unsigned n, uint32_t *out)
{
    return choose(b, not_these, n, 1, out) == ERR_OK;
}

void bookies_use(struct bookies *b, uint32_t number, int by)
{
    bookie_of(b, number)->uses += (uint32_t)by;
}

void bookies_suspect(struct bookies *b, uint32_t number)
{
    bookie_of(b, number)->suspect_until = loop_now(b->loop) + SUSPECT_US;
}

/* ---- life ---- */

struct bookies *bookies_new(struct loop *l, struct metadata *meta, const struct link_conf *conf)
{
    struct bookies *b = mem_new(struct bookies);

    b->loop = l;
    b->meta = meta;
    b->conf = *conf;
    b->seed = rng_seed();
    b->retry.run = retry_now;
    list_init(&b->watchers);
    b->watch = (struct meta_watch){.home = l, .changed = changed};
    meta_watch(meta, PATH_BOOKIES, &b->watch);
    list(b);
    return b;
}

void bookies_drop(struct bookies **bookies)
{
    struct bookies *b = *bookies;

    *bookies = NULL;
    if (!b)
        return;
    meta_unwatch(b->meta, &b->watch);
    loop_cancel(b->loop, &b->retry);
    b->gone = true;
    if (b->listing == LIST_RESTING)
        end(b);
}

bool bookies_ready(const struct bookies *b)
{
    return b->ready;
}

unsigned bookies_writable(const struct bookies *b)
{
    return b->writable;
}

void bookies_watch(struct bookies *b, struct bookies_watch *w)
{
    list_push_back(&b->watchers, &w->node);
}

void bookies_unwatch(struct bookies *b, struct bookies_watch *w)
{
    (void)b;
    list_remove(&w->node);
}
