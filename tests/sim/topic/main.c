/* sim-topic [--seeds N] [--first K] [--brief] | --seed K [--verbose]
 *
 * Lives of a topic by their numbers, each in a process that ends with it: what a killed broker held
 * is nobody's to give back. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/parse.h"
#include "tests/sim/topic/topic.h"

enum { BATCH = 50, ALL_LIVED = 2000 };

/* What the processes share. */
struct board {
    struct topic_tally tally;
    uint64_t at; /* the life that is being lived */
    char fault[256];
};

static int live(struct board *b, uint64_t first, uint64_t end, bool loud)
{
    for (b->at = first; b->at < end; b->at++) {
        const char *fault = topic_life(b->at, loud, &b->tally);
        if (!fault)
            continue;
        snprintf(b->fault, sizeof b->fault, "%s", fault);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static bool lived(struct board *b, uint64_t first, uint64_t end, bool loud)
{
    int status = 0;

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int code = live(b, first, end, loud);
        fflush(stdout);
        _exit(code);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return false;
    if (!WIFEXITED(status))
        snprintf(b->fault, sizeof b->fault, "an assertion failed, or worse: signal %d",
                 WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

static const char *never_lived(const struct topic_tally *t)
{
#define TALLY_CHECK(name, text) \
    if (t->name == 0)           \
        return text;
    TOPIC_TALLY_LINES(TALLY_CHECK)
#undef TALLY_CHECK
    return NULL;
}

static int report(const struct board *b, uint64_t seeds)
{
    const char *missing = seeds >= ALL_LIVED ? never_lived(&b->tally) : NULL;

#define TALLY_PRINT(name, text) printf("%12lu %s\n", b->tally.name, text);
    TOPIC_TALLY_LINES(TALLY_PRINT)
#undef TALLY_PRINT
    if (missing)
        printf("never lived: %s\n", missing);
    printf("%lu passed, %d failed\n", (unsigned long)seeds, missing != NULL);
    return missing ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'}, {"first", required_argument, NULL, 'f'},
        {"seed", required_argument, NULL, 's'},  {"verbose", no_argument, NULL, 'v'},
        {"brief", no_argument, NULL, 'b'},       {0}};
    uint64_t seeds = 1000, first = 1;
    bool loud = false, brief = false;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        loud |= c == 'v';
        brief |= c == 'b';
        if (c == '?' || (optarg && parse_u64(optarg, c == 'n' ? &seeds : &first)))
            return 2;
        if (c == 's')
            seeds = 1;
    }
    struct board *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return 2;
    for (uint64_t at = first; at < first + seeds; at += BATCH) {
        uint64_t end = at + BATCH < first + seeds ? at + BATCH : first + seeds;
        if (lived(b, at, end, loud))
            continue;
        if (!brief && !loud)
            lived(b, b->at, b->at + 1, true);
        printf("seed %lu: %s\n%lu passed, 1 failed\n", (unsigned long)b->at, b->fault,
               (unsigned long)(b->at - first));
        return EXIT_FAILURE;
    }
    return report(b, seeds);
}
