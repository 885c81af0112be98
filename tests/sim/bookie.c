#include <string.h>

#include "proto/bookie_frame.h"
#include "tests/sim/sim.h"

enum { SYNC_MAX = 12, DOWN_MAX = 500, FROZEN_MAX = 500 };

static void make_durable(struct sim *s, unsigned b, const struct journal_line *line)
{
    struct sim_bookie *k = &s->bookie[b];

    if (line->entry == ENTRY_NONE) {
        k->durable_fenced[line->ledger] = true;
    } else {
        k->disk[line->ledger][line->entry] = line->image;
        k->lost[line->ledger][line->entry] = false;
    }
    check_durable(s, b, line);
}

static void wait_for_thaw(struct sim *s, unsigned b, void (*run)(struct sim *s, struct event *e),
                          unsigned x, unsigned y)
{
    struct event *e = later(s, s->bookie[b].frozen_until - s->now, run);

    e->a = x;
    e->b = y;
}

static void sync_done(struct sim *s, struct event *e)
{
    unsigned b = e->a;
    struct sim_bookie *k = &s->bookie[b];

    if (k->life != e->b)
        return;
    if (k->frozen_until > s->now) {
        wait_for_thaw(s, b, sync_done, e->a, e->b);
        return;
    }
    k->syncing = false;
    for (unsigned i = 0; i < k->lines; i++)
        make_durable(s, b, &k->journal[i]);
    for (unsigned i = 0; i < k->lines; i++)
        reply_send(s, k->journal[i].request, k->journal[i].generation, &k->journal[i].reply);
    k->lines = 0;
}

static void append_line(struct sim *s, unsigned b, const struct journal_line *line)
{
    struct sim_bookie *k = &s->bookie[b];

    if (k->lines == JOURNAL) {
        fault(s, "a journal longer than any life needs");
        return;
    }
    k->journal[k->lines++] = *line;
    if (k->syncing)
        return;
    k->syncing = true;
    struct event *e = later(s, 1 + roll(s, SYNC_MAX), sync_done);
    e->a = b;
    e->b = k->life;
}

static enum err refusal(struct sim *s)
{
    static const enum err why[] = {ERR_IO, ERR_READ_ONLY, ERR_BUSY};

    return why[roll(s, 3)];
}

static void take_add(struct sim *s, unsigned request)
{
    struct request *q = &s->requests[request];
    struct sim_bookie *k = &s->bookie[q->bookie];
    struct reply r = {0};

    bool plain = !(q->flags & BOOKIE_RECOVERY_ADD);

    if (plain && (k->fenced[q->ledger] || bookie_may_have_fenced(s, q->bookie, q->ledger))) {
        r.err = ERR_FENCED;
    } else if (!healed(s) && chance(s, s->knobs.refuse)) {
        r.err = refusal(s);
        say(s, "b%u refuses ledger %u entry %d: %s", q->bookie, q->ledger, (int)q->entry,
            err_name(r.err));
    } else {
        struct image image = q->image;
        image.here = true;
        image.plain = !(q->flags & BOOKIE_RECOVERY_ADD);
        k->memory[q->ledger][q->entry] = image;
        append_line(s, q->bookie,
                    &(struct journal_line){.ledger = q->ledger,
                                           .entry = q->entry,
                                           .image = image,
                                           .request = request,
                                           .generation = q->generation});
        return;
    }
    reply_send(s, request, q->generation, &r);
}

static struct reply look_up(struct sim *s, const struct request *q)
{
    const struct image *all = s->bookie[q->bookie].memory[q->ledger];
    entry_id e = q->entry;

    if (!healed(s) && chance(s, s->knobs.misread))
        return (struct reply){.err = chance(s, 500) ? ERR_IO : ERR_CHECKSUM};
    if (e == ENTRY_NONE)
        for (entry_id i = 0; i < ENTRIES; i++)
            e = all[i].here ? i : e;
    /* Of the last entry there is, nothing is known either: there may have been later ones. */
    if (q->entry == ENTRY_NONE && bookie_denial(&s->bookie[q->bookie], q->ledger, ERR_OK))
        e = ENTRY_NONE;
    if (e == ENTRY_NONE || e >= ENTRIES || !all[e].here) {
        enum err no = chance(s, 200) ? ERR_NO_LEDGER : ERR_NO_ENTRY;
        s->tally->unknown += bookie_denial(&s->bookie[q->bookie], q->ledger, no) != no;
        return (struct reply){.err = bookie_denial(&s->bookie[q->bookie], q->ledger, no)};
    }
    return (struct reply){.image = all[e], .entry = e};
}

