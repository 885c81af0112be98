#include <string.h>

#include "bookie/request.h"
#include "common/log.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"

/* A ledger that is asked for in the metadata, and the adds that wait for the answer. */
struct stranger {
    struct station *station; /* NULL: nobody waits any more */
    int64_t ledger;
    struct list_node node; /* of the station */
    struct list_node adds; /* in the order in which they came */
    struct meta_call call;
    char key[META_KEY_MAX];
};

bool vouch_is_needed(const struct request *r, const struct ledger *l)
{
    const bool is_recovery = r->head.flags & BOOKIE_RECOVERY_ADD;
    const bool is_vouched = r->is_vouched || (l && l->is_vouched);
    return r->head.ledger <= r->at->handlers->conf.newest && !is_recovery && !is_vouched;
}

static size_t cost(const struct request *r)
{
    return r->body.len + sizeof *r;
}

static void release(struct stranger *s, enum err err)
{
    struct station *st = s->station;
    list_remove(&s->node);
    for (struct list_node *n; (n = list_pop_front(&s->adds)) != NULL;) {
        struct request *r = list_entry(n, struct request, waiting);
        st->vouch_bytes -= cost(r);
        r->is_vouched = true;
        if (err)
            request_finish(r, err);
        else
            add_begin(r);
    }
}

/* Fencing comes after IN_RECOVERY: of a ledger that is open now no fence can have been lost.  And
 * its writer has named us before he sends anything. */
static enum err judge(const struct meta_reply *reply, const char *bookie_id)
{
    Bookkeeper__LedgerMetadataFormat *record;
    bool names = false;
    if (reply->err)
        return reply->err == ERR_NOT_FOUND ? ERR_FENCED : ERR_IO;
    if (ledger_record_read(slice_view(reply->value), &record))
        return ERR_IO;
    const bool is_open = record->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN;
    if (record->n_segment > 0) {
        const Bookkeeper__LedgerMetadataFormat__Segment *last =
            record->segment[record->n_segment - 1];
        for (size_t i = 0; i < last->n_ensemblemember; i++)
            names |= strcmp(last->ensemblemember[i], bookie_id) == 0;
    }
    bookkeeper__ledger_metadata_format__free_unpacked(record, NULL);
    return is_open && names ? ERR_OK : ERR_FENCED;
}

static void answered(struct meta_call *call, const struct meta_reply *reply)
{
    struct stranger *s = container_of(call, struct stranger, call);
    if (s->station) {
        const enum err err = judge(reply, s->station->handlers->conf.bookie_id);
        if (err)
            log_event(LOG_WARN, "bookie.add_distrusted", F_I64("ledger", s->ledger), F_ERR(err));
        release(s, err);
    }
    mem_free(s);
}

static struct stranger *stranger_of(struct station *st, int64_t ledger)
{
    list_each(&st->strangers, n)
    {
        struct stranger *s = list_entry(n, struct stranger, node);
        if (s->ledger == ledger)
            return s;
    }
    struct stranger *s = mem_new(struct stranger);
    s->station = st;
    s->ledger = ledger;
    list_init(&s->adds);
    list_push_back(&st->strangers, &s->node);
    return s;
}

void vouch_wait(struct request *r)
{
    struct station *st = r->at;
    const struct handlers_conf *c = &st->handlers->conf;
    if (st->is_closed || st->vouch_bytes + cost(r) > c->park_bytes) {
        request_finish(r, ERR_BUSY);
        return;
    }
    struct stranger *s = stranger_of(st, r->head.ledger);
    const bool is_first = list_empty(&s->adds);
    st->vouch_bytes += cost(r);
    list_push_back(&s->adds, &r->waiting);
    if (!is_first)
        return;
    if (path_ledger(s->ledger, s->key)) { /* no metadata can name it */
        release(s, ERR_FENCED);
        mem_free(s);
        return;
    }
    s->call = (struct meta_call){.home = st->loop, .done = answered};
    meta_get(c->meta, s->key, &s->call);
}

void vouch_stop(struct station *st)
{
    while (!list_empty(&st->strangers)) {
        struct stranger *s = list_entry(st->strangers.next, struct stranger, node);
        release(s, ERR_BUSY);
        s->station = NULL; /* the answer of the metadata is still to come, and frees it */
    }
}
