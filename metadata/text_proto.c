#include "metadata/text_proto.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"

struct text_reader text_reader_of(struct view v)
{
    const char *base = v.base ? (const char *)v.base : "";

    return (struct text_reader){.at = base, .end = base + v.len};
}

static bool one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           one_of(c, "_+-.");
}

static void skip_blank(struct text_reader *r)
{
    for (; r->at < r->end; r->at++) {
        if (*r->at == '#') {
            while (r->at < r->end && *r->at != '\n')
                r->at++;
            if (r->at == r->end)
                return;
        } else if (!one_of(*r->at, " \t\r\n,;")) {
            return;
        }
    }
}

static bool accept(struct text_reader *r, char c)
{
    skip_blank(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static enum err take_word(struct text_reader *r, struct view *out)
{
    skip_blank(r);
    const char *from = r->at;
    while (r->at < r->end && is_word(*r->at))
        r->at++;
    *out = view_of(from, (size_t)(r->at - from));
    return out->len ? ERR_OK : ERR_MALFORMED;
}

static int digit_of(char c, int base)
{
    int d = c >= '0' && c <= '9'                 ? c - '0'
            : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 87
                                                 : 99;

    return d < base ? d : -1;
}

static enum err take_number(struct text_reader *r, int base, int most, char *out)
{
    int value = 0, n = 0;

    for (; n < most && r->at < r->end && digit_of(*r->at, base) >= 0; n++)
        value = value * base + digit_of(*r->at++, base);
    *out = (char)value;
    return n && value < 256 ? ERR_OK : ERR_MALFORMED;
}

static enum err take_escape(struct text_reader *r, char *out)
{
    static const char from[] = "abfnrtv\\'\"?", to[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *simple;

    if (r->at == r->end)
        return ERR_MALFORMED;
    if (digit_of(*r->at, 8) >= 0)
        return take_number(r, 8, 3, out);
    char c = *r->at++;
    if (c == 'x')
        return take_number(r, 16, 2, out);
    simple = c ? strchr(from, c) : NULL;
    if (!simple)
        return ERR_MALFORMED;
    *out = to[simple - from];
    return ERR_OK;
}

/* One quoted piece, appended; it cannot be longer than its text. */
static enum err take_piece(struct text_reader *r, struct text_field *f)
{
    char quote = *r->at++;

    f->bytes = mem_resize(f->bytes, f->len + (size_t)(r->end - r->at) + 1);
    while (r->at < r->end && *r->at != quote) {
        char c = *r->at++;
        if (c == '\n')
            return ERR_MALFORMED;
        if (c == '\\')
            TRY(take_escape(r, &c));
        f->bytes[f->len++] = c;
    }
    if (r->at == r->end)
        return ERR_MALFORMED;
    r->at++;
    f->bytes[f->len] = '\0';
    return ERR_OK;
}

static bool at_quote(struct text_reader *r)
{
    skip_blank(r);
    return r->at < r->end && one_of(*r->at, "\"'");
}

static enum err take_value(struct text_reader *r, struct text_field *f)
{
    bool colon = accept(r, ':');

    if (accept(r, '{') || accept(r, '<')) {
        f->kind = TEXT_OPEN;
        return ++r->depth > TEXT_DEPTH_MAX ? ERR_TOO_BIG : ERR_OK;
    }
    if (!colon)
        return ERR_MALFORMED;
    f->kind = TEXT_WORD;
    if (!at_quote(r))
        return take_word(r, &f->word);
    f->kind = TEXT_BYTES;
    while (at_quote(r))
        TRY(take_piece(r, f));
    return ERR_OK;
}

enum err text_next(struct text_reader *r, struct text_field *out)
{
    *out = (struct text_field){0};
    if (accept(r, '}') || accept(r, '>')) {
        if (r->depth == 0)
            return ERR_MALFORMED;
        r->depth--;
        return ERR_END;
    }
    if (r->at == r->end)
        return r->depth ? ERR_MALFORMED : ERR_END;
    TRY(take_word(r, &out->name));
    enum err e = take_value(r, out);
    if (e)
        text_field_drop(out);
    return e;
}

enum err text_skip(struct text_reader *r)
{
    unsigned outside = r->depth - 1;
    struct text_field f;
    enum err e;

    do {
        e = text_next(r, &f);
        text_field_drop(&f);
    } while (!e || (e == ERR_END && r->depth > outside));
    return e == ERR_END ? ERR_OK : e;
}

void text_field_drop(struct text_field *f)
{
    mem_free(f->bytes);
    f->bytes = NULL;
    f->len = 0;
}

bool text_is(const struct text_field *f, const char *name)
{
    return f->name.len == strlen(name) && memcmp(f->name.base, name, f->name.len) == 0;
}

enum err text_i64(const struct text_field *f, int64_t *out)
{
    char number[24];

    if (f->kind != TEXT_WORD || f->word.len >= sizeof number)
        return ERR_MALFORMED;
    memcpy(number, f->word.base, f->word.len);
    number[f->word.len] = '\0';
    return parse_i64(number, out);
}

enum err text_string(struct text_field *f, char **out)
{
    if (f->kind != TEXT_BYTES || strlen(f->bytes) != f->len)
        return ERR_MALFORMED;
    mem_free(*out);
    *out = f->bytes;
    f->bytes = NULL;
    return ERR_OK;
}

static size_t escape(char *to, uint8_t c)
{
    static const char from[] = "\n\r\t\"'\\", as[] = "nrt\"'\\";
    const char *simple = c ? strchr(from, (char)c) : NULL;

    if (simple) {
        to[0] = '\\';
        to[1] = as[simple - from];
        return 2;
    }
    if (c >= 0x20 && c < 0x7f) {
        to[0] = (char)c;
        return 1;
    }
    return (size_t)snprintf(to, 5, "\\%03o", c);
}

void text_write_string(char **into, size_t *len, const char *name, const char *value)
{
    *into = mem_resize(*into, *len + strlen(name) + 4 * strlen(value) + 8);
    char *to = *into + *len;

    to += snprintf(to, strlen(name) + 4, "%s: \"", name);
    for (; *value; value++)
        to += escape(to, (uint8_t)*value);
    *to++ = '"';
    *to++ = '\n';
    *len = (size_t)(to - *into);
}
