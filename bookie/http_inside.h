/* http_inside.h - what the files of the bookie's HTTP share. */
#ifndef BOOKIE_HTTP_INSIDE_H
#define BOOKIE_HTTP_INSIDE_H

#include <pthread.h>

#include "bookie/http_admin.h"
#include "common/http.h"

struct http_admin {
    const struct bookie_conf *conf;
    struct loop *loop;
    struct metadata *meta;
    struct http_server *server;
    struct bookie *bookie; /* NULL: it is not serving */
    bool was_serving;

    pthread_mutex_t lock; /* listings: for the one who closes */
    pthread_cond_t changed;
    unsigned listings; /* calls to the metadata store that are under way */
};

typedef void http_route_fn(struct http_admin *a, struct http_request *r);
http_route_fn on_list_bookies;

void http_bookies_wait(struct http_admin *a); /* until no listing is under way; no loop's */

#endif
