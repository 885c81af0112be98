#include <string.h>

#include "bookie/bytes.h"
#include "bookie/request.h"
#include "common/mem.h"

/* As the protocol counts: an answer's head, and a length in front of each entry. */
enum {
    HEAD = 24 + 8 + 4,
    LENGTH = BOOKIE_BATCH_LENGTH,
    ID = BOOKIE_BATCH_ID,
    FIRST_ROOM = 16,
    COPIED_MAX = 2048
};

static uint64_t budget(const struct request *r)
{
    const uint64_t most = r->at->handlers->conf.batch_max;
    if (r->head.max_size < 0)
        return 0;
    return (uint64_t)r->head.max_size < most ? (uint64_t)r->head.max_size : most;
}

static uint64_t answer_size(const struct batch *b)
{
    return HEAD + b->bytes + (uint64_t)b->n * LENGTH;
}

/* The first is taken whatever its size. */
static bool takes_more(const struct request *r, size_t len)
{
    const struct batch *b = r->batch;
    if (b->n == 0)
        return true;
    if (r->head.max_count > 0 && b->n >= (unsigned)r->head.max_count)
        return false;
    return answer_size(b) + LENGTH + len <= budget(r) &&
           r->at->batch_bytes + len <= r->at->handlers->conf.batches_max;
}

static void put(struct batch *b, struct slice s)
{
    if (b->n == b->room) {
        b->room = b->room ? b->room * 2 : FIRST_ROOM;
        b->at = mem_resize(b->at, b->room * sizeof b->at[0]);
    }
    b->at[b->n++] = s;
    b->bytes += s.len;
}

static void keep(struct request *r, struct slice entry)
{
    put(r->batch, entry);
    r->at->batch_bytes += entry.len;
}

static void end(struct batch **batch)
{
    struct batch *b = *batch;

    *batch = NULL;
    for (unsigned i = 0; b && i < b->n; i++)
        slice_drop(&b->at[i]);
    if (b)
        mem_free(b->at);
    mem_free(b);
}

void batch_read_drop(struct request *r)
{
    end(&r->batch);
}

/* An iovec, and a window that is held until it is sent, cost more than to copy what is small. */
static bool is_copied(const struct slice *entry)
{
    return entry->len <= COPIED_MAX;
}

static size_t copied_bytes(const struct batch *found)
{
    size_t len = ID + (size_t)found->n * LENGTH;

    for (unsigned i = 0; i < found->n; i++)
        len += is_copied(&found->at[i]) ? found->at[i].len : 0;
    return len;
}

/* Request id, then length and entry each. */
static struct batch *lay_out(const struct request *r)
{
    const struct batch *found = r->batch;
    struct batch *out = mem_new(struct batch);
    struct slab *slab = slab_new(copied_bytes(found));
    uint8_t *bytes = slab_bytes(slab);
    size_t from = 0, at = ID;

    put_u64(bytes, (uint64_t)r->head.request_id);
    for (unsigned i = 0; i < found->n; i++) {
        const struct slice *e = &found->at[i];
        put_u32(bytes + at, (uint32_t)e->len);
        at += LENGTH;
        if (is_copied(e)) {
            memcpy(bytes + at, e->base, e->len);
            at += e->len;
            continue;
        }
        put(out, slice_of(slab, from, at - from));
        put(out, slice_share(*e));
        from = at;
    }
    if (at > from)
        put(out, slice_of(slab, from, at - from));
    slab_drop(&slab);
    return out;
}

/* What was found before something failed is an answer; nothing at all is a failure. */
void batch_end(struct request *r, enum err err)
{
    struct batch *answer = r->batch->n > 0 ? lay_out(r) : NULL;

    r->at->batch_bytes -= r->batch->bytes;
    batch_read_drop(r);
    r->batch = answer;
    request_finish(r, answer ? ERR_OK : err);
}

void batch_take(struct request *r, struct slice entry)
{
    if (!takes_more(r, entry.len)) {
        slice_drop(&entry);
        batch_end(r, ERR_OK);
        return;
    }
    keep(r, entry);
    batch_go_on(r);
}

void batch_go_on(struct request *r)
{
    struct storage *s = r->at->handlers->conf.storage;
    if (!r->batch)
        r->batch = mem_new(struct batch);
    if (r->head.entry < 0) {
        batch_end(r, ERR_MALFORMED);
        return;
    }
    for (;;) {
        const int64_t left = r->ledger->row.last - r->head.entry;
        if (left < (int64_t)r->batch->n) {
            batch_end(r, ERR_NO_ENTRY);
            return;
        }
        const int64_t entry = r->head.entry + (int64_t)r->batch->n;
        const struct slice *found = storage_look(s, r->ledger, entry);
        if (!takes_more(r, found ? found->len : 0)) {
            batch_end(r, ERR_OK);
            return;
        }
        if (!found) {
            lookup_on_disk(r);
            return;
        }
        metric_add(&r->at->handlers->conf.metrics->read_cache_hits, 1);
        keep(r, slice_share(*found));
    }
}
