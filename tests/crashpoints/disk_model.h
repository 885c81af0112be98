/* disk_model.h - what a disk may hold after a crash, from a recording of what was done to it.
 *
 *   recording --crash after record k--> for each change until k:
 *       synced by then   it is there
 *       else             there, not there, or a part of it: as the crash says
 *
 * Changes are bytes of a file, which the file's sync makes durable, and names in a directory,
 * which the directory's sync does.  A name that was not synced may be missing although its file
 * was, and the other way round; a rename is one change.  Sectors of 512 bytes are whole or not
 * there.  A change that was under way when a sync failed is never known to be durable.
 */
#ifndef TESTS_CRASHPOINTS_DISK_MODEL_H
#define TESTS_CRASHPOINTS_DISK_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/crashpoints/recording.h"

#define NEVER UINT64_MAX

struct change {
    enum rec_op op;
    uint8_t flags;
    uint32_t object;
    uint64_t at, len;
    char *path, *path2;     /* NULL: none */
    const uint8_t *payload; /* NULL: zeros, or none */
    uint32_t payload_len;
    uint64_t durable; /* from this record on; NEVER */
};

struct recording {
    uint8_t *bytes;
    struct change *at;
    uint64_t n;
    uint32_t objects;
    const char *fault; /* why it cannot be believed; NULL */
};

/* What becomes of changes that were not synced. */
enum keep {
    KEEP_NONE,
    KEEP_ALL,   /* the process has died, and nothing else */
    KEEP_TORN,  /* all but the last write, of which some sectors are there */
    KEEP_NAMES, /* no bytes */
    KEEP_BYTES, /* no names */
    KEEP_SOME,  /* each file and each name as the seed says */
    KEEPS
};
extern const char *const keep_names[KEEPS];

struct crash {
    uint64_t after; /* records 0..after have happened */
    enum keep keep;
    uint64_t seed;
};

struct recording *recording_load(const char *path); /* gives; ends the program if it cannot */
/* Is it a change of files, and is it a change of names? */
bool change_is(const struct change *c);
bool change_is_name(const struct change *c);

/* Makes it in the empty directory `dir`; gives a sum over names and bytes.  NULL: the sum only. */
uint64_t disk_build(const struct recording *r, const struct crash *c, const char *dir);

#endif
