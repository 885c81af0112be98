/* etcd_socket.h - a dialled byte stream on a loop: resolve, connect, TLS, read, write.
 *
 * Threads: the loop's.
 * Memory:  embedded in its owner, who ends it with socket_close(); a callback may do that.
 * Limits:  socket_waiting() says what is not yet with the kernel: the owner holds back.
 */
#ifndef METADATA_ETCD_SOCKET_H
#define METADATA_ETCD_SOCKET_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/loop.h"
#include "common/outbox.h"
#include "common/resolve.h"
#include "common/stream.h"

struct tls;

/* RESOLVING -> CONNECTING -> SHAKING (TLS) -> OPEN -> SHUT; any of them -> SHUT */
enum socket_state { SOCKET_SHUT, SOCKET_RESOLVING, SOCKET_CONNECTING, SOCKET_SHAKING, SOCKET_OPEN };

struct socket {
    struct loop *loop;
    enum socket_state state;
    const struct socket_handler *handler;
    void *ctx;
    const struct tls *tls;
    char *name; /* that the certificate must carry */
    struct stream io;
    struct event readable, writable;
    struct outbox out;
    struct resolve *lookup;
    struct addresses addresses;
    unsigned next_address;
    struct timer timer;
    struct round_end again; /* a round's share is read or dialling must begin */
    char peer[ADDRESS_TEXT + 256];
};

struct socket_handler {
    void (*opened)(void *ctx);
    void (*bytes)(void *ctx, struct view bytes);
    void (*writable)(void *ctx);                                 /* the queue is empty */
    void (*failed)(void *ctx, enum err why, const char *reason); /* and is shut already */
};

void socket_dial(struct socket *s, struct loop *l, const char *host, uint16_t port,
                 const struct tls *tls, uint64_t timeout_us, const struct socket_handler *h,
                 void *ctx);
void socket_send(struct socket *s, struct slice bytes); /* takes; written by socket_flush() */
void socket_flush(struct socket *s);
static inline size_t socket_waiting(const struct socket *s)
{
    return s->out.bytes;
}
void socket_close(struct socket *s);

#endif
