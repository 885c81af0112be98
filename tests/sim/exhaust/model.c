#include "tests/sim/exhaust/model.h"

#include <string.h>

struct model world;

void model_begin(void)
{
    memset(&world, 0, sizeof world);
    world.crashes = setting.crashes;
    world.losses = setting.losses;
    world.record = (struct record){.state = LEDGER_OPEN, .last = ENTRY_NONE, .n = 1};
    for (unsigned i = 0; i < ENSEMBLE; i++)
        world.record.fragment[0].bookie[i] = i;
    world.bookie[BOOKIES - 1].down = setting.spares == 0;
    writer_begin();
}

/* ---- what is under way ---- */

static bool is_doomed(bool heard)
{
    if (!heard || world.losses == 0 || choose(2) == 0)
        return false;
    world.losses--;
    return true;
}

void ask(const struct exchange *x)
{
    for (unsigned i = 0; i < EXCHANGES; i++) {
        if (world.exchange[i].used)
            continue;
        world.exchange[i] = *x;
        world.exchange[i].doomed = is_doomed(x->heard);
        world.top = i < world.top ? world.top : i + 1;
        return;
    }
    fault("more messages than there is room for");
}

void meta_ask(const struct meta_exchange *m)
{
    for (unsigned i = 0; i < META_EXCHANGES; i++) {
        if (world.meta[i].used)
            continue;
        world.meta[i] = *m;
        world.meta[i].used = world.meta[i].heard = true;
        world.meta[i].doomed = is_doomed(true);
        return;
    }
    fault("more questions to the metadata than there is room for");
}

static void answer(struct exchange *x, enum err err)
{
    struct exchange copy = *x;

    x->heard = false;
    if (copy.actor == WRITER)
        writer_answer(&copy, err);
    else
        recoverer_answer(&copy, err);
}

/* ---- a bookie ---- */

bool bookie_is_fenced(const struct bookie *b)
{
    for (unsigned i = 0; i < b->lines; i++)
        if (b->line[i].entry == ENTRY_NONE)
            return true;
    return b->fenced;
}

static struct image image_at(const struct bookie *b, int e)
{
    struct image found_there = b->disk[e];

    for (unsigned i = 0; i < b->lines; i++)
        if (b->line[i].entry == e)
            found_there = b->line[i].image;
    return found_there;
}

static bool is_covered(void)
{
    const struct record *r = &world.record;

    for (unsigned start = 0; start < ENSEMBLE; start++) {
        unsigned free_ones = 0;
        for (unsigned k = 0; k < setting.quorum.write; k++)
            free_ones += !world.bookie[r->fragment[r->n - 1].bookie[(start + k) % ENSEMBLE]].fenced;
        if (free_ones >= setting.quorum.ack)
            return false;
    }
    return true;
}

/* The first n lines are on disk. */
static void make_durable(unsigned b, unsigned n)
{
    struct bookie *k = &world.bookie[b];

    for (unsigned i = 0; i < n; i++) {
        if (k->line[i].entry == ENTRY_NONE)
            k->fenced = true;
        else
            k->disk[k->line[i].entry] = k->line[i].image;
    }
    memmove(k->line, k->line + n, (k->lines - n) * sizeof *k->line);
    k->lines = (uint8_t)(k->lines - n);
    for (unsigned i = 0; i < world.top; i++) {
        struct exchange *x = &world.exchange[i];
        if (x->used && x->bookie == b)
            x->line = (uint8_t)(x->line > n ? x->line - n : 0);
    }
    world.covered = world.covered || is_covered();
}

static void write_line(struct exchange *x, int entry, struct image image)
{
    struct bookie *k = &world.bookie[x->bookie];

    if (k->lines == LINES) {
        fault("a journal longer than there is room for");
        return;
    }
    k->line[k->lines++] = (struct line){.entry = (int8_t)entry, .image = image};
    x->line = k->lines;
    if (world.crashes == 0 || world.mortal != x->bookie)
        make_durable(x->bookie, k->lines);
}

static void take_add(struct exchange *x)
{
    struct bookie *k = &world.bookie[x->bookie];

    if (x->plain && bookie_is_fenced(k)) {
        x->err = ERR_FENCED;
        return;
    }
    check_store(x->bookie, x);
    write_line(
        x, x->entry,
        (struct image){
            .here = true, .plain = x->plain, .late = x->plain && world.covered, .lac = x->lac});
}

