/* integrity.h - what a bookie does that has lost something, before it serves and afterwards.
 *
 *   integrity_scan: every ledger of the metadata that names us --> limbo, and no more plain adds;
 *                   durable, and only then the port is opened
 *   integrity_open: ledgers in limbo, one after the other: recovered and closed where they are
 *                   not, all replicas compared, what is lacking here copied in --> out of limbo
 *                   none is left, durably --> WHOLE (integrity_file.h)
 *
 * In limbo a bookie tells what it has; that it has something not, and how far the ledger goes, it
 * does not know (ledger_row.h).  So a recovery never takes an amnesiac's word for the end.
 *
 * Which ledgers, by their metadata (integrity_judge()):
 *   OPEN, we are in the last fragment     limbo, fenced: its recovery decides the end
 *   OPEN, only in earlier ones            limbo; nobody has fenced it yet, so no fence is lost
 *   IN_RECOVERY or CLOSED, in any         limbo, fenced: an old writer may still be about, and may
 *                                         have been refused by nobody but us
 *   IN_RECOVERY, in none                  limbo: its recoverer may have given us copies, and may
 *                                         name us when he closes it
 *
 * Whoever was moved away from is not named any more, and may have fenced all the same: plain adds
 * of a ledger that is as old as the loss are taken when the metadata has it open and names us
 * (vouch.c).
 *
 * Threads: scan before storage_serve(), not a loop's thread; open and close from no loop's;
 *          the rest on the last loop.
 */
#ifndef BOOKIE_INTEGRITY_H
#define BOOKIE_INTEGRITY_H

#include "bookie/bookie.h"
#include "bookie/integrity_file.h"
#include "bookie/metrics.h"
#include "bookie/storage.h"
#include "proto/bookkeeper.pb-c.h"

struct integrity;

struct integrity_conf {
    const struct bookie_conf *settings;
    const char *bookie_id;
    struct metadata *meta;
    struct loops *loops;
    struct storage *storage;
    struct bookie_metrics *metrics;
    struct disk *disk;
    const char *const *dirs; /* the `current` ones; all hold the file */
    unsigned n;
};

enum integrity_verdict { NOT_HERE, IN_LIMBO, FENCED_IN_LIMBO };
enum integrity_verdict integrity_judge(const Bookkeeper__LedgerMetadataFormat *ledger,
                                       const char *bookie_id);

/* What the directories say: the highest need.  conf's storage is not there yet. */
MUST_CHECK enum err integrity_find(const struct integrity_conf *conf, struct integrity_state *out);
/* Does what is to be done before the port is opened; then the state is not SCAN any more. */
MUST_CHECK enum err integrity_scan(const struct integrity_conf *conf,
                                   struct integrity_state *state);

/* Once the bookie is registered.  conf's pointers outlive it; NULL is given when state is WHOLE. */
struct integrity *integrity_open(const struct integrity_conf *conf,
                                 const struct integrity_state *state);
void integrity_close(struct integrity **i);

#endif
