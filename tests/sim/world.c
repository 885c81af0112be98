#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "tests/sim/sim.h"

struct sim *sim_new(struct tally *tally)
{
    struct sim *s = mem_new(struct sim);

    s->tally = tally;
    s->heap = mem_alloc(EVENTS * sizeof *s->heap);
    s->requests = mem_alloc(REQUESTS * sizeof *s->requests);
    s->meta_requests = mem_alloc(REQUESTS * sizeof *s->meta_requests);
    s->records = mem_alloc(LEDGERS * sizeof *s->records);
    s->truth = mem_alloc(LEDGERS * sizeof *s->truth);
    s->bookie = mem_alloc(BOOKIES * sizeof *s->bookie);
    return s;
}

void sim_drop(struct sim **sim)
{
    struct sim *s = *sim;

    actors_drop(s);
    audit_drop(s);
    mem_free(s->heap);
    mem_free(s->requests);
    mem_free(s->meta_requests);
    mem_free(s->records);
    mem_free(s->truth);
    mem_free(s->bookie);
    mem_free(s);
    *sim = NULL;
}

unsigned roll(struct sim *s, unsigned n)
{
    return (unsigned)rng_below(&s->seed, n);
}

bool chance(struct sim *s, unsigned per_mille)
{
    return roll(s, 1000) < per_mille;
}

bool healed(const struct sim *s)
{
    return s->now >= HEAL;
}

unsigned size_of(unsigned value)
{
    return 1 + value * 7 % 50;
}

