/* rebuild_inside.h - what the files of index_rebuild.h share. */
#ifndef BOOKIE_REBUILD_INSIDE_H
#define BOOKIE_REBUILD_INSIDE_H

#include "bookie/entry_index.h"
#include "bookie/index_rebuild.h"
#include "common/table.h"
#include "proto/bookkeeper.pb-c.h"

/* A record of an entry log, until it goes to the index with others. */
struct found_place {
    int64_t ledger, entry, lac;
    struct entry_place at;
};

/* What the journals say of a ledger. */
struct journal_fact {
    int64_t ledger;
    uint8_t key[MASTER_KEY_SIZE];
    int64_t first_add; /* the lowest entry that was added; INT64_MAX: none */
    uint8_t explicit_len;
    uint8_t explicit_lac[EXPLICIT_LAC_MAX];
    UT_hash_handle hh;
};

/* A ledger that lacks bytes. */
struct doubt {
    int64_t ledger;
    UT_hash_handle hh;
};

struct rebuild {
    const struct rebuild_conf *conf;
    struct rebuild_report *report;
    struct entry_index *index[DEVICES_MAX]; /* the new one; the old one where it is not lost */
    unsigned first_lost;                    /* where ledgers go of which no index knows */
    struct found_place *places;
    size_t n_places;
    unsigned n_rows;            /* in the batch of index[first_lost] or another */
    struct journal_fact *facts; /* by ledger, as the next */
    struct doubt *doubts;
    bool all_in_doubt;
    int64_t newest; /* the highest ledger that the metadata store knows; -1: none, or not asked */
    uint64_t told_at;
};

/* rebuild_logs.c: blocks, and rows that are fenced and in limbo. */
MUST_CHECK enum err rebuild_from_logs(struct rebuild *r, unsigned dir);
/* rebuild_homes.c: after all logs; a ledger is in one directory. */
MUST_CHECK enum err rebuild_settle_homes(struct rebuild *r);
/* rebuild_facts.c: what else is known of those rows, and the rows that are missing. */
MUST_CHECK enum err rebuild_from_journals(struct rebuild *r);
MUST_CHECK enum err rebuild_from_metadata(struct rebuild *r);
/* What the old index still says of ledgers that were deleted here: they stay deleted. */
MUST_CHECK enum err rebuild_keep_tombs(struct rebuild *r, unsigned dir);

/* rebuild_holes.c: *found: entries are missing here that the metadata says this bookie has. */
MUST_CHECK enum err rebuild_find_holes(struct entry_index *ix, const struct ledger_row *row,
                                       const Bookkeeper__LedgerMetadataFormat *m,
                                       const char *bookie, int64_t journaled, bool *found);

struct ledger_row rebuild_new_row(int64_t ledger); /* all that is known of it at first */

#endif
