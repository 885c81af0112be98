/* cursor_acks.h - what one subscription has acknowledged: a core without I/O.
 *
 *   ....MMMMMMMMM a . a a a . . a .     M: up to the mark-delete position, everything
 *               ^ mark-delete           a: in the set beyond it
 *
 * The mark-delete position goes on by itself over what is acknowledged next to it, across the
 * ends of ledgers and over empty and trimmed ones; the segments say what exists.  What does not
 * exist cannot be acknowledged: such positions change nothing.
 *
 * Memory: embedded; end it with cursor_acks_drop().  The segments are borrowed for life.
 * Limits: a ledger's entries up to CURSOR_SET_ENTRY_MAX (four billion).
 */
#ifndef BROKER_MANAGED_LEDGER_CURSOR_ACKS_H
#define BROKER_MANAGED_LEDGER_CURSOR_ACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/cursor_parts.h"
#include "broker/managed_ledger/cursor_set.h"
#include "broker/managed_ledger/segments.h"

struct cursor_acks {
    const struct segments *segments;
    struct position mark_delete;
    struct cursor_set beyond;
    struct cursor_parts parts; /* of entries that are not acknowledged */
};

void cursor_acks_init(struct cursor_acks *a, const struct segments *segments,
                      struct position mark_delete);
void cursor_acks_drop(struct cursor_acks *a);

/* True when something has changed. */
bool cursor_acks_one(struct cursor_acks *a, struct position p);
/* Of a batch: what is not in `words` any more; with nothing left the entry is acknowledged. */
enum cursor_parts_outcome cursor_acks_part(struct cursor_acks *a, struct position p,
                                           const uint64_t *words, unsigned n);
/* POSITION_LATEST is the last entry; anything else beyond the end is ignored. */
bool cursor_acks_upto(struct cursor_acks *a, struct position p);
void cursor_acks_reset(struct cursor_acks *a, struct position mark_delete);

bool cursor_acks_has(const struct cursor_acks *a, struct position p);
struct position cursor_acks_next(const struct cursor_acks *a, struct position p);
int64_t cursor_acks_backlog(const struct cursor_acks *a);
uint64_t cursor_acks_holes(const struct cursor_acks *a);

/* ---- putting a stored state together: then cursor_acks_settle() --------------------------- */

/* As it was stored, whether it exists or not; what is acknowledged below it is forgotten. */
void cursor_acks_load_upto(struct cursor_acks *a, struct position mark_delete);
void cursor_acks_load_reset(struct cursor_acks *a, struct position mark_delete);
/* Entries after `lower`, up to and with `upper`, as far as they exist. */
void cursor_acks_load_range(struct cursor_acks *a, struct position lower, struct position upper);
/* Replaces what was known of it. */
void cursor_acks_load_part(struct cursor_acks *a, struct position p, const uint64_t *words,
                           unsigned n);
/* Normalises the mark-delete position: into a trimmed ledger: before the first entry; past the
 * end: the last one. */
void cursor_acks_settle(struct cursor_acks *a);

#endif
