#include "client/consumer_inbox.h"

#include <string.h>

#include "common/mem.h"
#include "proto/command.h"
#include "proto/frame.h"
#include "proto/message.h"

enum {
    METADATA_ARENA = 32 * 1024 * 1024, /* tens of thousands of properties are allowed */
    SINGLE_ARENA = 16 * 1024 * 1024,
    PLAIN_MAX = 128 * 1024 * 1024,
};

struct inbox_frame {
    struct list_node node;
    struct slice bytes;
    struct message_id id;
    uint32_t redelivery_count;
    size_t n_ack_set;
    int64_t ack_set[];
};

struct chunked {
    struct list_node node;
    char *uuid;
    uint8_t *bytes;
    size_t len, total;
    int32_t next;
    struct message_id *ids;
    unsigned n_ids;
};

void inbox_init(struct inbox *b)
{
    *b = (struct inbox){0};
    list_init(&b->frames);
    list_init(&b->chunked);
    b->arena = arena_new(METADATA_ARENA);
    b->single_arena = arena_new(SINGLE_ARENA);
}

static void entry_close(struct inbox *b)
{
    slice_drop(&b->open.plain);
    b->open = (struct opened_entry){0};
    arena_reset(b->arena);
}

static void chunked_drop(struct inbox *b, struct chunked *c)
{
    list_remove(&c->node);
    b->n_chunked--;
    b->chunked_bytes -= c->total;
    mem_free(c->uuid);
    mem_free(c->bytes);
    mem_free(c->ids);
    mem_free(c);
}

static void frame_drop(struct inbox *b, struct inbox_frame *f)
{
    list_remove(&f->node);
    b->n_frames--;
    slice_drop(&f->bytes);
    mem_free(f);
}

void inbox_clear(struct inbox *b)
{
    entry_close(b);
    while (!list_empty(&b->frames))
        frame_drop(b, list_entry(b->frames.next, struct inbox_frame, node));
    while (!list_empty(&b->chunked))
        chunked_drop(b, list_entry(b->chunked.next, struct chunked, node));
}

void inbox_drop(struct inbox *b)
{
    inbox_clear(b);
    arena_drop(&b->arena);
    arena_drop(&b->single_arena);
}

void inbox_put(struct inbox *b, struct slice bytes, const Pulsar__Proto__CommandMessage *m)
{
    struct inbox_frame *f = mem_alloc(sizeof *f + m->n_ack_set * sizeof(int64_t));
    f->bytes = bytes;
    f->id = (struct message_id){.ledger = (int64_t)m->message_id->ledgerid,
                                .entry = (int64_t)m->message_id->entryid,
                                .partition = m->message_id->partition,
                                .batch_index = -1};
    f->redelivery_count = m->redelivery_count;
    f->n_ack_set = m->n_ack_set;
    if (m->n_ack_set > 0)
        memcpy(f->ack_set, m->ack_set, m->n_ack_set * sizeof(int64_t));
    list_push_back(&b->frames, &f->node);
    b->n_frames++;
}

/* ---- opening an entry ------------------------------------------------------------------------ */

/* *counted: the messages that the broker took this entry for, as far as it can be told. */
static enum err open_frame(struct inbox *b, const struct inbox_frame *f, struct view *payload,
                           unsigned *counted)
{
    struct frame frame;
    struct broker_entry ignored;
    struct view body;
    struct message_peek peek;
    ProtobufCMessage *meta;

    *counted = 1;
    TRY(frame_split(slice_view(f->bytes), &frame));
    TRY(broker_entry_read(frame.body, &ignored, &body));
    TRY(frame_split_body(body, &frame));
    TRY(message_peek(frame.metadata, &peek));
    *counted = (unsigned)peek.num_messages;
    TRY(frame_check(&frame));
    TRY(command_unpack(&pulsar__proto__message_metadata__descriptor, frame.metadata, b->arena,
                       &meta));
    b->open.meta = (Pulsar__Proto__MessageMetadata *)(void *)meta;
    *payload = frame.payload;
    return ERR_OK;
}

static enum err plain_of(const Pulsar__Proto__MessageMetadata *m, struct view packed,
                         struct slice *out)
{
    if (!m->has_compression || m->compression == PULSAR__PROTO__COMPRESSION_TYPE__NONE) {
        *out = slice_copy(packed.base, packed.len);
        return ERR_OK;
    }
    return decompress((enum compression)m->compression, packed, m->uncompressed_size, PLAIN_MAX,
                      out);
}

static bool is_piece(const Pulsar__Proto__MessageMetadata *m)
{
    return m->has_num_chunks_from_msg && m->num_chunks_from_msg > 1;
}

