/* mem_pool.h - many objects of one size that live side by side, apart from all others.
 *
 *   chunk: [ object | object | free | object ... ]     mapped by itself, given back when empty
 *
 * What lives long (a topic) and what comes and goes (its consumers) would otherwise share pages,
 * and after a busy hour each page would be kept by the one object in it that stays.  In a pool
 * what has gone leaves whole chunks, and those go back to the system at once.
 *
 * Memory:  an object is zeroed, and aligned to eight bytes; the pool itself goes with the last of
 *          its objects after mem_pool_drop(), so an object may outlive whoever made the pool.
 * Threads: the pool's owner's; one that it was handed to afterwards is fine.
 * Limits:  none of its own.  One empty chunk is kept.
 */
#ifndef COMMON_MEM_POOL_H
#define COMMON_MEM_POOL_H

#include <stddef.h>

struct mem_pool;

struct mem_pool *mem_pool_new(size_t size);      /* of an object; gives */
void mem_pool_drop(struct mem_pool **p);         /* takes: nothing is taken from it any more */
void *mem_pool_take(struct mem_pool *p);         /* gives */
void mem_pool_give(void *object);                /* takes; NULL is fine */
size_t mem_pool_bytes(const struct mem_pool *p); /* that it holds */

#endif
