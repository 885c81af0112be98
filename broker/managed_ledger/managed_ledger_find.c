/* Reads what the search for a time asks for, an entry at a time. */
#include "broker/managed_ledger/managed_ledger_inside.h"
#include "proto/frame.h"
#include "proto/message.h"

enum { PROBE_BYTES = 1 };

/* One that cannot be read counts as late: rather too much is delivered than too little. */
static int64_t published_ms(const struct ml_entry *e)
{
    struct broker_entry front;
    struct view rest;
    struct frame frame;
    struct message_peek peek;

    if (broker_entry_read(slice_view(e->payload), &front, &rest))
        return INT64_MAX;
    if (!frame_split_body(rest, &frame) && !message_peek(frame.metadata, &peek))
        return (int64_t)peek.publish_time;
    return front.present ? (int64_t)front.timestamp : INT64_MAX;
}

static void probed(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                   struct position next);

static void probe(struct ml_find *f)
{
    f->read = (struct ml_read){
        .from = f->search.asked, .max_entries = 1, .max_bytes = PROBE_BYTES, .done = probed};
    managed_ledger_read(f->ml, &f->read);
}

static void finish(struct ml_find *f, enum err err)
{
    f->done(f, err, f->search.low);
}

static void probed(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                   struct position next)
{
    struct ml_find *f = container_of(r, struct ml_find, read);
    const struct segments *all = &f->ml->segments;
    bool trimmed = !segments_find(all, f->search.asked.ledger); /* while it was read */
    bool failed = err && n == 0 && !trimmed;

    (void)next;
    if (n > 0)
        time_search_saw(&f->search, all, entries[0].at, published_ms(&entries[0]));
    else
        time_search_saw_none(&f->search, all);
    for (unsigned i = 0; i < n; i++)
        slice_drop(&entries[i].payload);
    if (failed || f->ml->life != ML_LIFE_SERVING)
        finish(f, failed ? err : ERR_CLOSED);
    else if (time_search_next(&f->search, all))
        probe(f);
    else
        finish(f, ERR_OK);
}

/* With nothing to look at one read is made all the same: done() never comes in this stack. */
void managed_ledger_find(struct managed_ledger *m, struct ml_find *f)
{
    struct position last = managed_ledger_max_readable(m);

    f->ml = m;
    time_search_init(&f->search, &m->segments, last, f->ms);
    if (!time_search_next(&f->search, &m->segments))
        f->search.asked = last;
    probe(f);
}
