#include "common/log_escape.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void log_line_raw(struct log_line *l, const char *s, size_t len)
{
    if (len > l->room - l->len)
        return;
    memcpy(l->text + l->len, s, len);
    l->len += len;
}

void log_line_format(struct log_line *l, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof text)
        log_line_raw(l, text, (size_t)n);
}

size_t utf8_len(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    const size_t n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    const unsigned char least = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < least || s[1] > most)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

static bool needs_quotes(const char *s)
{
    if (!*s)
        return true;
    for (const unsigned char *c = (const unsigned char *)s; *c; c++)
        if (*c <= ' ' || *c == '"' || *c == '=' || *c == '\\' || *c >= 0x7f)
            return true;
    return false;
}

/* One character, escaped; gives the bytes that it took from `s`. */
static size_t add_char(struct log_line *l, const unsigned char *s, bool json)
{
    const size_t n = utf8_len(s);
    if (*s == '"' || *s == '\\')
        log_line_format(l, "\\%c", *s);
    else if (*s == '\n')
        log_line_raw(l, "\\n", 2);
    else if (n == 0 || *s < ' ' || *s == 0x7f)
        log_line_format(l, json ? "\\u%04x" : "\\x%02x", n == 0 && json ? 0xfffdu : (unsigned)*s);
    else
        log_line_raw(l, (const char *)s, n);
    return n ? n : 1;
}

static void add_quoted(struct log_line *l, const char *s, bool json)
{
    const unsigned char *at = (const unsigned char *)s;
    const size_t most = l->len + VALUE_MAX;
    if (l->room - l->len < VALUE_MAX + 16)
        return;
    log_line_raw(l, "\"", 1);
    while (*at && l->len < most)
        at += add_char(l, at, json);
    log_line_raw(l, *at ? "...\"" : "\"", *at ? 4 : 1);
}

void log_line_value(struct log_line *l, const char *s)
{
    const size_t len = strnlen(s, VALUE_MAX + 1);
    if (len > VALUE_MAX || needs_quotes(s))
        add_quoted(l, s, false);
    else
        log_line_raw(l, s, len);
}

void log_line_json(struct log_line *l, const char *s)
{
    if (s)
        add_quoted(l, s, true);
    else
        log_line_raw(l, "null", 4);
}

void log_line_f64(struct log_line *l, double v, bool json)
{
    if (json && !isfinite(v))
        log_line_raw(l, "null", 4);
    else
        log_line_format(l, "%.15g", v);
}
