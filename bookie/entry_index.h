/* entry_index.h - where each entry lies, and a row a ledger; in RocksDB.
 *
 *   'e' ledger entry>>8  ->  index_block.h: which of 256 ids are here, and where
 *   'l' ledger           ->  ledger_row.h
 *   't' ledger           ->  ledger_tomb.h: it is going, or it went
 *   'q' log              ->  a log that could not be read whole: bytes of what was left in it
 *   'v'                  ->  u16 format version, u16 oldest reader
 *
 * A flush adds to a block by reading it, merging and writing it back, so that an entry added
 * again never hides its neighbours.  Blocks and rows of a flush are one batch, synced.
 * Compaction moves entries in batches of its own, and only those that still lie where it read
 * them: two batches never overlap in time, so an older place does not overwrite a newer one.
 *
 * Threads: lookups from any; a batch belongs to the thread that began it, others wait; the rest on
 *          the thread of the garbage collector.
 */
#ifndef BOOKIE_ENTRY_INDEX_H
#define BOOKIE_ENTRY_INDEX_H

#include "bookie/index_block.h"
#include "bookie/ledger_row.h"
#include "common/err.h"

struct entry_index;

MUST_CHECK enum err entry_index_open(struct entry_index **out, const char *dir);
void entry_index_close(struct entry_index **ix);
/* All of it is written anew, so that what was removed gives back its space; long, from any thread.
 */
void entry_index_compact(struct entry_index *ix);
void entry_index_stop_compacting(struct entry_index *ix);    /* one under way ends, none follows */
uint64_t entry_index_sequence(const struct entry_index *ix); /* grows with each write, for ever */

MUST_CHECK enum err entry_index_block(struct entry_index *ix, int64_t ledger, uint64_t block,
                                      struct index_block *out); /* ERR_NO_ENTRY: none of it */
MUST_CHECK enum err entry_index_find(struct entry_index *ix, int64_t ledger, int64_t entry,
                                     struct entry_place *out); /* ERR_NO_ENTRY */
MUST_CHECK enum err entry_index_row(struct entry_index *ix, int64_t ledger,
                                    struct ledger_row *out); /* ERR_NO_LEDGER */

/* Rows of ledgers with a higher id, in order; stops at the first error of each(), and gives it. */
MUST_CHECK enum err entry_index_rows(struct entry_index *ix, int64_t after,
                                     enum err (*each)(void *ctx, const struct ledger_row *row),
                                     void *ctx);

/* Every entry of a ledger that is here, in order; stops at the first error of each(). */
MUST_CHECK enum err entry_index_each(struct entry_index *ix, int64_t ledger,
                                     enum err (*each)(void *ctx, int64_t entry), void *ctx);
/* The same by blocks: the first entry of one is number * INDEX_BLOCK. */
typedef enum err entry_index_block_fn(void *ctx, uint64_t number, const struct index_block *b);
MUST_CHECK enum err entry_index_blocks(struct entry_index *ix, int64_t ledger,
                                       entry_index_block_fn *each, void *ctx);
/* Every ledger that has a row, in order. */
MUST_CHECK enum err entry_index_ledgers(struct entry_index *ix,
                                        enum err (*each)(void *ctx, int64_t ledger), void *ctx);

/* A batch: entries in order of (ledger, entry), rows anywhere; then commit, or discard. */
MUST_CHECK enum err entry_index_put(struct entry_index *ix, int64_t ledger, int64_t entry,
                                    const struct entry_place *at);
/* *moved: it lay at `from`, and lies at `to` when the batch is committed. */
MUST_CHECK enum err entry_index_move(struct entry_index *ix, int64_t ledger, int64_t entry,
                                     const struct entry_place *from, const struct entry_place *to,
                                     bool *moved);
void entry_index_put_row(struct entry_index *ix, const struct ledger_row *row);
MUST_CHECK enum err entry_index_commit(struct entry_index *ix); /* durable; the batch is gone */
void entry_index_discard(struct entry_index *ix);
/* A write has failed, and whether it was done only the next start would know: what it names must
 * stay where it is.  Until another one goes well. */
bool entry_index_is_doubtful(struct entry_index *ix);

/* A ledger's blocks go, then its row, durably.  Nobody adds to it any more. */
MUST_CHECK enum err entry_index_forget(struct entry_index *ix, int64_t ledger);

/* Small records of the garbage collector, each write durable. */
enum entry_index_kind { INDEX_TOMB = 't', INDEX_QUARANTINE = 'q' };
MUST_CHECK enum err entry_index_note(struct entry_index *ix, enum entry_index_kind kind,
                                     uint64_t id, struct view value);
MUST_CHECK enum err entry_index_noted(struct entry_index *ix, enum entry_index_kind kind,
                                      uint64_t id, uint8_t *into, size_t room,
                                      size_t *len); /* ERR_NOT_FOUND */
MUST_CHECK enum err entry_index_unnote(struct entry_index *ix, enum entry_index_kind kind,
                                       uint64_t id);
MUST_CHECK enum err entry_index_notes(struct entry_index *ix, enum entry_index_kind kind,
                                      enum err (*each)(void *ctx, uint64_t id, struct view value),
                                      void *ctx);

#endif
