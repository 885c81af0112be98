/* managed_ledger.h - an endless log made of ledgers: what a topic is stored in.
 *
 *   add -> [waiting] -> current ledger -> confirmed, in order -> done(position)
 *             |             |
 *             |             +-- failed, full or old: closed at its last confirmed entry
 *             +-- resent in order into the next ledger, as soon as E bookies live
 *
 * Every entry gets broker entry metadata in front: the time, and the index of its last
 * message, dense from 0 over the whole topic (recovered from the last entry and from
 * ManagedLedgerInfo.properties).  Stored facts are Pulsar's: pulsar-broker.md B.1 to B.5.
 *
 * Opening fences and recovers the last ledger and CASes the node, so that two brokers that both
 * think they own the topic cannot both write (DESIGN.md 6, Takeover).  The next ledger is
 * created at the first add.
 *
 * Memory:  an ml_add or ml_read is its caller's and stays put until done().
 * Threads: one loop, the env's; done() never comes in the caller's stack.
 * Limits:  conf.pending_bytes of adds wait at most, then ERR_BUSY (they wait without an error
 *          while bookies are missing); the entry cache is bounded for the loop.
 */
#ifndef BROKER_MANAGED_LEDGER_MANAGED_LEDGER_H
#define BROKER_MANAGED_LEDGER_MANAGED_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/position.h"
#include "broker/managed_ledger/segments.h"
#include "broker/managed_ledger/time_search.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/list.h"
#include "common/loop.h"
#include "ledger/client.h"

struct metadata;
struct managed_ledger;
struct cursor;
struct cursor_set;
struct pairs;

struct ml_conf {
    struct quorum quorum;
    int64_t max_entries_per_ledger; /* managedLedgerMaxEntriesPerLedger, 50,000 */
    int64_t max_bytes_per_ledger;   /* managedLedgerMaxSizePerLedgerMbytes, 2,048 MB */
    int64_t min_rollover_ms;        /* managedLedgerMinLedgerRolloverTimeMinutes, 10 */
    int64_t max_rollover_ms;        /* managedLedgerMaxLedgerRolloverTimeMinutes, 240 */
    int64_t retention_ms;           /* 0: none; -1: for ever */
    int64_t retention_bytes;        /* 0: none; -1: no limit */
    size_t pending_bytes;           /* of adds that wait, one managed ledger */
    size_t cache_bytes;             /* entry cache of one loop */
    int64_t cursor_max_entries;     /* managedLedgerCursorMaxEntriesPerLedger, 50,000 */
    int64_t cursor_delta_delay_us;  /* acks without a response gather so long before a write */
};

/* One a loop: what its managed ledgers share. */
struct ml_env;
struct ml_env *ml_env_new(struct loop *home, struct ledger_client *ledgers, struct metadata *meta,
                          const struct ml_conf *conf);    /* gives; conf is copied */
void ml_env_drop(struct ml_env **e);                      /* after all its managed ledgers */
void ml_env_squeeze(struct ml_env *e, unsigned halvings); /* of what the cache may hold; 0: none */

struct ml_figures {
    uint64_t count; /* managed ledgers */
    uint64_t cache_bytes, cache_entries;
    uint64_t cache_hits, cache_misses, cache_evictions; /* so far */
};
void ml_env_figures(const struct ml_env *e, struct ml_figures *out);

/* Whom to tell. */
struct ml_owner {
    void (*grew)(struct ml_owner *o);                 /* max_readable has moved */
    void (*failed)(struct ml_owner *o, enum err err); /* FENCED: another broker has it; for good */
};

struct ml_call {
    void (*done)(struct ml_call *c, enum err err, struct managed_ledger *m); /* gives m on open */
    void *private;
};

/* `name` is "t/ns/persistent/encoded" (managed_ledger_name).  create: make it if it is absent, else
 * ERR_TOPIC_NOT_FOUND.  Durable cursors are loaded before done(). */
void managed_ledger_open(struct ml_env *e, const char *name, bool create, struct ml_owner *owner,
                         struct ml_call *call);
/* Waits for what is under way, seals the current ledger, writes cursors in Pulsar's own form;
 * m is gone at done(). */
void managed_ledger_close(struct managed_ledger **m, struct ml_call *call);
/* Cursors, ledgers, then the node; m is gone at done(). */
void managed_ledger_delete(struct managed_ledger **m, struct ml_call *call);

/* What keeps adds from being sent: bookies are missing, the ledger before must be closed, the
 * next one created, the node must list it. */
enum ml_wait { ML_WAIT_BOOKIES, ML_WAIT_CLOSE, ML_WAIT_CREATE, ML_WAIT_NODE, ML_WAITS };
struct ml_waits {
    uint32_t ms[ML_WAITS];
};

/* What may differ from one to the other, and change while it serves: the next ledger and the next
 * trimming go by it.  At first it is what the conf says. */
struct ml_policy {
    int64_t retention_ms, retention_bytes; /* as in ml_conf */
    struct quorum quorum;
};
void managed_ledger_configure(struct managed_ledger *m, const struct ml_policy *p);

/* No adds from now on (ERR_TERMINATED); those that were taken are stored, the last ledger is
 * sealed, and the node says where the end is; then done().  Again is fine. */
struct ml_terminate {
    void (*done)(struct ml_terminate *t, enum err err, struct position last);
    struct list_node node; /* private */
};
void managed_ledger_terminate(struct managed_ledger *m, struct ml_terminate *t);
bool managed_ledger_is_terminated(const struct managed_ledger *m);
bool managed_ledger_has_ended(const struct managed_ledger *m); /* it is, and done() was called */

