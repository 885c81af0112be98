#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/mem.h"
#include "proto/message.h"
#include "tests/sim/topic/topic.h"

#define TOPIC "public/default/persistent/t"

enum { ACTS = 400, ACT_US = 4000, LIMIT_US = 600 * 1000 * 1000 };

static const char *const cursor_names[CURSORS] = {"a", "b", "c"};
static struct ml_conf conf;

/* ---- owners ---- */

static void grew(struct ml_owner *t)
{
    (void)t;
}

static void end_it(void *arg);

static void failed(struct ml_owner *t, enum err err)
{
    struct owner *o = container_of(t, struct owner, tell);

    (void)err;
    topic_say("owner %u is fenced", o->number);
    topic.tally->fenced++;
    topic_later(o->loop, topic_delay(), end_it, o);
}

static void begin_loop(struct owner *o)
{
    o->tell = (struct ml_owner){grew, failed};
    o->loop = topic_loop_new();
    o->client = client_new(o->loop);
    o->env = NULL;
    o->ml = NULL;
    o->state = OWNER_OUT;
    o->terminating = false;
    memset(o->resetting, 0, sizeof o->resetting);
    memset(o->acks, 0, sizeof o->acks);
}

/* Of each entry up to p, or behind it. */
static void set_acks(unsigned c, struct position p, bool behind, enum ack_state from,
                     enum ack_state to)
{
    for (unsigned l = 0; l < topic.logs; l++)
        for (int e = 0; e < LOG_ENTRIES; e++) {
            struct position at = {l, e};
            if ((position_compare(at, p) > 0) != behind || topic.ack[c][l][e] != from)
                continue;
            topic.ack[c][l][e] = (uint8_t)to;
            topic.acked_us[c][l][e] = topic.now;
        }
}

struct making {
    struct ml_cursor_call call;
    struct owner *owner;
    unsigned c;
};

static void made(struct ml_cursor_call *call, enum err err, struct cursor *cursor)
{
    struct making *m = container_of(call, struct making, call);

    (void)cursor;
    topic_say("owner %u: cursor %u: %s", m->owner->number, m->c, err_name(err));
    topic.tally->made += !err;
    topic.tally->made_unsure += err != ERR_OK;
    if (err || (m->c == LATE && topic.late_over))
        return;
    topic.late_open -= m->c == LATE;
    topic.has_cursor[m->c] = true;
    topic.made_us[m->c] = topic.now;
}

static void make_cursor(struct owner *o, unsigned c, struct position at)
{
    struct making *m = mem_new(struct making);

    m->call.done = made;
    m->owner = o;
    m->c = c;
    const struct segments *row = managed_ledger_segments(o->ml);
    struct position trimmed = {row->n ? row->at[0].ledger - 1 : INT64_MAX, INT64_MAX};
    topic.late_open += c == LATE;
    set_acks(c, at, false, ACK_NEVER, ACK_MAYBE);
    set_acks(c, trimmed, false, ACK_NEVER, ACK_MAYBE);
    managed_ledger_cursor_create(o->ml, cursor_names[c], at, &m->call);
}

static void make_cursors(struct owner *o)
{
    for (unsigned c = 0; c < LATE; c++)
        if (!managed_ledger_cursor(o->ml, cursor_names[c]))
            make_cursor(o, c, POSITION_EARLIEST);
}

static void opened(struct ml_call *call, enum err err, struct managed_ledger *m)
{
    struct owner *o = container_of(call, struct owner, call);

    topic_say("owner %u opens the topic: %s", o->number, err_name(err));
    topic.tally->open_failed += err != ERR_OK;
    o->state = err ? OWNER_OUT : OWNER_IN;
    if (err)
        return;
    o->ml = m;
    o->opened = ++topic.openings;
    check_row(o);
    check_cursors(o);
    if (topic.terminated && topic.ended_us < o->began_us && !managed_ledger_is_terminated(m))
        topic_fault("the topic was terminated, and is not any more");
    make_cursors(o);
}

static void open_it(void *arg)
{
    struct owner *o = arg;

    if (o->state != OWNER_OUT)
        return;
    if (!o->env)
        o->env = ml_env_new(o->loop, o->client, &topic.store, &conf);
    topic.tally->openings++;
    topic.tally->takeovers += topic.owner[1 - o->number].state == OWNER_IN;
    o->state = OWNER_OPENING;
    o->began_us = topic.now;
    o->call.done = opened;
    managed_ledger_open(o->env, TOPIC, true, &o->tell, &o->call);
}

