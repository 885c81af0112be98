/* lgm admin: pulsar-admin's words, over HTTP. */
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/admin_verbs.h"
#include "cli/command.h"
#include "common/mem.h"

const struct admin_verb admin_verbs[] = {
#define X(...) {__VA_ARGS__},
#include "cli/admin.def"
#undef X
};
const unsigned admin_n_verbs = sizeof(admin_verbs) / sizeof(admin_verbs[0]);

void admin_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("lgm admin: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

/* ---- help ---- */

static void help_options(const struct admin_verb *v)
{
    for (const char *at = v->options; *at; at += strcspn(at, " "), at += *at == ' ') {
        const int len = (int)strcspn(at + 2, "!? ");
        const char kind = at[2 + len];
        printf(kind == '!'   ? " -%c %.*s"
               : kind == '?' ? " [-%c|--%.*s]"
                             : " [-%c %.*s]",
               *at, len, at + 2);
    }
}

static void help(const char *group)
{
    const char *last = "";

    puts("usage: lgm admin GROUP VERB [ARGUMENT]... [--json] [--admin-url URL]\n");
    for (unsigned i = 0; i < admin_n_verbs; i++) {
        const struct admin_verb *v = &admin_verbs[i];
        if (group && strcmp(group, v->group) != 0)
            continue;
        if (strcmp(last, v->group) != 0)
            printf("%s%s\n", *last ? "\n" : "", v->group);
        last = v->group;
        printf("  %s%s%s", v->name, *v->arguments ? " " : "", v->arguments);
        help_options(v);
        printf("\n      %s\n", v->help);
    }
    puts(
        "\n--json prints what the broker said; --admin-url, else LGM_ADMIN_URL, else\n"
        "http://127.0.0.1:8080 says where it is.  For https://HOST:8443: --tls-trust FILE,\n"
        "whose certificates are trusted; --tls-cert FILE and --tls-key FILE, shown to the broker;\n"
        "--tls-insecure, whatever certificate it shows.\n"
        "A TOPIC is `t`, `tenant/namespace/t` or a full\n"
        "name, a NAMESPACE `tenant/namespace`.");
}

/* ---- the command line ---- */

static unsigned words_in(const char *s)
{
    unsigned n = 0;

    for (; *s; s += strcspn(s, " "), s += *s == ' ')
        n++;
    return n;
}

/* Where the verb's options name it; NULL: nowhere. */
static const char *option_like(const struct admin_verb *v, const char *word)
{
    for (const char *at = v->options; *at; at += strcspn(at, " "), at += *at == ' ') {
        size_t len = strcspn(at + 2, "!? ");
        bool is_short = word[1] == *at && !word[2];
        bool is_long =
            word[1] == '-' && strlen(word + 2) == len && strncmp(word + 2, at + 2, len) == 0;
        if (is_short || is_long)
            return at + 2;
    }
    return NULL;
}

const char *admin_option(const struct admin_call *c, const char *name, size_t len)
{
    for (unsigned i = 0; i < c->n_options; i++)
        if ((size_t)c->option[i].name_len == len && strncmp(c->option[i].name, name, len) == 0)
            return c->option[i].value;
    return NULL;
}

/* Of every verb; NULL: it is none of them. */
static const char **everywhere(struct admin_call *c, const char *word)
{
    const struct {
        const char *word, **into;
    } all[] = {{"--admin-url", &c->url},
               {"--tls-trust", &c->trust},
               {"--tls-cert", &c->cert},
               {"--tls-key", &c->key}};

    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(word, all[i].word) == 0)
            return all[i].into;
    return NULL;
}

static bool *flag_everywhere(struct admin_call *c, const char *word)
{
    return strcmp(word, "--json") == 0           ? &c->json
           : strcmp(word, "--tls-insecure") == 0 ? &c->insecure
                                                 : NULL;
}

/* NULL: fine; else what is wrong with it. */
static const char *take_option(struct admin_call *c, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    bool *said = flag_everywhere(c, word);

    if (said) {
        *said = true;
        return NULL;
    }
    const char **into = everywhere(c, word);
    const char *o = into ? NULL : option_like(c->verb, word);
    if (!into && !o)
        return "this verb does not know the option";
    size_t len = o ? strcspn(o, "!? ") : 0;
    bool flag = o && o[len] == '?';
    if (!flag && *i + 1 == argc)
        return "the option needs a value";
    const char *value = flag ? "true" : argv[++*i];
    if (into)
        *into = value;
    else if (c->n_options == ADMIN_OPTIONS)
        return "too many options";
    else {
        c->option[c->n_options].name = o;
        c->option[c->n_options].name_len = (int)len;
        c->option[c->n_options++].value = value;
    }
    return NULL;
}

