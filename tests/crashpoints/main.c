/* What a bookie knows after a crash at any moment: tests/crashpoints/README.md. */
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "tests/crashpoints/lives.h"
#include "tests/crashpoints/states.h"

static const char usage[] =
    "crashpoints record DISK METADATA      a bookie's lives in these two directories (under "
    "layer.so)\n"
    "crashpoints check RECORDING METADATA  every crash of them, built below --dir and started\n"
    "crashpoints build RECORDING CRASH DIR one of them, as RECORD:KEEP:SEED\n"
    "crashpoints try RECORDING METADATA CRASH   built below --dir and started\n"
    "crashpoints ask RECORDING CRASH PORT  a bookie that was started on it by somebody else\n"
    "crashpoints list RECORDING N          N crashes, any\n"
    "crashpoints show RECORDING            what was recorded\n"
    "crashpoints settings                  of the bookie\n"
    "\n"
    "  --seed N  --lives N  --bursts N  --garbage  --hurt (something will fail)  --set KEY=VALUE\n"
    "  --before RECORDING,CRASH (goes on from there, in DISK)\n"
    "  --dir DIR  --jobs N  --some N  --again N  --seconds N  --stop N\n"
    "  --focus none|names (only what is left without all that was not synced, or with names "
    "alone)\n"
    "  --end (only the last crash)  --new (none of what is from --before)\n";

struct options {
    uint64_t seed;
    unsigned lives, bursts, jobs, some, again, seconds, stop;
    bool hurt, end, garbage, only_new;
    const char *dir, *before, *focus;
    const char *sets[HOME_SETS + 1];
    unsigned sets_n;
};

static unsigned number(const char *text)
{
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    if (*end || !*text)
        errx(2, "%s is no number", text);
    return (unsigned)n;
}

static void take_option(struct options *o, int c)
{
    switch (c) {
    case 's':
        o->seed = number(optarg);
        break;
    case 'l':
        o->lives = number(optarg);
        break;
    case 'b':
        o->bursts = number(optarg);
        break;
    case 'j':
        o->jobs = number(optarg);
        break;
    case 'o':
        o->some = number(optarg);
        break;
    case 'a':
        o->again = number(optarg);
        break;
    case 't':
        o->seconds = number(optarg);
        break;
    case 'p':
        o->stop = number(optarg);
        break;
    case 'd':
        o->dir = optarg;
        break;
    case 'h':
        o->hurt = true;
        break;
    case 'e':
        o->end = true;
        break;
    case 'n':
        o->only_new = true;
        break;
    case 'u':
        o->focus = optarg;
        break;
    case 'f':
        o->before = optarg;
        break;
    case 'g':
        o->garbage = true;
        break;
    case 'k':
        if (o->sets_n == HOME_SETS)
            errx(2, "too many settings");
        o->sets[o->sets_n++] = optarg;
        break;
    default:
        errx(2, "%s", usage);
    }
}

static struct options read_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"seed", required_argument, NULL, 's'},
        {"lives", required_argument, NULL, 'l'},
        {"bursts", required_argument, NULL, 'b'},
        {"jobs", required_argument, NULL, 'j'},
        {"some", required_argument, NULL, 'o'},
        {"again", required_argument, NULL, 'a'},
        {"seconds", required_argument, NULL, 't'},
        {"stop", required_argument, NULL, 'p'},
        {"dir", required_argument, NULL, 'd'},
        {"hurt", no_argument, NULL, 'h'},
        {"end", no_argument, NULL, 'e'},
        {"set", required_argument, NULL, 'k'},
        {"garbage", no_argument, NULL, 'g'},
        {"new", no_argument, NULL, 'n'},
        {"focus", required_argument, NULL, 'u'},
        {"before", required_argument, NULL, 'f'},
        {0},
    };
    struct options o = {
        .seed = 1, .lives = 5, .bursts = 60, .jobs = 2, .some = 1, .again = 8, .dir = "/tmp"};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        take_option(&o, c);
    return o;
}

static struct crash crash_of(const char *text)
{
    struct crash c = {0};
    char keep[16];
    if (sscanf(text, "%" SCNu64 ":%15[a-z]:%" SCNu64, &c.after, keep, &c.seed) != 3)
        errx(2, "%s is no RECORD:KEEP:SEED", text);
    for (c.keep = 0; c.keep < KEEPS; c.keep++)
        if (strcmp(keep_names[c.keep], keep) == 0)
            return c;
    errx(2, "%s is no way to keep anything", keep);
}

static int record(const struct options *o, char **args)
{
    struct lives_conf conf = {.disk = args[0],
                              .metadata = args[1],
                              .seed = o->seed,
                              .lives = o->lives,
                              .bursts = o->bursts,
                              .is_hurt = o->hurt,
                              .has_garbage = o->garbage,
                              .sets = o->sets};
    if (o->before) {
        const char *crash = strrchr(o->before, ',');
        if (!crash)
            errx(2, "--before RECORDING,CRASH");
        char *path = strndup(o->before, (size_t)(crash - o->before));
        conf.before = recording_load(path);
        conf.after = crash_of(crash + 1).after;
    }
    return lives_run(&conf);
}

