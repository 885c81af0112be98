#include "common/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/config_name.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"

#define ENV_PREFIX "LGM_"

extern char **environ;

static void *member(const struct config_key *k, void *conf)
{
    return (char *)conf + k->offset;
}

static bool has_member(const struct config_key *k)
{
    return k->class == CONFIG_LIVE || k->class == CONFIG_RESTART;
}

static void set_string(const struct config_key *k, void *conf, const char *value)
{
    char **at = member(k, conf);
    char *old = *at;
    *at = value ? mem_string(value) : NULL;
    mem_free(old);
}

static enum err set_int(const struct config_key *k, void *conf, const char *value)
{
    int64_t v;
    TRY(parse_i64(value, &v));
    if ((double)v < k->min || (double)v > k->max)
        return ERR_TOO_BIG;
    *(int64_t *)member(k, conf) = v;
    return ERR_OK;
}

static enum err set_port(const struct config_key *k, void *conf, const char *value)
{
    if (*value)
        return set_int(k, conf, value);
    *(int64_t *)member(k, conf) = CONFIG_NO_PORT;
    return ERR_OK;
}

static enum err set_double(const struct config_key *k, void *conf, const char *value)
{
    double v;
    TRY(parse_double(value, &v));
    if (v < k->min || v > k->max)
        return ERR_TOO_BIG;
    *(double *)member(k, conf) = v;
    return ERR_OK;
}

/* Stock files leave empty what they do not set. */
static const char *or_preset(const struct config_key *k, const char *value)
{
    return *value || !k->preset ? value : k->preset;
}

/* ERR_MALFORMED: not of its type; ERR_TOO_BIG: outside its range. */
static enum err set_member(const struct config_key *k, void *conf, const char *value)
{
    if (k->type != CONFIG_PORT)
        value = or_preset(k, value);
    switch (k->type) {
    case CONFIG_BOOL:
        return parse_bool(value, member(k, conf));
    case CONFIG_INT:
        return set_int(k, conf, value);
    case CONFIG_PORT:
        return set_port(k, conf, value);
    case CONFIG_DOUBLE:
        return set_double(k, conf, value);
    case CONFIG_STRING:
        set_string(k, conf, value);
        return ERR_OK;
    }
    return ERR_MALFORMED;
}

static const char *type_name(const struct config_key *k)
{
    static const char *const names[] = {[CONFIG_BOOL] = "true or false",
                                        [CONFIG_INT] = "a whole number",
                                        [CONFIG_PORT] = "a port",
                                        [CONFIG_DOUBLE] = "a number",
                                        [CONFIG_STRING] = "a text"};
    return names[k->type];
}

/* Digits that a person would write: 1048576, not 1.04858e+06. */
static char *range_of(const struct config_key *k)
{
    if (k->type == CONFIG_INT)
        return mem_format("%.0f..%.0f", k->min, k->max);
    if (k->type == CONFIG_PORT)
        return mem_format("%.0f..%.0f, or empty: none", k->min, k->max);
    if (k->type == CONFIG_DOUBLE)
        return mem_format("%g..%g", k->min, k->max);
    return mem_string(type_name(k));
}

static enum err refused(const struct config_key *k, const char *value, const char *where,
                        enum err why)
{
    char *allowed = range_of(k);
    char *reason = why == ERR_TOO_BIG ? mem_format("outside the allowed range")
                                      : mem_format("not %s", type_name(k));
    log_event(LOG_ERROR, "config.refused", F_STR("where", where), F_STR("key", k->name),
              F_STR("value", value), F_STR("reason", reason), F_STR("allowed", allowed));
    mem_free(reason);
    mem_free(allowed);
    return ERR_BAD_CONFIG;
}

/* Spelled differently is the same: False, 10.0. */
static bool same_value(const char *a, const char *b)
{
    double x, y;
    if (strcasecmp(a, b) == 0)
        return true;
    return parse_double(a, &x) == ERR_OK && parse_double(b, &y) == ERR_OK && !(x < y) && !(x > y);
}

