/* http_inside.h - what the files of the bookie's HTTP share. */
#ifndef BOOKIE_HTTP_INSIDE_H
#define BOOKIE_HTTP_INSIDE_H

#include <json-c/json.h>
#include <pthread.h>

#include "bookie/http_admin.h"
#include "common/http.h"

struct index_work;
struct ledger_client;

struct http_admin {
    const struct bookie_conf *conf;
    struct bookie_conf live; /* what has been changed since; strings are conf's */
    struct loop *loop;
    struct metadata *meta;
    struct http_server *server;
    struct bookie *bookie; /* NULL: it is not serving */
    bool was_serving, closing;
    struct ledger_client *client;  /* NULL: nothing was read yet */
    unsigned reads;                /* of ledgers, under way */
    bool asks_bookies;             /* for their space */
    struct index_work *index_work; /* NULL: no index is compacted */

    pthread_mutex_t lock; /* listings: for the one who closes */
    pthread_cond_t changed;
    unsigned listings; /* calls to the metadata store that are under way */
};

typedef void http_route_fn(struct http_admin *a, struct http_request *r);
http_route_fn on_list_bookies, on_list_bookie_info;
http_route_fn on_under_replicated, on_auditor, on_delay, on_set_delay;
http_route_fn on_repair_status, on_set_repair_status, on_trigger_audit;
http_route_fn on_decommission, on_recover;
http_route_fn on_cluster_info, on_ledgers, on_ledger_metadata, on_read_ledger, on_delete_ledger;
http_route_fn on_server_config, on_set_server_config, on_last_log_mark, on_disk_files, on_sanity,
    on_expand_storage;
http_route_fn on_compact_index, on_index_compactions;
http_route_fn on_gc, on_run_gc, on_gc_details, on_gc_state, on_resume_gc, on_gc_suspended,
    on_suspend_compaction, on_resume_compaction;

/* Says so itself when it cannot be asked. */
bool http_is_serving(const struct http_admin *a, struct http_request *r);

/* Calls that are under way: whoever closes waits for them. */
void http_calls_count(struct http_admin *a, int by);
void http_calls_wait(struct http_admin *a); /* until there is none; no loop's */

void http_index_stop(struct http_admin *a); /* http_index.c; not serving, and no loop's */

/* http_json.c: what came, and what goes. */
struct json_object *http_json(struct http_request *r); /* gives; NULL: the body is no JSON */
/* Of an object; borrows; NULL when it is none of this type. */
struct json_object *http_json_member(struct json_object *o, const char *name, json_type type);
bool http_json_flag(struct json_object *o, const char *name);        /* true, or the text "true" */
void http_reply_json(struct http_request *r, struct json_object *o); /* takes o */
void http_reply_json_text(struct http_request *r, char *json);       /* takes json */
void http_reply_json_string(struct http_request *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
