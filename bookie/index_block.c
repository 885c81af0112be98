#include "bookie/index_block.h"

#include <string.h>

#include "bookie/entry_log.h"
#include "proto/wire.h"

enum { FORMAT = 1, ELSEWHERE = 1, OTHER_LOG = 2 };

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static uint64_t end_of(const struct entry_place *p)
{
    return p->offset + ENTRY_LOG_RECORD + p->length;
}

static void write_place(struct writer *w, uint64_t skipped, const struct entry_place *last,
                        const struct entry_place *p)
{
    const bool other = p->log != last->log;
    const bool elsewhere = other || p->offset != end_of(last);
    write_varint(w, skipped << 2 | (other ? OTHER_LOG : 0u) | (elsewhere ? ELSEWHERE : 0u));
    if (other)
        write_varint(w, p->log);
    if (elsewhere)
        write_varint(w, p->offset);
    write_varint(w, zigzag((int64_t)p->length - (int64_t)last->length));
}

size_t index_block_write(const struct index_block *b, uint8_t into[INDEX_BLOCK_BYTES_MAX])
{
    struct writer w = {.base = into, .room = INDEX_BLOCK_BYTES_MAX};
    struct entry_place last = {0};
    unsigned next = 0;
    write_u8(&w, FORMAT);
    for (unsigned i = 0; i < INDEX_BLOCK; i++) {
        if (!index_block_has(b, i))
            continue;
        write_place(&w, i - next, &last, &b->at[i]);
        last = b->at[i];
        next = i + 1;
    }
    return w.len;
}

static enum err read_place(struct reader *r, struct entry_place *p, uint64_t *skipped)
{
    uint64_t head, by;
    TRY(read_varint(r, &head));
    const uint64_t follows = end_of(p);
    if (head & OTHER_LOG)
        TRY(read_varint(r, &p->log));
    p->offset = follows;
    if (head & ELSEWHERE)
        TRY(read_varint(r, &p->offset));
    TRY(read_varint(r, &by));
    const int64_t change = unzigzag(by);
    if (change > UINT32_MAX || change < -(int64_t)p->length ||
        (int64_t)p->length + change > UINT32_MAX)
        return ERR_CHECKSUM;
    p->length = (uint32_t)((int64_t)p->length + change);
    *skipped = head >> 2;
    return ERR_OK;
}

enum err index_block_read(struct view bytes, struct index_block *out)
{
    struct reader r = reader_of(bytes);
    struct entry_place p = {0};
    uint64_t next = 0, skipped;
    uint8_t format;
    memset(out->present, 0, sizeof out->present);
    if (read_u8(&r, &format) || format != FORMAT)
        return ERR_CHECKSUM;
    while (reader_left(&r) > 0) {
        if (read_place(&r, &p, &skipped))
            return ERR_CHECKSUM;
        if (skipped >= INDEX_BLOCK - next)
            return ERR_CHECKSUM;
        next += skipped;
        index_block_set(out, (unsigned)next, p);
        next++;
        if (next == INDEX_BLOCK && reader_left(&r) > 0)
            return ERR_CHECKSUM;
    }
    return ERR_OK;
}
