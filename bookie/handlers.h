/* handlers.h - connections of clients, and what becomes of their requests.
 *
 *   frame -> request -> (post) ledger's loop: add.c, fence.c, lookup.c -> (post) answer
 *
 * Threads: open and close from no loop's thread; accept from the loop given; the rest says.
 * Limits:  adds wait in the journal's queue, then parked for the write cache, then they are
 *          refused; reads of the disk up to max_pending_reads a loop, few when memory is low;
 *          no adds when it is short.  What recovery needs goes on.
 */
#ifndef BOOKIE_HANDLERS_H
#define BOOKIE_HANDLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "bookie/metrics.h"
#include "bookie/reads.h"
#include "bookie/storage.h"
#include "common/loop.h"

struct handlers;
struct memory_guard;
struct metadata;
struct tls;

struct handlers_conf {
    struct storage *storage;
    struct loops *loops;
    struct bookie_metrics *metrics;
    const struct memory_guard *memory; /* NULL: there is plenty */
    struct reads *reads;
    size_t frame_max;
    uint64_t park_bytes;    /* adds that may wait for room in the write cache, a loop */
    uint64_t throttle_us;   /* ... and for how long */
    uint64_t slow_us;       /* a wait longer than this is logged; 0: none is */
    unsigned pending_reads; /* a loop; as many long polls */
    uint64_t batch_max;     /* bytes of one batch read's answer */
    uint64_t batches_max;   /* bytes that the unfinished ones of a loop hold; the rest is cut off */
    enum err (*space)(void *ctx, uint64_t *free_bytes, uint64_t *total); /* any loop */
    void *space_ctx;
    struct tls *tls; /* for clients that ask for it; NULL: none */
    int64_t newest;  /* integrity_file.h; for ledgers up to it the next two */
    struct metadata *meta;
    const char *bookie_id;
};

struct handlers *handlers_open(const struct handlers_conf *conf); /* gives */
void handlers_accept(struct handlers *h, int fd);                 /* any loop; takes fd */
void handlers_room(struct handlers *h, unsigned shard);           /* on the shard's loop */
void handlers_group_done(struct handlers *h, struct loop *home);  /* on home */
/* reserve: while not writable, recovery and high-priority adds are still taken. */
void handlers_set_writable(struct handlers *h, bool writable, bool reserve); /* any thread */
bool handlers_writable(const struct handlers *h);
void handlers_stop(struct handlers *h);   /* closes every connection; none is taken any more */
void handlers_close(struct handlers **h); /* after storage_stop() and reads_close() */

#endif
