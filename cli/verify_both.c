/* `lgm verify TOPIC`: produce and consume at the same time, each in a process of its own. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/verify.h"
#include "common/mem.h"

#define COUNT   "100000"
#define TOPIC   "lgm-verify"
#define LOOK_NS 10000000
enum { WORDS_MAX = 64, DIR_BYTES = 4096 };

struct words {
    int n;
    char *at[WORDS_MAX];
};

struct both {
    struct words produce, consume;
    char dir[DIR_BYTES], log[DIR_BYTES + 16], said[DIR_BYTES + 16]; /* by the producer */
    pid_t producer, consumer;
    int produced, consumed; /* exit codes */
    unsigned asked;         /* to end */
    bool own_log, counted;
};

static void add(struct words *w, const char *word)
{
    if (w->n < WORDS_MAX - 1)
        w->at[w->n++] = (char *)(uintptr_t)word;
}

static void add_option(struct words *w, const char *option, const char *value)
{
    add(w, option);
    if (value)
        add(w, value);
}

/* ---- the command line: whose is what ---- */

/* val: p the producer's, c the consumer's, b of both, l the log. */
static const struct option options[] = {{"count", required_argument, NULL, 'n'},
                                        {"size", required_argument, NULL, 'p'},
                                        {"rate", required_argument, NULL, 'p'},
                                        {"no-batching", no_argument, NULL, 'p'},
                                        {"idle", required_argument, NULL, 'c'},
                                        {"strict", no_argument, NULL, 'c'},
                                        {"type", required_argument, NULL, 't'},
                                        {"consumers", required_argument, NULL, 'c'},
                                        {"churn", required_argument, NULL, 'c'},
                                        {"url", required_argument, NULL, 'b'},
                                        {"tls-trust", required_argument, NULL, 'b'},
                                        {"tls-cert", required_argument, NULL, 'b'},
                                        {"tls-key", required_argument, NULL, 'b'},
                                        {"tls-insecure", no_argument, NULL, 'b'},
                                        {"log", required_argument, NULL, 'l'},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

/* As they are written, in the order of `options`. */
static const char *const written[] = {"--count",   "--size",        "--rate",      "--no-batching",
                                      "--idle",    "--strict",      "--type",      "--consumers",
                                      "--churn",   "--url",         "--tls-trust", "--tls-cert",
                                      "--tls-key", "--tls-insecure"};

static void take(struct both *b, int option, int index, const char *text)
{
    switch (option) {
    case 'n':
        b->counted = true;
        add_option(&b->produce, "--count", text);
        break;
    case 't':
        add_option(&b->consume, "--type", text);
        break;
    case 'l':
        snprintf(b->log, sizeof(b->log), "%s", text);
        break;
    case 'p':
        add_option(&b->produce, written[index], text);
        break;
    case 'c':
        add_option(&b->consume, written[index], text);
        break;
    default:
        add_option(&b->produce, written[index], text);
        add_option(&b->consume, written[index], text);
    }
}

static bool parse(struct both *b, int argc, char **argv)
{
    int option, index = 0;

    add(&b->produce, "produce");
    add(&b->consume, "consume");
    while ((option = getopt_long(argc, argv, "n:t:l:h", options, &index)) != -1) {
        if (option == '?' || option == 'h')
            return false;
        take(b, option, index, optarg);
    }
    if (argc - optind > 1)
        return false;
    const char *topic = optind < argc ? argv[optind] : TOPIC;
    add(&b->produce, topic);
    add(&b->consume, topic);
    if (!b->counted)
        add_option(&b->produce, "--count", COUNT);
    return true;
}

/* ---- two processes ---- */

static sigset_t what_is_heard(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    return set;
}

/* Apart from the terminal's group: who is told to end, and when, is for the one who waits. */
static pid_t start(struct words *w, int (*run)(int argc, char **argv), const char *errors)
{
    const pid_t parent = getpid();
    const pid_t child = fork();

    if (child != 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0);
    const sigset_t heard = what_is_heard();
    sigprocmask(SIG_UNBLOCK, &heard, NULL);
    if (getppid() != parent || (errors && !freopen(errors, "w", stderr)))
        _exit(EXIT_FAILED);
    optind = 0; /* begins anew */
    const int code = run(w->n, w->at);
    fflush(NULL);
    _exit(code);
}

static bool ended(pid_t *child, int *code, int how)
{
    int status;

    if (*child == 0)
        return true;
    if (waitpid(*child, &status, how) != *child)
        return false;
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
    *child = 0;
    return true;
}

/* Asked once, the producer ends early, and the consumer with its log; asked again, both at once. */
static void pass_on(struct both *b)
{
    if (b->producer > 0)
        kill(b->producer, SIGINT);
    if (b->asked++ > 0 && b->consumer > 0)
        kill(b->consumer, SIGKILL);
}

/* A while, or until a child ends or somebody asks for the end. */
static void wait_a_while(struct both *b)
{
    const struct timespec while_ = {.tv_nsec = LOOK_NS};
    const sigset_t set = what_is_heard();
    const int heard = sigtimedwait(&set, NULL, &while_);

    if (heard == SIGINT || heard == SIGTERM)
        pass_on(b);
}

/* Its first acknowledgement: the subscription is made, and nobody is on it. */
static bool has_begun(const struct both *b)
{
    char line[2048];
    unsigned lines = 0;
    FILE *f = fopen(b->log, "r");

    if (!f)
        return false;
    while (lines < 2 && fgets(line, sizeof(line), f))
        lines++;
    fclose(f);
    return lines > 1;
}

static void run_both(struct both *b)
{
    bool begun = false;

    b->producer = start(&b->produce, verify_produce, b->said);
    while (!ended(&b->producer, &b->produced, WNOHANG) && !(begun = has_begun(b))) {
        wait_a_while(b);
    }
    if (!begun && !has_begun(b))
        return;
    b->consumer = start(&b->consume, verify_consume, NULL);
    while (!ended(&b->consumer, &b->consumed, WNOHANG)) {
        wait_a_while(b);
        ended(&b->producer, &b->produced, WNOHANG);
    }
    if (b->producer > 0 && b->consumed != EXIT_DONE)
        kill(b->producer, SIGINT);
    ended(&b->producer, &b->produced, 0);
}

static void tell_what_it_said(const struct both *b)
{
    char text[1024];
    size_t n;
    FILE *f = fopen(b->said, "r");

    if (!f)
        return;
    while ((n = fread(text, 1, sizeof(text), f)) > 0)
        fwrite(text, 1, n, stderr);
    fclose(f);
}

static int judge(struct both *b)
{
    tell_what_it_said(b);
    unlink(b->said);
    const bool good = b->produced == EXIT_DONE && b->consumed == EXIT_DONE;
    if (b->own_log && good)
        unlink(b->log);
    else if (access(b->log, F_OK) == 0)
        fprintf(stderr, "lgm verify: the log is %s\n", b->log);
    rmdir(b->dir);
    if (good)
        return EXIT_DONE;
    return b->produced == EXIT_USAGE || b->consumed == EXIT_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

static int run(struct both *b)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(b->dir, sizeof(b->dir), "%s/lgm-verify-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(b->dir)) {
        fprintf(stderr, "lgm verify: %s cannot be made: %s\n", b->dir, strerror(errno));
        return EXIT_FAILED;
    }
    snprintf(b->said, sizeof(b->said), "%s/said", b->dir);
    b->own_log = !*b->log;
    if (b->own_log)
        snprintf(b->log, sizeof(b->log), "%s/log", b->dir);
    add_option(&b->produce, "--log", b->log);
    add_option(&b->consume, "--log", b->log);
    const sigset_t heard = what_is_heard();
    sigprocmask(SIG_BLOCK, &heard, NULL);
    b->consumed = EXIT_FAILED;
    run_both(b);
    return judge(b);
}

int verify_both(int argc, char **argv)
{
    struct both *b = mem_new(struct both);
    int code = EXIT_USAGE;

    if (parse(b, argc, argv))
        code = run(b);
    else
        usage_error("verify", "it takes one TOPIC at most, and options");
    mem_free(b);
    return code;
}
