/* errand.h - what a clerk sends to a loop, and waits for.
 *
 *   clerk: errand_begin -> loop_post .. errand_wait --yes--> reads the result -> errand_drop
 *   loop:                     ... errand_end            \--no: time is up--> errand_drop
 *
 * Whoever is last frees it: a clerk that gave up leaves it to the loop.
 *
 * Threads: end on a loop, the rest on the clerk's.
 */
#ifndef BROKER_ADMIN_ERRAND_H
#define BROKER_ADMIN_ERRAND_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

struct errand {
    sem_t done;
    atomic_int holders;
    atomic_bool ended;
    void (*free)(struct errand *e); /* and what it is embedded in */
};

void errand_begin(struct errand *e, void (*free_it)(struct errand *e));
bool errand_wait(struct errand *e); /* false: not within WAIT_S */
void errand_end(struct errand *e);  /* the loop's last touch */
void errand_drop(struct errand *e); /* the clerk's */

#endif
