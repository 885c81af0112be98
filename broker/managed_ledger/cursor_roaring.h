/* cursor_roaring.h - the portable form of a roaring bitmap, read without trusting it.
 *
 * The library that works with bitmaps believes the bytes it loads; so they are walked here, and
 * only ranges go on.  Layout: github.com/RoaringBitmap/RoaringFormatSpec.
 */
#ifndef BROKER_MANAGED_LEDGER_CURSOR_ROARING_H
#define BROKER_MANAGED_LEDGER_CURSOR_ROARING_H

#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

struct cursor_roaring_sink {
    void (*range)(struct cursor_roaring_sink *s, uint32_t first, uint32_t last); /* in order */
};
/* All of the bytes, in the one form that a writer gives them, or ERR_MALFORMED; ranges may have
 * gone to the sink by then. */
MUST_CHECK enum err cursor_roaring_read(struct view bytes, struct cursor_roaring_sink *sink);

#endif
