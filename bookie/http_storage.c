/* What a bookie says over HTTP of its own storage and settings. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bookie/cookie_dirs.h"
#include "bookie/file_ids.h"
#include "bookie/gc.h"
#include "bookie/http_inquiry.h"
#include "bookie/storage.h"
#include "common/config_name.h"
#include "common/log.h"
#include "common/mem.h"
#include "metadata/paths.h"

/* ---- settings -------------------------------------------------------------------------------- */

static struct json_object *value_of(const struct config_key *k, const void *at)
{
    char text[40];
    switch (k->type) {
    case CONFIG_BOOL:
        return json_object_new_string(*(const bool *)at ? "true" : "false");
    case CONFIG_DOUBLE:
        snprintf(text, sizeof text, "%g", *(const double *)at);
        return json_object_new_string(text);
    case CONFIG_STRING:
        return json_object_new_string(*(const char *const *)at ? *(const char *const *)at : "");
    case CONFIG_INT:
    case CONFIG_PORT:
        break;
    }
    snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)at);
    return json_object_new_string(text);
}

/* Settings only; what is secret is not told. */
void on_server_config(struct http_admin *a, struct http_request *r)
{
    const struct config_table *t = &bookie_config_table;
    struct json_object *o = json_object_new_object();
    for (size_t i = 0; i < t->n; i++) {
        const struct config_key *k = &t->keys[i];
        if (k->class != CONFIG_LIVE && k->class != CONFIG_RESTART)
            continue;
        struct json_object *value = strstr(k->name, "assword")
                                        ? json_object_new_string("*****")
                                        : value_of(k, (const char *)&a->live + k->offset);
        json_object_object_add(o, k->name, value);
    }
    http_reply_json(r, o);
}

/* Only what has an effect without a restart is taken.  Each of these is a number or a truth value,
 * so that a copy of the settings owns nothing. */
static const struct config_key *live_key(const char *name)
{
    const struct config_key *k = config_name_find(&bookie_config_table, name);
    return k && k->class == CONFIG_LIVE && k->type != CONFIG_STRING ? k : NULL;
}

/* False: it has been answered. */
static bool take_setting(struct http_request *r, struct bookie_conf *into, const char *name,
                         struct json_object *value)
{
    if (!live_key(name)) {
        http_reply_reason(
            r, 400, "%s: only a restart changes it, and the configuration file is where", name);
        return false;
    }
    char *pair = mem_format("%s=%s", name, value ? json_object_get_string(value) : "");
    const enum err err = config_set(&bookie_config_table, into, pair, "HTTP");
    mem_free(pair);
    if (err)
        http_reply_reason(r, 400, "%s: that is no value for it", name);
    return err == ERR_OK;
}

static void use_settings(struct http_admin *a, struct json_object *body)
{
    json_object_object_foreach(body, name, value)
    {
        log_event(LOG_WARN, "config.changed", F_STR("key", name),
                  F_STR("value", json_object_get_string(value)));
    }
    gc_set(bookie_gc(a->bookie), &a->live);
}

static bool take_settings(struct http_admin *a, struct http_request *r, struct json_object *body)
{
    struct bookie_conf wanted = a->live;
    json_object_object_foreach(body, name, value)
    {
        if (!take_setting(r, &wanted, name, value))
            return false;
    }
    a->live = wanted;
    return true;
}

/* {"name": "value", ...}: all of them, or none; until a restart. */
void on_set_server_config(struct http_admin *a, struct http_request *r)
{
    if (!http_is_serving(a, r))
        return;
    struct json_object *body = http_json(r);
    if (!json_object_is_type(body, json_type_object)) {
        http_reply_reason(r, 400, "the body must be {\"name\": \"value\", ...}");
    } else if (take_settings(a, r, body)) {
        use_settings(a, body);
        http_reply_text(r, 200, "Success set server config.");
    }
    json_object_put(body);
}

/* ---- storage --------------------------------------------------------------------------------- */

/* The least of all directories: where replay would begin. */
static struct journal_mark mark_of(struct storage *s, unsigned journal)
{
    struct journal_mark least = s->devices[0].marks.of[journal];
    pthread_mutex_lock(&s->marks_lock);
    for (unsigned i = 0; i < s->n_devices; i++)
        if (i == 0 || mark_is_before(&s->devices[i].marks.of[journal], &least))
            least = s->devices[i].marks.of[journal];
    pthread_mutex_unlock(&s->marks_lock);
    return least;
}