static void ended(struct ml_call *call, enum err err, struct managed_ledger *m)
{
    struct owner *o = container_of(call, struct owner, call);

    (void)m;
    topic_say("owner %u has left the topic: %s", o->number, err_name(err));
    topic.tally->closed += !err;
    o->state = OWNER_OUT;
}

static void end_it(void *arg)
{
    struct owner *o = arg;

    if (o->state != OWNER_IN)
        return;
    if (o->terminating) { /* as a topic does */
        topic_later(o->loop, ACT_US, end_it, o);
        return;
    }
    topic_say("owner %u leaves", o->number);
    o->state = OWNER_ENDING;
    o->call.done = ended;
    managed_ledger_close(&o->ml, &o->call);
}

static void kill_it(struct owner *o)
{
    topic_say("owner %u is killed", o->number);
    topic.tally->crashes++;
    topic_loop_kill(o->loop);
    begin_loop(o);
}

/* ---- publishing ---- */

struct publication {
    struct ml_add add;
    unsigned v, by;
    char text[16];
};

static void published(struct ml_add *a, enum err err, struct position at, uint64_t index)
{
    struct publication *p = container_of(a, struct publication, add);
    struct value *value = &topic.value[p->v];

    topic_say("value %u: %s, %d:%d", p->v, err_name(err), (int)at.ledger, (int)at.entry);
    chain_drop(&a->payload);
    value->state = err ? VALUE_FAILED : VALUE_ACKED;
    value->acked_us = topic.now;
    topic.tally->published += !err;
    topic.tally->failed += err != ERR_OK;
    if (!err)
        check_acked(p->v, at, index);
}

static void publish(void *arg)
{
    struct owner *o = arg;

    for (unsigned n = 1 + topic_roll(5); n > 0 && o->state == OWNER_IN; n--) {
        if (topic.values == topic.knobs.values)
            return;
        struct publication *p = mem_new(struct publication);
        p->v = topic.values++;
        struct value *value = &topic.value[p->v];
        int len = snprintf(p->text, sizeof p->text, "v%u", p->v);
        chain_push(&p->add.payload, slice_copy(p->text, (size_t)len));
        p->add.crc = crc32c(p->text, (size_t)len);
        p->add.messages = 1 + p->v % 3;
        p->add.done = published;
        *value = (struct value){.state = VALUE_ASKED,
                                .messages = p->add.messages,
                                .by = o->opened,
                                .at = POSITION_EARLIEST};
        topic.tally->two_owners += o->opened != topic.openings;
        if (managed_ledger_add(o->ml, &p->add))
            value->state = VALUE_FAILED;
    }
}

/* ---- acknowledging ---- */

struct acking {
    struct cursor_ack_call call;
    struct ml_call proof;
    struct owner *owner;
    unsigned c, life, epoch, opened, n;
    uint64_t asked_us;
    enum { ACK_EACH, ACK_UPTO, ACK_RESET } how;
    struct position at[3];
};

/* It was proven: nobody had read the cursor before who trims after it.  What was acknowledged since
 * it was asked for may have come later. */
static void reset_done(const struct acking *k)
{
    topic.tally->resets++;
    for (unsigned l = 0; l < topic.logs; l++)
        for (int e = 0; e < LOG_ENTRIES; e++) {
            struct position at = {l, e};
            if (position_compare(at, k->at[0]) > 0 && topic.ack[k->c][l][e] == ACK_MAYBE &&
                topic.acked_us[k->c][l][e] <= k->asked_us)
                topic.ack[k->c][l][e] = ACK_NEVER;
        }
    set_acks(k->c, k->at[0], false, ACK_MAYBE, ACK_DURABLE);
}

