/* sim --seeds N [--first K] | --seed K [--verbose]
 *
 * Runs lives by their numbers; the first one that breaks an invariant is told up to the fault. */
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    fputs("usage: sim [--seeds N] [--first K] | --seed K [--verbose]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seeds", required_argument, NULL, 'n'},
                                            {"first", required_argument, NULL, 'f'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {0}};
    uint64_t seeds = 1000, first = 1;
    bool loud = false;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'v')
            loud = true;
        else if (c == '?' || parse_u64(optarg, c == 'n' ? &seeds : &first))
            return usage();
        if (c == 's')
            seeds = 1;
    }
    signal(SIGABRT, aborted);
    struct tally tally = {0};
    struct sim *s = sim_new(&tally);
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        const char *fault = one_life(s, seed, loud);
        if (!fault)
            continue;
        if (!loud)
            one_life(s, seed, true);
        printf("seed %lu: %s\n%lu passed, 1 failed\n", (unsigned long)seed, fault,
               (unsigned long)(seed - first));
        return EXIT_FAILURE;
    }
    print_tally(&tally);
    const char *missing = seeds >= ALL_LIVED ? never_lived(&tally) : NULL;
    if (missing) {
        printf("never lived: %s\n%lu passed, 1 failed\n", missing, (unsigned long)seeds);
        return EXIT_FAILURE;
    }
    printf("%lu passed, 0 failed\n", (unsigned long)seeds);
    sim_drop(&s);
    return EXIT_SUCCESS;
}
