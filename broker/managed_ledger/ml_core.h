/* ml_core.h - the write side of a managed ledger: which ledger, which add, what next; pure.
 *
 *                     add                   created            listed
 *   NO_LEDGER ------------> CREATING ------------> LISTING ------------> OPEN
 *     ^  ^                     | failed               | cannot          |  | full or old, and
 *     |  +-- woken -- WAITING <+----------------------+                 |  | the next is created
 *     |                  ^                                     failed   v  v
 *     +------------------+--- CLOSING <---- all in flight answered -- DRAINING
 *             closed
 *   any --- another owner was met --> FENCED          asked to end --> CLOSED
 *
 * A ledger is written to only after the node lists it.  The next one is created while the
 * current one still takes adds: with the metadata store away nothing rolls, and everything that
 * is in flight is confirmed meanwhile.  What a failed ledger has not confirmed goes to the
 * front of the queue again; when closing shows that the ledger kept some of it after all, that
 * much is confirmed there instead of being written twice.
 *
 * Indexes are given at the door, in order, one a message: dense, and never taken back, because
 * an add that got one is stored or is the end of this managed ledger.
 *
 * Memory:  an add is its caller's until confirm() or refuse().
 * Threads: none of its own; effects never call back in the same stack.
 * Facts:   pulsar-broker.md B.4; DESIGN.md 4, 6.
 */
#ifndef BROKER_MANAGED_LEDGER_ML_CORE_H
#define BROKER_MANAGED_LEDGER_ML_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/managed_ledger.h"

enum ml_state {
    ML_NO_LEDGER,
    ML_WAITING,
    ML_CREATING,
    ML_LISTING,
    ML_OPEN,
    ML_DRAINING,
    ML_CLOSING,
    ML_FENCED,
    ML_CLOSED,
    ML_STATES
};
const char *ml_state_name(enum ml_state s);

struct ml_core;

struct ml_core_ops {
    void (*create)(struct ml_core *c, int64_t above);           /* answer: ml_core_created() */
    void (*list)(struct ml_core *c, int64_t ledger);            /* ml_core_listed() */
    enum err (*append)(struct ml_core *c, struct ml_add *a);    /* ml_core_appended(), in order */
    void (*close)(struct ml_core *c);                           /* ml_core_closed() */
    void (*wait)(struct ml_core *c, enum err why, uint64_t us); /* ml_core_woken() */
    void (*discard)(struct ml_core *c, int64_t ledger);         /* created, and never listed */
    void (*confirm)(struct ml_core *c, struct ml_add *a, struct position at);
    void (*refuse)(struct ml_core *c, struct ml_add *a, enum err err);
    void (*fenced)(struct ml_core *c, enum err err); /* once */
};

struct ml_core {
    const struct ml_core_ops *ops;
    enum ml_state state;
    bool ending;               /* asked to: no new adds */
    unsigned asked;            /* a bit for each answer that is to come */
    struct list_node waiting;  /* adds, in order: returned ones first */
    struct list_node flying;   /* handed to the current ledger */
    struct list_node returned; /* that it failed, until the last one is back */
    unsigned n_returned;       /* of those, and then of the front of `waiting` */
    size_t pending_bytes, pending_max;
    int64_t ledger;         /* the current or the last one; the next one is above it */
    int64_t next;           /* created, not listed yet; -1: none */
    int64_t entries, bytes; /* confirmed in the current one */
    int64_t sent_entries, sent_bytes;
    unsigned fruitless;       /* ledgers in a row that came to nothing */
    uint64_t next_index;      /* of the next message that is added */
    uint64_t confirmed_index; /* of the first message that is not confirmed */
};

void ml_core_init(struct ml_core *c, const struct ml_core_ops *ops, size_t pending_max,
                  int64_t last_ledger, uint64_t next_index);

/* May it be added?  ERR_FENCED, ERR_CLOSED, ERR_BUSY. */
MUST_CHECK enum err ml_core_admits(const struct ml_core *c, size_t bytes);
uint64_t ml_core_index_of(const struct ml_core *c, uint32_t messages); /* of the next add */
void ml_core_add(struct ml_core *c, struct ml_add *a); /* bytes and messages are set */

void ml_core_roll(struct ml_core *c); /* the current ledger is full or old */
void ml_core_end(struct ml_core *c);

void ml_core_created(struct ml_core *c, enum err err, int64_t ledger);
void ml_core_listed(struct ml_core *c, enum err err);
void ml_core_appended(struct ml_core *c, struct ml_add *a, enum err err, int64_t entry);
/* Entries that the closed ledger has, and their bytes.  An error ends a core that is ending, or
 * means that another owner was met. */
void ml_core_closed(struct ml_core *c, enum err err, int64_t entries, int64_t bytes);
void ml_core_woken(struct ml_core *c);
void ml_core_fence(struct ml_core *c, enum err err); /* another owner was met elsewhere */

bool ml_core_rolling(const struct ml_core *c);
/* FENCED or CLOSED, and no answer is outstanding. */
bool ml_core_settled(const struct ml_core *c);

#endif
