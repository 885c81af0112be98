#include "ledger/salvage.h"

#include <string.h>

#include "common/mem.h"
#include "ledger/handle.h"
#include "metadata/paths.h"

/* ---- what to decide -------------------------------------------------------------------------- */

struct salvage_end salvage_find_end(const struct salvage_facts *f)
{
    struct salvage_end end = {.last = f->ledger.tail.first - 1};

    while (end.last + 1 < f->n && f->at[end.last + 1].here)
        end.last++;
    for (entry_id e = end.last; e >= 0 && e < f->n; e--)
        if (f->at[e].here) {
            end.length = f->at[e].length;
            break;
        }
    for (entry_id e = end.last + 1; e < f->n; e++)
        end.readable += f->at[e].here != 0;
    if (f->known_lac > end.last)
        end.acknowledged = (uint64_t)(f->known_lac - end.last);
    return end;
}

bool salvage_is_gone(const struct salvage_facts *f, entry_id e)
{
    return !f->at[e].here;
}

bool salvage_may_come_back(const struct salvage_facts *f, entry_id e)
{
    return (quorum_write_set(f->ledger.quorum, e) & ~f->at[e].here & ~f->at[e].denied) != 0;
}

int64_t salvage_length(const struct salvage_facts *f, entry_id e, uint32_t size)
{
    int64_t before = 0, most = f->ledger.length;

    for (entry_id i = e - 1; i >= 0; i--)
        if (f->at[i].here) {
            before = f->at[i].length;
            break;
        }
    for (entry_id i = e + 1; i < f->n; i++)
        if (f->at[i].here) {
            most = f->at[i].length - f->at[i].size;
            break;
        }
    return before + size < most ? before + size : most > before ? most : before;
}

/* ---- doing it -------------------------------------------------------------------------------- */

enum { WINDOW = 64 };

struct salvage {
    struct ledger_client *client;
    int64_t id;
    struct layout layout;
    struct salvage_facts facts;
    struct salvage_entry *at;
    bool fence;
    entry_id next; /* to be asked */
    unsigned awaited;
    enum err err;
    struct meta_call meta;
    struct task ended;
    void (*done)(void *ctx, enum err err);
    void *ctx;
    char path[META_KEY_MAX];
};

struct question {
    struct link_request q;
    struct salvage *salvage;
    unsigned slot;
};

static void ended(struct task *t)
{
    struct salvage *s = container_of(t, struct salvage, ended);

    s->done(s->ctx, s->err);
}

static void end(struct salvage *s, enum err err)
{
    s->err = err;
    loop_post(s->client->loop, &s->ended);
}

static struct bookies *bookies_of(const struct salvage *s)
{
    return s->client->bookies;
}

static void ask(struct salvage *s, const struct fragment *f, unsigned slot, entry_id e, bool fence,
                void (*answer)(struct link_request *q, enum err err, struct slice body))
{
    struct question *one = mem_new(struct question);

    one->salvage = s;
    one->slot = slot;
    one->q.done = answer;
    s->awaited++;
    link_read(bookies_link(bookies_of(s), f->bookie[slot], fence ? LINK_RECOVERY : LINK_PLAIN),
              &one->q, fence ? BOOKIE_DO_FENCING : 0, s->id, e, s->layout.key);
}

static void go_on(struct salvage *s);

static void answered(struct link_request *q, enum err err, struct slice body)
{
    struct question *one = container_of(q, struct question, q);
    struct salvage *s = one->salvage;
    struct salvage_entry *x = &s->at[q->entry];
    struct entry_header h;
    struct view payload;
    uint32_t bit = 1u << one->slot;

    if (!err)
        err = entry_open(&s->layout.digest, slice_view(body), s->id, q->entry, &h, &payload);
    mem_free(one);
    s->awaited--;
    if (!err) {
        x->here |= bit;
        x->length = h.length;
        x->size = (uint32_t)payload.len;
        s->facts.known_lac = h.lac > s->facts.known_lac ? h.lac : s->facts.known_lac;
    } else if (err == ERR_NO_ENTRY || err == ERR_NO_LEDGER) {
        x->denied |= bit;
    }
    go_on(s);
}

static void go_on(struct salvage *s)
{
    const struct ledger_facts *f = &s->facts.ledger;

    for (; s->next < s->facts.n && s->awaited < WINDOW; s->next++)
        for (unsigned k = 0; k < f->quorum.write; k++)
            ask(s, layout_find(&s->layout, s->next), quorum_slot(f->quorum, s->next, k), s->next,
                s->fence && s->next >= f->tail.first, answered);
    if (s->next == s->facts.n && s->awaited == 0)
        end(s, ERR_OK);
}

