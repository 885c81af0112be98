/* sim [--seeds N] [--first K] [--brief] | --seed K [--without LIST] [--entries N] [--verbose]
 *
 * Runs lives by their numbers.  When one breaks an invariant, a shorter one that breaks the same is
 * looked for and told up to the fault; with --brief only the number is said. */
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"
#include "tests/sim/sim.h"

enum { ALL_LIVED = 5000 }; /* seeds, from which on everything in the tally must have happened */

static sigjmp_buf on_abort;

/* An assertion of a core is a fault like others: it is told with its story. */
static void aborted(int signal_number)
{
    (void)signal_number;
    siglongjmp(on_abort, 1);
}

static const char *one_life(struct sim *s, uint64_t seed, bool loud)
{
    if (sigsetjmp(on_abort, 1))
        return "an assertion of a core failed";
    return sim_run(s, seed, loud);
}

/* ---- a short story ---- */

enum { LOOKED_AT = 400 }; /* seeds, for each thing that may be left out */

static const char *const plain_name[] = {
#define PLAIN_TEXT(name, how) #name,
    PLAIN_LINES(PLAIN_TEXT)
#undef PLAIN_TEXT
};

struct story {
    uint64_t seed;
    unsigned without, entries, until;
    char fault[256];
};

/* The life of a seed as the story has it; true if it breaks the same invariant. */
static bool breaks(struct sim *s, struct story *t, uint64_t seed)
{
    s->without = t->without;
    s->entries = t->entries;
    const char *fault = one_life(s, seed, false);
    if (!fault || strncmp(fault, t->fault, 3) != 0)
        return false;
    t->seed = seed;
    t->until = s->now;
    snprintf(t->fault, sizeof t->fault, "%s", fault);
    return true;
}

static bool any_breaks(struct sim *s, struct story *t)
{
    uint64_t first = t->seed;

    for (unsigned i = 0; i < LOOKED_AT; i++)
        if (breaks(s, t, first + i))
            return true;
    return false;
}

static void try_change(struct sim *s, struct story *t, unsigned without, unsigned entries)
{
    struct story other = *t;

    other.without |= without;
    other.entries = entries;
    if (any_breaks(s, &other))
        *t = other;
}

static struct story shorten(struct sim *s, uint64_t seed, const char *fault)
{
    struct story t = {.seed = seed};

    snprintf(t.fault, sizeof t.fault, "%s", fault);
    for (unsigned i = 0; i < PLAINS; i++)
        try_change(s, &t, 1u << i, t.entries);
    for (unsigned entries = 32; entries > 0; entries /= 2)
        try_change(s, &t, 0, entries);
    struct story shortest = t;
    shortest.until = UINT32_MAX;
    for (unsigned i = 0; i < LOOKED_AT; i++)
        if (breaks(s, &t, seed + i) && t.until < shortest.until)
            shortest = t;
    return shortest.until == UINT32_MAX ? t : shortest;
}

static void tell_story(struct sim *s, uint64_t seed, const char *fault)
{
    struct story t = shorten(s, seed, fault);
    const char *comma = "";

    s->without = t.without;
    s->entries = t.entries;
    one_life(s, t.seed, true);
    printf("this was sim --seed %lu --entries %u --without ", (unsigned long)t.seed, t.entries);
    for (unsigned i = 0; i < PLAINS; i++)
        if (t.without & 1u << i) {
            printf("%s%s", comma, plain_name[i]);
            comma = ",";
        }
    printf("\n");
}

static enum err parse_plains(const char *list, unsigned *out)
{
    for (size_t n = 0; *list; list += n + (list[n] == ',')) {
        unsigned i = 0;
        n = strcspn(list, ",");
        while (i < PLAINS && (strlen(plain_name[i]) != n || memcmp(plain_name[i], list, n) != 0))
            i++;
        if (i == PLAINS)
            return ERR_NOT_FOUND;
        *out |= 1u << i;
    }
    return ERR_OK;
}

/* ---- the command ---- */

static void print_tally(const struct tally *t)
{
#define TALLY_PRINT(name, text) printf("%12lu %s\n", t->name, text);
    TALLY_LINES(TALLY_PRINT)
#undef TALLY_PRINT
}

/* What so many lives should have come to. */
static const char *never_lived(const struct tally *t)
{
#define TALLY_CHECK(name, text) \
    if (t->name == 0)           \
        return text;
    TALLY_LINES(TALLY_CHECK)
#undef TALLY_CHECK
    return NULL;
}

static int usage(void)
{
    fputs("usage: sim [--seeds N] [--first K] [--brief] |\n"
          "           --seed K [--without LIST] [--entries N] [--verbose]\n",
          stderr);
    return 2;
}

struct words {
    uint64_t seeds, first, entries;
    unsigned without;
    bool loud, brief;
};

static bool parse_words(int argc, char **argv, struct words *w)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},   {"first", required_argument, NULL, 'f'},
        {"seed", required_argument, NULL, 's'},    {"without", required_argument, NULL, 'w'},
        {"entries", required_argument, NULL, 'e'}, {"verbose", no_argument, NULL, 'v'},
        {"brief", no_argument, NULL, 'b'},         {0}};
    enum err err = ERR_OK;
    int c;

    while (!err && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        w->loud |= c == 'v';
        w->brief |= c == 'b' || c == 's';
        if (c == 's')
            w->seeds = 1;
        if (c == '?')
            err = ERR_NOT_FOUND;
        else if (c == 'w')
            err = parse_plains(optarg, &w->without);
        else if (c != 'v' && c != 'b')
            err = parse_u64(optarg, c == 'n' ? &w->seeds : c == 'e' ? &w->entries : &w->first);
    }
    return !err;
}

int main(int argc, char **argv)
{
    struct words w = {.seeds = 1000, .first = 1};
    struct tally tally = {0};

    if (!parse_words(argc, argv, &w))
        return usage();
    signal(SIGABRT, aborted);
    struct sim *s = sim_new(&tally);
    s->without = w.without;
    s->entries = (unsigned)w.entries;
    for (uint64_t seed = w.first; seed < w.first + w.seeds; seed++) {
        const char *found = one_life(s, seed, w.loud);
        if (!found)
            continue;
        char *fault = mem_string(found);
        if (!w.brief)
            tell_story(s, seed, fault);
        printf("seed %lu: %s\n%lu passed, 1 failed\n", (unsigned long)seed, fault,
               (unsigned long)(seed - w.first));
        return EXIT_FAILURE;
    }
    print_tally(&tally);
    const char *missing = w.seeds >= ALL_LIVED ? never_lived(&tally) : NULL;
    if (missing) {
        printf("never lived: %s\n%lu passed, 1 failed\n", missing, (unsigned long)w.seeds);
        return EXIT_FAILURE;
    }
    printf("%lu passed, 0 failed\n", (unsigned long)w.seeds);
    sim_drop(&s);
    return EXIT_SUCCESS;
}
