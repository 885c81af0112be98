#include "ledger/census.h"

#include <string.h>

#include "common/mem.h"
#include "common/parse.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"

enum { PAGE = 500, RETRY_US = 1000 * 1000, GATHER_US = 20 * 1000 };

/* In the order of listing. */
static const char *const prefixes[] = {PATH_COOKIES,         PATH_BOOKIES,      PATH_LEAVING,
                                       PATH_REPAIR_DISABLED, PATH_REPAIR_DELAY, PATH_AUDIT_ASKED};
enum { COOKIES, REGISTERED, LEAVING, DISABLED, DELAY, ASKED, PREFIXES };

struct bookie {
    char *id;
    bool here, writable, leaving, cookie, cookie_goes;
    /* The listing that it was last in. */
    unsigned seen_here, seen_writable, seen_leaving, seen_cookie, seen_goes;
};

struct watch {
    struct meta_watch watch;
    struct census *census;
};

struct census {
    struct loop *loop;
    struct metadata *meta;
    uint32_t n;
    struct bookie *at;
    bool ready, paused, has_delay, gone;
    uint64_t delay_us;
    bool next_paused, next_has_delay; /* what the listing has seen so far */
    uint64_t next_delay_us;
    uint64_t asked, next_asked;
    uint64_t revision, next_revision; /* of the store, when the listing began; 0: it begins */
    unsigned round, step;
    enum { CENSUS_RESTING, CENSUS_RUNNING, CENSUS_STALE /* and must run again */ } listing;
    struct meta_call call;
    struct watch watch[PREFIXES];
    struct timer again;
    void (*changed)(void *ctx);
    void *ctx;
};

uint32_t census_number(struct census *c, const char *bookie)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->at[i].id, bookie) == 0)
            return i;
    c->at = mem_resize(c->at, (c->n + 1) * sizeof *c->at);
    c->at[c->n] = (struct bookie){.id = mem_string(bookie)};
    return c->n++;
}

static struct bookie *bookie_of(struct census *c, const char *id)
{
    uint32_t number = census_number(c, id); /* moves c->at */

    return &c->at[number];
}

static void take_leaving(struct census *c, struct bookie *b, struct slice value)
{
    b->seen_leaving = c->round;
    if (value.len == strlen(LEAVING_COOKIE) && memcmp(value.base, LEAVING_COOKIE, value.len) == 0)
        b->seen_goes = c->round;
}

static void take_registered(struct census *c, const char *name)
{
    const bool writable = strncmp(name, "readonly/", 9) != 0;

    if (!writable)
        name += 9;
    if (!*name || strcmp(name, "readonly") == 0)
        return;
    struct bookie *b = bookie_of(c, name);
    b->seen_here = c->round;
    if (writable)
        b->seen_writable = c->round;
}

static void take_delay(struct census *c, const struct meta_item *item)
{
    char *text = mem_string_n((const char *)item->value.base, item->value.len);
    uint64_t seconds = 0;

    c->next_has_delay = !parse_u64(text, &seconds);
    c->next_delay_us = c->next_has_delay ? seconds * 1000 * 1000 : 0;
    mem_free(text);
}

/* BookKeeper's tools write the delay again, as it is, to have an audit. */
static void take(struct census *c, const struct meta_item *item)
{
    const char *name = item->key + strlen(prefixes[c->step]);

    switch (c->step) {
    case DISABLED:
        c->next_paused |= *name == '\0';
        break;
    case DELAY:
    case ASKED:
        if (*name)
            break;
        c->next_asked += (uint64_t)item->version + 1;
        if (c->step == DELAY)
            take_delay(c, item);
        break;
    case COOKIES:
        bookie_of(c, name)->seen_cookie = c->round;
        break;
    case LEAVING:
        take_leaving(c, bookie_of(c, name), item->value);
        break;
    default:
        take_registered(c, name);
    }
}

static void end(struct census *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        mem_free(c->at[i].id);
    mem_free(c->at);
    mem_free(c);
}

static void list(struct census *c);

static void list_again(struct timer *t)
{
    list(container_of(t, struct census, again));
}

