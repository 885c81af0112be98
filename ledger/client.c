#include "ledger/client.h"

#include <assert.h>

#include "common/mem.h"
#include "common/rng.h"
#include "ledger/handle.h"

enum {
    TIMEOUT_US = 30 * 1000 * 1000,
    WINDOW_ENTRIES = 50000,
    WINDOW_BYTES = 64 * 1024 * 1024,
    LINK_BYTES = 128 * 1024 * 1024,
    MISSING_US = 10 * 1000 * 1000
};

static struct ledger_client_conf with_defaults(const struct ledger_client_conf *given)
{
    struct ledger_client_conf c = given ? *given : (struct ledger_client_conf){0};

    c.add_timeout_us = c.add_timeout_us ? c.add_timeout_us : TIMEOUT_US;
    c.read_timeout_us = c.read_timeout_us ? c.read_timeout_us : TIMEOUT_US;
    c.window_entries = c.window_entries ? c.window_entries : WINDOW_ENTRIES;
    c.window_bytes = c.window_bytes ? c.window_bytes : WINDOW_BYTES;
    c.link_bytes = c.link_bytes ? c.link_bytes : LINK_BYTES;
    return c;
}

struct ledger_client *ledger_client_new(struct loop *home, struct metadata *meta,
                                        const struct ledger_client_conf *conf)
{
    struct ledger_client *c = mem_new(struct ledger_client);

    c->loop = home;
    c->meta = meta;
    c->conf = with_defaults(conf);
    c->counts = c->conf.counts ? c->conf.counts : &c->own_counts;
    c->seed = rng_seed();
    c->users = 1;
    adds_init(c);
    struct link_conf links = {.add_timeout_us = c->conf.add_timeout_us,
                              .read_timeout_us = c->conf.read_timeout_us,
                              .add_bytes_max = c->conf.link_bytes,
                              .tls = c->conf.tls};
    c->bookies = bookies_new(home, meta, &links, &c->conf.place);
    return c;
}

void client_hold(struct ledger_client *c)
{
    c->users++;
}

void client_release(struct ledger_client *c)
{
    assert(c->users > 0);
    if (--c->users > 0)
        return;
    bookies_drop(&c->bookies);
    adds_free(c);
    mem_free(c);
}

void ledger_client_drop(struct ledger_client **c)
{
    if (*c)
        client_release(*c);
    *c = NULL;
}

bool ledger_client_ready(const struct ledger_client *c)
{
    return bookies_ready(c->bookies);
}

unsigned ledger_client_bookies(const struct ledger_client *c)
{
    return bookies_writable(c->bookies);
}

void ledger_client_watch(struct ledger_client *c, struct bookies_watch *w)
{
    bookies_watch(c->bookies, w);
}

void ledger_client_unwatch(struct ledger_client *c, struct bookies_watch *w)
{
    bookies_unwatch(c->bookies, w);
}

/* ---- handles ---- */

struct ledger *handle_new(struct ledger_client *c, int64_t id)
{
    struct ledger *l = mem_new(struct ledger);

    client_hold(c);
    l->client = c;
    l->id = id;
    l->lac = ENTRY_NONE;
    l->users = 1;
    list_init(&l->readings);
    return l;
}

void handle_hold(struct ledger *l)
{
    l->users++;
}

void handle_release(struct ledger *l)
{
    assert(l->users > 0);
    if (--l->users > 0)
        return;
    struct ledger_client *c = l->client;
    layout_drop(&l->layout);
    mem_free(l);
    client_release(c);
}

enum err handle_missing(struct ledger *l, const struct meta_reply *r, enum err err)
{
    uint64_t now = loop_now(l->client->loop);

    if (err != ERR_NOT_FOUND) {
        l->missing_us = err ? l->missing_us : 0;
        return err;
    }
    if (r->ahead <= l->ahead)
        return err;
    if (!l->missing_us)
        l->missing_us = now;
    return now - l->missing_us < MISSING_US ? ERR_NOT_READY : err;
}

void ledger_drop(struct ledger **ledger)
{
    struct ledger *l = *ledger;

    *ledger = NULL;
    if (!l)
        return;
    readings_cancel(l);
    writer_drop(&l->writer);
    handle_release(l);
}

int64_t ledger_id(const struct ledger *l)
{
    return l->id;
}

entry_id ledger_last_confirmed(const struct ledger *l)
{
    return l->writer ? writer_last_confirmed(l->writer) : l->lac;
}

int64_t ledger_length(const struct ledger *l)
{
    return l->writer ? writer_length(l->writer) : l->length;
}

bool ledger_is_closed(const struct ledger *l)
{
    return l->layout.facts.state == LEDGER_CLOSED;
}

struct quorum ledger_quorum(const struct ledger *l)
{
    return l->layout.facts.quorum;
}
