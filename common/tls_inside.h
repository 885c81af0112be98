/* tls_inside.h - what stands in a struct tls; for tls.c, stream.c and http.c only. */
#ifndef COMMON_TLS_INSIDE_H
#define COMMON_TLS_INSIDE_H

#include <openssl/ssl.h>

#include "common/tls.h"

struct tls {
    SSL_CTX *context;
    bool verifies_names;         /* a client that checks what it dialled */
    unsigned char alpn[1 + 255]; /* as in the protocol: a length, a name; alpn[0] 0: none */
};

/* The newest OpenSSL error of this thread as text, and none left in its queue. */
const char *tls_last_error(char *into, size_t len);

#endif
