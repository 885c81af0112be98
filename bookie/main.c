#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/bookie.h"
#include "bookie/http_admin.h"
#include "common/disk.h"
#include "common/flight.h"
#include "common/log.h"
#include "common/mem.h"
#include "metadata/open.h"

static const char usage[] =
    "lgm-bookie - stores ledgers, and acknowledges nothing before it is durable\n"
    "\n"
    "  --conf FILE         settings, key=value a line (bookkeeper.conf)\n"
    "  --set KEY=VALUE     one setting, over the file and LGM_KEY in the environment\n"
    "  --describe-config   every setting, its default and what it does (=markdown: as tables)\n"
    "  --version, --help\n"
    "\n"
    "example: lgm-bookie --conf conf/bookkeeper.conf --set bookiePort=3181\n";

enum { MAX_SETS = 64 };

struct options {
    const char *conf_file;
    const char *sets[MAX_SETS];
    unsigned n;
    int exit_code; /* -1: go on */
};

static int say(const char *text)
{
    fputs(text, stdout);
    return EXIT_SUCCESS;
}

static int wrong_usage(void)
{
    fputs(usage, stderr);
    return 2;
}

static int describe(const char *as)
{
    if (as && strcmp(as, "markdown") != 0)
        return wrong_usage();
    if (as)
        config_describe_markdown(&bookie_config_table, stdout);
    else
        config_describe(&bookie_config_table, stdout);
    return EXIT_SUCCESS;
}

static int take_set(struct options *o, const char *key_value)
{
    if (o->n == MAX_SETS)
        return wrong_usage();
    o->sets[o->n++] = key_value;
    return -1;
}

static struct options read_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"conf", required_argument, NULL, 'c'},
        {"set", required_argument, NULL, 's'},
        {"describe-config", optional_argument, NULL, 'd'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct options o = {.exit_code = -1};
    for (int c; o.exit_code < 0 && (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'c')
            o.conf_file = optarg;
        else if (c == 's')
            o.exit_code = take_set(&o, optarg);
        else if (c == 'd')
            o.exit_code = describe(optarg);
        else if (c == 'v')
            o.exit_code = say("lgm-bookie " LGM_VERSION "\n");
        else
            o.exit_code = c == 'h' ? say(usage) : wrong_usage();
    }
    if (o.exit_code < 0 && optind < argc)
        o.exit_code = wrong_usage();
    return o;
}

static enum err load_conf(const struct options *o, struct bookie_conf *conf)
{
    TRY(config_defaults(&bookie_config_table, conf));
    if (o->conf_file)
        TRY(config_load_file(&bookie_config_table, conf, o->conf_file));
    TRY(config_load_env(&bookie_config_table, conf));
    for (unsigned i = 0; i < o->n; i++)
        TRY(config_set(&bookie_config_table, conf, o->sets[i], "--set"));
    return ERR_OK;
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static enum err open_metadata(struct metadata **out, const struct bookie_conf *c)
{
    const struct meta_etcd_conf conf = {
        .user = or_null(c->metadata_user),
        .password = or_null(c->metadata_password),
        .trust_file = or_null(c->metadata_trust_file),
        .cert_file = or_null(c->metadata_cert_file),
        .key_file = or_null(c->metadata_key_file),
        .session_timeout_us = (uint64_t)c->session_ms * 1000,
    };
    return meta_open(out, c->metadata_service_uri, &conf);
}

/* Every thread inherits the mask, so that the signal comes here and to nobody else. */
static sigset_t block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return set;
}

static enum err run(const struct bookie_conf *conf, struct metadata *meta, struct loops *loops,
                    const sigset_t *signals)
{
    struct http_admin *http;
    struct bookie *bookie = NULL;
    int got;
    enum err err = http_admin_open(&http, conf, loops->at[0], meta);
    if (!err)
        err = bookie_start(&bookie, conf, meta, loops, disk_real());
    if (!err) {
        http_admin_set(http, bookie);
        sigwait(signals, &got);
        log_event(LOG_INFO, "bookie.stopping", F_STR("signal", strsignal(got)));
    }
    http_admin_set(http, NULL);
    bookie_stop(&bookie);
    http_admin_close(&http);
    return err;
}

static enum err serve(const struct bookie_conf *conf, const sigset_t *signals)
{
    struct metadata *meta;
    struct loops loops = {0};
    TRY(open_metadata(&meta, conf));
    loops_start(&loops, "io", (unsigned)conf->io_threads);
    const enum err err = run(conf, meta, &loops, signals);
    meta_close(&meta);
    loops_stop(&loops);
    return err;
}

int main(int argc, char **argv)
{
    mem_setup();
    const struct options o = read_options(argc, argv);
    if (o.exit_code >= 0)
        return o.exit_code;
    struct bookie_conf conf = {0};
    const sigset_t signals = block_signals();
    flight_install();
    enum err err = load_conf(&o, &conf);
    if (!err)
        err = serve(&conf, &signals);
    config_drop(&bookie_config_table, &conf);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
