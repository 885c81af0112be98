#include "bookie/certificates.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"

#define FACTORY "org.apache.bookkeeper.tls.TLSContextFactory"

struct certificates {
    struct loop *loop;
    struct tls *tls;
    const char *file;
    uint64_t every_us; /* 0: they are not looked at again */
    struct timer timer;
};

static enum err refuse(const char *key, const char *value, const char *reason)
{
    log_event(LOG_ERROR, "bookie.config_refused", F_STR("key", key), F_STR("value", value),
              F_STR("reason", reason));
    return ERR_BAD_CONFIG;
}

static enum err check(const struct bookie_conf *c)
{
    if (strcmp(c->tls_factory, FACTORY) != 0)
        return refuse("tlsProviderFactoryClass", c->tls_factory, "it is empty or " FACTORY);
    if (strcmp(c->tls_key_type, "PEM") != 0)
        return refuse("tlsKeyStoreType", c->tls_key_type, "keys are read from PEM files");
    if (c->tls_trust_file[0] && strcmp(c->tls_trust_type, "PEM") != 0)
        return refuse("tlsTrustStoreType", c->tls_trust_type,
                      "trusted certificates are read from PEM files");
    if (!c->tls_key_file[0])
        return refuse("tlsKeyStore", "", "it must name the PEM file of the key");
    if (!c->tls_cert_file[0])
        return refuse("tlsCertificatePath", "", "it must name the PEM file of the certificate");
    if (c->tls_client_auth && !c->tls_trust_file[0])
        return refuse("tlsTrustStore", "",
                      "with tlsClientAuthentication it must say who signs what clients show");
    return ERR_OK;
}

/* What cannot be read keeps what was there before: tls.h tells it. */
static void look_again(struct timer *t)
{
    struct certificates *c = container_of(t, struct certificates, timer);
    bool renewed;
    if (tls_renew(c->tls, &renewed))
        log_event(LOG_ERROR, "bookie.certificate_kept", F_STR("file", c->file));
    else if (renewed)
        log_event(LOG_INFO, "bookie.certificate_renewed", F_STR("file", c->file));
    loop_after(c->loop, &c->timer, c->every_us);
}

static void begin(void *ctx)
{
    struct certificates *c = ctx;
    c->timer.run = look_again;
    loop_after(c->loop, &c->timer, c->every_us);
}

static void end(void *ctx)
{
    struct certificates *c = ctx;
    loop_cancel(c->loop, &c->timer);
}

enum err certificates_open(struct certificates **out, const struct bookie_conf *conf,
                           struct loop *loop)
{
    const struct tls_conf tls = {
        .cert_file = conf->tls_cert_file,
        .key_file = conf->tls_key_file,
        .trust_file = conf->tls_trust_file[0] ? conf->tls_trust_file : NULL,
        .require_peer_cert = conf->tls_client_auth,
        .protocols = conf->tls_protocols,
        .ciphers = conf->tls_ciphers,
    };
    *out = NULL;
    if (!conf->tls_factory[0])
        return conf->tls_client_auth ? refuse("tlsClientAuthentication", "true",
                                              "without tlsProviderFactoryClass there is no TLS")
                                     : ERR_OK;
    TRY(check(conf));
    struct certificates *c = mem_new(struct certificates);
    c->loop = loop;
    c->file = conf->tls_cert_file;
    c->every_us = (uint64_t)conf->tls_refresh_s * 1000000;
    const enum err err = tls_server(&c->tls, &tls);
    if (err) {
        mem_free(c);
        return err;
    }
    if (c->every_us)
        loop_call(loop, begin, c);
    *out = c;
    return ERR_OK;
}

struct tls *certificates_tls(const struct certificates *c)
{
    return c ? c->tls : NULL;
}

void certificates_close(struct certificates **certificates)
{
    struct certificates *c = *certificates;
    *certificates = NULL;
    if (!c)
        return;
    if (c->every_us)
        loop_call(c->loop, end, c);
    tls_drop(&c->tls);
    mem_free(c);
}
