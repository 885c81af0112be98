/* guest.h - a producer or a consumer: half on its connection's loop, half on its topic's.
 *
 *   front (session)                      back (topic)
 *   guest_open ------------------------> topic loaded? -> back->arrive()
 *                                          |  guest_admit | guest_refuse | guest_queue_behind
 *   front->opened(err, why) <--------------+
 *   front->go() <----------------------- guest_send_away: the topic cannot keep it
 *   front->check() <-------------------- somebody wants its place: does its connection live?
 *   guest_alive -----------------------> the others are refused
 *   guest_close -----------------------> back->leave(), waits for what is under way
 *   front->ended() <---------------------+
 *
 * What crosses between the loops is the guest itself, by tasks embedded in it: each of
 * them is on its way at most once.
 *
 * Lifetime: the guest is its front's memory (embed it).  guest_open() lends it to the back
 * until ended() comes, which is after exactly one guest_close(): also when opening was
 * refused, when it was told to go, and when its connection died.  Posts between two loops
 * keep their order, so whatever the front posts before guest_close() finds the back alive,
 * and nothing comes after ended().
 *
 * Threads: functions and callbacks of the front on `front`, of the back on `back`; the two
 *          may be the same loop, and nothing depends on it.
 */
#ifndef BROKER_TOPIC_GUEST_H
#define BROKER_TOPIC_GUEST_H

#include "broker/topic/topics.h"
#include "common/err.h"
#include "common/list.h"
#include "common/loop.h"

struct guest;
struct pairs;
struct topic;

/* Whose connection it is; says the same for all its time. */
struct guest_who {
    char *address; /* "/1.2.3.4:5678": as Pulsar shows it */
    char *client;  /* the version that it said, "" for none */
};

struct guest_front {
    void (*opened)(struct guest *g, enum err err, const char *why);
    void (*go)(struct guest *g);    /* answer with guest_close(), unless that was done */
    void (*check)(struct guest *g); /* answer with guest_alive() or guest_close() */
    void (*ended)(struct guest *g);
};

struct guest_back {
    void (*arrive)(struct guest *g); /* the topic is ready; may run again after a rival left */
    void (*leave)(struct guest *g);  /* its place is free after this; asks under way may go on */
    enum err busy;                   /* what those who wanted its place are told */
};

/* of the back */
enum guest_state {
    GUEST_ARRIVING, /* the topic is being loaded, the subscription made */
    GUEST_TURNING,  /* closed while arriving: ends when what it waits for has answered */
    GUEST_QUEUED,   /* behind a rival whose connection is being asked whether it lives */
    GUEST_IN,
    GUEST_SENT_AWAY, /* its front was told to go */
    GUEST_REFUSED,   /* its front was told why */
    GUEST_LEAVING,   /* closed; something of it is still under way */
    GUEST_GONE,
};

struct guest {
    /* set before guest_open() */
    const struct guest_front *front_ops;
    const struct guest_back *back_ops;
    struct loop *front;
    struct topics *topics;        /* of the topic's loop */
    const char *topic_name;       /* full; outlives the guest */
    bool create;                  /* make the topic if it is absent and that is allowed */
    uint64_t session;             /* whose it is */
    const struct guest_who *who;  /* outlives the guest, as the next */
    const struct pairs *metadata; /* what its client says about it */

    /* private: the front's */
    bool closing;

    /* private: the back's */
    enum guest_state state;
    struct topic *topic;
    struct list_node node;   /* where the kind keeps it */
    struct list_node rivals; /* those who wait to hear whether this one lives */
    struct list_node rival;  /* in another's rivals */
    uint64_t since_ms;       /* 1970, it is in */
    bool checking;
    unsigned under_way;
    struct topics_call call;

    enum err err; /* crosses with `told` */
    char *why;    /* of a refusal */
    struct task open, told, away, ask, answer, close, end;
};

enum { GUEST_SINCE_TEXT = 40 };
/* When it came in, as Pulsar writes it: 2026-07-29T08:00:00.123Z. */
void guest_since(const struct guest *g, char out[GUEST_SINCE_TEXT]);

/* How many of a list (guest.node) come from the same host as g. */
unsigned guests_from_there(const struct list_node *all, const struct guest *g);

/* ---- front ---- */
void guest_open(struct guest *g);
void guest_close(struct guest *g); /* once is enough, twice is fine */
void guest_alive(struct guest *g);

/* ---- back ---- */
static inline struct loop *guest_back_loop(const struct guest *g)
{
    return topics_loop(g->topics);
}
void guest_admit(struct guest *g);
void guest_refuse(struct guest *g, enum err err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void guest_queue_behind(struct guest *g, struct guest *rival);
void guest_send_away(struct guest *g);
void guest_arrive_again(struct guest *g); /* what it waited for has answered */
/* Something of it is under way, or no longer. */
static inline void guest_holds(struct guest *g)
{
    g->under_way++;
}
void guest_lets_go(struct guest *g); /* may end it: touch it no more */

#endif
