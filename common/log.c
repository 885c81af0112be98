#include "common/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "common/log_escape.h"

#define LINE_MAX_BYTES ((size_t)8192)
#define FIELD_MAX      ((size_t)VALUE_MAX * 2 + 64) /* key and value, with what holds them */

static const char *const level_names[] = {
    [LOG_DEBUG] = "DEBUG", [LOG_INFO] = "INFO", [LOG_WARN] = "WARN", [LOG_ERROR] = "ERROR"};

static _Atomic int least_level = LOG_INFO;
static _Atomic bool as_json;

static void add_time(struct log_line *l)
{
    struct timespec now;
    struct tm utc;
    char text[40];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    log_line_raw(l, text, n);
    log_line_format(l, ".%03ldZ", now.tv_nsec / 1000000);
}

static void add_string(struct log_line *l, const char *s, bool json)
{
    if (json)
        log_line_json(l, s);
    else
        log_line_value(l, s ? s : "-");
}

static void add_errno(struct log_line *l, int number, bool json)
{
    const char *name = strerrorname_np(number);
    if (name)
        add_string(l, name, json);
    else
        log_line_format(l, "%d", number);
}

static void add_value(struct log_line *l, const struct log_field *f, bool json)
{
    switch (f->kind) {
    case LOG_STR:
        add_string(l, f->str, json);
        break;
    case LOG_I64:
        log_line_format(l, "%" PRId64, f->i64);
        break;
    case LOG_U64:
        log_line_format(l, "%" PRIu64, f->u64);
        break;
    case LOG_F64:
        log_line_f64(l, f->f64, json);
        break;
    case LOG_ERRNO:
        add_errno(l, (int)f->i64, json);
        break;
    }
}

/* Whole or not at all: half a field would break the line. */
static void add_field(struct log_line *l, const struct log_field *f, bool json)
{
    if (l->room - l->len < FIELD_MAX)
        return;
    if (json) {
        log_line_format(l, ",");
        log_line_json(l, f->key);
        log_line_format(l, ":");
    } else {
        log_line_format(l, " %s=", f->key);
    }
    add_value(l, f, json);
}

static void add_head(struct log_line *l, enum log_level level, const char *name, bool json)
{
    log_line_format(l, json ? "{\"time\":\"" : "");
    add_time(l);
    log_line_format(l, json ? "\",\"level\":\"%s\",\"event\":\"%s\"" : " %s %s", level_names[level],
                    name);
}

static void add_thread(struct log_line *l, bool json)
{
    char name[32] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    add_field(l, &F_STR("thread", name), json);
}

static void put(const struct log_line *l)
{
    size_t at = 0;
    while (at < l->len) {
        ssize_t n = write(STDERR_FILENO, l->text + at, l->len - at);
        if (n <= 0)
            return;
        at += (size_t)n;
    }
}

void log_write(enum log_level level, const char *name, const struct log_field *fields)
{
    if ((int)level < atomic_load_explicit(&least_level, memory_order_relaxed))
        return;
    bool json = atomic_load_explicit(&as_json, memory_order_relaxed);
    char text[LINE_MAX_BYTES];
    struct log_line line = {.text = text, .room = sizeof text - 2};
    add_head(&line, level, name, json);
    for (const struct log_field *f = fields; f->key; f++)
        add_field(&line, f, json);
    add_thread(&line, json);
    line.room = sizeof text;
    log_line_format(&line, json ? "}" : "");
    log_line_raw(&line, "\n", 1);
    put(&line);
}

void log_set_level(enum log_level least)
{
    atomic_store_explicit(&least_level, (int)least, memory_order_relaxed);
}

enum log_level log_level_now(void)
{
    return (enum log_level)atomic_load_explicit(&least_level, memory_order_relaxed);
}

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {
        [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};
    return names[level];
}

void log_set_json(bool json)
{
    atomic_store_explicit(&as_json, json, memory_order_relaxed);
}

bool log_level_of(const char *text, enum log_level *out)
{
    for (int i = LOG_DEBUG; i <= LOG_ERROR; i++)
        if (strcasecmp(text, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    return false;
}
