/* etcd_watch.h - watches: one a prefix, all on one stream, that survive the node they are on.
 *
 * Each prefix knows the revision from which it has not heard yet.  When the stream ends, for
 * whatever reason, another is opened on another node and every prefix goes on from there;
 * one whose past was compacted meanwhile, or is no more since the store was restored, is told
 * UNSURE and goes on from now.
 *
 * Memory:  a prefix has a hub of its own (watch.h) and lives while a watch is in it.
 * Threads: add and remove from any; the rest the store's loop.  The lock guards the table of
 *          prefixes and their counts.
 */
#ifndef METADATA_ETCD_WATCH_H
#define METADATA_ETCD_WATCH_H

#include <pthread.h>

#include "metadata/etcd_grpc.h"
#include "metadata/metadata.h"

struct etcd;
struct etcd_node;

struct etcd_watches {
    pthread_mutex_t lock;
    struct list_node prefixes;
    int64_t last_id;
    struct task changed; /* a prefix came or went */
    bool posted;
    struct grpc_call stream;
    struct etcd_node *at;
    uint64_t token;     /* that it was opened with */
    struct timer timer; /* to open the stream again */
    struct timer again; /* to ask again for what was refused */
    unsigned failures;
};

void etcd_watches_start(struct etcd *e);
void etcd_watches_stop(struct etcd *e);
void etcd_watches_wake(struct etcd *e);                   /* a node is up */
void etcd_watches_went_back(struct etcd *e, int64_t now); /* the store is at this revision */
void etcd_watch_add(struct etcd *e, const char *prefix, struct meta_watch *w);
void etcd_watch_remove(struct etcd *e, struct meta_watch *w);

#endif
