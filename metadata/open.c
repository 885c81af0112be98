#include "metadata/open.h"

#include <string.h>

#include "common/log.h"

static const char *after(const char *url, const char *scheme)
{
    size_t len = strlen(scheme);

    return strncmp(url, scheme, len) == 0 ? url + len : NULL;
}

static enum err open_etcd(struct metadata **out, const char *url, const struct meta_etcd_conf *conf)
{
    struct meta_etcd_conf mine = conf ? *conf : (struct meta_etcd_conf){0};

    mine.url = url;
    return meta_etcd_open(out, &mine);
}

enum err meta_open(struct metadata **out, const char *url, const struct meta_etcd_conf *conf)
{
    const char *inner = after(url, "metadata-store:");
    const char *dir = after(inner ? inner : url, "rocksdb:");

    if (dir && *dir)
        return meta_rocks_open(out, dir);
    if (strcmp(inner ? inner : url, "memory:") == 0)
        return meta_memory_open(out);
    if (after(inner ? inner : url, "etcd:"))
        return open_etcd(out, url, conf);
    log_event(LOG_ERROR, "metadata.config_refused", F_STR("url", url),
              F_STR("reason", "not rocksdb:DIR, memory: or etcd:..."));
    return ERR_BAD_CONFIG;
}
