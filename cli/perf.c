/* lgm perf - how fast is it? */
#include "cli/perf.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const char help[] =
    "usage: lgm perf produce|consume|read TOPIC [OPTION]...\n"
    "Measures publishing, consuming or reading, with the options of pulsar-perf.\n\n"
    "  produce   how long until a message is acknowledged, and how many there can be\n"
    "  consume   how old messages are when a subscription has them\n"
    "  read      the same of readers, from any place in the topic\n\n"
    "`lgm perf produce --help` and so on tell the options.\n"
    "Example: lgm perf produce my-topic -r 10000 -time 10\n";

int command_perf(int argc, char **argv)
{
    static const char *const names[] = {"produce", "consume", "read"};
    struct perf_options o;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return EXIT_DONE;
    }
    for (unsigned i = 0; argc > 1 && i < sizeof names / sizeof *names; i++) {
        if (strcmp(argv[1], names[i]) != 0)
            continue;
        int code = perf_options_parse(&o, (enum perf_command)i, argc - 1, argv + 1);
        if (code)
            return code;
        if (o.wants_help) {
            perf_options_help(o.command);
            return EXIT_DONE;
        }
        return o.command == PERF_PRODUCE ? perf_produce(&o) : perf_consume(&o);
    }
    return usage_error("perf", "produce, consume or read?");
}
