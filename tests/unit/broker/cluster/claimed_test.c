/* Several brokers that claim bundles over one store, whose watches are late, whose answers get
 * lost, and whose sessions end: one seed a life. */
#include "broker/cluster/claimed.h"

#include <stdio.h>
#include <string.h>

#include "broker/cluster/mirror.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

enum { BROKERS = 4, BUNDLES = 5, STEPS = 600, LOG_MAX = 4096, NAME = 24 };

/* Either kind of key: a registration (owner unused) or a bundle's record. */
struct cell {
    bool there;
    char owner[NAME], nonce[NAME];
    int64_t version;
};

enum table { REGISTRATIONS, RECORDS, TABLES };

struct change {
    enum table table;
    unsigned key;
    struct cell now;
    uint64_t revision;
};

enum op_kind { OP_WRITE, OP_READ, OP_LOOK, OP_PAUSE, OP_LIST };
enum fate { FINE, DONE_UNSAID, NOT_DONE_UNSAID, DONE_LATE, STORE_AWAY };

struct op {
    struct list_node node;
    enum op_kind kind;
    enum fate fate;
    enum table table; /* OP_LIST */
    unsigned broker, incarnation, key;
    unsigned whose; /* OP_LOOK */
    struct cell put;
    int64_t expected;
    unsigned checks;
    unsigned check_key[2];
    int64_t check_version[2];
    bool claim, told;
};

struct ask {
    struct claimed_ask ask;
    struct list_node node;
    unsigned broker, key;
    char to[NAME];
    bool answered;
    enum err err;
    char owner[NAME];
};

struct seen {
    struct mirror mirror;
    size_t next; /* in the log */
    struct cell cells[BROKERS > BUNDLES ? BROKERS : BUNDLES];
    bool listing;
};

struct broker {
    struct world *world;
    unsigned index, incarnation;
    bool dead, stopped;
    char id[NAME], nonce[NAME];
    struct claimed core;
    struct seen seen[TABLES];
    bool serves[BUNDLES]; /* it said "mine", and did not lose it since */
};

struct world {
    uint64_t seed;
    struct cell cells[TABLES][BROKERS > BUNDLES ? BROKERS : BUNDLES];
    struct change log[LOG_MAX];
    size_t n;
    uint64_t revision;
    struct broker brokers[BROKERS];
    struct list_node ops, asks;
    bool calm; /* nothing gets lost any more */
};

static uint64_t pick(struct world *w, uint64_t n)
{
    return rng_below(&w->seed, n);
}

static void name_of(char into[NAME], const char *kind, unsigned i)
{
    snprintf(into, NAME, "%s%u", kind, i);
}

static unsigned index_of(const char *name)
{
    return (unsigned)(name[1] - '0');
}

static bool is_alive(const struct world *w, const char *owner, const char *nonce)
{
    if (!*owner)
        return false;
    const struct cell *c = &w->cells[REGISTRATIONS][index_of(owner)];
    return c->there && strcmp(c->nonce, nonce) == 0;
}

/* ---- the store ---- */

static void set(struct world *w, enum table t, unsigned key, const struct cell *to)
{
    struct cell *c = &w->cells[t][key];
    int64_t version = c->there ? c->version + 1 : 0;

    *c = *to;
    c->version = version;
    ck_assert_uint_lt(w->n, LOG_MAX);
    w->log[w->n++] = (struct change){.table = t, .key = key, .now = *c, .revision = ++w->revision};
}

static int64_t version_of(const struct world *w, enum table t, unsigned key)
{
    return w->cells[t][key].there ? w->cells[t][key].version : -1;
}

/* A claim never takes from a broker that is registered, and needs a registration itself. */
static enum err apply(struct world *w, const struct op *o)
{
    const struct cell *c = &w->cells[RECORDS][o->key];

    for (unsigned i = 0; i < o->checks; i++)
        if (version_of(w, REGISTRATIONS, o->check_key[i]) != o->check_version[i])
            return ERR_BAD_VERSION;
    if (version_of(w, RECORDS, o->key) != o->expected)
        return ERR_BAD_VERSION;
    ck_assert(!o->claim || w->cells[REGISTRATIONS][o->broker].there);
    if (o->claim && c->there && strcmp(c->owner, o->put.owner) != 0)
        ck_assert_msg(!is_alive(w, c->owner, c->nonce), "%s took %u from %s, which lives",
                      o->put.owner, o->key, c->owner);
    set(w, RECORDS, o->key, &o->put);
    return ERR_OK;
}

