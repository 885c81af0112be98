#include "bookie/checkup.h"

#include "common/mem.h"
#include "ledger/client.h"
#include "ledger/repair.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum checkup_state {
    CHECKUP_IDLE,
    CHECKUP_LOOKING,    /* at the metadata: the call is under way */
    CHECKUP_RECOVERING, /* so is the opening */
    CHECKUP_REPAIRING,
    CHECKUP_ENDING /* the task is posted */
};

struct checkup {
    struct checkup_conf conf;
    struct ledger_client *client;
    enum checkup_state state;
    bool gone;
    int64_t ledger;
    enum err err;
    struct meta_call call;
    struct ledger_call open;
    struct repair *repair;
    struct repair_report report;
    struct repair_rate rate;
    struct task ended;
    char key[META_KEY_MAX];
};

static void end(struct checkup *c)
{
    ledger_client_drop(&c->client);
    mem_free(c);
}

static bool came_back(struct checkup *c)
{
    if (!c->gone)
        return true;
    end(c);
    return false;
}

static void ended(struct task *t)
{
    struct checkup *c = container_of(t, struct checkup, ended);
    if (!came_back(c))
        return;
    c->state = CHECKUP_IDLE;
    c->conf.done(c->conf.ctx, c->err, c->report.entries);
}

static void finish(struct checkup *c, enum err err)
{
    c->state = CHECKUP_ENDING;
    c->err = err;
    c->ended.run = ended;
    loop_post(c->conf.loop, &c->ended);
}

/* Nobody has to go: who does not answer makes the comparison fail, and it is done again. */
static bool is_bad(void *ctx, const char *bookie)
{
    (void)ctx;
    (void)bookie;
    return false;
}

static void repaired(void *ctx, enum err err)
{
    struct checkup *c = ctx;
    c->repair = NULL;
    finish(c, err);
}

static void repair(struct checkup *c)
{
    const struct replicator_how how = {.thorough = true};
    const struct repair_conf conf = {
        .is_bad = is_bad, .ctx = c, .rate = &c->rate, .window = c->conf.window};
    c->state = CHECKUP_REPAIRING;
    c->repair = repair_start(c->client, c->ledger, how, &conf, &c->report, repaired, c);
}

static void recovered(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct checkup *c = container_of(call, struct checkup, open);
    ledger_drop(&l);
    if (!came_back(c))
        return;
    if (err && err != ERR_NO_LEDGER)
        finish(c, err);
    else
        repair(c);
}

static enum err is_closed(const struct meta_reply *reply, bool *closed)
{
    Bookkeeper__LedgerMetadataFormat *record;
    TRY(reply->err);
    TRY(ledger_record_read(slice_view(reply->value), &record));
    *closed = record->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__CLOSED;
    bookkeeper__ledger_metadata_format__free_unpacked(record, NULL);
    return ERR_OK;
}

static void looked(struct meta_call *call, const struct meta_reply *reply)
{
    struct checkup *c = container_of(call, struct checkup, call);
    bool closed = false;
    if (!came_back(c))
        return;
    const enum err err = is_closed(reply, &closed);
    if (err) {
        finish(c, err == ERR_NOT_FOUND ? ERR_OK : err);
    } else if (closed) {
        repair(c);
    } else {
        c->state = CHECKUP_RECOVERING;
        c->open = (struct ledger_call){.done = recovered};
        ledger_open(c->client, c->ledger, LEDGER_OPEN_RECOVER, &c->open);
    }
}

struct checkup *checkup_new(const struct checkup_conf *conf)
{
    const struct ledger_client_conf client = {
        .place = {.distinct_hosts = conf->distinct_hosts, .racks = true, .racks_min = 2}};
    struct checkup *c = mem_new(struct checkup);
    c->conf = *conf;
    c->rate.bytes_per_s = conf->bytes_per_s;
    c->client = ledger_client_new(conf->loop, conf->meta, &client);
    return c;
}

bool checkup_ready(const struct checkup *c)
{
    return ledger_client_ready(c->client);
}

void checkup_begin(struct checkup *c, int64_t ledger)
{
    c->ledger = ledger;
    c->report = (struct repair_report){0};
    if (path_ledger(ledger, c->key)) {
        finish(c, ERR_OK); /* no metadata can name it */
        return;
    }
    c->state = CHECKUP_LOOKING;
    c->call = (struct meta_call){.home = c->conf.loop, .done = looked};
    meta_get(c->conf.meta, c->key, &c->call);
}

void checkup_drop(struct checkup **checkup)
{
    struct checkup *c = *checkup;
    *checkup = NULL;
    if (!c)
        return;
    repair_abandon(&c->repair);
    c->gone = true;
    if (c->state == CHECKUP_IDLE || c->state == CHECKUP_REPAIRING)
        end(c);
}
