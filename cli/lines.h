/* lines.h - lines of a file or of standard input, read by a thread of their own, handed to a loop.
 *
 * Reading may block for as long as the other end of a pipe likes; the loop must not.
 *
 * Threads: everything but the reading on the loop.
 * Limits:  LINES_AHEAD lines are read ahead; a line has at most 64 MiB.
 */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include <stddef.h>

#include "common/loop.h"

enum { LINES_AHEAD = 1024 };

struct lines;

/* more() is called when a line or the end has come.  path "-": standard input.  NULL with errno
 * when it cannot be opened. */
struct lines *lines_open(struct loop *home, const char *path, void (*more)(void *ctx), void *ctx);
/* Gives the next line without its newline (mem_free), or NULL; *end is set when there is none left.
 */
char *lines_next(struct lines *l, size_t *len, int *end);

#endif
