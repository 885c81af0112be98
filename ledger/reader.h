/* reader.h - confirmed entries of a ledger, in order, from whichever replica has them; and how far
 * an open ledger is confirmed.  Pure state machines.
 *
 *   first..last --> a window of reads in flight --> found  --> deliver, in order
 *                                  ^------ next replica <-- any error, a wrong digest
 *                                  ^- one more besides <-- slow
 *
 * It stays with the replica that answers: one that failed or was slow is asked last from then on,
 * also by the next reader that begins with this one's `avoid`.
 *
 * NO_ENTRY is reported only when every replica said so: one that failed may have it.
 *
 * Memory:  an item is the owner's word for an entry that was read: taken by reader_found(), given
 *          on by deliver() or back by drop().
 * Threads: one at a time.  An effect must not call back into the reader.
 * Limits:  READER_WINDOW reads in flight, about READER_BYTES of them.
 */
#ifndef LEDGER_READER_H
#define LEDGER_READER_H

#include <stddef.h>

#include "common/err.h"
#include "ledger/quorum.h"

enum { READER_WINDOW = 256, READER_BYTES = 8 * 1024 * 1024 };

struct reader_effects {
    void (*read)(void *ctx, unsigned slot, entry_id e); /* found or failed answers */
    void (*deliver)(void *ctx, entry_id e, void *item);
    void (*drop)(void *ctx, void *item);
    void (*done)(void *ctx, enum err err); /* the last effect */
};

struct reader_entry {
    enum { READ_AWAITED, READ_FOUND, READ_FAILED } state;
    uint32_t asked;   /* slots of the write set that were asked */
    uint32_t awaited; /* those that have not answered */
    enum err err;     /* NO_ENTRY as long as nothing else was said */
    void *item;       /* read, and waiting for those before it */
    size_t size;
};

struct entry_reader {
    enum { READER_READING, READER_DONE } state;
    struct quorum quorum;
    entry_id next, last; /* to deliver */
    entry_id asked;      /* read up to here */
    size_t max_bytes, bytes;
    size_t typical;  /* size of an entry, for the window */
    uint32_t prefer; /* a number that spreads ledgers over replicas */
    uint32_t avoid;  /* slots that failed or were slow: asked last */
    struct reader_entry ring[READER_WINDOW];
    const struct reader_effects *effects;
    void *ctx;
};

void reader_start(struct entry_reader *r, struct quorum q, entry_id first, entry_id last,
                  size_t max_bytes, uint32_t prefer, uint32_t avoid,
                  const struct reader_effects *effects, void *ctx);
void reader_found(struct entry_reader *r, unsigned slot, entry_id e, size_t size,
                  void *item); /* takes item */
void reader_failed(struct entry_reader *r, unsigned slot, entry_id e, enum err err);
/* It takes long: true if another one is asked as well. */
bool reader_slow(struct entry_reader *r, unsigned slot, entry_id e);
void reader_stop(struct entry_reader *r); /* drops what it holds; no effect but drop() */

/* The last confirmed entry of a ledger that may still be written: the highest that its bookies
 * know, once so many have answered that no confirmed entry can have been missed, or all have. */
struct lac_poll {
    struct quorum quorum;
    uint32_t answered, good;
    entry_id lac;
    enum err err;
};
void lac_poll_start(struct lac_poll *p, struct quorum q, entry_id floor);
/* True once it is decided: p->lac, or p->err. */
bool lac_poll_answer(struct lac_poll *p, unsigned slot, enum err err, entry_id lac);

#endif