static void answered(struct acking *k, enum err err)
{
    struct owner *o = k->owner;

    if (o->life == k->life) {
        o->acks[k->c]--;
        o->resetting[k->c] = o->resetting[k->c] && k->how != ACK_RESET;
    }
    topic_say("owner %u, cursor %u: %s %d:%d and %u more: %s", o->number, k->c,
              k->how == ACK_EACH   ? "acknowledged"
              : k->how == ACK_UPTO ? "acknowledged up to"
                                   : "reset to",
              (int)k->at[0].ledger, (int)k->at[0].entry, k->n ? k->n - 1 : 0, err_name(err));
    topic.tally->acks += !err;
    topic.tally->acks_failed += err != ERR_OK;
    if (!err && k->how == ACK_RESET && k->epoch == topic.resets[k->c]) {
        topic.reset_open[k->c] = false;
        topic.reset_us[k->c] = topic.now;
    }
    /* Who does not know of another owner's seek takes for acknowledged what no longer is. */
    bool knows = (topic.reset_us[k->c] < o->began_us && !topic.reset_open[k->c]) ||
                 topic.reset_by[k->c] == k->opened;
    if (err || k->epoch != topic.resets[k->c] || !knows)
        return;
    if (k->how == ACK_RESET)
        reset_done(k);
    else if (k->how == ACK_UPTO)
        set_acks(k->c, k->at[0], false, ACK_MAYBE, ACK_DURABLE);
    for (unsigned i = 0; k->how == ACK_EACH && i < k->n; i++)
        if (topic.ack[k->c][k->at[i].ledger][k->at[i].entry] == ACK_MAYBE) {
            topic.ack[k->c][k->at[i].ledger][k->at[i].entry] = ACK_DURABLE;
            topic.acked_us[k->c][k->at[i].ledger][k->at[i].entry] = topic.now;
        }
}

static void proven(struct ml_call *call, enum err err, struct managed_ledger *m)
{
    (void)m;
    answered(container_of(call, struct acking, proof), err);
}

/* A seek is confirmed by who is the topic's owner still, as broker/topic/seek.c does it. */
static void acked(struct cursor_ack_call *call, enum err err)
{
    struct acking *k = container_of(call, struct acking, call);
    struct owner *o = k->owner;

    if (err || k->how != ACK_RESET) {
        answered(k, err);
    } else if (o->life != k->life || o->state != OWNER_IN) {
        answered(k, ERR_CLOSED);
    } else {
        k->proof.done = proven;
        managed_ledger_prove(o->ml, &k->proof);
    }
}

/* Some entry of the row; mostly the next one that is due. */
static bool choose(const struct owner *o, const struct cursor *cursor, struct position *out)
{
    const struct segments *row = managed_ledger_segments(o->ml);
    struct position end = segments_last_entry(row);

    *out = cursor_next_unacked(cursor, cursor_mark_delete(cursor));
    if (topic_roll(2) && position_compare(*out, end) <= 0 && segments_find(row, out->ledger))
        return true;
    for (unsigned tries = 0; row->n > 0 && tries < 4; tries++) {
        const struct segment *s = &row->at[topic_roll(row->n)];
        if (s->entries == 0)
            continue;
        *out = (struct position){s->ledger, topic_roll((unsigned)s->entries)};
        return true;
    }
    return false;
}

static void ack_each(struct acking *k, struct cursor *cursor)
{
    for (k->n = 1; k->n < 3 && topic_roll(2) && choose(k->owner, cursor, &k->at[k->n]); k->n++)
        ;
    for (unsigned i = 0; i < k->n; i++) {
        uint8_t *state = &topic.ack[k->c][k->at[i].ledger][k->at[i].entry];
        *state = *state == ACK_NEVER ? ACK_MAYBE : *state;
        if (*state == ACK_MAYBE)
            topic.acked_us[k->c][k->at[i].ledger][k->at[i].entry] = topic.now;
    }
    cursor_ack(cursor, k->at, k->n, &k->call);
}

static void reset_it(struct acking *k, struct cursor *cursor)
{
    k->epoch = ++topic.resets[k->c];
    topic.reset_us[k->c] = topic.now;
    topic.reset_by[k->c] = k->opened;
    topic.reset_open[k->c] = true;
    k->owner->resetting[k->c] = true;
    set_acks(k->c, k->at[0], true, ACK_DURABLE, ACK_MAYBE);
    set_acks(k->c, k->at[0], false, ACK_NEVER, ACK_MAYBE);
    topic_say("cursor %u is reset to %d:%d", k->c, (int)k->at[0].ledger, (int)k->at[0].entry);
    cursor_reset(cursor, k->at[0], &k->call);
}

