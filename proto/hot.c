#include "proto/hot.h"

#include "proto/wire.h"

enum { VARINT = 0, BYTES = 2 };
enum { BYTE_MAX = 0x7f }; /* of a varint of one byte */
#define TAG(number, wire) ((unsigned)(number) << 3 | (wire))

typedef Pulsar__Proto__BaseCommand base_command;
typedef Pulsar__Proto__MessageIdData message_id;

/* ---- reading: false is "not here" --------------------------------------------------------------
 */

/* The next field's tag, and its number or bytes; others than these two are unusual. */
static bool next_field(struct reader *r, uint8_t *tag, uint64_t *value, struct view *bytes)
{
    if (read_u8(r, tag) || *tag > BYTE_MAX || read_varint(r, value))
        return false;
    if ((*tag & 7) == VARINT)
        return true;
    return (*tag & 7) == BYTES && read_view(r, *value, bytes) == ERR_OK;
}

static bool read_id(struct view bytes, message_id *id)
{
    struct reader r = reader_of(bytes);
    uint64_t value;
    uint8_t tag;
    unsigned seen = 0;

    pulsar__proto__message_id_data__init(id);
    while (reader_left(&r)) {
        if (!next_field(&r, &tag, &value, &(struct view){0}))
            return false;
        switch (tag) {
        case TAG(1, VARINT):
            id->ledgerid = value;
            seen |= 1;
            break;
        case TAG(2, VARINT):
            id->entryid = value;
            seen |= 2;
            break;
        case TAG(3, VARINT):
            id->has_partition = true;
            id->partition = (int32_t)value;
            break;
        case TAG(4, VARINT):
            id->has_batch_index = true;
            id->batch_index = (int32_t)value;
            break;
        case TAG(6, VARINT):
            id->has_batch_size = true;
            id->batch_size = (int32_t)value;
            break;
        default:
            return false;
        }
    }
    return seen == 3;
}

static bool take_id(struct view bytes, struct arena *arena, message_id **to)
{
    if (*to || !(*to = arena_alloc(arena, sizeof **to)))
        return false;
    return read_id(bytes, *to);
}

static bool read_send(struct reader *r, Pulsar__Proto__CommandSend *m)
{
    uint64_t value;
    uint8_t tag;
    unsigned seen = 0;

    pulsar__proto__command_send__init(m);
    while (reader_left(r)) {
        if (!next_field(r, &tag, &value, &(struct view){0}))
            return false;
        switch (tag) {
        case TAG(1, VARINT):
            m->producer_id = value;
            seen |= 1;
            break;
        case TAG(2, VARINT):
            m->sequence_id = value;
            seen |= 2;
            break;
        case TAG(3, VARINT):
            m->has_num_messages = true;
            m->num_messages = (int32_t)value;
            break;
        case TAG(6, VARINT):
            m->has_highest_sequence_id = true;
            m->highest_sequence_id = value;
            break;
        case TAG(7, VARINT):
            m->has_is_chunk = true;
            m->is_chunk = value != 0;
            break;
        default:
            return false;
        }
    }
    return seen == 3;
}

static bool read_receipt(struct reader *r, struct arena *arena,
                         Pulsar__Proto__CommandSendReceipt *m)
{
    uint64_t value;
    uint8_t tag;
    struct view bytes;
    unsigned seen = 0;

    pulsar__proto__command_send_receipt__init(m);
    while (reader_left(r)) {
        if (!next_field(r, &tag, &value, &bytes))
            return false;
        switch (tag) {
        case TAG(1, VARINT):
            m->producer_id = value;
            seen |= 1;
            break;
        case TAG(2, VARINT):
            m->sequence_id = value;
            seen |= 2;
            break;
        case TAG(3, BYTES):
            if (!take_id(bytes, arena, &m->message_id))
                return false;
            break;
        case TAG(4, VARINT):
            m->has_highest_sequence_id = true;
            m->highest_sequence_id = value;
            break;
        default:
            return false;
        }
    }
    return seen == 3;
}

static bool read_message(struct reader *r, struct arena *arena, Pulsar__Proto__CommandMessage *m)
{
    uint64_t value;
    uint8_t tag;
    struct view bytes;
    bool seen = false;

    pulsar__proto__command_message__init(m);
    while (reader_left(r)) {
        if (!next_field(r, &tag, &value, &bytes))
            return false;
        switch (tag) {
        case TAG(1, VARINT):
            m->consumer_id = value;
            seen = true;
            break;
        case TAG(2, BYTES):
            if (!take_id(bytes, arena, &m->message_id))
                return false;
            break;
        case TAG(3, VARINT):
            m->has_redelivery_count = true;
            m->redelivery_count = (uint32_t)value;
            break;
        case TAG(5, VARINT):
            m->has_consumer_epoch = true;
            m->consumer_epoch = value;
            break;
        default:
            return false;
        }
    }
    return seen && m->message_id;
}

