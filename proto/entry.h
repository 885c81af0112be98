/* entry.h - an entry as a bookie stores it: header, digest, payload.
 *
 *   0 i64 ledger | 8 i64 entry | 16 i64 last add confirmed | 24 i64 length |
 *   32 u32 crc32c | 36 payload
 *
 * length is the payload bytes of the ledger up to and with this entry.  The digest covers
 * bytes 0..31, then the payload.  CRC32C is what we write; the other digests of BookKeeper
 * (CRC32, HMAC-SHA1, none) can be read.  Facts and vectors: bookkeeper.md B, A.11.
 */
#ifndef PROTO_ENTRY_H
#define PROTO_ENTRY_H

#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { ENTRY_HEADER = 32, ENTRY_PREFIX = 36, MASTER_KEY_SIZE = 20, DIGEST_SIZE_MAX = 20 };

/* Numbers of LedgerMetadataFormat.DigestType. */
enum digest_type { DIGEST_CRC32 = 1, DIGEST_HMAC = 2, DIGEST_CRC32C = 3, DIGEST_DUMMY = 4 };

struct entry_header {
    int64_t ledger;
    int64_t entry;
    int64_t lac;
    int64_t length;
};

struct digest {
    enum digest_type type;
    uint8_t key[MASTER_KEY_SIZE]; /* HMAC's: SHA1("mac" password) */
};

struct digest digest_of(enum digest_type type, struct view password);
size_t digest_size(enum digest_type type);
/* SHA1("ledger" password) */
void master_key_of(struct view password, uint8_t out[MASTER_KEY_SIZE]);

/* Header and CRC32C digest of an entry whose payload has this crc and length. */
void entry_prefix(const struct entry_header *h, uint32_t payload_crc, size_t payload_len,
                  uint8_t into[ENTRY_PREFIX]);
/* Any digest; *n bytes are written. */
void entry_prefix_with(const struct digest *d, const struct entry_header *h, struct view payload,
                       uint8_t into[ENTRY_HEADER + DIGEST_SIZE_MAX], size_t *n);

/* The first 32 bytes only: what a bookie looks at.  ERR_MALFORMED when shorter. */
MUST_CHECK enum err entry_header_read(struct view entry, struct entry_header *out);
/* Checks size, digest and, unless -1 is asked for, both ids.  ERR_CHECKSUM for any mismatch. */
MUST_CHECK enum err entry_open(const struct digest *d, struct view entry, int64_t ledger,
                               int64_t id, struct entry_header *h, struct view *payload);

#endif
