/* ledgers.h - a loop's shard of ledgers: key, fence, LAC, last entry.
 *
 * They come from the index of their device (device.h) when they are asked for.
 *
 *   OPEN --fence--> FENCING --journal record durable--> FENCED
 *     ^                |
 *     +---not durable--+      (it refuses adds all the same: row.fenced)
 *
 * A ledger that was touched is kept until its row is durable in the index and nobody waits for
 * it; the least recently used then make room for others.
 *
 * Threads: the shard's loop.  ledgers_freeze() and _thaw() too.
 * Limits:  LEDGERS_KEPT a loop, four times that while they are all in use: then ERR_BUSY.
 */
#ifndef BOOKIE_LEDGERS_H
#define BOOKIE_LEDGERS_H

#include "bookie/device.h"
#include "common/list.h"

enum { LEDGERS_KEPT = 32768 };

enum fence_state { LEDGER_OPEN, LEDGER_FENCING, LEDGER_FENCED };

struct ledger {
    struct device *device;        /* where it lives */
    struct ledger_row row;        /* .fenced: adds are refused, durable or not */
    bool is_vouched;              /* it was open when the metadata was asked: vouch.c */
    enum fence_state fence;       /* how durable that is */
    uint64_t changed_in;          /* generation of the last change of the row */
    struct list_node waiting;     /* for the fence */
    struct list_node reading;     /* for the disk */
    struct list_node watching;    /* for a higher LAC */
    uint8_t reading_in;           /* a bit a lane of reads.h: one read at a time in each */
    bool is_retired;              /* it is going: no ledger to who reads, fenced to who adds */
    struct list_node dirty, used; /* private, as the next */
    struct ledger *next;
};

/* Rows of one device that changed. */
struct ledger_changes {
    struct list_node dirty;
    uint64_t generation; /* of changes; a freeze begins the next */
    uint64_t durable;    /* rows changed up to this generation are in the index */
};

struct ledgers {
    struct device *devices;
    unsigned n_devices;
    struct ledger **buckets;
    uint32_t mask, n;
    uint64_t seed;
    struct list_node used;
    struct ledger_changes changes[DEVICES_MAX];
};

void ledgers_init(struct ledgers *t, struct device *devices, unsigned n); /* of all of them */
void ledgers_end(struct ledgers *t);
/* ERR_NO_LEDGER, ERR_IO, ERR_BUSY.  Borrowed for this round, or while someone waits in it. */
MUST_CHECK enum err ledgers_find(struct ledgers *t, int64_t id, struct ledger **out);
/* The same, and one that is not known is made, with this key, on a device that device_for() says.
 * ERR_UNAUTHORIZED: another key; ERR_FENCED: it was deleted, and is not made again. */
MUST_CHECK enum err ledgers_claim(struct ledgers *t, int64_t id, const uint8_t key[MASTER_KEY_SIZE],
                                  struct ledger **out);
void ledger_changed(struct ledgers *t, struct ledger *l); /* its row goes with the next freeze */

/* Calls each for every row of this device changed since the last freeze; thaw when they are
 * durable. */
void ledgers_freeze(struct ledgers *t, const struct device *d,
                    void (*each)(void *ctx, const struct ledger_row *row), void *ctx);
void ledgers_thaw(struct ledgers *t, const struct device *d);

/* From now on nobody finds it.  True when nothing of it is on its way to the index and nobody waits
 * in it: then the index may forget it; false: ask again later. */
bool ledgers_retire(struct ledgers *t, int64_t id);
/* The index has forgotten it, or it stays after all: it is what the index says. */
void ledgers_unretire(struct ledgers *t, int64_t id);

#endif
