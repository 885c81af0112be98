#include "broker/dispatch/shared.h"

#include <assert.h>

enum { SCALE = 16, SPARES_MAX = 4096 };

/* No client has so many; it only keeps the arithmetic from overflowing. */
#define PERMITS_MAX ((int64_t)1 << 40)

/* An entry that was looked at and is not acknowledged. */
struct known {
    struct position at;
    struct shared_consumer *holder; /* NULL: in replay or asked */
    uint32_t messages;              /* that count for its holder */
    uint32_t redeliveries;
    union {
        struct list_node node; /* holder.holds */
        struct known *next;    /* spare */
    };
    UT_hash_handle hh;
};

static void step(struct shared *s);

/* ---- who can take one ---- */

bool shared_takes(const struct shared *s, const struct shared_consumer *c)
{
    return c->permits > 0 && !c->blocked && c->out < s->conf.out_max;
}

/* Whenever something of c has changed. */
static void note(struct shared *s, struct shared_consumer *c)
{
    bool takes = shared_takes(s, c);

    if (takes == c->takes)
        return;
    c->takes = takes;
    s->takers += takes ? 1 : -1u;
    if (takes)
        s->stuck = false;
}

static bool is_blocked(bool was, int64_t unacked, int64_t max)
{
    if (max == 0)
        return false;
    return was ? unacked > max / 2 : unacked >= max;
}

static void count_unacked(struct shared *s, struct shared_consumer *c, int64_t messages)
{
    c->unacked += messages;
    s->unacked += messages;
    c->blocked = is_blocked(c->blocked, c->unacked, s->conf.max_unacked);
    s->blocked = is_blocked(s->blocked, s->unacked, s->conf.max_unacked_all);
    note(s, c);
}

/* ---- what is known ---- */

static struct known *find(const struct shared *s, struct position at)
{
    struct known *k;

    HASH_FIND(hh, s->known, &at, sizeof(at), k);
    return k;
}

static struct known *know(struct shared *s, struct position at)
{
    struct known *k = find(s, at);

    if (k)
        return k;
    k = s->spare;
    if (k) {
        s->spare = k->next;
        s->spares--;
    } else {
        k = mem_alloc(sizeof(*k));
    }
    *k = (struct known){.at = at};
    HASH_ADD(hh, s->known, at, sizeof(k->at), k);
    return k;
}

static void free_known(struct shared *s, struct known *k)
{
    if (s->spares >= SPARES_MAX) {
        mem_free(k);
        return;
    }
    k->next = s->spare;
    s->spare = k;
    s->spares++;
}

static void hold(struct shared *s, struct known *k, struct shared_consumer *c, uint32_t messages)
{
    k->holder = c;
    k->messages = messages;
    list_push_back(&c->holds, &k->node);
    count_unacked(s, c, messages);
}

static void unhold(struct shared *s, struct known *k)
{
    struct shared_consumer *c = k->holder;

    k->holder = NULL;
    list_remove(&k->node);
    count_unacked(s, c, -(int64_t)k->messages);
}

static void into_replay(struct shared *s, struct position at)
{
    s->n_replay += (unsigned)cursor_set_add(&s->replay, at.ledger, at.entry, at.entry);
    s->stuck = false;
}

static bool out_of_asked(struct shared *s, struct position at)
{
    bool was = cursor_set_remove(&s->asked, at);

    s->n_asked -= was;
    return was;
}

static void forget(struct shared *s, struct known *k)
{
    if (k->holder)
        unhold(s, k);
    else if (!out_of_asked(s, k->at))
        s->n_replay -= cursor_set_remove(&s->replay, k->at);
    HASH_DEL(s->known, k);
    free_known(s, k);
    s->stuck = false;
}

static void give_back(struct shared *s, struct known *k, bool counts)
{
    unhold(s, k);
    k->redeliveries += counts && k->redeliveries < UINT32_MAX;
    into_replay(s, k->at);
}

unsigned shared_n_known(const struct shared *s)
{
    return HASH_COUNT(s->known);
}

bool shared_is_full(const struct shared *s)
{
    return shared_n_known(s) >= s->conf.known_max;
}

uint32_t shared_redeliveries(const struct shared *s, struct position at)
{
    const struct known *k = find(s, at);
    return k ? k->redeliveries : 0;
}

/* ---- reading ---- */

static bool may_read(const struct shared *s)
{
    return s->state == SHARED_IDLE && !s->halted && !s->blocked && s->takers > 0;
}

static bool replay_is_due(const struct shared *s)
{
    return may_read(s) && s->n_replay > 0 && !s->stuck;
}

