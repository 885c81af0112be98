#include <inttypes.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/records.h"
#include "metadata/text_proto.h"

static enum err take(struct text_reader *r, struct text_field *f, struct mark_record *m)
{
    if (text_is(f, "replica")) {
        char *id = NULL;
        TRY(text_string(f, &id));
        if (!mark_record_has(m, id))
            mark_record_add(m, id);
        mem_free(id);
        return ERR_OK;
    }
    if (text_is(f, "ctime"))
        return text_i64(f, &m->ctime_ms);
    return f->kind == TEXT_OPEN ? text_skip(r) : ERR_OK;
}

enum err mark_record_read(struct view value, struct mark_record *out)
{
    struct text_reader r = text_reader_of(value);
    struct text_field f;
    enum err e;

    *out = (struct mark_record){.ctime_ms = -1};
    while (!(e = text_next(&r, &f))) {
        e = take(&r, &f, out);
        text_field_drop(&f);
        if (e)
            break;
    }
    if (e != ERR_END) {
        mark_record_drop(out);
        return e;
    }
    return ERR_OK;
}

struct slice mark_record_write(const struct mark_record *r)
{
    size_t len = 0;
    char *text = mem_string("");

    for (unsigned i = 0; i < r->n; i++)
        text_write_string(&text, &len, "replica", r->replicas[i]);
    if (r->ctime_ms >= 0) {
        char *line = mem_format("%.*sctime: %" PRId64 "\n", (int)len, text, r->ctime_ms);
        mem_free(text);
        text = line;
        len = strlen(text);
    }
    struct slice s = slice_copy(text, len);
    mem_free(text);
    return s;
}

bool mark_record_has(const struct mark_record *r, const char *bookie_id)
{
    for (unsigned i = 0; i < r->n; i++)
        if (strcmp(r->replicas[i], bookie_id) == 0)
            return true;
    return false;
}

void mark_record_add(struct mark_record *r, const char *bookie_id)
{
    r->replicas = mem_resize(r->replicas, (r->n + 1) * sizeof *r->replicas);
    r->replicas[r->n++] = mem_string(bookie_id);
}

void mark_record_drop(struct mark_record *r)
{
    for (unsigned i = 0; i < r->n; i++)
        mem_free(r->replicas[i]);
    mem_free((void *)r->replicas);
    *r = (struct mark_record){.ctime_ms = -1};
}

struct slice lock_record_write(const char *bookie_id)
{
    size_t len = 0;
    char *text = mem_string("");

    text_write_string(&text, &len, "bookieId", bookie_id);
    struct slice s = slice_copy(text, len);
    mem_free(text);
    return s;
}

enum err time_record_read(struct view value, int64_t *ms)
{
    uint64_t bits = 0;

    if (value.len < 2 || value.base[0] != 1 << 3)
        return ERR_MALFORMED;
    for (size_t i = 1; i < value.len && i <= 10; i++) {
        bits |= (uint64_t)(value.base[i] & 0x7f) << 7 * (i - 1);
        if (!(value.base[i] & 0x80)) {
            *ms = (int64_t)bits;
            return *ms < 0 ? ERR_MALFORMED : ERR_OK;
        }
    }
    return ERR_MALFORMED;
}

struct slice time_record_write(int64_t ms)
{
    uint8_t bytes[12] = {1 << 3};
    size_t n = 1;
    uint64_t bits = (uint64_t)ms;

    do
        bytes[n++] = (uint8_t)((bits & 0x7f) | (bits > 0x7f ? 0x80 : 0));
    while (bits >>= 7);
    return slice_copy(bytes, n);
}
