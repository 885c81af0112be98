/* cursor.h - how far one subscription has acknowledged, hole by hole, and never forgotten.
 *
 *   ack -> acks (core: mark-delete + roaring bitmap a ledger) -> delta, group-committed to the
 *   cursor's ledger -> ack_call.done()
 *
 * The core (cursor_acks) decides; the store (cursor_store) writes.  A cursor ledger holds
 * versioned deltas and now and then a full snapshot, uncapped; a clean close writes Pulsar's
 * own form (ManagedCursorInfo inline, or PositionInfo as the ledger's last entry).  Both are read.
 * An entry is acknowledged for good once ack_call.done() was called; other acks within
 * conf.cursor_delta_delay_us and a write.
 *
 * Facts: pulsar-broker.md B.2, B.6, K 6-8; DESIGN.md 6.
 *
 * Threads: the managed ledger's loop.
 */
#ifndef BROKER_MANAGED_LEDGER_CURSOR_H
#define BROKER_MANAGED_LEDGER_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/position.h"
#include "broker/managed_ledger/segments.h"
#include "common/err.h"
#include "common/loop.h"
#include "ledger/client.h"

struct cursor;
struct cursor_part;
struct mem_pool;
struct metadata;
struct ml_conf;
struct pairs;

struct cursor_ack_call {
    void (*done)(struct cursor_ack_call *c, enum err err); /* durable, or why not */
    struct cursor_ack_call *next;                          /* private, as the next */
    uint64_t seq;
};

/* One entry; positions that are acknowledged already, or are no entry, are fine.  call may be
 * NULL. */
void cursor_ack(struct cursor *c, const struct position *at, unsigned n,
                struct cursor_ack_call *call);
/* Of the batch there, messages with a bit in `words` are not acknowledged yet, the others are (and
 * what was before stays so); with none left the entry is.  False: there is no room to remember
 * it, or the cursor is closed; call is not called then. */
bool cursor_ack_part(struct cursor *c, struct position at, const uint64_t *words, unsigned n,
                     struct cursor_ack_call *call);
/* Everything up to and with this one. */
void cursor_ack_upto(struct cursor *c, struct position at, struct cursor_ack_call *call);
/* Sets the mark-delete position and forgets the holes: a seek. */
void cursor_reset(struct cursor *c, struct position mark_delete, struct cursor_ack_call *call);

/* What its users wrote on it, as ManagedCursorInfo.cursorProperties: instead of what was there. */
void cursor_set_properties(struct cursor *c, const struct pairs *p, struct cursor_ack_call *call);
const struct pairs *cursor_properties(const struct cursor *c); /* borrows until the next change */

const char *cursor_name(const struct cursor *c);
bool cursor_is_passing(const struct cursor *c); /* in memory only */
struct position cursor_mark_delete(const struct cursor *c);
/* Which messages of the batch there are not acknowledged; NULL: all of them, or none.  Borrows. */
const struct cursor_part *cursor_part(const struct cursor *c, struct position at);
bool cursor_is_acked(const struct cursor *c, struct position at);
/* The first entry's place after p that is not acknowledged (it may not be written yet). */
struct position cursor_next_unacked(const struct cursor *c, struct position p);
int64_t cursor_backlog(const struct cursor *c); /* entries not acknowledged, exact */
uint64_t cursor_holes(const struct cursor *c);  /* acknowledged ranges beyond the mark-delete */

/* Whatever who looks at all cursors wants to find there again; nothing here uses it. */
void cursor_set_user(struct cursor *c, void *user);
void *cursor_user(const struct cursor *c);

/* ---- for the managed ledger ------------------------------------------------------------------ */

struct ml_save;

struct cursor_env {
    struct loop *home;
    struct ledger_client *ledgers;
    struct metadata *meta;
    struct mem_pool *pool; /* of cursors */
    const struct ml_conf *conf;
    const char *ml_name;
    const struct segments *segments;
    void (*moved)(struct cursor_env *e, struct cursor *c); /* mark-delete went on, durably */
    void (*failed)(struct cursor_env *e, struct cursor *c,
                   enum err err); /* FENCED: another owner */
    /* Of the managed ledger's node.  prove: writes it once more; as ml_node_save(). */
    int64_t (*node_version)(const struct cursor_env *e);
    enum err (*prove)(struct cursor_env *e, struct ml_save *s);
    /* A node is not as it was: does the log find that the store was put back, and that it is still
     * its owner?  Answered by `looks`, one more, and `returns`, one more if so.  NULL: it is not.
     */
    void (*doubted)(struct cursor_env *e);
    unsigned looks, returns;
};

struct mem_pool *cursor_pool_new(void); /* gives */

struct cursor_call {
    void (*done)(struct cursor_call *c, enum err err,
                 struct cursor *cursor); /* gives on open, create */
    const struct pairs
        *properties; /* of one that is made, or NULL; borrowed until the function returns */
    void *private;
};
/* Reads the node `name` (decoded) and what it points to.  An empty or unreadable cursor ledger
 * falls back to the node's own position, else to the earliest: redelivery, never loss.  But a
 * store or a bookie that is away is waited for. */
void cursor_open(struct cursor_env *e, const char *name, struct cursor_call *call);
void cursor_create(struct cursor_env *e, const char *name, struct position mark_delete,
                   struct cursor_call *call);
/* In memory only: what it is told counts at once, and goes with it; cursor_abandon() ends it. */
struct cursor *cursor_passing(struct cursor_env *e, const char *name, struct position mark_delete);
void cursor_close(struct cursor **c, struct cursor_call *call); /* Pulsar's form; gone at done() */
void cursor_delete(struct cursor **c,
                   struct cursor_call *call); /* ledger and node; gone at done() */
void cursor_abandon(struct cursor **c);       /* without writing: another owner has it */

/* After env->returns has grown: what the store has forgotten of it is written again. */
void cursor_doubt(struct cursor *c);

/* The durable mark-delete: what trimming may rely on. */
struct position cursor_durable_mark_delete(const struct cursor *c);

#endif
