/* wait.h - a call that is waited for: start-up code and tests.
 *
 *   struct meta_wait w;
 *   meta_wait_begin(&w);
 *   meta_get(m, key, &w.call);
 *   enum err e = meta_wait_end(&w);   then w.reply, w.value
 *
 * Memory:  gives w.value; the reply's items are gone unless look() has copied them.
 * Threads: not a loop's.
 */
#ifndef METADATA_WAIT_H
#define METADATA_WAIT_H

#include "metadata/metadata.h"

struct meta_wait {
    struct meta_call call;
    void (*look)(struct meta_wait *w, const struct meta_reply *r); /* at the items; NULL: none */
    struct meta_reply reply;
    struct slice value;
};

void meta_wait_begin(struct meta_wait *w);
MUST_CHECK enum err meta_wait_end(struct meta_wait *w);

#endif
