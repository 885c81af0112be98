/* recording.h - what layer.so writes down: every change of the files below one directory, in order.
 *
 *   process --libc call--> layer.so --> the real file
 *                              \--> recording: rec, path, other path, bytes;  rec, ...
 *
 * A file or directory has a number from its creation on, so that bytes find it whatever it is
 * called by then.  A sync has two records: what it covers was written before the first, and is on
 * the disk from the second on.  Notes are the program's own: what it asked, what it was answered.
 *
 * Threads: any; the records of all processes that share the layer are in one order.
 */
#ifndef TESTS_CRASHPOINTS_RECORDING_H
#define TESTS_CRASHPOINTS_RECORDING_H

#include <stdint.h>

enum { REC_MAGIC = 0x50435243, REC_PATH_MAX = 512 };

enum rec_op {
    REC_CREATE = 1,  /* object, path */
    REC_MKDIR,       /* object, path */
    REC_WRITE,       /* object, at, len: bytes follow unless REC_ZEROS */
    REC_TRUNCATE,    /* object, len: the new size */
    REC_ALLOCATE,    /* object, len: at least so long from now on */
    REC_RENAME,      /* object, path, path2 */
    REC_UNLINK,      /* object, path */
    REC_RMDIR,       /* object, path */
    REC_LINK,        /* object, path, path2 */
    REC_SYNC_BEGIN,  /* object; len: the record of its beginning, in the END */
    REC_SYNC_END,    /* */
    REC_SYNC_FAILED, /* object: what was not synced before may be gone for good */
    REC_FAILED,      /* path, at: which rec_op, len: errno; it did nothing */
    REC_NOTE,        /* at: its kind, payload: the program's */
    REC_UNSUPPORTED, /* path: what is done to a file behind our back; the recording is worthless */
};

enum { REC_ZEROS = 1, REC_DIR = 2 /* of a sync */ };

struct rec {
    uint32_t magic;
    uint8_t op, flags;
    uint16_t path_len, path2_len; /* paths are relative to the directory, without a NUL */
    uint16_t unused;
    uint32_t payload;
    uint32_t object;
    uint32_t unused2;
    uint64_t at, len;
};

/* What the layer offers to the program above it, which must do without when it is not there. */
void crashpoints_note(uint64_t kind, const void *bytes, uint32_t len) __attribute__((weak));
/* The process ends at once, with everything it has done to files recorded. */
void crashpoints_die(int code) __attribute__((weak));

#endif
