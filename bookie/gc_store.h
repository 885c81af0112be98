/* gc_store.h - what garbage collection asks the metadata store, each question waited for.
 *
 * Threads: one, and no loop's.
 * Limits:  `per_second` questions a second.
 */
#ifndef BOOKIE_GC_STORE_H
#define BOOKIE_GC_STORE_H

#include "bookie/gc_guard.h"
#include "common/err.h"
#include "metadata/metadata.h"
#include "proto/bookkeeper.pb-c.h"

struct gc_store {
    struct metadata *meta;
    const char *bookie_id;
    uint64_t per_second; /* 0: no limit */
    void (*pause)(void *ctx, uint64_t us);
    bool (*stops)(void *ctx);
    void *ctx;
    uint64_t free_at; /* private, as the rest: when the next question may be asked */
    char instance[GC_INSTANCE_MAX + 1];
    uint8_t beacon[GC_BEACON];
    int64_t beacon_version;
    char beacon_key[META_KEY_MAX];
};

/* What the store shows now; *out borrows from s. */
MUST_CHECK enum err gc_store_look(struct gc_store *s, struct gc_sight *out);
/* Every ledger there is, each told once at least; *revision is the lowest that a page came from.
 * An error, or ERR_CLOSED when it is told to stop: there was no listing. */
MUST_CHECK enum err gc_store_list(struct gc_store *s, void (*each)(void *ctx, int64_t ledger),
                                  void *ctx, uint64_t *revision);
/* One ledger: ERR_NOT_FOUND when it is not there.  Gives. */
MUST_CHECK enum err gc_store_read(struct gc_store *s, int64_t ledger, uint64_t *revision,
                                  Bookkeeper__LedgerMetadataFormat **out);
/* The beacon in place of the one that the last look saw. */
MUST_CHECK enum err gc_store_put_beacon(struct gc_store *s, const uint8_t beacon[GC_BEACON]);

/* For ledgers that others have all copies of: nobody repairs it while the lock is held. */
MUST_CHECK enum err gc_store_lock(struct gc_store *s, int64_t ledger);
void gc_store_unlock(struct gc_store *s, int64_t ledger);
MUST_CHECK enum err gc_store_is_marked(struct gc_store *s, int64_t ledger, bool *out);

#endif
