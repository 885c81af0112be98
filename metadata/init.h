/* init.h - what a new cluster needs before anything else can start, written once.
 *
 * Idempotent: every key is created only if it is absent.  The instance id, the cluster's
 * record, tenants `public` and `pulsar`, namespaces `public/default` and `pulsar/system`,
 * the ledger-id range of ours claimed in BookKeeper's idgen-long (DESIGN.md 8).
 *
 * Threads: not a loop's; it waits.
 */
#ifndef METADATA_INIT_H
#define METADATA_INIT_H

#include "metadata/metadata.h"

struct json_object;

struct cluster_urls {
    const char *web_service, *web_service_tls, *broker_service, *broker_service_tls;
};

MUST_CHECK enum err cluster_init(struct metadata *m, const char *cluster,
                                 const struct cluster_urls *urls);
/* Was it?  Gives the instance id; ERR_NOT_READY with the log event "cluster.not_initialized"
 * that says what to run. */
MUST_CHECK enum err cluster_check(struct metadata *m, const char *cluster, char **instance_id);

/* {"boundaries":[...],"numBundles":n}: equal shares of the hash of names.  Gives. */
struct json_object *cluster_bundles(uint32_t n);

#endif
