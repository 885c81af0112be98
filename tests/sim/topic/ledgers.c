/* ledger/client.h as it is promised: what was confirmed stays, whoever recovers decides about the
 * rest, whoever wrote before is fenced. */
#include <assert.h>
#include <string.h>

#include "common/mem.h"
#include "tests/sim/topic/topic.h"

enum { ENOUGH = 2, WINDOW = 6, WATCHES = 8 };

struct ledger_client {
    struct loop *home;
    struct bookies_watch *watch[WATCHES];
};

struct ledger {
    struct ledger_client *client;
    struct log *log;
    bool dropped, failed;
    enum err why;
    int64_t last;   /* confirmed, as this handle knows */
    int64_t length; /* up to it */
    uint64_t answer_at;
    unsigned flying, first;
    struct ledger_append *append[LOG_ENTRIES];
};

struct errand {
    struct ledger_client *client;
    struct ledger_call *call;
    struct log *log;
    struct ledger *ledger;
    enum err err;
    enum ledger_open_how how;
};

static struct ledger_client *clients[64];
static unsigned n_clients;

struct ledger_client *client_new(struct loop *home)
{
    struct ledger_client *c = mem_new(struct ledger_client);

    c->home = home;
    if (topic.openings == 0 && topic.logs == 0)
        n_clients = 0;
    clients[n_clients++ % 64] = c;
    return c;
}

unsigned ledger_client_bookies(const struct ledger_client *c)
{
    (void)c;
    return topic.bookies;
}

void ledger_client_watch(struct ledger_client *c, struct bookies_watch *w)
{
    for (unsigned i = 0; i < WATCHES; i++)
        if (!c->watch[i]) {
            c->watch[i] = w;
            return;
        }
    topic_fault("more watches than there is room for");
}

void ledger_client_unwatch(struct ledger_client *c, struct bookies_watch *w)
{
    for (unsigned i = 0; i < WATCHES; i++)
        if (c->watch[i] == w)
            c->watch[i] = NULL;
}

static void tell_bookies(void *arg)
{
    struct ledger_client *c = arg;

    for (unsigned i = 0; i < WATCHES; i++)
        if (c->watch[i])
            c->watch[i]->changed(c->watch[i]);
}

void bookies_are(unsigned n)
{
    topic.bookies = n;
    for (unsigned i = 0; i < n_clients && i < 64; i++)
        topic_later(clients[i]->home, topic_delay(), tell_bookies, clients[i]);
}

struct log *log_of(int64_t id)
{
    return id >= 0 && id < (int64_t)topic.logs ? topic.log[id] : NULL;
}

static enum err some_trouble(void)
{
    static const enum err errs[] = {ERR_IO, ERR_TIMEOUT, ERR_NOT_READY, ERR_UNKNOWN_STATE};

    return errs[topic_roll(4)];
}

/* ---- create ---- */

static struct ledger *handle_new(struct ledger_client *c, struct log *log)
{
    struct ledger *l = mem_new(struct ledger);

    l->client = c;
    l->log = log;
    l->last = ENTRY_NONE;
    return l;
}

static void finish(void *arg)
{
    struct errand *e = arg;

    e->call->done(e->call, e->err, e->err ? NULL : e->ledger);
}

static void finish_later(struct errand *e)
{
    topic_later(e->client->home, topic_delay(), finish, e);
}

static struct log *log_new(bool of_cursor)
{
    struct log *log = mem_new(struct log);

    if (topic.logs == LOGS) {
        topic_fault("more ledgers than any life has");
        return topic.log[0];
    }
    log->id = topic.logs;
    log->of_cursor = of_cursor;
    for (unsigned i = 0; i < LOG_ENTRIES; i++)
        log->value[i] = -1;
    topic.log[topic.logs++] = log;
    *(of_cursor ? &topic.tally->cursor_ledgers : &topic.tally->ledgers) += 1;
    return log;
}

void ledger_create(struct ledger_client *c, struct quorum q, int64_t above,
                   const struct ledger_tag *tags, unsigned n, struct ledger_call *call)
{
    struct errand *e = mem_new(struct errand);
    bool of_cursor = false;

    (void)q;
    *e = (struct errand){.client = c, .call = call};
    for (unsigned i = 0; i < n; i++)
        of_cursor |= strcmp(tags[i].key, "pulsar/cursor") == 0;
    if (topic.bookies < ENOUGH)
        e->err = ERR_NOT_ENOUGH_BOOKIES;
    else if (topic_chance(topic.knobs.fail))
        e->err = some_trouble();
    if (!e->err || topic_chance(300))
        e->ledger = handle_new(c, log_new(of_cursor));
    if (!e->err && e->ledger->log->id <= above)
        topic_fault("a ledger above %d is asked for, and %d is the next", (int)above,
                    (int)e->ledger->log->id);
    finish_later(e);
}

