#include "tests/lib/exposition.h"

#include <check.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct reader {
    char **families; /* that were seen, in order; the last one is under way */
    unsigned n, room;
    bool has_type;
    char type[16];
    char **series;
    size_t n_series, series_room;
};

static void no_good(const char *line, const char *why)
{
    ck_abort_msg("%s: %.300s", why, line);
}

static size_t name_len(const char *s)
{
    size_t n = 0;

    while (isalpha((unsigned char)s[n]) || s[n] == '_' || s[n] == ':' ||
           (n > 0 && isdigit((unsigned char)s[n])))
        n++;
    return n;
}

static bool same(const char *a, const char *b, size_t n)
{
    return strlen(a) == n && memcmp(a, b, n) == 0;
}

static void family_begins(struct reader *r, const char *line, const char *name, size_t len)
{
    for (unsigned i = 0; i < r->n; i++)
        if (same(r->families[i], name, len))
            no_good(line, "a second HELP, or lines of a name apart from each other");
    if (r->n == r->room) {
        r->room = r->room ? r->room * 2 : 64;
        r->families = mem_resize(r->families, r->room * sizeof(char *));
    }
    r->families[r->n++] = mem_string_n(name, len);
    r->has_type = false;
}

static void read_comment(struct reader *r, const char *line)
{
    const bool help = strncmp(line, "# HELP ", 7) == 0;
    const char *name = line + 7;
    const size_t len = name_len(name);

    if (!help && strncmp(line, "# TYPE ", 7) != 0)
        no_good(line, "a comment that is neither HELP nor TYPE");
    if (len == 0 || name[len] != ' ')
        no_good(line, "no name");
    if (help) {
        family_begins(r, line, name, len);
        return;
    }
    if (r->n == 0 || !same(r->families[r->n - 1], name, len) || r->has_type)
        no_good(line, "TYPE without its HELP, or twice");
    r->has_type = true;
    snprintf(r->type, sizeof r->type, "%s", name + len + 1);
    if (strcmp(r->type, "counter") != 0 && strcmp(r->type, "gauge") != 0 &&
        strcmp(r->type, "histogram") != 0 && strcmp(r->type, "summary") != 0)
        no_good(line, "no such type");
}

/* The name of a sample of a histogram or summary has a suffix. */
static bool belongs(const struct reader *r, const char *name, size_t len)
{
    static const char *const suffixes[] = {"_bucket", "_sum", "_count"};
    const char *family = r->families[r->n - 1];
    const size_t base = strlen(family);

    if (same(family, name, len))
        return strcmp(r->type, "histogram") != 0;
    if (strcmp(r->type, "counter") == 0 || strcmp(r->type, "gauge") == 0)
        return false;
    for (unsigned i = 0; i < 3; i++)
        if (len == base + strlen(suffixes[i]) && memcmp(name, family, base) == 0 &&
            memcmp(name + base, suffixes[i], len - base) == 0)
            return true;
    return false;
}

static const char *read_label(const char *line, const char *at)
{
    const size_t len = name_len(at);

    if (len == 0 || at[len] != '=' || at[len + 1] != '"')
        no_good(line, "a label is not name=\"value\"");
    for (at += len + 2; *at != '"'; at++) {
        if (*at == '\0')
            no_good(line, "a label does not end");
        if (*at == '\\' && *++at != '\\' && *at != '"' && *at != 'n')
            no_good(line, "an escape that is none");
    }
    return at + 1;
}

static const char *read_labels(const char *line, const char *at)
{
    if (*at != '{')
        return at;
    for (at++; *at != '}';) {
        at = read_label(line, at);
        if (*at == ',')
            at++;
        else if (*at != '}')
            no_good(line, "labels are not apart by commas");
    }
    return at + 1;
}

static void note_series(struct reader *r, const char *line, size_t len)
{
    if (r->n_series == r->series_room) {
        r->series_room = r->series_room ? r->series_room * 2 : 1024;
        r->series = mem_resize(r->series, r->series_room * sizeof(char *));
    }
    r->series[r->n_series++] = mem_string_n(line, len);
}

static void read_sample(struct reader *r, const char *line)
{
    const size_t len = name_len(line);
    char *end;

    if (len == 0)
        no_good(line, "no name");
    if (r->n == 0 || !r->has_type || !belongs(r, line, len))
        no_good(line, "not under its HELP and TYPE");
    const char *at = read_labels(line, line + len);
    note_series(r, line, (size_t)(at - line));
    if (*at != ' ')
        no_good(line, "no value");
    strtod(at + 1, &end);
    if (end == at + 1 || *end != '\0')
        no_good(line, "the value is no number");
}

static void check_utf8(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        const int n = *c < 0x80 ? 1 : *c >= 0xf0 ? 4 : *c >= 0xe0 ? 3 : *c >= 0xc2 ? 2 : 0;
        if (n == 0)
            no_good((const char *)c, "no UTF-8");
        for (int i = 1; i < n; i++)
            if (c[i] >> 6 != 2)
                no_good((const char *)c, "no UTF-8");
        c += n;
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_once(struct reader *r)
{
    if (r->n_series > 0)
        qsort(r->series, r->n_series, sizeof(char *), by_text);
    for (size_t i = 1; i < r->n_series; i++)
        if (strcmp(r->series[i], r->series[i - 1]) == 0)
            no_good(r->series[i], "a series comes twice");
    for (size_t i = 0; i < r->n_series; i++)
        mem_free(r->series[i]);
    for (unsigned i = 0; i < r->n; i++)
        mem_free(r->families[i]);
    mem_free(r->series);
    mem_free(r->families);
}

void exposition_check(const char *text)
{
    struct reader r = {0};

    check_utf8(text);
    ck_assert_msg(*text && text[strlen(text) - 1] == '\n', "the last line does not end");
    for (const char *at = text; *at;) {
        const size_t len = strcspn(at, "\n");
        char *line = mem_string_n(at, len);
        if (*line == '#')
            read_comment(&r, line);
        else
            read_sample(&r, line);
        mem_free(line);
        at += len + 1;
    }
    check_once(&r);
}

static const char *find(const char *text, const char *series)
{
    const size_t len = strlen(series);

    for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
        if (strncmp(at, series, len) == 0 && at[len] == ' ')
            return at + len + 1;
    return NULL;
}

bool exposition_has(const char *text, const char *series)
{
    return find(text, series) != NULL;
}

double exposition_value(const char *text, const char *series)
{
    const char *at = find(text, series);

    ck_assert_msg(at != NULL, "%s is not there", series);
    return strtod(at, NULL);
}
