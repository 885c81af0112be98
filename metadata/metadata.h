/* metadata.h - small facts the whole cluster agrees on.
 *
 * Keys with versions, compare-and-set, watches, keys that vanish with their owner, and
 * counters handed out in blocks.  One interface, several stores: memory (tests and
 * simulation), rocksdb (standalone), etcd (clusters).
 *
 *   caller's loop --call--> store --post--> call->done() on call->home
 *
 * Versions are those of ZooKeeper and of Pulsar's stores: a new key has version 0, every
 * put adds one.  A revision counts the store's changes and never goes back; when the store itself
 * does (restored from an older state) every watch is told UNSURE.
 *
 * Memory:  a call is the caller's and must stay put until done(); what a reply points to
 *          is borrowed for the length of done() (slice_share() a value to keep it).
 * Threads: calls from any loop's thread; done() and changed() on `home`, never in the
 *          caller's stack.
 * Limits:  keys of at most META_KEY_MAX bytes, values of META_VALUE_MAX (ERR_TOO_BIG).
 */
#ifndef METADATA_METADATA_H
#define METADATA_METADATA_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/list.h"
#include "common/loop.h"
#include "common/metric.h"

struct metadata;

enum { META_KEY_MAX = 4096, META_VALUE_MAX = 1024 * 1024 };
enum { META_ABSENT = -1 /* expected: must not exist */, META_ANY = -2 };

struct meta_item {
    const char *key;
    struct slice value; /* empty when only keys were asked for */
    int64_t version;
};

struct meta_reply {
    enum err err; /* NOT_FOUND; BAD_VERSION: someone was faster, read again; NOT_READY:
                     the store is away; UNKNOWN_STATE: it may or may not have happened */
    uint64_t revision;
    uint64_t ahead;                /* of what the store counts: it went back in this life */
    uint64_t store;                /* get, range: etcd's cluster id; 0: there is but one store */
    int64_t version;               /* of the key, after a get or put */
    struct slice value;            /* get */
    const struct meta_item *items; /* range, in key order */
    size_t count;
    bool more;     /* range: limit reached; go on after the last key */
    int64_t first; /* counter: the first number of the block */
};

struct meta_call {
    struct loop *home;
    void (*done)(struct meta_call *c, const struct meta_reply *r);
    struct meta_times *times; /* private, as the next; NULL: not measured */
    uint64_t began_us;
};

/* One step of a transaction: all steps happen or none (BAD_VERSION).  A key is changed by one
 * step at most (NOT_ALLOWED); with META_ANY a key that is absent already is removed. */
struct meta_op {
    enum { META_PUT, META_REMOVE, META_CHECK } kind;
    const char *key;
    struct slice value; /* PUT; shared by the store */
    int64_t expected;
};
enum { META_OPS_MAX = 64 };

struct meta_change {
    enum {
        META_CHANGED_PUT,
        META_CHANGED_REMOVED,
        META_CHANGED_UNSURE /* relist the prefix, which is `key` */
    } kind;
    const char *key;
    struct slice value;
    int64_t version;
    uint64_t revision;
};

struct meta_watch {
    struct loop *home;
    void (*changed)(struct meta_watch *w, const struct meta_change *c);
    struct list_node node; /* private, as the next two */
    char *prefix;
    unsigned posted;
};

struct meta_ops {
    void (*get)(struct metadata *m, const char *key, struct meta_call *c);
    void (*put)(struct metadata *m, const char *key, struct slice value, int64_t expected,
                struct meta_call *c);
    void (*remove)(struct metadata *m, const char *key, int64_t expected, struct meta_call *c);
    void (*range)(struct metadata *m, const char *prefix, const char *after, size_t limit,
                  bool keys_only, struct meta_call *c);
    void (*txn)(struct metadata *m, const struct meta_op *ops, size_t n, struct meta_call *c);
    void (*hold)(struct metadata *m, const char *key, struct slice value, struct meta_call *c);
    void (*release)(struct metadata *m, const char *key, struct meta_call *c);
    void (*counter)(struct metadata *m, const char *key, int64_t n, struct meta_call *c);
    void (*watch)(struct metadata *m, const char *prefix, struct meta_watch *w);
    void (*unwatch)(struct metadata *m, struct meta_watch *w);
    void (*close)(struct metadata *m);
};

/* How long operations of a kind took. */
struct meta_times {
    struct histogram good, failed;
};
enum meta_kind { META_READS, META_WRITES, META_REMOVES, META_KINDS };

/* First member of every store. */
struct metadata {
    const struct meta_ops *ops;
    struct meta_times times[META_KINDS];
};

/* Keys are copied.  Values are taken. */
void meta_get(struct metadata *m, const char *key, struct meta_call *c);
void meta_put(struct metadata *m, const char *key, struct slice value, int64_t expected,
              struct meta_call *c); /* takes value */
void meta_remove(struct metadata *m, const char *key, int64_t expected, struct meta_call *c);
/* Keys that begin with prefix and come after `after` (NULL: from the first), at most `limit`. */
void meta_range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                bool keys_only, struct meta_call *c);
void meta_txn(struct metadata *m, const struct meta_op *ops, size_t n,
              struct meta_call *c); /* takes the values */
/* The key lives while this process's session does; ERR_EXISTS when another session holds it. */
void meta_hold(struct metadata *m, const char *key, struct slice value,
               struct meta_call *c); /* takes value */
void meta_release(struct metadata *m, const char *key, struct meta_call *c);
/* Reserves n numbers of the counter at key, durably: reply.first .. first+n-1. */
void meta_counter(struct metadata *m, const char *key, int64_t n, struct meta_call *c);
/* changed() for every change under prefix from now on, in revision order; list afterwards to
 * miss nothing.  After meta_unwatch() returns (on w->home) changed() is not called again. */
void meta_watch(struct metadata *m, const char *prefix, struct meta_watch *w);
void meta_unwatch(struct metadata *m, struct meta_watch *w);
void meta_close(struct metadata **m); /* after every call is done */
/* pulsar_metadata_store_ops_latency_ms; labels as `cluster="c"`. */
void meta_render_times(const struct metadata *m, struct text *t, const char *labels);

/* For start-up code outside loops: the call is made and waited for.  Gives *value.  Not from a
 * loop's thread. */
MUST_CHECK enum err meta_get_wait(struct metadata *m, const char *key, struct slice *value,
                                  int64_t *version);
MUST_CHECK enum err meta_put_wait(struct metadata *m, const char *key, struct slice value,
                                  int64_t expected);
/* Every item under prefix, page by page; each() in the caller's stack, and not after it failed. */
MUST_CHECK enum err meta_each_wait(struct metadata *m, const char *prefix,
                                   enum err (*each)(void *ctx, const struct meta_item *item),
                                   void *ctx);

MUST_CHECK enum err meta_memory_open(struct metadata **out);
/* ERR_EXISTS when another process has it open; each answer is durable before it is given. */
MUST_CHECK enum err meta_rocks_open(struct metadata **out, const char *dir);

#endif