/* ---- append ---- */

static void fail_all(struct ledger *l, enum err why)
{
    l->failed = true;
    l->why = why;
    while (l->flying > 0 && !l->dropped) {
        struct ledger_append *a = l->append[l->first++];
        l->flying--;
        a->done(a, why, ENTRY_NONE);
    }
}

static void confirm_one(void *arg)
{
    struct ledger *l = arg;

    if (l->dropped || l->flying == 0)
        return;
    if (l->log->fenced) {
        fail_all(l, ERR_FENCED);
        return;
    }
    if (topic.bookies < ENOUGH || topic_chance(topic.knobs.fail)) {
        fail_all(l, topic.bookies < ENOUGH ? ERR_NOT_ENOUGH_BOOKIES : some_trouble());
        return;
    }
    struct ledger_append *a = l->append[l->first++];
    l->flying--;
    l->last++;
    l->length += (int64_t)l->log->entry[l->last].len;
    l->log->confirmed = l->last + 1;
    a->done(a, ERR_OK, l->last);
}

static struct slice joined(const struct chain *c)
{
    uint8_t bytes[4096];
    size_t len = 0;

    for (unsigned i = 0; i < c->n; i++) {
        assert(len + c->at[i].len <= sizeof bytes);
        memcpy(bytes + len, c->at[i].base, c->at[i].len);
        len += c->at[i].len;
    }
    return slice_copy(bytes, len);
}

enum err ledger_append(struct ledger *l, struct ledger_append *a)
{
    assert(!l->dropped);
    if (l->failed)
        return l->why;
    if (l->flying >= WINDOW)
        return ERR_BUSY;
    if (l->first + l->flying == LOG_ENTRIES)
        return ERR_IO; /* longer than any life needs: it goes on in another one */
    l->append[l->first + l->flying++] = a;
    if (!l->log->fenced)
        l->log->entry[l->log->stored++] = joined(&a->payload);
    uint64_t at = topic.now + topic_delay();
    if (at < l->answer_at)
        at = l->answer_at;
    l->answer_at = at;
    topic_later(l->client->home, at - topic.now, confirm_one, l);
    return ERR_OK;
}

/* ---- close, open, delete ---- */

static void seal(struct log *log, int64_t entries)
{
    topic_say("ledger %d is closed with %d of %d entries, %d confirmed", (int)log->id, (int)entries,
              (int)log->stored, (int)log->confirmed);
    log->closed = log->fenced = true;
    log->stored = log->confirmed = entries;
}

static void closes(void *arg)
{
    struct errand *e = arg;
    struct log *log = e->log;
    bool unsure = topic_chance(topic.knobs.fail);

    if (log->deleted)
        e->err = ERR_NO_LEDGER;
    else if (log->fenced)
        e->err = ERR_FENCED;
    else if (unsure && topic_chance(500))
        e->err = ERR_TIMEOUT;
    else
        seal(log, e->ledger->last + 1);
    if (unsure && !e->err)
        e->err = ERR_UNKNOWN_STATE;
    e->ledger = NULL;
    finish_later(e);
}

void ledger_close(struct ledger **l, struct ledger_call *call)
{
    struct errand *e = mem_new(struct errand);

    *e = (struct errand){.client = (*l)->client, .call = call, .log = (*l)->log, .ledger = *l};
    *l = NULL;
    topic_later(NULL, topic_delay(), closes, e);
}

void ledger_drop(struct ledger **l)
{
    if (*l)
        (*l)->dropped = true;
    *l = NULL;
}

/* Anything between what was confirmed and what was sent. */
static void recover(struct log *log)
{
    int64_t more = log->stored - log->confirmed;
    int64_t kept = more > 0 ? (int64_t)topic_roll((unsigned)more + 1) : 0;

    if (log->closed)
        return;
    topic.tally->kept_more += kept > 0;
    topic.tally->lost_some += kept < more;
    seal(log, log->confirmed + kept);
}

