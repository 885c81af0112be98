#include "ledger/closer.h"

#include <assert.h>

void closer_start(struct closer *c, entry_id last, int64_t length,
                  const struct closer_effects *effects, void *ctx)
{
    *c = (struct closer){
        .state = CLOSER_PUTTING, .last = last, .length = length, .effects = effects, .ctx = ctx};
    effects->put(ctx);
}

static void done(struct closer *c, enum err err)
{
    c->state = CLOSER_DONE;
    c->effects->done(c->ctx, err);
}

static void look(struct closer *c)
{
    c->state = CLOSER_LOOKING;
    c->effects->look(c->ctx);
}

static void wait(struct closer *c)
{
    c->state = CLOSER_WAITING;
    c->effects->wait(c->ctx, c->tries++);
}

void closer_put(struct closer *c, enum err err)
{
    assert(c->state == CLOSER_PUTTING);
    if (err == ERR_OK)
        done(c, ERR_OK);
    else if (err == ERR_NOT_FOUND)
        done(c, ERR_NO_LEDGER);
    else if (err_class(err) == CLASS_FATAL)
        done(c, err);
    else if (err == ERR_BAD_VERSION || err == ERR_UNKNOWN_STATE)
        look(c);
    else
        wait(c);
}

static void saw(struct closer *c, const struct ledger_facts *facts)
{
    if (facts->state == LEDGER_OPEN) {
        c->state = CLOSER_PUTTING;
        c->effects->put(c->ctx);
        return;
    }
    bool as_wanted =
        facts->state == LEDGER_CLOSED && facts->last == c->last && facts->length == c->length;
    done(c, as_wanted ? ERR_OK : ERR_FENCED);
}

void closer_saw(struct closer *c, enum err err, const struct ledger_facts *facts)
{
    assert(c->state == CLOSER_LOOKING);
    if (err == ERR_OK)
        saw(c, facts);
    else if (err == ERR_NOT_FOUND)
        done(c, ERR_NO_LEDGER);
    else if (err_class(err) == CLASS_RETRY)
        wait(c);
    else
        done(c, err);
}

void closer_waited(struct closer *c)
{
    assert(c->state == CLOSER_WAITING);
    look(c);
}
