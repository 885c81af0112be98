#include "metadata/etcd_url.h"

#include <string.h>

#include "common/mem.h"
#include "common/parse.h"

enum { DEFAULT_PORT = 2379 };

static bool skip(const char **at, const char *prefix)
{
    size_t len = strlen(prefix);

    if (strncmp(*at, prefix, len) != 0)
        return false;
    *at += len;
    return true;
}

static enum err refuse(const char **why, const char *reason)
{
    *why = reason;
    return ERR_BAD_CONFIG;
}

/* A host without a port, or with one in a form that has it. */
static enum err read_host(const char *text, struct etcd_address *out)
{
    const char *end = strrchr(text, ']');

    if (strchr(end ? end : text, ':'))
        return parse_host_port(text, &out->host, &out->port);
    char *with_port = mem_format("%s:%d", text, DEFAULT_PORT);
    enum err e = parse_host_port(with_port, &out->host, &out->port);
    mem_free(with_port);
    return e;
}

/* One of the list, from `text` to before `end`. */
static enum err read_node(const char *text, const char *end, struct etcd_url *out, const char **why)
{
    bool tls = out->n > 0 && out->tls, named = skip(&text, "http://");

    if (named)
        tls = false;
    else if (skip(&text, "https://"))
        named = tls = true;
    if (out->n == ETCD_NODES_MAX)
        return refuse(why, "too many nodes");
    if (out->n > 0 && named && tls != out->tls)
        return refuse(why, "http and https mixed");
    char *host = mem_string_n(text, (size_t)(end > text ? end - text : 0));
    enum err e = *host ? read_host(host, &out->at[out->n]) : ERR_MALFORMED;
    mem_free(host);
    if (e)
        return refuse(why, "not host:port");
    out->tls = tls;
    out->n++;
    return ERR_OK;
}

static const char *after_scheme(const char *s)
{
    const char *slashes = strstr(s, "://");
    const char *end = s + strcspn(s, ",;/");

    return slashes && slashes < end + 1 ? slashes + 3 : s;
}

static enum err read_nodes(const char **at, struct etcd_url *out, const char **why)
{
    for (;;) {
        const char *host = after_scheme(*at), *end = host + strcspn(host, ",;/");
        TRY(read_node(*at, end, out, why));
        *at = end;
        if (*end != ',' && *end != ';')
            return ERR_OK;
        (*at)++;
    }
}

static enum err read_root(const char *at, bool bookkeeper, struct etcd_url *out, const char **why)
{
    size_t len = strlen(at);

    while (len > 0 && at[len - 1] == '/')
        len--;
    if (memchr(at, ',', len) || memchr(at, ';', len))
        return refuse(why, "a root before the last node");
    if (len > 255)
        return refuse(why, "a root of more than 255 bytes");
    if (bookkeeper && len == strlen("/ledgers") && strncmp(at, "/ledgers", len) == 0)
        len = 0;
    out->root = mem_string_n(at, len);
    return ERR_OK;
}

static enum err read_all(const char *text, struct etcd_url *out, const char **why)
{
    bool bookkeeper = skip(&text, "metadata-store:");

    if (!skip(&text, "etcd:"))
        return refuse(why, "does not begin with etcd:");
    skip(&text, "//");
    TRY(read_nodes(&text, out, why));
    return read_root(text, bookkeeper, out, why);
}

enum err etcd_url_read(const char *text, struct etcd_url *out, const char **why)
{
    *out = (struct etcd_url){0};
    *why = "";
    enum err e = read_all(text, out, why);
    if (e)
        etcd_url_drop(out);
    return e;
}

void etcd_url_drop(struct etcd_url *u)
{
    for (unsigned i = 0; i < u->n; i++)
        mem_free(u->at[i].host);
    mem_free(u->root);
    *u = (struct etcd_url){0};
}