/* Behind what was there before, and the notes of that. */
static uint64_t first_new(const struct recording *r)
{
    uint64_t i = 0;
    while (i < r->n && r->at[i].op != REC_NOTE)
        i++;
    while (i < r->n && r->at[i].op == REC_NOTE)
        i++;
    return i < r->n ? i : 0;
}

static struct states_conf states_of(const struct options *o, const struct recording *r,
                                    const struct home_identity *identity)
{
    return (struct states_conf){.recording = r,
                                .check = {.identity = identity, .sets = o->sets},
                                .dir = o->dir,
                                .jobs = o->jobs,
                                .some = o->some,
                                .again = o->again,
                                .seconds = o->seconds,
                                .stop = o->stop,
                                .focus = o->focus,
                                .from = o->end        ? NEVER
                                        : o->only_new ? first_new(r)
                                                      : 0,
                                .seed = o->seed};
}

static int check(const struct options *o, char **args)
{
    const struct recording *r = recording_load(args[0]);
    const struct home_identity identity = home_identity_load(args[1]);
    const struct states_conf conf = states_of(o, r, &identity);
    if (r->fault)
        errx(1, "a file was changed by %s: not all is in the recording", r->fault);
    const unsigned marks = o->hurt ? 0 : states_check_marks(r);
    return marks + states_check(&conf) == 0 ? 0 : 1;
}

static int try(const struct options *o, char **args)
{
    char log[1024];
    static struct book book;
    const struct recording *r = recording_load(args[0]);
    const struct home_identity identity = home_identity_load(args[1]);
    const struct crash c = crash_of(args[2]);
    snprintf(log, sizeof log, "%s.log", o->dir);
    const struct check_conf conf = {
        .identity = &identity, .sets = o->sets, .log = log, .again = o->again};
    disk_build(r, &c, o->dir);
    states_book(r, c.after, &book);
    const char *what = check_state(&conf, &book, o->dir);
    printf("%s\n", what ? what : "fine");
    return what ? 1 : 0;
}

static int ask(char **args)
{
    static struct book book;
    const struct recording *r = recording_load(args[0]);
    states_book(r, crash_of(args[1]).after, &book);
    const char *what = check_bookie(&book, (uint16_t)number(args[2]));
    printf("%s\n", what ? what : "fine");
    return what ? 1 : 0;
}

static int list(const struct options *o, char **args)
{
    const struct recording *r = recording_load(args[0]);
    uint64_t registered = 0, seed = o->seed;
    while (registered < r->n &&
           !(r->at[registered].op == REC_NOTE && r->at[registered].at == NOTE_SERVING))
        registered++;
    for (unsigned i = number(args[1]); i > 0 && registered < r->n; i--)
        printf("%" PRIu64 ":%s:%" PRIu64 "\n", registered + rng_below(&seed, r->n - registered),
               keep_names[rng_below(&seed, KEEPS)], rng_below(&seed, 1000));
    return 0;
}

static int show(char **args)
{
    static const char *const names[] = {
        "",      "create", "mkdir", "write",  "truncate",    "allocate", "rename", "unlink",
        "rmdir", "link",   "sync",  "synced", "sync-failed", "failed",   "note",   "unsupported"};
    const struct recording *r = recording_load(args[0]);
    for (uint64_t i = 0; i < r->n; i++) {
        const struct change *c = &r->at[i];
        printf("%" PRIu64 " %s #%u %s %s at=%" PRIu64 " len=%" PRIu64, i, names[c->op], c->object,
               c->path ? c->path : "", c->path2 ? c->path2 : "", c->at, c->len);
        if (change_is(c) && c->durable != NEVER)
            printf(" durable=%" PRIu64, c->durable);
        putchar('\n');
    }
    return 0;
}

int main(int argc, char **argv)
{
    mem_setup();
    const struct options o = read_options(argc, argv);
    char **args = argv + optind + 1;
    const int n = argc - optind - 1;
    const char *what = n >= 0 ? argv[optind] : "";
    if (strcmp(what, "record") == 0 && n == 2)
        return record(&o, args);
    if (strcmp(what, "check") == 0 && n == 2)
        return check(&o, args);
    if (strcmp(what, "build") == 0 && n == 3) {
        const struct crash c = crash_of(args[1]);
        disk_build(recording_load(args[0]), &c, args[2]);
        return 0;
    }
    if (strcmp(what, "try") == 0 && n == 3)
        return try(&o, args);
    if (strcmp(what, "ask") == 0 && n == 3)
        return ask(args);
    if (strcmp(what, "list") == 0 && n == 2)
        return list(&o, args);
    if (strcmp(what, "show") == 0 && n == 1)
        return show(args);
    if (strcmp(what, "settings") == 0)
        home_print(o.sets);
    else
        errx(2, "%s", usage);
    return 0;
}
