/* A ledger's metadata, said again to a store that was put back to an older state. */
#include "common/log.h"
#include "common/mem.h"
#include "ledger/handle.h"
#include "metadata/paths.h"

enum { TRIES_MAX = 8 };

struct returning {
    struct ledger_client *client;
    int64_t id;
    struct slice value;
    struct layout known;
    bool forgotten;
    unsigned tries;
    struct ledger_return *call;
    struct meta_call meta;
    struct task refused;
    enum err err;
    char path[META_KEY_MAX];
};

struct ledger_known ledger_known(const struct ledger *l)
{
    return (struct ledger_known){
        .ledger = l->id, .version = l->layout.newest, .value = layout_value(&l->layout)};
}

static void end(struct returning *b, enum err err, bool written)
{
    struct ledger_client *c = b->client;
    struct ledger_return *call = b->call;

    if (written)
        log_event(LOG_WARN, "ledger.written_back", F_I64("ledger", b->id));
    slice_drop(&b->value);
    layout_drop(&b->known);
    mem_free(b);
    call->done(call, err, written);
    client_release(c);
}

static void look(struct returning *b);

static void put_done(struct meta_call *c, const struct meta_reply *r)
{
    struct returning *b = container_of(c, struct returning, meta);
    bool again = r->err == ERR_BAD_VERSION || r->err == ERR_EXISTS || r->err == ERR_UNKNOWN_STATE;

    if (again && ++b->tries < TRIES_MAX)
        look(b);
    else
        end(b, r->err, !r->err);
}

static void put(struct returning *b, int64_t expected)
{
    b->meta.done = put_done;
    meta_put(b->client->meta, b->path, slice_share(b->value), expected, &b->meta);
}

static void looked(struct meta_call *c, const struct meta_reply *r)
{
    struct returning *b = container_of(c, struct returning, meta);
    struct layout stored = {0};
    bool behind = false;
    enum err err = r->err;

    if (err == ERR_NOT_FOUND && b->forgotten) {
        put(b, META_ABSENT);
        return;
    }
    if (!err)
        err = layout_read(&stored, b->client->bookies, slice_view(r->value), r->version);
    if (!err)
        behind = layout_is_behind(&stored, &b->known);
    layout_drop(&stored);
    if (behind)
        put(b, r->version);
    else
        end(b, err == ERR_NOT_FOUND ? ERR_NO_LEDGER : err, false);
}

static void look(struct returning *b)
{
    b->meta.done = looked;
    meta_get(b->client->meta, b->path, &b->meta);
}

static void refused(struct task *t)
{
    struct returning *b = container_of(t, struct returning, refused);

    end(b, b->err, false);
}

void ledger_write_back(struct ledger_client *c, const struct ledger_known *k, bool forgotten,
                       struct ledger_return *r)
{
    struct returning *b = mem_new(struct returning);

    client_hold(c);
    b->client = c;
    b->id = k->ledger;
    b->value = slice_share(k->value);
    b->forgotten = forgotten;
    b->call = r;
    b->refused.run = refused;
    b->meta.home = c->loop;
    b->err = path_ledger(k->ledger, b->path);
    if (!b->err)
        b->err = layout_read(&b->known, c->bookies, slice_view(k->value), k->version);
    if (b->err)
        loop_post(c->loop, &b->refused);
    else
        look(b);
}

/* ---- what there is to know of it ---------------------------------------------------------------
 */

struct recalling {
    struct ledger_client *client;
    int64_t id;
    struct ledger_recall *call;
    struct meta_call meta;
    struct task refused;
};

static void recalled(struct recalling *b, enum err err, const struct ledger_known *k)
{
    struct ledger_client *c = b->client;
    struct ledger_recall *call = b->call;

    mem_free(b);
    call->done(call, err, k);
    client_release(c);
}

static void recall_refused(struct task *t)
{
    recalled(container_of(t, struct recalling, refused), ERR_NO_LEDGER, NULL);
}

static void read_back(struct meta_call *c, const struct meta_reply *r)
{
    struct recalling *b = container_of(c, struct recalling, meta);
    const struct ledger_known k = {.ledger = b->id, .version = r->version, .value = r->value};

    recalled(b, r->err == ERR_NOT_FOUND ? ERR_NO_LEDGER : r->err, &k);
}

void ledger_recall(struct ledger_client *c, int64_t ledger, struct ledger_recall *r)
{
    struct recalling *b = mem_new(struct recalling);
    char path[META_KEY_MAX];

    client_hold(c);
    b->client = c;
    b->id = ledger;
    b->call = r;
    b->refused.run = recall_refused;
    b->meta = (struct meta_call){.home = c->loop, .done = read_back};
    if (path_ledger(ledger, path))
        loop_post(c->loop, &b->refused);
    else
        meta_get(c->meta, path, &b->meta);
}