static enum err shape_of(struct inbox *b, const struct inbox_frame *f, struct batch_shape *out)
{
    enum { MESSAGE_LEAST = 4 }; /* bytes in a batch */
    int32_t size = b->open.meta->num_messages_in_batch;
    if (size < 1 || (size_t)size > b->open.plain.len / MESSAGE_LEAST)
        return ERR_MALFORMED;
    *out = (struct batch_shape){.size = (unsigned)size};
    if (f->n_ack_set == 0)
        return ERR_OK;
    int64_t *set = arena_alloc(b->arena, f->n_ack_set * sizeof *set);
    if (!set)
        return ERR_TOO_BIG;
    memcpy(set, f->ack_set, f->n_ack_set * sizeof *set);
    out->ack_set = set;
    out->n_ack_set = f->n_ack_set;
    return ERR_OK;
}

static unsigned wanted_from(const struct opened_entry *o)
{
    unsigned n = 0;
    for (unsigned i = o->index; i < o->shape.size; i++)
        n += batch_wants(&o->shape, i);
    return n;
}

/* ---- large messages -------------------------------------------------------------------------- */

static struct chunked *chunked_find(struct inbox *b, const char *uuid)
{
    list_each(&b->chunked, node)
    {
        struct chunked *c = list_entry(node, struct chunked, node);
        if (strcmp(c->uuid, uuid) == 0)
            return c;
    }
    return NULL;
}

static enum err note_id(struct chunked *c, struct message_id id)
{
    if (c->n_ids == CHUNKED_IDS_MAX)
        return ERR_TOO_BIG;
    c->ids = mem_resize(c->ids, (c->n_ids + 1) * sizeof *c->ids);
    c->ids[c->n_ids++] = id;
    return ERR_OK;
}

/* The first piece, of a message that was begun before or not: a producer that lost its connection
 * sends all of it again.  What came before is acknowledged with the message. */
static enum err chunked_begin(struct inbox *b, const Pulsar__Proto__MessageMetadata *m,
                              struct chunked **out)
{
    struct chunked *c = *out;
    size_t total = (size_t)m->total_chunk_msg_size;
    if (m->total_chunk_msg_size < 0 || total > CHUNKED_BYTES_MAX)
        return ERR_TOO_BIG;
    if (c && c->total == total) {
        c->len = 0;
        c->next = 0;
        return ERR_OK;
    }
    if (c)
        chunked_drop(b, c);
    while (b->n_chunked == CHUNKED_MAX ||
           (b->n_chunked > 0 && b->chunked_bytes + total > CHUNKED_BYTES_MAX))
        chunked_drop(b, list_entry(b->chunked.next, struct chunked, node));
    c = mem_new(struct chunked);
    c->uuid = mem_string(m->uuid);
    c->total = total;
    c->bytes = mem_alloc(c->total + 1);
    list_push_back(&b->chunked, &c->node);
    b->n_chunked++;
    b->chunked_bytes += total;
    *out = c;
    return ERR_OK;
}

/* A piece that came before, again, adds nothing. */
static enum err chunked_add(struct inbox *b, const Pulsar__Proto__MessageMetadata *m,
                            struct view piece, struct message_id id, struct chunked **out)
{
    if (!m->uuid)
        return ERR_MALFORMED;
    struct chunked *c = chunked_find(b, m->uuid);
    if (m->chunk_id == 0)
        TRY(chunked_begin(b, m, &c));
    if (!c)
        return ERR_NOT_FOUND;
    enum err err = note_id(c, id);
    bool again = m->chunk_id >= 0 && m->chunk_id < c->next;
    if (!err && !again && (m->chunk_id != c->next || piece.len > c->total - c->len))
        err = ERR_MALFORMED;
    if (err) {
        chunked_drop(b, c);
        return err;
    }
    if (!again) {
        memcpy(c->bytes + c->len, piece.base, piece.len);
        c->len += piece.len;
        c->next++;
    }
    *out = c;
    return ERR_OK;
}

/* ---- handing out ----------------------------------------------------------------------------- */

static const struct property *properties_of(struct arena *a, Pulsar__Proto__KeyValue **pairs,
                                            size_t n)
{
    struct property *all = n ? arena_alloc(a, n * sizeof *all) : NULL;
    for (size_t i = 0; all && i < n; i++)
        all[i] = (struct property){.key = pairs[i]->key, .value = pairs[i]->value};
    return all;
}

static void fill_from_metadata(struct inbox *b, struct received *m)
{
    const Pulsar__Proto__MessageMetadata *meta = b->open.meta;
    *m = (struct received){.id = b->open.id,
                           .key = meta->partition_key,
                           .producer_name = meta->producer_name,
                           .sequence_id = meta->sequence_id,
                           .publish_time = meta->publish_time,
                           .event_time = meta->event_time,
                           .redelivery_count = b->open.redelivery_count};
    m->properties = properties_of(b->single_arena, meta->properties, meta->n_properties);
    m->n_properties = m->properties ? (unsigned)meta->n_properties : 0;
}

