#include "broker/cluster/claimed.h"

#include <assert.h>
#include <string.h>

enum { FIRST_PAUSE = 2 }; /* the try before which is the first to wait a little */

void claimed_init(struct claimed *c, const struct claimed_effects *effects, void *ctx,
                  const char *me, const char *nonce)
{
    *c = (struct claimed){.effects = effects, .ctx = ctx, .me = me, .nonce = nonce};
}

/* ---- bundles ---- */

static struct claimed_bundle *find(struct claimed *c, const char *name)
{
    struct claimed_bundle *b;

    HASH_FIND_STR(c->by_name, name, b);
    return b;
}

static struct claimed_bundle *find_or_add(struct claimed *c, const char *name)
{
    struct claimed_bundle *b = find(c, name);

    if (b)
        return b;
    b = mem_new(struct claimed_bundle);
    b->name = mem_string(name);
    b->owner = mem_string("");
    b->nonce = mem_string("");
    b->version = -1;
    list_init(&b->asks);
    HASH_ADD_KEYPTR(hh, c->by_name, b->name, strlen(b->name), b);
    return b;
}

static void forget(struct claimed *c, struct claimed_bundle *b)
{
    HASH_DEL(c->by_name, b);
    mem_free(b->name);
    mem_free(b->owner);
    mem_free(b->nonce);
    mem_free(b);
}

void claimed_drop(struct claimed *c)
{
    struct claimed_bundle *b, *next;

    HASH_ITER(hh, c->by_name, b, next)
    forget(c, b);
}

static bool is_mine(const struct claimed *c, const struct claimed_bundle *b)
{
    return strcmp(b->owner, c->me) == 0 && strcmp(b->nonce, c->nonce) == 0;
}

bool claimed_is_mine(struct claimed *c, const char *bundle)
{
    const struct claimed_bundle *b = find(c, bundle);

    return b && is_mine(c, b);
}

static bool lives(struct claimed *c, const char *id, const char *nonce)
{
    struct claimed_life life;

    return *id && c->effects->alive(c->ctx, id, &life) && strcmp(life.nonce, nonce) == 0;
}

/* ---- answers ---- */

static void answer(struct claimed *c, struct claimed_ask *a, enum err err, const char *owner)
{
    list_remove(&a->node);
    c->effects->answer(c->ctx, a, err, owner);
}

static void answer_all(struct claimed *c, struct claimed_bundle *b, enum err err)
{
    list_each(&b->asks, n) answer(c, list_entry(n, struct claimed_ask, node), err, NULL);
    b->kept = true;
}

static void settle_find(struct claimed *c, struct claimed_bundle *b, struct claimed_ask *a)
{
    bool mine = is_mine(c, b);

    if (mine && !c->stopping)
        answer(c, a, ERR_OK, c->me);
    else if (!mine && lives(c, b->owner, b->nonce))
        answer(c, a, ERR_OK, b->owner);
    else if (c->stopping || !lives(c, c->me, c->nonce))
        answer(c, a, ERR_NOT_READY, NULL);
}

static void settle_move(struct claimed *c, struct claimed_bundle *b, struct claimed_ask *a)
{
    struct claimed_life life;
    bool alive = *a->to && c->effects->alive(c->ctx, a->to, &life);

    if (a->written || (!*a->to && !lives(c, b->owner, b->nonce)))
        answer(c, a, ERR_OK, b->owner);
    else if (*a->to && !alive)
        answer(c, a, ERR_INVALID_NAME, NULL);
    else if (alive && strcmp(b->owner, a->to) == 0 && strcmp(b->nonce, life.nonce) == 0)
        answer(c, a, ERR_OK, b->owner);
    else if (c->stopping)
        answer(c, a, ERR_NOT_READY, NULL);
}

static void settle(struct claimed *c, struct claimed_bundle *b)
{
    list_each(&b->asks, n)
    {
        struct claimed_ask *a = list_entry(n, struct claimed_ask, node);
        if (a->kind == CLAIMED_FIND)
            settle_find(c, b, a);
        else
            settle_move(c, b, a);
    }
}

/* ---- writes ---- */

static void check(struct claimed_write *w, const char *id, int64_t version)
{
    w->check[w->checks++] = (struct claimed_check){.id = id, .version = version};
}

static void write(struct claimed *c, struct claimed_bundle *b, struct claimed_write *w)
{
    w->bundle = b->name;
    w->expected = b->version;
    b->state = CLAIMED_WRITING;
    b->tries++;
    c->effects->write(c->ctx, w);
}

static void claim(struct claimed *c, struct claimed_bundle *b)
{
    struct claimed_write w = {.owner = c->me, .nonce = c->nonce};
    struct claimed_life life;

    if (c->effects->alive(c->ctx, c->me, &life))
        check(&w, c->me, life.version);
    if (*b->owner && strcmp(b->owner, c->me) != 0) {
        bool other = c->effects->alive(c->ctx, b->owner, &life);
        if (other && !b->looked) {
            b->state = CLAIMED_LOOKING;
            b->looking_at = b->version;
            c->effects->look(c->ctx, b->name, b->owner);
            return;
        }
        check(&w, b->owner, other ? life.version : -1);
    }
    write(c, b, &w);
}

