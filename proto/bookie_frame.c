#include "proto/bookie_frame.h"

#include <string.h>

#include "proto/bookkeeper.pb-c.h"
#include "proto/wire.h"

enum { VERSION_NEWEST = 2 };

/* ---- status ---- */

enum err bookie_status_to_err(int32_t status)
{
    switch (status) {
    case BOOKIE_OK:
        return ERR_OK;
    case BOOKIE_NO_LEDGER:
        return ERR_NO_LEDGER;
    case BOOKIE_NO_ENTRY:
        return ERR_NO_ENTRY;
    case BOOKIE_BAD_REQUEST:
        return ERR_MALFORMED;
    case BOOKIE_EUA:
        return ERR_UNAUTHORIZED;
    case BOOKIE_BAD_VERSION:
        return ERR_UNSUPPORTED_VERSION;
    case BOOKIE_FENCED:
        return ERR_FENCED;
    case BOOKIE_READ_ONLY:
        return ERR_READ_ONLY;
    case BOOKIE_TOO_MANY:
        return ERR_BUSY;
    case BOOKIE_UNKNOWN:
        return ERR_UNKNOWN_STATE;
    default:
        return ERR_IO;
    }
}

/* ---- reading ---- */

struct packet {
    uint8_t version;
    uint8_t op;
    uint16_t flags;
};

/* Version 0 had no flags: its whole word is the op. */
static enum err packet_read(struct reader *r, struct packet *out)
{
    uint32_t word;

    TRY(read_u32(r, &word));
    out->version = (uint8_t)(word >> 24);
    if (out->version == 0 && word > UINT8_MAX)
        return ERR_MALFORMED;
    out->op = (uint8_t)(out->version ? word >> 16 : word);
    out->flags = out->version ? (uint16_t)word : 0;
    return ERR_OK;
}

static enum err read_key(struct reader *r, struct bookie_request *out)
{
    struct view key;

    TRY(read_view(r, MASTER_KEY_SIZE, &key));
    memcpy(out->key, key.base, MASTER_KEY_SIZE);
    out->has_key = true;
    return ERR_OK;
}

/* Fencing older than version 2 sent no key; what else follows a read is ignored. */
static enum err read_fencing_key(struct reader *r, struct bookie_request *out)
{
    bool sent = out->flags & BOOKIE_DO_FENCING && out->version >= 2;
    return sent ? read_key(r, out) : ERR_OK;
}

static enum err read_position(struct reader *r, struct bookie_request *out)
{
    TRY(read_i64(r, &out->ledger));
    return read_i64(r, &out->entry);
}

static enum err read_add(struct reader *r, struct bookie_request *out)
{
    struct entry_header h;

    TRY(read_key(r, out));
    out->body = view_of(r->at, reader_left(r));
    TRY(entry_header_read(out->body, &h));
    out->ledger = h.ledger;
    out->entry = h.entry;
    return ERR_OK;
}

static enum err read_batch(struct reader *r, struct bookie_request *out)
{
    uint32_t count;

    TRY(read_position(r, out));
    TRY(read_i64(r, &out->request_id));
    TRY(read_u32(r, &count));
    out->max_count = (int32_t)count;
    TRY(read_i64(r, &out->max_size));
    return read_fencing_key(r, out);
}

static enum err read_by_op(struct reader *r, struct bookie_request *out)
{
    switch (out->op) {
    case BOOKIE_ADD:
        return read_add(r, out);
    case BOOKIE_READ:
        TRY(read_position(r, out));
        return read_fencing_key(r, out);
    case BOOKIE_AUTH:
        return read_view(r, reader_left(r), &out->body);
    case BOOKIE_BATCH_READ:
        return read_batch(r, out);
    default:
        return ERR_MALFORMED;
    }
}

enum err bookie_request_read(struct view frame, struct bookie_request *out)
{
    struct reader r = reader_of(frame);
    struct packet p;
    enum err e;

    *out = (struct bookie_request){0};
    TRY(packet_read(&r, &p));
    out->version = p.version;
    out->op = p.op;
    out->flags = p.flags;
    e = read_by_op(&r, out);
    return p.version > VERSION_NEWEST ? ERR_UNSUPPORTED_VERSION : e;
}

static enum err read_answer(struct reader *r, struct bookie_response *out)
{
    uint32_t status;

    TRY(read_u32(r, &status));
    out->status = (int32_t)status;
    TRY(read_i64(r, &out->ledger));
    return read_i64(r, &out->entry);
}

enum err bookie_response_read(struct view frame, struct bookie_response *out)
{
    struct reader r = reader_of(frame);
    struct packet p;

