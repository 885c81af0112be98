#include "common/tls.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* ---- reasons -------------------------------------------------------------------------------- */

static enum err refused_for(const char *what, const char *file, const char *reason)
{
    log_event(LOG_ERROR, "tls.refused", F_STR("what", what), F_STR("file", file),
              F_STR("reason", reason));
    return ERR_BAD_CONFIG;
}

static enum err refused(const char *what, const char *file)
{
    char reason[160];
    return refused_for(what, file, tls_last_error(reason, sizeof reason));
}

/* In words that say more than OpenSSL's. */
static enum err can_be_read(const char *what, const char *file)
{
    return access(file, R_OK) == 0 ? ERR_OK : refused_for(what, file, strerror(errno));
}

/* ---- what is in the files -------------------------------------------------------------------- */

/* Else it would ask the terminal. */
static int no_password(char *into, int size, int writes, void *ctx)
{
    (void)into, (void)size, (void)writes, (void)ctx;
    return 0;
}

static enum err use_certificate(SSL_CTX *ctx, const struct tls_conf *conf)
{
    const char *key = conf->key_file ? conf->key_file : conf->cert_file;
    TRY(can_be_read("certificate", conf->cert_file));
    TRY(can_be_read("key", key));
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    if (SSL_CTX_use_certificate_chain_file(ctx, conf->cert_file) != 1)
        return refused("certificate", conf->cert_file);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        return refused("key", key);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return refused("key of another certificate", key);
    return ERR_OK;
}

static enum err check_dates(SSL_CTX *ctx, const char *file)
{
    const X509 *x = SSL_CTX_get0_certificate(ctx);
    if (X509_cmp_current_time(X509_get0_notAfter(x)) < 0)
        return refused_for("certificate", file, "it has expired");
    if (X509_cmp_current_time(X509_get0_notBefore(x)) > 0)
        return refused_for("certificate", file, "it is not valid yet");
    return ERR_OK;
}

