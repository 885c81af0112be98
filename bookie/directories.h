/* directories.h - where a bookie keeps things: the lists of its configuration, made and locked.
 *
 *   journalDirectories=/j1,/j2        -> /j1/current ...            a journal each
 *   ledgerDirectories=/l1,/l2         -> /l1/current ...            a device each
 *   indexDirectories= (or one for     -> /l1/current/index ...      where it is not named it
 *     each ledger directory)                                        lies with the ledgers
 *
 * One directory may serve as several of these; it is made and locked once.
 *
 * Memory:  all strings are its own until directories_close().
 */
#ifndef BOOKIE_DIRECTORIES_H
#define BOOKIE_DIRECTORIES_H

#include "bookie/bookie.h"
#include "bookie/device.h"

enum { DIRECTORY_LIST_MAX = 16, DIRECTORIES_MAX = 3 * DIRECTORY_LIST_MAX };
_Static_assert((int)DIRECTORY_LIST_MAX == (int)JOURNALS_MAX, "each may be a journal");
_Static_assert((int)DIRECTORY_LIST_MAX == (int)DEVICES_MAX, "each may be a device");

/* As configured. */
struct directory_list {
    char *at[DIRECTORY_LIST_MAX];
    unsigned n;
};

struct directories {
    struct directory_list journals, ledgers, indexes; /* indexes: as many as ledgers */
    unsigned n;                                       /* different ones */
    char *roots[DIRECTORIES_MAX], *currents[DIRECTORIES_MAX];
    int locks[DIRECTORIES_MAX];
    const char *journal_dirs[JOURNALS_MAX]; /* their `current` */
    const char *ledger_dirs[DEVICES_MAX];
    char *index_dirs[DEVICES_MAX];
};

/* ERR_BAD_CONFIG; ERR_EXISTS: another process uses one; each with a log event.  To be closed also
 * then. */
MUST_CHECK enum err directories_open(struct directories *d, const struct bookie_conf *conf,
                                     struct disk *disk);
/* Only their names: nothing is made, locked or looked at.  ERR_BAD_CONFIG as above. */
MUST_CHECK enum err directories_name(struct directories *d, const struct bookie_conf *conf);
void directories_close(struct directories *d);

#endif
