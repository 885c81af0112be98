/* bookie_racks.h - which rack and group each bookie is in: keeps a table of bookies as the
 * metadata key /bookies says.
 *
 * Threads: the loop's.
 */
#ifndef LEDGER_BOOKIE_RACKS_H
#define LEDGER_BOOKIE_RACKS_H

#include "ledger/bookies.h"

struct bookie_racks;

struct bookie_racks *bookie_racks_new(struct loop *l, struct metadata *meta,
                                      struct bookies *table); /* gives */
void bookie_racks_drop(struct bookie_racks **r);

#endif