/* ---- what a broker sees ---- */

static void tell(struct broker *b, enum table t, const struct mirror_fact *f)
{
    struct cell *c = &b->seen[t].cells[index_of(f->key)];

    *c = (struct cell){.there = f->version >= 0, .version = f->version};
    if (f->version >= 0) {
        const struct cell *from = (const void *)f->value.base;
        memcpy(c->owner, from->owner, NAME);
        memcpy(c->nonce, from->nonce, NAME);
    }
    if (t == RECORDS)
        claimed_record(&b->core, f->key, c->there ? c->owner : NULL, c->nonce, c->version);
}

static void told_registration(void *ctx, const struct mirror_fact *f)
{
    tell(ctx, REGISTRATIONS, f);
}

static void told_record(void *ctx, const struct mirror_fact *f)
{
    tell(ctx, RECORDS, f);
}

static struct mirror_fact fact_of(char key[NAME], enum table t, unsigned i, const struct cell *c,
                                  uint64_t revision)
{
    name_of(key, t == RECORDS ? "k" : "b", i);
    return (struct mirror_fact){.key = key,
                                .value = view_of(c, sizeof(*c)),
                                .version = c->there ? c->version : -1,
                                .revision = revision};
}

static struct op *op_new(struct broker *b, enum op_kind kind, unsigned key)
{
    struct world *w = b->world;
    struct op *o = mem_new(struct op);

    o->kind = kind;
    o->broker = b->index;
    o->incarnation = b->incarnation;
    o->key = key;
    o->fate = w->calm || pick(w, 3) > 0 ? FINE : (enum fate)pick(w, STORE_AWAY + 1);
    list_push_back(&w->ops, &o->node);
    return o;
}

static void list_again(struct broker *b, enum table t)
{
    b->seen[t].next = b->world->n;
    if (b->seen[t].listing)
        return;
    b->seen[t].listing = true;
    mirror_list(&b->seen[t].mirror);
    op_new(b, OP_LIST, 0)->table = t;
}

/* ---- effects ---- */

static bool alive(void *ctx, const char *id, struct claimed_life *out)
{
    struct broker *b = ctx;
    const struct cell *c = &b->seen[REGISTRATIONS].cells[index_of(id)];

    if (c->there)
        *out = (struct claimed_life){.nonce = c->nonce, .version = c->version};
    return c->there;
}

static void write_it(void *ctx, const struct claimed_write *from)
{
    struct broker *b = ctx;
    struct op *o = op_new(b, OP_WRITE, index_of(from->bundle));

    o->put.there = true;
    snprintf(o->put.owner, NAME, "%s", from->owner);
    snprintf(o->put.nonce, NAME, "%s", from->nonce);
    o->expected = from->expected;
    o->checks = from->checks;
    o->claim = strcmp(from->owner, b->id) == 0; /* nobody moves anything to itself here */
    for (unsigned i = 0; i < from->checks; i++) {
        o->check_key[i] = index_of(from->check[i].id);
        o->check_version[i] = from->check[i].version;
    }
}

static void read_it(void *ctx, const char *bundle)
{
    op_new(ctx, OP_READ, index_of(bundle));
}

static void look_at(void *ctx, const char *bundle, const char *id)
{
    op_new(ctx, OP_LOOK, index_of(bundle))->whose = index_of(id);
}

static void pause_it(void *ctx, const char *bundle, unsigned tries)
{
    ck_assert_uint_lt(tries, CLAIMED_TRIES_MAX);
    op_new(ctx, OP_PAUSE, index_of(bundle))->fate = FINE;
}

static void answered(void *ctx, struct claimed_ask *asked, enum err err, const char *owner)
{
    struct broker *b = ctx;
    struct ask *a = container_of(asked, struct ask, ask);

    ck_assert(!a->answered);
    a->answered = true;
    a->err = err;
    snprintf(a->owner, NAME, "%s", owner ? owner : "");
    if (!err && a->ask.kind == CLAIMED_FIND) {
        ck_assert(*a->owner);
        if (strcmp(owner, b->id) == 0)
            b->serves[a->key] = true;
    }
}

static void lost(void *ctx, const char *bundle)
{
    struct broker *b = ctx;

    ck_assert(!claimed_is_mine(&b->core, bundle));
    b->serves[index_of(bundle)] = false;
}

static void stopped(void *ctx)
{
    struct broker *b = ctx;

    ck_assert(!b->stopped);
    b->stopped = true;
}

