/* etcd_grpc.h - gRPC calls over one HTTP/2 connection, plain or TLS.
 *
 *   grpc_start -> HEADERS, DATA --socket--> HEADERS, DATA ... -> call->message()
 *                                            trailers or the end -> call->ended()
 *
 * Every call ends with a status; one whose connection is gone ends with UNAVAILABLE, and may
 * have been heard by the server or not.  A connection that was told to GOAWAY, or that has
 * used up its numbers, is `retired`: it ends its calls and should be given no new ones.
 *
 * Memory:  a grpc_call is its owner's, embedded, and must stay put until ended() or
 *          grpc_cancel().  Messages are borrowed for the length of message().
 * Threads: the loop's.  A callback may start, send, cancel and close what it likes.
 * Limits:  messages in of at most call->max bytes (RESOURCE_EXHAUSTED); 512 bytes of a
 *          status' text are kept.
 */
#ifndef METADATA_ETCD_GRPC_H
#define METADATA_ETCD_GRPC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/list.h"
#include "common/loop.h"
#include "common/outbox.h"
#include "metadata/etcd_cutter.h"

struct grpc;
struct tls;

enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};

struct grpc_conf {
    const char *host;
    uint16_t port;
    const struct tls *tls; /* NULL: plain; outlives the connection */
    uint64_t dial_timeout_us;
};

struct grpc_handler {
    void (*opened)(void *ctx);
    void (*closed)(void *ctx, enum err why); /* the last callback; its calls have ended before */
};

struct grpc_call {
    void (*message)(struct grpc_call *c, struct view message);
    void (*ended)(struct grpc_call *c, int status, const char *text);
    size_t max;
    /* the rest is private */
    struct grpc *conn; /* NULL: not under way */
    struct list_node node;
    int32_t stream;
    bool goes_on; /* there may be more to send */
    struct outbox out;
    struct etcd_cutter in;
    int status; /* -1: none has come */
    char *text;
};

struct grpc_ask {
    const char *path;    /* "/etcdserverpb.KV/Range" */
    const char *token;   /* NULL: none */
    bool needs_leader;   /* a node that knows of no leader refuses at once */
    bool goes_on;        /* grpc_send() follows */
    uint64_t timeout_us; /* told to the server; 0: none */
};

struct grpc *grpc_dial(struct loop *l, const struct grpc_conf *conf, const struct grpc_handler *h,
                       void *ctx);       /* gives; never fails at once */
void grpc_close(struct grpc **g);        /* its calls end first; closed() does not follow */
bool grpc_retired(const struct grpc *g); /* takes no new calls: use another connection */

/* `c` with message, ended and max set; the connection is open. */
void grpc_start(struct grpc *g, struct grpc_call *c, const struct grpc_ask *ask,
                struct slice message); /* takes message; an empty one is sent too */
void grpc_open(struct grpc *g, struct grpc_call *c, const struct grpc_ask *ask); /* none yet */
void grpc_send(struct grpc_call *c, struct slice message);                       /* takes */
void grpc_cancel(struct grpc_call *c); /* no callback follows; one at rest is fine */
static inline bool grpc_under_way(const struct grpc_call *c)
{
    return c->conn != NULL;
}

#endif
