#include "bookie/directories.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"

static enum err refuse(const char *key, const char *value, const char *reason)
{
    log_event(LOG_ERROR, "bookie.config_refused", F_STR("key", key), F_STR("value", value),
              F_STR("reason", reason));
    return ERR_BAD_CONFIG;
}

/* ---- the lists ------------------------------------------------------------------------------ */

static bool has(char *const *at, unsigned n, const char *dir, unsigned *where)
{
    for (*where = 0; *where < n; ++*where)
        if (strcmp(at[*where], dir) == 0)
            return true;
    return false;
}

static enum err take(struct directory_list *l, const char *key, const char *value, const char *at,
                     size_t len)
{
    unsigned where;
    for (; len > 0 && *at == ' '; at++)
        len--;
    while (len > 0 && at[len - 1] == ' ')
        len--;
    if (len == 0)
        return refuse(key, value, "it must name directories");
    if (l->n == DIRECTORY_LIST_MAX)
        return refuse(key, value, "these are too many directories");
    char *dir = mem_string_n(at, len);
    l->at[l->n++] = dir;
    if (has(l->at, l->n - 1, dir, &where))
        return refuse(key, value, "it names a directory twice");
    return ERR_OK;
}

static enum err read_list(struct directory_list *l, const char *key, const char *value)
{
    for (const char *at = value, *comma;; at = comma + 1) {
        comma = strchrnul(at, ',');
        TRY(take(l, key, value, at, (size_t)(comma - at)));
        if (*comma == '\0')
            return ERR_OK;
    }
}

static enum err read_lists(struct directories *d, const struct bookie_conf *c)
{
    TRY(read_list(&d->journals, "journalDirectories", c->journal_directories));
    TRY(read_list(&d->ledgers, "ledgerDirectories", c->ledger_directories));
    if (c->index_directories[0] == '\0')
        return read_list(&d->indexes, "ledgerDirectories", c->ledger_directories);
    TRY(read_list(&d->indexes, "indexDirectories", c->index_directories));
    if (d->indexes.n != d->ledgers.n)
        return refuse("indexDirectories", c->index_directories,
                      "it must name as many directories as ledgerDirectories");
    return ERR_OK;
}

/* ---- making and locking --------------------------------------------------------------------- */

static enum err refuse_dir(const char *dir, enum err err, const char *reason)
{
    log_event(LOG_ERROR, "bookie.directory_refused", F_STR("dir", dir), F_ERR(err),
              F_STR("reason", reason));
    return err;
}

static enum err lock(struct directories *d, unsigned i)
{
    char *path = mem_format("%s/lock", d->roots[i]);
    const enum err err = disk_lock(path, &d->locks[i]);
    mem_free(path);
    if (err)
        return refuse_dir(d->roots[i], err,
                          err == ERR_EXISTS ? "another process uses it" : "it cannot be written");
    return ERR_OK;
}

static enum err make(struct directories *d, struct disk *disk, unsigned i)
{
    enum err err = disk->ops->mkdir(disk, d->currents[i]);
    if (!err)
        err = disk->ops->sync_dir(disk, d->roots[i]);
    if (err)
        return refuse_dir(d->roots[i], err, "it cannot be made");
    return disk == disk_real() ? lock(d, i) : ERR_OK;
}

static const char *name_one(struct directories *d, const char *root)
{
    unsigned i;
    if (has(d->roots, d->n, root, &i))
        return d->currents[i];
    d->roots[d->n] = mem_string(root);
    d->currents[d->n] = mem_format("%s/current", root);
    return d->currents[d->n++];
}

enum err directories_name(struct directories *d, const struct bookie_conf *conf)
{
    *d = (struct directories){0};
    for (unsigned i = 0; i < DIRECTORIES_MAX; i++)
        d->locks[i] = -1;
    TRY(read_lists(d, conf));
    for (unsigned i = 0; i < d->ledgers.n; i++)
        d->ledger_dirs[i] = name_one(d, d->ledgers.at[i]);
    for (unsigned i = 0; i < d->indexes.n; i++)
        d->index_dirs[i] = mem_format("%s/index", name_one(d, d->indexes.at[i]));
    for (unsigned i = 0; i < d->journals.n; i++)
        d->journal_dirs[i] = name_one(d, d->journals.at[i]);
    return ERR_OK;
}

enum err directories_open(struct directories *d, const struct bookie_conf *conf, struct disk *disk)
{
    TRY(directories_name(d, conf));
    for (unsigned i = 0; i < d->n; i++)
        TRY(make(d, disk, i));
    return ERR_OK;
}

static void drop_list(struct directory_list *l)
{
    for (unsigned i = 0; i < l->n; i++)
        mem_free(l->at[i]);
}

void directories_close(struct directories *d)
{
    for (unsigned i = 0; i < d->n; i++) {
        disk_unlock(&d->locks[i]);
        mem_free(d->roots[i]);
        mem_free(d->currents[i]);
    }
    for (unsigned i = 0; i < d->ledgers.n; i++)
        mem_free(d->index_dirs[i]);
    drop_list(&d->journals);
    drop_list(&d->ledgers);
    drop_list(&d->indexes);
    *d = (struct directories){0};
}