static void opens(void *arg)
{
    struct errand *e = arg;
    struct log *log = e->log;

    if (!log || log->deleted) {
        e->err = ERR_NO_LEDGER;
    } else if (topic_chance(topic.knobs.fail)) {
        log->fenced = log->fenced || (e->how == LEDGER_OPEN_RECOVER && topic_chance(500));
        e->err = some_trouble();
    } else {
        if (e->how == LEDGER_OPEN_RECOVER)
            recover(log);
        e->ledger = handle_new(e->client, log);
        e->ledger->last = log->confirmed - 1;
        for (int64_t i = 0; i < log->confirmed; i++)
            e->ledger->length += (int64_t)log->entry[i].len;
        topic.tally->cursors_read += log->of_cursor;
    }
    finish_later(e);
}

void ledger_open(struct ledger_client *c, int64_t id, enum ledger_open_how how,
                 struct ledger_call *call)
{
    struct errand *e = mem_new(struct errand);

    *e = (struct errand){.client = c, .call = call, .log = log_of(id), .how = how};
    topic_later(NULL, topic_delay(), opens, e);
}

static void deletes(void *arg)
{
    struct errand *e = arg;

    if (topic_chance(topic.knobs.fail))
        e->err = some_trouble();
    if (e->log && !e->log->deleted && (!e->err || topic_chance(500))) {
        check_deleted(e->log);
        e->log->deleted = true;
    }
    finish_later(e);
}

void ledger_delete(struct ledger_client *c, int64_t id, struct ledger_call *call)
{
    struct errand *e = mem_new(struct errand);

    *e = (struct errand){.client = c, .call = call, .log = log_of(id)};
    topic_later(NULL, topic_delay(), deletes, e);
}

/* ---- read ---- */

struct reading {
    struct ledger *ledger;
    struct ledger_read *read; /* NULL: cancelled */
};

static struct reading *readings[256];
static unsigned next_reading;

static void reads(void *arg)
{
    struct reading *g = arg;
    struct ledger_read *r = g->read;
    size_t bytes = 0;

    if (!r || g->ledger->dropped)
        return;
    for (entry_id e = r->first; e <= r->last; e++) {
        const struct slice *s = &g->ledger->log->entry[e];
        enum err err = g->ledger->log->deleted          ? ERR_NO_ENTRY
                       : topic_chance(topic.knobs.fail) ? some_trouble()
                                                        : ERR_OK;
        if (err) {
            g->read = NULL;
            r->done(r, err);
            return;
        }
        r->entry(r, e, slice_copy(s->base, s->len));
        bytes += s->len;
        if (!g->read || (r->max_bytes && bytes >= r->max_bytes))
            break;
    }
    if (g->read) {
        g->read = NULL;
        r->done(r, ERR_OK);
    }
}

void ledger_read(struct ledger *l, struct ledger_read *r)
{
    struct reading *g = mem_new(struct reading);

    assert(!l->dropped && r->first <= r->last && r->last <= l->last);
    *g = (struct reading){l, r};
    readings[next_reading++ % 256] = g;
    topic_later(l->client->home, topic_delay(), reads, g);
}

void ledger_read_cancel(struct ledger_read *r)
{
    for (unsigned i = 0; i < 256; i++)
        if (readings[i] && readings[i]->read == r)
            readings[i]->read = NULL;
}

int64_t ledger_id(const struct ledger *l)
{
    return l->log->id;
}

entry_id ledger_last_confirmed(const struct ledger *l)
{
    return l->last;
}

int64_t ledger_length(const struct ledger *l)
{
    return l->length;
}

/* ---- a store that was put back ---- */

struct ledger_known ledger_known(const struct ledger *l)
{
    return (struct ledger_known){.ledger = l->log->id, .value = slice_copy("?", 1)};
}

struct returning {
    struct ledger_return *call;
};

static void is_returned(void *arg)
{
    struct returning *b = arg;

    b->call->done(b->call, ERR_OK, false);
}

struct recalling {
    struct ledger_recall *call;
    int64_t ledger;
};

static void is_recalled(void *arg)
{
    struct recalling *b = arg;
    const struct ledger_known k = {.ledger = b->ledger, .value = slice_copy("?", 1)};

    b->call->done(b->call, ERR_OK, &k);
}

void ledger_write_back(struct ledger_client *c, const struct ledger_known *k, bool forgotten,
                       struct ledger_return *r)
{
    struct returning *b = mem_new(struct returning);

    (void)k;
    (void)forgotten;
    b->call = r;
    topic_later(c->home, topic_delay(), is_returned, b);
}

void ledger_recall(struct ledger_client *c, int64_t ledger, struct ledger_recall *r)
{
    struct recalling *b = mem_new(struct recalling);

    b->call = r;
    b->ledger = ledger;
    topic_later(c->home, topic_delay(), is_recalled, b);
}
