#include "ledger/changer.h"

#include <assert.h>
#include <string.h>

void changer_start(struct changer *c, unsigned ensemble, const struct fragment *old,
                   const struct fragment *wanted, const struct changer_effects *effects, void *ctx)
{
    *c = (struct changer){.state = CHANGER_PUTTING,
                          .ensemble = ensemble,
                          .old = *old,
                          .wanted = *wanted,
                          .effects = effects,
                          .ctx = ctx};
    effects->put(ctx);
}

static void done(struct changer *c, enum err err)
{
    c->state = CHANGER_DONE;
    c->effects->done(c->ctx, err);
}

static void look(struct changer *c)
{
    c->state = CHANGER_LOOKING;
    c->effects->look(c->ctx);
}

static void wait(struct changer *c)
{
    c->state = CHANGER_WAITING;
    c->effects->wait(c->ctx, c->tries++);
}

void changer_put(struct changer *c, enum err err)
{
    assert(c->state == CHANGER_PUTTING);
    if (err == ERR_OK)
        done(c, ERR_OK);
    else if (err == ERR_NOT_FOUND) /* deleted: bookies must not get to know it again */
        done(c, ERR_FENCED);
    else if (err == ERR_BAD_VERSION || err == ERR_UNKNOWN_STATE)
        look(c);
    else if (err_class(err) == CLASS_RETRY)
        wait(c);
    else
        done(c, err);
}

static bool same(const struct changer *c, const struct fragment *a, const struct fragment *b)
{
    return a->first == b->first &&
           memcmp(a->bookie, b->bookie, c->ensemble * sizeof a->bookie[0]) == 0;
}

static void saw(struct changer *c, const struct ledger_facts *facts)
{
    if (facts->state != LEDGER_OPEN) {
        done(c, ERR_FENCED);
    } else if (same(c, &facts->tail, &c->wanted)) {
        done(c, ERR_OK);
    } else if (same(c, &facts->tail, &c->old)) {
        c->state = CHANGER_PUTTING;
        c->effects->put(c->ctx);
    } else {
        done(c, ERR_UNKNOWN_STATE); /* a hand that is not ours: the ledger ends at its lac */
    }
}

void changer_saw(struct changer *c, enum err err, const struct ledger_facts *facts)
{
    assert(c->state == CHANGER_LOOKING);
    if (err == ERR_OK)
        saw(c, facts);
    else if (err == ERR_NOT_FOUND)
        done(c, ERR_FENCED);
    else if (err_class(err) == CLASS_RETRY)
        wait(c);
    else
        done(c, err);
}

void changer_waited(struct changer *c)
{
    assert(c->state == CHANGER_WAITING);
    look(c);
}
