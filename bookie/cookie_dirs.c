#include "bookie/cookie_dirs.h"

#include <string.h>

#include "common/mem.h"

/* ---- text ----------------------------------------------------------------------------------- */

static char *join(const struct directory_list *l, const char *first, const char *between)
{
    char *text = mem_string(first);
    for (unsigned i = 0; i < l->n; i++) {
        char *more = mem_format("%s%s%s", text, i || *first ? between : "", l->at[i]);
        mem_free(text);
        text = more;
    }
    return text;
}

static char *counted(const struct directory_list *l)
{
    char *count = mem_format("%u", l->n);
    char *text = join(l, count, "\t");
    mem_free(count);
    return text;
}

static bool same_lists(const struct directory_list *a, const struct directory_list *b)
{
    for (unsigned i = 0; i < a->n && i < b->n; i++)
        if (strcmp(a->at[i], b->at[i]) != 0)
            return false;
    return a->n == b->n;
}

void cookie_dirs_write(const struct cookie_dirs *d, struct cookie_record *into)
{
    into->journal_dirs = join(&d->journals, "", ",");
    into->ledger_dirs = counted(&d->ledgers);
    into->index_dirs = same_lists(&d->indexes, &d->ledgers) ? NULL : counted(&d->indexes);
}

static enum err split(struct directory_list *l, const char *text, char between)
{
    for (const char *at = text, *end;; at = end + 1) {
        end = strchrnul(at, between);
        if (l->n == DIRECTORY_LIST_MAX)
            return ERR_TOO_BIG;
        l->at[l->n++] = mem_string_n(at, (size_t)(end - at));
        if (*end == '\0')
            return ERR_OK;
    }
}

/* Behind the count, or with commas. */
static enum err read_list(struct directory_list *l, const char *text)
{
    const char *tab = strchr(text, '\t');
    return tab ? split(l, tab + 1, '\t') : split(l, text, ',');
}

enum err cookie_dirs_read(const struct cookie_record *r, struct cookie_dirs *out)
{
    *out = (struct cookie_dirs){0};
    enum err err = split(&out->journals, r->journal_dirs, ',');
    if (!err)
        err = read_list(&out->ledgers, r->ledger_dirs);
    if (!err)
        err = read_list(&out->indexes, r->index_dirs ? r->index_dirs : r->ledger_dirs);
    if (!err && out->indexes.n != out->ledgers.n)
        err = ERR_MALFORMED;
    if (err)
        cookie_dirs_drop(out);
    return err;
}

static void drop_list(struct directory_list *l)
{
    for (unsigned i = 0; i < l->n; i++)
        mem_free(l->at[i]);
    l->n = 0;
}

void cookie_dirs_drop(struct cookie_dirs *d)
{
    drop_list(&d->journals);
    drop_list(&d->ledgers);
    drop_list(&d->indexes);
}

/* ---- which ---------------------------------------------------------------------------------- */

static int find(const struct directory_list *l, const char *dir)
{
    for (unsigned i = 0; i < l->n; i++)
        if (strcmp(l->at[i], dir) == 0)
            return (int)i;
    return -1;
}

bool cookie_dirs_name(const struct cookie_dirs *d, const char *dir)
{
    return find(&d->journals, dir) >= 0 || find(&d->ledgers, dir) >= 0 ||
           find(&d->indexes, dir) >= 0;
}

const char *cookie_dirs_missing(const struct cookie_dirs *some, const struct cookie_dirs *all)
{
    for (unsigned i = 0; i < some->journals.n; i++)
        if (find(&all->journals, some->journals.at[i]) < 0)
            return "journalDirectories";
    for (unsigned i = 0; i < some->ledgers.n; i++) {
        const int at = find(&all->ledgers, some->ledgers.at[i]);
        if (at < 0)
            return "ledgerDirectories";
        if (strcmp(all->indexes.at[at], some->indexes.at[i]) != 0)
            return "indexDirectories";
    }
    return NULL;
}
