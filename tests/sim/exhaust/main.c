/* exhaust [--seconds N] [--mib N] [--write N --entries N --spares N --crashes N --losses N]
 *
 * Every order of everything in one small setting, or in each of those that fit; when an invariant
 * breaks, how it came to that.  Seconds are those of the processor: whatever else runs here. */
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "common/mem.h"
#include "common/parse.h"
#include "tests/sim/exhaust/model.h"
#include "tests/sim/exhaust/seen.h"

enum { DEPTH = 400, CHOICES = 32 };

struct setting setting;
bool loud;
const char *found;
static char text[256];
static sigjmp_buf on_abort;

static void aborted(int signal_number)
{
    (void)signal_number;
    siglongjmp(on_abort, 1);
}

void say(const char *fmt, ...)
{
    va_list ap;

    if (!loud)
        return;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void fault(const char *fmt, ...)
{
    va_list ap;

    if (found)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    found = text;
}

/* ---- choices within a step: a number with a digit for each, counted up ---- */

struct choices {
    unsigned n, made;
    uint8_t digit[CHOICES], base[CHOICES];
};

static struct choices *choices;

unsigned choose(unsigned n)
{
    struct choices *c = choices;
    unsigned i = c->made++;

    if (i == CHOICES) {
        fault("more choices in a step than there is room for");
        return 0;
    }
    if (i == c->n) {
        c->digit[i] = 0;
        c->base[i] = (uint8_t)n;
        c->n++;
    }
    return c->digit[i];
}

static bool next_choices(struct choices *c)
{
    c->n = c->made < c->n ? c->made : c->n;
    while (c->n > 0 && c->digit[c->n - 1] + 1 == c->base[c->n - 1])
        c->n--;
    if (c->n == 0)
        return false;
    c->digit[c->n - 1]++;
    return true;
}

/* ---- the search: depth first ---- */

struct frame {
    struct model model;
    bool begun;
    unsigned n, at; /* steps; the one that is being tried */
    struct step step[STEPS];
    struct choices choices;
};

struct search {
    struct frame *frame;
    unsigned depth, deepest;
    uint64_t tried;
    struct seen seen;
};

static volatile sig_atomic_t is_late;

static void late(int signal_number)
{
    (void)signal_number;
    is_late = 1;
}

static void push(struct search *s)
{
    if (s->depth == DEPTH) {
        fault("a story longer than there is room for");
        return;
    }
    struct frame *f = &s->frame[s->depth++];
    f->model = world;
    f->at = 0;
    f->begun = false;
    f->choices = (struct choices){0};
    f->n = model_steps(f->step);
    if (f->n == 0 || f->step[0].kind >= STEP_CRASH)
        check_end();
    if (s->depth > s->deepest)
        s->deepest = s->depth;
}

static void take(struct frame *f)
{
    world = f->model;
    choices = &f->choices;
    choices->made = 0;
    model_take(f->step[f->at]);
    check_state();
}

/* On to the next way that the topmost state can go on; false: that was all. */
static bool advance(struct frame *f)
{
    if (f->begun && !next_choices(&f->choices)) {
        f->choices = (struct choices){0};
        f->at++;
    }
    f->begun = true;
    return f->at < f->n;
}

static void search(struct search *s)
{
    if (sigsetjmp(on_abort, 1)) {
        fault("an assertion of a core failed");
        return;
    }
    model_begin();
    seen_add(&s->seen, model_code());
    push(s);
    while (s->depth > 0 && !found && !s->seen.full && !is_late) {
        struct frame *f = &s->frame[s->depth - 1];
        if (!advance(f)) {
            s->depth--;
            continue;
        }
        take(f);
        s->tried++;
        if (!found && seen_add(&s->seen, model_code()))
            push(s);
    }
}

static void tell(struct search *s)
{
    loud = true;
    if (sigsetjmp(on_abort, 1)) {
        loud = false;
        return;
    }
    for (unsigned i = 0; i < s->depth; i++)
        if (s->frame[i].at < s->frame[i].n)
            take(&s->frame[i]);
    loud = false;
}

/* ---- the command ---- */

static bool run(const struct setting *of, size_t mib)
{
    struct search s = {.frame = mem_alloc(DEPTH * sizeof *s.frame)};
    bool complete;

    setting = *of;
    printf("E=%d Qw=%u Qa=%u, %u entries, %u spare, %u crash, %u lost: ", ENSEMBLE,
           setting.quorum.write, setting.quorum.ack, setting.entries, setting.spares,
           setting.crashes, setting.losses);
    fflush(stdout);
    seen_init(&s.seen, mib << 20);
    search(&s);
    complete = s.depth == 0 && !found;
    if (found) {
        printf("\n");
        tell(&s);
        printf("FAULT: %s\n", found);
    }
    printf("%lu states, %lu steps, %u deep%s\n", (unsigned long)s.seen.n, (unsigned long)s.tried,
           s.deepest,
           complete      ? ""
           : found       ? ""
           : s.seen.full ? ", and then there was no more room"
                         : ", and then there was no more time");
    fflush(stdout);
    seen_drop(&s.seen);
    mem_free(s.frame);
    return complete;
}

/* What `make exhaust` goes through. */
static const struct setting all[] = {
    {{3, 3, 2}, 1, 0, 1, 1}, {{3, 2, 2}, 1, 0, 1, 1}, {{3, 3, 2}, 1, 1, 1, 1},
    {{3, 2, 2}, 1, 1, 1, 1}, {{3, 3, 2}, 2, 0, 0, 0}, {{3, 2, 2}, 2, 0, 0, 1},
    {{3, 2, 2}, 2, 0, 1, 0},
};

static bool parse_words(int argc, char **argv, struct setting *one, uint64_t *seconds,
                        uint64_t *mib)
{
    static const struct option options[] = {
        {"write", required_argument, NULL, 'w'},  {"entries", required_argument, NULL, 'e'},
        {"spares", required_argument, NULL, 's'}, {"crashes", required_argument, NULL, 'c'},
        {"losses", required_argument, NULL, 'l'}, {"seconds", required_argument, NULL, 't'},
        {"mib", required_argument, NULL, 'm'},    {0}};
    uint64_t v = 0;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == '?' || parse_u64(optarg, &v))
            return false;
        *(c == 't' ? seconds : c == 'm' ? mib : &v) = v;
        if (c == 'w')
            one->quorum = (struct quorum){ENSEMBLE, (unsigned)v, 2};
        if (c == 'e')
            one->entries = (unsigned)v;
        if (c == 's')
            one->spares = (unsigned)v;
        if (c == 'c')
            one->crashes = (unsigned)v;
        if (c == 'l')
            one->losses = (unsigned)v;
    }
    return one->quorum.ensemble == 0 || (quorum_valid(one->quorum) && one->entries + 1 < ENTRIES &&
                                         one->spares <= BOOKIES - ENSEMBLE);
}

int main(int argc, char **argv)
{
    struct setting one = {0};
    uint64_t seconds = 600, mib = 8192;
    bool fine = true;

    if (!parse_words(argc, argv, &one, &seconds, &mib)) {
        fputs(
            "usage: exhaust [--seconds N] [--mib N] [--write N --entries N --spares N --crashes N "
            "--losses N]\n",
            stderr);
        return 2;
    }
    signal(SIGABRT, aborted);
    signal(SIGPROF, late);
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = (time_t)seconds}, NULL);
    if (one.quorum.ensemble)
        fine = run(&one, mib);
    for (size_t i = 0; !one.quorum.ensemble && i < sizeof all / sizeof *all && fine; i++)
        fine = run(&all[i], mib);
    printf("%d passed, %d failed\n", fine, !fine);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
