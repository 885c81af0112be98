/* layer.h - what the files of layer.so share; nothing of it is seen by the program above it.
 *
 *   layer_lock();  why = layer_fails(...);  the real call;  layer_record(...);  layer_unlock();
 *
 * Threads: any; what is recorded is recorded under the lock, together with the call itself.
 */
#ifndef TESTS_CRASHPOINTS_LAYER_H
#define TESTS_CRASHPOINTS_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/crashpoints/recording.h"

#pragma GCC visibility push(hidden)

/* Which number an inode has; 0: none. */
struct known {
    uint64_t inode;
    uint32_t object;
};

void layer_lock(void);
void layer_unlock(void);
void layer_record(enum rec_op op, uint32_t object, const char *path, const char *path2, uint64_t at,
                  uint64_t len);
/* Is it this operation's turn to fail?  Then why; 0: it is not. */
int layer_fails(enum rec_op op, const char *path);
int layer_failed(int why); /* -1, with errno */
/* Below the root?  Then its path from there; the root itself is "". */
bool layer_is_ours(int dir, const char *path, char rel[REC_PATH_MAX]);
uint32_t layer_object_at(const char *path);
uint32_t layer_name_object(uint64_t inode); /* a new number */
/* What is at a path goes with its last name: its inode may be another file's soon.  NULL: not so.
 */
struct known *layer_leaving(const char *path);

#pragma GCC visibility pop

#endif