static bool read_is_due(const struct shared *s)
{
    return may_read(s) && !s->dry && position_compare(s->next, s->end) <= 0 && !shared_is_full(s);
}

/* As many entries as all takers' permits are good for. */
static unsigned entries_wanted(const struct shared *s)
{
    int64_t permits = 0, most = (int64_t)s->conf.batch_max * s->per_entry / SCALE + 1;

    list_each(&s->consumers, n)
    {
        const struct shared_consumer *c = list_entry(n, struct shared_consumer, node);
        if (c->takes)
            permits += c->permits < most ? c->permits : most;
    }
    int64_t want = (permits * SCALE + s->per_entry - 1) / s->per_entry;
    if (want < 1)
        want = 1;
    return want < s->conf.batch_max ? (unsigned)want : s->conf.batch_max;
}

static void begin_read(struct shared *s, enum shared_state state)
{
    s->state = state;
    s->seen = s->sent = 0;
    s->given = s->conf.turn_max; /* each read begins with the next one's turn */
}

static void ask(struct shared *s)
{
    unsigned max = entries_wanted(s);
    struct position at;

    begin_read(s, SHARED_REPLAYING);
    while (s->n_asked < max && cursor_set_first(&s->replay, POSITION_EARLIEST, &at)) {
        s->n_replay -= cursor_set_remove(&s->replay, at);
        s->n_asked += (unsigned)cursor_set_add(&s->asked, at.ledger, at.entry, at.entry);
    }
    s->fx->replay(s, &s->asked, max);
}

static void step(struct shared *s)
{
    if (replay_is_due(s)) {
        ask(s);
    } else if (read_is_due(s)) {
        begin_read(s, SHARED_READING);
        s->fx->read(s, s->next, entries_wanted(s));
    }
}

/* What was asked for up to `gone` and did not come is acknowledged, or does not exist any more;
 * the rest waits for another read. */
static void end_asking(struct shared *s, struct position gone)
{
    struct position at;

    while (cursor_set_first(&s->asked, POSITION_EARLIEST, &at)) {
        if (position_compare(at, gone) < 0) {
            forget(s, find(s, at));
            continue;
        }
        out_of_asked(s, at);
        s->n_replay += (unsigned)cursor_set_add(&s->replay, at.ledger, at.entry, at.entry);
    }
}

static void stop_reading(struct shared *s)
{
    if (s->state != SHARED_READING && s->state != SHARED_REPLAYING)
        return;
    s->fx->cancel_read(s);
    end_asking(s, POSITION_EARLIEST);
    s->state = SHARED_IDLE;
}

/* ---- whose turn ---- */

static struct shared_consumer *first_taker(const struct shared *s)
{
    list_each(&s->consumers, n)
    {
        struct shared_consumer *c = list_entry(n, struct shared_consumer, node);
        if (c->takes)
            return c;
    }
    return NULL;
}

/* The next taker of this level behind the one whose turn it was. */
static struct shared_consumer *next_of_level(const struct shared *s, struct shared_consumer *first)
{
    if (!s->turn || s->turn->priority != first->priority)
        return first;
    for (struct list_node *n = s->turn->node.next; n != &s->consumers; n = n->next) {
        struct shared_consumer *c = list_entry(n, struct shared_consumer, node);
        if (c->priority != first->priority)
            break;
        if (c->takes)
            return c;
    }
    return first;
}

static struct shared_consumer *whose_turn(struct shared *s)
{
    if (s->turn && s->turn->takes && s->given < s->conf.turn_max)
        return s->turn;
    struct shared_consumer *first = first_taker(s);
    if (!first)
        return NULL;
    s->turn = next_of_level(s, first);
    s->given = 0;
    return s->turn;
}

/* Is a chunk before this one still to be sent? */
static bool is_held_back(const struct shared *s, const struct pin *pin, struct position at)
{
    if (!pin->holds_back || position_compare(at, pin->waiting) <= 0)
        return false;
    const struct known *k = find(s, pin->waiting);
    return k && !k->holder;
}

static struct shared_consumer *who_gets_chunk(struct shared *s, const struct shared_seen *e)
{
    struct pin *pin = pins_find(&s->pins, e->uuid);
    struct shared_consumer *to;

    if (!pin) {
        to = whose_turn(s);
        if (!to || e->last_chunk)
            return to;
        pins_add(&s->pins, e->uuid, e->at)->to = to;
        return to;
    }
    if (is_held_back(s, pin, e->at))
        return NULL;
    if (!pin->to)
        pin->to = whose_turn(s);
    if (!pin->to || !pin->to->takes) {
        pin->holds_back = true;
        pin->waiting = e->at;
        return NULL;
    }
    pin->holds_back = false;
    to = pin->to;
    if (e->last_chunk)
        pins_remove(&s->pins, pin);
    return to;
}

