/* stream.h - a socket that may speak TLS: read, write, shake hands, never wait.
 *
 * Threads: one at a time.  For conn.c.
 */
#ifndef COMMON_STREAM_H
#define COMMON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "common/err.h"
#include "common/outbox.h"

struct tls;
struct ssl_st;

struct stream {
    int fd;             /* -1: none yet, or no more */
    struct ssl_st *ssl; /* NULL: plain */
    enum err err;       /* after STREAM_FAILED */
    char why[160];      /* for the log, likewise */
};

enum stream_step {
    STREAM_DONE,
    STREAM_DRAINED, /* done, and it would not go on just now */
    STREAM_WANTS_READ,
    STREAM_WANTS_WRITE,
    STREAM_END, /* the peer has said that it sends no more */
    STREAM_FAILED,
};

/* `name`: what the peer's certificate must carry; NULL as a server or unchecked.  Sends
 * nothing yet: stream_shake() does, again and again until STREAM_DONE. */
void stream_secure(struct stream *s, const struct tls *tls, const char *name, bool dialled);
MUST_CHECK enum stream_step stream_shake(struct stream *s);
MUST_CHECK enum stream_step stream_read(struct stream *s, const struct iovec iov[2], size_t *got);
MUST_CHECK enum stream_step stream_write(struct stream *s, const struct outbox *o, size_t *sent);
void stream_end(struct stream *s); /* says that nothing more will be sent */
void stream_close(struct stream *s);

#endif
