/* registration.h - this bookie among those that are alive: a key that vanishes with us.
 *
 *   OUT --open--> MOVING --held--> IN (writable or read-only)
 *                   ^               |
 *                   +--other side---+   the new key first, then the old one goes
 *
 * A key that an earlier life of ours left is taken over: whoever listens on its address and has
 * the directories is the bookie.  Anybody else's key is waited for.
 *
 * Threads: open and close from no loop's; set from any.
 */
#ifndef BOOKIE_REGISTRATION_H
#define BOOKIE_REGISTRATION_H

#include <stdbool.h>

#include "common/loop.h"
#include "metadata/metadata.h"
#include "metadata/records.h"

struct registration;

/* Returns when it is held.  The strings outlive it; gives. */
MUST_CHECK enum err registration_open(struct registration **out, struct metadata *meta,
                                      struct loop *loop, const char *bookie_id,
                                      const struct bookie_record *record, bool read_only);
void registration_set(struct registration *r, bool read_only);
bool registration_is_held(const struct registration *r); /* on its loop */
void registration_close(struct registration **r);        /* the key is gone when it returns */

#endif