static void look_at_all(struct salvage *s, entry_id n)
{
    if (n > SALVAGE_MAX) {
        end(s, ERR_TOO_BIG);
        return;
    }
    mem_free(s->at);
    s->at = mem_alloc((size_t)(n + 1) * sizeof *s->at);
    s->facts.at = s->at;
    s->facts.n = n;
    s->next = 0;
    go_on(s);
}

static void last_answered(struct link_request *q, enum err err, struct slice body)
{
    struct question *one = container_of(q, struct question, q);
    struct salvage *s = one->salvage;
    struct entry_header h;
    struct view payload;

    if (!err)
        err = entry_open(&s->layout.digest, slice_view(body), s->id, ENTRY_NONE, &h, &payload);
    if (!err || err == ERR_NO_ENTRY || err == ERR_NO_LEDGER)
        s->facts.answered |= 1u << one->slot;
    if (!err && h.entry + 1 > s->facts.n)
        s->facts.n = h.entry + 1;
    if (!err && h.lac > s->facts.known_lac)
        s->facts.known_lac = h.lac;
    mem_free(one);
    if (--s->awaited == 0)
        look_at_all(s, s->facts.n);
}

/* Behind what their bookies know there is nothing that anybody could still read. */
static void ask_last(struct salvage *s)
{
    const struct ledger_facts *f = &s->facts.ledger;

    s->facts.n = f->tail.first;
    s->facts.known_lac = f->tail.first - 1;
    for (unsigned i = 0; i < f->quorum.ensemble; i++)
        ask(s, &f->tail, i, ENTRY_NONE, s->fence, last_answered);
}

static void looked(struct meta_call *c, const struct meta_reply *r)
{
    struct salvage *s = container_of(c, struct salvage, meta);
    enum err err = r->err == ERR_NOT_FOUND ? ERR_NO_LEDGER : r->err;

    if (!err)
        err = layout_read(&s->layout, bookies_of(s), slice_view(r->value), r->version);
    if (err) {
        end(s, err);
        return;
    }
    s->facts = (struct salvage_facts){
        .ledger = s->layout.facts, .fragments = s->layout.n, .known_lac = s->layout.facts.last};
    if (s->facts.ledger.state == LEDGER_CLOSED)
        look_at_all(s, s->facts.ledger.last + 1);
    else
        ask_last(s);
}

void salvage_survey(struct salvage *s, bool fence)
{
    s->fence = fence;
    s->meta = (struct meta_call){.home = s->client->loop, .done = looked};
    if (path_ledger(s->id, s->path))
        end(s, ERR_NO_LEDGER);
    else
        meta_get(s->client->meta, s->path, &s->meta);
}

const struct salvage_facts *salvage_facts(const struct salvage *s)
{
    return &s->facts;
}

entry_id salvage_fragment(const struct salvage *s, unsigned fragment, const char *members[])
{
    const struct fragment *f = &s->layout.fragments[fragment];

    for (unsigned i = 0; i < s->facts.ledger.quorum.ensemble; i++)
        members[i] = bookies_id(bookies_of(s), f->bookie[i]);
    return f->first;
}

static void closed(struct meta_call *c, const struct meta_reply *r)
{
    end(container_of(c, struct salvage, meta), r->err);
}

void salvage_close(struct salvage *s, const struct salvage_end *at)
{
    s->meta = (struct meta_call){.home = s->client->loop, .done = closed};
    meta_put(s->client->meta, s->path,
             layout_closed(&s->layout, bookies_of(s), at->last, at->length, NULL, 0),
             s->layout.version, &s->meta);
}

struct salvage *salvage_new(struct ledger_client *c, int64_t ledger,
                            void (*done)(void *ctx, enum err err), void *ctx)
{
    struct salvage *s = mem_new(struct salvage);

    client_hold(c);
    s->client = c;
    s->id = ledger;
    s->done = done;
    s->ctx = ctx;
    s->ended.run = ended;
    return s;
}

void salvage_drop(struct salvage **salvage)
{
    struct salvage *s = *salvage;

    *salvage = NULL;
    if (!s)
        return;
    layout_drop(&s->layout);
    client_release(s->client);
    mem_free(s->at);
    mem_free(s);
}
