/* cursor_record.h - a cursor's state in Pulsar's own forms.
 *
 * ManagedCursorInfo is the node: with cursorsLedgerId -1 it holds the state, else it names the
 * ledger whose last entry does.  There, PositionInfo is Pulsar's form.  pulsar-broker.md B.2, B.6.
 */
#ifndef BROKER_MANAGED_LEDGER_CURSOR_RECORD_H
#define BROKER_MANAGED_LEDGER_CURSOR_RECORD_H

#include <stdint.h>

#include "broker/managed_ledger/cursor_acks.h"
#include "broker/managed_ledger/pairs.h"
#include "common/buf.h"
#include "common/err.h"
#include "metadata/records.h"

enum { CURSOR_RECORD_ENTRY_MAX = 4 * 1024 * 1024 }; /* of a PositionInfo that we write */

/* POSITION_EARLIEST when the node has none. */
struct position cursor_record_mark_delete(const ManagedLedger__ManagedCursorInfo *r);
/* The node's own state, settled. */
void cursor_record_load(const ManagedLedger__ManagedCursorInfo *r, struct cursor_acks *acks);

/* What users wrote on it: read into `out`, which is empty; written over what was there. */
void cursor_record_labels(const ManagedLedger__ManagedCursorInfo *r, struct pairs *out);
void cursor_record_label(ManagedLedger__ManagedCursorInfo *r, const struct pairs *labels);

/* Gives a node's value that keeps what `base` has besides: properties, fields we do not know.
 * acks: written into it; NULL: it names `ledger` and has the mark-delete position only. */
struct slice cursor_record_make(const ManagedLedger__ManagedCursorInfo *base, int64_t ledger,
                                struct position mark_delete, const struct cursor_acks *acks);

/* A PositionInfo, settled into acks; its properties go to r, as those of the node.
 * ERR_MALFORMED; ERR_UNSUPPORTED_VERSION for the log of a newer Pulsar (PIP-488). */
MUST_CHECK enum err cursor_position_read(struct view entry, struct cursor_acks *acks,
                                         ManagedLedger__ManagedCursorInfo *r);
/* Gives; empty when it would be larger than an entry may be. */
struct slice cursor_position_write(const struct cursor_acks *acks,
                                   const ManagedLedger__ManagedCursorInfo *r);

#endif