static const struct claimed_effects effects = {alive,    write_it, read_it, look_at,
                                               pause_it, answered, lost,    stopped};

/* ---- lives ---- */

static void register_it(struct broker *b)
{
    struct cell c = {.there = true};

    memcpy(c.nonce, b->nonce, NAME);
    set(b->world, REGISTRATIONS, b->index, &c);
}

static void start(struct broker *b)
{
    b->incarnation++;
    b->dead = b->stopped = false;
    snprintf(b->nonce, NAME, "n%u-%u", b->index, b->incarnation);
    memset(b->serves, 0, sizeof(b->serves));
    claimed_init(&b->core, &effects, b, b->id, b->nonce);
    for (int t = 0; t < TABLES; t++) {
        b->seen[t] = (struct seen){0};
        mirror_init(&b->seen[t].mirror, t == RECORDS ? told_record : told_registration, b);
        list_again(b, (enum table)t);
    }
    register_it(b);
}

/* Its questions die with it. */
static void end(struct broker *b)
{
    b->dead = true;
    list_each(&b->world->asks, n)
    {
        struct ask *a = list_entry(n, struct ask, node);
        if (a->broker == b->index) {
            list_remove(n);
            mem_free(a);
        }
    }
    claimed_drop(&b->core);
    for (int t = 0; t < TABLES; t++)
        mirror_drop(&b->seen[t].mirror);
}

static void session_ends(struct broker *b)
{
    if (b->world->cells[REGISTRATIONS][b->index].there)
        set(b->world, REGISTRATIONS, b->index, &(struct cell){0});
}

static void ask(struct broker *b, enum claimed_ask_kind kind, unsigned key, const char *to)
{
    struct ask *a = mem_new(struct ask);
    char bundle[NAME];

    a->broker = b->index;
    a->key = key;
    snprintf(a->to, NAME, "%s", to);
    a->ask = (struct claimed_ask){.kind = kind, .to = a->to};
    list_push_back(&b->world->asks, &a->node);
    name_of(bundle, "k", key);
    claimed_ask(&b->core, bundle, &a->ask);
}

/* ---- one step of an operation ---- */

static void finish_write(struct world *w, struct broker *b, struct op *o, bool gone)
{
    bool does = o->fate == FINE || o->fate == DONE_UNSAID || (o->fate == DONE_LATE && o->told);
    enum err err = does ? apply(w, o) : ERR_OK;
    char key[NAME], bundle[NAME];

    name_of(bundle, "k", o->key);
    if (gone || o->told)
        return;
    if (o->fate == STORE_AWAY)
        err = ERR_NOT_READY;
    else if (o->fate != FINE)
        err = ERR_UNKNOWN_STATE;
    if (!err) {
        const struct mirror_fact f =
            fact_of(key, RECORDS, o->key, &w->cells[RECORDS][o->key], w->revision);
        mirror_learn(&b->seen[RECORDS].mirror, &f);
    }
    claimed_wrote(&b->core, bundle, err);
}

static void finish_read(struct world *w, struct broker *b, struct op *o)
{
    char key[NAME];
    const struct mirror_fact f =
        fact_of(key, RECORDS, o->key, &w->cells[RECORDS][o->key], w->revision);

    if (o->fate == FINE)
        mirror_learn(&b->seen[RECORDS].mirror, &f);
    claimed_read(&b->core, key,
                 o->fate == FINE         ? ERR_OK
                 : o->fate == STORE_AWAY ? ERR_NOT_READY
                                         : ERR_TIMEOUT);
}

static void finish_look(struct world *w, struct broker *b, struct op *o)
{
    char key[NAME], bundle[NAME];
    const struct mirror_fact f =
        fact_of(key, REGISTRATIONS, o->whose, &w->cells[REGISTRATIONS][o->whose], w->revision);

    name_of(bundle, "k", o->key);
    if (o->fate == FINE)
        mirror_learn(&b->seen[REGISTRATIONS].mirror, &f);
    claimed_looked(&b->core, bundle, o->fate == FINE ? ERR_OK : ERR_TIMEOUT);
}

static void finish_list(struct world *w, struct broker *b, struct op *o)
{
    struct mirror *m = &b->seen[o->table].mirror;
    unsigned n = o->table == RECORDS ? BUNDLES : BROKERS;

    mirror_page(m, w->revision);
    for (unsigned i = 0; i < n; i++) {
        char key[NAME];
        const struct mirror_fact f = fact_of(key, o->table, i, &w->cells[o->table][i], w->revision);
        if (f.version >= 0)
            mirror_listed(m, &f);
    }
    b->seen[o->table].listing = false;
    mirror_list_end(m);
}