static bool knows(const struct admin_verb *v, int argc, char **argv)
{
    struct admin_call none = {0};

    for (int i = 0; i < argc; i++) {
        bool option = argv[i][0] == '-' && (argv[i][1] < '0' || argv[i][1] > '9');
        if (option && !flag_everywhere(&none, argv[i]) && !everywhere(&none, argv[i]) &&
            !option_like(v, argv[i]))
            return false;
    }
    return true;
}

/* Of several by that name the one that knows these options; else the first. */
static const struct admin_verb *find(const char *group, const char *name, int argc, char **argv)
{
    const struct admin_verb *first = NULL;

    for (unsigned i = 0; i < admin_n_verbs; i++) {
        const struct admin_verb *v = &admin_verbs[i];
        if (strcmp(v->group, group) != 0 || strcmp(v->name, name) != 0)
            continue;
        if (knows(v, argc, argv))
            return v;
        first = first ? first : v;
    }
    return first;
}

static const char *missing_option(const struct admin_call *c)
{
    for (const char *at = c->verb->options; *at; at += strcspn(at, " "), at += *at == ' ') {
        size_t len = strcspn(at + 2, "!? ");
        if (at[2 + len] == '!' && !admin_option(c, at + 2, len))
            return at;
    }
    return NULL;
}

/* EXIT_DONE, or complains. */
static int parse(struct admin_call *c, int argc, char **argv)
{
    unsigned n = 0, wanted = words_in(c->verb->arguments);

    for (int i = 0; i < argc; i++) {
        bool negative = argv[i][0] == '-' && argv[i][1] >= '0' && argv[i][1] <= '9';
        if (argv[i][0] != '-' || negative) {
            if (n == wanted)
                return usage_error("admin", "%s is one word too many", argv[i]);
            c->argument[n++] = argv[i];
            continue;
        }
        const char *word = argv[i], *wrong = take_option(c, argc, argv, &i);
        if (wrong)
            return usage_error("admin", "%s: %s", word, wrong);
    }
    if (n < wanted)
        return usage_error("admin", "%s %s needs %s", c->verb->group, c->verb->name,
                           c->verb->arguments);
    const char *missing = missing_option(c);
    if (missing)
        return usage_error("admin", "%s %s needs --%.*s", c->verb->group, c->verb->name,
                           (int)strcspn(missing + 2, "!? "), missing + 2);
    return EXIT_DONE;
}

/* ---- going ---- */

void admin_complain(const struct admin_call *c, long status, const char *answer)
{
    json_object *o = answer ? json_tokener_parse(answer) : NULL;
    const char *reason = json_object_get_string(json_object_object_get(o, "reason"));

    admin_say("%s %s: %s (HTTP %ld)", c->verb->group, c->verb->name,
              reason   ? reason
              : answer ? answer
                       : "refused",
              status);
    json_object_put(o);
}

static int go(const struct admin_call *c)
{
    struct text answer = {0};
    bool fine = true;
    char *target = admin_target(c);
    char *body = target ? admin_body(c, &fine) : NULL;
    long status = target && fine ? admin_http(c, target, body, &answer) : 0;

    if (status >= 300)
        admin_complain(c, status, answer.at);
    else if (status > 0 && answer.at)
        admin_print(c, answer.at);
    text_drop(&answer);
    mem_free(body);
    mem_free(target);
    if (!target || !fine)
        return EXIT_USAGE;
    return status >= 200 && status < 300 ? EXIT_DONE : EXIT_FAILED;
}

int command_admin(int argc, char **argv)
{
    const char *url = getenv("LGM_ADMIN_URL");
    struct admin_call c = {.url = url && *url ? url : "http://127.0.0.1:8080"};

    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        help(NULL);
        return argc < 2 ? EXIT_USAGE : EXIT_DONE;
    }
    if (argc < 3 || strcmp(argv[2], "--help") == 0) {
        help(argv[1]);
        return argc < 3 ? EXIT_USAGE : EXIT_DONE;
    }
    c.verb = find(argv[1], argv[2], argc - 3, argv + 3);
    if (!c.verb)
        return usage_error("admin", "there is no verb `%s %s`", argv[1], argv[2]);
    int wrong = parse(&c, argc - 3, argv + 3);
    if (wrong)
        return wrong;
    return strcmp(c.verb->name, "peek-messages") == 0 ? admin_peek(&c) : go(&c);
}
