#include "proto/bookie_v3.h"

#include <string.h>

#include "proto/bookkeeper.pb-c.h"
#include "proto/wire.h"

enum { DEFERRED_SYNC = 1, FIRST_MESSAGE = 100, MESSAGES = 9 };

/* ---- protobuf fields ------------------------------------------------------------------------ */

enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5 };

struct field {
    uint64_t number;
    unsigned kind;
    uint64_t value;    /* VARINT */
    struct view bytes; /* the others */
};

static enum err read_field(struct reader *r, struct field *out)
{
    uint64_t tag, len;

    TRY(read_varint(r, &tag));
    *out = (struct field){.number = tag >> 3, .kind = tag & 7};
    if (out->number == 0 || tag > UINT32_MAX)
        return ERR_MALFORMED;
    switch (out->kind) {
    case VARINT:
        return read_varint(r, &out->value);
    case FIXED_64:
        return read_view(r, 8, &out->bytes);
    case FIXED_32:
        return read_view(r, 4, &out->bytes);
    case BYTES:
        TRY(read_varint(r, &len));
        return len > reader_left(r) ? ERR_MALFORMED : read_view(r, (size_t)len, &out->bytes);
    default:
        return ERR_MALFORMED;
    }
}

/* The fields 1 to 5 and 100 of a message, whose kinds are its own: those it has by number. */
enum { FLAG = 0, FIELDS = 6 };

struct fields {
    unsigned present; /* a bit each */
    uint64_t value[FIELDS];
    struct view bytes[FIELDS];
};

static bool has(const struct fields *f, unsigned i)
{
    return f->present >> i & 1;
}

/* Fields that are not known are skipped; of two the later counts.  `bytes`: which are bytes. */
static enum err read_fields(struct view message, unsigned bytes, struct fields *out)
{
    struct reader r = reader_of(message);

    *out = (struct fields){0};
    while (reader_left(&r) > 0) {
        struct field f;
        TRY(read_field(&r, &f));
        const uint64_t i = f.number == FIRST_MESSAGE ? FLAG : f.number;
        if (i >= FIELDS || (i == FLAG && f.number != FIRST_MESSAGE))
            continue;
        if (f.kind != ((bytes >> i & 1) ? BYTES : VARINT))
            return ERR_MALFORMED;
        out->present |= 1u << i;
        out->value[i] = f.value;
        out->bytes[i] = f.bytes;
    }
    return ERR_OK;
}

static bool lacks(const struct fields *f, unsigned required)
{
    return (f->present & required) != required;
}

enum { F1 = 1 << 1, F2 = 1 << 2, F3 = 1 << 3, F4 = 1 << 4 };

/* ---- requests ------------------------------------------------------------------------------- */

/* One of another length is nobody's key here, and claims nothing. */
static void take_key(struct view key, struct bookie_request *out)
{
    out->has_key = key.len == MASTER_KEY_SIZE;
    if (out->has_key)
        memcpy(out->key, key.base, MASTER_KEY_SIZE);
}

static enum err read_read(struct view m, struct bookie_request *out, struct bookie_v3 *v3)
{
    struct fields f;

    TRY(read_fields(m, F3, &f));
    if (lacks(&f, F1 | F2))
        return ERR_MALFORMED;
    out->op = BOOKIE_READ;
    out->ledger = (int64_t)f.value[1];
    out->entry = (int64_t)f.value[2];
    take_key(f.bytes[3], out);
    v3->previous_lac = (int64_t)f.value[4];
    v3->timeout_ms = (int64_t)f.value[5];
    if (f.value[FLAG] == BOOKKEEPER__READ_REQUEST__FLAG__FENCE_LEDGER)
        out->flags |= BOOKIE_DO_FENCING;
    else
        v3->waits = has(&f, 4);
    v3->wants_next = f.value[FLAG] == BOOKKEEPER__READ_REQUEST__FLAG__ENTRY_PIGGYBACK && v3->waits;
    return ERR_OK;
}

static enum err read_add(struct view m, struct bookie_request *out, struct bookie_v3 *v3)
{
    struct entry_header h;
    struct fields f;

    TRY(read_fields(m, F3 | F4, &f));
    if (lacks(&f, F1 | F2 | F3 | F4))
        return ERR_MALFORMED;
    out->ledger = (int64_t)f.value[1];
    out->entry = (int64_t)f.value[2];
    take_key(f.bytes[3], out);
    out->body = f.bytes[4];
    v3->is_deferred = f.value[5] & DEFERRED_SYNC;
    if (f.value[FLAG] == BOOKKEEPER__ADD_REQUEST__FLAG__RECOVERY_ADD)
        out->flags |= BOOKIE_RECOVERY_ADD;
    const bool fits = entry_header_read(out->body, &h) == ERR_OK && h.ledger == out->ledger &&
                      h.entry == out->entry;
    out->op = fits ? BOOKIE_ADD : BOOKIE_NOTHING;
    return ERR_OK;
}