static void move(struct claimed *c, struct claimed_bundle *b, struct claimed_ask *a)
{
    struct claimed_write w = {.owner = a->to, .nonce = ""};
    struct claimed_life life;

    if (*a->to && c->effects->alive(c->ctx, a->to, &life)) {
        w.nonce = life.nonce;
        check(&w, a->to, life.version);
    }
    b->writing = a;
    write(c, b, &w);
}

static void give_up(struct claimed *c, struct claimed_bundle *b)
{
    write(c, b, &(struct claimed_write){.owner = "", .nonce = ""});
}

/* ---- the end ---- */

/* Once it was said that all is done, a claim that comes true late is left to the next who
 * asks: it does not count without my registration. */
static bool must_give_up(const struct claimed *c, const struct claimed_bundle *b)
{
    return c->stopping && !c->stopped && !b->kept && is_mine(c, b);
}

static void say_if_stopped(struct claimed *c)
{
    struct claimed_bundle *b, *next;

    if (!c->stopping || c->stopped)
        return;
    HASH_ITER(hh, c->by_name, b, next)
    if (b->state != CLAIMED_RESTING || must_give_up(c, b))
        return;
    c->stopped = true;
    c->effects->stopped(c->ctx);
}

/* ---- what is next for a bundle; may forget it ---- */

static void go_on(struct claimed *c, struct claimed_bundle *b)
{
    if (b->state == CLAIMED_WRITING || b->state == CLAIMED_READING)
        return;
    settle(c, b);
    if (b->state != CLAIMED_RESTING)
        return;
    if (!list_empty(&b->asks)) {
        struct claimed_ask *first = list_entry(b->asks.next, struct claimed_ask, node);
        if (first->kind == CLAIMED_FIND)
            claim(c, b);
        else
            move(c, b, first);
        return;
    }
    if (must_give_up(c, b)) {
        give_up(c, b);
        return;
    }
    b->tries = 0;
    if (b->version < 0)
        forget(c, b);
    say_if_stopped(c);
}

static void rest(struct claimed *c, struct claimed_bundle *b)
{
    b->state = CLAIMED_RESTING;
    b->writing = NULL;
    go_on(c, b);
}

/* The store cannot say, or it has been tried often enough. */
static void fail(struct claimed *c, struct claimed_bundle *b)
{
    answer_all(c, b, ERR_NOT_READY);
    rest(c, b);
}

static bool may_pass(enum err err)
{
    return err == ERR_UNKNOWN_STATE || err == ERR_TIMEOUT;
}

static void again(struct claimed *c, struct claimed_bundle *b)
{
    settle(c, b);
    if (b->tries < FIRST_PAUSE || (list_empty(&b->asks) && !must_give_up(c, b))) {
        rest(c, b);
    } else if (b->tries >= CLAIMED_TRIES_MAX) {
        fail(c, b);
    } else {
        b->state = CLAIMED_PAUSING;
        c->effects->pause(c->ctx, b->name, b->tries);
    }
}

void claimed_wrote(struct claimed *c, const char *bundle, enum err err)
{
    struct claimed_bundle *b = find(c, bundle);

    assert(b && b->state == CLAIMED_WRITING);
    if (!err) {
        if (b->writing)
            b->writing->written = true;
        rest(c, b);
    } else if (err == ERR_BAD_VERSION || may_pass(err)) {
        b->state = CLAIMED_READING;
        c->effects->read(c->ctx, b->name);
    } else {
        fail(c, b);
    }
}

void claimed_read(struct claimed *c, const char *bundle, enum err err)
{
    struct claimed_bundle *b = find(c, bundle);

    assert(b && b->state == CLAIMED_READING);
    if (err && !may_pass(err))
        fail(c, b);
    else
        again(c, b);
}

void claimed_looked(struct claimed *c, const char *bundle, enum err err)
{
    struct claimed_bundle *b = find(c, bundle);

    assert(b && b->state == CLAIMED_LOOKING);
    if (err) {
        fail(c, b);
        return;
    }
    b->looked = b->looking_at == b->version;
    rest(c, b);
}

void claimed_paused(struct claimed *c, const char *bundle)
{
    struct claimed_bundle *b = find(c, bundle);

    assert(b && b->state == CLAIMED_PAUSING);
    rest(c, b);
}

void claimed_ask(struct claimed *c, const char *bundle, struct claimed_ask *a)
{
    struct claimed_bundle *b = find_or_add(c, bundle);

    a->written = false;
    list_push_back(&b->asks, &a->node);
    go_on(c, b);
}

void claimed_record(struct claimed *c, const char *bundle, const char *owner, const char *nonce,
                    int64_t version)
{
    struct claimed_bundle *b = find_or_add(c, bundle);
    bool was_mine = is_mine(c, b);

    mem_free(b->owner);
    mem_free(b->nonce);
    b->owner = mem_string(owner ? owner : "");
    b->nonce = mem_string(owner ? nonce : "");
    b->looked = b->looked && owner && b->version == version;
    b->version = owner ? version : -1;
    if (was_mine && !is_mine(c, b))
        c->effects->lost(c->ctx, b->name);
    go_on(c, b);
}

void claimed_stop(struct claimed *c)
{
    struct claimed_bundle *b, *next;

    c->stopping = true;
    HASH_ITER(hh, c->by_name, b, next)
    {
        b->kept = false;
        go_on(c, b);
    }
    say_if_stopped(c);
}
