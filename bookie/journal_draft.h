/* journal_draft.h - a group of records, as it fills: who appends lays his record out himself.
 *
 *   draft_reserve (under the journal's lock) -> draft_copy (outside of it) -> ...
 *   the journal thread takes the draft, waits for the copies, seals the records, writes
 *
 * An entry is copied and summed by the thread that has just received it, while it is warm there:
 * moving it to another core's cache first costs more than both.  What only the journal's thread
 * knows (file, sequence, group) is filled in by it, a line a record.
 *
 * Threads: reserve, copied and reset under the journal's lock; copy by who has reserved; seal by
 *          the journal's thread when `copying` is 0.
 * Limits:  `room` bytes; a first record may have as much, further ones only up to `limit`.
 */
#ifndef BOOKIE_JOURNAL_DRAFT_H
#define BOOKIE_JOURNAL_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bookie/journal.h"

struct journal_writes {
    struct journal_write *first, **end;
};

struct journal_draft {
    uint8_t *memory, *bytes; /* bytes: memory, at a block */
    size_t room, limit;
    size_t len;
    uint64_t cost, n; /* of its writes: journal_write_cost(), how many */
    unsigned copying; /* records that are reserved and not there yet */
    bool has_early;
    struct journal_writes writes;
};

void journal_writes_init(struct journal_writes *q);
void journal_writes_put(struct journal_writes *q, struct journal_write *w);

/* What a waiting write counts: its record, and about what its request takes in memory. */
uint64_t journal_write_cost(const struct journal_write *w);

void draft_init(struct journal_draft *d, size_t room, size_t limit);
void draft_end(struct journal_draft *d);
void draft_reset(struct journal_draft *d); /* empty again */
/* A place for the record of w, which joins its writes; false: it is full. */
bool draft_reserve(struct journal_draft *d, struct journal_write *w, size_t *at);
void draft_copy(struct journal_draft *d, size_t at, struct journal_write *w); /* drops its body */
/* Fills in what is missing; the length in whole blocks, 0: markers only. */
size_t draft_seal(struct journal_draft *d, uint64_t file, uint64_t *sequence);

#endif
