#include "common/http.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/door.h"
#include "common/http_guard.h"
#include "common/list.h"
#include "common/log.h"
#include "common/log_escape.h"
#include "common/mem.h"
#include "common/tls_inside.h"

#define HEADERS_MAX (64 << 10)
#define IDLE_S      60
#define PATIENCE_S  30
#define CONNECTIONS 1024
#define REST_US     (1000 * 1000)
#define METHODS                                                                                \
    (EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | \
     EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH)

struct http_server {
    struct loop *loop;
    struct evhttp *http;
    struct evconnlistener *listener; /* of http, which frees it */
    struct timer rested;
    struct tls *tls;
    uint16_t port;
    http_fn *handler;
    void *ctx;
    struct list_node unanswered;
    struct http_guard guard;
};

/* Its owner answers it once, even when server or client are gone by then. */
struct http_request {
    struct list_node node;
    struct loop *loop;
    struct http_server *server; /* while there is req */
    struct evhttp_request *req; /* NULL: the server was closed */
    struct evkeyvalq query;
    bool query_parsed;
    http_taken_fn *taken; /* of an answer in chunks */
    void *taken_ctx;
    bool chunk_waits;
    struct task gone_task;
};

/* -1: its client has gone. */
static int socket_of(const struct evhttp_request *req)
{
    struct evhttp_connection *c =
        evhttp_request_get_connection((struct evhttp_request *)(uintptr_t)req);
    return c ? bufferevent_getfd(evhttp_connection_get_bufferevent(c)) : -1;
}

static void on_request(struct evhttp_request *req, void *arg)
{
    struct http_server *s = arg;
    struct http_request *r = mem_new(struct http_request);
    r->loop = s->loop;
    r->server = s;
    r->req = req;
    http_guard_asked(&s->guard, socket_of(req));
    list_push_back(&s->unanswered, &r->node);
    s->handler(s->ctx, r);
}

