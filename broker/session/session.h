/* session.h - one client connection: frames in, commands to their handlers, answers out.
 *
 *   conn -> session_frame -> rules (welcome now?) -> on_*.c -> topic_producer, topic_consumer
 *                                                      \-> reply.h -> conn
 *   NEW --CONNECT--> READY --> ENDED (the connection is gone; waits for its guests to end)
 *
 * A session lives on the loop where its connection was accepted; topics live on theirs.  It
 * talks to them through guests only (topic/guest.h), which it owns as handles by the ids that
 * its client gave them.
 *
 * Memory:  a command and its strings live in the loop's arena until its handler returns.
 * Threads: the session's loop.
 * Limits:  A connection is always read.  A producer that sends more than there is room for is put
 *          off (put_off.h).  Deliveries stop past WRITE_HIGH bytes that have not left, past
 *          WRITE_TIGHT while memory is low or all connections hold `unsent_budget`, and past
 *          ANSWERS_MAX of answers among them the connection is closed: its client asks and does
 *          not read.  HANDLES_MAX producers and consumers, WATCHERS_MAX watchers of topics; an
 *          arena of ARENA_MAX a command.
 */
#ifndef BROKER_SESSION_SESSION_H
#define BROKER_SESSION_SESSION_H

#include "common/table.h"

#include "broker/cluster/topic_watch.h"
#include "broker/managed_ledger/pairs.h"
#include "broker/session/listings.h"
#include "broker/session/receipts.h"
#include "broker/session/sessions.h"
#include "broker/session/unsent.h"
#include "broker/topic/consumer.h"
#include "broker/topic/producer.h"
#include "common/arena.h"
#include "common/conn.h"
#include "proto/command.h"
#include "proto/frame.h"

enum { HANDLES_MAX = 65536, WATCHERS_MAX = 1000, ARENA_MAX = 16 * 1024 * 1024 };
enum { WRITE_HIGH = 4 * 1024 * 1024, WRITE_TIGHT = 64 * 1024, ANSWERS_MAX = 16 * 1024 * 1024 };
enum { PROTOCOL_VERSION = 21 };

enum session_state { SESSION_NEW, SESSION_READY, SESSION_ENDED };

/* A SEND under way. */
struct sending {
    struct publish publish;
    struct receipt receipt;
    struct session_producer *producer;
    uint64_t sequence, highest; /* as they came */
    enum err err;               /* the outcome */
    const char *why;            /* constant; NULL: nothing is answered */
    struct sending *next;       /* in the pool */
};

struct sessions {
    struct sessions_env env;
    struct list_node all;
    struct arena *arena;
    struct sending *pool;
    unsigned pooled;
    struct mem_pool *producers, *consumers;
    unsigned lookups;
    uint64_t next_id;
    uint64_t slow_us; /* a publish that takes longer is logged; 0: none is */

    size_t unsent;                    /* bytes that connections hold, when last looked at */
    size_t publish_max;               /* put_off.h, as the next */
    struct list_node told, returning; /* session_producer.turn */
    struct timer look;

    struct listings listings;
    struct topic_watches *watches;
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

enum handle_state {
    HANDLE_OPENING,
    HANDLE_READY,
    HANDLE_LEAVING,   /* no longer under its id: the client closed it, or opening failed */
    HANDLE_SENT_AWAY, /* the topic closed it: stays under its id, so that what was under way from
                         the client can be told from nonsense */
    HANDLE_PUT_OFF,   /* a producer for which there is no room (put_off.h), as the next */
    HANDLE_TOLD,
    HANDLE_RETURNING
};

/* Of the topics that a pattern means. */
struct session_watcher {
    struct topic_watch watch;
    struct session *session;
    uint64_t id, request; /* the client's */
    char *known;          /* the hash of what it knew when it asked, or NULL */
    UT_hash_handle hh;
};

/* What a producer and a consumer have in common. */
struct handle {
    struct session *session;
    struct guest *guest; /* the one it embeds */
    enum handle_state state;
    bool ended;  /* its guest has */
    uint64_t id; /* the client's */
    UT_hash_handle hh;
    uint64_t open_request, close_request;
    bool answer_close;
    char *topic;
    int32_t partition;
    struct pairs metadata;     /* that its client gave it */
    struct list_node checking; /* session.checking */
};

struct session_producer {
    struct handle handle;
    struct topic_producer guest;
    bool fleeting; /* on a topic that is not stored */
    uint64_t epoch;
    char *initial; /* subscription, or NULL */
    struct receipts receipts;
    size_t accepted;       /* bytes of what waits for its receipt */
    struct list_node turn; /* in sessions.told or .returning, until until_us */
    uint64_t until_us;
    bool was_put_off; /* and said so in the log */
};

struct session_consumer {
    struct handle handle;
    struct topic_consumer guest;
    char *subscription, *name;
    struct pairs properties; /* of the subscription, if it makes one */
};

struct session {
    struct sessions *home;
    struct list_node node;
    struct conn *conn; /* NULL once ENDED */
    enum session_state state;
    uint64_t id;
    unsigned refs; /* guests, lookups, and the one who is in a callback */
    struct principal principal;
    struct guest_who who; /* of its guests: since CONNECT */

