#include "cli/verify.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const char help[] =
    "usage: lgm verify [TOPIC] [--count N] [--log FILE] [OPTION]...\n"
    "       lgm verify produce TOPIC --count N --log FILE [OPTION]...\n"
    "       lgm verify consume TOPIC --log FILE [OPTION]...\n"
    "produce publishes numbered, chained records and logs durably what was acknowledged; consume\n"
    "receives them (also while produce is running) and judges; without either word both run, each\n"
    "in a process of its own, with the options of both (100000 records on `lgm-verify`):\n\n"
    "  lost         logged as acknowledged and never seen\n"
    "  duplicated   one record at two message ids that the log does not show sent twice\n"
    "  reordered    first appearances out of order\n"
    "  resent       two message ids that the log does show sent twice\n"
    "  redelivered  the same message id again\n\n"
    "Exit code 1 on lost, duplicated or reordered (with --strict: resent too).\n"
    "Example: lgm verify --consumers 8 -t Shared\n"
    "         lgm verify produce my-topic --count 100000 --log /tmp/run.log\n"
    "         lgm verify consume my-topic --log /tmp/run.log\n";

static bool names_fleeting(int argc, char **argv)
{
    static const char fleeting[] = "non-persistent://";

    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], fleeting, strlen(fleeting)) == 0)
            return true;
    return false;
}

int command_verify(int argc, char **argv)
{
    if (names_fleeting(argc, argv))
        return usage_error("verify", "a non-persistent topic promises nothing to be verified");
    if (argc > 1 && strcmp(argv[1], "produce") == 0)
        return verify_produce(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "consume") == 0)
        return verify_consume(argc - 1, argv + 1);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return EXIT_DONE;
    }
    return verify_both(argc, argv);
}
