/* checkup.h - a ledger of which this bookie may have lost entries, made whole by the others.
 *
 *   metadata: gone          --> OK: nobody will ask for it
 *             not closed    --> fence, find the end, close (the others decide: we are in limbo)
 *             closed        --> compare all replicas of all entries; what one lacks is copied in
 *   OK: every replica that the metadata names is there, ours too
 *
 * Threads: the loop's.  done() never comes in the caller's stack.
 * Limits:  one ledger at a time; `window` entries and rate bytes a second.
 */
#ifndef BOOKIE_CHECKUP_H
#define BOOKIE_CHECKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/loop.h"

struct checkup;
struct metadata;

struct checkup_conf {
    struct loop *loop;
    struct metadata *meta;
    bool distinct_hosts;
    unsigned window;
    uint64_t bytes_per_s; /* 0: no limit */
    void (*done)(void *ctx, enum err err, uint64_t entries_copied);
    void *ctx;
};

struct checkup *checkup_new(const struct checkup_conf *conf); /* gives; on the loop */
bool checkup_ready(const struct checkup *c);                  /* it knows who is alive */
void checkup_begin(struct checkup *c, int64_t ledger);        /* conf.done() answers */
void checkup_drop(struct checkup **c); /* no further done(); the metadata outlives what is asked */

#endif
