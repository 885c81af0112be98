/* ranges.h - a namespace's share of the hash, cut into bundles: pure.
 *
 * A topic's place is the CRC32 (zlib's) of its full name.  Lower boundaries are closed,
 * upper ones open, but the last.  A range reads "0x00000000_0x40000000", a bundle
 * "tenant/namespace/range".
 *
 * Memory:  read and equal give bounds, drop takes them.
 */
#ifndef BROKER_CLUSTER_RANGES_H
#define BROKER_CLUSTER_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { RANGES_MAX = 65536, RANGES_DEFAULT = 4, RANGE_TEXT = 22 };

struct ranges {
    unsigned n;
    uint32_t *bounds; /* n + 1, rising */
};

/* Of a policies' JSON: its bundles.  ERR_NOT_FOUND: it has none. */
MUST_CHECK enum err ranges_read(struct view json, struct ranges *out);
void ranges_equal(struct ranges *out, unsigned n);
void ranges_drop(struct ranges *r);
unsigned ranges_find(const struct ranges *r, uint32_t hash);
void ranges_text(const struct ranges *r, unsigned i, char into[RANGE_TEXT]);
bool ranges_have(const struct ranges *r, const char *range); /* as ranges_text() writes it */

uint32_t topic_hash(const char *full_name);
/* Both as full names. */
bool bundle_has_topic(const char *bundle, const char *topic);

#endif
