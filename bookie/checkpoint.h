/* checkpoint.h - moves what is in memory for a device to its entry log and index, then its marks.
 *
 *   marks := every journal's last sync
 *   freeze every shard: the device's entries, its changed ledger rows
 *   entry log: append sorted, sync     -> failed: still frozen, tried again; the marks stay
 *   index: blocks and rows, one synced batch
 *   store the marks (they never go back)
 *   thaw; journals recycle the files before the marks of all devices
 *
 * An entry is in the cache before it is in the journal's queue, so everything before a mark that
 * was taken before the freeze is in what was frozen, or was flushed earlier.  Each device goes
 * its own way: what one cannot write keeps its own marks back, and with them the journals' files.
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
struct device;
struct storage;

/* What is frozen, written out in (ledger, entry) order. */
struct checkpoint_stats {
    struct metric runs, failures, entries, bytes;
    struct histogram run_us;
};

struct checkpoint *checkpoint_open(struct storage *s, struct device *d); /* gives */
/* Once, here and now.  move_marks false: only makes room (in the middle of a replay). */
MUST_CHECK enum err checkpoint_run(struct checkpoint *c, bool move_marks);
MUST_CHECK enum err checkpoint_start(struct checkpoint *c); /* its thread */
void checkpoint_kick(struct checkpoint *c);                 /* soon; any thread */
enum err checkpoint_failure(struct checkpoint *c);          /* of the last one */
void checkpoint_stop(struct checkpoint *c);                 /* a last run, then the thread ends */
void checkpoint_close(struct checkpoint **c);
const struct checkpoint_stats *checkpoint_stats(const struct checkpoint *c);

#endif
