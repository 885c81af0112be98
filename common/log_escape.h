/* log_escape.h - one log line being made: fixed room, every value safe to print.
 *
 * Nothing a peer names (topics, hosts, reasons) may break a line in two or forge a field:
 * values with spaces, quotes or control characters are quoted and escaped, and one value
 * takes at most VALUE_MAX bytes of text.  A line that is full loses its last fields, never
 * its end.
 */
#ifndef COMMON_LOG_ESCAPE_H
#define COMMON_LOG_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

#define VALUE_MAX 1024

struct log_line {
    char *text;
    size_t len, room;
};

void log_line_raw(struct log_line *l, const char *s, size_t len); /* all of it, or nothing */
void log_line_format(struct log_line *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));              /* all of it, or nothing */
void log_line_value(struct log_line *l, const char *s); /* bare where possible, else "quoted" */
void log_line_json(struct log_line *l, const char *s);  /* a JSON string; NULL is null */
void log_line_f64(struct log_line *l, double v, bool json);

/* Bytes of the UTF-8 character at `s`, which ends with a NUL somewhere, or 0 where there is none:
 * RFC 3629, table 3-7. */
size_t utf8_len(const unsigned char *s);

#endif
