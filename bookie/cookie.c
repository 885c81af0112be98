#include "bookie/cookie.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bookie/integrity_file.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { COOKIE_MAX = 256 * 1024, INCARNATION = 33 /* with the NUL */ };

struct cookie {
    struct cookie_record record;
    struct cookie_dirs dirs;
};

/* What is in one directory. */
struct local {
    char *path; /* of VERSION */
    bool has_cookie;
    struct cookie cookie;
    bool is_empty; /* but for the cookie and the state of integrity */
};

struct check {
    const struct cookie_conf *conf;
    struct disk *disk;
    struct metadata *meta;
    char key[META_KEY_MAX];
    struct local at[DIRECTORIES_MAX];
    bool is_registered;
    struct cookie registered;
    int64_t version; /* of the registered one */
};

static enum err refuse(const char *where, const char *what, const char *expected, const char *found)
{
    log_event(LOG_ERROR, "bookie.cookie_refused", F_STR("dir", where), F_STR("differs", what),
              F_STR("expected", expected ? expected : ""), F_STR("found", found ? found : ""));
    return ERR_NOT_ALLOWED;
}

static bool same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static const char *list_of(const struct cookie_record *r, const char *key)
{
    if (same(key, "journalDirectories"))
        return r->journal_dirs;
    return same(key, "indexDirectories") && r->index_dirs ? r->index_dirs : r->ledger_dirs;
}

/* Both of the same bookie? */
static enum err compare_names(const char *where, const struct cookie_record *expected,
                              const struct cookie_record *found)
{
    if (!same(expected->instance_id, found->instance_id))
        return refuse(where, "cluster instance", expected->instance_id, found->instance_id);
    if (!same(expected->bookie_id, found->bookie_id))
        return refuse(where, "bookie id", expected->bookie_id, found->bookie_id);
    if (!same(expected->incarnation, found->incarnation))
        return refuse(where, "incarnation", expected->incarnation, found->incarnation);
    return ERR_OK;
}

/* ERR_NOT_ALLOWED, and said where, unless found is expected in all that counts; it may name more
 * directories. */
static enum err compare(const char *where, const struct cookie *expected,
                        const struct cookie *found)
{
    TRY(compare_names(where, &expected->record, &found->record));
    const char *key = cookie_dirs_missing(&expected->dirs, &found->dirs);
    if (key)
        return refuse(where, key, list_of(&expected->record, key), list_of(&found->record, key));
    return ERR_OK;
}

/* ---- looking -------------------------------------------------------------------------------- */

static void note_name(void *ctx, const char *name)
{
    struct local *l = ctx;
    if (strncmp(name, "VERSION", strlen("VERSION")) != 0 &&
        strncmp(name, INTEGRITY_FILE, strlen(INTEGRITY_FILE)) != 0)
        l->is_empty = false;
}

static enum err parse(const char *where, struct view text, struct cookie *out)
{
    enum err err = cookie_record_read(text, &out->record);
    if (!err)
        err = cookie_dirs_read(&out->record, &out->dirs);
    return err ? refuse(where, "a cookie that cannot be read", "", err_name(err)) : ERR_OK;
}

static enum err look_into(struct check *c, unsigned i)
{
    struct local *l = &c->at[i];
    char *text;
    size_t len;
    l->path = mem_format("%s/VERSION", c->conf->dirs[i]);
    l->is_empty = true;
    TRY(c->disk->ops->list(c->disk, c->conf->dirs[i], note_name, l));
    enum err err = disk_load(c->disk, l->path, COOKIE_MAX, &text, &len);
    if (err == ERR_NOT_FOUND)
        return ERR_OK;
    TRY(err);
    l->has_cookie = true;
    err = parse(c->conf->dirs[i], view_of(text, len), &l->cookie);
    mem_free(text);
    return err;
}

static enum err look_into_metadata(struct check *c)
{
    struct slice value = {0};
    TRY(path_cookie(c->conf->bookie_id, c->key));
    enum err err = meta_get_wait(c->meta, c->key, &value, &c->version);
    if (err == ERR_NOT_FOUND)
        return ERR_OK;
    TRY(err);
    c->is_registered = true;
    err = parse(c->key, slice_view(value), &c->registered);
    slice_drop(&value);
    return err;
}

