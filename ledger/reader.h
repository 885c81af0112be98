/* reader.h - confirmed entries of a ledger, in order, from whichever replica has them; and how far
 * an open ledger is confirmed.  Pure state machines.
 *
 *   first..last --> a window of reads in flight --> found  --> deliver, in order
 *                                  ^------ next replica <-- any error, a wrong digest
 *                                  ^- one more besides <-- slow
 *                                  ^------- once more <---- an answer did not get so far
 *
 * It stays with the replica that answers: one that failed or was slow is asked last from then on,
 * also by the next reader that begins with this one's `avoid`.
 *
 * Where each replica has every entry (E = Qw), entries that follow each other are asked for at
 * once, as many as reach() allows and as fit in READER_BATCH_BYTES.  Such an answer may end before
 * the last of them: of the others nothing was said.  Who turns out not to know such requests is
 * asked for one at a time.
 *
 * NO_ENTRY is reported only when every replica said so: one that failed may have it.
 *
 * Memory:  an item is the owner's word for an entry that was read: taken by reader_found(), given
 *          on by deliver() or back by drop().
 * Threads: one at a time.  An effect must not call back into the reader.
 * Limits:  READER_WINDOW entries in flight, about READER_BYTES of them.
 */
#ifndef LEDGER_READER_H
#define LEDGER_READER_H

#include <stddef.h>

#include "common/err.h"
#include "ledger/quorum.h"

/* An answer of READER_BATCH_BYTES fits in the room that a frame begins with (cutter.h). */
enum { READER_WINDOW = 256, READER_BYTES = 8 * 1024 * 1024, READER_BATCH_BYTES = 256 * 1024 };

/* n entries from `first` on. */
struct reader_run {
    entry_id first;
    unsigned n;
};

struct reader_effects {
    /* One: found or failed answers.  Several: answered does, which has max_bytes at most. */
    void (*read)(void *ctx, unsigned slot, struct reader_run run, size_t max_bytes);
    /* How many from e on may be asked of that slot at once: 1 or more. */
    unsigned (*reach)(void *ctx, unsigned slot, entry_id e);
    void (*deliver)(void *ctx, entry_id e, void *item);
    void (*drop)(void *ctx, void *item);
    void (*done)(void *ctx, enum err err); /* the last effect */
};

struct reader_entry {
    enum { READ_AWAITED, READ_FOUND, READ_FAILED } state;
    uint32_t asked;   /* slots of the write set that were asked */
    uint32_t awaited; /* those that have not answered */
    bool due;         /* the next of them is to be asked */
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
    size_t typical;    /* size of an entry, for the window; 0: not known */
    uint32_t prefer;   /* a number that spreads ledgers over replicas */
    uint32_t avoid;    /* slots that failed or were slow: asked last */
    uint32_t one_each; /* slots that do not know how to be asked for several at once */
    unsigned due;      /* entries that are */
    entry_id due_from; /* none before */
    struct reader_entry ring[READER_WINDOW];
    const struct reader_effects *effects;
    void *ctx;
};

struct reader_conf {
    struct quorum quorum;
    entry_id first, last;
    size_t max_bytes; /* stops after the entry that reaches it; 0: no limit */
    uint32_t prefer, avoid;
    size_t typical;
};

void reader_start(struct entry_reader *r, const struct reader_conf *conf,
                  const struct reader_effects *effects, void *ctx);
void reader_found(struct entry_reader *r, unsigned slot, entry_id e, size_t size,
                  void *item); /* takes item */
void reader_failed(struct entry_reader *r, unsigned slot, entry_id e, enum err err);

/* What came for an entry of several: an item, or what is wrong with it. */
struct reader_item {
    void *item; /* NULL: */
    enum err err;
    size_t size;
};
/* The answer to a read of several: of the first `got` of them.  None: err is why, of the first one;
 * UNSUPPORTED_VERSION: nobody can ask that slot for several at once.  Takes the items. */
void reader_answered(struct entry_reader *r, unsigned slot, struct reader_run run,
                     const struct reader_item *items, unsigned got, enum err err);
/* It takes long: how many of them another one is asked for as well. */
unsigned reader_slow(struct entry_reader *r, unsigned slot, struct reader_run run);
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
