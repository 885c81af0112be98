/* link.h - one connection to a broker, shared by the producers and consumers that it serves.
 *
 *   link_join -> DIALLING -> GREETING (CONNECT .. CONNECTED) -> READY -> user.ready()
 *                   any -> ENDED -> user.lost(), request.done(CLOSED)
 *   link_call -> request -> reply by request id -> request.done()
 *   SEND_RECEIPT, MESSAGE ... -> by producer or consumer id -> user.command()
 *
 * A broker that says nothing for a keep-alive interval, and then nothing to a ping for another,
 * is given up.  A link that nobody used for an interval is closed.
 *
 * Memory:  links belong to the client and end when their connection does.  Users and requests are
 *          embedded in theirs.
 * Threads: the client's loop.
 * Limits:  what waits to be written is bounded by those who write: a producer's window, a
 *          consumer's permits.  Reading never stops for it: receipts must come in.
 */
#ifndef CLIENT_LINK_H
#define CLIENT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/conn.h"
#include "common/err.h"
#include "common/list.h"
#include "common/loop.h"
#include "proto/command.h"
#include "proto/frame.h"

struct link;
struct link_user;
struct link_request;

/* What all links of a client share. */
struct link_env {
    struct loop *home;
    struct tls *tls;
    struct list_node links;
    uint64_t next_request;
    uint64_t timeout_us;    /* of a request */
    uint64_t keep_alive_us; /* the interval */
};

struct link_user_ops {
    void (*ready)(struct link_user *u); /* the link takes commands */
    /* `bytes` is the frame that cmd and f look into: share it to keep it. */
    void (*command)(struct link_user *u, const Pulsar__Proto__BaseCommand *cmd,
                    const struct frame *f, struct slice bytes);
    void (*lost)(struct link_user *u, const char *why); /* it has left the link */
};

enum user_kind { USER_PRODUCER, USER_CONSUMER, USER_ASKER /* of requests alone */ };

struct link_user {
    const struct link_user_ops *ops;
    enum user_kind kind;
    uint64_t id;
    struct link *link; /* NULL: on none */
    struct list_node node;
    struct task ready_task;
    bool ready_posted;
};

struct link_request {
    /* err: of the reply, or TIMEOUT, CLOSED; text may be NULL.  A reply of OK is of the kind that
     * answers the command; without a reply it is NULL. */
    void (*done)(struct link_request *r, enum err err, const char *text,
                 const Pulsar__Proto__BaseCommand *reply);
    uint64_t id;
    int reply_type;
    struct link *link; /* NULL: at rest */
    struct list_node node;
    struct timer deadline;
};

void link_env_init(struct link_env *e, struct loop *home, struct tls *tls, uint64_t timeout_us,
                   uint64_t keep_alive_us);
void link_env_close(struct link_env *e); /* after the last user has left; writes what waits */

/* The link to that broker, dialled if there is none; the user has joined it. */
void link_join(struct link_env *e, const char *host, uint16_t port, struct link_user *u);
void link_leave(struct link_user *u); /* no callback follows; on no link is fine */

/* Sends a command whose request id was taken with link_next_request(). */
uint64_t link_next_request(struct link_env *e);
void link_call(struct link *l, const Pulsar__Proto__BaseCommand *cmd, uint64_t id,
               struct link_request *r);
void link_forget(struct link_request *r);              /* no callback follows; at rest is fine */
void link_send(struct link *l, struct slice frame);    /* takes */
void link_send_chain(struct link *l, struct chain *c); /* takes what is in it */
void link_break(struct link *l, const char *why);      /* closes it: everyone is told lost() */
size_t link_max_message(const struct link *l);

#endif
