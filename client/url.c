#include "client/url.h"

#include <string.h>

#include "common/mem.h"
#include "common/parse.h"

enum { PORT_PLAIN = 6650, PORT_TLS = 6651 };

static bool skip(const char **at, const char *prefix)
{
    size_t len = strlen(prefix);
    if (strncmp(*at, prefix, len) != 0)
        return false;
    *at += len;
    return true;
}

static bool has_port(const char *host)
{
    const char *colon = strrchr(host, ':');
    return colon && !strchr(colon, ']');
}

static enum err add_host(struct service_url *u, const char *text, size_t len)
{
    if (len == 0 || u->n == URL_HOSTS_MAX)
        return ERR_MALFORMED;
    char *one = mem_string_n(text, len);
    char *full =
        has_port(one) ? mem_string(one) : mem_format("%s:%d", one, u->tls ? PORT_TLS : PORT_PLAIN);
    enum err err = parse_host_port(full, &u->at[u->n].host, &u->at[u->n].port);
    if (!err)
        u->n++;
    mem_free(full);
    mem_free(one);
    return err;
}

enum err service_url_parse(const char *text, struct service_url *out)
{
    *out = (struct service_url){0};
    if (skip(&text, "pulsar+ssl://"))
        out->tls = true;
    else if (!skip(&text, "pulsar://"))
        return ERR_MALFORMED;
    size_t left = strcspn(text, "/");
    enum err err = ERR_OK;
    while (!err) {
        size_t len = strcspn(text, ",/");
        err = add_host(out, text, len);
        if (len >= left)
            break;
        text += len + 1;
        left -= len + 1;
    }
    if (err)
        service_url_drop(out);
    return err;
}

void service_url_drop(struct service_url *u)
{
    for (unsigned i = 0; i < u->n; i++)
        mem_free(u->at[i].host);
    *u = (struct service_url){0};
}
