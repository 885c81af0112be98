/* journal_ahead.h - makes a journal's next file before the journal needs it.
 *
 *   ask -> [its thread] free file or new one --> under the next id --> as long as files are, with
 * zeros
 *     --> synced --> ready --take--> [journal thread] header, groups
 *
 * A journal that makes its file itself stands still for a rename, a directory's sync and megabytes
 * of zeros, and everything that was added meanwhile with it.  What is ready at a crash is a file
 * without a header of its own: replay finds nothing in it, and it is free as soon as a mark is
 * behind it.
 *
 * Threads: its own; start and stop on the journal's owner, the rest on its thread.
 * Limits:  one file ahead.  A new one is only made where there is space for ROOM of its kind; where
 *          it fails the journal makes its own, and says what is wrong.
 */
#ifndef BOOKIE_JOURNAL_AHEAD_H
#define BOOKIE_JOURNAL_AHEAD_H

#include "bookie/journal_file.h"

struct journal_ahead;

/* Gives; NULL when there can be no thread.  `f` outlives it. */
struct journal_ahead *journal_ahead_start(struct journal_files *f, uint64_t file_bytes);
void journal_ahead_stop(struct journal_ahead **a);
void journal_ahead_ask(struct journal_ahead *a); /* for one, if none is ready */
bool journal_ahead_is_ready(struct journal_ahead *a);
/* True: *out has it, without header.  Files are used in the order of their ids: one that was begun
 * before file `after` is left to be free. */
bool journal_ahead_take(struct journal_ahead *a, uint64_t after, struct journal_file *out);

#endif
