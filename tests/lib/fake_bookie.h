/* fake_bookie.h - a bookie of a few lines behind a real socket: stores, fences, and does wrong
 * what a test asks for.
 *
 * Threads: made and dropped with loop_call() on its loop; the knobs are set there too.
 */
#ifndef TESTS_LIB_FAKE_BOOKIE_H
#define TESTS_LIB_FAKE_BOOKIE_H

#include "common/err.h"
#include "common/loop.h"
#include "proto/bookie_frame.h"
#include "tests/lib/fault.h"

struct fake_bookie;

struct fake_bookie_knobs {
    struct fault on_add;  /* adds that fail with add_status */
    struct fault on_read; /* reads that fail with read_status */
    int32_t add_status, read_status;
    uint64_t add_us;     /* an add is answered so much later; 0: at once */
    uint64_t free_space; /* it says so; 0: it fails to */
    bool mute;           /* takes everything, answers nothing but AUTH */
    bool rotten;         /* every entry it gives out has a flipped bit */
    enum { BATCHES_ANSWERED, BATCHES_REFUSED, BATCHES_CLOSE } batches;
    unsigned batch_most;  /* entries in an answer; 0: as many as are asked for */
    unsigned batch_reads; /* it has been asked for, and for so many entries one by one */
    unsigned reads;
};

struct fake_bookie *fake_bookie_new(struct loop *l); /* gives; listens on a free port */
struct fake_bookie_knobs *fake_bookie_knobs(struct fake_bookie *b);
const char *fake_bookie_id(const struct fake_bookie *b); /* host:port */
void fake_bookie_cut(struct fake_bookie *b);             /* closes its connections */
void fake_bookie_deaf(struct fake_bookie *b);            /* and takes no new ones, for good */
void fake_bookie_drop(struct fake_bookie **b);

bool fake_bookie_has(const struct fake_bookie *b, int64_t ledger, int64_t entry);
bool fake_bookie_is_fenced(const struct fake_bookie *b, int64_t ledger);
/* Puts an entry there as a writer with the empty password would have. */
void fake_bookie_put(struct fake_bookie *b, const struct digest *d, const struct entry_header *h,
                     const char *payload);
void fake_bookie_forget(struct fake_bookie *b, int64_t ledger, int64_t entry);

#endif
