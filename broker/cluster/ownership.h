/* ownership.h - who owns a topic: asked before anything is done for one.
 *
 *   ownership_watch -> ownership_start -> finds, moves, lost() ... -> ownership_stop -> close
 *
 * Standalone: this broker owns all.  In a cluster the answer comes from what the brokers
 * agreed on (claimed.h).  The answer only says who should try: fencing and the
 * compare-and-set of the managed ledger decide who wins (DESIGN.md 6, Takeover).
 *
 * What is owned is a bundle, "tenant/namespace/0x40000000_0x80000000": many topics
 * (bundle_has_topic() in ranges.h says which).  When it goes elsewhere, lost() says so on
 * every watch's loop.  An answer "mine" that was given before the loss comes before lost()
 * on the same loop, so that who notes what it loads, and closes it when lost() comes, never
 * keeps a topic that is not his.
 *
 * Memory:  a call is the caller's and stays put until done(); urls are borrowed for it.
 * Threads: find and move from any loop; done() on call->home, never in the caller's stack;
 *          the rest from a thread that is no loop's, before and after all questions.
 */
#ifndef BROKER_CLUSTER_OWNERSHIP_H
#define BROKER_CLUSTER_OWNERSHIP_H

#include <stdbool.h>

#include "common/err.h"
#include "common/list.h"
#include "common/loop.h"

struct metadata;
struct ownership;

/* Where a broker is reached; "" for what it does not offer. */
struct broker_urls {
    const char *service, *service_tls;
    const char *web, *web_tls;
};
/* host:port of its HTTP: what a broker is called unless it was given an id. */
const char *broker_urls_host(const struct broker_urls *u);

struct ownership_call {
    struct loop *home;
    void (*done)(struct ownership_call *c, enum err err, bool mine,
                 const struct broker_urls *where);
    struct task task; /* private, as the next */
    struct ownership *ownership;
};

struct ownership_move {
    struct loop *home;
    /* ERR_NOT_FOUND: the namespace has no such range; ERR_INVALID_NAME: no such broker lives. */
    void (*done)(struct ownership_move *m, enum err err);
    struct task task; /* private */
};

struct ownership_watch {
    struct loop *home;
    void (*lost)(struct ownership_watch *w, const char *bundle);
    struct list_node node; /* private */
};

struct ownership_ops {
    void (*start)(struct ownership *o, const char *id, void (*done)(void *ctx, enum err err),
                  void *ctx);
    void (*stop)(struct ownership *o, void (*done)(void *ctx), void *ctx);
    void (*find)(struct ownership *o, const char *topic, struct ownership_call *c);
    void (*move)(struct ownership *o, const char *bundle, const char *to, struct ownership_move *m);
    void (*close)(struct ownership *o);
};

/* First member of every kind. */
struct ownership {
    const struct ownership_ops *ops;
    struct list_node watches;
};

/* `topic` is a full name; copied if it must outlive the call. */
void ownership_find(struct ownership *o, const char *topic, struct ownership_call *c);
/* To the broker of that id; "" gives it to whoever is asked for it next. */
void ownership_move(struct ownership *o, const char *bundle, const char *to,
                    struct ownership_move *m);

/* Before the start; borrowed until the close. */
void ownership_watch(struct ownership *o, struct ownership_watch *w);
/* Joins the cluster under this id; done() on some loop, once it may be asked. */
void ownership_start(struct ownership *o, const char *id, void (*done)(void *ctx, enum err err),
                     void *ctx);
/* Gives up all that is mine; from then on every find is refused.  When done() comes, on some
 * loop, each lost() was posted. */
void ownership_stop(struct ownership *o, void (*done)(void *ctx), void *ctx);
void ownership_close(struct ownership **o);

/* Gives; both borrow self for their life: its urls may be filled in until the start. */
struct ownership *ownership_standalone(const struct broker_urls *self);
struct ownership *ownership_claimed(struct loop *home, struct metadata *meta,
                                    const struct broker_urls *self);

/* ---- for the kinds ---- */
void ownership_tell_lost(struct ownership *o, const char *bundle);

#endif
