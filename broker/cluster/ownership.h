/* ownership.h - who owns a topic: asked before anything is done for one.
 *
 * Standalone: this broker owns all.  In a cluster the answer comes from what the brokers
 * agreed on.  The answer only says who should try: fencing and the compare-and-set of the
 * managed ledger decide who wins (DESIGN.md 6, Takeover).
 *
 * Memory:  a call is the caller's and stays put until done(); urls are borrowed for it.
 * Threads: from any loop; done() on call->home, never in the caller's stack.
 */
#ifndef BROKER_CLUSTER_OWNERSHIP_H
#define BROKER_CLUSTER_OWNERSHIP_H

#include <stdbool.h>

#include "common/err.h"
#include "common/loop.h"

struct ownership;

/* Where a broker is reached; "" for what it does not offer. */
struct broker_urls {
    const char *service, *service_tls;
    const char *web, *web_tls;
};

struct ownership_call {
    struct loop *home;
    void (*done)(struct ownership_call *c, enum err err, bool mine,
                 const struct broker_urls *where);
    struct task task; /* private, as the next */
    struct ownership *ownership;
};

struct ownership_ops {
    void (*find)(struct ownership *o, const char *topic, struct ownership_call *c);
    void (*close)(struct ownership *o);
};

/* First member of every kind. */
struct ownership {
    const struct ownership_ops *ops;
};

/* `topic` is a full name; copied if it must outlive the call. */
void ownership_find(struct ownership *o, const char *topic, struct ownership_call *c);
void ownership_close(struct ownership **o);

/* Gives; borrows self for its life: its urls may be filled in until the first question. */
struct ownership *ownership_standalone(const struct broker_urls *self);

#endif