/* ---- deciding ------------------------------------------------------------------------------- */

/* Its three lists are to be dropped. */
static struct cookie configured(const struct cookie_conf *conf, char *incarnation)
{
    struct cookie c = {.record = {.bookie_id = (char *)(uintptr_t)conf->bookie_id,
                                  .instance_id = (char *)(uintptr_t)conf->instance_id,
                                  .incarnation = incarnation},
                       .dirs = conf->named};
    cookie_dirs_write(&c.dirs, &c.record);
    return c;
}

static void drop_lists(struct cookie *c)
{
    mem_free(c->record.journal_dirs);
    mem_free(c->record.ledger_dirs);
    mem_free(c->record.index_dirs);
}

static void new_incarnation(char into[INCARNATION])
{
    uint8_t random[(INCARNATION - 1) / 2];
    rng_bytes(random, sizeof random);
    for (unsigned i = 0; i < sizeof random; i++)
        snprintf(into + (size_t)2 * i, 3, "%02x", random[i]);
}

/* Durable before the first stamp: whatever a crash leaves, the next start looks for ledgers that
 * may have lost something here. */
static enum err say_lost(const struct check *c)
{
    for (unsigned i = 0; i < c->conf->n; i++)
        TRY(integrity_raise(c->disk, c->conf->dirs[i], INTEGRITY_SCAN));
    return ERR_OK;
}

static enum err stamp_dirs(const struct check *c, struct view text, bool all)
{
    for (unsigned i = 0; i < c->conf->n; i++)
        if (all || !c->at[i].has_cookie)
            TRY(disk_store(c->disk, c->at[i].path, text.base, text.len));
    return ERR_OK;
}

/* The directories first: one that the metadata names has its cookie. */
static enum err stamp(const struct check *c, const struct cookie *mine, bool all, int64_t expected)
{
    struct slice text = cookie_record_write(&mine->record);
    const enum err err = stamp_dirs(c, slice_view(text), all);
    if (err)
        slice_drop(&text);
    TRY(err);
    return meta_put_wait(c->meta, c->key, text, expected);
}

/* ---- a known one ---------------------------------------------------------------------------- */

static enum err lost(const char *dir, const char *found, bool *is_lost)
{
    log_event(LOG_WARN, "bookie.directory_lost", F_STR("dir", dir), F_STR("found", found));
    *is_lost = true;
    return ERR_OK;
}

static enum err check_without(const struct check *c, unsigned i, bool *is_lost)
{
    const struct local *l = &c->at[i];
    const char *dir = c->conf->dirs[i];
    const bool is_known = cookie_dirs_name(&c->registered.dirs, c->conf->roots[i]);
    if (is_known && (!c->conf->may_lose || !l->is_empty))
        return refuse(dir, "its cookie is gone: wiped, or another device", "", "");
    if (is_known)
        return lost(dir, "no cookie, and it is empty", is_lost);
    return l->is_empty ? ERR_OK : refuse(dir, "it is to be added and is not empty", "", "");
}

static enum err check_with(const struct check *c, unsigned i, bool *is_lost)
{
    const struct cookie *found = &c->at[i].cookie;
    const char *dir = c->conf->dirs[i];
    if (!c->conf->may_lose || same(c->registered.record.incarnation, found->record.incarnation))
        return compare(dir, &c->registered, found);
    struct cookie earlier = c->registered;
    earlier.record.incarnation = found->record.incarnation;
    TRY(compare(dir, &earlier, found));
    return lost(dir, "an earlier incarnation", is_lost);
}

