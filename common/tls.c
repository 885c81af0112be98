#include "common/tls.h"

#include <assert.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/tls_inside.h"

const char *tls_last_error(char *into, size_t len)
{
    const unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    snprintf(into, len, "%s", reason ? reason : "closed by the peer");
    ERR_clear_error();
    return into;
}

static enum err refused(const char *what, const char *file)
{
    char reason[160];
    log_event(LOG_ERROR, "tls.refused", F_STR("what", what), F_STR("file", file),
              F_STR("reason", tls_last_error(reason, sizeof reason)));
    return ERR_BAD_CONFIG;
}

static enum err use_certificate(SSL_CTX *ctx, const struct tls_conf *conf)
{
    const char *key = conf->key_file ? conf->key_file : conf->cert_file;
    if (SSL_CTX_use_certificate_chain_file(ctx, conf->cert_file) != 1)
        return refused("certificate", conf->cert_file);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        return refused("key", key);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return refused("key of another certificate", key);
    return ERR_OK;
}

static enum err use_trust(SSL_CTX *ctx, const struct tls_conf *conf)
{
    if (!conf->trust_file) {
        SSL_CTX_set_default_verify_paths(ctx);
        return ERR_OK;
    }
    if (SSL_CTX_load_verify_locations(ctx, conf->trust_file, NULL) != 1)
        return refused("trusted certificates", conf->trust_file);
    return ERR_OK;
}

static void set_up(SSL_CTX *ctx)
{
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    /* The outbox grows between two tries of one write, and idle conns keep no buffers. */
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
}

static struct tls *tls_new(const SSL_METHOD *method, const struct tls_conf *conf)
{
    struct tls *t = mem_new(struct tls);
    t->context = SSL_CTX_new(method);
    assert(t->context);
    set_up(t->context);
    if (conf->alpn) {
        const size_t len = strlen(conf->alpn);
        assert(len > 0);
        assert(len < sizeof t->alpn);
        t->alpn[0] = (unsigned char)len;
        memcpy(t->alpn + 1, conf->alpn, len);
    }
    return t;
}

/* A client that offers protocols must offer ours; one that offers none is let in. */
static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                       const unsigned char *in, unsigned in_len, void *arg)
{
    const struct tls *t = arg;
    (void)ssl;
    for (unsigned at = 0; at < in_len; at += 1u + in[at])
        if (in[at] == t->alpn[0] && memcmp(in + at + 1, t->alpn + 1, t->alpn[0]) == 0) {
            *out = in + at + 1;
            *out_len = in[at];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static enum err make_server(struct tls *t, const struct tls_conf *conf)
{
    static const unsigned char session_context[] = "lgm";
    if (!conf->cert_file)
        return refused("certificate", "(none given)");
    TRY(use_certificate(t->context, conf));
    TRY(use_trust(t->context, conf));
    SSL_CTX_set_session_id_context(t->context, session_context, sizeof session_context - 1);
    if (conf->require_peer_cert)
        SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    if (conf->alpn)
        SSL_CTX_set_alpn_select_cb(t->context, choose_alpn, t);
    return ERR_OK;
}

static enum err make_client(struct tls *t, const struct tls_conf *conf)
{
    if (conf->cert_file)
        TRY(use_certificate(t->context, conf));
    TRY(use_trust(t->context, conf));
    t->verifies_names = !conf->insecure;
    SSL_CTX_set_verify(t->context, conf->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (conf->alpn)
        SSL_CTX_set_alpn_protos(t->context, t->alpn, 1u + t->alpn[0]);
    return ERR_OK;
}

enum err tls_server(struct tls **out, const struct tls_conf *conf)
{
    struct tls *t = tls_new(TLS_server_method(), conf);
    const enum err e = make_server(t, conf);
    if (e)
        tls_drop(&t);
    *out = t;
    return e;
}

enum err tls_client(struct tls **out, const struct tls_conf *conf)
{
    struct tls *t = tls_new(TLS_client_method(), conf);
    const enum err e = make_client(t, conf);
    if (e)
        tls_drop(&t);
    *out = t;
    return e;
}

void tls_drop(struct tls **t)
{
    if (*t)
        SSL_CTX_free((*t)->context);
    mem_free(*t);
    *t = NULL;
}
