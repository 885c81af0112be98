/* managed_ledger_inside.h - what the files of the managed ledger's shell share.
 *
 *   managed_ledger.c          adds, and what the core (ml_core) asks for
 *   managed_ledger_node.c     the metadata node (ml_node), properties
 *   managed_ledger_open.c     from nothing to serving
 *   managed_ledger_end.c      close and delete
 *   managed_ledger_terminate.c  no adds any more
 *   managed_ledger_mend.c     the store went back: what it has forgotten is written again
 *   managed_ledger_care.c     rolling and trimming
 *   managed_ledger_waits.c    what adds have waited for
 *   managed_ledger_read.c     reads; managed_ledger_sources.c: where from
 *   managed_ledger_find.c     where a time is
 *   managed_ledger_cursors.c  its cursors
 *   managed_ledger_env.c      what a loop's managed ledgers share
 *
 * Whatever will call back (a task, a timer, a request) holds the managed ledger; it goes when
 * it has ended and nothing holds it.
 */
#ifndef BROKER_MANAGED_LEDGER_MANAGED_LEDGER_INSIDE_H
#define BROKER_MANAGED_LEDGER_MANAGED_LEDGER_INSIDE_H

#include "broker/managed_ledger/cursor.h"
#include "broker/managed_ledger/entry_cache.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "broker/managed_ledger/ml_core.h"
#include "broker/managed_ledger/ml_node.h"
#include "broker/managed_ledger/ml_record.h"
#include "broker/managed_ledger/remembered.h"
#include "broker/managed_ledger/segment_source.h"
#include "common/mem_pool.h"
#include "metadata/metadata.h"

struct ml_env {
    struct loop *home;
    struct ledger_client *ledgers;
    struct metadata *meta;
    struct ml_conf conf;
    struct entry_cache *cache;
    struct list_node all;                         /* struct managed_ledger.in_env */
    unsigned n;                                   /* in it */
    struct list_node deletions;                   /* under way */
    struct mem_pool *ledgers_pool, *cursors_pool; /* of managed ledgers, and their cursors */
    struct bookies_watch watch;
    struct meta_watch store; /* for UNSURE only: it may have gone back */
    struct timer look;       /* age of ledgers, retention, idle sources */
    struct slab *prefixes;   /* broker entry metadata is cut from it */
    size_t prefixes_used;
    size_t remembered;            /* bytes, of all */
    uint64_t ahead, went_back_us; /* as far as the store has gone back; when that was heard of */
    bool dropped;                 /* goes with the last deletion */
};

/* A ledger that was read from not long ago. */
struct ml_source {
    struct list_node node; /* in the managed ledger, last used first */
    struct managed_ledger *ml;
    struct segment_source_call call;
    struct segment_source *source; /* NULL: opening */
    int64_t ledger;
    unsigned readers;
    uint64_t used_us;
    bool forgotten; /* goes when it is open */
};

enum ml_life {
    ML_LIFE_OPENING,
    ML_LIFE_SERVING,
    ML_LIFE_STOPPING, /* was told to end a moment ago */
    ML_LIFE_SEALING,  /* the log ends */
    ML_LIFE_SAVING,   /* its last state goes into the node */
    ML_LIFE_CURSORS,  /* they write themselves down, or are deleted */
    ML_LIFE_LEDGERS,  /* delete: they go */
    ML_LIFE_NODE,     /* delete: it goes */
    ML_LIFE_LEAVING   /* when nothing holds it */
};

/* What is needed while a ledger follows another: of one that lies still there is none. */
struct ml_rolling {
    struct managed_ledger *ml;
    struct ledger_call create_call, close_call;
    struct timer close_timer, wait_timer;
    struct ml_save list_save;
    unsigned close_tries;
};

struct ml_terminating {
    struct managed_ledger *ml;
    struct list_node asked; /* struct ml_terminate */
    struct ml_save save;
    struct task task;
    bool posted, saving;
};

struct managed_ledger {
    struct list_node in_env;
    struct ml_env *env;
    struct ml_owner *owner;
    char *name;
    enum ml_life life;
    unsigned holds;
    bool terminated; /* no adds; in the node, or soon */
    bool failed;     /* fenced: the owner is told */

    struct ml_conf *own_conf; /* NULL: its policy is the env's */

    struct ml_core core;
    struct ml_node node;
    ManagedLedger__ManagedLedgerInfo *record;
    struct segments segments;
    struct meta_call node_call;
    struct timer node_timer;
    bool dirty; /* the node lacks something that nobody waits for */
    struct ml_save quiet_save;
    bool quiet_saving;
    bool doubted; /* while it was being opened */

    /* meta_reply.ahead: of what was heard last, and as of which the node is ours for sure */
    uint64_t heard_ahead, sure_ahead;
    struct ml_mend *mend; /* NULL: the store never went back */
    struct remembered remembered;

    struct ledger *current; /* written to */
    struct ledger *sealing; /* being closed: the client's, but it can be read */
    struct ledger *created; /* not listed yet */
    uint64_t current_since_us, roll_after_us;
    struct ml_rolling *rolling; /* NULL: nothing was written yet */
    bool wait_told;             /* logged, once a wait */
    enum err wait_why;
    enum ml_wait waits_for; /* ML_WAITS: adds are sent at once */
    struct ml_waits waits;  /* so far, up to waits_us */
    uint64_t waits_us;

