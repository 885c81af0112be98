/* cursor_delta.h - the entries of a cursor's ledger, as we write them.
 *
 *   SNAPSHOT 1/2, SNAPSHOT 2/2, CHANGES, CHANGES, ... SNAPSHOT 1/1, CHANGES ... [PositionInfo]
 *
 * A snapshot is the whole state, in as many entries as it takes; changes are what was
 * acknowledged since the entry before.  Each says where the last complete snapshot begins, so
 * that a reader needs the last entry to know where to start.  A snapshot that is not complete
 * is the ledger's end: nothing was written after it.
 *
 * Pulsar's PositionInfo begins with 0x08 (field 1), ours with 'L'.
 *
 * Layout: docs/disk-format.md, "Cursor ledger".
 * Limits: an entry has at most CURSOR_DELTA_ENTRY_MAX bytes, a snapshot CURSOR_DELTA_PARTS_MAX
 *         entries.
 */
#ifndef BROKER_MANAGED_LEDGER_CURSOR_DELTA_H
#define BROKER_MANAGED_LEDGER_CURSOR_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/managed_ledger/cursor_acks.h"
#include "common/buf.h"
#include "common/err.h"

enum { CURSOR_DELTA_ENTRY_MAX = 1024 * 1024, CURSOR_DELTA_PARTS_MAX = 1024 };
enum cursor_delta_kind { CURSOR_DELTA_CHANGES = 1, CURSOR_DELTA_SNAPSHOT = 2 };
#define CURSOR_DELTA_NOWHERE ((int64_t)-1)

struct cursor_delta_head {
    enum cursor_delta_kind kind;
    int64_t snapshot; /* entry where the last complete one before this entry begins, or NOWHERE */
    bool reset;       /* changes: what was acknowledged before is forgotten */
    uint32_t part, parts; /* of a snapshot: 0 of 1 */
};

/* Gives an entry; an empty slice when it would be too large: write a snapshot.  Of the parts
 * those in `changed`; NULL: none. */
struct slice cursor_delta_changes(int64_t snapshot, bool reset, struct position mark_delete,
                                  const struct cursor_set *fresh, const struct cursor_parts *parts,
                                  const struct cursor_set *changed);
/* Gives *parts (mem_free) with slices that are given too; 0: too large. */
unsigned cursor_delta_snapshot(int64_t before, const struct cursor_acks *acks,
                               struct slice **parts);

bool cursor_delta_is_ours(struct view entry);
/* ERR_MALFORMED; ERR_UNSUPPORTED_VERSION for one that newer readers only may read. */
MUST_CHECK enum err cursor_delta_head(struct view entry, struct cursor_delta_head *out);

/* Where reading must begin, by the ledger's last entry.  ERR_NO_ENTRY: no snapshot is whole. */
MUST_CHECK enum err cursor_delta_start(struct view last, int64_t id, int64_t *start);

/* Fed every entry from there on, it rebuilds the acknowledgements. */
struct cursor_replay {
    struct cursor_acks *acks; /* borrows; meaningless after an error */
    int64_t snapshot;         /* the complete one; NOWHERE before */
    int64_t begun;            /* where the one under way begins */
    uint32_t part, parts;
    uint8_t *gathered;
    size_t len, room;
};
void cursor_replay_init(struct cursor_replay *r, struct cursor_acks *acks);
MUST_CHECK enum err cursor_replay_feed(struct cursor_replay *r, int64_t id, struct view entry);
/* Settles the acknowledgements.  ERR_NO_ENTRY: there was no complete snapshot. */
MUST_CHECK enum err cursor_replay_end(struct cursor_replay *r);
void cursor_replay_drop(struct cursor_replay *r);

#endif
