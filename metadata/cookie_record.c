#include <string.h>

#include "common/mem.h"
#include "metadata/records.h"
#include "metadata/text_proto.h"

static const char version_line[] = "5\n", incarnation_line[] = "# incarnation: ";

/* To BookKeeper's parser a comment.  A quoted string has no line end in it, so a line that
 * begins so is one. */
static char *find_incarnation(struct view text)
{
    const char *at = (const char *)text.base, *end = at + text.len;

    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at), skip = strlen(incarnation_line);
        if (len > skip && memcmp(at, incarnation_line, skip) == 0 && !memchr(at, '\0', len))
            return mem_string_n(at + skip, len - skip);
        at = stop ? stop + 1 : end;
    }
    return NULL;
}

static enum err take(struct text_reader *r, struct text_field *f, struct cookie_record *c)
{
    if (text_is(f, "bookieHost"))
        return text_string(f, &c->bookie_id);
    if (text_is(f, "journalDir"))
        return text_string(f, &c->journal_dirs);
    if (text_is(f, "ledgerDirs"))
        return text_string(f, &c->ledger_dirs);
    if (text_is(f, "indexDirs"))
        return text_string(f, &c->index_dirs);
    if (text_is(f, "instanceId"))
        return text_string(f, &c->instance_id);
    return f->kind == TEXT_OPEN ? text_skip(r) : ERR_OK;
}

static enum err read_fields(struct view text, struct cookie_record *c)
{
    struct text_reader r = text_reader_of(text);
    struct text_field f;
    enum err e;

    while (!(e = text_next(&r, &f))) {
        e = take(&r, &f, c);
        text_field_drop(&f);
        TRY(e);
    }
    if (e != ERR_END)
        return e;
    return c->bookie_id && c->journal_dirs && c->ledger_dirs ? ERR_OK : ERR_MALFORMED;
}

/* The text form came with version 4. */
static enum err cut_version(struct view *value)
{
    if (value->len < 2)
        return ERR_MALFORMED;
    if ((value->base[0] != '4' && value->base[0] != '5') || value->base[1] != '\n')
        return ERR_UNSUPPORTED_VERSION;
    *value = view_of(value->base + 2, value->len - 2);
    return ERR_OK;
}

enum err cookie_record_read(struct view value, struct cookie_record *out)
{
    *out = (struct cookie_record){0};
    TRY(cut_version(&value));
    enum err e = read_fields(value, out);
    if (e)
        cookie_record_drop(out);
    else
        out->incarnation = find_incarnation(value);
    return e;
}

struct slice cookie_record_write(const struct cookie_record *r)
{
    size_t len = strlen(version_line);
    char *text = mem_string(version_line);

    text_write_string(&text, &len, "bookieHost", r->bookie_id);
    text_write_string(&text, &len, "journalDir", r->journal_dirs);
    text_write_string(&text, &len, "ledgerDirs", r->ledger_dirs);
    if (r->instance_id)
        text_write_string(&text, &len, "instanceId", r->instance_id);
    if (r->index_dirs)
        text_write_string(&text, &len, "indexDirs", r->index_dirs);
    if (r->incarnation) {
        char *line = mem_format("%.*s%s%s\n", (int)len, text, incarnation_line, r->incarnation);
        mem_free(text);
        text = line;
        len = strlen(text);
    }
    struct slice s = slice_copy(text, len);
    mem_free(text);
    return s;
}

void cookie_record_drop(struct cookie_record *r)
{
    mem_free(r->bookie_id);
    mem_free(r->journal_dirs);
    mem_free(r->ledger_dirs);
    mem_free(r->instance_id);
    mem_free(r->incarnation);
    mem_free(r->index_dirs);
    *r = (struct cookie_record){0};
}