static struct bufferevent *secure_one(struct event_base *base, struct http_server *s)
{
    struct bufferevent *b = bufferevent_openssl_socket_new(
        base, -1, tls_ssl(s->tls), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    assert(b);
    bufferevent_openssl_set_allow_dirty_shutdown(b, 1);
    return b;
}

/* Called for each that is accepted; the last one that fits shuts the door. */
static struct bufferevent *accept_one(struct event_base *base, void *arg)
{
    struct http_server *s = arg;
    struct bufferevent *b =
        s->tls ? secure_one(base, s) : bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    assert(b);
    http_guard_came(&s->guard, b);
    if (http_guard_is_full(&s->guard))
        evconnlistener_disable(s->listener);
    return b;
}

static void set_up(struct http_server *s, const struct http_conf *conf)
{
    s->http = evhttp_new(loop_base(s->loop));
    assert(s->http);
    evhttp_set_max_headers_size(s->http, HEADERS_MAX);
    evhttp_set_max_body_size(s->http, (ev_ssize_t)conf->body_max);
    evhttp_set_timeout(s->http, IDLE_S);
    evhttp_set_allowed_methods(s->http, METHODS);
    evhttp_set_gencb(s->http, on_request, s);
    evhttp_set_bevcb(s->http, accept_one, s);
    const unsigned max = conf->connections_max ? conf->connections_max : CONNECTIONS;
    http_guard_init(&s->guard, s->loop, max,
                    conf->patience_us ? conf->patience_us : (uint64_t)PATIENCE_S * 1000000);
}

/* ---- out of descriptors ---- */

/* The socket stays readable: without a rest the loop would spin, a line a turn.  All that we are
 * given here is libevent's own, hence a timer that is always running. */
static void on_accept_failed(struct evconnlistener *listener, void *http)
{
    const int e = errno;
    (void)http;
    evconnlistener_disable(listener);
    log_event(LOG_WARN, "http.accept_failed", F_ERRNO(e));
}

static void on_rested(struct timer *t)
{
    struct http_server *s = container_of(t, struct http_server, rested);
    if (!http_guard_is_full(&s->guard))
        evconnlistener_enable(s->listener);
    loop_after(s->loop, &s->rested, REST_US);
}

static void accept_from(struct http_server *s, int fd)
{
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(s->http, fd);
    assert(bound);
    s->listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(s->listener, on_accept_failed);
    s->rested.run = on_rested;
    loop_after(s->loop, &s->rested, REST_US);
}

enum err http_open(struct http_server **out, struct loop *l, const struct http_conf *conf,
                   http_fn *handler, void *ctx)
{
    int fd;
    assert(loop_is_mine(l));
    TRY(door_open(&fd, conf->host, conf->port));
    struct http_server *s = mem_new(struct http_server);
    s->loop = l;
    s->tls = conf->tls;
    s->port = door_port(fd);
    s->handler = handler;
    s->ctx = ctx;
    list_init(&s->unanswered);
    set_up(s, conf);
    accept_from(s, fd);
    *out = s;
    return ERR_OK;
}

uint16_t http_port(const struct http_server *s)
{
    return s->port;
}

static void forget_query(struct http_request *r)
{
    if (r->query_parsed)
        evhttp_clear_headers(&r->query);
    r->query_parsed = false;
}

/* A request whose client has gone belongs to us alone; the others end with the server. */
static void orphan(struct http_request *r)
{
    if (!evhttp_request_get_connection(r->req))
        evhttp_request_free(r->req);
    r->req = NULL;
}

void http_close(struct http_server **sp)
{
    struct http_server *s = *sp;
    *sp = NULL;
    if (!s)
        return;
    assert(loop_is_mine(s->loop));
    loop_cancel(s->loop, &s->rested);
    for (struct list_node *n; (n = list_pop_front(&s->unanswered));)
        orphan(list_entry(n, struct http_request, node));
    http_guard_drop(&s->guard);
    evhttp_free(s->http);
    mem_free(s);
}

/* ---- the question --------------------------------------------------------------------------- */

const char *http_method(const struct http_request *r)
{
    static const struct {
        enum evhttp_cmd_type type;
        const char *name;
    } methods[] = {{EVHTTP_REQ_GET, "GET"},       {EVHTTP_REQ_POST, "POST"},
                   {EVHTTP_REQ_HEAD, "HEAD"},     {EVHTTP_REQ_PUT, "PUT"},
                   {EVHTTP_REQ_DELETE, "DELETE"}, {EVHTTP_REQ_OPTIONS, "OPTIONS"},
                   {EVHTTP_REQ_PATCH, "PATCH"}};
    for (size_t i = 0; r->req && i < sizeof methods / sizeof *methods; i++)
        if (methods[i].type == evhttp_request_get_command(r->req))
            return methods[i].name;
    return "";
}

static const struct evhttp_uri *uri_of(const struct http_request *r)
{
    return r->req ? evhttp_request_get_evhttp_uri(r->req) : NULL;
}

const char *http_path(const struct http_request *r)
{
    const struct evhttp_uri *uri = uri_of(r);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    return path && *path ? path : "/";
}

const char *http_target(const struct http_request *r)
{
    return r->req ? evhttp_request_get_uri(r->req) : "";
}

/* Parsed when first asked for: that it is kept does not change the request. */
const char *http_query(const struct http_request *r, const char *key)
{
    const struct evhttp_uri *uri = uri_of(r);
    const char *query = uri ? evhttp_uri_get_query(uri) : NULL;
    struct http_request *kept = (struct http_request *)(uintptr_t)r;
    if (!query)
        return NULL;
    if (!r->query_parsed) {
        if (evhttp_parse_query_str(query, &kept->query) != 0)
            return NULL;
        kept->query_parsed = true;
    }
    return evhttp_find_header(&r->query, key);
}

const char *http_header(const struct http_request *r, const char *name)
{
    return r->req ? evhttp_find_header(evhttp_request_get_input_headers(r->req), name) : NULL;
}

bool http_came_by_tls(const struct http_request *r)
{
    return r->req && r->server->tls;
}

struct view http_body(const struct http_request *r)
{
    if (!r->req)
        return (struct view){0};
    struct evbuffer *in = evhttp_request_get_input_buffer(r->req);
    const size_t len = evbuffer_get_length(in);
    return view_of(len > 0 ? evbuffer_pullup(in, -1) : NULL, len);
}

static int hex(char c)
{
    if (isdigit((unsigned char)c))
        return c - '0';
    return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* NULL for what is no encoding, and for a NUL, which would end a name early. */
char *http_decode(const char *segment)
{
    char *out = mem_string(segment), *to = out;
    for (const char *c = segment; *c; c++) {
        if (*c != '%') {
            *to++ = *c;
            continue;
        }
        const int high = hex(c[1]), low = high < 0 ? -1 : hex(c[2]);
        if (low < 0 || high * 16 + low == 0) {
            mem_free(out);
            return NULL;
        }
        *to++ = (char)(high * 16 + low);
        c += 2;
    }
    *to = '\0';
    return out;
}

/* ---- the answer ------------------------------------------------------------------------------ */

void http_add_header(struct http_request *r, const char *name, const char *value)
{
    if (r->req && evhttp_add_header(evhttp_request_get_output_headers(r->req), name, value) != 0)
        log_event(LOG_WARN, "http.header_refused", F_STR("name", name), F_STR("value", value));
}

static void send_reply(struct http_request *r, int status, const char *content_type,
                       struct view body)
{
    struct evbuffer *out = evbuffer_new();
    assert(out);
    if (body.len > 0 && evbuffer_add(out, body.base, body.len) != 0)
        abort();
    if (content_type)
        http_add_header(r, "Content-Type", content_type);
    evhttp_send_reply(r->req, status, NULL, out);
    evbuffer_free(out);
}

void http_reply(struct http_request *r, int status, const char *content_type, struct view body)
{
    assert(loop_is_mine(r->loop));
    list_remove(&r->node);
    if (r->req) {
        http_guard_answered(&r->server->guard, socket_of(r->req));
        send_reply(r, status, content_type, body);
    }
    forget_query(r);
    mem_free(r);
}

/* ---- an answer in chunks ------------------------------------------------------------------- */

static void tell_taken(struct http_request *r, bool gone)
{
    if (!r->chunk_waits)
        return;
    r->chunk_waits = false;
    r->taken(r->taken_ctx, gone);
}

static void connection_closed(struct evhttp_connection *c, void *arg)
{
    (void)c;
    tell_taken(arg, true);
}

static void chunk_written(struct evhttp_connection *c, void *arg)
{
    (void)c;
    tell_taken(arg, false);
}

static void was_gone(struct task *t)
{
    tell_taken(container_of(t, struct http_request, gone_task), true);
}

static struct evhttp_connection *connection_of(const struct http_request *r)
{
    return r->req ? evhttp_request_get_connection(r->req) : NULL;
}

void http_reply_begin(struct http_request *r, int status, const char *content_type,
                      http_taken_fn *taken, void *ctx)
{
    assert(loop_is_mine(r->loop));
    r->taken = taken;
    r->taken_ctx = ctx;
    if (!connection_of(r))
        return;
    http_add_header(r, "Content-Type", content_type);
    evhttp_connection_set_closecb(connection_of(r), connection_closed, r);
    evhttp_send_reply_start(r->req, status, NULL);
}

void http_reply_chunk(struct http_request *r, struct view body)
{
    assert(!r->chunk_waits);
    r->chunk_waits = true;
    if (!connection_of(r)) {
        r->gone_task.run = was_gone;
        loop_post(r->loop, &r->gone_task);
        return;
    }
    struct evbuffer *out = evbuffer_new();
    assert(out);
    if (evbuffer_add(out, body.base, body.len) != 0)
        abort();
    evhttp_send_reply_chunk_with_cb(r->req, out, chunk_written, r);
    evbuffer_free(out);
}

void http_reply_end(struct http_request *r)
{
    assert(!r->chunk_waits);
    list_remove(&r->node);
    if (connection_of(r))
        evhttp_connection_set_closecb(connection_of(r), NULL, NULL);
    if (r->req) {
        http_guard_answered(&r->server->guard, socket_of(r->req));
        evhttp_send_reply_end(r->req);
    }
    forget_query(r);
    mem_free(r);
}

void http_reply_text(struct http_request *r, int status, const char *text)
{
    http_reply(r, status, "text/plain; charset=utf-8", view_of(text, strlen(text)));
}

/* A reason may quote what came, which may be anything, and may be cut in the middle of a character.
 */
static void only_utf8(char *text)
{
    for (unsigned char *s = (unsigned char *)text; *s;) {
        const size_t n = utf8_len(s);
        if (n == 0)
            *s = '?';
        s += n ? n : 1;
    }
}

void http_reply_reason(struct http_request *r, int status, const char *fmt, ...)
{
    char reason[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    only_utf8(reason);
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "reason", json_object_new_string(reason));
    const char *text =
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    http_reply(r, status, "application/json", view_of(text, strlen(text)));
    json_object_put(o);
}
