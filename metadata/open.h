/* open.h - the store that a configuration names.
 *
 *   rocksdb:DIR | memory: | etcd:... | metadata-store:etcd:...
 */
#ifndef METADATA_OPEN_H
#define METADATA_OPEN_H

#include "metadata/etcd.h"
#include "metadata/metadata.h"

/* `conf` is for etcd; its url is not looked at; NULL: all by default.  ERR_BAD_CONFIG with a
 * log event. */
MUST_CHECK enum err meta_open(struct metadata **out, const char *url,
                              const struct meta_etcd_conf *conf);

#endif