/* As many as are there, or fewer; what is damaged shows at the other end. */
static struct reply look_up_many(struct sim *s, const struct request *q)
{
    struct reply all = {0};

    if (s->knobs.one_each & 1u << q->bookie) {
        s->tally->no_batches++;
        return (struct reply){.err = ERR_UNSUPPORTED_VERSION};
    }
    while (all.got < q->n && (all.got == 0 || healed(s) || !chance(s, 80))) {
        struct request one = *q;
        one.entry += all.got;
        struct reply r = look_up(s, &one);
        if (r.err && r.err != ERR_CHECKSUM) {
            all.err = all.got == 0 ? r.err : ERR_OK;
            break;
        }
        all.damaged |= (unsigned)(r.err == ERR_CHECKSUM) << all.got;
        all.value[all.got++] = r.image.value;
    }
    s->tally->batches += all.got > 0;
    s->tally->short_batches += all.got > 0 && all.got < q->n;
    return all;
}

/* The answer to a fencing read, whatever it is, waits for the fence to be durable. */
static void take_read(struct sim *s, unsigned request)
{
    struct request *q = &s->requests[request];
    struct sim_bookie *k = &s->bookie[q->bookie];
    struct reply r = q->n > 1 ? look_up_many(s, q) : look_up(s, q);

    if (!(q->flags & BOOKIE_DO_FENCING)) {
        reply_send(s, request, q->generation, &r);
        return;
    }
    k->fenced[q->ledger] = true;
    append_line(s, q->bookie,
                &(struct journal_line){.ledger = q->ledger,
                                       .entry = ENTRY_NONE,
                                       .request = request,
                                       .generation = q->generation,
                                       .reply = r});
}

static void thawed(struct sim *s, struct event *e)
{
    if (s->requests[e->a].generation == e->b)
        bookie_take(s, e->a);
}

void bookie_take(struct sim *s, unsigned request)
{
    struct request *q = &s->requests[request];

    if (s->bookie[q->bookie].frozen_until > s->now) {
        wait_for_thaw(s, q->bookie, thawed, request, q->generation);
    } else if (s->bookie[q->bookie].down) {
        if (healed(s) || chance(s, 500)) /* refused at once; else it is not even heard */
            reply_send(s, request, q->generation, &(struct reply){.err = ERR_IO});
    } else if (q->add) {
        take_add(s, request);
    } else {
        take_read(s, request);
    }
}

static void back_up(struct sim *s, struct event *e)
{
    struct sim_bookie *k = &s->bookie[e->a];

    if (k->life != e->b)
        return;
    say(s, "b%u is back", e->a);
    k->down = false;
    s->revision++;
    for (unsigned l = 0; l < LEDGERS; l++)
        s->lost_at[l][e->a] = 0;
}

/* Its connections stand, and nothing is answered. */
void bookie_freeze(struct sim *s, unsigned b)
{
    if (s->bookie[b].down)
        return;
    s->tally->frozen++;
    s->bookie[b].frozen_until = s->now + 50 + roll(s, FROZEN_MAX);
    say(s, "b%u is frozen until %u", b, s->bookie[b].frozen_until);
}

/* What was synced stays; of the rest, as much as had happened to reach the disk, in order. */
void bookie_crash(struct sim *s, unsigned b)
{
    struct sim_bookie *k = &s->bookie[b];
    unsigned survives = k->lines ? roll(s, k->lines + 1) : 0;

    if (k->down)
        return;
    s->tally->crashes++;
    say(s, "b%u crashes with %u of %u unsynced lines on disk", b, survives, k->lines);
    for (unsigned i = 0; i < survives; i++)
        make_durable(s, b, &k->journal[i]);
    k->lines = 0;
    k->life++;
    k->syncing = false;
    k->frozen_until = 0;
    memcpy(k->memory, k->disk, sizeof k->memory);
    memcpy(k->fenced, k->durable_fenced, sizeof k->fenced);
    k->down = true;
    s->revision++;
    struct event *e = later(s, 1 + roll(s, DOWN_MAX), back_up);
    e->a = b;
    e->b = k->life;
}
