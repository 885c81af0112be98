/* What was said, as a path and a body. */
#include <ctype.h>
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/admin_verbs.h"
#include "common/loop.h"
#include "common/mem.h"
#include "common/parse.h"
#include "metadata/paths.h"

/* ---- times ---- */

/* A number and a unit; what the number alone means is unit[0]: seconds and bytes, as pulsar-admin
 * reads them (the help of its reset-cursor says minutes, and is wrong). */
struct unit {
    char letter;
    double times;
};

static json_object *scaled(const char *text, const struct unit *units)
{
    char *end;
    double n = strtod(text, &end);

    if (end == text)
        return NULL;
    if (n < 0)
        return json_object_new_int64(-1);
    for (const struct unit *u = units; u->letter; u++)
        if ((!*end && u == units) || (tolower((uint8_t)*end) == u->letter && !end[1]))
            return json_object_new_int64((int64_t)(n * u->times + 0.999999));
    return NULL;
}

/* A day and a time of it, and how far it is from Greenwich. */
static bool datetime(const char *text, int64_t *ms)
{
    struct tm when = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &when);
    int hours = 0, minutes = 0, used = 0;
    char sign = '+', *end;
    double part = 0;

    if (!rest)
        return false;
    if (*rest == '.') {
        part = strtod(rest, &end);
        rest = end;
    }
    if (strcmp(rest, "Z") != 0 &&
        (sscanf(rest, "%c%2d:%2d%n", &sign, &hours, &minutes, &used) < 3 || rest[used] ||
         (sign != '+' && sign != '-')))
        return false;
    int64_t away = (hours * 60 + minutes) * (sign == '-' ? -60 : 60);
    *ms = ((int64_t)timegm(&when) - away) * 1000 + (int64_t)(part * 1000);
    return true;
}

/* ~ so long ago, in ms; ; so many seconds; ^ a date, in ms. */
static bool add_time(struct text *t, char kind, const char *value)
{
    static const struct unit ms[] = {
        {'s', 1e3},        {'m', 60e3}, {'h', 3600e3}, {'d', 86400e3}, {'w', 604800e3},
        {'y', 31536000e3}, {0}};
    static const struct unit seconds[] = {{'s', 1},      {'m', 60},       {'h', 3600}, {'d', 86400},
                                          {'w', 604800}, {'y', 31536000}, {0}};
    int64_t n = 0;
    json_object *o = kind == '^' ? NULL : scaled(value, kind == '~' ? ms : seconds);
    bool fine = kind == '^' ? datetime(value, &n) : o != NULL;

    if (kind != '^')
        n = json_object_get_int64(o);
    json_object_put(o);
    if (kind == '~')
        n = (int64_t)loop_wall_ms() - n;
    if (!fine || n < 0)
        admin_say("%s is no time", value);
    else
        text_add(t, "%" PRId64, n);
    return fine && n >= 0;
}

/* ---- the path ---- */

static void add_encoded(struct text *t, const char *s)
{
    char *encoded = curl_easy_escape(NULL, s, 0);

    text_add(t, "%s", encoded ? encoded : "");
    curl_free(encoded);
}

static bool add_topic(struct text *t, const char *name)
{
    struct topic_name n;

    if (topic_name_parse(name, &n)) {
        admin_say("%s is no topic's name", name);
        return false;
    }
    text_add(t, "%s/%s/%s/", n.persistent ? "persistent" : "non-persistent", n.tenant, n.ns);
    add_encoded(t, n.local);
    topic_name_drop(&n);
    return true;
}

static bool add_namespace(struct text *t, const char *name)
{
    const char *slash = strchr(name, '/');

    if (!slash || strchr(slash + 1, '/') || slash == name || !slash[1]) {
        admin_say("%s is no namespace: it is tenant/namespace", name);
        return false;
    }
    text_add(t, "%s", name);
    return true;
}

/* The argument of that name, as the verb calls it. */
static const char *argument(const struct admin_call *c, const char *name, size_t len)
{
    const char *at = c->verb->arguments;

    for (unsigned i = 0; *at; i++, at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == len && strncmp(at, name, len) == 0)
            return c->argument[i];
    return "";
}

static bool add_argument(struct text *t, const struct admin_call *c, const char *name, size_t len)
{
    const char *value = argument(c, name, len);

    if (len == 5 && strncmp(name, "TOPIC", 5) == 0)
        return add_topic(t, value);
    if (len == 9 && strncmp(name, "NAMESPACE", 9) == 0)
        return add_namespace(t, value);
    add_encoded(t, value);
    return true;
}

static void add_flags(struct text *t, const struct admin_call *c)
{
    for (unsigned i = 0; i < c->n_options; i++)
        if (c->option[i].name[c->option[i].name_len] == '?')
            text_add(t, "%c%.*s=true", strchr(t->at, '?') ? '&' : '?', c->option[i].name_len,
                     c->option[i].name);
}

