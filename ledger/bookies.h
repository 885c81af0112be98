/* bookies.h - all bookies that a client has heard of: where they are, which take writes, and the
 * links to them.
 *
 *   /ledgers/available/ --watch, list--> table --> placement, links
 *
 * A bookie has a number here for as long as the client lives.
 *
 * Threads: the loop's.
 */
#ifndef LEDGER_BOOKIES_H
#define LEDGER_BOOKIES_H

#include "ledger/bookie_link.h"
#include "ledger/client.h"

struct bookies;
struct placement_record;

/* Plain reads and adds; fencing reads and recovery adds; batch reads, behind whose bytes the answer
 * to no add stands either.  See bookie_link.h for the reason. */
enum link_kind { LINK_PLAIN, LINK_RECOVERY, LINK_BATCH, LINK_KINDS };

struct bookies *bookies_new(struct loop *l, struct metadata *meta, const struct link_conf *conf,
                            const struct placement_conf *place); /* gives; `place` is copied */
void bookies_drop(struct bookies **b); /* when none of its links has a request */

bool bookies_ready(const struct bookies *b);
unsigned bookies_writable(const struct bookies *b); /* hosts of such, where those must differ */
void bookies_watch(struct bookies *b, struct bookies_watch *w);
void bookies_unwatch(struct bookies *b, struct bookies_watch *w);

uint32_t bookies_number(struct bookies *b, const char *id);
const char *bookies_id(const struct bookies *b, uint32_t number);
struct bookie_link *bookies_link(struct bookies *b, uint32_t number, enum link_kind kind);

/* Where it stands; all are unplaced before, and it counts from bookies_placed() on. */
void bookies_place(struct bookies *b, const char *id, const char *group, const char *rack);
void bookies_unplace(struct bookies *b);
void bookies_placed(struct bookies *b);

/* What a ledger is to have: its quorum, and the groups of bookies that it is kept in. */
struct bookies_wish {
    struct quorum quorum;
    const struct placement_record *groups; /* NULL: as the placement_conf says */
};
/* For a new ledger.  Not who could not be reached just now. */
MUST_CHECK enum err bookies_choose(struct bookies *b, const struct bookies_wish *w, uint32_t *out);
/* Somebody else for a slot of an ensemble; `must`: rather one that failed
 * just now than none. */
bool bookies_replace(struct bookies *b, const struct bookies_wish *w, const uint32_t *members,
                     unsigned slot, bool must, uint32_t *out);
/* Anyone who is none of these, of the groups (NULL: as the placement_conf says). */
bool bookies_spare(struct bookies *b, const struct placement_record *groups,
                   const uint32_t *not_these, unsigned n, uint32_t *out);
void bookies_use(struct bookies *b, uint32_t number, int by); /* ledgers being written there */
/* Those that take writes have numbers below this; and what their disks have, as it was last. */
uint32_t bookies_count(const struct bookies *b);
bool bookies_is_writable(const struct bookies *b, uint32_t number);
void bookies_set_free(struct bookies *b, uint32_t number, uint64_t bytes);
/* It has just failed: for a while, longer each time that it happens again soon, it is chosen only
 * when there is nobody else. */
void bookies_suspect(struct bookies *b, uint32_t number);

#endif
