/* conn.h - a connection that carries frames: a 4-byte big-endian length, then that many bytes.
 *
 *   socket --readv--> pooled slabs --cut--> handler.frame()
 *   conn_send() -> queue --one writev at the end of the round--> socket
 *
 * Both protocols of the house are framed so.  Plain TCP or TLS, the same interface:
 * with TLS the bytes are copied once.  A plain conn may be upgraded to TLS in the middle.
 *
 * Memory:  a frame is a slice into the slab that it was read into (a frame that
 *          straddles two slabs is moved once); whoever keeps the slice keeps the slab.
 * Threads: everything on the loop given at birth; the callbacks too.
 * Limits:  conf.frame_max: a longer frame closes the connection with ERR_TOO_BIG.
 *          conf.write_high: past it reading stops until the queue is below half of it,
 *          so that a peer who does not read cannot make us hold more (it still may be
 *          sent more: conn_waiting() tells the sender).  With conf.reads_on reading goes on,
 *          and what is sent is its owner's to bound.
 */
#ifndef COMMON_CONN_H
#define COMMON_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/loop.h"

struct conn;
struct tls; /* common/tls.h */

struct conn_conf {
    size_t frame_max;         /* bytes of one frame, its length field not counted */
    size_t write_high;        /* bytes */
    bool reads_on;            /* past it too */
    struct tls *tls;          /* NULL: plain; outlives the conn */
    const char *tls_name;     /* dialling: the name the certificate must carry; NULL: not checked */
    uint64_t dial_timeout_us; /* 0: 10 s */
};

struct conn_handler {
    void (*opened)(void *ctx);                    /* dialled and shaken hands; may be NULL */
    void (*frame)(void *ctx, struct slice frame); /* gives one frame, its length cut off */
    void (*drained)(void *ctx);                   /* the queue was above write_high and fell
                                                     below half of it; may be NULL */
    void (*closed)(void *ctx, enum err why);      /* by the peer or an error: the last callback;
                                                     the conn is gone when it returns */
};

struct conn *conn_accepted(struct loop *l, int fd, const struct conn_conf *conf,
                           const struct conn_handler *h, void *ctx); /* gives; takes fd */
/* Never fails at once: a bad address ends in closed(), from the loop. */
struct conn *conn_dial(struct loop *l, const char *host, uint16_t port,
                       const struct conn_conf *conf, const struct conn_handler *h,
                       void *ctx); /* gives */

/* From a frame's callback, of a conn that is open and plain: what was sent before leaves in the
 * clear, then hands are shaken, and everything after that is TLS.  ERR_MALFORMED: the peer has
 * sent more already, which nobody protects; the conn is as it was, and is best closed. */
MUST_CHECK enum err conn_upgrade(struct conn *c, struct tls *tls); /* borrows tls, as conf.tls */
void conn_send(struct conn *c, struct slice s);         /* takes; whole frames, or parts in order */
void conn_send_chain(struct conn *c, struct chain *ch); /* takes what is in it */
/* The same with a front that is copied before what is shared. */
void conn_send_behind(struct conn *c, struct view front, const struct chain *rest);
size_t conn_waiting(const struct conn *c); /* bytes not yet with the kernel */
/* Another conf.write_high from now on; if more than that waits, drained() follows. */
void conn_set_write_high(struct conn *c, size_t write_high);
void conn_pause(struct conn *c); /* no more frames until conn_resume(); counted, pairs nest */
void conn_resume(struct conn *c);
const char *conn_peer(const struct conn *c); /* "1.2.3.4:5678"; borrows */
void conn_close(struct conn **c);            /* now; what waits is dropped; no callback follows */
/* Writes what waits (at most 5 s), then closes; no callback follows. */
void conn_finish(struct conn **c);

#endif