    struct timer tick; /* keep-alive */
    uint64_t heard_at, pinged_at;
    struct unsent unsent;
    size_t unsent_seen;  /* of sessions.unsent */
    bool tight;          /* WRITE_TIGHT goes for it */
    bool ends_soon;      /* the tick is moved to now: it does not read what it asks for */
    size_t waiting_then; /* bytes, at the last tick */
    uint64_t left_then;  /* bytes that had left by then */
    struct timer check_due;
    struct list_node checking; /* handle.checking: others ask whether we live */

    struct handle *producers, *consumers; /* by id */
    unsigned handles;
    struct session_watcher *watchers; /* by id */
    size_t publishing;
    unsigned fleeting;            /* publishes to topics that are not stored under way */
    bool hears_end;               /* its client knows REACHED_END_OF_TOPIC */
    struct list_node undelivered; /* deliveries that the connection has not taken */
};

/* One command as its handler gets it; all of it is borrowed. */
struct command {
    const Pulsar__Proto__BaseCommand *base;
    struct frame frame;
    struct slice bytes; /* the whole frame: part of it to keep */
};

static inline const struct sessions_env *session_env(const struct session *s)
{
    return &s->home->env;
}

void session_accepted(struct sessions *home, int fd, struct tls *tls);
/* One log line, then the connection is gone. */
void session_fail(struct session *s, enum err err, const char *what);
void session_finish(struct session *s); /* what was sent still leaves */
void session_hold(struct session *s);
void session_let_go(struct session *s); /* may free it */
void session_send(struct session *s, const Pulsar__Proto__BaseCommand *c);
void session_send_frame(struct session *s, struct slice frame); /* takes: a whole answer */

/* ---- handles.c ---- */
struct handle *handle_find(struct handle *table, uint64_t id);
void handle_add(struct session *s, struct handle **table, struct handle *h);
void handle_remove(struct handle **table, struct handle *h); /* LEAVING */
/* The guest has ended: answers a close; true when the handle is to be freed. */
bool handle_ended(struct handle *h);
void handle_check(struct handle *h);     /* is the connection alive? */
void session_checked(struct session *s); /* it is: a frame came */
void session_check_init(struct session *s);

/* ---- on_producer.c: what its client is told ---- */
void session_producer_success(struct session_producer *p, uint64_t request, bool ready);
void session_producer_gone(struct handle *h);

/* ---- on_producer.c, on_consumer.c: the connection is gone ---- */
void session_producers_leave(struct session *s);
void session_consumers_leave(struct session *s);
void session_undelivered_go(struct session *s);
void session_unsent_look(struct session *s); /* how much its connection holds */
void session_undelivered_drop(struct session *s, const struct topic_consumer *c);

/* ---- on_watch.c: the connection is gone ---- */
void session_watchers_leave(struct session *s);

/* ---- sessions.c ---- */
void sessions_tell_if_closed(struct sessions *home);

/* ---- on_send.c ---- */
void session_sent(struct receipts *q, struct receipt *r); /* leave() of the receipts */
void session_published(struct topic_producer *p, struct publish *m);
void sending_pool_drop(struct sessions *home);

#endif