static void acknowledge(void *arg)
{
    struct owner *o = arg;
    unsigned c = topic_roll(CURSORS);
    struct position at;

    if (o->state != OWNER_IN || o->resetting[c])
        return;
    struct cursor *cursor = managed_ledger_cursor(o->ml, cursor_names[c]);
    if (!cursor || !choose(o, cursor, &at))
        return;
    struct acking *k = mem_new(struct acking);
    *k = (struct acking){.call.done = acked,
                         .owner = o,
                         .c = c,
                         .life = o->life,
                         .epoch = topic.resets[c],
                         .opened = o->opened,
                         .asked_us = topic.now,
                         .at = {at}};
    unsigned how = topic_roll(100);
    bool calm = o->acks[c] == 0;
    o->acks[c]++;
    if (how < 5 && calm) {
        k->how = ACK_RESET;
        reset_it(k, cursor);
    } else if (how < 25) {
        k->how = ACK_UPTO;
        set_acks(c, at, false, ACK_NEVER, ACK_MAYBE);
        set_acks(c, at, false, ACK_MAYBE, ACK_MAYBE); /* as late as that */
        cursor_ack_upto(cursor, at, &k->call);
    } else {
        ack_each(k, cursor);
    }
}

/* ---- a cursor that comes and goes ---- */

static void unmade(struct ml_cursor_call *call, enum err err, struct cursor *cursor)
{
    struct making *m = container_of(call, struct making, call);

    (void)cursor;
    topic_say("owner %u: cursor %u is deleted: %s", m->owner->number, m->c, err_name(err));
    if (err)
        return;
    topic.tally->deleted++;
    topic.deleted_us = topic.now;
}

static void delete_late(struct owner *o)
{
    struct making *m = mem_new(struct making);

    m->call.done = unmade;
    m->owner = o;
    m->c = LATE;
    topic.late_over = true;
    topic.has_cursor[LATE] = false;
    managed_ledger_cursor_delete(o->ml, cursor_names[LATE], &m->call);
}

/* It is made anywhere in the row, once, and may be deleted again, for good. */
static void come_or_go(void *arg)
{
    struct owner *o = arg;
    const struct segments *row;

    if (o->state != OWNER_IN || topic.late_over)
        return;
    row = managed_ledger_segments(o->ml);
    bool known = managed_ledger_cursor(o->ml, cursor_names[LATE]) != NULL;
    if (known && topic.has_cursor[LATE] && topic_roll(3) == 0)
        delete_late(o);
    if (known || topic.has_cursor[LATE])
        return;
    const struct segment *s = row->n ? &row->at[topic_roll(row->n)] : NULL;
    struct position at = POSITION_EARLIEST;
    if (s && s->entries)
        at = (struct position){s->ledger, (int64_t)topic_roll((unsigned)s->entries)};
    make_cursor(o, LATE, at);
}

/* ---- reading all of it ---- */

struct whole {
    struct ml_read read;
    struct owner *owner;
    unsigned life;
    uint64_t began_us, index;
    bool any, last;
    struct position before;
    bool seen[VALUES];
};

static void end_life(void);

/* What was confirmed, and is not trimmed, was there. */
static void read_all(struct whole *w)
{
    const struct owner *o = w->owner;
    const struct segments *row = managed_ledger_segments(o->ml);
    int64_t first = row->n ? row->at[0].ledger : INT64_MAX;

    topic.tally->reads++;
    for (unsigned v = 0; v < topic.values; v++) {
        const struct value *value = &topic.value[v];
        bool known = value->acked_us < o->began_us || value->by == o->opened;
        if (value->state == VALUE_ACKED && known && value->acked_us < w->began_us &&
            value->at.ledger >= first && !w->seen[v])
            topic_fault("value %u was confirmed at %d:%d, and owner %u does not read it", v,
                        (int)value->at.ledger, (int)value->at.entry, o->number);
    }
    if (w->last && !topic.fault)
        end_life();
}

