/* checkpoint.h - moves what is in memory to the entry log and the index, then the mark.
 *
 *   mark := journal's last sync
 *   freeze every shard: entries, changed ledger rows
 *   entry log: append sorted, sync     -> failed: still frozen, tried again; the mark stays
 *   index: blocks and rows, one synced batch
 *   store the mark (it never goes back)
 *   thaw; the journal recycles the files before the mark
 *
 * An entry is in the cache before it is in the journal's queue, so everything before a mark that
 * was taken before the freeze is in what was frozen, or was flushed earlier.
 *
 * Threads: its own, from checkpoint_start(); before that the caller's.
 */
#ifndef BOOKIE_CHECKPOINT_H
#define BOOKIE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "bookie/journal.h"
#include "common/err.h"

struct checkpoint;
struct storage;

/* What is frozen, written out in (ledger, entry) order. */
struct checkpoint_stats {
    struct metric runs, failures, entries, bytes;
    struct histogram run_us;
};

/* Reads the mark; gives. */
MUST_CHECK enum err checkpoint_open(struct checkpoint **out, struct storage *s);
struct journal_mark checkpoint_mark(const struct checkpoint *c); /* the stored one */
/* Once, here and now.  move_mark false: only makes room (in the middle of a replay). */
MUST_CHECK enum err checkpoint_run(struct checkpoint *c, bool move_mark);
MUST_CHECK enum err checkpoint_start(struct checkpoint *c); /* its thread */
void checkpoint_kick(struct checkpoint *c);                 /* soon; any thread */
bool checkpoint_is_full(struct checkpoint *c); /* the last one failed for want of space */
void checkpoint_stop(struct checkpoint *c);    /* a last run, then the thread ends */
void checkpoint_close(struct checkpoint **c);
const struct checkpoint_stats *checkpoint_stats(const struct checkpoint *c);

#endif
