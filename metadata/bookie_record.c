#include <string.h>

#include "common/mem.h"
#include "common/parse.h"
#include "metadata/records.h"

static char rpc_protocol[] = "bookie-rpc", http_protocol[] = "httpserver";

static const Bookkeeper__BookieServiceInfoFormat__Endpoint *
find(const Bookkeeper__BookieServiceInfoFormat *i, const char *protocol)
{
    for (size_t n = 0; n < i->n_endpoints; n++)
        if (strcmp(i->endpoints[n]->protocol, protocol) == 0)
            return i->endpoints[n];
    return NULL;
}

static bool usable(const Bookkeeper__BookieServiceInfoFormat__Endpoint *e)
{
    return e && e->port > 0 && e->port <= UINT16_MAX && e->host[0];
}

static enum err take(const Bookkeeper__BookieServiceInfoFormat *i, struct bookie_record *out)
{
    const Bookkeeper__BookieServiceInfoFormat__Endpoint *rpc = find(i, rpc_protocol),
                                                        *http = find(i, http_protocol);

    if (!usable(rpc))
        return ERR_MALFORMED;
    *out = (struct bookie_record){.host = mem_string(rpc->host), .port = (uint16_t)rpc->port};
    if (usable(http)) {
        out->http_host = mem_string(http->host);
        out->http_port = (uint16_t)http->port;
    }
    return ERR_OK;
}

enum err bookie_record_read(const char *bookie_id, struct view value, struct bookie_record *out)
{
    *out = (struct bookie_record){0};
    if (value.len == 0)
        return parse_host_port(bookie_id, &out->host, &out->port);
    Bookkeeper__BookieServiceInfoFormat *i =
        bookkeeper__bookie_service_info_format__unpack(NULL, value.len, value.base);
    if (!i)
        return ERR_MALFORMED;
    enum err e = take(i, out);
    bookkeeper__bookie_service_info_format__free_unpacked(i, NULL);
    return e;
}

struct slice bookie_record_write(const char *bookie_id, const struct bookie_record *r)
{
    Bookkeeper__BookieServiceInfoFormat__Endpoint rpc =
        BOOKKEEPER__BOOKIE_SERVICE_INFO_FORMAT__ENDPOINT__INIT;
    Bookkeeper__BookieServiceInfoFormat__Endpoint http =
        BOOKKEEPER__BOOKIE_SERVICE_INFO_FORMAT__ENDPOINT__INIT;
    Bookkeeper__BookieServiceInfoFormat i = BOOKKEEPER__BOOKIE_SERVICE_INFO_FORMAT__INIT;
    Bookkeeper__BookieServiceInfoFormat__Endpoint *both[] = {&rpc, &http};

    rpc.id = (char *)(uintptr_t)bookie_id;
    rpc.host = r->host;
    rpc.port = r->port;
    rpc.protocol = rpc_protocol;
    http.id = http.protocol = http_protocol;
    http.host = r->http_host;
    http.port = r->http_port;
    i.endpoints = both;
    i.n_endpoints = r->http_host ? 2 : 1;
    size_t size = bookkeeper__bookie_service_info_format__get_packed_size(&i);
    struct slab *slab = slab_new(size);
    bookkeeper__bookie_service_info_format__pack(&i, slab_bytes(slab));
    return slice_take(&slab, size);
}

void bookie_record_drop(struct bookie_record *r)
{
    mem_free(r->host);
    mem_free(r->http_host);
    *r = (struct bookie_record){0};
}
