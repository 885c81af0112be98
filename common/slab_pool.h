/* slab_pool.h - where slabs come from and go back to: free lists a thread, a shared pool behind.
 *
 *   slab_new() <-- this thread's list <-- batches --> shared pool (locked) --> free()
 *
 * A slab dropped on another thread than it came from lands in that thread's list; a list
 * that is full hands half of itself to the shared pool, and an empty one takes a batch.
 * So the lock is taken once a batch, not once a slab.
 *
 * What was busiest once would otherwise be kept for good, of each class and thread: so of what
 * nobody has needed since the last look a quarter goes on its way back to the system, every
 * SLAB_POOL_AGE_US.
 *
 * Limits:  a thread keeps THREAD_KEEPS bytes a class, the pool POOL_KEEPS a class.
 * Threads: any.  For buf.c; slab_pool_trim() for memory_guard.c, slab_pool_age() for loop.c.
 */
#ifndef COMMON_SLAB_POOL_H
#define COMMON_SLAB_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* 64 B, 128 B ... 1 MiB; a slab of class SLAB_CLASSES was allocated by itself. */
#define SLAB_CLASSES 15

#define SLAB_POOL_AGE_US ((uint64_t)10 * 1000 * 1000)

struct slab *slab_pool_take(size_t size); /* gives; refs is not set */
void slab_pool_give(struct slab *s);      /* takes */
size_t slab_pool_in_use(void);            /* bytes */
size_t slab_pool_kept(void);              /* bytes, for those to come */
void slab_pool_trim(void);                /* the shared pool and this thread keep nothing for now */
void slab_pool_age(uint64_t now_us);      /* now and then, by all who live long */
void slab_pool_lean(bool lean);           /* on: what is given from now on is not kept, by nobody */

#endif