char *admin_target(const struct admin_call *c)
{
    struct text t = {0};
    bool fine = true;

    for (const char *at = c->verb->path; *at && fine;) {
        size_t plain = strcspn(at, "{<"), len;
        text_add(&t, "%.*s", (int)plain, at);
        at += plain;
        if (!*at)
            break;
        len = strcspn(at + 1, "}>");
        bool time = strchr("~;^", at[1]) != NULL;
        if (*at == '{')
            fine = add_argument(&t, c, at + 1, len);
        else if (time && admin_option(c, at + 2, len - 1))
            fine = add_time(&t, at[1], admin_option(c, at + 2, len - 1));
        else if (admin_option(c, at + 1, len))
            add_encoded(&t, admin_option(c, at + 1, len));
        at += len + 2;
    }
    add_flags(&t, c);
    char *target = fine ? mem_string(t.at) : NULL;
    text_drop(&t);
    return target;
}

/* ---- the body ---- */

static json_object *list(const char *text)
{
    json_object *o = json_object_new_array();

    for (; *text; text += strcspn(text, ","), text += *text == ',')
        json_object_array_add(o, json_object_new_string_len(text, (int)strcspn(text, ",")));
    return o;
}

static json_object *number(const char *text)
{
    int64_t n;

    return parse_i64(text, &n) ? NULL : json_object_new_int64(n);
}

static json_object *position(const char *text)
{
    json_object *o;
    long long ledger, entry;
    int used = 0;

    if (!text || strcmp(text, "latest") == 0 || strcmp(text, "earliest") == 0)
        return json_object_new_string(text ? text : "latest");
    if (sscanf(text, "%lld:%lld%n", &ledger, &entry, &used) < 2 || text[used])
        return NULL;
    o = json_object_new_object();
    json_object_object_add(o, "ledgerId", json_object_new_int64(ledger));
    json_object_object_add(o, "entryId", json_object_new_int64(entry));
    json_object_object_add(o, "partitionIndex", json_object_new_int(-1));
    return o;
}

static json_object *truth(const char *text)
{
    bool yes = strcmp(text, "true") == 0;

    return yes || strcmp(text, "false") == 0 ? json_object_new_boolean(yes) : NULL;
}

static json_object *value_of(char kind, const char *text)
{
    static const struct unit minutes[] = {{'s', 1.0 / 60}, {'m', 1},      {'h', 60}, {'d', 1440},
                                          {'w', 10080},    {'y', 525600}, {0}};
    static const struct unit mb[] = {{'b', 1.0 / 1048576}, {'k', 1.0 / 1024}, {'m', 1},
                                     {'g', 1024},          {'t', 1048576.0},  {0}};

    switch (kind) {
    case '#':
        return number(text);
    case '[':
        return list(text);
    case '~':
        return scaled(text, minutes);
    case '%':
        return scaled(text, mb);
    case '@':
        return position(text);
    case '?':
        return truth(text);
    default:
        return json_object_new_string(text);
    }
}

static json_object *wrong(const char *name, size_t len, const char *value)
{
    admin_say("--%.*s %s cannot be", (int)len, name, value);
    return NULL;
}

/* Every value of the option; NULL: one is no key=value. */
static json_object *pairs(const struct admin_call *c, const char *name, size_t len)
{
    json_object *o = json_object_new_object();

    for (unsigned i = 0; i < c->n_options; i++) {
        const char *value = c->option[i].value, *is = strchr(value, '=');
        if ((size_t)c->option[i].name_len != len || strncmp(c->option[i].name, name, len) != 0)
            continue;
        if (!is || is == value) {
            json_object_put(o);
            return NULL;
        }
        char *key = mem_string_n(value, (size_t)(is - value));
        json_object_object_add(o, key, json_object_new_string(is + 1));
        mem_free(key);
    }
    return o;
}

/* The value that an item of the body stands for; *there: it was said. */
static json_object *item(const struct admin_call *c, const char *at, size_t len, bool *there)
{
    bool kind = strchr("#[~%@?", *at) != NULL;
    const char *name = at + kind, *value = admin_option(c, name, len - kind);

    *there = value || *at == '@' || *at == '+';
    if (*at == '+')
        return json_object_new_boolean(strncmp(at + 1, "true", 4) == 0);
    if (!*there)
        return NULL;
    json_object *o = value_of(kind ? *at : '=', value);
    return o ? o : wrong(name, len - kind, value ? value : "");
}

static json_object *fields(const struct admin_call *c, bool *fine)
{
    json_object *o = json_object_new_object();

    for (const char *at = c->verb->body; *at && *fine;) {
        size_t name = strcspn(at, "="), len = strcspn(at + name + 1, " ");
        char *key = mem_string_n(at, name);
        bool there;
        json_object *value = item(c, at + name + 1, len, &there);
        if (there && !value)
            *fine = false;
        else if (there)
            json_object_object_add(o, key, value);
        mem_free(key);
        at += name + 1 + len;
        at += *at == ' ';
    }
    return o;
}

char *admin_body(const struct admin_call *c, bool *fine)
{
    const char *spec = c->verb->body;
    bool there = true;
    json_object *o;

    if (!*spec)
        return NULL;
    if (*spec == '*') {
        o = pairs(c, spec + 1, strlen(spec + 1));
        *fine = o && (json_object_object_length(o) > 0) != !!admin_option(c, "clear", 5);
        if (!*fine)
            admin_say("either --%s key=value, or --clear", spec + 1);
    } else if (strchr("#[@", *spec)) {
        o = item(c, spec, strlen(spec), &there);
        *fine = o != NULL;
    } else {
        o = fields(c, fine);
    }
    char *body =
        *fine ? mem_string(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN)) : NULL;
    json_object_put(o);
    return body;
}
