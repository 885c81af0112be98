/* fake_broker.h - a broker of a few lines behind a real socket: answers as a good one does, notes
 * what it was told, and does wrong what a test asks for.
 *
 * What it was told is a text, a line a command:
 *   CONNECT | PARTITIONS t | LOOKUP t | PRODUCER 0 | SEND 0 #3 'text' | SEND 0 #4-6 batch |
 *   SEND 0 #7 piece 1/3 | SUBSCRIBE 0 | SUBSCRIBE 1 after 1:4/-1 for now | FLOW 0 500 |
 *   ACK 0 1:3 1:4 | ACK 0 upto 1:3 | CLOSE_PRODUCER 0 | PONG ...
 *
 * Threads: everything on its loop, or on the thread that made the loop while it does not run.
 */
#ifndef TESTS_UNIT_CLIENT_FAKE_BROKER_H
#define TESTS_UNIT_CLIENT_FAKE_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/loop.h"
#include "proto/pulsar.pb-c.h"

#define CMD(name)  PULSAR__PROTO__BASE_COMMAND__TYPE__##name
#define CODE(name) PULSAR__PROTO__SERVER_ERROR__##name

/* What to do to a command instead of answering it well. */
struct trick {
    int on;         /* CMD(..) */
    unsigned after; /* so many of them are still answered well */
    unsigned times; /* 0: once */
    enum {
        TRICK_MUTE,         /* no answer */
        TRICK_CUT,          /* closes the connection */
        TRICK_ERROR,        /* with code, as the command's answer knows errors */
        TRICK_REDIRECT,     /* LOOKUP: to port */
        TRICK_LATER,        /* SEND: a receipt for the next sequence id */
        TRICK_GARBAGE,      /* bytes that are no frame's */
        TRICK_WRONG_KIND,   /* SUCCESS, whatever was asked */
        TRICK_TAKE_AND_CUT, /* SEND, ACK: does it, does not say so, and closes the connection */
    } how;
    int code;
    uint16_t port;
};

struct fake_broker;

struct fake_broker *fake_broker_new(struct loop *l, int max_message); /* 0: 5 MiB.  Gives */
void fake_broker_drop(struct fake_broker **b);
uint16_t fake_broker_port(const struct fake_broker *b);
void fake_broker_partition(struct fake_broker *b, unsigned n); /* all topics have so many */
void fake_broker_trick(struct fake_broker *b, struct trick t);
void fake_broker_untrick(struct fake_broker *b); /* forgets what is still to come */
void fake_broker_cut(struct fake_broker *b);     /* closes all connections */

const char *fake_broker_told(const struct fake_broker *b);
unsigned fake_broker_count(const struct fake_broker *b,
                           const char *front);  /* lines that begin so */
void fake_broker_forget(struct fake_broker *b); /* what it was told */

/* To the client that came last. */
void fake_broker_say(struct fake_broker *b, const Pulsar__Proto__BaseCommand *c);
void fake_broker_ping(struct fake_broker *b);
void fake_broker_pause(struct fake_broker *b); /* reads nothing more from it until resumed */
void fake_broker_resume(struct fake_broker *b);
void fake_broker_close_producer(struct fake_broker *b, uint64_t id);
void fake_broker_close_consumer(struct fake_broker *b, uint64_t id);
void fake_broker_receipt(struct fake_broker *b, uint64_t producer, uint64_t sequence);
/* Entry `entry` of ledger 1 to consumer 0; the body is from 0x0e01. */
void fake_broker_deliver(struct fake_broker *b, int64_t entry, struct view body);

#endif
