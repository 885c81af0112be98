/* tls_inside.h - what stands in a struct tls; for those in common/ who speak TLS only. */
#ifndef COMMON_TLS_INSIDE_H
#define COMMON_TLS_INSIDE_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "common/tls.h"

enum { TLS_FILES = 3 };

struct tls {
    pthread_mutex_t lock; /* of the context, which a renewal replaces */
    SSL_CTX *context;
    bool is_server;
    struct tls_conf conf;        /* with texts of its own */
    struct stat seen[TLS_FILES]; /* the files as they were read; all 0: none */
    bool verifies_names;         /* a client that checks what it dialled */
    unsigned char alpn[1 + 255]; /* as in the protocol: a length, a name; alpn[0] 0: none */
};

SSL *tls_ssl(const struct tls *t); /* gives: one more connection */

/* The newest OpenSSL error of this thread as text, and none left in its queue. */
const char *tls_last_error(char *into, size_t len);

/* ERR_BAD_CONFIG with a log event: a name in the list is none that is given. */
MUST_CHECK enum err tls_choose_protocols(SSL_CTX *ctx, const char *list);
MUST_CHECK enum err tls_choose_ciphers(SSL_CTX *ctx, const char *list);

#endif
