/* doors.h - the ports that clients come in by, plain and TLS, and the certificates shown there.
 *
 *   doors_prepare (certificates) -> doors_open (ports) -> doors_named (urls) -> doors_shut -> drop
 *
 * The ports of HTTP are opened by admin.h, with the certificates of here.
 *
 * Memory:  conf outlives it; urls are its own.
 * Threads: open, named and shut on `home`, which looks for renewed files; the rest before and
 *          after that.
 */
#ifndef BROKER_DOORS_H
#define BROKER_DOORS_H

#include "broker/cluster/ownership.h"
#include "common/listener.h"
#include "common/tls.h"

struct broker_conf;

struct doors {
    const struct broker_conf *conf;
    struct loop *home;
    struct tls *tls, *web_tls; /* NULL: that port is not wanted */
    struct listener *plain, *secure;
    void (*accepted)(void *ctx, int fd, struct tls *tls); /* gives fd; tls NULL: plain */
    void *ctx;
    struct timer renewal;
    char *service, *service_tls, *web, *web_tls_url;
    struct broker_urls urls; /* "" until they are named */
};

/* ERR_BAD_CONFIG, with a log event: the settings contradict each other, or a file is none. */
MUST_CHECK enum err doors_prepare(struct doors *d, const struct broker_conf *conf);
MUST_CHECK enum err doors_open(struct doors *d, struct loop *home,
                               void (*accepted)(void *ctx, int fd, struct tls *tls), void *ctx);
uint16_t doors_port(const struct doors *d); /* 0: none */
uint16_t doors_port_tls(const struct doors *d);
void doors_named(struct doors *d, uint16_t web_port, uint16_t web_port_tls); /* 0: none */
void doors_shut(struct doors *d);
void doors_drop(struct doors *d); /* nobody who came in is left */

#endif
