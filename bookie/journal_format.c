#include "bookie/journal_format.h"

#include <string.h>

#include "bookie/bytes.h"
#include "common/crc32c.h"

enum { MAGIC = 0x4c474d4a /* "LGMJ" */, VERSION = 2, OLDEST_READER = 2 };
enum { HEADER = 28, HEADER_1 = 24 /* of version 1 */ };

/* magic u32 | version u16, oldest reader u16 | file u64 | sequence u64 | crc u32 of the rest;
 * version 1 had four zeros and no sequence */
void journal_header_write(uint8_t block[JOURNAL_BLOCK], uint64_t file, uint64_t sequence)
{
    memset(block, 0, JOURNAL_BLOCK);
    put_u32(block, MAGIC);
    put_u32(block + 4, VERSION << 16 | OLDEST_READER);
    put_u64(block + 8, file);
    put_u64(block + 16, sequence);
    put_u32(block + HEADER - 4, crc32c(block, HEADER - 4));
}

enum err journal_header_read(struct view block, uint64_t file, uint64_t *sequence)
{
    *sequence = 0;
    if (block.len < HEADER || get_u32(block.base) != MAGIC)
        return ERR_CHECKSUM;
    const unsigned version = get_u32(block.base + 4) >> 16;
    const size_t size = version == 1 ? HEADER_1 : HEADER;
    if (get_u32(block.base + size - 4) != crc32c(block.base, size - 4))
        return ERR_CHECKSUM;
    if ((get_u32(block.base + 4) & 0xffff) > VERSION)
        return ERR_UNSUPPORTED_VERSION;
    if (version > 1)
        *sequence = get_u64(block.base + 16);
    return get_u64(block.base + 8) == file ? ERR_OK : ERR_CHECKSUM;
}

/* Where the crc will stand is that of the payload meanwhile. */
void journal_record_draft(uint8_t *into, uint8_t kind, struct view head, struct view body)
{
    const uint64_t length = head.len + body.len;
    uint8_t *payload = into + JOURNAL_RECORD;
    put_u32(into + 4, (uint32_t)length);
    put_u64(into + 32, (uint64_t)kind << 56);
    if (head.len)
        memcpy(payload, head.base, head.len);
    if (body.len)
        memcpy(payload + head.len, body.base, body.len);
    memset(payload + length, 0, journal_record_size(length) - JOURNAL_RECORD - length);
    put_u32(into, crc32c(payload, length));
}

size_t journal_record_seal(uint8_t *at, uint64_t file, uint64_t sequence, uint64_t group)
{
    const uint32_t length = get_u32(at + 4);
    put_u64(at + 8, file);
    put_u64(at + 16, sequence);
    put_u64(at + 24, group);
    put_u32(at, crc32c_combine(crc32c(at + 4, JOURNAL_RECORD - 4), get_u32(at), length));
    return journal_record_size(length);
}

size_t journal_record_write(uint8_t *into, const struct journal_record *r, struct view head,
                            struct view body)
{
    journal_record_draft(into, r->kind, head, body);
    return journal_record_seal(into, r->file, r->sequence, r->group);
}

enum err journal_record_peek(const uint8_t *at, uint64_t file, uint32_t max, uint32_t *length)
{
    *length = get_u32(at + 4);
    return get_u64(at + 8) == file && *length <= max ? ERR_OK : ERR_CHECKSUM;
}

enum err journal_record_read(const uint8_t *at, uint32_t length, struct journal_record *out)
{
    if (get_u32(at) != crc32c(at + 4, JOURNAL_RECORD - 4 + (size_t)length))
        return ERR_CHECKSUM;
    *out = (struct journal_record){
        .file = get_u64(at + 8),
        .sequence = get_u64(at + 16),
        .group = get_u64(at + 24),
        .kind = at[32],
        .payload = view_of(at + JOURNAL_RECORD, length),
    };
    return ERR_OK;
}
