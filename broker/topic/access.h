/* access.h - who may produce on a topic: everyone, or one alone; a pure state machine.
 *
 *   ask --> IN                           shared, beside others that are shared
 *     \---> WAITING --> TAKING --> IN    alone: once everybody has left and the epoch is stored
 *      \----------------^
 *
 *   SHARED     refused while somebody has the topic alone, takes it or waits for that
 *   EXCLUSIVE  refused while anybody is there
 *   WAIT       goes behind those who are there, and is taken in its turn
 *   FENCE      sends away all who are there, refuses all who wait, then takes
 *
 * Each owner has an epoch, greater than those of all before it and stored before it is let in.
 * One that comes back shows the one it had: if nobody took the topic since, it keeps it;
 * otherwise it is refused for good.
 *
 * Effects may not call back into the machine, except that admit() may access_leave() the one who
 * is admitted: it is always the last thing that a function does.
 *
 * Memory:  seats are the callers': embedded, in their lists from ask to leave or refuse().
 * Threads: the topic's loop.
 * Limits:  ACCESS_WAITERS_MAX wait, then PRODUCER_BUSY.
 */
#ifndef BROKER_TOPIC_ACCESS_H
#define BROKER_TOPIC_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/list.h"

enum { ACCESS_WAITERS_MAX = 1000 };
enum { ACCESS_NO_EPOCH = -1, ACCESS_BAD_EPOCH = -2 };
#define ACCESS_EPOCH_MAX (INT64_MAX / 2) /* that anyone may show: leaves room to count on */

enum access_mode { ACCESS_SHARED, ACCESS_EXCLUSIVE, ACCESS_WAIT, ACCESS_FENCE };
enum access_place { ACCESS_OUT, ACCESS_WAITING, ACCESS_TAKING, ACCESS_IN };

struct access_seat {
    enum access_mode mode;
    int64_t epoch;           /* that it had when it was here last, or ACCESS_NO_EPOCH */
    enum access_place place; /* private, as the next */
    struct list_node node;
};

struct access;

struct access_fx {
    void (*admit)(struct access *a, struct access_seat *s, int64_t epoch); /* shared: none */
    void (*queue)(struct access *a, struct access_seat *s); /* it waits; admit or refuse follow */
    void (*refuse)(struct access *a, struct access_seat *s, enum err err, const char *why);
    void (*send_away)(struct access *a, struct access_seat *s); /* answer with access_leave() */
    void (*store)(struct access *a, int64_t epoch); /* answer, later, with access_stored() */
};

struct access {
    const struct access_fx *fx;
    int64_t epoch; /* of the last owner; durable */
    struct list_node inside;
    struct list_node waiting;
    unsigned n_waiting;
    struct access_seat *taker;
    int64_t storing; /* an epoch that is being stored, for `taker` unless that one went */
    struct access_seat *stored_for;
    enum err shut; /* what everyone is told, and why */
    const char *why;
};

/* What was stored last, ACCESS_NO_EPOCH, or ACCESS_BAD_EPOCH if that is no number. */
void access_init(struct access *a, const struct access_fx *fx, int64_t epoch);
void access_ask(struct access *a, struct access_seat *s);
void access_leave(struct access *a, struct access_seat *s); /* harmless when it is out */
void access_stored(struct access *a, enum err err);
/* Nobody produces here any more: all are sent away or refused. */
void access_shut(struct access *a, enum err err, const char *why);

/* What a stored epoch means; NULL: there is none. */
int64_t access_epoch_of(const char *text);

#endif
