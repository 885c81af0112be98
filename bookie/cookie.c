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

enum { DIRS_MAX = 8, COOKIE_MAX = 65536, INCARNATION = 33 /* with the NUL */ };

/* What is in one directory. */
struct local {
    char *path; /* of VERSION */
    bool has_cookie;
    struct cookie_record cookie;
    bool is_empty; /* but for the cookie and the state of integrity */
};

struct check {
    const struct cookie_conf *conf;
    struct disk *disk;
    struct metadata *meta;
    char key[META_KEY_MAX];
    struct local at[DIRS_MAX];
    bool is_registered;
    struct cookie_record registered;
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

/* ERR_NOT_ALLOWED, and said where, unless found is expected in all that counts. */
static enum err compare(const char *where, const struct cookie_record *expected,
                        const struct cookie_record *found)
{
    if (!same(expected->instance_id, found->instance_id))
        return refuse(where, "cluster instance", expected->instance_id, found->instance_id);
    if (!same(expected->bookie_id, found->bookie_id))
        return refuse(where, "bookie id", expected->bookie_id, found->bookie_id);
    if (!same(expected->journal_dirs, found->journal_dirs))
        return refuse(where, "journalDirectories", expected->journal_dirs, found->journal_dirs);
    if (!same(expected->ledger_dirs, found->ledger_dirs))
        return refuse(where, "ledgerDirectories", expected->ledger_dirs, found->ledger_dirs);
    if (!same(expected->incarnation, found->incarnation))
        return refuse(where, "incarnation", expected->incarnation, found->incarnation);
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

static enum err parse(const char *where, struct view text, struct cookie_record *out)
{
    const enum err err = cookie_record_read(text, out);
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

static struct cookie_record configured(const struct cookie_conf *conf, char *incarnation)
{
    return (struct cookie_record){
        .bookie_id = (char *)(uintptr_t)conf->bookie_id,
        .journal_dirs = (char *)(uintptr_t)conf->journal_dirs,
        .ledger_dirs = (char *)(uintptr_t)conf->ledger_dirs,
        .instance_id = (char *)(uintptr_t)conf->instance_id,
        .incarnation = incarnation,
    };
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

/* ---- a bookie that has lost something -------------------------------------------------------- */

static enum err may_be_lost(const struct check *c, unsigned i, bool *lost)
{
    const struct local *l = &c->at[i];
    const char *dir = c->conf->dirs[i];
    if (!l->has_cookie && (!c->conf->may_lose || !l->is_empty))
        return refuse(dir, "its cookie is gone: wiped, or another device", "", "");
    if (l->has_cookie &&
        (!c->conf->may_lose || same(c->registered.incarnation, l->cookie.incarnation)))
        return compare(dir, &c->registered, &l->cookie);
    struct cookie_record earlier = c->registered;
    if (l->has_cookie)
        earlier.incarnation = l->cookie.incarnation;
    if (l->has_cookie)
        TRY(compare(dir, &earlier, &l->cookie));
    log_event(
        LOG_WARN, "bookie.directory_lost", F_STR("dir", dir),
        F_STR("found", l->has_cookie ? "an earlier incarnation" : "no cookie, and it is empty"));
    *lost = true;
    return ERR_OK;
}

/* In the metadata first: a directory that was not stamped then is an earlier one's, and lost. */
static enum err renew(const struct check *c)
{
    char fresh[INCARNATION];
    new_incarnation(fresh);
    const struct cookie_record mine = configured(c->conf, fresh);
    TRY(say_lost(c));
    struct slice text = cookie_record_write(&mine);
    enum err err = meta_put_wait(c->meta, c->key, slice_share(text), c->version);
    if (!err)
        err = stamp_dirs(c, slice_view(text), true);
    slice_drop(&text);
    TRY(err);
    log_event(LOG_WARN, "bookie.cookie_renewed", F_STR("bookie", c->conf->bookie_id),
              F_STR("incarnation", fresh), F_STR("before", c->registered.incarnation));
    return ERR_OK;
}

static enum err all_must_match(const struct check *c)
{
    const struct cookie_record mine = configured(c->conf, c->registered.incarnation);
    bool lost = false;
    TRY(compare(c->key, &mine, &c->registered));
    for (unsigned i = 0; i < c->conf->n; i++)
        TRY(may_be_lost(c, i, &lost));
    return lost ? renew(c) : ERR_OK;
}

/* ---- a new one ------------------------------------------------------------------------------- */

static enum err stamp(const struct check *c, const struct cookie_record *mine)
{
    TRY(say_lost(c));
    struct slice text = cookie_record_write(mine);
    const enum err err = stamp_dirs(c, slice_view(text), false);
    if (err)
        slice_drop(&text);
    TRY(err);
    return meta_put_wait(c->meta, c->key, text, META_ABSENT);
}

/* An earlier first start may have stamped some directories: its incarnation goes on. */
static enum err first_start(const struct check *c)
{
    char fresh[INCARNATION];
    struct cookie_record mine = configured(c->conf, fresh);
    new_incarnation(fresh);
    for (unsigned i = 0; i < c->conf->n; i++)
        if (c->at[i].has_cookie)
            mine.incarnation = c->at[i].cookie.incarnation;
    for (unsigned i = 0; i < c->conf->n; i++) {
        if (c->at[i].has_cookie)
            TRY(compare(c->conf->dirs[i], &mine, &c->at[i].cookie));
        if (!c->at[i].is_empty)
            return refuse(c->conf->dirs[i],
                          "it holds data, and the cluster knows no cookie of this bookie", "", "");
    }
    TRY(stamp(c, &mine));
    log_event(LOG_INFO, "bookie.cookie_created", F_STR("bookie", c->conf->bookie_id),
              F_STR("incarnation", mine.incarnation));
    return ERR_OK;
}

static enum err decide(struct check *c)
{
    for (unsigned i = 0; i < c->conf->n; i++)
        TRY(look_into(c, i));
    TRY(look_into_metadata(c));
    return c->is_registered ? all_must_match(c) : first_start(c);
}

enum err cookie_check(const struct cookie_conf *conf, struct disk *disk, struct metadata *meta)
{
    struct check *c = mem_new(struct check);
    *c = (struct check){.conf = conf, .disk = disk, .meta = meta};
    const enum err err = conf->n <= DIRS_MAX ? decide(c) : ERR_TOO_BIG;
    for (unsigned i = 0; i < conf->n && i < DIRS_MAX; i++) {
        mem_free(c->at[i].path);
        cookie_record_drop(&c->at[i].cookie);
    }
    cookie_record_drop(&c->registered);
    mem_free(c);
    return err;
}
