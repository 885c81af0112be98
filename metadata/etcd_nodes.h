/* etcd_nodes.h - the nodes of etcd: a connection to each, and which of them answers.
 *
 *   DOWN -> DIALLING -> GREETING -> UP      any of them -> DOWN -> (a while) -> DIALLING
 *
 * A frozen node keeps its connections open and even takes new ones: only answers count.  Each
 * node is asked for a key it serves by itself, the one in use every 200 ms and the others each
 * second; three times without an answer is DOWN.  Calls go to the one in use, `current`,
 * which moves on when it is down or slow three times in a row.
 *
 * Threads: the store's loop.
 */
#ifndef METADATA_ETCD_NODES_H
#define METADATA_ETCD_NODES_H

#include "metadata/etcd_grpc.h"
#include "metadata/etcd_url.h"

struct etcd;

enum etcd_node_state { NODE_DOWN, NODE_DIALLING, NODE_GREETING, NODE_UP };

struct etcd_node {
    struct etcd *etcd;
    char *host;
    uint16_t port;
    enum etcd_node_state state;
    struct grpc *conn;
    struct timer timer; /* to dial again, or to ask again */
    struct grpc_call probe;
    unsigned missed;   /* probes in a row */
    unsigned slow;     /* tries in a row */
    unsigned failures; /* in a row, to be UP */
    bool refused;      /* of another cluster: said once */
};

struct etcd_nodes {
    unsigned n, current;
    struct etcd_node at[ETCD_NODES_MAX];
};

void etcd_nodes_start(struct etcd *e, struct etcd_url *url); /* takes its hosts */
void etcd_nodes_stop(struct etcd *e);
/* One that is up, not `but` if there is another; NULL: none is. */
struct etcd_node *etcd_nodes_pick(struct etcd *e, const struct etcd_node *but);
void etcd_node_answered(struct etcd_node *n);
void etcd_node_was_slow(struct etcd_node *n);

#endif