struct ml_add {
    struct chain payload; /* from 0x0e01; at most CHAIN_MAX - 1 slices; borrowed until done() */
    uint32_t front;       /* bytes before a payload of one slice that nobody else reads any more */
    uint32_t crc;         /* CRC32C of the payload */
    uint32_t messages;    /* in the entry, at least 1 */
    void (*done)(struct ml_add *a, enum err err, struct position at, uint64_t index);
    struct list_node node; /* private, as the rest */
    struct managed_ledger *ml;
    uint64_t index;
    size_t bytes;
    struct position at;
    enum err result;
    /* How long it took, for whoever asks why: taken in, done; waited meanwhile; with a ledger
     * that failed it. */
    uint64_t added_us, done_us;
    struct ml_waits waits;
    uint32_t lost_ms;
    struct ledger_append append;
};
/* done() in order; an error only when the managed ledger has failed for good or was closed. */
MUST_CHECK enum err managed_ledger_add(struct managed_ledger *m, struct ml_add *a);

struct ml_entry {
    struct position at;
    struct slice payload; /* with its broker entry metadata in front */
};

struct ml_read {
    struct position from; /* the first to look at: normalised with segments_next() */
    unsigned max_entries;
    size_t max_bytes;              /* at least one entry is read whatever its size; 0: no limit */
    const struct cursor *skip;     /* what it has acknowledged is left out; NULL: nothing is */
    const struct cursor_set *only; /* nothing else; may change until done(); NULL: everything */
    bool cached_only;              /* after the first entry, it ends where the cache does */
    /* entries are the callee's (gives; drop each payload); n is 0 when nothing is readable there
     * yet; `next` is where to go on.  An error: what was read before it was delivered. */
    void (*done)(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                 struct position next);
    struct list_node node; /* private, as the next */
    void *private;
};
void managed_ledger_read(struct managed_ledger *m, struct ml_read *r);
bool managed_ledger_has_in_memory(struct managed_ledger *m,
                                  struct ml_read *r); /* what it begins with, or there is none */
void managed_ledger_read_cancel(struct managed_ledger *m,
                                struct ml_read *r); /* no callback follows */

/* Where a time is: by the times that the publishers gave their messages. */
struct ml_find {
    int64_t ms;
    /* The last entry published before `ms`, or the place before the first one. */
    void (*done)(struct ml_find *f, enum err err, struct position before);
    struct managed_ledger *ml; /* private, as the next */
    struct time_search search;
    struct ml_read read;
};
void managed_ledger_find(struct managed_ledger *m, struct ml_find *f);

/* Up to where consumers may read: today the last confirmed entry. */
struct position managed_ledger_max_readable(const struct managed_ledger *m);
const struct segments *managed_ledger_segments(const struct managed_ledger *m); /* borrows */
uint64_t managed_ledger_next_index(const struct managed_ledger *m);
const char *managed_ledger_name_of(const struct managed_ledger *m);
size_t managed_ledger_pending_bytes(const struct managed_ledger *m);
/* Writes the node once more.  ERR_OK: whoever opened it after us, or will, finds what was durable
 * before this was asked; ERR_FENCED: perhaps not, and we do not own it any more. */
void managed_ledger_prove(struct managed_ledger *m, struct ml_call *call);
/* ManagedLedgerInfo.properties of ours and of others: persisted before done(). */
void managed_ledger_set_property(struct managed_ledger *m, const char *key, const char *value,
                                 struct ml_call *call);
const char *managed_ledger_property(const struct managed_ledger *m, const char *key); /* or NULL */

/* Those that users gave it; managed_ledger_property() finds every one. */
void managed_ledger_properties(const struct managed_ledger *m,
                               void (*each)(void *ctx, const char *key, const char *value),
                               void *ctx);
const char *managed_ledger_state(const struct managed_ledger *m); /* in Pulsar's words */
int64_t managed_ledger_version(const struct managed_ledger *m);   /* of its node */

/* ---- cursors (cursor.h says what one does) ------------------------------------------------- */

struct ml_cursor_call {
    void (*done)(struct ml_cursor_call *c, enum err err, struct cursor *cursor); /* borrows */
    const struct pairs *properties; /* of one that is made, or NULL; borrowed likewise */
    void *private;
};
struct cursor *managed_ledger_cursor(const struct managed_ledger *m,
                                     const char *name); /* or NULL */
unsigned managed_ledger_n_cursors(const struct managed_ledger *m);
/* Calls each() for every durable cursor. */
void managed_ledger_cursors(const struct managed_ledger *m,
                            void (*each)(void *ctx, struct cursor *c), void *ctx);
/* Durable before done(); at the given mark-delete position, normalised (POSITION_EARLIEST,
 * POSITION_LATEST).  ERR_EXISTS. */
void managed_ledger_cursor_create(struct managed_ledger *m, const char *name,
                                  struct position mark_delete, struct ml_cursor_call *call);
void managed_ledger_cursor_delete(struct managed_ledger *m, const char *name,
                                  struct ml_cursor_call *call);
/* One in memory: nothing is kept for it, it goes on at what is there.  Not in any of the lists
 * above.  Gives; end it with cursor_abandon() before the managed ledger is closed. */
struct cursor *managed_ledger_cursor_passing(struct managed_ledger *m, const char *name,
                                             struct position mark_delete);

#endif