static enum err read_write_lac(struct view m, struct bookie_request *out, struct bookie_v3 *v3)
{
    struct fields f;
    struct reader body;
    int64_t ledger, lac;

    TRY(read_fields(m, F3 | F4, &f));
    if (lacks(&f, F1 | F2 | F3 | F4))
        return ERR_MALFORMED;
    out->ledger = (int64_t)f.value[1];
    v3->lac = (int64_t)f.value[2];
    take_key(f.bytes[3], out);
    out->body = f.bytes[4];
    body = reader_of(out->body);
    const bool fits = out->body.len <= EXPLICIT_LAC_MAX && read_i64(&body, &ledger) == ERR_OK &&
                      read_i64(&body, &lac) == ERR_OK && ledger == out->ledger && lac == v3->lac;
    out->op = fits ? BOOKIE_WRITE_LAC : BOOKIE_NOTHING;
    return ERR_OK;
}

static enum err read_of_ledger(struct view m, uint8_t op, struct bookie_request *out)
{
    struct fields f;

    TRY(read_fields(m, 0, &f));
    if (lacks(&f, F1))
        return ERR_MALFORMED;
    out->op = op;
    out->ledger = (int64_t)f.value[1];
    out->entry = -1;
    return ERR_OK;
}

static enum err read_info(struct view m, struct bookie_request *out, struct bookie_v3 *v3)
{
    struct fields f;

    TRY(read_fields(m, 0, &f));
    out->op = BOOKIE_INFO;
    v3->requested = (int64_t)f.value[1];
    return ERR_OK;
}

static enum err read_auth(struct view m, struct bookie_request *out)
{
    struct fields f;

    TRY(read_fields(m, F1 | F2, &f));
    if (lacks(&f, F1 | F2))
        return ERR_MALFORMED;
    out->op = BOOKIE_AUTH;
    out->body = m;
    return ERR_OK;
}

static enum err read_message(int operation, struct view m, struct bookie_request *out,
                             struct bookie_v3 *v3)
{
    switch (operation) {
    case BOOKKEEPER__OPERATION_TYPE__READ_ENTRY:
        return read_read(m, out, v3);
    case BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY:
        return read_add(m, out, v3);
    case BOOKKEEPER__OPERATION_TYPE__AUTH:
        return read_auth(m, out);
    case BOOKKEEPER__OPERATION_TYPE__WRITE_LAC:
        return read_write_lac(m, out, v3);
    case BOOKKEEPER__OPERATION_TYPE__READ_LAC:
        return read_of_ledger(m, BOOKIE_READ_LAC, out);
    case BOOKKEEPER__OPERATION_TYPE__GET_BOOKIE_INFO:
        return read_info(m, out, v3);
    case BOOKKEEPER__OPERATION_TYPE__START_TLS:
        out->op = BOOKIE_START_TLS;
        return ERR_OK;
    case BOOKKEEPER__OPERATION_TYPE__FORCE_LEDGER:
        return read_of_ledger(m, BOOKIE_FORCE, out);
    default:
        return read_of_ledger(m, BOOKIE_LIST, out);
    }
}

/* Which field of a Request has the message of an operation; 0: none has. */
static unsigned message_of(uint64_t operation)
{
    static const uint8_t at[] = {
        [BOOKKEEPER__OPERATION_TYPE__READ_ENTRY] = 100,
        [BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY] = 101,
        [BOOKKEEPER__OPERATION_TYPE__AUTH] = 102,
        [BOOKKEEPER__OPERATION_TYPE__WRITE_LAC] = 103,
        [BOOKKEEPER__OPERATION_TYPE__READ_LAC] = 104,
        [BOOKKEEPER__OPERATION_TYPE__GET_BOOKIE_INFO] = 105,
        [BOOKKEEPER__OPERATION_TYPE__START_TLS] = 106,
        [BOOKKEEPER__OPERATION_TYPE__FORCE_LEDGER] = 107,
        [BOOKKEEPER__OPERATION_TYPE__GET_LIST_OF_ENTRIES_OF_LEDGER] = 108,
    };
    return operation < sizeof at ? at[operation] : 0;
}

