#include "broker/admin/admin.h"

#include <string.h>

#include "broker/admin/health.h"
#include "broker/admin/jobs.h"
#include "broker/broker.h"
#include "common/mem.h"

enum { BODY_MAX = 1024 * 1024 };

static const struct {
    const char *method, *path;
    route_fn *handle; /* at once, */
    job_fn *job;      /* or by a clerk */
    enum action action;
} routes[] = {
#define X(method, path, handler, action) {method, path, handler, NULL, action},
#include "broker/admin/routes.def"
#undef X
#define X(method, path, handler, action) {method, path, NULL, handler, action},
#include "broker/admin/jobs.def"
#undef X
};

/* What is not there at all, and why. */
static const struct {
    const char *prefix;
    int status;
    const char *why;
} absent[] = {
    {"/admin/v2/non-persistent/", 405, "not allowed on a non-persistent topic"},
    {"/admin/v2/schemas/", 501, "schemas are not supported yet"},
    {"/admin/v2/resource-quotas", 501, "resource quotas are not supported"},
    {"/admin/v2/resourcegroups", 501, "resource groups are not supported yet"},
    {"/admin/v2/broker-stats", 501, "the broker's figures are at /metrics"},
    {"/admin/v2/worker", 501, "functions are not supported"},
    {"/admin/v3/", 501, "functions, connectors, packages and transactions are not supported"},
};

enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

/* What a route is about: a topic when it names one, or a namespace. */
static char *resource_of(const struct segments_of_path *p)
{
    bool domain = p->n > 0 &&
                  (strcmp(p->at[0], "persistent") == 0 || strcmp(p->at[0], "non-persistent") == 0);

    if (!domain && p->n >= 2)
        return mem_format("%s/%s", p->at[0], p->at[1]);
    if (!domain)
        return mem_string(p->n ? p->at[0] : "");
    if (p->n == 3)
        return mem_format("%s/%s", p->at[1], p->at[2]);
    if (p->n < 4)
        return mem_string("");
    return mem_format("%s://%s/%s/%s", p->at[0], p->at[1], p->at[2], p->at[3]);
}

static void handle(struct admin *a, struct http_request *r, unsigned i, struct segments_of_path *p)
{
    const struct principal nobody = {0};
    char *resource = resource_of(p);
    enum err err = authorize(a->env.authorizer, &nobody, routes[i].action, resource);

    if (err)
        http_reply_reason(r, 403, "not allowed on %s", *resource ? resource : "this broker");
    else if (routes[i].job)
        jobs_take(a, r, routes[i].method, routes[i].job, p);
    else
        routes[i].handle(a, r, p);
    mem_free(resource);
}

static void refuse(struct http_request *r, bool known)
{
    const char *path = http_path(r);

    for (unsigned i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        if (strncmp(path, absent[i].prefix, strlen(absent[i].prefix)) != 0)
            continue;
        http_reply_reason(r, absent[i].status, "%s", absent[i].why);
        return;
    }
    if (known)
        http_reply_reason(r, 405, "%s is not supported here", http_method(r));
    else
        http_reply_reason(r, 404, "there is nothing at this path");
}

static void on_request(void *ctx, struct http_request *r)
{
    struct admin *a = ctx;
    struct segments_of_path p;
    bool known = false;

    for (unsigned i = 0; i < ROUTES; i++) {
        if (!route_matches(routes[i].path, http_path(r), &p))
            continue;
        known = true;
        if (strcmp(routes[i].method, http_method(r)) == 0) {
            handle(a, r, i, &p);
            route_segments_drop(&p);
            return;
        }
        route_segments_drop(&p);
    }
    refuse(r, known);
}

static enum err port_open(struct admin *a, struct http_server **out, int64_t port, struct tls *tls)
{
    const struct http_conf conf = {.host = a->env.conf->bind_address,
                                   .port = (uint16_t)port,
                                   .tls = tls,
                                   .body_max = BODY_MAX};

    return http_open(out, a->env.home, &conf, on_request, a);
}

static enum err ports_open(struct admin *a)
{
    const struct broker_conf *c = a->env.conf;

    if (c->web_port != CONFIG_NO_PORT)
        TRY(port_open(a, &a->http, c->web_port, NULL));
    if (a->env.tls)
        TRY(port_open(a, &a->https, c->web_port_tls, a->env.tls));
    return ERR_OK;
}

enum err admin_open(struct admin **out, const struct admin_env *env)
{
    struct admin *a = mem_new(struct admin);

    a->env = *env;
    list_init(&a->scrapes);
    a->under_way = 1; /* being open */
    enum err err = ports_open(a);
    if (err) {
        http_close(&a->http);
        mem_free(a);
        return err;
    }
    a->clerks = clerks_open(a);
    a->health = health_open(a);
    *out = a;
    return ERR_OK;
}

uint16_t admin_port(const struct admin *a)
{
    return a->http ? http_port(a->http) : 0;
}

uint16_t admin_port_tls(const struct admin *a)
{
    return a->https ? http_port(a->https) : 0;
}

void admin_holds(struct admin *a)
{
    a->under_way++;
}

void admin_lets_go(struct admin *a)
{
    if (--a->under_way > 0)
        return;
    void (*closed)(void *ctx) = a->closed;
    void *ctx = a->closed_ctx;
    clerks_close(&a->clerks);
    mem_free(a);
    closed(ctx);
}

void admin_close(struct admin *a, void (*done)(void *ctx), void *ctx)
{
    health_close(&a->health);
    http_close(&a->http);
    http_close(&a->https);
    a->closed = done;
    a->closed_ctx = ctx;
    admin_lets_go(a);
}