/* Something that we do not give must not be thought to be given. */
static enum err promise(const struct config_key *k, const char *value, const char *where)
{
    const char *preset = k->preset ? k->preset : "";
    if (same_value(or_preset(k, value), preset))
        return ERR_OK;
    if (k->class != CONFIG_REFUSED) {
        log_event(k->class == CONFIG_ABSENT ? LOG_WARN : LOG_INFO, "config.ignored",
                  F_STR("where", where), F_STR("key", k->name), F_STR("value", value),
                  F_STR("reason", k->what));
        return ERR_OK;
    }
    log_event(LOG_ERROR, "config.refused", F_STR("where", where), F_STR("key", k->name),
              F_STR("value", value), F_STR("reason", k->what), F_STR("allowed", preset));
    return ERR_BAD_CONFIG;
}

static enum err set(const struct config_table *t, void *conf, const char *key, const char *value,
                    const char *where)
{
    const struct config_key *k = config_name_find(t, key);
    if (!k) {
        const char *nearest = config_name_nearest(t, key);
        log_event(LOG_WARN, "config.unknown", F_STR("where", where), F_STR("key", key),
                  F_STR("nearest", nearest));
        return ERR_OK;
    }
    if (!has_member(k))
        return promise(k, value, where);
    const enum err e = set_member(k, conf, value);
    return e ? refused(k, value, where, e) : ERR_OK;
}

enum err config_defaults(const struct config_table *t, void *conf)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct config_key *k = &t->keys[i];
        if (!has_member(k))
            continue;
        if (k->type == CONFIG_STRING) {
            set_string(k, conf, k->preset);
            continue;
        }
        const enum err e = set_member(k, conf, k->preset);
        if (e)
            return refused(k, k->preset, "the table of defaults", e);
    }
    return ERR_OK;
}

/* ---- where values come from ----------------------------------------------------------------- */

/* Cuts the spaces off both ends, in place. */
static char *trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t len = strlen(s);
    while (len > 0 && isspace((unsigned char)s[len - 1]))
        len--;
    s[len] = '\0';
    return s;
}

static enum err no_equals_sign(const char *line, const char *where)
{
    log_event(LOG_ERROR, "config.refused", F_STR("where", where), F_STR("value", line),
              F_STR("reason", "not key=value"));
    return ERR_BAD_CONFIG;
}

static enum err set_pair(const struct config_table *t, void *conf, char *line, const char *where)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return no_equals_sign(line, where);
    *equals = '\0';
    return set(t, conf, trim(line), trim(equals + 1), where);
}

/* Every line is looked at, so that one start shows all that is wrong. */
static enum err load_lines(const struct config_table *t, void *conf, FILE *f, const char *path)
{
    char *line = NULL;
    size_t room = 0;
    enum err worst = ERR_OK;
    for (unsigned number = 1; getline(&line, &room, f) >= 0; number++) {
        char *text = trim(line);
        if (!*text || *text == '#')
            continue;
        char *where = mem_format("%s:%u", path, number);
        const enum err e = set_pair(t, conf, text, where);
        worst = e ? e : worst;
        mem_free(where);
    }
    mem_free(line);
    return worst;
}

enum err config_load_file(const struct config_table *t, void *conf, const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        log_event(LOG_ERROR, "config.refused", F_STR("where", path), F_ERRNO(errno));
        return ERR_BAD_CONFIG;
    }
    enum err e = load_lines(t, conf, f, path);
    if (ferror(f)) {
        log_event(LOG_ERROR, "config.refused", F_STR("where", path), F_ERRNO(errno));
        e = ERR_BAD_CONFIG;
    }
    fclose(f);
    return e;
}

enum err config_load_env(const struct config_table *t, void *conf)
{
    enum err worst = ERR_OK;
    for (char **at = environ; *at; at++) {
        if (strncmp(*at, ENV_PREFIX, strlen(ENV_PREFIX)) != 0)
            continue;
        char *pair = mem_string(*at + strlen(ENV_PREFIX));
        const enum err e = set_pair(t, conf, pair, "the environment");
        worst = e ? e : worst;
        mem_free(pair);
    }
    return worst;
}

enum err config_set(const struct config_table *t, void *conf, const char *key_value,
                    const char *where)
{
    char *pair = mem_string(key_value);
    const enum err e = set_pair(t, conf, pair, where);
    mem_free(pair);
    return e;
}

