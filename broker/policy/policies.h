/* policies.h - a loop's cached view of namespaces and partitioned topics.
 *
 *   ask --known?--> answer
 *         | no
 *         +--> metadata, others who ask meanwhile join --> answer, and kept
 *   watch: a change --> forgotten, listener told; UNSURE --> all of it
 *
 * That something is absent is not kept: whoever makes it is believed at once.  What changes
 * while it is being read is answered with and not kept.
 *
 * Memory:  an ask is the caller's and stays put until done().
 * Threads: its loop; done() never in the caller's stack.
 * Limits:  POLICIES_MAX are kept; the one used longest ago goes.
 */
#ifndef BROKER_POLICY_POLICIES_H
#define BROKER_POLICY_POLICIES_H

#include "broker/policy/ns_policies.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"

enum { POLICIES_MAX = 10000 };

struct policies;

struct policies_fact {
    bool there;
    struct ns_policies ns;
    struct partitioned_topic topic;
};

struct policies_ask {
    void (*done)(struct policies_ask *a, enum err err, const struct policies_fact *f);
    struct list_node node; /* private, as the rest */
    struct task task;
    struct policies_fact fact;
};

/* `ns` "tenant/namespace"; NULL: any of them may have changed. */
typedef void policies_changed_fn(void *ctx, const char *ns);

struct policies *policies_new(struct loop *home, struct metadata *meta); /* gives */
void policies_drop(struct policies **p); /* nothing is being asked */
struct metadata *policies_metadata(const struct policies *p);
void policies_listen(struct policies *p, policies_changed_fn *changed, void *ctx); /* one */

/* ERR_INVALID_NAME comes through done() too. */
void policies_namespace(struct policies *p, const char *tenant, const char *ns,
                        struct policies_ask *a);
void policies_partitioned(struct policies *p, const struct topic_name *name,
                          struct policies_ask *a);
/* The key has just been written by this process: it is not waited for the watch. */
void policies_forget(struct policies *p, const char *key);

size_t policies_kept(const struct policies *p);

#endif
