/* Compaction of the index over HTTP: /api/v1/bookie/entry_location_compact, as BookKeeper has it.
 *
 *   PUT --> a thread: one index after the other --> GET: which of them is not over yet
 *
 * It ends with the bookie's serving. */
#include <stdatomic.h>
#include <string.h>

#include "bookie/directories.h"
#include "bookie/entry_index.h"
#include "bookie/http_inside.h"
#include "bookie/storage.h"
#include "common/mem.h"

struct index_work {
    struct storage *storage;
    pthread_t thread;
    atomic_bool stopping;
    atomic_bool is_due[DEVICES_MAX]; /* under way, or one of the next */
};

static void *compact_all(void *arg)
{
    struct index_work *w = arg;
    for (unsigned i = 0; i < w->storage->n_devices && !atomic_load(&w->stopping); i++) {
        if (!atomic_load(&w->is_due[i]))
            continue;
        entry_index_compact(w->storage->devices[i].index);
        atomic_store(&w->is_due[i], false);
    }
    return NULL;
}

static void end(struct http_admin *a)
{
    pthread_join(a->index_work->thread, NULL);
    mem_free(a->index_work);
    a->index_work = NULL;
}

void http_index_stop(struct http_admin *a)
{
    struct index_work *w = a->index_work;
    if (!w)
        return;
    atomic_store(&w->stopping, true);
    for (unsigned i = 0; i < w->storage->n_devices; i++)
        entry_index_stop_compacting(w->storage->devices[i].index);
    end(a);
}

static bool start(struct http_admin *a, const bool *is_wanted)
{
    struct index_work *w = mem_new(struct index_work);
    w->storage = bookie_storage(a->bookie);
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        atomic_store(&w->is_due[i], is_wanted[i]);
    if (pthread_create(&w->thread, NULL, compact_all, w)) {
        mem_free(w);
        return false;
    }
    pthread_setname_np(w->thread, "index");
    a->index_work = w;
    return true;
}

static bool is_due(struct http_admin *a, unsigned i)
{
    return a->index_work && atomic_load(&a->index_work->is_due[i]);
}

static bool is_over(struct http_admin *a)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        if (is_due(a, i))
            return false;
    return true;
}

void on_index_compactions(struct http_admin *a, struct http_request *r)
{
    if (!http_is_serving(a, r))
        return;
    const struct directories *d = bookie_directories(a->bookie);
    struct json_object *o = json_object_new_object();
    for (unsigned i = 0; i < d->ledgers.n; i++)
        json_object_object_add(o, d->index_dirs[i], json_object_new_boolean(is_due(a, i)));
    http_reply_json(r, o);
}

/* Paths with commas between them, as the GET tells them; false: one is none of ours. */
static bool choose(const struct directories *d, const char *paths, bool *is_wanted)
{
    for (const char *at = paths, *end_of;; at = end_of + 1) {
        end_of = strchrnul(at, ',');
        const size_t len = (size_t)(end_of - at);
        bool is_known = false;
        for (unsigned i = 0; i < d->ledgers.n; i++)
            if (strlen(d->index_dirs[i]) == len && memcmp(d->index_dirs[i], at, len) == 0)
                is_known = is_wanted[i] = true;
        if (!is_known)
            return false;
        if (*end_of == '\0')
            return true;
    }
}

/* RocksDB writes all of it anew before anything of the old goes. */
static bool has_room(const struct http_admin *a, const bool *is_wanted)
{
    const struct storage *s = bookie_storage(a->bookie);
    for (unsigned i = 0; i < s->n_devices; i++)
        if (is_wanted[i] && atomic_load(&s->devices[i].is_tight))
            return false;
    return true;
}

static void trigger(struct http_admin *a, struct http_request *r, const char *paths)
{
    bool is_wanted[DEVICES_MAX] = {false};
    const struct directories *d = bookie_directories(a->bookie);
    for (unsigned i = 0; !*paths && i < d->ledgers.n; i++)
        is_wanted[i] = true;
    if (a->index_work && is_over(a))
        end(a);
    if (*paths && !choose(d, paths, is_wanted))
        http_reply_reason(r, 400, "Specified trigger compact entryLocations: %s is invalid", paths);
    else if (a->index_work)
        http_reply_reason(r, 503, "one is under way");
    else if (!has_room(a, is_wanted))
        http_reply_reason(r, 503, "there is too little room for it");
    else if (!start(a, is_wanted))
        http_reply_reason(r, 503, "there is no thread for it");
    else if (*paths)
        http_reply_json_string(r, "Triggered entry Location RocksDB: %s compact on bookie:%s.",
                               paths, bookie_name(a->bookie));
    else
        http_reply_json_string(r, "Triggered entry Location RocksDB compact on bookie:%s",
                               bookie_name(a->bookie));
}

/* {"entryLocationRocksDBCompact": true, "entryLocations": "PATH,..."} */
void on_compact_index(struct http_admin *a, struct http_request *r)
{
    if (!http_is_serving(a, r))
        return;
    struct json_object *body = http_json(r);
    struct json_object *paths = http_json_member(body, "entryLocations", json_type_string);
    if (!json_object_is_type(body, json_type_object))
        http_reply_reason(r, 400, "the body must be {\"entryLocationRocksDBCompact\": true}");
    else if (!http_json_flag(body, "entryLocationRocksDBCompact"))
        http_reply_text(r, 200, "Not trigger Entry Location RocksDB compact.");
    else
        trigger(a, r, paths ? json_object_get_string(paths) : "");
    json_object_put(body);
}
