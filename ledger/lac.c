#include "common/mem.h"
#include "ledger/handle.h"
#include "ledger/reader.h"

/* Asks every bookie of the last fragment for the last entry it has, then reads the one that is
 * confirmed: the ledger's length stands in its header. */
struct question {
    struct link_request q;
    struct asking *asking;
    unsigned slot;
};

struct asking {
    struct ledger *ledger;
    struct lac_poll poll;
    struct question question[ENSEMBLE_MAX];
    struct ledger_read read;
    void (*done)(void *ctx, enum err err);
    void *ctx;
};

static void end(struct asking *a, enum err err)
{
    void (*done)(void *ctx, enum err err) = a->done;
    void *ctx = a->ctx;

    mem_free(a);
    done(ctx, err);
}

static void measured(struct ledger_read *r, entry_id id, struct slice payload)
{
    (void)r;
    (void)id;
    slice_drop(&payload);
}

/* Without its length the ledger can be read all the same. */
static void measured_all(struct ledger_read *r, enum err err)
{
    (void)err;
    end(container_of(r, struct asking, read), ERR_OK);
}

static void decided(struct asking *a)
{
    for (unsigned s = 0; s < a->poll.quorum.ensemble; s++)
        link_cancel(&a->question[s].q);
    if (a->poll.err) {
        end(a, a->poll.err);
        return;
    }
    a->ledger->lac = a->poll.lac;
    a->read = (struct ledger_read){.first = a->poll.lac < 0 ? 0 : a->poll.lac,
                                   .last = a->poll.lac,
                                   .is_urgent = true,
                                   .entry = measured,
                                   .done = measured_all};
    ledger_read(a->ledger, &a->read);
}

static void answered(struct link_request *q, enum err err, struct slice body)
{
    struct question *one = container_of(q, struct question, q);
    struct asking *a = one->asking;
    struct entry_header h = {.lac = ENTRY_NONE};
    struct view payload;

    if (!err)
        err = entry_open(&a->ledger->layout.digest, slice_view(body), a->ledger->id, ENTRY_NONE, &h,
                         &payload);
    if (lac_poll_answer(&a->poll, one->slot, err, h.lac))
        decided(a);
}

void lac_start(struct ledger *l, void (*done)(void *ctx, enum err err), void *ctx)
{
    struct asking *a = mem_new(struct asking);
    const struct ledger_facts *f = &l->layout.facts;

    a->ledger = l;
    a->done = done;
    a->ctx = ctx;
    lac_poll_start(&a->poll, f->quorum, f->tail.first - 1);
    for (unsigned s = 0; s < f->quorum.ensemble; s++) {
        a->question[s] = (struct question){.q.done = answered, .asking = a, .slot = s};
        link_read(bookies_link(l->client->bookies, f->tail.bookie[s], LINK_PLAIN),
                  &a->question[s].q, 0, l->id, ENTRY_NONE, NULL);
    }
}
