#include "broker/admin/errand.h"

#include <errno.h>
#include <time.h>

#include "broker/admin/jobs.h"

void errand_begin(struct errand *e, void (*free_it)(struct errand *e))
{
    sem_init(&e->done, 0, 0);
    atomic_init(&e->holders, 2);
    atomic_init(&e->ended, false);
    e->free = free_it;
}

bool errand_wait(struct errand *e)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_S;
    while (sem_clockwait(&e->done, CLOCK_MONOTONIC, &until))
        if (errno == ETIMEDOUT)
            return false;
    /* The semaphore orders it too; thread checkers know only this. */
    return atomic_load(&e->ended);
}

void errand_drop(struct errand *e)
{
    if (atomic_fetch_sub(&e->holders, 1) > 1)
        return;
    sem_destroy(&e->done);
    e->free(e);
}

void errand_end(struct errand *e)
{
    atomic_store(&e->ended, true);
    sem_post(&e->done);
    errand_drop(e);
}
