/* lgm standalone - one broker and its bookies in one process, over an embedded metadata store. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bookie/bookie.h"
#include "broker/broker.h"
#include "cli/command.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "metadata/init.h"
#include "metadata/metadata.h"

enum { BOOKIES_MAX = 9, SETS_MAX = 64 };

struct standalone {
    const char *data, *bind, *advertise;
    char *real_data; /* the same folder whatever way it was spelled: cookies compare text */
    uint64_t bookies, port, web_port;
    const char *tls_port, *tls_web_port, *tls_cert, *tls_key; /* NULL: not said */
    const char *set[SETS_MAX], *bookie_set[SETS_MAX];
    unsigned n_set, n_bookie_set;

    struct loops loops;
    struct metadata *meta;
    struct bookie_conf bookie_conf[BOOKIES_MAX];
    struct bookie *bookie[BOOKIES_MAX];
    struct broker_conf broker_conf;
    struct broker *broker;
};

static const char help[] =
    "usage: lgm standalone [OPTION]...\n"
    "Starts a broker and its bookies in this process, in the foreground; Ctrl-C stops it, the "
    "next\n"
    "start goes on with the same data.\n\n"
    "  --data DIR             where everything is kept (./data)\n"
    "  --bookies N            bookies, 1 to 9 (1); a ledger has min(N, 3) of them, min(N, 2) "
    "copies\n"
    "  --port PORT            of the Pulsar protocol (6650); 0 picks a free one\n"
    "  --web-port PORT        of HTTP (8080); 0 picks a free one\n"
    "  --tls-port PORT        of the Pulsar protocol with TLS, 6651 as a rule\n"
    "  --tls-web-port PORT    of HTTPS, 8443 as a rule\n"
    "  --tls-cert FILE        PEM certificate for both; --tls-key FILE: its key\n"
    "  --bind ADDRESS         to listen on (127.0.0.1); 0.0.0.0 for all\n"
    "  --advertise HOST       that clients are told to connect to (127.0.0.1)\n"
    "  --set KEY=VALUE        a setting of the broker (keys of broker.conf); may be repeated\n"
    "  --bookie-set KEY=VALUE a setting of every bookie (keys of bookkeeper.conf)\n"
    "  --log LEVEL            debug, info, warn (default) or error\n\n"
    "Example: lgm standalone --data /var/lib/lgm --bookies 3\n";

/* ---- settings -------------------------------------------------------------------------------- */

static enum err set_both(const struct config_table *t, void *conf, const char *key,
                         const char *value)
{
    char *line = mem_format("%s=%s", key, value);
    enum err err = config_set(t, conf, line, "lgm standalone");
    mem_free(line);
    return err;
}

static enum err set_number(const struct config_table *t, void *conf, const char *key, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return set_both(t, conf, key, text);
}

static enum err configure_bookie(struct standalone *s, unsigned i)
{
    const struct config_table *t = &bookie_config_table;
    struct bookie_conf *c = &s->bookie_conf[i];
    char *id = mem_format("bookie-%u", i);
    char *journal = mem_format("%s/bookie-%u/journal", s->data, i);
    char *ledgers = mem_format("%s/bookie-%u/ledgers", s->data, i);
    const char *pairs[][2] = {{"bookieId", id},
                              {"bookiePort", "0"},
                              {"listenAddress", "127.0.0.1"},
                              {"advertisedAddress", "127.0.0.1"},
                              {"journalDirectories", journal},
                              {"ledgerDirectories", ledgers},
                              {"autoRecoveryDaemonEnabled", "false"},
                              {"lgmMemoryLimitMB", "-1"}}; /* the broker looks for all of them */

    enum err err = config_defaults(t, c);
    for (unsigned k = 0; !err && k < sizeof pairs / sizeof *pairs; k++)
        err = set_both(t, c, pairs[k][0], pairs[k][1]);
    for (unsigned k = 0; !err && k < s->n_bookie_set; k++)
        err = config_set(t, c, s->bookie_set[k], "--bookie-set");
    mem_free(id);
    mem_free(journal);
    mem_free(ledgers);
    return err;
}

static uint64_t at_most(uint64_t n, uint64_t limit)
{
    return n < limit ? n : limit;
}

static enum err configure_tls(struct standalone *s)
{
    const char *pairs[][2] = {{"brokerServicePortTls", s->tls_port},
                              {"webServicePortTls", s->tls_web_port},
                              {"tlsCertificateFilePath", s->tls_cert},
                              {"tlsKeyFilePath", s->tls_key}};

    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][1])
            TRY(set_both(&broker_config_table, &s->broker_conf, pairs[i][0], pairs[i][1]));
    return ERR_OK;
}

static enum err configure_broker(struct standalone *s)
{
    const struct config_table *t = &broker_config_table;
    struct broker_conf *c = &s->broker_conf;

