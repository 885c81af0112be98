/* seek.h - a subscription is moved to another place, while nobody is on it.
 *
 *   READY -> SEEKING: consumers are told to go -> all have gone -> by time? where is it
 *         -> cursor reset, durable, and still the topic's owner -> READY, done()
 *
 * The last matters for a seek backwards: a new owner that read the cursor just before would trim
 * what it needs.
 *
 * Its consumers hear first that they are closed, then the one who asked that it was done
 * (clients.md 6); who subscribes meanwhile waits for the end.  A topic that closes ends it with an
 * error.
 *
 * Memory:  a seek is its caller's and stays put until done(), which may come in the caller's stack.
 * Threads: the topic's loop.
 */
#ifndef BROKER_TOPIC_SEEK_H
#define BROKER_TOPIC_SEEK_H

#include "broker/managed_ledger/cursor.h"
#include "broker/managed_ledger/managed_ledger.h"

struct subscription;

struct seek {
    void (*done)(struct seek *k, enum err err); /* BUSY: it is being moved, made or deleted */
    void *owner;                                /* the caller's */
    bool by_time;
    int64_t ms;         /* to the first message that was published then, or later */
    struct position to; /* to the first entry there, or behind; EARLIEST, LATEST */
    unsigned n_words;   /* of the batch there only these messages; 0: all */
    uint64_t *words;

    struct subscription *subscription; /* private, as the rest */
    struct ml_find find;
    struct cursor_ack_call reset;
    struct ml_call proof;
};

void seek_begin(struct subscription *s, struct seek *k);
void seek_go_on(struct subscription *s); /* nobody is on it any more */

#endif
