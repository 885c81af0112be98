/* compress.h - the four compressions of a message payload: LZ4 block, zlib, zstd, snappy.
 *
 * Threads: any; zstd keeps a context a thread, freed with it.
 * Limits:  ERR_TOO_BIG for what an algorithm cannot take (2 GiB); ERR_MALFORMED for a number
 *          that is none of these.
 */
#ifndef PROTO_COMPRESS_H
#define PROTO_COMPRESS_H

#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

/* Numbers of Pulsar's CompressionType. */
enum compression {
    COMPRESS_NONE = 0,
    COMPRESS_LZ4 = 1,
    COMPRESS_ZLIB = 2,
    COMPRESS_ZSTD = 3,
    COMPRESS_SNAPPY = 4
};

/* Not `compress`: zlib's function of that name would be replaced in every library. */
MUST_CHECK enum err compress_with(enum compression how, struct view plain,
                                  struct slice *out); /* gives */
/* `size` is what the sender declared: a result of another size is ERR_MALFORMED, a size over
 * `max` ERR_TOO_BIG before anything is allocated.  NONE gives a copy. */
MUST_CHECK enum err decompress(enum compression how, struct view packed, size_t size, size_t max,
                               struct slice *out); /* gives */

#endif