    TRY(config_defaults(t, c));
    TRY(set_both(t, c, "clusterName", "standalone"));
    TRY(set_both(t, c, "bindAddress", s->bind));
    TRY(set_both(t, c, "advertisedAddress", s->advertise));
    TRY(set_number(t, c, "brokerServicePort", s->port));
    TRY(set_number(t, c, "webServicePort", s->web_port));
    TRY(configure_tls(s));
    TRY(set_number(t, c, "managedLedgerDefaultEnsembleSize", at_most(s->bookies, 3)));
    TRY(set_number(t, c, "managedLedgerDefaultWriteQuorum", at_most(s->bookies, 2)));
    TRY(set_number(t, c, "managedLedgerDefaultAckQuorum", at_most(s->bookies, 2)));
    TRY(set_both(t, c, "enforceDifferentHosts", "false")); /* there is one */
    TRY(config_load_env(t, c));
    for (unsigned k = 0; k < s->n_set; k++)
        TRY(config_set(t, c, s->set[k], "--set"));
    return ERR_OK;
}

/* ---- starting and stopping ------------------------------------------------------------------- */

/* A bookie that is left out would leave ledgers without their copies. */
static bool bookies_left_out(const struct standalone *s)
{
    for (uint64_t i = s->bookies; i < BOOKIES_MAX; i++) {
        char *dir = mem_format("%s/bookie-%llu", s->data, (unsigned long long)i);
        bool there = access(dir, F_OK) == 0;
        mem_free(dir);
        if (there) {
            fprintf(stderr,
                    "lgm standalone: %s has a bookie-%llu: start it with --bookies %llu or more\n",
                    s->data, (unsigned long long)i, (unsigned long long)i + 1);
            return true;
        }
    }
    return false;
}

/* Gives; NULL: that port is not open. */
static char *url_of(const struct standalone *s, const char *scheme, int64_t port)
{
    if (port == CONFIG_NO_PORT)
        return NULL;
    return mem_format("%s://%s:%lld", scheme, s->advertise, (long long)port);
}

static enum err open_metadata(struct standalone *s)
{
    const struct broker_conf *c = &s->broker_conf;
    char *dir = mem_format("%s/metadata", s->data);
    char *web = url_of(s, "http", c->web_port), *web_tls = url_of(s, "https", c->web_port_tls);
    char *service = url_of(s, "pulsar", c->port);
    char *service_tls = url_of(s, "pulsar+ssl", c->port_tls);
    struct cluster_urls urls = {.web_service = web,
                                .web_service_tls = web_tls,
                                .broker_service = service,
                                .broker_service_tls = service_tls};

    enum err err = meta_rocks_open(&s->meta, dir);
    if (!err)
        err = cluster_init(s->meta, "standalone", &urls);
    mem_free(dir);
    mem_free(web);
    mem_free(web_tls);
    mem_free(service);
    mem_free(service_tls);
    return err;
}

static enum err start(struct standalone *s)
{
    if (mkdir(s->data, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "lgm standalone: %s cannot be made: %s\n", s->data, strerror(errno));
        return ERR_IO;
    }
    s->real_data = realpath(s->data, NULL);
    if (!s->real_data) {
        fprintf(stderr, "lgm standalone: %s: %s\n", s->data, strerror(errno));
        return ERR_IO;
    }
    s->data = s->real_data;
    if (bookies_left_out(s))
        return ERR_BAD_CONFIG;
    for (unsigned i = 0; i < s->bookies; i++)
        TRY(configure_bookie(s, i));
    TRY(configure_broker(s));
    TRY(open_metadata(s));
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned wanted = s->broker_conf.io_threads > 0 ? (unsigned)s->broker_conf.io_threads
                                                    : (unsigned)at_most((uint64_t)cores, 64);
    loops_start(&s->loops, "io", wanted);
    for (unsigned i = 0; i < s->bookies; i++)
        TRY(bookie_start(&s->bookie[i], &s->bookie_conf[i], s->meta, &s->loops, disk_real()));
    TRY(broker_start(&s->broker, &s->broker_conf, s->meta, &s->loops));
    for (unsigned i = 0; i < s->bookies; i++)
        bookie_follow(s->bookie[i], broker_memory(s->broker));
    return ERR_OK;
}

static void stop(struct standalone *s)
{
    if (s->broker)
        broker_stop(&s->broker);
    for (unsigned i = 0; i < s->bookies; i++)
        if (s->bookie[i])
            bookie_stop(&s->bookie[i]);
    if (s->loops.n > 0)
        loops_stop(&s->loops);
    if (s->meta)
        meta_close(&s->meta);
    config_drop(&broker_config_table, &s->broker_conf);
    for (unsigned i = 0; i < s->bookies; i++)
        config_drop(&bookie_config_table, &s->bookie_conf[i]);
    mem_free(s->real_data);
}