static enum err read_header(struct view m, uint64_t *version, struct bookie_request *out,
                            struct bookie_v3 *v3)
{
    struct fields f;

    TRY(read_fields(m, 0, &f));
    if (lacks(&f, F1 | F2 | F3) || f.value[1] < BOOKKEEPER__PROTOCOL_VERSION__VERSION_ONE ||
        f.value[1] > BOOKKEEPER__PROTOCOL_VERSION__VERSION_THREE ||
        f.value[2] < BOOKKEEPER__OPERATION_TYPE__READ_ENTRY ||
        f.value[2] > BOOKKEEPER__OPERATION_TYPE__BATCH_READ_ENTRY)
        return ERR_MALFORMED;
    *version = f.value[1];
    v3->operation = (uint8_t)f.value[2];
    v3->txn = f.value[3];
    if ((uint32_t)f.value[4] > 0)
        out->flags |= BOOKIE_HIGH_PRIORITY;
    return ERR_OK;
}

/* Messages of other operations than the header's are not looked into. */
enum err bookie_v3_read(struct view frame, struct bookie_request *out, struct bookie_v3 *v3)
{
    struct reader r = reader_of(frame);
    struct view header = {0}, messages[MESSAGES] = {0};
    uint64_t version;

    *out = (struct bookie_request){.version = BOOKIE_VERSION_3};
    *v3 = (struct bookie_v3){0};
    while (reader_left(&r) > 0) {
        struct field f;
        TRY(read_field(&r, &f));
        const bool is_message =
            f.number >= FIRST_MESSAGE && f.number < FIRST_MESSAGE + MESSAGES && f.kind == BYTES;
        if (f.number == 1 && f.kind == BYTES)
            header = f.bytes;
        else if (is_message)
            messages[f.number - FIRST_MESSAGE] = f.bytes;
    }
    TRY(read_header(header, &version, out, v3));
    if (version != BOOKIE_VERSION_3)
        return ERR_UNSUPPORTED_VERSION;
    const unsigned at = message_of(v3->operation);
    if (at == 0 || !messages[at - FIRST_MESSAGE].base)
        return ERR_OK;
    return read_message(v3->operation, messages[at - FIRST_MESSAGE], out, v3);
}

/* ---- answers -------------------------------------------------------------------------------- */

int32_t bookie_v3_status(int32_t status)
{
    switch (status) {
    case BOOKIE_OK:
        return BOOKKEEPER__STATUS_CODE__EOK;
    case BOOKIE_NO_LEDGER:
        return BOOKKEEPER__STATUS_CODE__ENOLEDGER;
    case BOOKIE_NO_ENTRY:
        return BOOKKEEPER__STATUS_CODE__ENOENTRY;
    case BOOKIE_BAD_REQUEST:
        return BOOKKEEPER__STATUS_CODE__EBADREQ;
    case BOOKIE_EUA:
        return BOOKKEEPER__STATUS_CODE__EUA;
    case BOOKIE_BAD_VERSION:
        return BOOKKEEPER__STATUS_CODE__EBADVERSION;
    case BOOKIE_FENCED:
        return BOOKKEEPER__STATUS_CODE__EFENCED;
    case BOOKIE_READ_ONLY:
        return BOOKKEEPER__STATUS_CODE__EREADONLY;
    case BOOKIE_TOO_MANY:
        return BOOKKEEPER__STATUS_CODE__ETOOMANYREQUESTS;
    case BOOKIE_UNKNOWN:
        return BOOKKEEPER__STATUS_CODE__EUNKNOWNLEDGERSTATE;
    default:
        return BOOKKEEPER__STATUS_CODE__EIO;
    }
}

static void put_number(struct writer *w, unsigned field, int64_t n)
{
    write_varint(w, (uint64_t)field << 3 | VARINT);
    write_varint(w, (uint64_t)n);
}

static void put_head(struct writer *w, unsigned field, size_t len)
{
    write_varint(w, (uint64_t)field << 3 | BYTES);
    write_varint(w, len);
}

static void put_bytes(struct writer *w, unsigned field, struct view v)
{
    put_head(w, field, v.len);
    write_bytes(w, v.base, v.len);
}

static void put_read(struct writer *w, const struct bookie_v3_answer *a)
{
    put_number(w, 3, a->entry);
    if (a->has_lac)
        put_number(w, 5, a->max_lac);
    if (a->body_len > 0)
        put_head(w, 4, a->body_len);
}

static void put_read_lac(struct writer *w, const struct bookie_v3_answer *a)
{
    if (a->small.len > 0)
        put_bytes(w, 3, a->small);
    if (a->body_len > 0)
        put_head(w, 4, a->body_len);
}

