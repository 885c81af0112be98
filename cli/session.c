#include "cli/session.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "common/err.h"
#include "common/log.h"
#include "common/mem.h"

enum { PROGRESS_US = 500 * 1000 };

const char *cli_url(const char *option)
{
    const char *set = option ? option : getenv("LGM_URL");
    return set ? set : "pulsar://127.0.0.1:6650";
}

static void signalled(struct task *t)
{
    struct cli *c = container_of(t, struct cli, signal_task);
    c->stop(c->ctx);
}

/* The second signal finds its default action again and ends the process. */
static void *wait_for_signal(void *arg)
{
    struct cli *c = arg;
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigwait(&set, &got) == 0) {
        /* A write to a loop is where a thread may be cancelled: the loop would wait for its end. */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        loop_post(c->loop, &c->signal_task);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        for (;;)
            pause();
    }
    return NULL;
}

static void watch_signals(struct cli *c)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    c->signal_task.run = signalled;
    if (pthread_create(&c->signals, NULL, wait_for_signal, c) != 0)
        abort();
}

bool cli_take_tls(struct tls_conf *tls, int option, const char *text)
{
    switch (option) {
    case CLI_TLS_TRUST:
        tls->trust_file = text;
        return true;
    case CLI_TLS_CERT:
        tls->cert_file = text;
        return true;
    case CLI_TLS_KEY:
        tls->key_file = text;
        return true;
    case CLI_TLS_INSECURE:
        tls->insecure = true;
        return true;
    default:
        return false;
    }
}

int cli_open(struct cli *c, const char *name, const char *url, const struct tls_conf *tls,
             void (*stop)(void *ctx), void *ctx)
{
    static const char scheme[] = "pulsar+ssl://";
    *c = (struct cli){.name = name, .stop = stop, .ctx = ctx};
    log_set_level(LOG_ERROR);
    const char *level = getenv("LGM_LOG");
    enum log_level wanted;
    if (level && log_level_of(level, &wanted))
        log_set_level(wanted);
    watch_signals(c);
    c->loop = loop_new("lgm");
    struct client_conf conf = {.url = cli_url(url)};
    if (strncmp(conf.url, scheme, sizeof scheme - 1) == 0 && tls_client(&c->tls, tls)) {
        loop_drop(&c->loop);
        return usage_error(name, "the certificates cannot be used");
    }
    conf.tls = c->tls;
    if (client_open(&c->client, c->loop, &conf)) {
        loop_drop(&c->loop);
        tls_drop(&c->tls);
        return usage_error(name, "'%s' is no service url (pulsar://HOST:PORT)", conf.url);
    }
    return 0;
}

static void progress_due(struct timer *t)
{
    struct cli *c = container_of(t, struct cli, progress);
    fputs("\r\033[K", stderr);
    c->tell(c->ctx);
    fflush(stderr);
    loop_after(c->loop, t, PROGRESS_US);
}

void cli_progress(struct cli *c, void (*tell)(void *ctx))
{
    if (!isatty(STDERR_FILENO))
        return;
    c->tell = tell;
    c->progress.run = progress_due;
    loop_after(c->loop, &c->progress, PROGRESS_US);
}

int cli_run(struct cli *c)
{
    loop_run(c->loop);
    return c->exit_code;
}

void cli_end(struct cli *c, int exit_code)
{
    if (c->ended)
        return;
    c->ended = true;
    c->exit_code = exit_code;
    loop_cancel(c->loop, &c->progress);
    if (c->tell)
        fputs("\r\033[K", stderr);
    loop_stop(c->loop);
}

void cli_close(struct cli *c)
{
    pthread_cancel(c->signals);
    pthread_join(c->signals, NULL);
    client_close(&c->client);
    loop_drop(&c->loop);
    tls_drop(&c->tls);
}

void cli_say(const struct cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%slgm %s: ", c->tell ? "\r\033[K" : "", c->name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

void cli_tell(const struct cli *c, const char *fmt, ...)
{
    va_list ap;
    if (!isatty(STDERR_FILENO))
        return;
    va_start(ap, fmt);
    fprintf(stderr, "%slgm %s: ", c->tell ? "\r\033[K" : "", c->name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}
