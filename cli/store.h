/* store.h - commands that work on a cluster's metadata store, and through it on its bookies.
 *
 * Threads: the command's own, which is no loop's.
 */
#ifndef CLI_STORE_H
#define CLI_STORE_H

#include "common/err.h"
#include "metadata/open.h"

/* Fills *m, or says why not and gives the exit code; EXIT_DONE: it is open. */
int cli_store_open(const char *command, const char *url, const struct meta_etcd_conf *etcd,
                   struct metadata **m);
/* Every key under prefix, in order. */
MUST_CHECK enum err store_scan(struct metadata *m, const char *prefix, bool keys_only,
                               void (*each)(void *ctx, const struct meta_item *item), void *ctx);
MUST_CHECK enum err store_remove(struct metadata *m, const char *const *keys, size_t n);
bool store_has(struct metadata *m, const char *key, enum err *err);
/* Asks on the terminal; false unless "yes" was typed. */
bool store_asks(const char *question);

/* How etcd is spoken to: shared by the commands' tables of options. */
#define STORE_OPTIONS                                                                            \
    {"metadata", required_argument, NULL, 'm'}, {"metadata-user", required_argument, NULL, 'u'}, \
        {"metadata-password", required_argument, NULL, 'p'},                                     \
        {"metadata-trust-certs", required_argument, NULL, 't'},                                  \
        {"metadata-cert", required_argument, NULL, 'C'},                                         \
    {                                                                                            \
        "metadata-key", required_argument, NULL, 'K'                                             \
    }
#define STORE_HELP                                                                                \
    "  --metadata URL         of the cluster: etcd://HOST:PORT,HOST:PORT...; rocksdb:DIRECTORY\n" \
    "                         of a standalone that does not run\n"                                \
    "  --metadata-user NAME, --metadata-password TEXT, --metadata-trust-certs FILE,\n"            \
    "  --metadata-cert FILE, --metadata-key FILE\n"                                               \
    "                         how etcd is spoken to, when it wants to know\n"
/* True: the option was one of these. */
bool store_option(int option, const char *value, const char **url, struct meta_etcd_conf *etcd);

#endif
