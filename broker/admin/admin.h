/* admin.h - HTTP: health, metrics, lookup, the admin REST API v2.
 *
 *   request -> routes.def, jobs.def (method, path) -> authorize -> handler -> JSON or text
 *                             \-> a clerk (jobs.h), for what takes many steps
 *
 * Threads: everything on `home`.
 */
#ifndef BROKER_ADMIN_ADMIN_H
#define BROKER_ADMIN_ADMIN_H

#include <stdint.h>

#include "broker/auth/authorize.h"
#include "common/err.h"
#include "common/loop.h"

struct admin;
struct broker_conf;
struct broker_metrics;
struct broker_urls;
struct metadata;
struct ownership;
struct tls;
struct topics_map;

/* Everything in it outlives the server. */
struct admin_env {
    struct loop *home;
    const struct broker_conf *conf;
    struct metadata *meta;
    struct ownership *ownership;
    const struct topics_map *topics;
    const struct broker_urls *self; /* filled in before the first request */
    const struct authorizer *authorizer;
    const struct broker_metrics *metrics;
    struct tls *tls; /* NULL: no HTTPS */
};

MUST_CHECK enum err admin_open(struct admin **out, const struct admin_env *env);
uint16_t admin_port(const struct admin *a); /* 0: not open */
uint16_t admin_port_tls(const struct admin *a);
/* Takes it; done() once nothing that was asked is under way. */
void admin_close(struct admin *a, void (*done)(void *ctx), void *ctx);

#endif
