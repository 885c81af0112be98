#include "client/producer_ops.h"

#include <assert.h>
#include <string.h>

#include "common/mem.h"
#include "proto/command.h"
#include "proto/message.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

enum {
    BODY_FRONT = FRAME_MAGIC_SIZE + 4, /* before the metadata */
    PIECE_LEAST_PART = 4,              /* of what a frame may hold: smaller pieces are refused */
};

/* protobuf-c wants an array of pointers to the pairs. */
struct pairs {
    Pulsar__Proto__KeyValue *at;
    Pulsar__Proto__KeyValue **to;
};

static struct pairs pairs_of(const struct send *s)
{
    struct pairs p = {0};
    if (s->n_properties == 0)
        return p;
    p.at = mem_alloc(s->n_properties * sizeof *p.at);
    p.to = mem_alloc(s->n_properties * sizeof *p.to);
    for (unsigned i = 0; i < s->n_properties; i++) {
        pulsar__proto__key_value__init(&p.at[i]);
        p.at[i].key = TEXT(s->properties[i].key);
        p.at[i].value = TEXT(s->properties[i].value);
        p.to[i] = &p.at[i];
    }
    return p;
}

static void pairs_drop(struct pairs *p)
{
    mem_free(p->at);
    mem_free(p->to);
}

static struct op *op_new(uint64_t sequence_id, unsigned messages)
{
    struct op *op = mem_new(struct op);
    op->sequence_id = sequence_id;
    op->messages = messages;
    return op;
}

static void op_tell(struct op *op, const struct send *s)
{
    op->sends = mem_alloc(sizeof *op->sends);
    op->sends[0] = (struct send *)(uintptr_t)s;
    op->n_sends = 1;
}

static void fill_metadata(Pulsar__Proto__MessageMetadata *m, const struct op_source *from,
                          const struct pairs *properties)
{
    const struct send *s = from->send;
    pulsar__proto__message_metadata__init(m);
    m->producer_name = TEXT(from->producer_name);
    m->sequence_id = from->sequence_id;
    m->publish_time = loop_wall_ms();
    m->partition_key = TEXT(s->key);
    m->n_properties = s->n_properties;
    m->properties = properties->to;
    m->has_event_time = s->event_time != 0;
    m->event_time = s->event_time;
}

/* What to send of the plain bytes; `packed` is for the caller to drop and may stay empty.
 * Compression that does not help is not used: the receiver would pay for nothing. */
static struct view squeeze(Pulsar__Proto__MessageMetadata *m, enum compression how,
                           struct view plain, struct slice *packed)
{
    if (how == COMPRESS_NONE || compress_with(how, plain, packed))
        return plain;
    if (packed->len >= plain.len) {
        slice_drop(packed);
        return plain;
    }
    m->has_compression = true;
    m->compression = (Pulsar__Proto__CompressionType)how;
    m->has_uncompressed_size = true;
    m->uncompressed_size = (uint32_t)plain.len;
    return slice_view(*packed);
}

static struct op *op_of_message(const struct op_source *from)
{
    struct op *op = op_new(from->sequence_id, 1);
    op->highest = from->sequence_id;
    return op;
}

static struct op **single(const struct op_source *from, const Pulsar__Proto__MessageMetadata *m,
                          struct view payload)
{
    struct op **all = mem_alloc(sizeof(struct op *));
    all[0] = op_of_message(from);
    all[0]->body = message_body(m, payload);
    op_tell(all[0], from->send);
    return all;
}

static struct op **pieces(const struct op_source *from, Pulsar__Proto__MessageMetadata *m,
                          struct view payload, size_t room, unsigned n)
{
    struct op **all = mem_alloc(n * sizeof(struct op *));
    char *uuid = mem_format("%s-%llu", from->producer_name, (unsigned long long)from->sequence_id);
    m->uuid = uuid;
    m->has_num_chunks_from_msg = m->has_total_chunk_msg_size = m->has_chunk_id = true;
    m->num_chunks_from_msg = (int32_t)n;
    m->total_chunk_msg_size = (int32_t)payload.len;
    for (unsigned i = 0; i < n; i++) {
        size_t at = i * room;
        m->chunk_id = (int32_t)i;
        all[i] = op_of_message(from);
        all[i]->is_chunk = true;
        all[i]->body = message_body(
            m, view_of(payload.base + at, payload.len - at < room ? payload.len - at : room));
    }
    op_tell(all[n - 1], from->send);
    mem_free(uuid);
    return all;
}

/* What stands around the payload in each piece, at most. */
static size_t around_piece(const struct op_source *from, const Pulsar__Proto__MessageMetadata *m)
{
    enum { UUID_AND_NUMBERS = 80 };
    return pulsar__proto__message_metadata__get_packed_size(m) + BODY_FRONT +
           strlen(from->producer_name) + UUID_AND_NUMBERS;
}

/* Without counting: most messages are far from any limit. */
static bool surely_fits(const struct op_source *from, size_t payload, size_t max)
{
    enum { NUMBERS_MOST = 256 }; /* all that is neither a name nor a key */
    size_t names = strlen(from->producer_name) + (from->send->key ? strlen(from->send->key) : 0);
    return from->send->n_properties == 0 && payload + names + NUMBERS_MOST <= max;
}

