/* unsent.h - how much of what a connection has not sent yet are answers.
 *
 *   put: deliveries and answers, in one order  ->  connection  ->  left
 *
 * Deliveries stop by themselves when they do not leave; answers are as many as the client asks
 * for.  One that asks and does not read is found by these alone: counted since two marks, each set
 * when all that was put before the last one had left.  So it is never less than the truth, nothing
 * once the queue is empty, and of one who reads slowly not more than two queues full of them.
 *
 * Pure.
 */
#ifndef BROKER_SESSION_UNSENT_H
#define BROKER_SESSION_UNSENT_H

#include <stddef.h>
#include <stdint.h>

enum { UNSENT_OVERHEAD = 128 };

struct unsent {
    uint64_t put, mark;   /* bytes since the beginning */
    size_t before, after; /* of answers: between the last two marks, and since */
};

static inline void unsent_put(struct unsent *u, size_t delivery)
{
    u->put += delivery;
}

/* It is charged with the slab and the place in the queue that it has, too. */
static inline void unsent_put_answer(struct unsent *u, size_t answer)
{
    u->put += answer;
    u->after += answer + UNSENT_OVERHEAD;
}

/* Bytes that have left, of those put: `waiting` are still there. */
static inline uint64_t unsent_left(const struct unsent *u, size_t waiting)
{
    return u->put - waiting;
}

static inline size_t unsent_answers(struct unsent *u, size_t waiting)
{
    if (unsent_left(u, waiting) >= u->mark) {
        u->before = u->after;
        u->after = 0;
        u->mark = u->put;
    }
    if (waiting == 0)
        u->before = 0;
    return u->before + u->after;
}

#endif
