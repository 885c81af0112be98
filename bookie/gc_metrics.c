/* What garbage collection counts, under BookKeeper's names where it has one. */
#include <inttypes.h>

#include "bookie/gc_inside.h"

#define OF(member, name, kind, help)                                 \
    {                                                                \
        name, METRIC_##kind, help, offsetof(struct gc_stats, member) \
    }

static const struct metric_def defs[] = {
    OF(logs.logs, "bookie_ACTIVE_ENTRY_LOG_COUNT", GAUGE, "entry logs that are closed"),
    OF(logs.log_bytes, "bookie_ACTIVE_ENTRY_LOG_SPACE_BYTES", GAUGE, "their bytes"),
    OF(logs.live_bytes, "bookie_gc_LIVE_BYTES", GAUGE, "what of these belongs to live ledgers"),
    OF(logs.ledgers, "bookie_ACTIVE_LEDGER_COUNT", GAUGE, "ledgers here, those in the trash too"),
    OF(logs.quarantined, "bookie_gc_QUARANTINED_LOGS", GAUGE,
       "entry logs with records that cannot be read"),
    OF(logs.removed_logs, "bookie_gc_REMOVED_LOGS", COUNTER, "entry logs without live ledgers"),
    OF(logs.removed_bytes, "bookie_RECLAIMED_DELETION_SPACE_BYTES", COUNTER,
       "space that was taken back with logs without live ledgers"),
    OF(logs.compacted_logs, "bookie_gc_COMPACTED_LOGS", COUNTER, "entry logs that were compacted"),
    OF(logs.compacted_bytes, "bookie_RECLAIMED_COMPACTION_SPACE_BYTES", COUNTER,
       "space that was taken back by compaction"),
    OF(logs.moved, "bookie_gc_COMPACTED_ENTRIES", COUNTER, "entries that compaction moved"),
    OF(logs.moved_bytes, "bookie_gc_COMPACTED_BYTES", COUNTER, "their bytes"),
    OF(logs.unreadable, "bookie_gc_UNREADABLE_ENTRIES", COUNTER,
       "entries that compaction found damaged"),
    OF(logs.failures, "bookie_gc_COMPACTION_FAILURES", COUNTER, "compactions that failed"),
    OF(deleted_ledgers, "bookie_DELETED_LEDGER_COUNT", COUNTER,
       "ledgers deleted here after they were in the metadata"),
    OF(moved_ledgers, "bookie_NUM_OVER_REPLICATED_LEDGERS", COUNTER,
       "ledgers removed here because other bookies have all copies"),
    OF(healed, "bookie_gc_HEALED_ENTRIES", COUNTER,
       "entries of damaged ledgers that other bookies gave back"),
    OF(trashed, "bookie_gc_TRASHED_LEDGERS", GAUGE, "ledgers in the trash"),
    OF(tombs, "bookie_gc_TOMBSTONES", GAUGE, "deleted ledgers that are remembered"),
    OF(halted, "bookie_gc_HALTED", GAUGE,
       "1: the metadata store is not believed, nothing is deleted until an operator resumes"),
    OF(minors, "bookie_MINOR_COMPACTION_COUNT", COUNTER, "minor compactions"),
    OF(majors, "bookie_MAJOR_COMPACTION_COUNT", COUNTER, "major compactions"),
    OF(listings, "bookie_gc_ROUNDS", COUNTER, "comparisons with the metadata that were complete"),
    OF(failed_listings, "bookie_gc_FAILED_ROUNDS", COUNTER, "and those that were not"),
};

void gc_render(struct gc *g, struct text *t)
{
    metric_render(t, defs, sizeof defs / sizeof defs[0], &g->stats, NULL);
    summary_render(t, "bookie_GC_THREAD_RUNTIME", "ms of a round of garbage collection",
                   &g->stats.round_us, NULL);
}
