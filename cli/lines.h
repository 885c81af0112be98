/* lines.h - lines of a file or of standard input, read by a thread of their own, handed to a loop.
 *
 * Reading may block for as long as the other end of a pipe likes; the loop must not.
 *
 * Memory:  whoever lets go last frees it: the owner, the thread, or a task that still waits.
 * Threads: everything but the reading on the loop.
 * Limits:  LINES_AHEAD lines or LINES_AHEAD_BYTES are read ahead; a line has at most LINE_BYTES.
 */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/loop.h"

enum {
    LINES_AHEAD = 1024,
    LINES_AHEAD_BYTES = 16 * 1024 * 1024,
    LINE_BYTES = 64 * 1024 * 1024,
};

struct lines;

/* more() is called when a line or the end has come.  path "-": standard input.  NULL with errno
 * when it cannot be opened. */
struct lines *lines_open(struct loop *home, const char *path, void (*more)(void *ctx), void *ctx);
/* Gives the next line without its newline (mem_free), or NULL; *end is set when there is none
 * left. */
char *lines_next(struct lines *l, size_t *len, bool *end);
const char *lines_error(struct lines *l); /* why it ended before its end; NULL: it did not */
void lines_close(struct lines **l);       /* more() is not called again */

#endif
