/* certificates.h - a bookie's certificates: from its settings, and renewed while it runs.
 *
 * BookKeeper's settings, as far as they are of PEM files: a Java key store is refused.  A client
 * asks for TLS on the one port (START_TLS), so a client that does not ask is served without.
 *
 * Threads: open and close from no loop's thread; its timer lives on the loop.
 */
#ifndef BOOKIE_CERTIFICATES_H
#define BOOKIE_CERTIFICATES_H

#include "bookie/bookie.h"
#include "common/loop.h"
#include "common/tls.h"

struct certificates;

/* *out NULL: the settings ask for none.  ERR_BAD_CONFIG with an event that says what is wrong. */
MUST_CHECK enum err certificates_open(struct certificates **out, const struct bookie_conf *conf,
                                      struct loop *loop);
struct tls *certificates_tls(const struct certificates *c); /* borrows; NULL for NULL */
void certificates_close(struct certificates **c);           /* after the last connection */

#endif