static void finish(struct world *w, struct op *o)
{
    struct broker *b = &w->brokers[o->broker];
    bool gone = b->dead || b->incarnation != o->incarnation;
    bool comes_back = o->kind == OP_WRITE && o->fate == DONE_LATE && !o->told;
    char bundle[NAME];

    name_of(bundle, "k", o->key);
    list_remove(&o->node);
    if (o->kind == OP_WRITE)
        finish_write(w, b, o, gone);
    else if (o->kind == OP_READ && !gone)
        finish_read(w, b, o);
    else if (o->kind == OP_LOOK && !gone)
        finish_look(w, b, o);
    else if (o->kind == OP_PAUSE && !gone)
        claimed_paused(&b->core, bundle);
    else if (o->kind == OP_LIST && !gone)
        finish_list(w, b, o);
    o->told = true;
    if (comes_back)
        list_push_back(&w->ops, &o->node);
    else
        mem_free(o);
}

/* The next change of one table; false: there is none. */
static bool hear(struct broker *b, enum table t)
{
    struct seen *s = &b->seen[t];
    struct world *w = b->world;

    while (s->next < w->n) {
        const struct change *c = &w->log[s->next++];
        if (c->table != t)
            continue;
        char key[NAME];
        const struct mirror_fact f = fact_of(key, t, c->key, &c->now, c->revision);
        mirror_change(&s->mirror, &f);
        return true;
    }
    return false;
}

static void some_op(struct world *w)
{
    unsigned n = 0;

    list_each(&w->ops, at) n++;
    if (n == 0)
        return;
    uint64_t which = pick(w, n);
    list_each(&w->ops, at)
    {
        if (which-- == 0) {
            finish(w, list_entry(at, struct op, node));
            return;
        }
    }
}

static void free_answered(struct world *w)
{
    list_each(&w->asks, n)
    {
        struct ask *a = list_entry(n, struct ask, node);
        if (a->answered) {
            list_remove(n);
            mem_free(a);
        }
    }
}

/* A broker that sees itself gone comes back under the same nonce. */
static void care(struct broker *b)
{
    const struct cell *seen = &b->seen[REGISTRATIONS].cells[b->index];

    if (!b->dead && !seen->there && !b->seen[REGISTRATIONS].listing &&
        !b->world->cells[REGISTRATIONS][b->index].there)
        register_it(b);
}

static void trouble(struct world *w, struct broker *b)
{
    char to[NAME] = "";

    switch (pick(w, 8)) {
    case 0:
    case 1:
        session_ends(b);
        break;
    case 2:
        end(b);
        break;
    case 3:
        list_again(b, (enum table)pick(w, TABLES));
        break;
    default:
        if (pick(w, 3) > 0)
            name_of(to, "b", (b->index + 1 + (unsigned)pick(w, BROKERS - 1)) % BROKERS);
        ask(b, CLAIMED_MOVE, (unsigned)pick(w, BUNDLES), to);
    }
}

static void step(struct world *w)
{
    struct broker *b = &w->brokers[pick(w, BROKERS)];
    uint64_t what = pick(w, 100);

    if (b->dead) {
        if (what < 30)
            session_ends(b);
        else if (what < 40 && !w->cells[REGISTRATIONS][b->index].there)
            start(b);
    } else if (what < 30) {
        ask(b, CLAIMED_FIND, (unsigned)pick(w, BUNDLES), "");
    } else if (what < 75) {
        hear(b, (enum table)pick(w, TABLES));
    } else if (what < 80) {
        trouble(w, b);
    } else if (what < 90) {
        care(b);
    }
    some_op(w);
    free_answered(w);
}

/* Everything on its way arrives. */
static void settle(struct world *w)
{
    bool more = true;

    w->calm = true;
    for (unsigned rounds = 0; more; rounds++) {
        ck_assert_msg(rounds < 10000, "it never settles");
        more = !list_empty(&w->ops);
        some_op(w);
        for (unsigned i = 0; i < BROKERS; i++) {
            if (w->brokers[i].dead) {
                session_ends(&w->brokers[i]);
                continue;
            }
            more |= hear(&w->brokers[i], REGISTRATIONS);
            more |= hear(&w->brokers[i], RECORDS);
            care(&w->brokers[i]);
        }
    }
}

