/* etcd_url.h - where etcd is, from the forms in which Pulsar and BookKeeper write it.
 *
 *   etcd:http://h1:2379,http://h2:2379[/root]      a broker's metadataStoreUrl
 *   metadata-store:etcd:http://h1:2379;...         a bookie's metadataServiceUri
 *   etcd://h1:2379,h2:2379                         short for both
 *
 * The root goes before every key.  In BookKeeper's form "/ledgers" is the default place of its
 * own keys, not a root: it adds nothing.
 *
 * Memory:  etcd_url_read() gives what is in it; etcd_url_drop() ends it.
 */
#ifndef METADATA_ETCD_URL_H
#define METADATA_ETCD_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "metadata/etcd.h"

struct etcd_url {
    unsigned n;
    struct etcd_address {
        char *host;
        uint16_t port;
    } at[ETCD_NODES_MAX];
    bool tls;
    char *root; /* "" or "/..." without a slash at its end */
};

/* ERR_BAD_CONFIG and in *why what is wrong with it: a constant. */
MUST_CHECK enum err etcd_url_read(const char *text, struct etcd_url *out, const char **why);
void etcd_url_drop(struct etcd_url *u);

#endif