static void take_entry(struct whole *w, const struct ml_entry *e)
{
    struct broker_entry b;
    struct view rest;
    char text[16];

    if (broker_entry_read(slice_view(e->payload), &b, &rest) || rest.len < 2 ||
        rest.len >= sizeof text) {
        topic_fault("an entry that nobody wrote");
        return;
    }
    memcpy(text, rest.base, rest.len);
    text[rest.len] = '\0';
    unsigned v = (unsigned)strtoul(text + 1, NULL, 10);
    if (w->seen[v])
        topic_fault("value %u is read twice", v);
    if (w->any && position_compare(w->before, e->at) >= 0)
        topic_fault("value %u is read out of order", v);
    /* What comes next was trimmed while this was read. */
    bool cut = w->any && !segments_find(managed_ledger_segments(w->owner->ml), w->before.ledger);
    bool begins = !w->any && e->at.ledger == 0 && e->at.entry == 0;
    if ((w->any && !cut && b.index != w->index + topic.value[v].messages) ||
        (begins && b.index + 1 != topic.value[v].messages))
        topic_fault("value %u at %d:%d has index %u, behind %u", v, (int)e->at.ledger,
                    (int)e->at.entry, (unsigned)b.index, (unsigned)w->index);
    if (topic.value[v].state == VALUE_ACKED && topic.value[v].index != b.index)
        topic_fault("value %u has index %u, and was told %u", v, (unsigned)b.index,
                    (unsigned)topic.value[v].index);
    w->seen[v] = w->any = true;
    w->index = b.index;
    w->before = e->at;
    check_entry(e->at, v);
}

static void some_read(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                      struct position next)
{
    struct whole *w = container_of(r, struct whole, read);
    struct owner *o = w->owner;

    for (unsigned i = 0; i < n; i++) {
        if (o->state == OWNER_IN)
            take_entry(w, &entries[i]);
        slice_drop(&entries[i].payload);
    }
    if (o->state != OWNER_IN || o->life != w->life || (err && err_class(err) != CLASS_RETRY))
        return;
    if (!err && n == 0) {
        read_all(w);
        return;
    }
    r->from = next;
    managed_ledger_read(o->ml, r);
}

static void read_whole(struct owner *o, bool last)
{
    struct whole *w = mem_new(struct whole);

    w->read = (struct ml_read){
        .from = POSITION_EARLIEST, .max_entries = 1 + topic_roll(9), .done = some_read};
    w->owner = o;
    w->life = o->life;
    w->last = last;
    w->began_us = topic.now;
    managed_ledger_read(o->ml, &w->read);
}

static void read_it(void *arg)
{
    struct owner *o = arg;

    if (o->state == OWNER_IN)
        read_whole(o, false);
}

/* ---- the end of the topic ---- */

struct end {
    struct ml_terminate order;
    struct owner *owner;
};

static void terminated(struct ml_terminate *t, enum err err, struct position last)
{
    container_of(t, struct end, order)->owner->terminating = false;
    topic_say("the topic is terminated at %d:%d: %s", (int)last.ledger, (int)last.entry,
              err_name(err));
    if (err)
        return;
    if (topic.terminated && !position_equal(topic.end, last))
        topic_fault("the topic was terminated at another place");
    if (!topic.terminated)
        topic.ended_us = topic.now;
    topic.tally->terminated += !topic.terminated;
    topic.terminated = true;
    topic.end = last;
}

static void terminate(void *arg)
{
    struct owner *o = arg;

    if (o->state != OWNER_IN || o->terminating)
        return;
    struct end *e = mem_new(struct end);
    e->owner = o;
    o->terminating = true;
    e->order.done = terminated;
    managed_ledger_terminate(o->ml, &e->order);
}

/* ---- a life ---- */

static void enough_bookies(void *arg)
{
    (void)arg;
    bookies_are(3);
}

static void disturb(struct owner *o)
{
    unsigned what = topic_roll(100);

    if (what < 20 && topic.knobs.crashes) {
        o->life++;
        kill_it(o);
    } else if (what < 45 && topic.knobs.freezes) {
        topic.tally->frozen++;
        topic_loop_freeze(o->loop, topic_roll(400000));
    } else if (what < 60 && topic.knobs.shortages && topic.bookies == 3) {
        topic.tally->shortages++;
        bookies_are(1);
        topic_later(NULL, topic_roll(300000), enough_bookies, NULL);
    } else if (what < 75) {
        topic_later(o->loop, 0, end_it, o);
    } else {
        topic_later(o->loop, 0, open_it, o);
    }
}

static void last_check(void *arg);

