/* Lives of a Shared subscription, each by its seed: whatever comes in whatever order, nothing is
 * lost and nothing is at two consumers. */
#include "broker/dispatch/shared.h"

#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

static const struct shared_conf conf = {
    .batch_max = 10, .turn_max = 2, .out_max = 2, .known_max = 1000};

static struct position at(int64_t entry)
{
    return (struct position){.ledger = 1, .entry = entry};
}

enum { CONSUMERS = 5, ENTRIES = 120 };

/* The world around one dispatcher: a log, consumers with what they were sent, one read. */
struct life {
    struct shared s;
    uint64_t rng;
    struct shared_consumer c[CONSUMERS];
    bool here[CONSUMERS];
    int holder[ENTRIES]; /* of an entry; -1: nobody */
    bool acked[ENTRIES];
    uint32_t messages[ENTRIES], left[ENTRIES];
    int chunk_of[ENTRIES]; /* 0: none */
    bool last_chunk[ENTRIES];
    int64_t published;
    int64_t read_from; /* -1: no read */
    unsigned read_max;
    const struct cursor_set *only;
    bool retry;
    bool lone;      /* one consumer, no redelivery: the order is kept */
    int64_t newest; /* sent when alone */
};

static struct life *life_of(struct shared *s)
{
    return container_of(s, struct life, s);
}

static void live_read(struct shared *s, struct position from, unsigned max)
{
    struct life *l = life_of(s);

    ck_assert_int_eq(l->read_from, -1);
    l->read_from = from.entry;
    l->read_max = max;
    l->only = NULL;
}

static void live_replay(struct shared *s, const struct cursor_set *only, unsigned max)
{
    live_read(s, at(0), max);
    life_of(s)->only = only;
}

static void live_cancel(struct shared *s)
{
    ck_assert_int_ge(life_of(s)->read_from, 0);
    life_of(s)->read_from = -1;
}

static void live_retry(struct shared *s)
{
    life_of(s)->retry = true;
}

static const struct shared_fx living = {.read = live_read,
                                        .replay = live_replay,
                                        .cancel_read = live_cancel,
                                        .retry_later = live_retry};

static unsigned any(struct life *l, unsigned below)
{
    return (unsigned)rng_below(&l->rng, below);
}

static void sent_to(struct life *l, int64_t e, const struct shared_consumer *to)
{
    int i = (int)(to - l->c);

    ck_assert(l->here[i] && !l->acked[e]);
    ck_assert_int_eq(l->holder[e], -1);
    l->holder[e] = i;
    if (!l->lone)
        return;
    ck_assert_int_gt(e, l->newest);
    l->newest = e;
}

/* What happened while the entries were on their way counts: the acknowledged ones come too. */
static void finish_read(struct life *l)
{
    bool came[ENTRIES] = {false};
    int64_t e = l->read_from;
    unsigned n = 0;

    for (; e < l->published && n < l->read_max; e++) {
        if (l->only ? !cursor_set_has(l->only, at(e)) : l->acked[e])
            continue;
        if (l->only && l->acked[e])
            continue;
        came[e] = true;
        n++;
    }
    l->read_from = -1;
    for (int64_t i = 0; i < e; i++) {
        char uuid[16];
        struct shared_seen seen = {.at = at(i), .messages = l->left[i]};
        if (!came[i])
            continue;
        if (l->chunk_of[i])
            seen.uuid = view_of(uuid, (size_t)snprintf(uuid, sizeof(uuid), "m%d", l->chunk_of[i]));
        seen.last_chunk = l->last_chunk[i];
        struct shared_choice c = shared_entry(&l->s, &seen);
        if (c.verdict == SHARED_SEND)
            sent_to(l, i, c.to);
    }
    shared_read_done(&l->s, any(l, 20) == 0 ? ERR_TIMEOUT : ERR_OK, at(e));
}

static int anyone(struct life *l)
{
    unsigned from = any(l, CONSUMERS);

    for (unsigned i = 0; i < CONSUMERS; i++)
        if (l->here[(from + i) % CONSUMERS])
            return (int)((from + i) % CONSUMERS);
    return -1;
}

static void drop_holds(struct life *l, int who_left)
{
    for (unsigned e = 0; e < ENTRIES; e++)
        if (l->holder[e] == who_left)
            l->holder[e] = -1;
}

static void come_or_go(struct life *l)
{
    unsigned i = any(l, CONSUMERS);

    if (l->lone)
        return;
    if (l->here[i]) {
        l->here[i] = false;
        drop_holds(l, (int)i);
        shared_left(&l->s, &l->c[i]);
    } else {
        l->here[i] = true;
        shared_came(&l->s, &l->c[i], (int32_t)any(l, 2));
    }
}

static void ack_some(struct life *l)
{
    int64_t e = any(l, ENTRIES);
    struct position p = at(e);

    if (e >= l->published || l->acked[e] || (l->holder[e] < 0 && any(l, 10) > 0))
        return;
    if (l->left[e] > 1 && any(l, 3) == 0) {
        l->left[e]--;
        shared_acked_part(&l->s, p, l->left[e]);
        return;
    }
    l->acked[e] = true;
    l->holder[e] = -1;
    shared_acked(&l->s, &p, 1);
}