/* An average that follows: an eighth of what is new. */
static void learn(struct shared *s, uint32_t messages)
{
    uint64_t now = (uint64_t)(messages < 65536 ? messages : 65536) * SCALE;

    s->per_entry = (unsigned)((s->per_entry * 7ull + now) / 8);
    if (s->per_entry < SCALE)
        s->per_entry = SCALE;
}

static void leave(struct shared *s, struct position at)
{
    know(s, at);
    s->n_replay += (unsigned)cursor_set_add(&s->replay, at.ledger, at.entry, at.entry);
}

static struct shared_choice send(struct shared *s, const struct shared_seen *e,
                                 struct shared_consumer *to)
{
    struct known *k = know(s, e->at);

    to->permits -= e->messages;
    to->sending = true;
    s->given++;
    s->sent++;
    hold(s, k, to, e->messages);
    learn(s, e->messages);
    return (struct shared_choice){
        .verdict = SHARED_SEND, .to = to, .redeliveries = k->redeliveries};
}

struct shared_choice shared_entry(struct shared *s, const struct shared_seen *e)
{
    static const struct shared_choice left = {.verdict = SHARED_LEAVE};
    struct shared_consumer *to = NULL;

    assert(s->state == SHARED_READING || s->state == SHARED_REPLAYING);
    s->seen++;
    if (s->state == SHARED_REPLAYING ? !out_of_asked(s, e->at) : !!find(s, e->at))
        return left; /* acknowledged since it was read */
    if (e->marker) {
        struct known *k = find(s, e->at);
        if (k)
            forget(s, k);
        return (struct shared_choice){.verdict = SHARED_SKIP};
    }
    if (!s->blocked)
        to = e->uuid.len > 0 ? who_gets_chunk(s, e) : whose_turn(s);
    if (to)
        return send(s, e, to);
    leave(s, e->at);
    return left;
}

static void count_deliveries(struct shared *s)
{
    list_each(&s->consumers, n)
    {
        struct shared_consumer *c = list_entry(n, struct shared_consumer, node);
        c->out += c->sending;
        c->sending = false;
        note(s, c);
    }
}

void shared_read_done(struct shared *s, enum err err, struct position next)
{
    bool replay = s->state == SHARED_REPLAYING;

    assert(replay || s->state == SHARED_READING);
    s->state = SHARED_IDLE;
    if (s->sent > 0)
        count_deliveries(s);
    if (replay) {
        s->stuck = !err && s->seen > 0 && s->sent == 0;
        end_asking(s, err ? POSITION_EARLIEST : next);
    } else {
        s->dry = !err && s->seen == 0 && position_compare(next, s->next) <= 0;
        s->next = next;
    }
    if (err) {
        s->state = SHARED_BACKING_OFF;
        s->fx->retry_later(s);
    }
    step(s);
}

/* ---- events ---- */

void shared_init(struct shared *s, const struct shared_fx *fx, const struct shared_conf *conf)
{
    *s = (struct shared){.fx = fx, .conf = *conf, .per_entry = SCALE};
    list_init(&s->consumers);
}

static void forget_all(struct shared *s)
{
    struct known *k, *next;

    HASH_ITER(hh, s->known, k, next)
    forget(s, k);
    pins_drop(&s->pins);
}

void shared_drop(struct shared *s)
{
    assert(s->n_consumers == 0);
    stop_reading(s);
    forget_all(s);
    for (struct known *k; (k = s->spare);) {
        s->spare = k->next;
        mem_free(k);
    }
    cursor_set_drop(&s->replay);
    cursor_set_drop(&s->asked);
}

void shared_came(struct shared *s, struct shared_consumer *c, int32_t priority)
{
    struct list_node *behind = s->consumers.prev;

    *c = (struct shared_consumer){.priority = priority};
    list_init(&c->holds);
    while (behind != &s->consumers &&
           list_entry(behind, struct shared_consumer, node)->priority > priority)
        behind = behind->prev;
    list_push_front(behind, &c->node);
    s->n_consumers++;
    step(s);
}

void shared_left(struct shared *s, struct shared_consumer *c)
{
    list_each(&c->holds, n) give_back(s, list_entry(n, struct known, node), false);
    pins_left(&s->pins, c);
    s->stuck = false;
    if (s->turn == c)
        s->turn = c->node.prev == &s->consumers
                      ? NULL
                      : list_entry(c->node.prev, struct shared_consumer, node);
    s->given = s->conf.turn_max;
    s->takers -= c->takes;
    s->n_consumers--;
    list_remove(&c->node);
    if (s->n_consumers == 0)
        stop_reading(s);
    step(s);
}

