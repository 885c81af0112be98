/* What a bookie says over HTTP of its own storage and settings. */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "bookie/directories.h"
#include "bookie/http_inside.h"
#include "bookie/storage.h"
#include "common/mem.h"

static void reply(struct http_request *r, struct json_object *o) /* takes o */
{
    const char *text =
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    http_reply(r, 200, "application/json", view_of(text, strlen(text)));
    json_object_put(o);
}

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
                                        : value_of(k, (const char *)a->conf + k->offset);
        json_object_object_add(o, k->name, value);
    }
    reply(r, o);
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
        char *name = mem_format("LastLogMark: Journal Id %" PRIu64 "(%016" PRIx64 ".jnl)%s%s",
                                m.file, m.file, s->n_journals > 1 ? " in " : "",
                                s->n_journals > 1 ? s->conf.journal_dirs[i] : "");
        char *at = mem_format("Pos - %" PRIu64, m.offset);
        json_object_object_add(o, name, json_object_new_string(at));
        mem_free(name);
        mem_free(at);
    }
    reply(r, o);
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
        {"journal", ".jnl", d->journal_dirs, d->journals.n},
        {"entrylog", ".log", d->ledger_dirs, d->ledgers.n},
        {"index", "", (const char *const *)d->index_dirs, d->ledgers.n},
    };
    struct json_object *o = json_object_new_object();
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!type || strcmp(type, kinds[i].kind) == 0)
            add_files(o, kinds[i].kind, kinds[i].dirs, kinds[i].n, kinds[i].ending);
    reply(r, o);
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
    reply(r, o);
}
