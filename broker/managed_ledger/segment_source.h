/* segment_source.h - where the entries of a closed or open segment are read from.
 *
 * Today a ledger on bookies (segment_source_ledger); later also an object in cold storage.
 * The managed ledger asks its factory by segment and knows nothing else.
 *
 * Threads: the topic's loop.
 */
#ifndef BROKER_MANAGED_LEDGER_SEGMENT_SOURCE_H
#define BROKER_MANAGED_LEDGER_SEGMENT_SOURCE_H

#include "common/buf.h"
#include "ledger/client.h"

struct segment_source;

struct segment_read {
    int64_t first, last; /* inclusive */
    size_t max_bytes;    /* stops after the entry that reaches it; 0: no limit */
    void (*entry)(struct segment_read *r, int64_t id, struct slice payload); /* in order; gives */
    void (*done)(struct segment_read *r, enum err err);
    void *private;
};

struct segment_source_ops {
    void (*read)(struct segment_source *s, struct segment_read *r);
    void (*cancel)(struct segment_source *s, struct segment_read *r); /* no callback follows */
    void (*close)(struct segment_source *s);
};
struct segment_source {
    const struct segment_source_ops *ops;
};

struct segment_source_call {
    void (*done)(struct segment_source_call *c, enum err err, struct segment_source *s); /* gives */
    void *private;
};
/* Opens a closed ledger for reading. */
void segment_source_ledger(struct ledger_client *c, int64_t ledger,
                           struct segment_source_call *call);

#endif