static struct op **whole_or_pieces(const struct op_source *from, Pulsar__Proto__MessageMetadata *m,
                                   struct view payload, size_t max, bool chunking, unsigned *n)
{
    *n = 1;
    if (surely_fits(from, payload.len, max))
        return single(from, m, payload);
    size_t alone = pulsar__proto__message_metadata__get_packed_size(m) + BODY_FRONT + payload.len;
    size_t around = around_piece(from, m);
    if (alone <= max)
        return single(from, m, payload);
    if (!chunking || around >= max - max / PIECE_LEAST_PART)
        return NULL;
    *n = (unsigned)((payload.len + (max - around) - 1) / (max - around));
    return pieces(from, m, payload, max - around, *n);
}

struct op **op_build(const struct op_source *from, size_t max, bool chunking, unsigned *n)
{
    Pulsar__Proto__MessageMetadata m;
    struct pairs properties = pairs_of(from->send);
    struct slice packed = {0};

    fill_metadata(&m, from, &properties);
    const struct view plain = view_of(from->send->payload, from->send->len);
    const struct view payload = squeeze(&m, from->compression, plain, &packed);
    struct op **all = whole_or_pieces(from, &m, payload, max, chunking, n);
    slice_drop(&packed);
    pairs_drop(&properties);
    return all;
}

void op_drop(struct op **op)
{
    if (!*op)
        return;
    slice_drop(&(*op)->body);
    mem_free((*op)->sends);
    mem_free(*op);
    *op = NULL;
}

size_t batch_cost(const struct send *s)
{
    enum { FIXED = 64, A_PROPERTY = 24 };
    size_t cost = FIXED + s->len + (s->key ? strlen(s->key) : 0);
    for (unsigned i = 0; i < s->n_properties; i++)
        cost += A_PROPERTY + strlen(s->properties[i].key) + strlen(s->properties[i].value);
    return cost;
}

/* A broker sees of a batch one key only, and gives the whole to that key's consumer. */
bool batch_suits(const struct batch *b, const struct send *s)
{
    if (b->n == 0)
        return true;
    return b->key && s->key ? strcmp(b->key, s->key) == 0 : !b->key && !s->key;
}

void batch_put(struct batch *b, struct send *s)
{
    Pulsar__Proto__SingleMessageMetadata single = PULSAR__PROTO__SINGLE_MESSAGE_METADATA__INIT;
    struct pairs properties = pairs_of(s);

    if (b->n == b->sends_room) {
        b->sends_room = b->sends_room ? b->sends_room * 2 : 64;
        b->sends = mem_resize(b->sends, b->sends_room * sizeof(struct send *));
    }
    if (b->n == 0)
        b->key = s->key ? mem_string(s->key) : NULL;
    single.payload_size = (int32_t)s->len;
    single.partition_key = TEXT(s->key);
    single.n_properties = s->n_properties;
    single.properties = properties.to;
    single.has_event_time = s->event_time != 0;
    single.event_time = s->event_time;
    single.has_sequence_id = true;
    single.sequence_id = s->sequence_id;
    batch_add(&b->base, &b->len, &b->room, &single, view_of(s->payload, s->len));
    b->sends[b->n++] = s;
    pairs_drop(&properties);
}

struct op *batch_close(struct batch *b, const char *producer_name, enum compression compression)
{
    assert(b->n > 0);
    Pulsar__Proto__MessageMetadata m;
    const struct send keyed = {.key = b->key};
    struct op *op = op_new(b->sends[0]->sequence_id, b->n);
    const struct op_source from = {
        .producer_name = producer_name, .sequence_id = op->sequence_id, .send = &keyed};

    op->is_batch = true;
    op->highest = b->sends[b->n - 1]->sequence_id;
    fill_metadata(&m, &from, &(struct pairs){0});
    m.has_num_messages_in_batch = m.has_highest_sequence_id = true;
    m.num_messages_in_batch = (int32_t)b->n;
    m.highest_sequence_id = op->highest;
    struct slice packed = {0};
    op->body = message_body(&m, squeeze(&m, compression, view_of(b->base, b->len), &packed));
    op->sends = b->sends;
    op->n_sends = b->n;
    slice_drop(&packed);
    mem_free(b->key);
    b->key = NULL;
    b->sends = NULL;
    b->n = b->sends_room = 0;
    b->len = 0;
    return op;
}

void batch_drop(struct batch *b)
{
    mem_free(b->base);
    mem_free(b->sends);
    mem_free(b->key);
    *b = (struct batch){0};
}

struct slice op_front(const struct op *op, uint64_t producer_id)
{
    Pulsar__Proto__BaseCommand base = PULSAR__PROTO__BASE_COMMAND__INIT;
    Pulsar__Proto__CommandSend send = PULSAR__PROTO__COMMAND_SEND__INIT;
    base.type = PULSAR__PROTO__BASE_COMMAND__TYPE__SEND;
    base.send = &send;
    send.producer_id = producer_id;
    send.sequence_id = op->sequence_id;
    send.has_num_messages = op->messages > 1;
    send.num_messages = (int32_t)op->messages;
    send.has_highest_sequence_id = op->is_batch;
    send.highest_sequence_id = op->highest;
    send.has_is_chunk = op->is_chunk;
    send.is_chunk = op->is_chunk;
    return command_front(&base, op->body.len);
}
