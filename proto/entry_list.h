/* entry_list.h - which entries of a ledger a bookie has, as version 3 tells it.
 *
 *   i32 version 0 | i32 groups | zeros up to 64 bytes | groups
 *   group: i64 first start | i64 last start | i32 size | i32 period
 *
 * A group is runs of `size` consecutive ids that start at first, first + period, ... last: what
 * striping leaves.  Ids are added in ascending order; it is written when the last was added.
 *
 * Limits:  ENTRY_LIST_MAX bytes, then ERR_TOO_BIG.
 */
#ifndef PROTO_ENTRY_LIST_H
#define PROTO_ENTRY_LIST_H

#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { ENTRY_LIST_MAX = 4 * 1024 * 1024, ENTRY_LIST_HEADER = 64, ENTRY_LIST_GROUP = 24 };

struct entry_run {
    int64_t first, last;
    int64_t size;
    int64_t period; /* 0: one run */
};

struct entry_list {
    struct slab *bytes;
    uint32_t n;             /* groups written */
    int64_t first, last;    /* of the run that grows; last < first: none */
    struct entry_run group; /* of runs before it; size 0: none */
    enum err err;
};

void entry_list_add(struct entry_list *l, int64_t entry);
/* Gives; the list is empty again.  ERR_TOO_BIG. */
MUST_CHECK enum err entry_list_end(struct entry_list *l, struct slice *out);
void entry_list_drop(struct entry_list *l); /* instead of an end */
#define ENTRY_LIST_EMPTY ((struct entry_list){.last = -1})

#endif
