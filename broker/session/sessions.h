/* sessions.h - the client connections of one loop.
 *
 * Threads: the loop's; sessions_accept() too.
 */
#ifndef BROKER_SESSION_SESSIONS_H
#define BROKER_SESSION_SESSIONS_H

#include "broker/auth/authorize.h"
#include "common/loop.h"

struct broker_conf;
struct broker_metrics;
struct memory_guard;
struct metadata;
struct ownership;
struct policies;
struct sessions;
struct tls;
struct topics_map;

/* What sessions are made with; everything in it outlives them. */
struct sessions_env {
    struct loop *home;
    const struct broker_conf *conf;
    struct metadata *meta;
    struct policies *policies; /* of this loop */
    struct ownership *ownership;
    const struct authorizer *authorizer;
    const struct topics_map *topics;
    struct broker_metrics *metrics;
    const struct memory_guard *memory; /* NULL: there is plenty */
    size_t unsent_budget;              /* of entries that connections hold */
};

struct sessions *sessions_new(const struct sessions_env *env); /* gives; env is copied */
/* Takes fd; tls NULL: plain; it outlives the connection. */
void sessions_accept(struct sessions *s, int fd, struct tls *tls);
/* Writes what waits, closes every connection; done() once nothing of them is left. */
void sessions_close(struct sessions *s, void (*done)(void *ctx), void *ctx);
void sessions_drop(struct sessions **s); /* after that */

#endif
