/* Who is alive, from the metadata store: GET /api/v1/bookie/list_bookies?type=rw|ro. */
#include <string.h>

#include "bookie/http_inside.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { PAGE = 1000 };

struct listing {
    struct meta_call call;
    struct http_admin *admin;
    struct http_request *request;
    struct json_object *bookies;
    bool read_only, with_hosts;
};

void http_calls_count(struct http_admin *a, int by)
{
    pthread_mutex_lock(&a->lock);
    a->listings += (unsigned)by;
    pthread_mutex_unlock(&a->lock);
    pthread_cond_broadcast(&a->changed);
}

void http_calls_wait(struct http_admin *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->listings > 0)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

static const char *prefix(const struct listing *l)
{
    return l->read_only ? PATH_BOOKIES_READONLY : PATH_BOOKIES;
}

static void end(struct listing *l, enum err err)
{
    struct http_admin *a = l->admin;
    if (err) {
        http_reply_reason(l->request, 503, "the metadata store cannot be asked: %s", err_text(err));
    } else {
        http_reply_json(l->request, json_object_get(l->bookies));
    }
    json_object_put(l->bookies);
    mem_free(l);
    http_calls_count(a, -1);
}

/* The read-only ones lie below the others. */
static void take(struct listing *l, const struct meta_item *item)
{
    struct bookie_record record = {0};
    const char *id = item->key + strlen(prefix(l));
    struct json_object *host = NULL;
    if (strchr(id, '/'))
        return;
    if (l->with_hosts && bookie_record_read(id, slice_view(item->value), &record) == ERR_OK) {
        host = json_object_new_string(record.host);
        bookie_record_drop(&record);
    }
    json_object_object_add(l->bookies, id, host);
}

static void listed(struct meta_call *call, const struct meta_reply *r)
{
    struct listing *l = container_of(call, struct listing, call);
    for (size_t i = 0; !r->err && i < r->count; i++)
        take(l, &r->items[i]);
    if (!r->err && r->more)
        meta_range(l->admin->meta, prefix(l), r->items[r->count - 1].key, PAGE, !l->with_hosts,
                   &l->call);
    else
        end(l, r->err);
}

static bool is(const char *value, const char *what)
{
    return value && strcmp(value, what) == 0;
}

void on_list_bookies(struct http_admin *a, struct http_request *r)
{
    struct listing *l = mem_new(struct listing);
    l->call = (struct meta_call){.home = a->loop, .done = listed};
    l->admin = a;
    l->request = r;
    l->bookies = json_object_new_object();
    l->read_only = is(http_query(r, "type"), "ro");
    l->with_hosts = is(http_query(r, "print_hostnames"), "true");
    http_calls_count(a, 1);
    meta_range(a->meta, prefix(l), NULL, PAGE, !l->with_hosts, &l->call);
}
