#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proto/bookie_v3.h"
#include "proto/bookkeeper.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What both readers take they take alike. */
static void compare(const Bookkeeper__Request *r, const struct bookie_request *q,
                    const struct bookie_v3 *v3)
{
    assert((int)v3->operation == (int)r->header->operation);
    assert(v3->txn == r->header->txnid);
    if (q->op == BOOKIE_READ) {
        assert(q->ledger == r->readrequest->ledgerid);
        assert(q->entry == r->readrequest->entryid);
        if (v3->waits)
            assert(v3->previous_lac == r->readrequest->previouslac);
    } else if (q->op == BOOKIE_ADD) {
        assert(q->ledger == r->addrequest->ledgerid);
        assert(q->body.len == r->addrequest->body.len);
        assert(memcmp(q->body.base, r->addrequest->body.data, q->body.len) == 0);
    } else if (q->op == BOOKIE_WRITE_LAC) {
        assert(q->body.len >= 16 && q->body.len <= EXPLICIT_LAC_MAX);
        assert(v3->lac == r->writelacrequest->lac);
    } else if (q->op == BOOKIE_FORCE) {
        assert(q->ledger == r->forceledgerrequest->ledgerid);
    }
}

/* protobuf merges a message that comes twice, which no writer does and the reader by hand does
 * not: only frames that say each thing once are compared. */
static bool is_written_once(const Bookkeeper__Request *r, size_t size)
{
    return bookkeeper__request__get_packed_size(r) == size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bookie_request q;
    struct bookie_v3 v3;
    if (bookie_v3_read(view_of(data, size), &q, &v3))
        return 0;
    if (q.body.base)
        assert(q.body.base >= data && q.body.base + q.body.len <= data + size);
    Bookkeeper__Request *r = bookkeeper__request__unpack(NULL, size, data);
    if (!r)
        return 0;
    if (is_written_once(r, size))
        compare(r, &q, &v3);
    bookkeeper__request__free_unpacked(r, NULL);
    return 0;
}
