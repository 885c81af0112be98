/* url.h - pulsar://host:port[,host:port...], taken apart. */
#ifndef CLIENT_URL_H
#define CLIENT_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

enum { URL_HOSTS_MAX = 16 };

struct service_url {
    bool tls; /* pulsar+ssl */
    unsigned n;
    struct {
        char *host;
        uint16_t port;
    } at[URL_HOSTS_MAX];
};

/* Ports default to 6650 and 6651.  ERR_MALFORMED: nothing to drop then. */
MUST_CHECK enum err service_url_parse(const char *text, struct service_url *out); /* gives */
void service_url_drop(struct service_url *u);

#endif
