/* remembered.h - the metadata of a topic's newest ledgers, as it was written last: for the day when
 * the metadata store is put back to an older state, and has forgotten them.
 *
 * Limits: REMEMBERED_MAX ledgers of one topic, none that was closed more than REMEMBERED_MS ago,
 *         REMEMBERED_BYTES of all topics of a loop (`total` counts them): past any of it the
 *         topic's oldest go, and then are beyond help after a restore.  About 300 bytes a ledger.
 * Threads: the managed ledger's loop.
 */
#ifndef BROKER_MANAGED_LEDGER_REMEMBERED_H
#define BROKER_MANAGED_LEDGER_REMEMBERED_H

#include "ledger/client.h"

enum {
    REMEMBERED_MAX = 512,
    REMEMBERED_BYTES = 32 * 1024 * 1024,
    REMEMBERED_MS = 24 * 60 * 60 * 1000
};

struct remembered_ledger {
    int64_t ledger, version;
    int64_t closed_ms;
    uint8_t *value;
    size_t len;
};

struct remembered {
    struct remembered_ledger *at; /* sorted by id */
    unsigned n, room;
    size_t *total;
};

void remembered_init(struct remembered *r, size_t *total); /* of all that share it; borrowed */
void remembered_drop(struct remembered *r);
/* In place of what was known of it; borrows k.  now_ms: the oldest may go. */
void remembered_note(struct remembered *r, const struct ledger_known *k, int64_t closed_ms,
                     int64_t now_ms);
const struct remembered_ledger *remembered_find(const struct remembered *r, int64_t ledger);
const struct remembered_ledger *remembered_after(const struct remembered *r, int64_t ledger);
void remembered_forget(struct remembered *r, int64_t ledger); /* it is deleted */
void remembered_age(struct remembered *r, int64_t now_ms);
struct ledger_known remembered_known(const struct remembered_ledger *l); /* gives its value */

#endif
