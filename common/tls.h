/* tls.h - certificates and keys, ready for connections.
 *
 * Memory:  conns borrow it: it must outlive them.
 * Threads: any once made.
 */
#ifndef COMMON_TLS_H
#define COMMON_TLS_H

#include <stdbool.h>

#include "common/err.h"

struct tls;
struct tls_conf {
    const char *cert_file; /* PEM; server: required; client: optional */
    const char *key_file;
    const char *trust_file; /* PEM certificates to trust; NULL: the system's */
    bool require_peer_cert; /* server: refuse clients without a trusted certificate */
    bool insecure;          /* client: do not verify the server */
    const char *alpn;       /* one protocol name to offer or require, or NULL */
};

/* ERR_BAD_CONFIG with a log event that names the file. */
MUST_CHECK enum err tls_server(struct tls **out, const struct tls_conf *conf);
MUST_CHECK enum err tls_client(struct tls **out, const struct tls_conf *conf);
void tls_drop(struct tls **t);

#endif