static void take_read(struct exchange *x)
{
    struct bookie *k = &world.bookie[x->bookie];
    struct image image = {0};

    for (int e = 0; e < ENTRIES && x->entry == ENTRY_NONE; e++)
        if (image_at(k, e).here)
            image = image_at(k, e);
    if (x->entry != ENTRY_NONE)
        image = image_at(k, x->entry);
    x->err = image.here ? ERR_OK : ERR_NO_ENTRY;
    x->lac = image.here ? image.lac : (int8_t)ENTRY_NONE;
    if (!x->fencing || k->fenced)
        return;
    for (unsigned i = 0; i < k->lines; i++)
        if (k->line[i].entry == ENTRY_NONE)
            x->line = (uint8_t)(i + 1);
    if (x->line == 0)
        write_line(x, ENTRY_NONE, (struct image){0});
}

void exchange_move(struct exchange *x)
{
    say("b%u and the %s: %s of %d%s", x->bookie, x->actor == WRITER ? "writer" : "recoverer",
        x->add ? "write" : "read", x->entry,
        x->answered  ? err_name(x->err)
        : x->fencing ? ", fencing"
                     : "");
    if (x->answered) {
        make_durable(x->bookie, x->line);
        x->used = false;
        answer(x, x->err);
    } else {
        x->answered = true;
        if (world.bookie[x->bookie].down)
            x->err = ERR_IO;
        else if (x->add)
            take_add(x);
        else
            take_read(x);
    }
}

static void lose(struct exchange *x)
{
    say("b%u is not waited for: %s of %d", x->bookie, x->add ? "write" : "read", x->entry);
    x->doomed = false;
    answer(x, ERR_TIMEOUT);
}

/* So much of what it had not answered yet survives; all that was under way to it fails. */
static void crash(unsigned b)
{
    struct bookie *k = &world.bookie[b];
    unsigned survives = choose(k->lines + 1u);

    world.crashes--;
    k->down = choose(2);
    say("b%u crashes, %u of %u lines survive, and is %s", b, survives, k->lines,
        k->down ? "gone" : "back");
    make_durable(b, survives);
    k->lines = 0;
    for (unsigned i = 0; i < world.top; i++) {
        struct exchange *x = &world.exchange[i];
        if (!x->used || x->bookie != b)
            continue;
        x->used = x->heard;
        x->doomed = false;
        x->answered = true;
        x->err = ERR_IO;
        x->line = 0;
    }
}

/* ---- the metadata ---- */

static enum err put(struct meta_exchange *m)
{
    if (m->expected != world.record.version)
        return ERR_BAD_VERSION;
    check_put(m);
    m->record.version = world.record.version + 1;
    if (m->record.state == LEDGER_IN_RECOVERY)
        world.tail = m->record.fragment[m->record.n - 1];
    world.record = m->record;
    world.covered = world.covered || is_covered();
    return ERR_OK;
}

static void meta_answer(struct meta_exchange *m, enum err err)
{
    struct meta_exchange copy = *m;

    m->heard = false;
    if (copy.actor == WRITER)
        writer_meta(&copy, err);
    else
        recoverer_meta(&copy, err);
}

static void meta_move(struct meta_exchange *m)
{
    if (m->answered) {
        m->used = false;
        meta_answer(m, m->err);
        return;
    }
    m->answered = true;
    m->err = ERR_OK;
    if (m->put)
        m->err = put(m);
    else
        m->record = world.record;
    say("metadata and the %s: %s, state %d, version %d, last %d: %s",
        m->actor == WRITER ? "writer" : "recoverer", m->put ? "put" : "look", m->record.state,
        m->record.version, (int)m->record.last, err_name(m->err));
}

static void meta_lose(struct meta_exchange *m)
{
    say("metadata is not waited for");
    m->doomed = false;
    meta_answer(m, m->put ? ERR_UNKNOWN_STATE : ERR_TIMEOUT);
}

/* ---- what cannot matter any more ---- */

/* Nobody waits for it, and it would change nothing. */
static bool is_idle(const struct exchange *x)
{
    const struct bookie *k = &world.bookie[x->bookie];

    if (x->heard)
        return false;
    if (x->answered || k->down)
        return true;
    if (x->add)
        return x->plain && bookie_is_fenced(k);
    return !x->fencing || bookie_is_fenced(k);
}

/* All that nobody waits for that does the same counts as one. */
static void merge_fences(const struct exchange *x)
{
    for (struct exchange *y = world.exchange; y < x; y++)
        if (y->used && !y->heard && !y->add && y->bookie == x->bookie)
            y->used = false;
}

