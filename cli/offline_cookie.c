/* lgm bookie cookie - whose directories these are, here and in the metadata store. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/offline.h"
#include "cli/offline_tell.h"
#include "cli/store.h"
#include "common/mem.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { COOKIE_MAX = 65536 };

static void tell(const struct offline *o, const char *where, const struct cookie_record *c)
{
    offline_tell(o->json, "cookie", SAY_STR("at", where), SAY_STR("bookieId", c->bookie_id),
                 SAY_STR("journalDirs", c->journal_dirs), SAY_STR("ledgerDirs", c->ledger_dirs),
                 SAY_STR("indexDirs", c->index_dirs), SAY_STR("instanceId", c->instance_id),
                 SAY_STR("incarnation", c->incarnation));
}

static int show_text(const struct offline *o, const char *where, struct view text)
{
    struct cookie_record c;
    const enum err err = cookie_record_read(text, &c);
    if (err)
        return offline_fail(o, where, err);
    tell(o, where, &c);
    cookie_record_drop(&c);
    return EXIT_DONE;
}

static int show_file(const struct offline *o, const char *path)
{
    char *text;
    size_t len;
    const enum err err = disk_load(disk_real(), path, COOKIE_MAX, &text, &len);
    if (err)
        return offline_fail(o, path, err);
    const int code = show_text(o, path, view_of(text, len));
    mem_free(text);
    return code;
}

static int show_dirs(const struct offline *o)
{
    int worst = EXIT_DONE;
    for (unsigned i = 0; i < o->dirs.n; i++) {
        char *path = mem_format("%s/VERSION", o->dirs.currents[i]);
        const int code = show_file(o, path);
        worst = code == EXIT_DONE ? worst : code;
        mem_free(path);
    }
    return worst;
}

/* ---- in the metadata store ------------------------------------------------------------------- */

static int show_registered(const struct offline *o, const char *key)
{
    struct slice value = {0};
    const enum err err = meta_get_wait(o->meta, key, &value, NULL);
    if (err)
        return offline_fail(o, key, err);
    const int code = show_text(o, key, slice_view(value));
    slice_drop(&value);
    return code;
}

static int create(const struct offline *o, const char *key, const char *bookie, const char *path)
{
    struct cookie_record c;
    char *text;
    size_t len;
    enum err err = disk_load(disk_real(), path, COOKIE_MAX, &text, &len);
    if (!err)
        err = cookie_record_read(view_of(text, len), &c);
    if (err)
        return offline_fail(o, path, err);
    if (strcmp(c.bookie_id, bookie) != 0) {
        fprintf(stderr, "lgm bookie cookie: %s is the cookie of %s\n", path, c.bookie_id);
        err = ERR_NOT_ALLOWED;
    } else {
        err = meta_put_wait(o->meta, key, slice_copy(text, len), META_ABSENT);
        err = err == ERR_BAD_VERSION ? ERR_EXISTS : err;
    }
    cookie_record_drop(&c);
    mem_free(text);
    return err ? offline_fail(o, key, err) : show_registered(o, key);
}

/* One of a bookie that lives would only be missed at its next start. */
static int check_gone(const struct offline *o, const char *bookie)
{
    char writable[META_KEY_MAX], readonly[META_KEY_MAX];
    enum err err = path_bookie(bookie, false, writable);
    if (!err)
        err = path_bookie(bookie, true, readonly);
    const bool lives = !err && store_has(o->meta, writable, &err);
    const bool lives_readonly = !err && store_has(o->meta, readonly, &err);
    if (err)
        return offline_fail(o, bookie, err);
    if (!lives && !lives_readonly)
        return EXIT_DONE;
    fprintf(stderr, "lgm bookie cookie: %s is registered: stop it first\n", bookie);
    return EXIT_FAILED;
}

static int delete (const struct offline *o, const char *key, const char *bookie)
{
    int code = show_registered(o, key);
    if (code == EXIT_DONE)
        code = check_gone(o, bookie);
    if (code != EXIT_DONE)
        return code;
    if (!o->force && !store_asks("Without it the bookie cannot start again with its data, and "
                                 "whatever names it counts as lost.  `lgm bookie decommission` "
                                 "makes copies first.  Delete the cookie?"))
        return EXIT_FAILED;
    const enum err err = store_remove(o->meta, &key, 1);
    return err ? offline_fail(o, key, err) : EXIT_DONE;
}

/* ---- what is to be done ---------------------------------------------------------------------- */

static int with_store(struct offline *o, const char *verb, const char *bookie)
{
    char key[META_KEY_MAX];
    const char *url = o->url ? o->url : o->conf.metadata_service_uri;
    if (path_cookie(bookie, key))
        return usage_error("bookie", "'%s' cannot be a bookie's id", bookie);
    const int code = cli_store_open("bookie", url, &o->etcd, &o->meta);
    if (code != EXIT_DONE)
        return code;
    if (strcmp(verb, "show") == 0)
        return show_registered(o, key);
    if (strcmp(verb, "delete") == 0)
        return delete (o, key, bookie);
    return create(o, key, bookie, o->words[2]);
}

int offline_cookie(struct offline *o)
{
    const char *verb = o->n_words > 0 ? o->words[0] : "";
    if (strcmp(verb, "show") == 0 && o->n_words == 1)
        return offline_name_dirs(o) == EXIT_DONE ? show_dirs(o) : EXIT_FAILED;
    const bool fits = (strcmp(verb, "show") == 0 && o->n_words == 2) ||
                      (strcmp(verb, "delete") == 0 && o->n_words == 2) ||
                      (strcmp(verb, "create") == 0 && o->n_words == 3);
    if (!fits)
        return usage_error("bookie", "cookie takes show, show ID, create ID FILE, or delete ID");
    return with_store(o, verb, o->words[1]);
}
