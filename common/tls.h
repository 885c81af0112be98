/* tls.h - certificates and keys, ready for connections.
 *
 *   files -> tls_server(), tls_client() -> connections
 *   files renewed -> tls_renew() -> the connections that come from then on
 *
 * Memory:  conns borrow it: it must outlive them.  What the conf names is copied.
 * Threads: any once made; tls_renew() always the same one.
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
    bool asks_peer_cert;    /* server: refuse those whose certificate is not trusted */
    bool insecure;          /* client: do not verify the server */
    const char *alpn;       /* one protocol name to offer or require, or NULL */
    const char *protocols;  /* some of "TLSv1.2,TLSv1.3"; NULL or "": both */
    const char *ciphers;    /* OpenSSL's or the standard's names, by commas; NULL or "": OpenSSL's
                               choice */
};

/* ERR_BAD_CONFIG with a log event that names the file: also for a server's certificate that has
 * expired. */
MUST_CHECK enum err tls_server(struct tls **out, const struct tls_conf *conf);
MUST_CHECK enum err tls_client(struct tls **out, const struct tls_conf *conf);
/* Reads the files again if one of them is another than before.  If that fails, what was read
 * before stays in use, with a log event; the next call tries again. */
MUST_CHECK enum err tls_renew(struct tls *t, bool *renewed);
void tls_drop(struct tls **t);

#endif