static void put_info(struct writer *w, const struct bookie_v3_answer *a)
{
    put_number(w, 1, bookie_v3_status(a->status));
    if (a->total >= 0)
        put_number(w, 2, a->total);
    if (a->free_space >= 0)
        put_number(w, 3, a->free_space);
}

/* What it says of a ledger, the body last and without its bytes. */
static void put_of_ledger(struct writer *w, const struct bookie_v3_answer *a)
{
    put_number(w, 1, bookie_v3_status(a->status));
    put_number(w, 2, a->ledger);
    if (a->operation == BOOKKEEPER__OPERATION_TYPE__READ_ENTRY)
        put_read(w, a);
    else if (a->operation == BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY)
        put_number(w, 3, a->entry);
    else if (a->operation == BOOKKEEPER__OPERATION_TYPE__READ_LAC)
        put_read_lac(w, a);
    else if (a->body_len > 0)
        put_head(w, 3, a->body_len);
}

static void put_message(struct writer *w, const struct bookie_v3_answer *a)
{
    switch (a->operation) {
    case BOOKKEEPER__OPERATION_TYPE__AUTH:
        put_bytes(w, 1, a->small);
        put_bytes(w, 2, (struct view){0});
        break;
    case BOOKKEEPER__OPERATION_TYPE__GET_BOOKIE_INFO:
        put_info(w, a);
        break;
    case BOOKKEEPER__OPERATION_TYPE__START_TLS:
        break;
    default:
        put_of_ledger(w, a);
    }
}

static void put_header(struct writer *w, const struct bookie_v3_answer *a)
{
    uint8_t bytes[16];
    struct writer h = {.base = bytes, .room = sizeof bytes};

    put_number(&h, 1, BOOKKEEPER__PROTOCOL_VERSION__VERSION_THREE);
    put_number(&h, 2, a->operation);
    put_number(&h, 3, (int64_t)a->txn);
    put_bytes(w, 1, view_of(bytes, h.len));
    put_number(w, 2, bookie_v3_status(a->status));
}

size_t bookie_v3_write(uint8_t into[BOOKIE_V3_FRONT], const struct bookie_v3_answer *a)
{
    uint8_t bytes[BOOKIE_V3_FRONT];
    struct writer m = {.base = bytes, .room = sizeof bytes};
    struct writer w = {.base = into, .room = BOOKIE_V3_FRONT};
    const unsigned at = message_of(a->operation);

    write_u32(&w, 0);
    put_header(&w, a);
    if (at > 0) {
        put_message(&m, a);
        put_head(&w, at, m.len + a->body_len);
        write_bytes(&w, bytes, m.len);
    }
    struct writer front = {.base = into, .room = 4};
    write_u32(&front, (uint32_t)(w.len - 4 + a->body_len));
    return w.len;
}

/* ---- what a client asks --------------------------------------------------------------------- */

enum { INFO_RESPONSE = 105, STATUS = 2, TOTAL_SPACE = 2, FREE_SPACE = 3 };

struct slice bookie_info_request(void)
{
    /* header {version 3, GET_BOOKIE_INFO, txn 1}, request 105 {both spaces} */
    static const uint8_t bytes[] = {0, 0,    0, 13,   0x0a, 6, 0x08, 3, 0x10,
                                    8, 0x18, 1, 0xca, 0x06, 2, 0x08, 3};

    return slice_copy(bytes, sizeof bytes);
}

static enum err read_space(struct view message, uint64_t *free_space, uint64_t *total)
{
    struct fields f;

    TRY(read_fields(message, 0, &f));
    if (lacks(&f, F1 | F2 | F3))
        return ERR_MALFORMED;
    *free_space = f.value[FREE_SPACE];
    *total = f.value[TOTAL_SPACE];
    return f.value[1] == BOOKKEEPER__STATUS_CODE__EOK ? ERR_OK : ERR_IO;
}

enum err bookie_info_read(struct view frame, uint64_t *free_space, uint64_t *total)
{
    struct reader r = reader_of(frame);
    struct view message = {0};
    struct field f;

    while (reader_left(&r) > 0) {
        TRY(read_field(&r, &f));
        if (f.number == STATUS && f.kind == VARINT && f.value != BOOKKEEPER__STATUS_CODE__EOK)
            return ERR_IO;
        if (f.number == INFO_RESPONSE && f.kind == BYTES)
            message = f.bytes;
    }
    return message.base ? read_space(message, free_space, total) : ERR_MALFORMED;
}