/* An ack of one message, or of several: the ids are counted first. */
static bool read_ack(struct reader *r, struct arena *arena, Pulsar__Proto__CommandAck *m)
{
    struct reader count = *r;
    uint64_t value;
    uint8_t tag;
    struct view bytes;
    unsigned seen = 0;
    size_t ids = 0;

    pulsar__proto__command_ack__init(m);
    while (reader_left(&count)) {
        if (!next_field(&count, &tag, &value, &bytes))
            return false;
        ids += tag == TAG(3, BYTES);
    }
    if (!(m->message_id = arena_alloc(arena, (ids + 1) * sizeof(message_id *))))
        return false;
    while (reader_left(r)) {
        if (!next_field(r, &tag, &value, &bytes))
            return false;
        switch (tag) {
        case TAG(1, VARINT):
            m->consumer_id = value;
            seen |= 1;
            break;
        case TAG(2, VARINT):
            m->ack_type = (Pulsar__Proto__CommandAck__AckType)value;
            seen |= 2;
            break;
        case TAG(3, BYTES):
            if (!take_id(bytes, arena, &m->message_id[m->n_message_id++]))
                return false;
            break;
        case TAG(8, VARINT):
            m->has_request_id = true;
            m->request_id = value;
            break;
        default:
            return false;
        }
    }
    return seen == 3;
}

static bool read_flow(struct reader *r, Pulsar__Proto__CommandFlow *m)
{
    uint64_t value;
    uint8_t tag;
    unsigned seen = 0;

    pulsar__proto__command_flow__init(m);
    while (reader_left(r)) {
        if (!next_field(r, &tag, &value, &(struct view){0}))
            return false;
        if (tag == TAG(1, VARINT)) {
            m->consumer_id = value;
            seen |= 1;
        } else if (tag == TAG(2, VARINT)) {
            m->messagepermits = (uint32_t)value;
            seen |= 2;
        } else {
            return false;
        }
    }
    return seen == 3;
}

/* Its arena_alloc() may fail, and what is left in the arena then is gone with the next reset. */
#define READ_SUB(member_, ...)                                      \
    do {                                                            \
        if (!(c->member_ = arena_alloc(arena, sizeof *c->member_))) \
            return false;                                           \
        return __VA_ARGS__;                                         \
    } while (0)

static bool read_sub(struct reader *r, struct arena *arena, base_command *c)
{
    switch (c->type) {
    case PULSAR__PROTO__BASE_COMMAND__TYPE__SEND:
        READ_SUB(send, read_send(r, c->send));
    case PULSAR__PROTO__BASE_COMMAND__TYPE__SEND_RECEIPT:
        READ_SUB(send_receipt, read_receipt(r, arena, c->send_receipt));
    case PULSAR__PROTO__BASE_COMMAND__TYPE__MESSAGE:
        READ_SUB(message, read_message(r, arena, c->message));
    case PULSAR__PROTO__BASE_COMMAND__TYPE__ACK:
        READ_SUB(ack, read_ack(r, arena, c->ack));
    case PULSAR__PROTO__BASE_COMMAND__TYPE__FLOW:
        READ_SUB(flow, read_flow(r, c->flow));
    default:
        return false;
    }
}

bool hot_read(struct view bytes, struct arena *arena, base_command **out)
{
    struct reader r = reader_of(bytes);
    uint8_t tag, type, sub;
    uint64_t len;

    /* type, then the sub-message of its number, and nothing else */
    if (read_u8(&r, &tag) || read_u8(&r, &type) || read_u8(&r, &sub) || read_varint(&r, &len) ||
        tag != TAG(1, VARINT) || type > 15 || sub != TAG(type, BYTES) || len != reader_left(&r))
        return false;
    switch (type) {
    case PULSAR__PROTO__BASE_COMMAND__TYPE__SEND:
    case PULSAR__PROTO__BASE_COMMAND__TYPE__SEND_RECEIPT:
    case PULSAR__PROTO__BASE_COMMAND__TYPE__MESSAGE:
    case PULSAR__PROTO__BASE_COMMAND__TYPE__ACK:
    case PULSAR__PROTO__BASE_COMMAND__TYPE__FLOW:
        break;
    default:
        return false;
    }
    base_command *c = arena_alloc(arena, sizeof *c);
    if (!c)
        return false;
    pulsar__proto__base_command__init(c);
    c->type = type;
    *out = c;
    return read_sub(&r, arena, c);
}

/* ---- writing
 * ------------------------------------------------------------------------------------- */

