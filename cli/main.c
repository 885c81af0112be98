/* lgm - the one command line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "common/flight.h"
#include "common/mem.h"

const char *program_path = "lgm";

static const struct subcommand {
    const char *name;
    command_fn *run;
    const char *what;
} subcommands[] = {
    {"standalone", command_standalone,
     "a broker and its bookies in one process, with data in a folder"},
    {"init", command_init, "make a new cluster's metadata, before its bookies and brokers start"},
    {"bookie", command_bookie,
     "take a bookie out for good, ledgers that lack copies; look into its directories, mend them"},
    {"ledger", command_ledger,
     "look into a ledger; recover it, or go on without what is gone for good"},
    {"produce", command_produce, "publish messages to a topic"},
    {"consume", command_consume, "receive messages from a topic"},
    {"admin", command_admin, "clusters, tenants, namespaces, topics: pulsar-admin's words"},
    {"perf", command_perf, "measure publishing, consuming and reading: pulsar-perf's words"},
    {"verify", command_verify, "prove that a topic loses, doubles and reorders nothing"},
};

enum { N_SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static void help(FILE *out)
{
    fprintf(out,
            "lgm %s - a ledgered, geo-replicated, multi-tenant log that Pulsar clients speak to\n\n"
            "usage: lgm COMMAND [OPTION]...\n\n",
            LGM_VERSION);
    for (unsigned i = 0; i < N_SUBCOMMANDS; i++)
        fprintf(out, "  %-12s %s\n", subcommands[i].name, subcommands[i].what);
    fprintf(
        out,
        "\n`lgm COMMAND --help` tells its options.  Exit codes: 0 done, 1 failed, 2 wrong usage.\n"
        "Example: lgm standalone, and from another terminal: lgm produce my-topic -m hello\n");
}

int usage_error(const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "lgm %s: ", name);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n`lgm %s --help` tells how it is used\n", name);
    va_end(ap);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    mem_setup();
    program_path = argv[0];
    flight_install();
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        help(stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        puts("lgm " LGM_VERSION);
        return EXIT_DONE;
    }
    for (unsigned i = 0; i < N_SUBCOMMANDS; i++)
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "lgm: there is no command '%s'; `lgm --help` lists them\n", argv[1]);
    return EXIT_USAGE;
}
