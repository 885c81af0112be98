/* journal_format.h - the bytes of a journal file.
 *
 *   block 0: header | group | group | ...        a group starts at a block, is zero-padded to one
 *   group:   record record ... zeros
 *   record:  u32 crc | u32 length | u64 file | u64 sequence | u64 group | u8 kind, zeros | payload
 *
 * The crc covers everything behind it.  The file's id in each record keeps an old record of a
 * recycled file from looking new; sequences have no gaps, over all files.  `group` is the
 * sequence of the first record that was written in the same write: a group is acknowledged as a
 * whole, so one that is torn was never acknowledged, while a later group proves that this one
 * had been synced.
 *
 * So does a header, of all files before it: it says which sequence the first record of its own
 * will have.  And so does a proof, a record without payload in a block of its own behind the last
 * group: it is written when nothing has come for a while and at the end, has the sequence that the
 * next record will have, and the next group is written over it.
 *
 * Layout: docs/disk-format.md, "Journal".
 */
#ifndef BOOKIE_JOURNAL_FORMAT_H
#define BOOKIE_JOURNAL_FORMAT_H

#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum { JOURNAL_BLOCK = 4096, JOURNAL_RECORD = 40 };
enum { JOURNAL_PROOF = 255 /* the kind of a proof */ };

struct journal_record {
    uint64_t file;
    uint64_t sequence;
    uint64_t group;
    uint8_t kind;
    struct view payload; /* borrowed */
};

static inline uint64_t journal_blocks(uint64_t bytes) /* rounded up to whole blocks */
{
    return (bytes + JOURNAL_BLOCK - 1) / JOURNAL_BLOCK * JOURNAL_BLOCK;
}

/* Bytes that a record of this payload takes in a group. */
static inline uint64_t journal_record_size(uint64_t payload)
{
    return (JOURNAL_RECORD + payload + 7) / 8 * 8;
}

/* sequence: of the first record in it. */
void journal_header_write(uint8_t block[JOURNAL_BLOCK], uint64_t file, uint64_t sequence);
/* ERR_CHECKSUM: no header of this file; ERR_UNSUPPORTED_VERSION: written by a newer build.
 * *sequence 0: it does not say (version 1). */
MUST_CHECK enum err journal_header_read(struct view block, uint64_t file, uint64_t *sequence);

/* A record in two steps: what its owner knows, payload (head, then body) and kind; then its place,
 * and with it the crc.  _seal() returns journal_record_size(). */
void journal_record_draft(uint8_t *into, uint8_t kind, struct view head, struct view body);
size_t journal_record_seal(uint8_t *at, uint64_t file, uint64_t sequence, uint64_t group);
/* Both. */
size_t journal_record_write(uint8_t *into, const struct journal_record *r, struct view head,
                            struct view body);
/* How long the payload says it is, from the first JOURNAL_RECORD bytes; ERR_CHECKSUM when this
 * cannot be a record of this file. */
MUST_CHECK enum err journal_record_peek(const uint8_t *at, uint64_t file, uint32_t max,
                                        uint32_t *length);
/* `at` holds the whole record of that length. */
MUST_CHECK enum err journal_record_read(const uint8_t *at, uint32_t length,
                                        struct journal_record *out);

#endif
