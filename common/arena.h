/* arena.h - memory that dies all at once, with a ceiling.
 *
 * One arena a loop or connection decodes one command at a time: unpack, handle,
 * reset.  Nothing decoded is freed piece by piece, so handlers have no cleanup
 * paths.  An arena that reaches its limit returns NULL: that is how a hostile
 * length turns into ERR_TOO_BIG instead of into memory.  It grows in blocks and
 * keeps one small block over a reset.
 *
 * Threads: one at a time.
 */
#ifndef COMMON_ARENA_H
#define COMMON_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

struct arena *arena_new(size_t limit);           /* gives */
void *arena_alloc(struct arena *a, size_t size); /* zeroed; borrows from a; NULL past the limit */
char *arena_string(struct arena *a, const char *s, size_t len); /* copy + NUL, or NULL */
bool arena_was_short(const struct arena *a);                    /* since the last reset */
void arena_reset(struct arena *a); /* everything handed out so far is gone */
void arena_drop(struct arena **a);

#endif
