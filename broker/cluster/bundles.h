/* bundles.h - the ranges of namespaces, read once and kept while nobody changes them.
 *
 *   bundles_ask -> kept? -> answer
 *        \-> /admin/local-policies/<t>/<ns>  -> no bundles there? -> /admin/policies/<t>/<ns>
 *              -> none there either, or no such namespace: four equal ranges
 *
 * A change seen by the watches makes an entry old: it is read again when next asked for.
 * An old one still answers while the store is away.
 *
 * Memory:  an ask is the caller's until done(); tenant and ns are copied, ranges borrowed.
 * Threads: everything on `home`.
 * Limits:  BUNDLES_KEPT namespaces; past that one that nobody waits for is forgotten, and
 *          without such a one ERR_BUSY.
 */
#ifndef BROKER_CLUSTER_BUNDLES_H
#define BROKER_CLUSTER_BUNDLES_H

#include "broker/cluster/ranges.h"
#include "common/list.h"
#include "metadata/metadata.h"

enum { BUNDLES_KEPT = 16384 };

struct bundles;

struct bundles_ask {
    /* May come in the caller's stack. */
    void (*done)(struct bundles_ask *a, enum err err, const struct ranges *r);
    struct list_node node; /* private */
};

struct bundles *bundles_new(struct loop *home, struct metadata *meta); /* gives */
void bundles_ask(struct bundles *b, const char *tenant, const char *ns, struct bundles_ask *a);
/* After every ask is done. */
void bundles_drop(struct bundles **b);

#endif
