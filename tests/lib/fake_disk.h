/* fake_disk.h - a disk in memory that loses whatever a real one may lose.
 *
 *   write -> what is seen --sync--> what survives a crash       (bytes of a file)
 *   open, rename, remove -> seen --sync_dir--> survives         (names in a directory)
 *
 * fake_disk_crash() forgets all that was not synced; with fake_disk_tear() each unsynced
 * sector of 512 bytes survives or not by the seed, on its own.  A file that was made and
 * synced, but whose directory was not, is gone, as POSIX allows.
 *
 * Each operation has a struct fault of its own, and so has "any": loop over `after` from 0
 * until a run passes untouched, and every error path has been walked.
 *
 * Memory:  files stay in memory until fake_disk_drop().  Files left open over a crash must
 *          still be closed; they read as ERR_IO from then on.
 * Threads: any; one lock.
 */
#ifndef TESTS_LIB_FAKE_DISK_H
#define TESTS_LIB_FAKE_DISK_H

#include <stdint.h>

#include "common/disk.h"
#include "tests/lib/fault.h"

enum fake_op {
    FAKE_OPEN,
    FAKE_WRITE, /* a failing one writes half of its bytes first */
    FAKE_READ,
    FAKE_SIZE,
    FAKE_TRUNCATE,
    FAKE_SYNC, /* a failing one keeps nothing, and what was unsynced never will be */
    FAKE_RENAME,
    FAKE_REMOVE,
    FAKE_MKDIR,
    FAKE_SYNC_DIR,
    FAKE_LIST,
    FAKE_SPACE,
    FAKE_ANY, /* each call of any operation counts */
    FAKE_OPS
};

struct fake_disk;

struct fake_disk *fake_disk_new(void); /* gives */
void fake_disk_drop(struct fake_disk **f);
struct disk *fake_disk_of(struct fake_disk *f); /* borrows: what the code under test gets */

void fake_disk_fail(struct fake_disk *f, enum fake_op op, unsigned after, unsigned times);
void fake_disk_fail_writes_as(struct fake_disk *f, enum err err); /* else ERR_IO */
unsigned fake_disk_calls(struct fake_disk *f, enum fake_op op);   /* so far */
void fake_disk_tear(struct fake_disk *f, uint64_t seed);          /* at the next crash; once */
void fake_disk_crash(struct fake_disk *f);
void fake_disk_budget(struct fake_disk *f, uint64_t bytes); /* all files; past it ERR_NO_SPACE */
void fake_disk_slow(struct fake_disk *f, unsigned sync_us); /* each sync of a file takes that */
void fake_disk_refuse_direct(struct fake_disk *f);          /* DISK_DIRECT: ERR_NOT_ALLOWED */
void fake_disk_flip(struct fake_disk *f, const char *path, uint64_t at); /* a bit has rotted */

#endif