static void listed_all(struct census *c)
{
    bool again = c->listing == CENSUS_STALE;

    for (uint32_t i = 0; i < c->n; i++) {
        struct bookie *b = &c->at[i];
        b->here = b->seen_here == c->round;
        b->writable = b->seen_writable == c->round;
        b->leaving = b->seen_leaving == c->round;
        b->cookie = b->seen_cookie == c->round;
        b->cookie_goes = b->seen_goes == c->round;
    }
    c->asked = c->next_asked;
    c->paused = c->next_paused;
    c->has_delay = c->next_has_delay;
    c->delay_us = c->next_delay_us;
    c->revision = c->next_revision;
    c->ready = true;
    c->listing = CENSUS_RESTING;
    if (again)
        loop_after(c->loop, &c->again, GATHER_US);
    c->changed(c->ctx);
}

static void ask(struct census *c, const char *after)
{
    const bool keys_only = c->step != DELAY && c->step != LEAVING;

    meta_range(c->meta, prefixes[c->step], after, PAGE, keys_only, &c->call);
}

static void listed(struct meta_call *call, const struct meta_reply *r)
{
    struct census *c = container_of(call, struct census, call);

    if (c->gone) {
        end(c);
        return;
    }
    if (r->err) {
        c->listing = CENSUS_RESTING;
        loop_after(c->loop, &c->again, RETRY_US);
        return;
    }
    if (c->next_revision == 0)
        c->next_revision = r->revision;
    for (size_t i = 0; i < r->count; i++)
        take(c, &r->items[i]);
    if (r->more && r->count > 0)
        ask(c, r->items[r->count - 1].key);
    else if (++c->step < PREFIXES)
        ask(c, NULL);
    else
        listed_all(c);
}

static void list(struct census *c)
{
    if (c->listing != CENSUS_RESTING) {
        c->listing = CENSUS_STALE;
        return;
    }
    loop_cancel(c->loop, &c->again);
    c->listing = CENSUS_RUNNING;
    c->round++;
    c->step = 0;
    c->next_revision = c->next_asked = 0;
    c->next_paused = c->next_has_delay = false;
    c->call = (struct meta_call){.home = c->loop, .done = listed};
    ask(c, NULL);
}

/* Bookies that start together cost one listing. */
static void on_change(struct census *c)
{
    if (c->listing != CENSUS_RESTING)
        c->listing = CENSUS_STALE;
    else if (!timer_armed(&c->again))
        loop_after(c->loop, &c->again, GATHER_US);
}

static void changed(struct meta_watch *w, const struct meta_change *change)
{
    (void)change;
    on_change(container_of(w, struct watch, watch)->census);
}

struct census *census_new(struct loop *l, struct metadata *meta, void (*then)(void *ctx), void *ctx)
{
    struct census *c = mem_new(struct census);

    c->loop = l;
    c->meta = meta;
    c->changed = then;
    c->ctx = ctx;
    c->again.run = list_again;
    for (unsigned i = 0; i < PREFIXES; i++) {
        c->watch[i] = (struct watch){.census = c, .watch = {.home = l, .changed = changed}};
        meta_watch(meta, prefixes[i], &c->watch[i].watch);
    }
    list(c);
    return c;
}

void census_drop(struct census **census)
{
    struct census *c = *census;

    *census = NULL;
    if (!c)
        return;
    for (unsigned i = 0; i < PREFIXES; i++)
        meta_unwatch(c->meta, &c->watch[i].watch);
    loop_cancel(c->loop, &c->again);
    c->gone = true;
    if (c->listing == CENSUS_RESTING)
        end(c);
}

void census_look(struct census *c)
{
    list(c);
}

uint64_t census_revision(const struct census *c)
{
    return c->revision;
}

bool census_is_ready(const struct census *c)
{
    return c->ready;
}

bool census_is_paused(const struct census *c)
{
    return c->paused;
}

bool census_delay(const struct census *c, uint64_t *us)
{
    *us = c->delay_us;
    return c->has_delay;
}

uint32_t census_count(const struct census *c)
{
    return c->n;
}

const char *census_id(const struct census *c, uint32_t number)
{
    return c->at[number].id;
}

bool census_is_here(const struct census *c, uint32_t number)
{
    return c->at[number].here;
}

bool census_has_cookie(const struct census *c, uint32_t number)
{
    return c->at[number].cookie;
}

bool census_is_leaving(const struct census *c, uint32_t number)
{
    return c->at[number].leaving;
}

bool census_is_writable(const struct census *c, uint32_t number)
{
    return c->at[number].writable;
}

bool census_cookie_goes(const struct census *c, uint32_t number)
{
    return c->at[number].cookie_goes;
}

uint64_t census_asked(const struct census *c)
{
    return c->asked;
}
