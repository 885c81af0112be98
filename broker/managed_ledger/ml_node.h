/* ml_node.h - writing a managed ledger's metadata node: one write at a time, never in doubt; pure.
 *
 *   save -> IDLE --> WRITING --ok--> saved(ERR_OK)
 *                      |  ^ ^
 *        may have      |  | | not there: the same bytes again
 *        happened      v  |  \
 *   look ---------> CHECKING --the node is what we wrote--> saved(ERR_OK)
 *                         |\---- another owner's ----------> FENCED
 *                         v
 *                      MENDING: the store was put back to a state that is behind ours: what the
 *                               node is to name is made sure of, then it is written over that
 *
 * Saves that arrive while one is written share the next write, which holds the state of that
 * moment.  A write that may or may not have happened is read back and repeated byte by byte, so
 * that finding those bytes at the next version proves that it did (no two owners write the same:
 * ML_RECORD_OWNER).  Only a version that somebody else has moved means another owner.
 *
 * Threads: none of its own; effects never call back in the same stack.
 */
#ifndef BROKER_MANAGED_LEDGER_ML_NODE_H
#define BROKER_MANAGED_LEDGER_ML_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/lineage.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/list.h"

enum ml_node_state {
    ML_NODE_IDLE,
    ML_NODE_WRITING,
    ML_NODE_CHECKING,
    ML_NODE_MENDING,
    ML_NODE_FENCED
};

struct ml_node;

struct ml_node_ops {
    struct slice (*render)(struct ml_node *n);                            /* gives */
    void (*put)(struct ml_node *n, struct slice value, int64_t expected); /* takes; _put_done */
    void (*get)(struct ml_node *n);                                       /* _got */
    void (*delay)(struct ml_node *n, uint64_t us);                        /* _delayed */
    void (*stored)(struct ml_node *n); /* what was rendered last is there */
    /* Whose is what is there; value NULL: nothing is. */
    enum kin (*judge)(struct ml_node *n, const struct slice *value, int64_t version);
    void (*mend)(struct ml_node *n); /* _mended */
    /* A doubt is over.  ERR_OK: the node is ours, as it should be. */
    void (*sure)(struct ml_node *n, enum err err);
};

/* Embedded in its owner; stays put until done(). */
struct ml_save {
    /* ERR_FENCED: another owner.  Class CALLER: the value cannot be stored. */
    void (*done)(struct ml_save *s, enum err err);
    struct list_node node; /* private */
};

struct ml_node {
    const struct ml_node_ops *ops;
    enum ml_node_state state;
    int64_t version;    /* of the key, as we know it; META_ABSENT: it is to be made again */
    struct slice value; /* what is being written */
    bool writes;        /* there is such a value; else the node is only looked at */
    bool doubted;       /* to be looked at, when what is under way is over */
    bool unsure;        /* what is under way ends a doubt */
    unsigned tries;
    bool hurry;               /* no more tries: the owner is about to go */
    struct list_node waiting; /* for the next write */
    struct list_node written; /* for the one under way */
};

void ml_node_init(struct ml_node *n, const struct ml_node_ops *ops, int64_t version);
void ml_node_clear(struct ml_node *n); /* when idle or fenced */

/* done() comes with an answer of the store, later; ERR_FENCED at once when that is known. */
MUST_CHECK enum err ml_node_save(struct ml_node *n, struct ml_save *s);

/* The store may not be what it was: looks whether the node is still ours, then sure(). */
void ml_node_look(struct ml_node *n);

/* On: a save that cannot be made at once fails with an error of class RETRY. */
void ml_node_hurry(struct ml_node *n, bool on);

void ml_node_put_done(struct ml_node *n, enum err err, int64_t version);
void ml_node_got(struct ml_node *n, enum err err, struct slice value, int64_t version);
void ml_node_delayed(struct ml_node *n);
void ml_node_mended(struct ml_node *n, enum err err); /* of class RETRY: later again */

#endif
