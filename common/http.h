/* http.h - an HTTP server for admin calls, health and metrics; nothing hot passes here.
 *
 * Threads: the handler runs on the server's loop; http_reply() must be called there too,
 *          now or later, exactly once a request; or begin, chunks, end.
 * Limits:  bodies of at most body_max bytes (413 beyond), 64 KiB of headers.  A connection from
 *          which no whole request has come for `patience_us` is cut off.  With connections_max of
 *          them no more are accepted until one has gone.
 */
#ifndef COMMON_HTTP_H
#define COMMON_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/loop.h"

struct http_server;
struct http_request;
struct tls;

typedef void http_fn(void *ctx, struct http_request *r);

struct http_conf {
    const char *host;
    uint16_t port;   /* 0 picks a free one */
    struct tls *tls; /* NULL: plain */
    size_t body_max;
    unsigned connections_max; /* 0: 1,024 */
    uint64_t patience_us;     /* 0: 30 s */
};

MUST_CHECK enum err http_open(struct http_server **out, struct loop *l,
                              const struct http_conf *conf, http_fn *handler, void *ctx);
uint16_t http_port(const struct http_server *s);
void http_close(struct http_server **s); /* unanswered requests are dropped */

const char *http_method(const struct http_request *r); /* "GET" ...; borrows */
const char *http_path(const struct http_request *r);   /* as sent, percent-encoded, no query */
const char *http_target(const struct http_request *r); /* path and query as sent; borrows */
const char *http_query(const struct http_request *r, const char *key);   /* decoded, or NULL */
const char *http_header(const struct http_request *r, const char *name); /* or NULL */
struct view http_body(const struct http_request *r);
bool http_came_by_tls(const struct http_request *r);
char *http_decode(const char *segment); /* gives: percent-decoding of one path segment */

void http_reply(struct http_request *r, int status, const char *content_type, struct view body);
void http_reply_text(struct http_request *r, int status, const char *text);
/* {"reason": "..."} with the status: the form of every admin error. */
void http_reply_reason(struct http_request *r, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* An answer too long to be held at once: begin, one chunk after the other, end.  The next chunk
 * may be given when taken() has come; `gone`: nobody reads on, end it. */
typedef void http_taken_fn(void *ctx, bool gone);
void http_reply_begin(struct http_request *r, int status, const char *content_type,
                      http_taken_fn *taken, void *ctx);
void http_reply_chunk(struct http_request *r, struct view body);
void http_reply_end(struct http_request *r); /* takes the request; no taken() follows */
void http_add_header(struct http_request *r, const char *name, const char *value);

#endif
