/* etcd.h - the metadata store of a cluster: etcd, version 3, over gRPC.
 *
 *   caller's loop --loop_post--> [the store's loop] turns -> tries -> a node of etcd
 *                 <--loop_post-- answers, watch events
 *
 * Keys and versions are those of Pulsar's store on etcd: a key is its path, the version shown
 * is etcd's less one.  Nodes are used in turn when one does not answer; a write whose try had
 * no answer is tried again in a form that can be told from what others did, so that it
 * happens once; where that cannot be told the answer is UNKNOWN_STATE.
 *
 * A held key lives with the session: one lease, kept alive each third of its time.  When etcd
 * has let the lease go, a new one is taken and the keys are put again ("metadata.session_lost");
 * one that somebody else holds by then is left to them: a watch on the key tells.
 *
 * An event may arrive after the answer to a list that shows it already: compare revisions
 * where that matters.
 *
 * Threads: as metadata.h says; meta_close() from none of the loops that wait for answers.
 * Limits:  ETCD_CALLS_MAX calls and ETCD_BYTES_MAX of their values wait at most, then BUSY.
 *          A key and its value must fit one request of etcd (1.5 MiB unless set otherwise).
 */
#ifndef METADATA_ETCD_H
#define METADATA_ETCD_H

#include <stdint.h>

#include "common/err.h"

struct metadata;

enum {
    ETCD_CALLS_MAX = 65536,
    ETCD_BYTES_MAX = 64 * 1024 * 1024,
    ETCD_NODES_MAX = 16,
};

struct meta_etcd_conf {
    const char *url; /* etcd:http://h1:2379,http://h2:2379[/root] or etcd://h1:2379,h2:2379 */
    const char *user, *password;      /* NULL: none */
    const char *trust_file;           /* https: NULL for the system's */
    const char *cert_file, *key_file; /* the client's; NULL: none */
    uint64_t session_timeout_us;      /* of held keys, in whole seconds; 0: 10 s */
    uint64_t try_timeout_us;          /* the first try's, growing; 0: 100 ms */
    uint64_t operation_timeout_us;    /* then NOT_READY or UNKNOWN_STATE; 0: 30 s */
};

/* ERR_BAD_CONFIG with a log event.  Does not wait for etcd: calls do. */
MUST_CHECK enum err meta_etcd_open(struct metadata **out, const struct meta_etcd_conf *conf);

#endif
