#include "bookie/http_admin.h"

#include <inttypes.h>
#include <string.h>

#include "bookie/http_inside.h"
#include "common/http_log.h"
#include "common/log.h"
#include "common/mem.h"
#include "ledger/client.h"

enum { BODY_MAX = 64 * 1024 };

/* ---- the routes ------------------------------------------------------------------------------ */

static void on_status(struct http_admin *a, struct http_request *r)
{
    (void)a;
    http_reply_text(r, 200, "OK\n");
}

static void on_metrics(struct http_admin *a, struct http_request *r)
{
    struct text t = {0};
    if (a->bookie)
        bookie_render_metrics(a->bookie, &t);
    http_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", view_of(t.at, t.len));
    text_drop(&t);
}

static bool is_ready(const struct http_admin *a)
{
    return a->bookie && bookie_is_registered(a->bookie);
}

static void on_is_ready(struct http_admin *a, struct http_request *r)
{
    if (is_ready(a))
        http_reply_text(r, 200, "OK\n");
    else
        http_reply_reason(r, 503, a->was_serving ? "it is not registered" : "it is starting");
}

static const char *truth(bool b)
{
    return b ? "true" : "false";
}

static void on_state(struct http_admin *a, struct http_request *r)
{
    const struct bookie *b = a->bookie;
    http_reply_json_text(r, mem_format("{\"running\":%s,\"readOnly\":%s,\"shuttingDown\":%s,"
                                       "\"availableForHighPriorityWrites\":%s}",
                                       truth(b), truth(b && !bookie_is_writable(b)),
                                       truth(!b && a->was_serving),
                                       truth(b && bookie_takes_recovery(b))));
}

bool http_is_serving(const struct http_admin *a, struct http_request *r)
{
    if (!a->bookie)
        http_reply_reason(r, 503, "the bookie is not serving");
    return a->bookie;
}

static void on_read_only(struct http_admin *a, struct http_request *r)
{
    if (http_is_serving(a, r))
        http_reply_json_text(
            r, mem_format("{\"readOnly\":%s}", truth(!bookie_is_writable(a->bookie))));
}

static void on_set_read_only(struct http_admin *a, struct http_request *r)
{
    if (!http_is_serving(a, r))
        return;
    struct json_object *body = http_json(r);
    struct json_object *flag = http_json_member(body, "readOnly", json_type_boolean);
    if (flag) {
        bookie_set_read_only(a->bookie, json_object_get_boolean(flag));
        on_read_only(a, r);
    } else {
        http_reply_reason(r, 400, "the body must be {\"readOnly\": true} or {\"readOnly\": false}");
    }
    json_object_put(body);
}

static void on_info(struct http_admin *a, struct http_request *r)
{
    uint64_t free_bytes, total;
    if (!http_is_serving(a, r))
        return;
    const enum err err = bookie_space(a->bookie, &free_bytes, &total);
    if (err)
        http_reply_reason(r, 500, "the space cannot be asked: %s", err_text(err));
    else
        http_reply_json_text(r, mem_format("{\"freeSpace\":%" PRIu64 ",\"totalSpace\":%" PRIu64 "}",
                                           free_bytes, total));
}

/* ---- the process ----------------------------------------------------------------------------- */

static void on_log_level(struct http_admin *a, struct http_request *r)
{
    (void)a;
    http_log_level(r);
}

static void on_set_log_level(struct http_admin *a, struct http_request *r)
{
    (void)a;
    http_log_set_level(r);
}

static void on_flight(struct http_admin *a, struct http_request *r)
{
    (void)a;
    http_flight(r);
}

/* ---- which one ------------------------------------------------------------------------------- */

enum who { ALWAYS, ADMIN };

static const struct {
    const char *method, *path;
    http_route_fn *handle;
    enum who who;
} routes[] = {
#define X(method, path, handler, who) {method, path, handler, who},
#include "bookie/http_routes.def"
#undef X
};

/* With a slash behind it, as BookKeeper's pages write some of them, it is the same. */
static bool is_path(const char *path, const char *asked)
{
    const size_t len = strlen(path);
    return strncmp(path, asked, len) == 0 && (asked[len] == '\0' || strcmp(asked + len, "/") == 0);
}

static void on_request(void *ctx, struct http_request *r)
{
    struct http_admin *a = ctx;
    bool known = false;
    for (unsigned i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!is_path(routes[i].path, http_path(r)))
            continue;
        known = true;
        if (strcmp(routes[i].method, http_method(r)) != 0)
            continue;
        if (routes[i].who == ADMIN && !a->conf->http)
            http_reply_reason(r, 403, "httpServerEnabled=false: health and metrics only");
        else
            routes[i].handle(a, r);
        return;
    }
    if (known)
        http_reply_reason(r, 405, "%s is not supported here", http_method(r));
    else
        http_reply_reason(r, 404, "there is nothing at this path");
}

/* ---- opening and closing --------------------------------------------------------------------- */

struct opening {
    struct http_admin *admin;
    struct http_conf conf;
    enum err err;
};

static void open_server(void *ctx)
{
    struct opening *o = ctx;
    o->err = http_open(&o->admin->server, o->admin->loop, &o->conf, on_request, o->admin);
}

static struct http_conf where(const struct bookie_conf *c)
{
    return (struct http_conf){.host = c->http ? c->http_host : c->metrics_host,
                              .port = (uint16_t)(c->http ? c->http_port : c->metrics_port),
                              .body_max = BODY_MAX};
}

enum err http_admin_open(struct http_admin **out, const struct bookie_conf *conf, struct loop *loop,
                         struct metadata *meta)
{
    *out = NULL;
    if (!conf->http && !conf->metrics_http)
        return ERR_OK;
    struct http_admin *a = mem_new(struct http_admin);
    a->conf = conf;
    a->live = *conf;
    a->loop = loop;
    a->meta = meta;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    struct opening o = {.admin = a, .conf = where(conf)};
    loop_call(loop, open_server, &o);
    *out = a;
    if (o.err) {
        http_admin_close(out);
        return o.err;
    }
    log_event(LOG_INFO, "bookie.http_opened", F_STR("host", o.conf.host),
              F_U64("port", http_port(a->server)));
    return ERR_OK;
}

struct setting {
    struct http_admin *admin;
    struct bookie *bookie;
};

static void set_bookie(void *ctx)
{
    const struct setting *s = ctx;
    s->admin->bookie = s->bookie;
    s->admin->was_serving |= s->bookie != NULL;
}

void http_admin_set(struct http_admin *a, struct bookie *b)
{
    struct setting s = {a, b};
    if (!a)
        return;
    loop_call(a->loop, set_bookie, &s);
    if (!b)
        http_index_stop(a);
}

uint16_t http_admin_port(const struct http_admin *a)
{
    return http_port(a->server);
}

static void close_server(void *ctx)
{
    struct http_admin *a = ctx;
    a->closing = true;
    http_close(&a->server);
}

static void drop_client(void *ctx)
{
    struct http_admin *a = ctx;
    ledger_client_drop(&a->client);
}

void http_admin_close(struct http_admin **admin)
{
    struct http_admin *a = *admin;
    *admin = NULL;
    if (!a)
        return;
    if (a->server)
        loop_call(a->loop, close_server, a);
    http_calls_wait(a);
    loop_call(a->loop, drop_client, a);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}