static void fill_from_single(struct inbox *b, struct received *m,
                             const Pulsar__Proto__SingleMessageMetadata *s, unsigned index)
{
    m->key = s->partition_key;
    m->event_time = s->event_time;
    m->sequence_id = s->has_sequence_id ? s->sequence_id : m->sequence_id + index;
    m->properties = properties_of(b->single_arena, s->properties, s->n_properties);
    m->n_properties = m->properties ? (unsigned)s->n_properties : 0;
}

static enum inbox_result damaged(struct inbox *b, struct inbox_next *out, enum err err)
{
    out->message = (struct received){.id = b->open.id};
    out->err = err;
    entry_close(b);
    return INBOX_DAMAGED;
}

static enum inbox_result next_of_batch(struct inbox *b, struct inbox_next *out)
{
    struct opened_entry *o = &b->open;
    Pulsar__Proto__SingleMessageMetadata *single;
    struct view payload;

    while (o->index < o->shape.size) {
        arena_reset(b->single_arena);
        enum err err = batch_next(&o->rest, b->single_arena, &single, &payload);
        if (err) {
            out->permits = wanted_from(o);
            return damaged(b, out, err == ERR_END ? ERR_MALFORMED : err);
        }
        unsigned index = o->index++;
        if (!batch_wants(&o->shape, index))
            continue;
        fill_from_metadata(b, &out->message);
        fill_from_single(b, &out->message, single, index);
        out->message.id.batch_index = (int32_t)index;
        out->message.payload = payload;
        out->permits = 1;
        out->batch = o->shape;
        return INBOX_MESSAGE;
    }
    entry_close(b);
    return INBOX_PIECE;
}

static enum inbox_result next_piece(struct inbox *b, struct view piece, struct inbox_next *out)
{
    struct chunked *c = NULL;
    out->permits = 1;
    enum err err = chunked_add(b, b->open.meta, piece, b->open.id, &c);
    if (err)
        return damaged(b, out, err);
    if (c->next < b->open.meta->num_chunks_from_msg) {
        entry_close(b);
        return INBOX_PIECE;
    }
    err = c->len < c->total ? ERR_MALFORMED
                            : plain_of(b->open.meta, view_of(c->bytes, c->len), &b->open.plain);
    out->chunk_ids = c->ids;
    out->n_chunk_ids = c->n_ids - 1;
    c->ids = NULL;
    chunked_drop(b, c);
    if (err)
        return damaged(b, out, err);
    fill_from_metadata(b, &out->message);
    out->message.payload = slice_view(b->open.plain);
    return INBOX_MESSAGE;
}

static enum inbox_result next_whole(struct inbox *b, const struct inbox_frame *f,
                                    struct view payload, struct inbox_next *out)
{
    struct opened_entry *o = &b->open;
    enum err err = plain_of(o->meta, payload, &o->plain);
    if (!err && o->meta->has_num_messages_in_batch)
        err = shape_of(b, f, &o->shape);
    if (err)
        return damaged(b, out, err);
    if (o->shape.size > 0) {
        o->rest = slice_view(o->plain);
        out->permits = 0;
        return next_of_batch(b, out);
    }
    fill_from_metadata(b, &out->message);
    out->message.payload = slice_view(o->plain);
    return INBOX_MESSAGE;
}

/* What is opened stays so until the next call: it is what the message handed out looks into. */
static enum inbox_result open_next(struct inbox *b, struct inbox_next *out)
{
    struct inbox_frame *f = list_entry(b->frames.next, struct inbox_frame, node);
    struct view payload;
    enum inbox_result result;

    b->open =
        (struct opened_entry){.active = true, .id = f->id, .redelivery_count = f->redelivery_count};
    arena_reset(b->single_arena);
    enum err err = open_frame(b, f, &payload, &out->permits);
    if (err)
        result = damaged(b, out, err);
    else if (is_piece(b->open.meta))
        result = next_piece(b, payload, out);
    else
        result = next_whole(b, f, payload, out);
    frame_drop(b, f);
    return result;
}

enum inbox_result inbox_next(struct inbox *b, struct inbox_next *out)
{
    *out = (struct inbox_next){0};
    if (b->open.active && b->open.index < b->open.shape.size)
        return next_of_batch(b, out);
    if (b->open.active)
        entry_close(b);
    if (list_empty(&b->frames))
        return INBOX_EMPTY;
    return open_next(b, out);
}