static void act(void *arg)
{
    unsigned left = (unsigned)(uintptr_t)arg, what = topic_roll(100);
    struct owner *o = &topic.owner[topic_roll(OWNERS)];

    if (what < 6)
        disturb(o);
    else if (topic.owner[0].state == OWNER_OUT && topic.owner[1].state == OWNER_OUT)
        topic_later(o->loop, 0, open_it, o);
    else if (what < 50)
        topic_later(o->loop, 0, publish, o);
    else if (what < 90)
        topic_later(o->loop, 0, acknowledge, o);
    else if (what < 96)
        topic_later(o->loop, 0, read_it, o);
    else if (what < 98 && topic.knobs.late)
        topic_later(o->loop, 0, come_or_go, o);
    else if (what < 99 && left < ACTS / 4 && topic.knobs.terminates)
        topic_later(o->loop, 0, terminate, o);
    if (left > 0)
        topic_later(NULL, 1 + topic_roll(ACT_US), act, (void *)(uintptr_t)(left - 1));
    else
        topic_later(NULL, 0, last_check, NULL);
}

/* Both brokers are gone, and everything works: a third one finds all of it. */
static void try_last(void *arg)
{
    struct owner *o = arg;

    if (topic.now > topic.healed_us + LIMIT_US)
        topic_fault("the topic does not open any more");
    else if (o->state == OWNER_IN)
        read_whole(o, true);
    else
        topic_later(o->loop, 100000, try_last, o);
    if (o->state == OWNER_OUT)
        open_it(o);
}

static void last_check(void *arg)
{
    (void)arg;
    topic_say("all is well from now on");
    topic.healed = true;
    topic.healed_us = topic.now;
    bookies_are(3);
    for (unsigned i = 0; i < OWNERS; i++) {
        topic.owner[i].life++;
        kill_it(&topic.owner[i]);
    }
    topic_later(topic.owner[0].loop, 1000, try_last, &topic.owner[0]);
}

/* After a clean end everything is in Pulsar's form: once more. */
static void end_life(void)
{
    struct owner *o = &topic.owner[0];

    if (topic.again) {
        topic.over = true;
        return;
    }
    topic.again = true;
    topic_later(o->loop, 0, end_it, o);
    topic_later(o->loop, 1000000, try_last, o);
}

static struct topic_knobs knobs_of(void)
{
    bool calm = topic_roll(4) == 0;

    return (struct topic_knobs){
        .away = calm ? 0 : topic_roll(100),
        .unsure = calm ? 0 : topic_roll(250),
        .fail = calm            ? 0
                : topic_roll(2) ? topic_roll(30)
                                : topic_roll(150),
        .slow_us = 100 + topic_roll(topic_roll(2) ? 3000 : 20000),
        .values = 40 + topic_roll(VALUES - 40),
        .crashes = topic_roll(2),
        .freezes = topic_roll(2),
        .shortages = topic_roll(3) == 0,
        .terminates = topic_roll(3) == 0,
        .late = topic_roll(3) > 0,
    };
}

const char *topic_life(uint64_t seed, bool loud, struct topic_tally *tally)
{
    memset(&topic, 0, sizeof topic);
    topic.seed = seed * 0x9e3779b97f4a7c15u + 7;
    topic.loud = loud;
    topic.tally = tally;
    topic.bookies = 3;
    topic.knobs = knobs_of();
    conf = (struct ml_conf){
        .quorum = {2, 2, 2},
        .max_entries_per_ledger = 2 + topic_roll(10),
        .max_bytes_per_ledger = 1 << 30,
        .max_rollover_ms = 3600 * 1000,
        .retention_ms = topic_roll(4) ? 0 : -1,
        .retention_bytes = topic_roll(4) ? 0 : -1,
        .pending_bytes = 1 << 16,
        .cache_bytes = topic_roll(2) ? 1 << 16 : 0,
        .cursor_max_entries = 2 + topic_roll(20),
        .cursor_delta_delay_us = 100,
    };
    store_begin();
    for (unsigned i = 0; i < OWNERS; i++) {
        topic.owner[i].number = i;
        begin_loop(&topic.owner[i]);
    }
    topic_later(NULL, 0, act, (void *)(uintptr_t)ACTS);
    topic_run();
    if (!topic.fault && !topic.over)
        topic_fault("nothing happens any more");
    return topic.fault;
}
