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
    mem_free(c->uuid);
    mem_free(c->bytes);
    mem_free(c->ids);
    mem_free(c);
}

static void frame_drop(struct inbox_frame *f)
{
    list_remove(&f->node);
    slice_drop(&f->bytes);
    mem_free(f);
}

void inbox_clear(struct inbox *b)
{
    entry_close(b);
    while (!list_empty(&b->frames))
        frame_drop(list_entry(b->frames.next, struct inbox_frame, node));
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
}

/* ---- opening an entry ------------------------------------------------------------------------ */

static enum err open_frame(struct inbox *b, const struct inbox_frame *f, struct view *payload)
{
    struct frame frame;
    struct broker_entry ignored;
    struct view body;
    struct opened_entry *o = &b->open;

    TRY(frame_split(slice_view(f->bytes), &frame));
    TRY(broker_entry_read(frame.body, &ignored, &body));
    TRY(frame_split_body(body, &frame));
    TRY(frame_check(&frame));
    ProtobufCMessage *meta;
    TRY(command_unpack(&pulsar__proto__message_metadata__descriptor, frame.metadata, b->arena,
                       &meta));
    o->meta = (Pulsar__Proto__MessageMetadata *)(void *)meta;
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

static void copy_ack_set(struct inbox *b, const struct inbox_frame *f)
{
    if (f->n_ack_set == 0)
        return;
    int64_t *set = arena_alloc(b->arena, f->n_ack_set * sizeof *set);
    if (!set)
        return;
    memcpy(set, f->ack_set, f->n_ack_set * sizeof *set);
    b->open.ack_set = set;
    b->open.n_ack_set = f->n_ack_set;
}

static bool wanted(const struct opened_entry *o, int32_t index)
{
    size_t word = (size_t)index / 64;
    if (!o->ack_set)
        return true;
    return word < o->n_ack_set && ((uint64_t)o->ack_set[word] >> (index % 64) & 1) != 0;
}

static unsigned count_wanted(const struct opened_entry *o)
{
    unsigned n = 0;
    for (int32_t i = 0; i < o->count; i++)
        n += wanted(o, i);
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

static struct chunked *chunked_begin(struct inbox *b, const Pulsar__Proto__MessageMetadata *m)
{
    if (m->total_chunk_msg_size < 0 || m->total_chunk_msg_size > CHUNKED_BYTES_MAX)
        return NULL;
    if (b->n_chunked == CHUNKED_MAX)
        chunked_drop(b, list_entry(b->chunked.next, struct chunked, node));
    struct chunked *c = mem_new(struct chunked);
    c->uuid = mem_string(m->uuid);
    c->total = (size_t)m->total_chunk_msg_size;
    c->bytes = mem_alloc(c->total + 1);
    list_push_back(&b->chunked, &c->node);
    b->n_chunked++;
    return c;
}

/* Adds a piece.  A first piece seen again starts the message anew (it was redelivered). */
static enum err chunked_add(struct inbox *b, const Pulsar__Proto__MessageMetadata *m,
                            struct view piece, struct message_id id, struct chunked **out)
{
    struct chunked *c = m->uuid ? chunked_find(b, m->uuid) : NULL;
    if (!m->uuid)
        return ERR_MALFORMED;
    if (c && m->chunk_id == 0) {
        chunked_drop(b, c);
        c = NULL;
    }
    if (!c && m->chunk_id == 0)
        c = chunked_begin(b, m);
    if (!c)
        return m->chunk_id == 0 ? ERR_TOO_BIG : ERR_NOT_FOUND;
    if (m->chunk_id != c->next || piece.len > c->total - c->len) {
        chunked_drop(b, c);
        return ERR_MALFORMED;
    }
    memcpy(c->bytes + c->len, piece.base, piece.len);
    c->len += piece.len;
    c->next++;
    c->ids = mem_resize(c->ids, (c->n_ids + 1) * sizeof *c->ids);
    c->ids[c->n_ids++] = id;
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
                             const Pulsar__Proto__SingleMessageMetadata *s)
{
    m->key = s->partition_key;
    m->event_time = s->event_time;
    m->sequence_id = s->has_sequence_id ? s->sequence_id : m->sequence_id + (uint64_t)b->open.index;
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

    while (o->index < o->count) {
        arena_reset(b->single_arena);
        enum err err = batch_next(&o->rest, b->single_arena, &single, &payload);
        if (err)
            return damaged(b, out, err == ERR_END ? ERR_MALFORMED : err);
        int32_t index = o->index++;
        if (!wanted(o, index))
            continue;
        fill_from_metadata(b, &out->message);
        o->index--;
        fill_from_single(b, &out->message, single);
        o->index++;
        out->message.id.batch_index = index;
        out->message.payload = payload;
        out->permits = 1;
        out->batch_size = (unsigned)o->count;
        out->batch_wanted = count_wanted(o);
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
    err = plain_of(b->open.meta, view_of(c->bytes, c->len), &b->open.plain);
    out->chunk_ids = c->ids;
    out->n_chunk_ids = c->n_ids - 1;
    c->ids = NULL;
    chunked_drop(b, c);
    if (err)
        return damaged(b, out, err);
    fill_from_metadata(b, &out->message);
    out->message.payload = slice_view(b->open.plain);
    b->open.index = b->open.count = 0; /* closed by the next call */
    return INBOX_MESSAGE;
}

static enum inbox_result open_next(struct inbox *b, struct inbox_next *out)
{
    struct inbox_frame *f = list_entry(b->frames.next, struct inbox_frame, node);
    struct opened_entry *o = &b->open;
    struct view payload;

    *o =
        (struct opened_entry){.active = true, .id = f->id, .redelivery_count = f->redelivery_count};
    copy_ack_set(b, f);
    arena_reset(b->single_arena);
    out->permits = 1;
    enum err err = open_frame(b, f, &payload);
    enum inbox_result result = INBOX_DAMAGED;
    if (!err && is_piece(o->meta)) {
        result = next_piece(b, payload, out);
    } else {
        if (!err)
            err = plain_of(o->meta, payload, &o->plain);
        if (err) {
            result = damaged(b, out, err);
        } else if (o->meta->has_num_messages_in_batch) {
            o->count = o->meta->num_messages_in_batch;
            o->rest = slice_view(o->plain);
            out->permits = 0;
            result = next_of_batch(b, out);
        } else {
            fill_from_metadata(b, &out->message);
            out->message.payload = slice_view(o->plain);
            result = INBOX_MESSAGE;
        }
    }
    frame_drop(f);
    return result;
}

enum inbox_result inbox_next(struct inbox *b, struct inbox_next *out)
{
    *out = (struct inbox_next){0};
    if (b->open.active && b->open.index < b->open.count)
        return next_of_batch(b, out);
    if (b->open.active)
        entry_close(b);
    if (list_empty(&b->frames))
        return INBOX_EMPTY;
    return open_next(b, out);
}
