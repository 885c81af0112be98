/* affinity.h - which groups of bookies the ledgers of a namespace's topics are kept in: as its
 * local policies say.
 *
 *   new ledger -> its managed ledger's namespace -> /admin/local-policies/<t>/<ns> -> groups
 *
 * Read for each new ledger and not kept: ledgers are rare, and the next one goes by what was set
 * before it.  Strict: a namespace that was told none keeps out of all groups; system topics never.
 *
 * Threads: the loop's.
 */
#ifndef BROKER_POLICY_AFFINITY_H
#define BROKER_POLICY_AFFINITY_H

#include "ledger/client.h"

struct affinity;

struct affinity *affinity_new(struct loop *home, struct metadata *meta, bool strict); /* gives */
void affinity_drop(struct affinity **a); /* what is being asked is still answered */
struct ledger_placer *affinity_placer(struct affinity *a);

/* Of LocalPolicies' JSON: PLACEMENT_TAG's value, empty when it says nothing of bookies; gives.
 * ERR_MALFORMED: no JSON object. */
MUST_CHECK enum err affinity_rule(struct view json, struct slice *out);

#endif
