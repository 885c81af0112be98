/* registry.h - which brokers are alive, and that this one is.
 *
 *   registry_join -> hold /lgm/brokers/<id> -> in the list? -> joined(ERR_OK)
 *                                                  |
 *        held again  <-----  lost(): the session ended, or somebody removed it
 *
 * The same value is held where Pulsar's tools look for brokers; nothing waits for that.
 * A registration under this id that is found when joining is an earlier process's, which may
 * be dead for less than its session's time: it is removed.  Later another one is left alone
 * until it goes.
 *
 * Memory:  urls are copied; what registry_find() says is borrowed until the next event.
 * Threads: everything on `home`.
 */
#ifndef BROKER_CLUSTER_REGISTRY_H
#define BROKER_CLUSTER_REGISTRY_H

#include "broker/cluster/follower.h"
#include "broker/cluster/ownership.h"
#include "broker/cluster/records.h"

enum { NONCE_TEXT = 33 };

struct registered {
    UT_hash_handle hh;
    char *id;
    int64_t version;
    struct broker_record record;
};

enum registry_state { REGISTRY_OUT, REGISTRY_JOINING, REGISTRY_IN, REGISTRY_LEAVING };

struct registry {
    struct loop *home;
    struct metadata *meta;
    char *id;
    char nonce[NONCE_TEXT];
    void (*joined)(void *ctx, enum err err); /* once; may come in the caller's stack */
    void (*left)(void *ctx);                 /* likewise */
    void *ctx;

    enum registry_state state; /* private, as the rest */
    struct follower follower;
    struct registered *by_id;
    struct slice value;
    char *key, *load_key;
    bool listed, holding;
    unsigned tries;
    struct meta_call hold, hold_load; /* or release */
    bool holding_load;
    unsigned leaving; /* keys that are being released */
    struct timer again;
};

/* Makes the nonce; the four fields above it are set. */
void registry_init(struct registry *r);
void registry_join(struct registry *r, const char *id, const struct broker_urls *urls);
void registry_leave(struct registry *r); /* gives the registration back; then left() */
/* What an answer said of a registration; value NULL: there is none. */
void registry_learn(struct registry *r, const char *id, const struct slice *value, int64_t version,
                    uint64_t revision);
const struct registered *registry_find(const struct registry *r, const char *id);

#endif