/* ---- what must hold once all have heard all ---- */

static void check_views(struct world *w)
{
    for (unsigned i = 0; i < BROKERS; i++) {
        struct broker *b = &w->brokers[i];
        for (unsigned k = 0; !b->dead && k < BUNDLES; k++) {
            const struct cell *c = &w->cells[RECORDS][k];
            char bundle[NAME];
            name_of(bundle, "k", k);
            bool should =
                c->there && strcmp(c->owner, b->id) == 0 && strcmp(c->nonce, b->nonce) == 0;
            ck_assert_int_eq(claimed_is_mine(&b->core, bundle), should);
            ck_assert_msg(!b->serves[k] || should, "%s serves %s", b->id, bundle);
        }
    }
}

static void check_asks(struct world *w)
{
    list_each(&w->asks, n) ck_assert_msg(list_entry(n, struct ask, node)->answered, "an ask hangs");
    free_answered(w);
}

/* Whoever is asked names the one live owner, after taking what nobody has. */
static void check_answers(struct world *w)
{
    for (unsigned k = 0; k < BUNDLES; k++) {
        char owner[NAME] = "";
        for (unsigned i = 0; i < BROKERS; i++) {
            if (w->brokers[i].dead)
                continue;
            ask(&w->brokers[i], CLAIMED_FIND, k, "");
            settle(w);
            const struct ask *a = list_entry(w->asks.prev, struct ask, node);
            ck_assert(a->answered);
            ck_assert_int_eq(a->err, ERR_OK);
            ck_assert(!*owner || strcmp(owner, a->owner) == 0);
            snprintf(owner, NAME, "%s", a->owner);
            ck_assert(is_alive(w, owner, w->cells[RECORDS][k].nonce));
            free_answered(w);
        }
    }
}

static struct world *world_new(uint64_t seed)
{
    struct world *w = mem_new(struct world);

    w->seed = seed;
    list_init(&w->ops);
    list_init(&w->asks);
    for (unsigned i = 0; i < BROKERS; i++) {
        struct broker *b = &w->brokers[i];
        b->world = w;
        b->index = i;
        name_of(b->id, "b", i);
        start(b);
    }
    return w;
}

static void world_end(struct world *w)
{
    free_answered(w);
    for (unsigned i = 0; i < BROKERS; i++)
        if (!w->brokers[i].dead)
            end(&w->brokers[i]);
    for (struct list_node *n; (n = list_pop_front(&w->ops));)
        mem_free(list_entry(n, struct op, node));
    mem_free(w);
}

START_TEST(lives)
{
    for (uint64_t seed = 0; seed < 250; seed++) {
        struct world *w = world_new((uint64_t)_i * 1000 + seed);
        for (unsigned i = 0; i < STEPS; i++)
            step(w);
        settle(w);
        check_asks(w);
        check_views(w);
        check_answers(w);
        check_views(w);
        world_end(w);
    }
}
END_TEST

/* ---- stories ---- */

static struct world *quiet_world(void)
{
    struct world *w = world_new(1);

    settle(w);
    return w;
}

static const struct ask *asked(struct broker *b, enum claimed_ask_kind kind, const char *to)
{
    free_answered(b->world);
    ask(b, kind, 0, to);
    settle(b->world);
    const struct ask *a = list_entry(b->world->asks.prev, struct ask, node);
    ck_assert(a->answered);
    return a;
}

START_TEST(dead_ones_bundle_is_claimed_by_the_next_asked)
{
    struct world *w = quiet_world();

    ck_assert_str_eq(asked(&w->brokers[1], CLAIMED_FIND, "")->owner, "b1");
    ck_assert_str_eq(asked(&w->brokers[2], CLAIMED_FIND, "")->owner, "b1");
    end(&w->brokers[1]);
    session_ends(&w->brokers[1]);
    settle(w);
    ck_assert_str_eq(asked(&w->brokers[2], CLAIMED_FIND, "")->owner, "b2");
    ck_assert_str_eq(asked(&w->brokers[3], CLAIMED_FIND, "")->owner, "b2");
    world_end(w);
}
END_TEST

/* It knows no better, but the store does. */
START_TEST(nobody_claims_from_one_that_just_came_back)
{
    struct world *w = quiet_world();

    asked(&w->brokers[1], CLAIMED_FIND, "");
    session_ends(&w->brokers[1]);
    hear(&w->brokers[2], REGISTRATIONS);
    register_it(&w->brokers[1]);
    ask(&w->brokers[2], CLAIMED_FIND, 0, "");
    settle(w);
    ck_assert_str_eq(list_entry(w->asks.prev, struct ask, node)->owner, "b1");
    check_views(w);
    world_end(w);
}
END_TEST

