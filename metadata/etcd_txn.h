/* etcd_txn.h - one guarded transaction as etcd takes it, put together piece by piece.
 *
 *   etcd_txn_begin -> etcd_txn_if ... etcd_txn_put, etcd_txn_delete, etcd_txn_read ... ->
 * etcd_txn_end
 *
 * Memory:  keys and values are borrowed until etcd_txn_end().
 * Limits:  ETCD_TXN_MAX conditions, and as many steps in each branch: etcd's own limit.
 */
#ifndef METADATA_ETCD_TXN_H
#define METADATA_ETCD_TXN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buf.h"
#include "proto/etcd.pb-c.h"

enum { ETCD_TXN_MAX = 128 };

struct etcd_steps {
    Etcd__RequestOp *at[ETCD_TXN_MAX];
    size_t n;
};

struct etcd_txn {
    struct arena *arena;
    Etcd__Compare *conditions[ETCD_TXN_MAX];
    size_t n;
    struct etcd_steps then, otherwise;
};

enum etcd_lease_rule { ETCD_KEEP_LEASE = -1 /* the key's own; it must exist */, ETCD_NO_LEASE };

void etcd_txn_begin(struct etcd_txn *t);
void etcd_txn_if_version(struct etcd_txn *t, const char *key, int64_t shown);
void etcd_txn_if_absent(struct etcd_txn *t, const char *key);
void etcd_txn_if_present(struct etcd_txn *t, const char *key);
void etcd_txn_if_lease(struct etcd_txn *t, const char *key, int64_t lease);
/* Not changed after that revision of the store. */
void etcd_txn_if_unchanged(struct etcd_txn *t, const char *key, int64_t since);
void etcd_txn_put(struct etcd_txn *t, const char *key, struct slice value, int64_t lease);
void etcd_txn_delete(struct etcd_txn *t, const char *key);
void etcd_txn_read(struct etcd_txn *t, struct etcd_steps *where, const char *key, bool value_too);
struct slice etcd_txn_end(struct etcd_txn *t); /* gives */

/* Any message, packed; gives. */
struct slice etcd_pack(const ProtobufCMessage *m);
ProtobufCBinaryData etcd_text(const char *s); /* borrows */

#endif
