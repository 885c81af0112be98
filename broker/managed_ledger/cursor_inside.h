/* cursor_inside.h - one cursor's shell, for the files that make it up.
 *
 * cursor.c       what its users call, and telling them what became durable
 * cursor_io.c    the store's effects: ledgers, the node, timers
 * cursor_open.c  reading it back; making it
 * cursor_mend.c  the store went back
 *
 * The shell lives until nothing calls back any more: each answer to come is counted (`busy`).
 */
#ifndef BROKER_MANAGED_LEDGER_CURSOR_INSIDE_H
#define BROKER_MANAGED_LEDGER_CURSOR_INSIDE_H

#include "broker/managed_ledger/cursor.h"
#include "broker/managed_ledger/cursor_record.h"
#include "broker/managed_ledger/cursor_store.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "broker/managed_ledger/pairs.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"

/* LIVE -> ENDING (close, delete) -> GONE; LIVE -> FAILED -> GONE; any -> GONE (abandon). */
enum cursor_phase { CURSOR_LIVE, CURSOR_ENDING, CURSOR_FAILED, CURSOR_GONE };

struct cursor_wait {
    struct timer timer;
    uint64_t backoff_us;
    bool told; /* logged once */
};

/* What only one that is written needs: the most of them lie still. */
struct cursor_io {
    struct cursor *cursor;
    struct slice attempt; /* at the node's value */
    struct meta_call put, get;

    struct ledger *at[2]; /* the one that is written to, and while that changes another */
    struct ledger_call create, seal;
    struct ledger_append append;
    struct ledger *appending;
    struct slice *entries;
    unsigned n, next;

    struct cursor_wait wait;
    struct bookies_watch watch;
    bool watching;
    struct timer gather;
    struct meta_call check; /* is the node as it was? */
    struct timer check_timer;
    bool checking;
    struct ledger_return back;
    bool returning;
    bool asked;     /* the log, */
    unsigned looks; /* when it had looked so often */
};

struct cursor {
    void *user; /* not ours */
    struct cursor_env *env;
    struct loop *home;
    char *name;
    enum cursor_phase phase;
    unsigned busy;
    struct cursor_store store;
    struct cursor_io *io; /* NULL: nothing was written yet */
    struct pairs properties;

    struct slice node; /* its value, as we know it */
    struct slice base; /* what of it a rewrite keeps */
    int64_t version;   /* META_ABSENT: it is to be made again */
    unsigned returns;  /* env->returns, as of which the node is known */

    struct task later; /* tells what became durable, or how it ended */
    bool relabelled;   /* `base` says other properties */
    bool later_posted;
    bool append_refused;
    bool ended;
    enum err refusal;
    enum err end_err;
    struct position told; /* the mark-delete position that moved() was last called for */
    struct cursor_ack_call *calls, **calls_end;
    struct cursor_call *ending;
};

extern const struct cursor_store_ops cursor_io_ops;

/* The node is what an answer says, neither before nor after our write.  True: the store went back,
 * and all is written anew from there; false: `err` is why that is not known yet, or OK: it did
 * not. */
bool cursor_went_back(struct cursor *c, const struct meta_reply *r, enum err *err);

struct cursor *cursor_of(struct cursor_store *s);
struct cursor_io *cursor_io_of(struct cursor *c); /* makes it; the cursor's */
/* acks and the slice are taken; gives. */
struct cursor *cursor_new(struct cursor_env *e, const char *name, struct cursor_acks *acks,
                          struct slice node, int64_t version);
void cursor_hold(struct cursor *c);
void cursor_release(struct cursor *c); /* c may be gone */
void cursor_tell_later(struct cursor *c);
void cursor_stop_io(struct cursor *c); /* handles, timers and watches go; answers may still come */

/* 100 ms, then twice as long each time, up to 10 s; logs the first. */
void cursor_wait_longer(struct cursor_wait *w, struct loop *home, const char *ml_name,
                        const char *name, enum err why);
void cursor_wait_over(struct cursor_wait *w);

#endif
