/* compaction.h - what still counts of an entry log goes to another one, then the log goes.
 *
 *   each live ledger of the log: its index blocks -> entries that lie here -> read, checked
 *     -> appended to the compactor's own log, synced
 *     -> index: moved, where it still names the old place; synced
 *   all moved -> the old log is removed
 *
 * At each step both places or the one that the index names are good.  After a crash what was
 * appended and is named by nobody makes the new log one with little in it.
 *
 * A record that cannot be read stays where it is, and so does its log, until its ledger goes: an
 * entry that is damaged must not become one that is absent.
 *
 * Threads: one.
 */
#ifndef BOOKIE_COMPACTION_H
#define BOOKIE_COMPACTION_H

#include "bookie/entry_index.h"
#include "bookie/entry_log.h"
#include "bookie/gc_guard.h"

struct compaction {
    struct entry_index *index;
    struct entry_log *log;
    enum err (*pace)(void *ctx, uint64_t bytes); /* before each read; ERR_CLOSED: no more of it */
    void (*damaged)(void *ctx, int64_t ledger);  /* of each that has unreadable records; or NULL */
    void *ctx;
};

struct compaction_result {
    uint64_t moved, moved_bytes;
    uint64_t unreadable, unreadable_bytes; /* left behind: the log stays */
};

/* ERR_OK: nothing but what is unreadable is left in the log.  On an error what was moved was
 * moved, and the rest is where it was. */
MUST_CHECK enum err compaction_run(const struct compaction *c, uint64_t log,
                                   const struct log_usage *usage, const struct gc_ids *live,
                                   struct compaction_result *out);

#endif