void on_last_log_mark(struct http_admin *a, struct http_request *r)
{
    if (!http_is_serving(a, r))
        return;
    struct storage *s = bookie_storage(a->bookie);
    struct json_object *o = json_object_new_object();
    for (unsigned i = 0; i < s->n_journals; i++) {
        const struct journal_mark m = mark_of(s, i);
        char *name = mem_format("LastLogMark: Journal Id - %" PRIu64 "(%016" PRIx64 ".jnl)%s%s",
                                m.file, m.file, s->n_journals > 1 ? " in " : "",
                                s->n_journals > 1 ? s->conf.journal_dirs[i] : "");
        char *at = mem_format("Pos - %" PRIu64, m.offset);
        json_object_object_add(o, name, json_object_new_string(at));
        mem_free(name);
        mem_free(at);
    }
    http_reply_json(r, o);
}

struct files {
    const char *ending;
    struct text names;
};

static void note_file(void *ctx, const char *name)
{
    struct files *f = ctx;
    const size_t len = strlen(name), end = strlen(f->ending);
    if (len >= end && strcmp(name + len - end, f->ending) == 0)
        text_add(&f->names, "%s%s", f->names.len ? "\t" : "", name);
}

static void add_files(struct json_object *o, const char *kind, const char *const *dirs, unsigned n,
                      const char *ending)
{
    struct files f = {.ending = ending};
    for (unsigned i = 0; i < n; i++)
        if (disk_real()->ops->list(disk_real(), dirs[i], note_file, &f))
            text_add(&f.names, "%s%s cannot be read", f.names.len ? "\t" : "", dirs[i]);
    char *key = mem_format("%s files", kind);
    json_object_object_add(o, key, json_object_new_string(f.names.at ? f.names.at : ""));
    mem_free(key);
    text_drop(&f.names);
}

/* ?file_type=journal|entrylog|index; without: all three. */
void on_disk_files(struct http_admin *a, struct http_request *r)
{
    const char *type = http_query(r, "file_type");
    if (!http_is_serving(a, r))
        return;
    const struct directories *d = bookie_directories(a->bookie);
    const struct {
        const char *kind, *ending;
        const char *const *dirs;
        unsigned n;
    } kinds[] = {
        {"journal", JOURNAL_ENDING, d->journal_dirs, d->journals.n},
        {"entrylog", ENTRY_LOG_ENDING, d->ledger_dirs, d->ledgers.n},
        {"index", "", (const char *const *)d->index_dirs, d->ledgers.n},
    };
    struct json_object *o = json_object_new_object();
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!type || strcmp(type, kinds[i].kind) == 0)
            add_files(o, kinds[i].kind, kinds[i].dirs, kinds[i].n, kinds[i].ending);
    http_reply_json(r, o);
}

static bool has_failed(const struct storage *s)
{
    for (unsigned i = 0; i < s->n_devices; i++)
        if (s->devices[i].state == DEVICE_FAILED)
            return true;
    return false;
}

/* Registered, and no directory has failed. */
void on_sanity(struct http_admin *a, struct http_request *r)
{
    if (!http_is_serving(a, r))
        return;
    const bool passed = bookie_is_registered(a->bookie) && !has_failed(bookie_storage(a->bookie));
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "passed", json_object_new_boolean(passed));
    json_object_object_add(o, "readOnly", json_object_new_boolean(!bookie_is_writable(a->bookie)));
    http_reply_json(r, o);
}

/* ---- more directories ------------------------------------------------------------------------ */

static void compare_cookie(struct inquiry *q, const struct meta_item *item)
{
    const struct directories *d = q->admin->bookie ? bookie_directories(q->admin->bookie) : NULL;
    struct cookie_record record;
    struct cookie_dirs known;
    if (!d || cookie_record_read(slice_view(item->value), &record))
        return;
    if (cookie_dirs_read(&record, &known) == ERR_OK) {
        const struct cookie_dirs mine = {d->journals, d->ledgers, d->indexes};
        q->counts[0] = !cookie_dirs_missing(&mine, &known);
        cookie_dirs_drop(&known);
    }
    cookie_record_drop(&record);
}

static void tell_expanded(struct inquiry *q)
{
    if (q->counts[0])
        http_reply_text(q->request, 200, "Success expand storage");
    else
        http_reply_reason(q->request, 500, "its cookie does not name all directories in use");
}

/* Directories are added at a start, with allowStorageExpansion: this says whether all those that
 * are in use have been. */
void on_expand_storage(struct http_admin *a, struct http_request *r)
{
    if (!http_is_serving(a, r))
        return;
    struct inquiry *q = inquiry_new(a, r);
    q->own = (struct question){q->key, ASK_KEY, compare_cookie};
    if (path_cookie(bookie_name(a->bookie), q->key))
        inquiry_refuse(q, "its id has no cookie");
    else
        inquiry_ask(q, &q->own, 1, tell_expanded);
}
