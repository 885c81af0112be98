/* session.h - what a client command runs in: a loop on the main thread, a client, signals,
 * progress.
 *
 *   cli_open -> (producers, consumers) -> cli_run .. cli_end -> cli_close
 *
 * SIGINT and SIGTERM call stop() on the loop once; a second one ends the process.
 */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"
#include "common/loop.h"
#include "common/tls.h"

struct cli {
    const char *name; /* the subcommand's */
    struct loop *loop;
    struct tls *tls;
    struct client *client;
    void (*stop)(void *ctx); /* asked to end by a signal */
    void *ctx;
    int exit_code;
    bool ended;
    pthread_t signals;
    struct task signal_task;
    struct timer progress;
    void (*tell)(void *ctx); /* prints one progress line, without a newline */
};

/* Complains and gives EXIT_FAILED or EXIT_USAGE, or 0.  `tls`: for a pulsar+ssl URL. */
int cli_open(struct cli *c, const char *name, const char *url, const struct tls_conf *tls,
             void (*stop)(void *ctx), void *ctx);
/* Options of every client command, and what they come to. */
enum { CLI_TLS_TRUST = 1000, CLI_TLS_CERT, CLI_TLS_KEY, CLI_TLS_INSECURE };
#define CLI_TLS_OPTIONS                                      \
    {"tls-trust", required_argument, NULL, CLI_TLS_TRUST},   \
        {"tls-cert", required_argument, NULL, CLI_TLS_CERT}, \
        {"tls-key", required_argument, NULL, CLI_TLS_KEY},   \
    {                                                        \
        "tls-insecure", no_argument, NULL, CLI_TLS_INSECURE  \
    }
#define CLI_TLS_HELP                                                                         \
    "      --tls-trust FILE   whose certificates are trusted, with pulsar+ssl://HOST:6651\n" \
    "      --tls-cert FILE    shown to the broker; --tls-key FILE: its key\n"                \
    "      --tls-insecure     whatever certificate the broker shows\n"
bool cli_take_tls(struct tls_conf *tls, int option, const char *text); /* false: none of these */

/* Calls tell() twice a second while standard error is a terminal. */
void cli_progress(struct cli *c, void (*tell)(void *ctx));
int cli_run(struct cli *c);                 /* until cli_end(); gives the exit code */
void cli_end(struct cli *c, int exit_code); /* the first call counts */
void cli_close(struct cli *c);
void cli_say(const struct cli *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* "lgm NAME: ..." on standard error */
/* To people only: nothing when standard error is not a terminal. */
void cli_tell(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --url, else LGM_URL, else the local standalone. */
const char *cli_url(const char *option);

#endif
