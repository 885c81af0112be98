/* shaky_meta.h - a metadata store in front of another, which fails when a test asks for it.
 *
 * Threads: calls from any; the faults are set while no call is under way.
 */
#ifndef TESTS_LIB_SHAKY_META_H
#define TESTS_LIB_SHAKY_META_H

#include "metadata/metadata.h"
#include "tests/lib/fault.h"

enum { SHAKY_WATCHES_MAX = 32 };

struct shaky_meta {
    struct metadata base;
    struct metadata *inner;
    struct fault away; /* calls that are answered NOT_READY, and not done */
    struct fault
        forgotten;       /* puts and transactions that are answered UNKNOWN_STATE, and not done */
    struct fault unsure; /* those that are answered UNKNOWN_STATE, and done */
    struct meta_watch *watches[SHAKY_WATCHES_MAX];
    unsigned n_watches;
    uint64_t ahead; /* in every answer: how often it was put back */
    struct shaky_kept *kept;
    size_t n_kept;
};

/* Every watch is told UNSURE, as when the store went back; on the loop that they are all on. */
void shaky_meta_doubt(struct shaky_meta *s);
/* What the store says now; and it says that again, and no more.  Not from a loop's thread, while no
 * call is under way; the watches are not told. */
void shaky_meta_keep(struct shaky_meta *s);
void shaky_meta_put_back(struct shaky_meta *s);
struct shaky_meta *shaky_meta_new(struct metadata *inner); /* takes; end with meta_close() */

#endif
