/* file_window.h - a file that is read from one end to the other, through a window that moves on.
 *
 * What the device cannot read is seen as zeros, a page at a time, so that what lies behind it is
 * still found; `unreadable` counts those bytes.  A strict window has ERR_IO instead: where the
 * end of what was written must not be taken for a place that cannot be read.
 *
 * Memory:  what a look gives is borrowed until the next one.
 * Threads: one.
 */
#ifndef BOOKIE_FILE_WINDOW_H
#define BOOKIE_FILE_WINDOW_H

#include <stdbool.h>

#include "common/disk.h"
#include "common/err.h"

struct file_window {
    struct disk_file *file;
    uint64_t size;
    uint64_t unreadable;
    bool strict;    /* to be set after opening it */
    uint8_t *bytes; /* private, as the next three */
    uint64_t base;
    size_t len, room;
};

MUST_CHECK enum err file_window_open(struct file_window *w, struct disk *disk, const char *path);
/* `n` bytes at `at`; NULL in *out when the file ends before. */
MUST_CHECK enum err file_window_look(struct file_window *w, uint64_t at, uint64_t n,
                                     const uint8_t **out);
void file_window_close(struct file_window *w); /* also one that could not be opened */

#endif