/* "pulsar://127.0.0.1:6650, pulsar+ssl://..."; gives. */
static char *open_urls(const struct standalone *s)
{
    const struct broker_ports p = broker_ports(s->broker);
    const struct {
        const char *scheme;
        unsigned port;
    } all[] = {{"pulsar", p.plain}, {"http", p.web}, {"pulsar+ssl", p.tls}, {"https", p.web_tls}};
    char *text = mem_string("");

    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].port == 0)
            continue;
        char *longer = mem_format("%s%s%s://%s:%u", text, *text ? ", " : "", all[i].scheme,
                                  s->advertise, all[i].port);
        mem_free(text);
        text = longer;
    }
    return text;
}

/* The option that a client needs; gives. */
static char *url_option(const struct standalone *s)
{
    const struct broker_ports p = broker_ports(s->broker);

    if (p.plain == 6650)
        return mem_string("");
    if (p.plain > 0)
        return mem_format(" --url pulsar://%s:%u", s->advertise, p.plain);
    return mem_format(" --url pulsar+ssl://%s:%u --tls-trust FILE", s->advertise, p.tls);
}

static void say_ready(const struct standalone *s, uint64_t took_us)
{
    char *urls = open_urls(s), *url = url_option(s);
    printf("LGM " LGM_VERSION " standalone: %llu bookie%s, data in %s\n"
           "ready after %.2f s: %s\n"
           "From another terminal:\n"
           "  %s produce my-topic -m hello%s\n"
           "  %s consume my-topic -s my-sub -p Earliest%s\n"
           "Ctrl-C stops it; the next start goes on with the same data.\n",
           (unsigned long long)s->bookies, s->bookies == 1 ? "" : "s", s->data,
           (double)took_us / 1e6, urls, program_path, url, program_path, url);
    fflush(stdout);
    mem_free(urls);
    mem_free(url);
}

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option options[] = {{"data", required_argument, NULL, 'd'},
                                        {"bookies", required_argument, NULL, 'b'},
                                        {"port", required_argument, NULL, 'p'},
                                        {"web-port", required_argument, NULL, 'w'},
                                        {"tls-port", required_argument, NULL, 'P'},
                                        {"tls-web-port", required_argument, NULL, 'W'},
                                        {"tls-cert", required_argument, NULL, 'c'},
                                        {"tls-key", required_argument, NULL, 'k'},
                                        {"bind", required_argument, NULL, 'B'},
                                        {"advertise", required_argument, NULL, 'a'},
                                        {"set", required_argument, NULL, 's'},
                                        {"bookie-set", required_argument, NULL, 'S'},
                                        {"log", required_argument, NULL, 'l'},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static bool take_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    return !parse_u64(text, out) && *out >= least && *out <= most;
}

static bool take_set(const char **list, unsigned *n, const char *text)
{
    if (*n == SETS_MAX || !strchr(text, '='))
        return false;
    list[(*n)++] = text;
    return true;
}

static bool take(struct standalone *s, int option, const char *text)
{
    enum log_level level;
    switch (option) {
    case 'd':
        s->data = text;
        return true;
    case 'b':
        return take_number(text, 1, BOOKIES_MAX, &s->bookies);
    case 'p':
        return take_number(text, 0, 65535, &s->port);
    case 'w':
        return take_number(text, 0, 65535, &s->web_port);
    case 'P':
        s->tls_port = text;
        return true;
    case 'W':
        s->tls_web_port = text;
        return true;
    case 'c':
        s->tls_cert = text;
        return true;
    case 'k':
        s->tls_key = text;
        return true;
    case 'B':
        s->bind = text;
        return true;
    case 'a':
        s->advertise = text;
        return true;
    case 's':
        return take_set(s->set, &s->n_set, text);
    case 'S':
        return take_set(s->bookie_set, &s->n_bookie_set, text);
    default:
        if (!log_level_of(text, &level))
            return false;
        log_set_level(level);
        return true;
    }
}

int command_standalone(int argc, char **argv)
{
    struct standalone s = {.data = "data",
                           .bind = "127.0.0.1",
                           .advertise = "127.0.0.1",
                           .bookies = 1,
                           .port = 6650,
                           .web_port = 8080};
    uint64_t began = loop_clock();
    sigset_t set;
    int option, got;

    log_set_level(LOG_WARN);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (option == '?' || !take(&s, option, optarg))
            return usage_error("standalone", "'%s' cannot be used", argv[optind - 1]);
    }
    if (optind < argc)
        return usage_error("standalone", "'%s' is not expected", argv[optind]);
    block_signals(&set);
    enum err err = start(&s);
    if (err)
        fprintf(stderr, "lgm standalone: not started: %s (the lines above say where)\n",
                err_text(err));
    else {
        say_ready(&s, loop_clock() - began);
        sigwait(&set, &got);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* a second Ctrl-C does not wait */
    }
    stop(&s);
    return err ? EXIT_FAILED : EXIT_DONE;
}