    struct list_node answered; /* adds whose done() is due */
    struct task answer_task, fail_task, end_task;
    struct round_end grew;
    bool answering;

    struct ml_terminating *terminating; /* NULL: nobody asked for it */

    int64_t *doomed; /* not in segments any more; deleted when a node without them is stored */
    unsigned n_doomed, doomed_room, doomed_written;
    struct task care_task;
    bool caring;

    struct list_node reads; /* struct read_job */
    struct list_node sources;
    struct task read_task;
    bool reading;
    uint64_t last_read_us;

    struct cursor_env cursor_env;
    struct cursor **cursors;
    unsigned n_cursors, cursors_room;
    unsigned making; /* cursors */

    struct ml_call *end_call;
    enum err end_err;
    bool deleting;
    unsigned end_pending;
};

/* ---- life ----------------------------------------------------------------------------------- */

void ml_hold(struct managed_ledger *m);
void ml_release(struct managed_ledger *m);  /* it may be gone afterwards */
void ml_end_step(struct managed_ledger *m); /* goes on with an ending, if it can; call it last */
struct managed_ledger *ml_new(struct ml_env *e, const char *name, struct ml_owner *owner);
void ml_free(struct managed_ledger *m);               /* nothing holds it */
void ml_fail(struct managed_ledger *m, enum err err); /* another owner was met */

/* ---- the log -------------------------------------------------------------------------------- */

void ml_write_init(struct managed_ledger *m, int64_t last_ledger, uint64_t next_index);
void ml_wait_over(struct managed_ledger *m);   /* if it does: it is not told */
void ml_close_again(struct managed_ledger *m); /* at once, if it was to be tried later */
void ml_bookies_changed(struct managed_ledger *m);

void ml_waits_note(struct managed_ledger *m); /* after whatever may have changed the core's state */
void ml_waits_since(const struct managed_ledger *m, struct ml_waits *then); /* becomes the time */

void ml_node_start(struct managed_ledger *m, int64_t version);
void ml_node_quietly(struct managed_ledger *m); /* saves, and only a fence matters */
void ml_node_doubt(struct managed_ledger *m);   /* is the store's still what we know? */
void ml_node_at_once(struct managed_ledger *m); /* retries no longer */

void ml_mend_heard(struct managed_ledger *m, uint64_t ahead);
/* How long whoever served it all the while is given to write it back, before it is opened here. */
uint64_t ml_mend_grace_us(struct ml_env *e, uint64_t ahead);
bool ml_mend_is_due(const struct managed_ledger *m); /* it went back since the node was ours */
enum kin ml_mend_judge(struct ml_node *n, const struct slice *value, int64_t version);
void ml_mend_node(struct ml_node *n);
void ml_mend_sure(struct ml_node *n, enum err err);
void ml_mend_learn(struct managed_ledger *m); /* of those before, at the beginning */
void ml_mend_remember(struct managed_ledger *m, const struct ledger *l, int64_t closed_ms);

void ml_terminate_step(struct managed_ledger *m);
bool ml_is_terminating(const struct managed_ledger *m); /* somebody waits for that */
static inline const struct ml_conf *ml_conf_of(const struct managed_ledger *m)
{
    return m->own_conf ? m->own_conf : &m->env->conf;
}
void ml_doom(struct managed_ledger *m, int64_t ledger);
void ml_doom_hollow(struct managed_ledger *m); /* closed, empty and last: before a newer one */
void ml_care(struct managed_ledger *m);        /* soon: is anything to be rolled or trimmed? */
void ml_care_full(struct managed_ledger *m);   /* after each add that was sent */

/* ---- reads ---------------------------------------------------------------------------------- */

void ml_read_soon(struct managed_ledger *m);
void ml_read_end(struct managed_ledger *m, enum err err); /* fails all, closes all sources */
/* A source to read `ledger` from, opening or not; NULL: not now (it is being closed). */
struct ml_source *ml_source_for(struct managed_ledger *m, int64_t ledger);
void ml_source_forget(struct managed_ledger *m, int64_t ledger); /* cancels its readers' reads */
void ml_sources_idle(struct managed_ledger *m);
void ml_sources_end(struct managed_ledger *m);
void ml_read_opened(struct managed_ledger *m, struct ml_source *s, enum err err);
void ml_read_lost_source(struct managed_ledger *m, struct ml_source *s);

/* A source that reads from an open handle; `owned`: its close drops the handle. */
struct segment_source *segment_source_of(struct ledger *l, bool owned); /* gives */

/* ---- cursors --------------------------------------------------------------------------------- */

void ml_cursors_init(struct managed_ledger *m);
void ml_cursors_add(struct managed_ledger *m, struct cursor *c);
/* The node is ours for sure; went_back: and the store was put back before. */
void ml_cursors_doubt(struct managed_ledger *m, bool went_back);
struct cursor *ml_cursors_take_last(struct managed_ledger *m);      /* gives, or NULL */
struct position ml_cursors_slowest(const struct managed_ledger *m); /* durable; LATEST: none */

/* ---- the loop's ------------------------------------------------------------------------------ */

void ml_env_delete_ledger(struct ml_env *e, int64_t ledger); /* retried; nobody waits */
void ml_env_leave(struct ml_env *e, struct managed_ledger *m);

#endif
