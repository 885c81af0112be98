#include <string.h>

#include "tests/sim/exhaust/model.h"

/* A state as words, once for each way to number the bookies and slots that nothing in the setting
 * tells apart; the smallest fingerprint stands for all of them. */

struct writing {
    uint64_t hash;
    const uint8_t *slot; /* slot and bookie i are called slot[i]; the spare keeps its name */
};

static void word(struct writing *w, uint64_t v)
{
    __uint128_t x = (__uint128_t)(w->hash ^ v ^ 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;

    w->hash = (uint64_t)x ^ (uint64_t)(x >> 64) ^ v << 32;
}

static uint64_t bookie_name(const struct writing *w, uint32_t b)
{
    return b < ENSEMBLE ? w->slot[b] : b;
}

static uint64_t mask(const struct writing *w, uint32_t slots)
{
    uint64_t named = 0;

    for (unsigned s = 0; s < ENSEMBLE; s++)
        if (slots & 1u << s)
            named |= 1u << w->slot[s];
    return named;
}

static void fragment(struct writing *w, const struct fragment *f)
{
    uint64_t members = 0;

    for (unsigned s = 0; s < ENSEMBLE; s++)
        members |= bookie_name(w, f->bookie[s]) << 4 * w->slot[s];
    word(w, members | (uint64_t)f->first << 16);
}

static void record(struct writing *w, const struct record *r)
{
    word(w, (uint64_t)r->state | (uint64_t)r->version << 4 | (uint64_t)r->n << 16 |
                (uint64_t)(r->last + 1) << 24 | (uint64_t)r->length << 32);
    for (unsigned i = 0; i < r->n; i++)
        fragment(w, &r->fragment[i]);
}

static uint64_t image_bits(struct image i)
{
    if (!i.here)
        return 0;
    return 1u | (uint64_t)i.plain << 1 | (uint64_t)i.late << 2 | (uint64_t)(i.lac + 1) << 3;
}

static void bookies(struct writing *w)
{
    const struct bookie *by_name[BOOKIES];

    for (unsigned b = 0; b < BOOKIES; b++)
        by_name[bookie_name(w, b)] = &world.bookie[b];
    for (unsigned b = 0; b < BOOKIES; b++) {
        const struct bookie *k = by_name[b];
        uint64_t bits = (uint64_t)k->down | (uint64_t)k->fenced << 1 | (uint64_t)k->lines << 2;
        for (unsigned e = 0; e < ENTRIES; e++)
            bits |= image_bits(k->disk[e]) << (8 + 8 * e);
        word(w, bits);
        for (unsigned i = 0; i < k->lines; i++)
            word(w, (uint64_t)(k->line[i].entry + 1) | image_bits(k->line[i].image) << 8);
    }
}

/* ---- what is under way: a set, so in the order of its words ---- */

static void set(struct writing *w, uint64_t *words, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        for (unsigned k = i; k > 0 && words[k - 1] > words[k]; k--) {
            uint64_t t = words[k];
            words[k] = words[k - 1];
            words[k - 1] = t;
        }
    word(w, n);
    for (unsigned i = 0; i < n; i++)
        word(w, words[i]);
}

static uint64_t exchange_bits(const struct writing *w, const struct exchange *x)
{
    uint64_t bits = (uint64_t)x->heard | (uint64_t)x->answered << 1 | (uint64_t)x->actor << 2 |
                    (uint64_t)x->add << 3 | (uint64_t)x->plain << 4 | (uint64_t)x->fencing << 5;

    bits |= bookie_name(w, x->bookie) << 8 | (uint64_t)x->doomed << 6;
    if (!x->heard && !x->add)
        return bits; /* only its fence counts */
    bits |= (uint64_t)(x->entry + 1) << 12;
    if (x->heard && !x->add)
        bits |= (uint64_t)w->slot[x->slot] << 16;
    bits |= (uint64_t)(x->lac + 1) << 20;
    if (x->answered)
        bits |= (uint64_t)x->err << 32 | (uint64_t)x->line << 40;
    return bits;
}

static void exchanges(struct writing *w)
{
    uint64_t words[EXCHANGES];
    unsigned n = 0;

    for (unsigned i = 0; i < world.top; i++)
        if (world.exchange[i].used)
            words[n++] = exchange_bits(w, &world.exchange[i]);
    set(w, words, n);
    n = 0;
    for (unsigned i = 0; i < META_EXCHANGES; i++) {
        const struct meta_exchange *m = &world.meta[i];
        struct writing one = {0, w->slot};
        if (!m->used)
            continue;
        word(&one, (uint64_t)m->heard | (uint64_t)m->answered << 1 | (uint64_t)m->put << 2 |
                       (uint64_t)m->change << 3 | (uint64_t)m->actor << 4 |
                       (uint64_t)m->doomed << 5 | (uint64_t)(m->answered ? m->err : 0) << 8 |
                       (uint64_t)m->expected << 16);
        if (m->put || m->answered)
            record(&one, &m->record);
        words[n++] = one.hash;
    }
    set(w, words, n);
}

/* ---- the actors ---- */

static void writer(struct writing *w)
{
    const struct appender *a = &world.appender;

    word(w, (uint64_t)world.writer | (uint64_t)world.waits << 2 | (uint64_t)world.sealed << 3 |
                (uint64_t)world.confirmed << 4 | (uint64_t)a->next << 8 |
                (uint64_t)(a->lac + 1) << 12);
    if (world.writer == STOPPED)
        return;
    record(w, &world.writer_record);
    if (world.writer == CLOSING) {
        word(w, (uint64_t)world.closer.state | (uint64_t)(world.closer.last + 1) << 4);
        return;
    }
    word(w, (uint64_t)a->state | mask(w, a->failed) << 4 | mask(w, a->lacking) << 8 |
                (uint64_t)a->changes << 12 | (uint64_t)a->bytes << 16 | (uint64_t)a->length << 32);
    fragment(w, &a->tail);
    for (entry_id e = a->lac + 1; e < a->next; e++)
        word(w, mask(w, world.ring[e % RING].acks) | mask(w, world.ring[e % RING].lost) << 4);
    if (a->state != APPENDER_CHANGING)
        return;
    word(w, (uint64_t)world.changer.state);
    fragment(w, &a->wanted);
}

static void copy(struct writing *w, const struct recoverer_entry *c)
{
    uint64_t bits = (uint64_t)c->state | (uint64_t)(c->item != NULL) << 16;

    if (c->state == COPY_READING)
        bits |= mask(w, c->negative) << 4 | mask(w, c->unknown) << 8;
    else if (c->state == COPY_FOUND)
        bits |= mask(w, c->acks) << 12;
    word(w, bits);
}

static void recovery(struct writing *w)
{
    const struct recoverer *r = &world.recoverer;
    uint64_t lost = 0;

    record(w, &world.recoverer_record);
    word(w, (uint64_t)r->state | (uint64_t)r->facts.state << 4 | mask(w, r->fenced) << 8 |
                mask(w, r->answered) << 12 | (uint64_t)(r->floor + 1) << 16 |
                (uint64_t)(r->asked + 1) << 20 | (uint64_t)(r->pushed + 1) << 26 |
                (uint64_t)(r->lac + 1) << 32 | (uint64_t)(r->end + 1) << 38 |
                (uint64_t)r->has_end << 44 | mask(w, r->dead) << 48);
    for (unsigned i = 0; i < r->lost; i++)
        lost |= 1u << bookie_name(w, r->lost_bookie[i]);
    word(w, (uint64_t)r->ahead | lost << 8 | (uint64_t)r->changes << 16 | (uint64_t)r->err << 24 |
                (uint64_t)r->length << 32);
    fragment(w, &r->facts.tail);
    for (unsigned i = 0; i < r->changes; i++)
        fragment(w, &r->changed[i]);
    entry_id first = r->state == RECOVERER_MEASURING ? r->end : r->lac + 1;
    for (entry_id e = first; e >= 0 && e <= r->asked && e <= (entry_id)setting.entries; e++)
        copy(w, &r->ring[e % RECOVERER_WINDOW]);
}

static uint64_t code_named(const uint8_t slot[ENSEMBLE])
{
    struct writing w = {0, slot};

    word(&w, world.crashes | world.losses << 4 | (uint64_t)world.covered << 8 |
                 (uint64_t)world.recovery << 12 | (uint64_t)world.attempts << 16 |
                 bookie_name(&w, world.crashes ? world.mortal : NOBODY) << 24 |
                 (uint64_t)world.fated << 32);
    record(&w, &world.record);
    if (world.covered)
        fragment(&w, &world.tail);
    bookies(&w);
    exchanges(&w);
    writer(&w);
    if (world.recovery == RECOVERING)
        recovery(&w);
    return w.hash ? w.hash : 1;
}

/* ---- which ways to number them ---- */

static uint64_t mix(uint64_t v)
{
    struct writing w = {0, NULL};

    word(&w, v);
    return w.hash;
}

static uint64_t traffic(unsigned i)
{
    static const uint8_t same[ENSEMBLE];
    const struct writing nameless = {0, same};
    uint64_t sum = 0;

    for (const struct exchange *x = world.exchange; x < world.exchange + world.top; x++) {
        if (!x->used)
            continue;
        struct exchange plain = *x;
        plain.bookie = 0;
        if (x->bookie == i)
            sum += mix(exchange_bits(&nameless, &plain));
    }
    return sum;
}

/* What there is of a bookie, whatever it is called: with different ones no other order can be the
 * same state. */
static uint64_t looks(unsigned i)
{
    const struct bookie *k = &world.bookie[i];
    uint64_t bits = (uint64_t)k->down | (uint64_t)k->fenced << 1 | (uint64_t)k->lines << 2;

    for (unsigned e = 0; e < ENTRIES; e++)
        bits |= image_bits(k->disk[e]) << (8 + 8 * e);
    if (world.crashes)
        bits |= (uint64_t)(world.mortal == i) << 7;
    if (world.recovery == RECOVERING)
        bits |= (uint64_t)(world.recoverer.fenced >> i & 1) << 48 |
                (uint64_t)(world.recoverer.answered >> i & 1) << 49;
    return mix(bits) + traffic(i);
}

static bool is_in_order(const uint8_t name[ENSEMBLE], const uint64_t look[ENSEMBLE])
{
    uint64_t by_name[ENSEMBLE];

    for (unsigned i = 0; i < ENSEMBLE; i++)
        by_name[name[i]] = look[i];
    for (unsigned i = 1; i < ENSEMBLE; i++)
        if (by_name[i - 1] > by_name[i])
            return false;
    return true;
}

uint64_t model_code(void)
{
    static const uint8_t names[6][ENSEMBLE] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                               {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    /* With write sets that are not everybody, an entry tells slots apart. */
    unsigned n = setting.quorum.write == ENSEMBLE ? 6 : 1;
    uint64_t least = UINT64_MAX, look[ENSEMBLE] = {0};

    for (unsigned i = 0; n > 1 && i < ENSEMBLE; i++)
        look[i] = looks(i);
    for (unsigned i = 0; i < n; i++) {
        if (!is_in_order(names[i], look))
            continue;
        uint64_t code = code_named(names[i]);
        if (code < least)
            least = code;
    }
    return least;
}
