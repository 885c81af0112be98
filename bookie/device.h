/* device.h - one ledger directory: entry logs, their index, and how far each journal is in them.
 *
 *   <dir>/0000000000000003.log ...   entry_log.h
 *   <index dir>                      entry_index.h
 *   <dir>/mark                       mark_file.h: a mark for every journal
 *
 * A ledger lives on one device for its whole life: on the one whose index has its row.  One that
 * no index knows goes to a device that takes new ledgers, by its id; so a directory may be added,
 * and a full one gets no more.
 *
 * The state is what others have found out about it; it only decides where new ledgers go.
 *
 * Threads: conf, log, index: fixed from device_open() on.  marks: its checkpoint writes them, under
 *          storage->marks_lock as soon as there are several threads.  state and bytes: any.
 */
#ifndef BOOKIE_DEVICE_H
#define BOOKIE_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bookie/entry_index.h"
#include "bookie/entry_log.h"
#include "bookie/mark_file.h"

enum { DEVICES_MAX = 16 };

enum device_state {
    DEVICE_WRITABLE, /* takes new ledgers */
    DEVICE_FULL,     /* keeps those that it has; gets new ones only when no other takes them */
    DEVICE_FAILED    /* gets none */
};

struct checkpoint;

struct device_conf {
    struct disk *disk;
    const char *dir;
    const char *index_dir; /* RocksDB, always on the real disk */
    uint64_t log_limit;
    const char *const *journals; /* their directories, by which the marks name them */
    unsigned n_journals;
};

struct device {
    unsigned number; /* in storage->devices[] */
    struct device_conf conf;
    struct entry_log *log;
    struct entry_index *index;
    struct checkpoint *checkpoint; /* its way from memory to the device */
    _Atomic enum device_state state;
    _Atomic int64_t
        reserve_left;     /* FULL: bytes that recovery may still write, until the next look */
    atomic_bool is_tight; /* above diskUsageWarnThreshold: space should be got back */
    /* Bytes of entries in memory that will go here: in active halves, in frozen ones. */
    atomic_size_t active_bytes, frozen_bytes;
    struct marks marks; /* what is stored */
    bool is_new;        /* no marks and nothing else: nothing is to be replayed for its sake */
};

/* Makes what is not there; reads the marks.  The strings outlive it; device_close() it also when
 * it fails.  ERR_CHECKSUM: marks or index are damaged, or the index has lost something. */
MUST_CHECK enum err device_open(struct device *d, unsigned number, const struct device_conf *conf);
void device_close(struct device *d);
MUST_CHECK enum err device_store_marks(const struct device *d, const struct marks *m);
void device_set_state(struct device *d, enum device_state state); /* any thread */

/* Where a ledger that no index knows goes.  ERR_READ_ONLY: all have failed. */
MUST_CHECK enum err device_for(struct device *devices, unsigned n, int64_t ledger,
                               struct device **out);
/* Whose index has its row?  ERR_NO_LEDGER: no one's; ERR_IO: that is not known. */
MUST_CHECK enum err device_of(struct device *devices, unsigned n, int64_t ledger,
                              struct device **out, struct ledger_row *row);

/* A number from a ledger's id, spread over all 64 bits: journals are chosen by the lower half,
 * devices by the upper one. */
static inline uint64_t ledger_hash(int64_t ledger)
{
    uint64_t h = (uint64_t)ledger;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

#endif
