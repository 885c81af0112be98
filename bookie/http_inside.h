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
http_route_fn on_under_replicated, on_auditor, on_delay, on_set_delay, on_decommission;
http_route_fn on_cluster_info, on_ledgers, on_ledger_metadata;
http_route_fn on_server_config, on_last_log_mark, on_disk_files, on_sanity;

/* Says so itself when it cannot be asked. */
bool http_is_serving(const struct http_admin *a, struct http_request *r);
void http_bookies_count(struct http_admin *a, int by); /* calls that are under way */
http_route_fn on_gc, on_run_gc, on_gc_details, on_gc_state, on_resume_gc, on_gc_suspended,
    on_suspend_compaction, on_resume_compaction;

void http_bookies_wait(struct http_admin *a); /* until no listing is under way; no loop's */

#endif