static void put(struct writer *w, unsigned number, uint64_t value)
{
    write_u8(w, (uint8_t)TAG(number, VARINT));
    write_varint(w, value);
}

/* As protobuf writes an int32: negative ones with ten bytes. */
static void put_int(struct writer *w, unsigned number, int32_t value)
{
    put(w, number, (uint64_t)(int64_t)value);
}

static bool put_id(struct writer *w, unsigned number, const message_id *id)
{
    if (id->n_ack_set || id->first_chunk_message_id || id->base.n_unknown_fields)
        return false;
    write_u8(w, (uint8_t)TAG(number, BYTES));
    const size_t size = w->len;
    write_u8(w, 0);
    put(w, 1, id->ledgerid);
    put(w, 2, id->entryid);
    if (id->has_partition)
        put_int(w, 3, id->partition);
    if (id->has_batch_index)
        put_int(w, 4, id->batch_index);
    if (id->has_batch_size)
        put_int(w, 6, id->batch_size);
    w->base[size] = (uint8_t)(w->len - size - 1); /* five numbers: less than 128 bytes */
    return true;
}

static bool write_send(struct writer *w, const Pulsar__Proto__CommandSend *m)
{
    if (m->base.n_unknown_fields || m->message_id || m->has_marker || m->has_txnid_least_bits ||
        m->has_txnid_most_bits)
        return false;
    put(w, 1, m->producer_id);
    put(w, 2, m->sequence_id);
    if (m->has_num_messages)
        put_int(w, 3, m->num_messages);
    if (m->has_highest_sequence_id)
        put(w, 6, m->highest_sequence_id);
    if (m->has_is_chunk)
        put(w, 7, m->is_chunk != 0);
    return true;
}

static bool write_receipt(struct writer *w, const Pulsar__Proto__CommandSendReceipt *m)
{
    if (m->base.n_unknown_fields || !m->message_id)
        return false;
    put(w, 1, m->producer_id);
    put(w, 2, m->sequence_id);
    if (!put_id(w, 3, m->message_id))
        return false;
    if (m->has_highest_sequence_id)
        put(w, 4, m->highest_sequence_id);
    return true;
}

static bool write_message(struct writer *w, const Pulsar__Proto__CommandMessage *m)
{
    if (m->base.n_unknown_fields || m->n_ack_set)
        return false;
    put(w, 1, m->consumer_id);
    if (!put_id(w, 2, m->message_id))
        return false;
    if (m->has_redelivery_count)
        put(w, 3, m->redelivery_count);
    if (m->has_consumer_epoch)
        put(w, 5, m->consumer_epoch);
    return true;
}

static bool write_flow(struct writer *w, const Pulsar__Proto__CommandFlow *m)
{
    if (m->base.n_unknown_fields)
        return false;
    put(w, 1, m->consumer_id);
    put(w, 2, m->messagepermits);
    return true;
}

/* The one that almost every ack is. */
static bool write_ack(struct writer *w, const Pulsar__Proto__CommandAck *m)
{
    if (m->base.n_unknown_fields || m->n_message_id != 1 || m->n_properties ||
        m->has_validation_error || m->has_txnid_least_bits || m->has_txnid_most_bits)
        return false;
    put(w, 1, m->consumer_id);
    put(w, 2, (uint64_t)m->ack_type);
    if (!put_id(w, 3, m->message_id[0]))
        return false;
    if (m->has_request_id)
        put(w, 8, m->request_id);
    return true;
}

static bool write_sub(struct writer *w, const base_command *c)
{
    switch (c->type) {
    case PULSAR__PROTO__BASE_COMMAND__TYPE__SEND:
        return write_send(w, c->send);
    case PULSAR__PROTO__BASE_COMMAND__TYPE__SEND_RECEIPT:
        return write_receipt(w, c->send_receipt);
    case PULSAR__PROTO__BASE_COMMAND__TYPE__MESSAGE:
        return write_message(w, c->message);
    case PULSAR__PROTO__BASE_COMMAND__TYPE__ACK:
        return write_ack(w, c->ack);
    case PULSAR__PROTO__BASE_COMMAND__TYPE__FLOW:
        return write_flow(w, c->flow);
    default:
        return false;
    }
}

size_t hot_write(const base_command *c, uint8_t into[HOT_MAX])
{
    enum { FRONT = 4 };
    struct writer w = {.base = into, .len = FRONT, .room = HOT_MAX};

    if (c->base.n_unknown_fields || !write_sub(&w, c) || w.len - FRONT > BYTE_MAX)
        return 0;
    into[0] = TAG(1, VARINT);
    into[1] = (uint8_t)c->type;
    into[2] = (uint8_t)TAG(c->type, BYTES);
    into[3] = (uint8_t)(w.len - FRONT);
    return w.len;
}
