/* attach.h - keeping a producer or consumer attached to the broker that owns its topic.
 *
 *   IDLE -> LOOKUP -> JOINING -> OPENING -> READY
 *             ^          |          |         |
 *             +-- WAITING (backoff) <---------+     any -> ENDED
 *
 * Before it was READY once, an error that retrying cannot mend, or the operation timeout,
 * ends it; afterwards only an error that says so (fenced, terminated, no such topic ...).
 * The backoff grows until the attachment has lasted longer than it.
 *
 * Memory:  embedded in its owner, which is freed a loop round after attach_end().
 * Threads: the client's loop.
 */
#ifndef CLIENT_ATTACH_H
#define CLIENT_ATTACH_H

#include "client/link.h"
#include "client/url.h"

struct attach;

struct attach_ops {
    /* Fill the PRODUCER or SUBSCRIBE into cmd and send it with link_call(a->user.link, ..,
     * &a->request). */
    void (*open)(struct attach *a, uint64_t request_id);
    void (*opened)(struct attach *a, const Pulsar__Proto__BaseCommand *reply);
    /* What open() asked for is not wanted any more, and the broker may have it: close it there. */
    void (*abandon)(struct attach *a, struct link *link);
    void (*command)(struct attach *a, const Pulsar__Proto__BaseCommand *cmd, const struct frame *f,
                    struct slice bytes);
    void (*lost)(struct attach *a); /* was READY and is not any more */
    void (*failed)(struct attach *a, enum err err, const char *text); /* ENDED, by itself */
};

enum attach_state {
    ATTACH_IDLE,
    ATTACH_LOOKUP,
    ATTACH_JOINING,
    ATTACH_OPENING,
    ATTACH_READY,
    ATTACH_WAITING,
    ATTACH_ENDED,
};

struct attach {
    const struct attach_ops *ops;
    struct link_env *env;
    const struct service_url *service;
    const char *topic;
    enum attach_state state;
    bool was_ready;
    struct link_user user;
    struct link_request request;
    struct timer retry;
    uint64_t backoff_us, ready_us; /* since when it is READY */
    struct timer give_up;          /* of the first opening */
    enum err last_err;             /* what went wrong last, */
    char why[256];                 /* and in words */
    unsigned next_host;            /* of the service url's */
    unsigned redirects;
    char *host; /* the owner's, while JOINING and later */
    uint16_t port;
    bool authoritative;
};

/* topic, service and env outlive it. */
void attach_start(struct attach *a, const struct attach_ops *ops, struct link_env *env,
                  const struct service_url *service, const char *topic, enum user_kind kind,
                  uint64_t user_id);
void attach_again(struct attach *a); /* the broker sent us away */
/* The two sides do not agree on what was said: a new connection, as no answer to what went over
 * this one means anything any more. */
void attach_out_of_step(struct attach *a, const char *why);
void attach_end(struct attach *a); /* no callback follows */

static inline struct link *attach_link(const struct attach *a)
{
    return a->state == ATTACH_READY ? a->user.link : NULL;
}

#endif
