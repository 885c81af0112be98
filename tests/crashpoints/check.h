/* check.h - does a bookie, started on what a crash has left, know what it must?
 *
 * I6  what was acknowledged is there, byte for byte: entries, fences, explicit LACs
 * I7  "no such entry" is said only of what was never acknowledged
 * I11 what is read has its ids and its checksum; nothing is there that was never written
 * and it starts, whatever the crash: damage is what a crash does not do.
 */
#ifndef TESTS_CRASHPOINTS_CHECK_H
#define TESTS_CRASHPOINTS_CHECK_H

#include <stddef.h>

#include "tests/crashpoints/book.h"
#include "tests/crashpoints/home.h"

struct check_conf {
    const struct home_identity *identity;
    const char *const *sets;
    const char *log; /* a file for what the bookie says */
    bool again;      /* it is killed and started once more, and all must be as before */
};

/* Asks a bookie that serves; adds a little to each ledger, which is noted in the book.  Gives
 * NULL, or what is wrong; it lives until the next call. */
const char *check_bookie(struct book *b, uint16_t port);
/* Starts one in `dir` in a process of its own, and asks it. */
const char *check_state(const struct check_conf *conf, const struct book *b, const char *dir);

#endif