static void give_some_back(struct life *l)
{
    int i = anyone(l);
    struct position p[4];

    if (i < 0 || l->lone)
        return;
    if (any(l, 8) == 0) {
        drop_holds(l, i);
        shared_redeliver(&l->s, &l->c[i], NULL, 0);
        return;
    }
    for (unsigned k = 0; k < 4; k++) {
        p[k] = at(any(l, ENTRIES));
        if (l->holder[p[k].entry] == i)
            l->holder[p[k].entry] = -1;
    }
    shared_redeliver(&l->s, &l->c[i], p, 4);
}

static void publish(struct life *l)
{
    l->published += any(l, 4);
    if (l->published > ENTRIES)
        l->published = ENTRIES;
    shared_grew(&l->s, at(l->published - 1));
}

static void flow(struct life *l)
{
    int i = anyone(l);

    if (i >= 0)
        shared_flow(&l->s, &l->c[i], 1 + any(l, 12));
}

static void deliver(struct life *l)
{
    int i = anyone(l);

    if (i >= 0 && l->c[i].out > 0)
        shared_delivered(&l->s, &l->c[i]);
}

static void other_limits(struct life *l)
{
    struct shared_conf c = l->s.conf;

    c.max_unacked = any(l, 2) ? 6 : 0;
    c.max_unacked_all = any(l, 2) ? 15 : 0;
    shared_limit(&l->s, &c);
}

static void one_step(struct life *l)
{
    switch (any(l, 10)) {
    case 0:
        if (any(l, 4) == 0)
            come_or_go(l);
        else if (any(l, 8) == 0)
            other_limits(l);
        break;
    case 1:
        publish(l);
        break;
    case 2:
        flow(l);
        break;
    case 3:
        give_some_back(l);
        break;
    case 4:
    case 5:
        ack_some(l);
        break;
    case 6:
        if (l->retry) {
            l->retry = false;
            shared_retry(&l->s);
        }
        break;
    case 7:
        deliver(l);
        break;
    default:
        if (l->read_from >= 0)
            finish_read(l);
    }
    shared_check(&l->s);
}

static void be_born(struct life *l, uint64_t seed)
{
    struct shared_conf c = conf;

    memset(l, 0, sizeof(*l));
    l->rng = seed;
    c.max_unacked = any(l, 2) ? 6 : 0;
    c.max_unacked_all = any(l, 2) ? 15 : 0;
    c.known_max = 20 + any(l, 100);
    l->lone = any(l, 4) == 0;
    l->read_from = -1;
    l->newest = -1;
    for (unsigned e = 0; e < ENTRIES; e++) {
        l->holder[e] = -1;
        l->messages[e] = l->left[e] = 1 + any(l, 4);
    }
    for (unsigned e = 0; e + 4 < ENTRIES; e += 4 + any(l, 10)) {
        for (unsigned k = 0; k < 3; k++) {
            l->chunk_of[e + k] = 1 + (int)e;
            l->left[e + k] = 1;
        }
        l->last_chunk[e + 2] = true;
    }
    shared_init(&l->s, &living, &c);
    l->s.next = at(0);
    l->here[0] = true;
    shared_came(&l->s, &l->c[0], 0);
}

static bool all_acked(const struct life *l)
{
    for (unsigned e = 0; e < ENTRIES; e++)
        if (!l->acked[e])
            return false;
    return true;
}

/* With permits, and consumers that acknowledge, everything is delivered: no wake-up was lost. */
static void end_well(struct life *l)
{
    l->published = ENTRIES;
    shared_grew(&l->s, at(ENTRIES - 1));
    if (anyone(l) < 0) {
        l->here[0] = true;
        shared_came(&l->s, &l->c[0], 0);
    }
    for (unsigned round = 0; !all_acked(l); round++) {
        ck_assert_msg(round < 2000, "entries are stuck");
        for (unsigned i = 0; i < CONSUMERS; i++) {
            if (!l->here[i])
                continue;
            while (l->c[i].out > 0)
                shared_delivered(&l->s, &l->c[i]);
            if (l->c[i].permits < 10)
                shared_flow(&l->s, &l->c[i], 10);
        }
        if (l->retry) {
            l->retry = false;
            shared_retry(&l->s);
        }
        if (l->read_from >= 0)
            finish_read(l);
        for (int64_t e = 0; e < ENTRIES; e++) {
            struct position p = at(e);
            if (l->holder[e] < 0)
                continue;
            l->acked[e] = true;
            l->holder[e] = -1;
            shared_acked(&l->s, &p, 1);
        }
        shared_check(&l->s);
    }
}

static void die(struct life *l)
{
    for (unsigned i = 0; i < CONSUMERS; i++)
        if (l->here[i])
            shared_left(&l->s, &l->c[i]);
    shared_drop(&l->s);
}

START_TEST(nothing_is_lost_and_nothing_is_at_two)
{
    struct life l;

    for (uint64_t seed = 0; seed < 4000; seed++) {
        be_born(&l, seed);
        for (unsigned i = 0; i < 400; i++)
            one_step(&l);
        end_well(&l);
        die(&l);
    }
}
END_TEST

int main(void)
{
    return suite_run("shared_lives",
                     (suite_case[]){SUITE_SLOW(nothing_is_lost_and_nothing_is_at_two, 300), {0}});
}
