/* paths.h - the only place that knows where a fact is kept.
 *
 * Pulsar's and BookKeeper's layouts (bookkeeper.md C.1, C.2; pulsar-broker.md B.1, D.2).
 * Functions that take `into` write at most META_KEY_MAX bytes with the NUL and say
 * ERR_TOO_BIG when that is not enough.
 */
#ifndef METADATA_PATHS_H
#define METADATA_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "metadata/metadata.h"

#define PATH_LEDGERS          "/ledgers"
#define PATH_LAYOUT           "/ledgers/LAYOUT"
#define PATH_INSTANCE_ID      "/ledgers/INSTANCEID"
#define PATH_BOOKIES          "/ledgers/available/"
#define PATH_BOOKIES_READONLY "/ledgers/available/readonly/"
#define PATH_COOKIES          "/ledgers/cookies/"
#define PATH_BOOKIE_RACKS     "/bookies" /* one value for all: records.h, bookie_racks_read() */
#define PATH_UNDERREPLICATED  "/ledgers/underreplication/ledgers/" /* path_mark() */
#define PATH_MARK_LOCKS       "/ledgers/underreplication/locks/"
#define PATH_MARKS_LAYOUT     "/ledgers/underreplication/LAYOUT"
#define PATH_REPAIR_DISABLED  "/ledgers/underreplication/disable" /* its existence says so */
#define PATH_REPAIR_DELAY     "/ledgers/underreplication/lostBookieRecoveryDelay" /* seconds */
#define PATH_SCRUBBED         "/ledgers/underreplication/checkallledgersctime"
#define PATH_AUDITOR          "/ledgers/underreplication/leader" /* held by the auditor */
#define PATH_LEAVING          "/lgm/leaving/" /* <bookie id>: it is being emptied for good */
#define LEAVING_COOKIE        "delete-cookie" /* as that key's value: then its cookie goes, too */
#define PATH_AUDIT_ASKED      "/lgm/audit"    /* written: the auditor is to look now */
#define PATH_GC_BEACONS       "/lgm/gc/"      /* <bookie id>: what it has put there last */
#define PATH_IDGEN_LONG       "/ledgers/idgen-long/"
/* Its numbers are whole ledger ids: it starts at our bucket << 32 (ids.h); in a store that
 * nobody initialized, at 0. */
#define PATH_LEDGER_COUNTER   "/lgm/counters/ledger-id"
#define PATH_LEDGER_BUCKET    "/lgm/ledger-id-bucket"
#define PATH_PRODUCER_COUNTER "/counters/producer-name"
#define PATH_CLUSTERS         "/admin/clusters/"
#define PATH_POLICIES         "/admin/policies/"
#define PATH_LOCAL_POLICIES   "/admin/local-policies/"
#define PATH_PARTITIONED      "/admin/partitioned-topics/"
#define PATH_BROKERS          "/lgm/brokers/"         /* <id>: held by a broker that is alive */
#define PATH_LOAD_BROKERS     "/loadbalance/brokers/" /* the same where Pulsar's tools look */
#define PATH_OWNED            "/lgm/own/" /* <tenant>/<namespace>/<range>: who serves it */

/* Pulsar's topic name in its parts; strings live in the struct's owner's memory. */
struct topic_name {
    char *full; /* "persistent://t/n/local" */
    bool persistent;
    char *tenant, *ns, *local; /* local: without "-partition-N" cut off */
    int32_t partition;         /* of local's "-partition-N"; -1: none */
    char *base;                /* full without "-partition-N" */
};
/* Accepts "local", "t/n/local" and full names.  ERR_INVALID_NAME; gives. */
MUST_CHECK enum err topic_name_parse(const char *text, struct topic_name *out);
void topic_name_drop(struct topic_name *n);

MUST_CHECK enum err path_ledger(int64_t id, char into[META_KEY_MAX]);
/* Back from a key under /ledgers: ERR_NOT_FOUND for one that is no ledger. */
MUST_CHECK enum err path_ledger_id(const char *key, int64_t *id);
/* The mark of a ledger that lacks copies, and the lock of who repairs it (bookkeeper.md C.7). */
MUST_CHECK enum err path_mark(int64_t id, char into[META_KEY_MAX]);
MUST_CHECK enum err path_mark_lock(int64_t id, char into[META_KEY_MAX]);
MUST_CHECK enum err path_mark_id(const char *key, int64_t *id); /* ERR_NOT_FOUND: no mark's key */
MUST_CHECK enum err path_leaving(const char *bookie_id, char into[META_KEY_MAX]);
MUST_CHECK enum err path_gc_beacon(const char *bookie_id, char into[META_KEY_MAX]);
MUST_CHECK enum err path_bookie(const char *bookie_id, bool read_only, char into[META_KEY_MAX]);
MUST_CHECK enum err path_cookie(const char *bookie_id, char into[META_KEY_MAX]);
/* /managed-ledgers/<t>/<ns>/<domain>/<encoded local>; and below it the encoded cursor. */
MUST_CHECK enum err path_managed_ledger(const char *ml_name, char into[META_KEY_MAX]);
MUST_CHECK enum err path_cursor(const char *ml_name, const char *cursor, char into[META_KEY_MAX]);
MUST_CHECK enum err path_namespace(const char *tenant, const char *ns, char into[META_KEY_MAX]);
MUST_CHECK enum err path_local_policies(const char *tenant, const char *ns,
                                        char into[META_KEY_MAX]);
MUST_CHECK enum err path_tenant(const char *tenant, char into[META_KEY_MAX]);
MUST_CHECK enum err path_cluster(const char *cluster, char into[META_KEY_MAX]);
MUST_CHECK enum err path_partitioned(const struct topic_name *base, char into[META_KEY_MAX]);
/* What the keys of a namespace's topics, and of its partitioned ones, begin with: an encoded name
 * follows, and below a topic its cursors. */
MUST_CHECK enum err path_topics(const char *tenant, const char *ns, char into[META_KEY_MAX]);
MUST_CHECK enum err path_partitioned_topics(const char *tenant, const char *ns,
                                            char into[META_KEY_MAX]);
MUST_CHECK enum err path_fleeting_partitioned_topics(const char *tenant, const char *ns,
                                                     char into[META_KEY_MAX]); /* non-persistent */
/* "t/ns/persistent/encoded": what Pulsar calls the managed ledger's name.  Gives. */
char *managed_ledger_name(const struct topic_name *n);

/* Java's URLEncoder, UTF-8: space is '+', A-Z a-z 0-9 . - * _ stay, the rest is %XX.  Gives. */
char *name_encode(const char *s);
MUST_CHECK enum err name_decode(const char *s, char **out); /* gives */

#endif
