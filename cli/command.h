/* command.h - the subcommands of `lgm`: a name, a line of help, a function.
 *
 * Exit codes are the same everywhere: 0 done, 1 it failed (a sentence on standard error says
 * why), 2 the command line was wrong.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef int command_fn(int argc, char **argv); /* argv[0] is the subcommand's name */

command_fn command_init, command_standalone, command_produce, command_consume, command_verify;
command_fn command_admin, command_perf, command_bookie, command_ledger;

extern const char *program_path; /* argv[0] of lgm, for the lines that it prints to be copied */

/* Prints "lgm NAME: sentence" and how to get help; gives EXIT_USAGE. */
int usage_error(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