void config_drop(const struct config_table *t, void *conf)
{
    for (size_t i = 0; i < t->n; i++)
        if (has_member(&t->keys[i]) && t->keys[i].type == CONFIG_STRING)
            set_string(&t->keys[i], conf, NULL);
}

/* ---- what there is --------------------------------------------------------------------------- */

static const char *when_of(const struct config_key *k)
{
    return k->class == CONFIG_LIVE ? "live" : "restart";
}

static const char *preset_of(const struct config_key *k)
{
    return k->preset ? k->preset : "";
}

/* The first of its class with its reason: it speaks for all of them. */
static bool is_first(const struct config_table *t, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (t->keys[j].class == t->keys[i].class && strcmp(t->keys[j].what, t->keys[i].what) == 0)
            return false;
    return true;
}

/* Reasons in the table's order, each with its keys. */
static void describe_class(const struct config_table *t, FILE *out, enum config_class class,
                           void (*describe)(const struct config_table *t, size_t first, FILE *out))
{
    for (size_t i = 0; i < t->n; i++)
        if (t->keys[i].class == class && is_first(t, i))
            describe(t, i, out);
}

static void list_keys(const struct config_table *t, size_t first, FILE *out)
{
    const struct config_key *k = &t->keys[first];
    fprintf(out, "# %s\n", k->what);
    for (size_t i = first; i < t->n; i++)
        if (t->keys[i].class == k->class && strcmp(t->keys[i].what, k->what) == 0)
            fprintf(out, "#   %s=%s\n", t->keys[i].name, preset_of(&t->keys[i]));
    fprintf(out, "\n");
}

void config_describe(const struct config_table *t, FILE *out)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct config_key *k = &t->keys[i];
        if (!has_member(k))
            continue;
        char *allowed = range_of(k);
        fprintf(out, "# %s\n# %s; %s\n%s=%s\n\n", k->what, allowed, when_of(k), k->name,
                preset_of(k));
        mem_free(allowed);
    }
    fprintf(out, "#### refused when set to anything but this\n\n");
    describe_class(t, out, CONFIG_REFUSED, list_keys);
    fprintf(out, "#### not given: a warning when set to anything but this\n\n");
    describe_class(t, out, CONFIG_ABSENT, list_keys);
    fprintf(out, "#### without effect\n\n");
    describe_class(t, out, CONFIG_IGNORED, list_keys);
}

static void markdown_value(const struct config_key *k, FILE *out)
{
    const char *tick = *preset_of(k) ? "`" : "";
    fprintf(out, "%s%s%s", tick, preset_of(k), tick);
}

static void markdown_row(const struct config_table *t, size_t first, FILE *out)
{
    const struct config_key *k = &t->keys[first];
    const char *between = "| ";
    for (size_t i = first; i < t->n; i++) {
        const struct config_key *same = &t->keys[i];
        if (same->class != k->class || strcmp(same->what, k->what) != 0)
            continue;
        fprintf(out, "%s`%s%s%s`", between, same->name, *preset_of(same) ? "=" : "",
                preset_of(same));
        between = ", ";
    }
    fprintf(out, " | %s |\n", k->what);
}

static void markdown_class(const struct config_table *t, FILE *out, enum config_class class,
                           const char *title)
{
    fprintf(out, "\n%s\n\n| keys and upstream's defaults | why |\n|---|---|\n", title);
    describe_class(t, out, class, markdown_row);
}

void config_describe_markdown(const struct config_table *t, FILE *out)
{
    fprintf(out, "| key | default | allowed | when | what |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct config_key *k = &t->keys[i];
        if (!has_member(k))
            continue;
        char *allowed = range_of(k);
        fprintf(out, "| `%s` | ", k->name);
        markdown_value(k, out);
        fprintf(out, " | %s | %s | %s |\n", allowed, when_of(k), k->what);
        mem_free(allowed);
    }
    markdown_class(t, out, CONFIG_REFUSED,
                   "Refused: set to anything but their default they stop the start.");
    markdown_class(t, out, CONFIG_ABSENT,
                   "Not given: set to anything but their default they are a warning.");
    markdown_class(t, out, CONFIG_IGNORED, "Without effect:");
}
