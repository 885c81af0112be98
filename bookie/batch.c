#include <string.h>

#include "bookie/bytes.h"
#include "bookie/request.h"
#include "common/mem.h"

/* As the protocol counts: an answer's head, and a length in front of each entry. */
enum { HEAD = 24 + 8 + 4, LENGTH = 4, ID = 8, FIRST_ROOM = 16 };

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

static void keep(struct request *r, struct slice entry)
{
    struct batch *b = r->batch;
    if (b->n == b->room) {
        b->room = b->room ? b->room * 2 : FIRST_ROOM;
        b->entries = mem_resize(b->entries, b->room * sizeof b->entries[0]);
    }
    b->entries[b->n++] = entry;
    b->bytes += entry.len;
    r->at->batch_bytes += entry.len;
}

/* One row of bytes: request id, then length and entry each. */
static struct slice lay_out(const struct request *r)
{
    const struct batch *b = r->batch;
    const size_t len = ID + b->bytes + (size_t)b->n * LENGTH;
    struct slab *slab = slab_new(len);
    uint8_t *at = slab_bytes(slab);
    put_u64(at, (uint64_t)r->head.request_id);
    at += ID;
    for (unsigned i = 0; i < b->n; i++) {
        const struct slice *e = &b->entries[i];
        put_u32(at, (uint32_t)e->len);
        memcpy(at + LENGTH, e->base, e->len);
        at += LENGTH + e->len;
    }
    return slice_take(&slab, len);
}

static void drop(struct request *r)
{
    struct batch *b = r->batch;
    r->at->batch_bytes -= b->bytes;
    for (unsigned i = 0; i < b->n; i++)
        slice_drop(&b->entries[i]);
    mem_free(b->entries);
    mem_free(b);
    r->batch = NULL;
}

/* What was found before something failed is an answer; nothing at all is a failure. */
void batch_end(struct request *r, enum err err)
{
    if (r->batch->n > 0) {
        struct slice answer = lay_out(r);
        drop(r);
        request_finish_with(r, answer);
    } else {
        drop(r);
        request_finish(r, err);
    }
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