void shared_flow(struct shared *s, struct shared_consumer *c, uint32_t permits)
{
    if (c->permits < PERMITS_MAX)
        c->permits += permits;
    note(s, c);
    step(s);
}

void shared_grew(struct shared *s, struct position end)
{
    s->end = end;
    s->dry = false;
    step(s);
}

void shared_rewind(struct shared *s, struct position next)
{
    stop_reading(s);
    forget_all(s);
    s->next = next;
    s->dry = false;
    step(s);
}

void shared_halt(struct shared *s, bool halted)
{
    s->halted = halted;
    if (halted)
        stop_reading(s);
    step(s);
}

void shared_limit(struct shared *s, const struct shared_conf *conf)
{
    s->conf.known_max = conf->known_max;
    s->conf.max_unacked = conf->max_unacked;
    s->conf.max_unacked_all = conf->max_unacked_all;
    s->blocked = is_blocked(s->blocked, s->unacked, conf->max_unacked_all);
    list_each(&s->consumers, n)
    {
        struct shared_consumer *c = list_entry(n, struct shared_consumer, node);
        c->blocked = is_blocked(c->blocked, c->unacked, conf->max_unacked);
        note(s, c);
    }
    step(s);
}

void shared_retry(struct shared *s)
{
    if (s->state != SHARED_BACKING_OFF)
        return;
    s->state = SHARED_IDLE;
    step(s);
}

void shared_acked(struct shared *s, const struct position *at, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct known *k = find(s, at[i]);
        if (k)
            forget(s, k);
    }
    step(s);
}

void shared_acked_upto(struct shared *s, struct position at)
{
    struct known *k, *next;

    HASH_ITER(hh, s->known, k, next)
    {
        if (position_compare(k->at, at) <= 0)
            forget(s, k);
    }
    step(s);
}

void shared_acked_part(struct shared *s, struct position at, uint32_t left)
{
    struct known *k = find(s, at);

    if (!k || !k->holder || left >= k->messages)
        return;
    uint32_t done = k->messages - left;
    k->messages = left;
    count_unacked(s, k->holder, -(int64_t)done);
    step(s);
}

void shared_redeliver(struct shared *s, struct shared_consumer *c, const struct position *at,
                      unsigned n)
{
    if (n == 0)
        list_each(&c->holds, node) give_back(s, list_entry(node, struct known, node), true);
    for (unsigned i = 0; i < n; i++) {
        struct known *k = find(s, at[i]);
        if (k && k->holder == c)
            give_back(s, k, true);
    }
    step(s);
}

void shared_delivered(struct shared *s, struct shared_consumer *c)
{
    if (c->out > 0)
        c->out--;
    note(s, c);
    step(s);
}

/* ---- what must hold ---- */

static unsigned check_consumer(const struct shared *s, const struct shared_consumer *c)
{
    int64_t unacked = 0;
    unsigned n = 0;

    list_each(&c->holds, node)
    {
        const struct known *k = list_entry(node, struct known, node);
        assert(k->holder == c && find(s, k->at) == k);
        unacked += k->messages;
        n++;
    }
    assert(unacked == c->unacked && c->out <= s->conf.out_max);
    assert(c->takes == shared_takes(s, c));
    assert(c->blocked == is_blocked(c->blocked, c->unacked, s->conf.max_unacked));
    return n;
}

void shared_check(const struct shared *s)
{
    const struct shared_consumer *before = NULL;
    int64_t unacked = 0;
    unsigned held = 0, takers = 0, n = 0;

    list_each(&s->consumers, node)
    {
        const struct shared_consumer *c = list_entry(node, struct shared_consumer, node);
        held += check_consumer(s, c);
        unacked += c->unacked;
        takers += c->takes;
        n++;
        assert(!before || before->priority <= c->priority);
        before = c;
    }
    assert(n == s->n_consumers && takers == s->takers && unacked == s->unacked);
    assert(s->n_replay == cursor_set_count(&s->replay, INT64_MIN));
    assert(s->n_asked == cursor_set_count(&s->asked, INT64_MIN));
    assert(held + s->n_replay + s->n_asked == shared_n_known(s));
    assert(s->n_asked == 0 || s->state == SHARED_REPLAYING);
    assert(s->blocked == is_blocked(s->blocked, s->unacked, s->conf.max_unacked_all));
    assert(!replay_is_due(s) && !read_is_due(s));
    (void)held, (void)takers, (void)n, (void)unacked, (void)before;
}