static void drop_idle(void)
{
    for (struct exchange *x = world.exchange; x < world.exchange + world.top; x++) {
        if (!x->used)
            continue;
        x->heard = x->heard && actor_waits(x);
        x->doomed = x->doomed && x->heard;
        if (is_idle(x))
            x->used = false;
        else if (!x->heard && !x->add)
            merge_fences(x);
    }
    while (world.top > 0 && !world.exchange[world.top - 1].used)
        world.top--;
    for (struct meta_exchange *m = world.meta; m < world.meta + META_EXCHANGES; m++) {
        if (!m->used)
            continue;
        m->heard = m->heard && actor_waits_meta(m);
        m->doomed = m->doomed && m->heard;
        bool idle = m->answered || !m->put || m->expected != world.record.version;
        if (!m->heard && idle)
            m->used = false;
    }
}

static void tidy(void)
{
    do
        drop_idle();
    while (!found && eager_step());
    actors_settle();
    drop_idle();
}

/* ---- steps ---- */

static bool is_over(void)
{
    return world.writer == STOPPED && world.recovery == OVER;
}

static unsigned begin_steps(struct step *out)
{
    unsigned n = 0;

    if (world.writer == WRITING && world.appender.next < (entry_id)setting.entries)
        out[n++] = (struct step){STEP_APPEND, 0};
    if (world.writer == WRITING)
        out[n++] = (struct step){STEP_CLOSE, 0};
    if (world.waits)
        out[n++] = (struct step){STEP_WAKE, 0};
    if (world.recovery == IDLE)
        out[n++] = (struct step){STEP_RECOVER, 0};
    return n;
}

static unsigned message_steps(struct step *out)
{
    unsigned n = 0;

    for (unsigned i = 0; i < world.top; i++) {
        const struct exchange *x = &world.exchange[i];
        if (x->used && !(x->doomed && x->answered))
            out[n++] = (struct step){STEP_MOVE, i};
        if (x->used && x->doomed)
            out[n++] = (struct step){STEP_LOSE, i};
    }
    for (unsigned i = 0; i < META_EXCHANGES; i++) {
        const struct meta_exchange *m = &world.meta[i];
        if (m->used && !(m->doomed && m->answered))
            out[n++] = (struct step){STEP_META_MOVE, i};
        if (m->used && m->doomed)
            out[n++] = (struct step){STEP_META_LOSE, i};
    }
    return n;
}

static unsigned crash_steps(struct step *out)
{
    if (world.crashes == 0 || world.mortal == NOBODY)
        return 0;
    if (world.mortal == THE_RECOVERER) {
        out[0] = (struct step){STEP_CRASH_RECOVERER, 0};
        return world.recovery == RECOVERING;
    }
    out[0] = (struct step){STEP_CRASH, world.mortal};
    return 1;
}

/* The one that may crash comes last. */
unsigned model_steps(struct step *out)
{
    unsigned n;

    if (!world.fated) {
        out[0] = (struct step){STEP_FATE, 0};
        return 1;
    }
    if (is_over())
        return 0;
    n = begin_steps(out);
    n += message_steps(out + n);
    return n + crash_steps(out + n);
}

static void draw_fate(void)
{
    unsigned bookies = ENSEMBLE + setting.spares;
    unsigned who = setting.crashes ? choose(bookies + 1) : bookies;

    world.fated = true;
    world.mortal = who < bookies ? who : setting.crashes ? THE_RECOVERER : NOBODY;
}

void model_take(struct step s)
{
    switch (s.kind) {
    case STEP_FATE:
        draw_fate();
        break;
    case STEP_APPEND:
        writer_append();
        break;
    case STEP_CLOSE:
        writer_close();
        break;
    case STEP_WAKE:
        writer_wake();
        break;
    case STEP_RECOVER:
        recoverer_begin();
        break;
    case STEP_MOVE:
        exchange_move(&world.exchange[s.i]);
        break;
    case STEP_LOSE:
        lose(&world.exchange[s.i]);
        break;
    case STEP_META_MOVE:
        meta_move(&world.meta[s.i]);
        break;
    case STEP_META_LOSE:
        meta_lose(&world.meta[s.i]);
        break;
    case STEP_CRASH:
        crash(s.i);
        break;
    case STEP_CRASH_RECOVERER:
        recoverer_crash();
        break;
    }
    actors_settle();
    tidy();
}
