/* Does a ledger lack entries here that it should have, by its metadata?  A log that is gone
 * altogether leaves no damage behind, only this. */
#include <string.h>

#include "bookie/rebuild_inside.h"
#include "ledger/quorum.h"

struct holes {
    const Bookkeeper__LedgerMetadataFormat *m;
    const char *bookie;
    struct quorum quorum;
    size_t segment; /* that `next` is in */
    int slot;       /* ours in it; -1: none */
    int64_t next, last;
    bool found;
};

static void enter(struct holes *h, size_t segment)
{
    const Bookkeeper__LedgerMetadataFormat__Segment *s = h->m->segment[segment];
    h->segment = segment;
    h->slot = -1;
    for (size_t k = 0; k < s->n_ensemblemember && k < h->quorum.ensemble; k++)
        if (strcmp(s->ensemblemember[k], h->bookie) == 0)
            h->slot = (int)k;
}

/* Entries are asked for in order. */
static bool is_ours(struct holes *h, int64_t entry)
{
    while (h->segment + 1 < h->m->n_segment && entry >= h->m->segment[h->segment + 1]->firstentryid)
        enter(h, h->segment + 1);
    return h->slot >= 0 && entry >= h->m->segment[h->segment]->firstentryid &&
           quorum_write_set(h->quorum, entry) >> h->slot & 1;
}

static void look_up_to(struct holes *h, int64_t end)
{
    for (; !h->found && h->next < end && h->next <= h->last; h->next++)
        h->found = is_ours(h, h->next);
}

static enum err look_at_block(void *ctx, uint64_t number, const struct index_block *b)
{
    struct holes *h = ctx;
    const int64_t base = (int64_t)(number * INDEX_BLOCK);
    look_up_to(h, base);
    for (unsigned i = 0; i < INDEX_BLOCK && !h->found && h->next <= h->last; i++, h->next++)
        h->found = is_ours(h, h->next) && !index_block_has(b, i);
    return ERR_OK;
}

static bool read_quorum(const Bookkeeper__LedgerMetadataFormat *m, struct quorum *out)
{
    const int32_t ack = m->has_ackquorumsize ? m->ackquorumsize : m->quorumsize;
    if (m->ensemblesize < 1 || m->quorumsize < 1 || ack < 1 || m->n_segment == 0)
        return false;
    *out = (struct quorum){(unsigned)m->ensemblesize, (unsigned)m->quorumsize, (unsigned)ack};
    return quorum_valid(*out);
}

/* Of an open ledger the end is not known: what is behind its last entry here cannot be missed.
 * What was added since the journal's oldest record of it is there, and will be replayed. */
enum err rebuild_find_holes(struct entry_index *ix, const struct ledger_row *row,
                            const Bookkeeper__LedgerMetadataFormat *m, const char *bookie,
                            int64_t journaled, bool *found)
{
    const bool closed = m->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__CLOSED;
    struct holes h = {.m = m, .bookie = bookie, .last = row->last};
    if (closed && m->has_lastentryid)
        h.last = m->lastentryid;
    if (h.last >= journaled)
        h.last = journaled - 1;
    *found = !read_quorum(m, &h.quorum);
    if (*found || h.last < 0)
        return ERR_OK;
    enter(&h, 0);
    TRY(entry_index_blocks(ix, row->id, look_at_block, &h));
    look_up_to(&h, INT64_MAX);
    *found = h.found;
    return ERR_OK;
}
