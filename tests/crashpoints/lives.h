/* lives.h - a bookie's lives under work, each a process, while the layer records.
 *
 *   start, bursts of requests and their answers, stop or die;  start, ...
 *
 * Adds to ledgers with and without striping gaps, out of order and again; fences, explicit LACs,
 * adds that are answered early and forced, reads of what was acknowledged.  Each ledger is in the
 * metadata before it is here, and may go from it again.
 */
#ifndef TESTS_CRASHPOINTS_LIVES_H
#define TESTS_CRASHPOINTS_LIVES_H

#include <stdbool.h>
#include <stdint.h>

struct recording;

struct lives_conf {
    const char *disk, *metadata; /* directories; the first is the one that is recorded */
    uint64_t seed;
    unsigned lives, bursts;
    bool has_garbage; /* ledgers are deleted, too */
    bool is_hurt;     /* something will fail: a life may end, and requests may be refused */
    const char *const *sets;
    const struct recording *before; /* they go on after a crash of this one; NULL: a new bookie */
    uint64_t after;                 /* the crash */
};

/* 0; or 1 and a line that says what was wrong. */
int lives_run(const struct lives_conf *conf);

#endif