    *out = (struct bookie_response){0};
    TRY(packet_read(&r, &p));
    out->version = p.version;
    out->op = p.op;
    if (p.version > VERSION_NEWEST)
        return ERR_UNSUPPORTED_VERSION;
    switch (p.op) {
    case BOOKIE_ADD:
    case BOOKIE_READ:
    case BOOKIE_BATCH_READ:
        TRY(read_answer(&r, out));
        break;
    case BOOKIE_AUTH:
        break;
    default:
        return ERR_MALFORMED;
    }
    return read_view(&r, reader_left(&r), &out->body);
}

enum err bookie_batch_id(struct view *rest, int64_t *request_id)
{
    struct reader r = reader_of(*rest);

    TRY(read_i64(&r, request_id));
    *rest = view_of(r.at, reader_left(&r));
    return ERR_OK;
}

enum err bookie_batch_next(struct view *rest, struct view *entry)
{
    struct reader r = reader_of(*rest);
    uint32_t len;

    if (rest->len == 0)
        return ERR_END;
    TRY(read_u32(&r, &len));
    TRY(read_view(&r, len, entry));
    *rest = view_of(r.at, reader_left(&r));
    return ERR_OK;
}

/* ---- writing ---- */

static void packet_write(struct writer *w, uint8_t version, uint8_t op, uint16_t flags)
{
    write_u32(w, version ? (uint32_t)version << 24 | (uint32_t)op << 16 | flags : op);
}

void bookie_write_add(uint8_t into[BOOKIE_ADD_FRONT], uint16_t flags,
                      const uint8_t key[MASTER_KEY_SIZE], size_t entry_len)
{
    struct writer w = {.base = into, .room = BOOKIE_ADD_FRONT};

    write_u32(&w, (uint32_t)(BOOKIE_ADD_FRONT - 4 + entry_len));
    packet_write(&w, VERSION_NEWEST, BOOKIE_ADD, flags);
    write_bytes(&w, key, MASTER_KEY_SIZE);
}

size_t bookie_write_read(uint8_t into[BOOKIE_FENCE_SIZE], uint16_t flags, int64_t ledger,
                         int64_t entry, const uint8_t key[MASTER_KEY_SIZE])
{
    struct writer w = {.base = into, .room = BOOKIE_FENCE_SIZE};
    struct hole total = write_size_later(&w);

    packet_write(&w, VERSION_NEWEST, BOOKIE_READ, flags);
    write_u64(&w, (uint64_t)ledger);
    write_u64(&w, (uint64_t)entry);
    if (flags & BOOKIE_DO_FENCING)
        write_bytes(&w, key, MASTER_KEY_SIZE);
    fill_size(&w, total);
    return w.len;
}

void bookie_write_batch_read(uint8_t into[BOOKIE_BATCH_SIZE], int64_t ledger, int64_t first,
                             int64_t request_id, int32_t max_count, int64_t max_size)
{
    struct writer w = {.base = into, .room = BOOKIE_BATCH_SIZE};

    write_u32(&w, BOOKIE_BATCH_SIZE - 4);
    packet_write(&w, VERSION_NEWEST, BOOKIE_BATCH_READ, 0);
    write_u64(&w, (uint64_t)ledger);
    write_u64(&w, (uint64_t)first);
    write_u64(&w, (uint64_t)request_id);
    write_u32(&w, (uint32_t)max_count);
    write_u64(&w, (uint64_t)max_size);
}

void bookie_write_response(uint8_t into[BOOKIE_RESPONSE_SIZE], uint8_t version, uint8_t op,
                           int32_t status, int64_t ledger, int64_t entry, size_t body_len)
{
    struct writer w = {.base = into, .room = BOOKIE_RESPONSE_SIZE};

    write_u32(&w, (uint32_t)(BOOKIE_RESPONSE_SIZE - 4 + body_len));
    packet_write(&w, version, op, 0);
    write_u32(&w, (uint32_t)status);
    write_u64(&w, (uint64_t)ledger);
    write_u64(&w, (uint64_t)entry);
}

/* The message is packed from a const string, which protobuf-c only reads. */
static struct slice auth_frame(uint8_t version, const char *plugin)
{
    Bookkeeper__AuthMessage m = BOOKKEEPER__AUTH_MESSAGE__INIT;
    struct writer w = {0};
    struct slab *slab;

    m.authpluginname = (char *)(uintptr_t)plugin;
    w.room = 8 + bookkeeper__auth_message__get_packed_size(&m);
    slab = slab_new(w.room);
    w.base = slab_bytes(slab);
    write_u32(&w, (uint32_t)(w.room - 4));
    packet_write(&w, version, BOOKIE_AUTH, 0);
    bookkeeper__auth_message__pack(&m, w.base + w.len);
    return slice_take(&slab, w.room);
}

struct slice bookie_auth_request(void)
{
    return auth_frame(VERSION_NEWEST, "");
}

struct slice bookie_auth_response(uint8_t version, const char *plugin)
{
    return auth_frame(version, plugin);
}