START_TEST(what_is_mine_stays_mine_while_the_store_is_away)
{
    struct world *w = quiet_world();
    struct broker *b = &w->brokers[1];

    asked(b, CLAIMED_FIND, "");
    session_ends(b);
    ck_assert_str_eq(asked(b, CLAIMED_FIND, "")->owner, "b1");
    free_answered(w);
    ask(b, CLAIMED_FIND, 1, "");
    list_entry(w->ops.prev, struct op, node)->fate = STORE_AWAY;
    settle(w);
    ck_assert_int_eq(list_entry(w->asks.prev, struct ask, node)->err, ERR_NOT_READY);
    world_end(w);
}
END_TEST

START_TEST(a_move_is_seen_as_a_loss)
{
    struct world *w = quiet_world();

    asked(&w->brokers[1], CLAIMED_FIND, "");
    ck_assert(w->brokers[1].serves[0]);
    ck_assert_int_eq(asked(&w->brokers[0], CLAIMED_MOVE, "b3")->err, ERR_OK);
    ck_assert(!w->brokers[1].serves[0]);
    ck_assert_str_eq(asked(&w->brokers[1], CLAIMED_FIND, "")->owner, "b3");
    end(&w->brokers[2]);
    session_ends(&w->brokers[2]);
    settle(w);
    ck_assert_int_eq(asked(&w->brokers[0], CLAIMED_MOVE, "b2")->err, ERR_INVALID_NAME);
    ck_assert_int_eq(asked(&w->brokers[0], CLAIMED_MOVE, "")->err, ERR_OK);
    ck_assert_str_eq(w->cells[RECORDS][0].owner, "");
    ck_assert_str_eq(asked(&w->brokers[1], CLAIMED_FIND, "")->owner, "b1");
    world_end(w);
}
END_TEST

START_TEST(who_stops_gives_up_what_it_has)
{
    struct world *w = quiet_world();
    struct broker *b = &w->brokers[1];

    for (unsigned k = 0; k < BUNDLES; k++)
        ask(b, CLAIMED_FIND, k, "");
    settle(w);
    free_answered(w);
    claimed_stop(&b->core);
    ck_assert(!b->stopped);
    settle(w);
    ck_assert(b->stopped);
    for (unsigned k = 0; k < BUNDLES; k++)
        ck_assert_str_eq(w->cells[RECORDS][k].owner, "");
    ck_assert_int_eq(asked(b, CLAIMED_FIND, "")->err, ERR_NOT_READY);
    ck_assert_str_eq(asked(&w->brokers[2], CLAIMED_FIND, "")->owner, "b2");
    world_end(w);
}
END_TEST

/* Without the store it stops as well, and without end it does not try. */
START_TEST(who_cannot_give_up_stops_all_the_same)
{
    struct world *w = quiet_world();
    struct broker *b = &w->brokers[1];
    const enum fate fates[] = {STORE_AWAY, NOT_DONE_UNSAID};

    asked(b, CLAIMED_FIND, "");
    free_answered(w);
    claimed_stop(&b->core);
    for (unsigned i = 0; !b->stopped; i++) {
        ck_assert_uint_lt(i, 100);
        list_each(&w->ops, n) list_entry(n, struct op, node)->fate = fates[_i];
        some_op(w);
    }
    ck_assert_str_eq(w->cells[RECORDS][0].owner, "b1");
    session_ends(b);
    end(b);
    settle(w);
    ck_assert_str_eq(asked(&w->brokers[2], CLAIMED_FIND, "")->owner, "b2");
    world_end(w);
}
END_TEST

int main(void)
{
    return suite_run("claimed", (suite_case[]){
                                    SUITE_CASE(dead_ones_bundle_is_claimed_by_the_next_asked),
                                    SUITE_CASE(nobody_claims_from_one_that_just_came_back),
                                    SUITE_CASE(what_is_mine_stays_mine_while_the_store_is_away),
                                    SUITE_CASE(a_move_is_seen_as_a_loss),
                                    SUITE_CASE(who_stops_gives_up_what_it_has),
                                    SUITE_LOOP(who_cannot_give_up_stops_all_the_same, 2),
                                    SUITE_LOOP(lives, 4),
                                    {0},
                                });
}
