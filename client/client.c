#include "client/client.h"

#include "client/client_private.h"
#include "common/mem.h"

enum { OPERATION_TIMEOUT_US = 30 * 1000 * 1000, KEEP_ALIVE_US = 30 * 1000 * 1000 };

enum err client_open(struct client **out, struct loop *home, const struct client_conf *conf)
{
    struct service_url service;
    uint64_t timeout =
        conf->operation_timeout_us ? conf->operation_timeout_us : OPERATION_TIMEOUT_US;

    TRY(service_url_parse(conf->url, &service));
    if (service.tls && !conf->tls) {
        service_url_drop(&service);
        return ERR_MALFORMED;
    }
    struct client *c = mem_new(struct client);
    c->home = home;
    c->service = service;
    list_init(&c->producers);
    list_init(&c->consumers);
    list_init(&c->asks);
    link_env_init(&c->links, home, service.tls ? conf->tls : NULL, timeout,
                  conf->keep_alive_us ? conf->keep_alive_us : KEEP_ALIVE_US);
    *out = c;
    return ERR_OK;
}

void client_close(struct client **c)
{
    if (!*c)
        return;
    producers_end(*c);
    consumers_end(*c);
    partitions_end(*c);
    link_env_close(&(*c)->links);
    service_url_drop(&(*c)->service);
    mem_free(*c);
    *c = NULL;
}