void say(struct sim *s, const char *fmt, ...)
{
    va_list ap;

    if (!s->loud)
        return;
    printf("[%5u] ", s->now);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void fault(struct sim *s, const char *fmt, ...)
{
    va_list ap;

    if (s->fault)
        return; /* the first one is the story */
    va_start(ap, fmt);
    vsnprintf(s->text, sizeof s->text, fmt, ap);
    va_end(ap);
    s->fault = s->text;
}

/* ---- what is to come: a heap by time, then by the order of asking ---- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void swap(struct event *a, struct event *b)
{
    struct event t = *a;

    *a = *b;
    *b = t;
}

struct event *later(struct sim *s, unsigned delay, void (*run)(struct sim *s, struct event *e))
{
    unsigned i = s->n++;

    if (s->n == EVENTS) {
        fault(s, "more events than any life has");
        s->n--;
        i = s->n - 1;
    }
    s->heap[i] = (struct event){.time = s->now + delay, .order = s->order++, .run = run};
    while (i > 0 && is_before(&s->heap[i], &s->heap[(i - 1) / 2])) {
        swap(&s->heap[i], &s->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    return &s->heap[i];
}

static struct event take_first(struct sim *s)
{
    struct event first = s->heap[0];
    unsigned i = 0;

    s->heap[0] = s->heap[--s->n];
    for (;;) {
        unsigned child = 2 * i + 1;
        if (child >= s->n)
            return first;
        if (child + 1 < s->n && is_before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!is_before(&s->heap[child], &s->heap[i]))
            return first;
        swap(&s->heap[child], &s->heap[i]);
        i = child;
    }
}

/* ---- a life ---- */

/* The ledger is closed meanwhile, and some bookie may not be heard by those who close it. */
static void oversleep(struct sim *s, struct knobs *k)
{
    k->writer_stops = 1 + roll(s, 300);
    k->writer_goes_on = k->writer_stops + 500 + roll(s, HEAL / 2);
    k->wiped = k->writer_stops + roll(s, (k->writer_goes_on - k->writer_stops) / 2);
    k->unheard = chance(s, 700) ? 1 + roll(s, BOOKIES) : 0;
}

/* Some lives are calm, so that the faults of others do not hide behind failures. */
static struct knobs knobs_of(struct sim *s)
{
    static const struct quorum quorums[] = {{1, 1, 1}, {2, 2, 1}, {2, 2, 2}, {3, 2, 2}, {3, 3, 2},
                                            {3, 3, 2}, {3, 3, 3}, {4, 2, 2}, {4, 3, 2}, {5, 3, 2},
                                            {4, 4, 3}, {3, 2, 1}, {5, 5, 3}};
    struct knobs k = {.quorum = quorums[roll(s, sizeof quorums / sizeof *quorums)]};
    bool calm = chance(s, 250), deadly = chance(s, 700);

    k.batch = chance(s, 800) ? 2 + roll(s, BATCH - 1) : 1;
    k.one_each = chance(s, 300) ? roll(s, 1u << BOOKIES) : 0;
    k.slow = 1 + roll(s, chance(s, 500) ? 10 : 60);
    k.timeout = 150 + roll(s, chance(s, 700) ? 250 : 1000);
    k.lost = calm ? 0 : roll(s, 30);
    k.refuse = calm ? 0 : roll(s, 20);
    k.misread = calm ? 0 : roll(s, 60);
    k.meta_away = roll(s, 100);
    k.meta_unsure = roll(s, 200);
    k.crashes = deadly ? roll(s, 6) : 0;
    k.cuts = calm ? 0 : roll(s, 8);
    k.partitions = calm ? 0 : roll(s, 4);
    k.freezes = calm ? 0 : roll(s, 4);
    k.alone = chance(s, 500) ? roll(s, 1001) : 0;
    k.delay_changes = chance(s, 150);
    k.total = 4 + roll(s, chance(s, 500) ? 24 : 60);
    k.past = chance(s, 300) ? 500 : 0;
    if (chance(s, 500))
        for (unsigned i = 0; i < 4; i++)
            k.far[roll(s, ACTORS)][roll(s, BOOKIES)] = roll(s, chance(s, 700) ? 120 : 600);
    k.pause = 1 + roll(s, chance(s, 500) ? 25 : 150);
    k.writer_dies = chance(s, 500) ? 1 + roll(s, HEAL / 2) : 0;
    for (unsigned a = RECOVERERS; a < MENDERS; a++)
        k.recover_at[a] = 1 + roll(s, chance(s, 800) ? HEAL / 10 : HEAL);
    if (chance(s, 500)) /* both at once */
        k.recover_at[2] = k.recover_at[1] + roll(s, 40);
    k.writer_stops = chance(s, 300) ? 1 + roll(s, HEAL / 4) : 0;
    k.writer_goes_on = k.writer_stops + roll(s, HEAL / 2);
    k.wipes = k.quorum.ack > 1 && chance(s, 500);
    k.wiped = roll(s, HEAL / 2);
    if (k.wipes &&
        chance(s, 500)) /* an old writer wakes up beside a bookie that has forgotten it */
        oversleep(s, &k);
    k.lockless = chance(s, 500) ? roll(s, 300) : 0;
    k.unmarked = chance(s, 200);
    return k;
}

static void simplify(struct knobs *k, unsigned without, unsigned entries)
{
#define PLAIN_APPLY(name, how)        \
    if (without & 1u << PLAIN_##name) \
        how;
    PLAIN_LINES(PLAIN_APPLY)
#undef PLAIN_APPLY
    if (entries && entries < k->total)
        k->total = entries;
}

static void crash_event(struct sim *s, struct event *e)
{
    bookie_crash(s, e->a);
}

static void wipe_event(struct sim *s, struct event *e)
{
    bookie_wipe(s, e->a);
}

static void freeze_event(struct sim *s, struct event *e)
{
    bookie_freeze(s, e->a);
}

static void cut_event(struct sim *s, struct event *e)
{
    network_cut(s, e->a, e->b);
}

static void partition_event(struct sim *s, struct event *e)
{
    say(s, "network: a%u and b%u do not hear each other", e->a, e->b);
    s->cut_until[e->a][e->b] = s->now + 50 + roll(s, 400);
}

static void recover_event(struct sim *s, struct event *e)
{
    recovery_start(s, e->a);
}

static void kill_event(struct sim *s, struct event *e)
{
    (void)e;
    writer_kill(s);
}

static void plan(struct sim *s, unsigned times, void (*run)(struct sim *s, struct event *e))
{
    while (times-- > 0) {
        struct event *e = later(s, roll(s, HEAL - 1), run);
        e->a = roll(s, run == crash_event || run == freeze_event ? BOOKIES : ACTORS);
        e->b = roll(s, BOOKIES);
    }
}

static void begin(struct sim *s, uint64_t seed, bool loud)
{
    actors_drop(s);
    audit_drop(s);
    s->seed = seed * 0x9e3779b97f4a7c15u + 1;
    s->now = s->order = s->n = 0;
    s->loud = loud;
    s->fault = NULL;
    s->ledgers = 0;
    s->next_request = s->next_meta = 0;
    memset(s->requests, 0, REQUESTS * sizeof *s->requests);
    memset(s->records, 0, LEDGERS * sizeof *s->records);
    memset(s->truth, 0, LEDGERS * sizeof *s->truth);
    memset(s->bookie, 0, BOOKIES * sizeof *s->bookie);
    memset(s->cut_until, 0, sizeof s->cut_until);
    memset(s->mark, 0, sizeof s->mark);
    memset(s->lock, 0, sizeof s->lock);
    memset(s->lost_at, 0, sizeof s->lost_at);
    s->revision = 1;
    s->knobs = knobs_of(s);
    simplify(&s->knobs, s->without, s->entries);
    plan(s, s->knobs.crashes, crash_event);
    plan(s, s->knobs.freezes, freeze_event);
    plan(s, s->knobs.cuts, cut_event);
    plan(s, s->knobs.partitions, partition_event);
    if (s->knobs.wipes)
        later(s, s->knobs.wiped, wipe_event)->a = roll(s, BOOKIES);
    for (unsigned a = RECOVERERS; s->knobs.unheard && a <= HEALER; a++)
        s->cut_until[a][s->knobs.unheard - 1] = s->knobs.writer_goes_on;
    for (unsigned a = RECOVERERS; a < MENDERS; a++)
        later(s, s->knobs.recover_at[a], recover_event)->a = a;
    if (s->knobs.writer_dies)
        later(s, s->knobs.writer_dies, kill_event);
}

const char *sim_run(struct sim *s, uint64_t seed, bool loud)
{
    begin(s, seed, loud);
    say(s, "E=%u Qw=%u Qa=%u, %u entries", s->knobs.quorum.ensemble, s->knobs.quorum.write,
        s->knobs.quorum.ack, s->knobs.total);
    writer_start(s);
    mending_start(s);
    audit_start(s);
    while (s->n > 0 && !s->fault) {
        struct event e = take_first(s);
        s->now = e.time;
        if (s->now > END || mending_is_over(s))
            break;
        e.run(s, &e);
        check_all(s);
        s->tally->steps++;
    }
    if (!s->fault)
        check_end(s);
    if (s->fault && loud)
        say(s, "FAULT: %s", s->fault);
    return s->fault;
}
