#include <stdbool.h>

#include "metadata/record_check.h"
#include "metadata/records.h"
#include "proto/compress.h"
#include "proto/wire.h"

enum { WRAPPED = 0x4778, UNPACKED_MAX = 64 * 1024 * 1024 };

static bool is_wrapped(struct view value)
{
    return value.len >= 2 && value.base[0] == WRAPPED >> 8 && value.base[1] == (WRAPPED & 0xff);
}

/* The two ...Metadata messages are one and the same on the wire. */
static enum err unwrap(struct view value, struct slice *out)
{
    struct reader r = reader_of(value);
    struct view head, packed;
    uint16_t magic;
    uint32_t size;

    TRY(read_u16(&r, &magic));
    TRY(read_u32(&r, &size));
    TRY(read_view(&r, size, &head));
    TRY(read_view(&r, reader_left(&r), &packed));
    ManagedLedger__ManagedLedgerInfoMetadata *m =
        managed_ledger__managed_ledger_info_metadata__unpack(NULL, head.len, head.base);
    if (!m)
        return ERR_MALFORMED;
    int how = (int)m->compressiontype;
    int32_t plain = m->uncompressedsize;
    managed_ledger__managed_ledger_info_metadata__free_unpacked(m, NULL);
    if (plain < 0 || how < COMPRESS_NONE || how > COMPRESS_SNAPPY)
        return ERR_MALFORMED;
    return decompress((enum compression)how, packed, (size_t)plain, UNPACKED_MAX, out);
}

static enum err read_message(const ProtobufCMessageDescriptor *type, struct view value,
                             ProtobufCMessage **out)
{
    struct slice plain = {0};

    if (is_wrapped(value)) {
        TRY(unwrap(value, &plain));
        value = slice_view(plain);
    }
    *out = protobuf_c_message_unpack(type, NULL, value.len,
                                     value.len ? value.base : (const uint8_t *)"");
    slice_drop(&plain);
    if (*out && !record_survives(*out)) {
        protobuf_c_message_free_unpacked(*out, NULL);
        *out = NULL;
    }
    return *out ? ERR_OK : ERR_MALFORMED;
}

static struct slice write_message(const ProtobufCMessage *m)
{
    size_t size = protobuf_c_message_get_packed_size(m);
    struct slab *slab = slab_new(size);

    protobuf_c_message_pack(m, slab_bytes(slab));
    return slice_take(&slab, size);
}

enum err managed_ledger_record_read(struct view value, ManagedLedger__ManagedLedgerInfo **out)
{
    ProtobufCMessage *m;

    TRY(read_message(&managed_ledger__managed_ledger_info__descriptor, value, &m));
    *out = (ManagedLedger__ManagedLedgerInfo *)m;
    return ERR_OK;
}

struct slice managed_ledger_record_write(const ManagedLedger__ManagedLedgerInfo *r)
{
    return write_message(&r->base);
}

enum err cursor_record_read(struct view value, ManagedLedger__ManagedCursorInfo **out)
{
    ProtobufCMessage *m;

    TRY(read_message(&managed_ledger__managed_cursor_info__descriptor, value, &m));
    *out = (ManagedLedger__ManagedCursorInfo *)m;
    return ERR_OK;
}

struct slice cursor_record_write(const ManagedLedger__ManagedCursorInfo *r)
{
    return write_message(&r->base);
}