static enum err use_trust(SSL_CTX *ctx, const struct tls_conf *conf)
{
    if (!conf->trust_file) {
        SSL_CTX_set_default_verify_paths(ctx);
        return ERR_OK;
    }
    TRY(can_be_read("trusted certificates", conf->trust_file));
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

static enum err use_choices(SSL_CTX *ctx, const struct tls_conf *conf)
{
    TRY(tls_choose_protocols(ctx, conf->protocols ? conf->protocols : ""));
    return tls_choose_ciphers(ctx, conf->ciphers ? conf->ciphers : "");
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

/* A client must know who signs what it may show. */
static void name_signers(SSL_CTX *ctx, const struct tls_conf *conf)
{
    if (conf->trust_file)
        SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(conf->trust_file));
}

static enum err make_server(struct tls *t, SSL_CTX *ctx)
{
    static const unsigned char session_context[] = "lgm";
    const struct tls_conf *conf = &t->conf;
    if (!conf->cert_file)
        return refused_for("certificate", "(none given)", "a server needs one");
    TRY(use_certificate(ctx, conf));
    TRY(check_dates(ctx, conf->cert_file));
    TRY(use_trust(ctx, conf));
    SSL_CTX_set_session_id_context(ctx, session_context, sizeof session_context - 1);
    if (conf->require_peer_cert || conf->asks_peer_cert) {
        name_signers(ctx, conf);
        SSL_CTX_set_verify(
            ctx, SSL_VERIFY_PEER | (conf->require_peer_cert ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
            NULL);
    }
    if (conf->alpn)
        SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, t);
    return ERR_OK;
}

static enum err make_client(struct tls *t, SSL_CTX *ctx)
{
    const struct tls_conf *conf = &t->conf;
    if (conf->cert_file)
        TRY(use_certificate(ctx, conf));
    TRY(use_trust(ctx, conf));
    t->verifies_names = !conf->insecure;
    SSL_CTX_set_verify(ctx, conf->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (conf->alpn)
        SSL_CTX_set_alpn_protos(ctx, t->alpn, 1u + t->alpn[0]);
    return ERR_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void look(const struct tls *t, struct stat seen[TLS_FILES])
{
    const char *const files[TLS_FILES] = {t->conf.cert_file, t->conf.key_file, t->conf.trust_file};
    for (unsigned i = 0; i < TLS_FILES; i++)
        if (!files[i] || stat(files[i], &seen[i]) != 0)
            seen[i] = (struct stat){0};
}

static bool same(const struct stat a[TLS_FILES], const struct stat b[TLS_FILES])
{
    for (unsigned i = 0; i < TLS_FILES; i++)
        if (a[i].st_ino != b[i].st_ino || a[i].st_size != b[i].st_size ||
            a[i].st_mtim.tv_sec != b[i].st_mtim.tv_sec ||
            a[i].st_mtim.tv_nsec != b[i].st_mtim.tv_nsec)
            return false;
    return true;
}

static void use(struct tls *t, SSL_CTX *ctx)
{
    pthread_mutex_lock(&t->lock);
    SSL_CTX *old = t->context;
    t->context = ctx;
    pthread_mutex_unlock(&t->lock);
    SSL_CTX_free(old); /* its connections hold it, too */
}

/* Looked at before they are read: what changes meanwhile is another file the next time. */
static enum err load(struct tls *t)
{
    struct stat seen[TLS_FILES];
    SSL_CTX *ctx = SSL_CTX_new(t->is_server ? TLS_server_method() : TLS_client_method());
    assert(ctx);
    look(t, seen);
    set_up(ctx);
    enum err err = use_choices(ctx, &t->conf);
    if (!err)
        err = t->is_server ? make_server(t, ctx) : make_client(t, ctx);
    if (err) {
        SSL_CTX_free(ctx);
        return err;
    }
    memcpy(t->seen, seen, sizeof seen);
    use(t, ctx);
    return ERR_OK;
}

static char *copy(const char *text)
{
    return text ? mem_string(text) : NULL;
}

static enum err tls_new(struct tls **out, const struct tls_conf *conf, bool is_server)
{
    struct tls *t = mem_new(struct tls);
    pthread_mutex_init(&t->lock, NULL);
    t->is_server = is_server;
    t->conf = *conf;
    t->conf.cert_file = copy(conf->cert_file);
    t->conf.key_file = copy(conf->key_file);
    t->conf.trust_file = copy(conf->trust_file);
    t->conf.protocols = copy(conf->protocols);
    t->conf.ciphers = copy(conf->ciphers);
    t->conf.alpn = copy(conf->alpn);
    if (conf->alpn) {
        const size_t len = strlen(conf->alpn);
        assert(len > 0);
        assert(len < sizeof t->alpn);
        t->alpn[0] = (unsigned char)len;
        memcpy(t->alpn + 1, conf->alpn, len);
    }
    const enum err e = load(t);
    if (e)
        tls_drop(&t);
    *out = t;
    return e;
}

enum err tls_server(struct tls **out, const struct tls_conf *conf)
{
    return tls_new(out, conf, true);
}

enum err tls_client(struct tls **out, const struct tls_conf *conf)
{
    return tls_new(out, conf, false);
}

enum err tls_renew(struct tls *t, bool *renewed)
{
    struct stat now[TLS_FILES];
    *renewed = false;
    look(t, now);
    if (same(now, t->seen))
        return ERR_OK;
    TRY(load(t));
    *renewed = true;
    return ERR_OK;
}

SSL *tls_ssl(const struct tls *t)
{
    struct tls *shared = (struct tls *)(uintptr_t)t;
    pthread_mutex_lock(&shared->lock);
    SSL *ssl = SSL_new(t->context);
    pthread_mutex_unlock(&shared->lock);
    assert(ssl);
    return ssl;
}

void tls_drop(struct tls **tp)
{
    struct tls *t = *tp;
    *tp = NULL;
    if (!t)
        return;
    SSL_CTX_free(t->context);
    pthread_mutex_destroy(&t->lock);
    const char *const texts[] = {t->conf.cert_file, t->conf.key_file, t->conf.trust_file,
                                 t->conf.protocols, t->conf.ciphers,  t->conf.alpn};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
        mem_free((char *)(uintptr_t)texts[i]);
    mem_free(t);
}
