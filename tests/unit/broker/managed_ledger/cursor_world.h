/* cursor_world.h - a world for one cursor's store: the node, its ledgers, and what was in them
 * after each change.
 *
 * A world where every write may fail, or happen and seem to fail; after any of them the power
 * may go: what is read back must be the state after some change, none that is confirmed lost.
 */
#ifndef TESTS_UNIT_BROKER_MANAGED_LEDGER_CURSOR_WORLD_H
#define TESTS_UNIT_BROKER_MANAGED_LEDGER_CURSOR_WORLD_H

#include "broker/managed_ledger/cursor_store.h"
#include "metadata/records.h"

enum { LEDGERS = 3, PER_LEDGER = 3000, BITS = LEDGERS * PER_LEDGER, FILES = 1000, FILE_MAX = 2048 };
enum doing { NOTHING, CREATE, APPEND, POINT, LOOK, PAUSE };

struct file {
    int64_t id;
    bool there;
    struct slice *at;
    unsigned n;
};

struct state {
    uint8_t acked[BITS / 8 + 1];
};

struct world {
    struct cursor_store store;
    struct segments segments;
    struct file files[FILES];
    unsigned n;
    struct slice node;
    bool node_there, node_foreign;
    int64_t version;

    enum doing doing;
    struct slice out[8];
    unsigned n_out;
    int64_t out_ledger;
    struct slice attempt;
    int64_t attempt_version;
    enum cursor_store_target target;
    bool gathering, ended;
    enum err end_err;

    struct state *history; /* after each change */
    int64_t *labels;       /* likewise: the number that stands for its properties */
    int64_t label;
    size_t room;
    uint64_t seed;
    int64_t max_entries;
    uint64_t replay_bytes;
    unsigned trouble; /* answers of a hundred that are bad */
};

struct world *cursor_world_new(uint64_t seed, unsigned trouble);
void cursor_world_drop(struct world *w);
bool cursor_world_in(struct world *w, unsigned of_hundred);
void cursor_world_step(struct world *w);   /* somebody uses it, or an answer comes */
void cursor_world_answer(struct world *w); /* to what is under way */
void cursor_world_settle(struct world *w); /* until nothing is */
void cursor_world_note(struct world *w);   /* after each change */
void cursor_world_relabel(struct world *w);
void cursor_world_reopen(struct world *w); /* the power goes */
void cursor_world_read_back(struct world *w, struct cursor_acks *acks, bool *clean);
void cursor_world_check(struct world *w); /* what is read back is a state after some change */
ManagedLedger__ManagedCursorInfo *cursor_world_record(struct slice value); /* gives */

#endif
