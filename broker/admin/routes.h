/* routes.h - which handler takes a request, and what it needs. */
#ifndef BROKER_ADMIN_ROUTES_H
#define BROKER_ADMIN_ROUTES_H

#include <stdbool.h>

#include "broker/admin/admin.h"
#include "common/http.h"
#include "common/list.h"

struct clerks;
struct health;

struct admin {
    struct admin_env env;
    struct http_server *http, *https; /* NULL: that port is not open */
    struct clerks *clerks;
    struct health *health;
    unsigned under_way;
    bool scraping;            /* metrics are being sent */
    struct list_node scrapes; /* those that wait for that */
    unsigned n_scrapes;
    void (*closed)(void *ctx); /* NULL: it is open */
    void *closed_ctx;
};

enum { SEGMENTS_MAX = 8 };

/* The {} of the route's path, decoded; borrowed. */
struct segments_of_path {
    unsigned n;
    bool forms; /* a + is a space */
    char *at[SEGMENTS_MAX];
};

typedef void route_fn(struct admin *a, struct http_request *r, const struct segments_of_path *p);
#define X(method, path, handler, action) route_fn handler;
#include "broker/admin/routes.def"
#undef X

/* Gives the segments when it says true. */
bool route_matches(const char *pattern, const char *path, struct segments_of_path *out);
void route_segments_drop(struct segments_of_path *p);

void admin_holds(struct admin *a);
void admin_lets_go(struct admin *a); /* may free it */

#endif
