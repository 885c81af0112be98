/* mem.h - allocation that never fails.
 *
 * A server out of memory has no good next move, so these abort with a message.
 * What a peer can make us allocate is bounded earlier: frame size, window size,
 * arena limit.  Plain malloc() is banned outside mem.c (see tests/tidy.py).
 */
#ifndef COMMON_MEM_H
#define COMMON_MEM_H

#include <stddef.h>
#include <stdint.h>

/* First thing in main(): large blocks, which are what differs between a busy and a quiet hour, go
 * back to the system when they are freed; and threads share a few heaps. */
void mem_setup(void);

void *mem_alloc(size_t size);           /* zeroed; gives */
void *mem_resize(void *p, size_t size); /* takes p, gives; new bytes are not zeroed */
void mem_free(void *p);                 /* takes; NULL is fine */
char *mem_string(const char *s);        /* gives a copy */
char *mem_string_n(const char *s, size_t len);
char *mem_format(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* gives */

/* What is allocated, and what the allocator holds for it; of glibc's, or of a jemalloc that took
 * its place (LD_PRELOAD).  Takes the allocator's locks: for those who look now and then. */
struct mem_heap {
    uint64_t used, held; /* bytes */
};
struct mem_heap mem_heap(void);

#define mem_new(type) ((type *)mem_alloc(sizeof(type)))

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
