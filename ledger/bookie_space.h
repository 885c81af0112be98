/* bookie_space.h - how much space each bookie's disks have: asks those that take writes, now and
 * then, and keeps a table of bookies as they answer.
 *
 *   found, or due --GET_BOOKIE_INFO--> free bytes --> bookies_set_free()
 *
 * Threads: the loop's.
 */
#ifndef LEDGER_BOOKIE_SPACE_H
#define LEDGER_BOOKIE_SPACE_H

#include "ledger/bookies.h"

struct bookie_space;

/* Asks again `look_us` after an answer, `retry_us` after a failure; gives. */
struct bookie_space *bookie_space_new(struct loop *l, struct bookies *table, uint64_t look_us,
                                      uint64_t retry_us);
void bookie_space_drop(struct bookie_space **s); /* before the table's links */

#endif
