/* states.h - all the crashes of a recording, each built and checked.
 *
 * After each record the disk may hold several things (disk_model.h).  Only what differs is
 * tried: what was not synced is lost in the same way until the next sync, and a process that
 * dies leaves the same files until the next change.
 */
#ifndef TESTS_CRASHPOINTS_STATES_H
#define TESTS_CRASHPOINTS_STATES_H

#include "tests/crashpoints/check.h"
#include "tests/crashpoints/disk_model.h"

struct states_conf {
    const struct recording *recording;
    struct check_conf check;
    const char *dir; /* for what is built; a folder a worker */
    unsigned jobs;
    unsigned some;    /* KEEP_SOME so often at each sync and name */
    unsigned again;   /* every so many is started twice; 0: none */
    unsigned seconds; /* then those that were not yet tried are left; 0: never */
    unsigned stop;    /* after so many that were wrong; 0: never */
    const char
        *focus;    /* NULL; "none": only KEEP_NONE; "names": only KEEP_NAMES after one of ours */
    uint64_t from; /* records before it are left out; NEVER: only the end */
    uint64_t seed;
};

/* How many were wrong; each has been told. */
unsigned states_check(const struct states_conf *conf);
/* The book as it is after a record. */
void states_book(const struct recording *r, uint64_t after, struct book *out);
/* Replay begins where it began, or later: what the marks of the recording say.  How many were
 * wrong. */
unsigned states_check_marks(const struct recording *r);

#endif
