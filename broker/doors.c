#include "broker/doors.h"

#include <stdio.h>
#include <unistd.h>

#include "broker/broker.h"
#include "common/log.h"
#include "common/mem.h"

/* ---- settings ---- */

static enum err refuse(const char *key, const char *reason)
{
    log_event(LOG_ERROR, "broker.config_refused", F_STR("key", key), F_STR("reason", reason));
    return ERR_BAD_CONFIG;
}

static bool wanted(int64_t port)
{
    return port != CONFIG_NO_PORT;
}

static enum err check_ports(const struct broker_conf *c)
{
    const bool secure = wanted(c->port_tls) || wanted(c->web_port_tls);

    if (!wanted(c->port) && !wanted(c->port_tls))
        return refuse("brokerServicePort", "without it brokerServicePortTls is needed");
    if (!wanted(c->web_port) && !wanted(c->web_port_tls))
        return refuse("webServicePort", "without it webServicePortTls is needed");
    if (c->tls_enabled && !secure)
        return refuse("tlsEnabled", "brokerServicePortTls or webServicePortTls says where");
    if (secure && (!*c->tls_cert_file || !*c->tls_key_file))
        return refuse(*c->tls_cert_file ? "tlsKeyFilePath" : "tlsCertificateFilePath",
                      "a TLS port needs a certificate and its key");
    return ERR_OK;
}

/* Whoever can get any certificate that is known everywhere would be let in, or just anybody. */
static enum err check_trust(const struct broker_conf *c)
{
    const char *key = "tlsRequireTrustedClientCertOnConnect";

    if (!c->tls_require_client_cert)
        return ERR_OK;
    if (!wanted(c->port_tls) && !wanted(c->web_port_tls))
        return refuse(key, "there is no TLS port: brokerServicePortTls, webServicePortTls");
    if (!*c->tls_trust_file)
        return refuse(key, "tlsTrustCertsFilePath must say who signs what clients show");
    if (c->tls_insecure)
        return refuse(key, "with tlsAllowInsecureConnection none is checked");
    return ERR_OK;
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static enum err certificates(struct tls **out, const struct broker_conf *c, const char *protocols,
                             const char *ciphers)
{
    return tls_server(out, &(struct tls_conf){
                               .cert_file = c->tls_cert_file,
                               .key_file = c->tls_key_file,
                               .trust_file = or_null(c->tls_trust_file),
                               .require_peer_cert = c->tls_require_client_cert,
                               .asks_peer_cert = *c->tls_trust_file && !c->tls_insecure,
                               .protocols = protocols,
                               .ciphers = ciphers,
                           });
}

enum err doors_prepare(struct doors *d, const struct broker_conf *conf)
{
    d->conf = conf;
    d->urls = (struct broker_urls){.service = "", .service_tls = "", .web = "", .web_tls = ""};
    TRY(check_ports(conf));
    TRY(check_trust(conf));
    if (wanted(conf->port_tls))
        TRY(certificates(&d->tls, conf, conf->tls_protocols, conf->tls_ciphers));
    if (wanted(conf->web_port_tls))
        TRY(certificates(&d->web_tls, conf, conf->web_tls_protocols, conf->web_tls_ciphers));
    return ERR_OK;
}

/* ---- renewed certificates ---- */

static void renew(struct doors *d, struct tls *tls, const char *port)
{
    bool renewed;

    if (!tls)
        return;
    if (tls_renew(tls, &renewed))
        log_event(LOG_ERROR, "broker.certificate_kept", F_STR("port", port),
                  F_STR("file", d->conf->tls_cert_file));
    else if (renewed)
        log_event(LOG_INFO, "broker.certificate_renewed", F_STR("port", port),
                  F_STR("file", d->conf->tls_cert_file));
}

static void renewal_later(struct doors *d)
{
    const int64_t seconds = d->conf->tls_refresh_seconds;

    loop_after(d->home, &d->renewal, (uint64_t)(seconds > 0 ? seconds : 1) * 1000000);
}

static void renewal_due(struct timer *t)
{
    struct doors *d = container_of(t, struct doors, renewal);

    renew(d, d->tls, "brokerServicePortTls");
    renew(d, d->web_tls, "webServicePortTls");
    renewal_later(d);
}

/* ---- ports ---- */

static void came(void *ctx, int fd)
{
    struct doors *d = ctx;

    d->accepted(d->ctx, fd, NULL);
}

static void came_by_tls(void *ctx, int fd)
{
    struct doors *d = ctx;

    d->accepted(d->ctx, fd, d->tls);
}

enum err doors_open(struct doors *d, struct loop *home,
                    void (*accepted)(void *ctx, int fd, struct tls *tls), void *ctx)
{
    const struct broker_conf *c = d->conf;

    d->home = home;
    d->accepted = accepted;
    d->ctx = ctx;
    d->renewal.run = renewal_due;
    if (wanted(c->port))
        TRY(listener_open(&d->plain, home, c->bind_address, (uint16_t)c->port, came, d));
    if (d->tls)
        TRY(listener_open(&d->secure, home, c->bind_address, (uint16_t)c->port_tls, came_by_tls,
                          d));
    if (d->tls || d->web_tls)
        renewal_later(d);
    return ERR_OK;
}

uint16_t doors_port(const struct doors *d)
{
    return d->plain ? listener_port(d->plain) : 0;
}

uint16_t doors_port_tls(const struct doors *d)
{
    return d->secure ? listener_port(d->secure) : 0;
}

/* ---- what they are called ---- */

static char *own_host(const struct broker_conf *conf)
{
    char host[256] = "localhost";

    if (*conf->advertised_address)
        return mem_string(conf->advertised_address);
    if (gethostname(host, sizeof(host) - 1))
        snprintf(host, sizeof(host), "localhost");
    return mem_string(host);
}

static char *url(const char *scheme, const char *host, uint16_t port)
{
    return port ? mem_format("%s://%s:%u", scheme, host, port) : mem_string("");
}

void doors_named(struct doors *d, uint16_t web_port, uint16_t web_port_tls)
{
    char *host = own_host(d->conf);

    d->service = url("pulsar", host, doors_port(d));
    d->service_tls = url("pulsar+ssl", host, doors_port_tls(d));
    d->web = url("http", host, web_port);
    d->web_tls_url = url("https", host, web_port_tls);
    mem_free(host);
    d->urls = (struct broker_urls){.service = d->service,
                                   .service_tls = d->service_tls,
                                   .web = d->web,
                                   .web_tls = d->web_tls_url};
}

void doors_shut(struct doors *d)
{
    if (d->home)
        loop_cancel(d->home, &d->renewal);
    if (d->plain)
        listener_close(&d->plain);
    if (d->secure)
        listener_close(&d->secure);
}

void doors_drop(struct doors *d)
{
    tls_drop(&d->tls);
    tls_drop(&d->web_tls);
    mem_free(d->service);
    mem_free(d->service_tls);
    mem_free(d->web);
    mem_free(d->web_tls_url);
}
