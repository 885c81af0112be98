/* lgm init - what a new cluster needs in its metadata store, once. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "common/log.h"
#include "common/mem.h"
#include "metadata/init.h"
#include "metadata/open.h"
#include "metadata/paths.h"
#include "metadata/wait.h"

enum { PATIENCE_US = 10 * 1000 * 1000 };

struct init {
    const char *cluster, *metadata;
    struct cluster_urls urls;
    struct meta_etcd_conf etcd;
    char instance[64]; /* what the store is called; empty: nothing yet */
    char other[256];   /* a cluster that is in the store; empty: none */
    bool was_there;
};

static const char help[] =
    "usage: lgm init --cluster NAME --metadata URL [OPTION]...\n"
    "Writes what a new cluster needs into its metadata store: an instance id, the cluster, the\n"
    "tenants public and pulsar, the namespaces public/default and pulsar/system.  Bookies and\n"
    "brokers refuse to start before that.  Run again it changes nothing.\n\n"
    "  --cluster NAME             name of the cluster (clusterName of its brokers)\n"
    "  --metadata URL             where its metadata is: etcd://HOST:PORT,HOST:PORT... or\n"
    "                             rocksdb:DIRECTORY\n"
    "  --web-service-url URL      that other clusters use to reach this one: http://HOST:8080\n"
    "  --web-service-url-tls URL  the same with TLS: https://HOST:8443\n"
    "  --broker-service-url URL   pulsar://HOST:6650\n"
    "  --broker-service-url-tls URL  pulsar+ssl://HOST:6651\n"
    "  --metadata-user NAME, --metadata-password TEXT\n"
    "  --metadata-trust-certs FILE, --metadata-cert FILE, --metadata-key FILE\n"
    "                             how etcd is spoken to, when it wants to know\n\n"
    "Example: lgm init --cluster c1 --metadata etcd://m1:2379,m2:2379,m3:2379 \\\n"
    "             --web-service-url http://c1.example.com:8080 \\\n"
    "             --broker-service-url pulsar://c1.example.com:6650\n";

/* ---- what is there --------------------------------------------------------------------------- */

static enum err read_instance(struct init *i, struct metadata *m)
{
    struct slice value = {0};
    int64_t version;
    const enum err err = meta_get_wait(m, PATH_INSTANCE_ID, &value, &version);
    if (err)
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    snprintf(i->instance, sizeof i->instance, "%.*s", (int)value.len, (const char *)value.base);
    slice_drop(&value);
    return ERR_OK;
}

static enum err find_cluster(struct init *i, struct metadata *m)
{
    struct slice value = {0};
    int64_t version;
    char key[META_KEY_MAX];
    TRY(path_cluster(i->cluster, key));
    const enum err err = meta_get_wait(m, key, &value, &version);
    slice_drop(&value);
    i->was_there = !err && i->instance[0];
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

struct looking {
    struct meta_wait wait;
    struct init *init;
};

static void look(struct meta_wait *w, const struct meta_reply *r)
{
    struct init *i = container_of(w, struct looking, wait)->init;
    if (r->count > 0)
        snprintf(i->other, sizeof i->other, "%s", r->items[0].key + strlen(PATH_CLUSTERS));
}

static enum err find_other(struct init *i, struct metadata *m)
{
    struct looking l = {.init = i};
    meta_wait_begin(&l.wait);
    l.wait.look = look;
    meta_range(m, PATH_CLUSTERS, NULL, 1, true, &l.wait.call);
    return meta_wait_end(&l.wait);
}

/* ---- doing it -------------------------------------------------------------------------------- */

static int fail(const struct init *i, enum err err)
{
    fprintf(stderr, "lgm init: %s: %s\n", i->metadata, err_text(err));
    return EXIT_FAILED;
}

static int refuse_second(const struct init *i)
{
    fprintf(
        stderr,
        "lgm init: %s holds the cluster '%s' (instance %s): a cluster '%s' needs a store of its "
        "own\n",
        i->metadata, i->other, i->instance, i->cluster);
    return EXIT_FAILED;
}

static void say_done(const struct init *i)
{
    if (i->was_there)
        printf("cluster '%s' was initialized before (instance %s): nothing was changed\n",
               i->cluster, i->instance);
    else
        printf("cluster '%s' is initialized in %s (instance %s): start its bookies, then its "
               "brokers\n",
               i->cluster, i->metadata, i->instance);
}

static int initialize(struct init *i, struct metadata *m)
{
    enum err err = read_instance(i, m);
    if (!err)
        err = find_cluster(i, m);
    if (!err && !i->was_there)
        err = find_other(i, m);
    if (!err && !i->was_there && i->other[0] && strcmp(i->other, i->cluster) != 0)
        return refuse_second(i);
    if (!err)
        err = cluster_init(m, i->cluster, &i->urls);
    if (!err && !i->instance[0])
        err = read_instance(i, m);
    if (err)
        return fail(i, err);
    say_done(i);
    return EXIT_DONE;
}

static int run(struct init *i)
{
    struct metadata *m;
    i->etcd.operation_timeout_us = PATIENCE_US;
    const enum err err = meta_open(&m, i->metadata, &i->etcd);
    if (err == ERR_BAD_CONFIG)
        return usage_error("init", "'%s' is no metadata store", i->metadata);
    if (err)
        return fail(i, err);
    const int code = initialize(i, m);
    meta_close(&m);
    return code;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option options[] = {{"cluster", required_argument, NULL, 'c'},
                                        {"metadata", required_argument, NULL, 'm'},
                                        {"web-service-url", required_argument, NULL, 'w'},
                                        {"web-service-url-tls", required_argument, NULL, 'W'},
                                        {"broker-service-url", required_argument, NULL, 'b'},
                                        {"broker-service-url-tls", required_argument, NULL, 'B'},
                                        {"metadata-user", required_argument, NULL, 'u'},
                                        {"metadata-password", required_argument, NULL, 'p'},
                                        {"metadata-trust-certs", required_argument, NULL, 't'},
                                        {"metadata-cert", required_argument, NULL, 'C'},
                                        {"metadata-key", required_argument, NULL, 'k'},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static const char **place_of(struct init *i, int option)
{
    const struct {
        int option;
        const char **place;
    } places[] = {
        {'c', &i->cluster},
        {'m', &i->metadata},
        {'w', &i->urls.web_service},
        {'W', &i->urls.web_service_tls},
        {'b', &i->urls.broker_service},
        {'B', &i->urls.broker_service_tls},
        {'u', &i->etcd.user},
        {'p', &i->etcd.password},
        {'t', &i->etcd.trust_file},
        {'C', &i->etcd.cert_file},
        {'k', &i->etcd.key_file},
    };
    for (unsigned k = 0; k < sizeof places / sizeof places[0]; k++)
        if (places[k].option == option)
            return places[k].place;
    return NULL;
}

int command_init(int argc, char **argv)
{
    struct init i = {0};
    char key[META_KEY_MAX];
    int option;

    log_set_level(LOG_WARN);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        const char **place = place_of(&i, option);
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (!place)
            return usage_error("init", "'%s' cannot be used", argv[optind - 1]);
        *place = optarg;
    }
    if (optind < argc)
        return usage_error("init", "'%s' is not expected", argv[optind]);
    if (!i.cluster || !*i.cluster)
        return usage_error("init", "--cluster NAME is needed");
    if (path_cluster(i.cluster, key))
        return usage_error("init", "'%s' cannot be a cluster's name", i.cluster);
    if (!i.metadata || !*i.metadata)
        return usage_error("init", "--metadata URL is needed");
    return run(&i);
}
