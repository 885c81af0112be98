#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "common/flight.h"
#include "common/log.h"
#include "common/mem.h"
#include "metadata/open.h"

static const char usage[] =
    "lgm-broker - owns topics and serves Pulsar clients; keeps nothing on disk\n"
    "\n"
    "  --conf FILE         settings, key=value a line (broker.conf)\n"
    "  --set KEY=VALUE     one setting, over the file and LGM_KEY in the environment\n"
    "  --describe-config[=markdown]   every setting, its default and what it does\n"
    "  --version, --help\n"
    "\n"
    "example: lgm-broker --conf conf/broker.conf --set metadataStoreUrl=etcd://localhost:2379\n";

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

static int describe(const char *how)
{
    if (!how)
        config_describe(&broker_config_table, stdout);
    else if (strcmp(how, "markdown") == 0)
        config_describe_markdown(&broker_config_table, stdout);
    else
        return wrong_usage();
    return EXIT_SUCCESS;
}

static int take_set(struct options *o, const char *key_value)
{
    if (o->n == MAX_SETS)
        return wrong_usage();
    o->sets[o->n++] = key_value;
    return -1;
}

static int take_option(struct options *o, int c)
{
    switch (c) {
    case 'c':
        o->conf_file = optarg;
        return -1;
    case 's':
        return take_set(o, optarg);
    case 'd':
        return describe(optarg);
    case 'v':
        return say("lgm-broker " LGM_VERSION "\n");
    case 'h':
        return say(usage);
    default:
        return wrong_usage();
    }
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

    for (int c; o.exit_code < 0 && (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        o.exit_code = take_option(&o, c);
    if (o.exit_code < 0 && optind < argc)
        o.exit_code = wrong_usage();
    return o;
}

/* Other brokers may be there too. */
static bool is_shared(const char *metadata_url)
{
    return strncmp(metadata_url, "rocksdb:", strlen("rocksdb:")) != 0;
}

static enum err load_conf(const struct options *o, struct broker_conf *conf)
{
    TRY(config_defaults(&broker_config_table, conf));
    if (o->conf_file)
        TRY(config_load_file(&broker_config_table, conf, o->conf_file));
    TRY(config_load_env(&broker_config_table, conf));
    for (unsigned i = 0; i < o->n; i++)
        TRY(config_set(&broker_config_table, conf, o->sets[i], "--set"));
    conf->cluster_ownership |= is_shared(conf->metadata_url);
    return ERR_OK;
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static enum err open_metadata(const struct broker_conf *c, struct metadata **out)
{
    const struct meta_etcd_conf conf = {
        .user = or_null(c->metadata_user),
        .password = or_null(c->metadata_password),
        .trust_file = or_null(c->metadata_trust_file),
        .cert_file = or_null(c->metadata_cert_file),
        .key_file = or_null(c->metadata_key_file),
        .session_timeout_us = (uint64_t)c->session_ms * 1000,
    };
    return meta_open(out, c->metadata_url, &conf);
}

/* Every thread inherits the mask, so that the signal comes to sigwait() and to nobody else. */
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

static unsigned threads_of(const struct broker_conf *conf)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (conf->io_threads > 0)
        return (unsigned)conf->io_threads;
    return cores < 1 ? 1 : cores > 64 ? 64 : (unsigned)cores;
}

static enum err serve(const struct broker_conf *conf, const sigset_t *signals)
{
    struct metadata *meta;
    struct loops loops = {0};
    struct broker *broker = NULL;
    int got;

    TRY(open_metadata(conf, &meta));
    loops_start(&loops, "io", threads_of(conf));
    enum err err = broker_start(&broker, conf, meta, &loops);
    if (!err)
        sigwait(signals, &got);
    broker_stop(&broker);
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
    struct broker_conf conf = {0};
    const sigset_t signals = block_signals();
    flight_install();
    enum err err = load_conf(&o, &conf);
    if (!err)
        err = serve(&conf, &signals);
    config_drop(&broker_config_table, &conf);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