/* In the metadata first: a directory that was not stamped then is an earlier one's, and lost. */
static enum err renew(const struct check *c, struct cookie *mine)
{
    char fresh[INCARNATION];
    new_incarnation(fresh);
    mine->record.incarnation = fresh;
    TRY(say_lost(c));
    struct slice text = cookie_record_write(&mine->record);
    enum err err = meta_put_wait(c->meta, c->key, slice_share(text), c->version);
    if (!err)
        err = stamp_dirs(c, slice_view(text), true);
    slice_drop(&text);
    TRY(err);
    log_event(LOG_WARN, "bookie.cookie_renewed", F_STR("bookie", c->conf->bookie_id),
              F_STR("incarnation", fresh), F_STR("before", c->registered.record.incarnation));
    return ERR_OK;
}

static enum err expand(const struct check *c, const struct cookie *mine)
{
    TRY(stamp(c, mine, true, c->version));
    log_event(LOG_INFO, "bookie.storage_expanded", F_STR("bookie", c->conf->bookie_id),
              F_STR("journals", mine->record.journal_dirs),
              F_STR("ledgers", mine->record.ledger_dirs));
    return ERR_OK;
}

static enum err start_as(const struct check *c, struct cookie *mine)
{
    bool is_lost = false;
    TRY(compare(c->key, &c->registered, mine));
    const char *more = cookie_dirs_missing(&mine->dirs, &c->registered.dirs);
    if (more && !c->conf->may_expand)
        return refuse(c->key, more, list_of(&c->registered.record, more),
                      list_of(&mine->record, more));
    for (unsigned i = 0; i < c->conf->n; i++)
        TRY(c->at[i].has_cookie ? check_with(c, i, &is_lost) : check_without(c, i, &is_lost));
    if (is_lost)
        return renew(c, mine);
    return more ? expand(c, mine) : ERR_OK;
}

static enum err registered_start(const struct check *c)
{
    struct cookie mine = configured(c->conf, c->registered.record.incarnation);
    const enum err err = start_as(c, &mine);
    drop_lists(&mine);
    return err;
}

/* ---- a new one ------------------------------------------------------------------------------- */

/* An earlier first start may have stamped some directories: its incarnation goes on. */
static enum err first_start_as(const struct check *c, struct cookie *mine)
{
    for (unsigned i = 0; i < c->conf->n; i++)
        if (c->at[i].has_cookie)
            mine->record.incarnation = c->at[i].cookie.record.incarnation;
    for (unsigned i = 0; i < c->conf->n; i++) {
        const struct local *l = &c->at[i];
        if (l->has_cookie) {
            TRY(compare(c->conf->dirs[i], mine, &l->cookie));
            TRY(compare(c->conf->dirs[i], &l->cookie, mine));
        }
        if (!l->is_empty)
            return refuse(c->conf->dirs[i],
                          "it holds data, and the cluster knows no cookie of this bookie", "", "");
    }
    TRY(say_lost(c));
    TRY(stamp(c, mine, false, META_ABSENT));
    log_event(LOG_INFO, "bookie.cookie_created", F_STR("bookie", c->conf->bookie_id),
              F_STR("incarnation", mine->record.incarnation));
    return ERR_OK;
}

static enum err first_start(const struct check *c)
{
    char fresh[INCARNATION];
    new_incarnation(fresh);
    struct cookie mine = configured(c->conf, fresh);
    const enum err err = first_start_as(c, &mine);
    drop_lists(&mine);
    return err;
}

static enum err decide(struct check *c)
{
    for (unsigned i = 0; i < c->conf->n; i++)
        TRY(look_into(c, i));
    TRY(look_into_metadata(c));
    return c->is_registered ? registered_start(c) : first_start(c);
}

static void drop(struct cookie *c)
{
    cookie_record_drop(&c->record);
    cookie_dirs_drop(&c->dirs);
}

enum err cookie_check(const struct cookie_conf *conf, struct disk *disk, struct metadata *meta)
{
    struct check *c = mem_new(struct check);
    *c = (struct check){.conf = conf, .disk = disk, .meta = meta};
    const enum err err = conf->n <= DIRECTORIES_MAX ? decide(c) : ERR_TOO_BIG;
    for (unsigned i = 0; i < conf->n && i < DIRECTORIES_MAX; i++) {
        mem_free(c->at[i].path);
        drop(&c->at[i].cookie);
    }
    drop(&c->registered);
    mem_free(c);
    return err;
}
