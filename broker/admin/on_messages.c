/* One message: what is in it, as bytes, and what is known of it, as headers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "broker/admin/on_subscription.h"
#include "broker/admin/subject.h"
#include "broker/broker.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proto/command.h"
#include "proto/compress.h"
#include "proto/frame.h"
#include "proto/message.h"

enum { PEEK_MAX = 10000, ARENA = 1024 * 1024 };

/* ---- on the topic's loop ---- */

static void entry_came(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                       struct position next)
{
    struct visit *v = container_of(r, struct visit, read);
    bool there = n > 0 && position_equal(entries[0].at, v->position);

    (void)next;
    if (there)
        v->entry = slice_share(entries[0].payload);
    for (unsigned i = 0; i < n; i++)
        slice_drop(&entries[i].payload);
    if (there)
        visit_leaves(v, ERR_OK, NULL);
    else if (err && err_class(err) == CLASS_RETRY)
        visit_leaves(v, err, NULL);
    else
        visit_leaves(v, ERR_NOT_FOUND, "Message not found");
}

static void read_entry(struct visit *v, struct topic *t)
{
    if (!segments_find(managed_ledger_segments(t->ml), v->position.ledger)) {
        visit_end(v, ERR_NOT_FOUND, "Message not found");
        return;
    }
    visit_stays(v, t);
    v->read = (struct ml_read){.from = v->position, .max_entries = 1, .done = entry_came};
    managed_ledger_read(t->ml, &v->read);
}

/* The n-th that is not acknowledged. */
static void at_peek(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_at(v, t);

    if (!s)
        return;
    v->position = cursor_mark_delete(s->cursor);
    for (int64_t i = 0; i < v->n; i++)
        v->position = cursor_next_unacked(s->cursor, v->position);
    read_entry(v, t);
}

/* v->n: from the first on; below zero: from the last back. */
static void at_examine(struct visit *v, struct topic *t)
{
    const struct segments *all = managed_ledger_segments(t->ml);
    struct position before = segments_before_first(all);
    int64_t count = segments_count(all, before, managed_ledger_max_readable(t->ml));
    int64_t place = v->n < 0 ? count + 1 + v->n : v->n;

    if (count == 0) {
        visit_end(v, ERR_BUSY, "Could not examine messages due to the total message is zero");
        return;
    }
    place = place < 1 ? 1 : place;
    v->position = segments_nth(all, before, place < count ? place : count);
    read_entry(v, t);
}

/* ---- on the clerk's: what is in it ---- */

static void say(json_object *o, const char *name, const char *text)
{
    json_object_object_add(o, name, json_object_new_string(text));
}

static void say_number(json_object *o, const char *name, uint64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, n);
    say(o, name, text);
}

static void say_time(json_object *o, const char *name, uint64_t ms)
{
    const time_t seconds = (time_t)(ms / 1000);
    struct tm when;
    char day[32], text[48];

    if (!gmtime_r(&seconds, &when) || !strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &when))
        return;
    snprintf(text, sizeof(text), "%s.%03uZ", day, (unsigned)(ms % 1000));
    say(o, name, text);
}

static void say_properties(json_object *o, const Pulsar__Proto__MessageMetadata *m)
{
    json_object *all = json_object_new_object();

    for (size_t i = 0; i < m->n_properties; i++)
        json_object_object_add(all, m->properties[i]->key,
                               json_object_new_string(m->properties[i]->value));
    say(o, "X-Pulsar-PROPERTY", json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN));
    json_object_put(all);
}

static void say_optional(json_object *o, const Pulsar__Proto__MessageMetadata *m)
{
    if (m->has_event_time)
        say_time(o, "X-Pulsar-event-time", m->event_time);
    if (m->has_deliver_at_time && m->deliver_at_time > 0)
        say_time(o, "X-Pulsar-deliver-at-time", (uint64_t)m->deliver_at_time);
    if (m->partition_key)
        say(o, "X-Pulsar-partition-key", m->partition_key);
    if (m->replicated_from)
        say(o, "X-Pulsar-replicated-from", m->replicated_from);
    if (m->has_null_value)
        say(o, "X-Pulsar-null-value", m->null_value ? "true" : "false");
    if (m->has_num_chunks_from_msg)
        say_number(o, "X-Pulsar-chunk-num", (uint64_t)m->num_chunks_from_msg);
    if (m->n_encryption_keys > 0)
        say(o, "X-Pulsar-Is-Encrypted", "true");
}

static json_object *headers_of(const struct visit *v, const struct broker_entry *front,
                               const Pulsar__Proto__MessageMetadata *m, size_t size)
{
    static const char *const compressions[] = {"NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"};
    json_object *o = json_object_new_object();
    char id[48];

    snprintf(id, sizeof(id), "%" PRId64 ":%" PRId64, v->position.ledger, v->position.entry);
    say(o, "X-Pulsar-Message-ID", id);
    say(o, "X-Pulsar-producer-name", m->producer_name);
    say_number(o, "X-Pulsar-sequence-id", m->sequence_id);
    say_time(o, "X-Pulsar-publish-time", m->publish_time);
    say_properties(o, m);
    if (m->has_num_messages_in_batch) {
        say_number(o, "X-Pulsar-num-batch-message", (uint64_t)m->num_messages_in_batch);
        say_number(o, "X-Pulsar-batch-size", size);
    }
    if (m->has_compression && (unsigned)m->compression <= COMPRESS_SNAPPY)
        say(o, "X-Pulsar-compression", compressions[m->compression]);
    say_number(o, "X-Pulsar-uncompressed-size", m->uncompressed_size);
    if (front->present) {
        say_time(o, "X-Pulsar-Broker-Entry-METADATA-timestamp", front->timestamp);
        say_number(o, "X-Pulsar-Broker-Entry-METADATA-index", front->index);
    }
    say_optional(o, m);
    return o;
}

/* What is encrypted comes as it is. */
static enum err unpacked(const Pulsar__Proto__MessageMetadata *m, struct view payload, size_t max,
                         struct slice *out)
{
    enum compression how = m->has_compression ? (enum compression)m->compression : COMPRESS_NONE;

    if (m->n_encryption_keys > 0 || how == COMPRESS_NONE) {
        *out = slice_copy(payload.base, payload.len);
        return ERR_OK;
    }
    return decompress(how, payload, m->uncompressed_size, max, out);
}

static enum err show_with(struct job *j, const struct visit *v, struct arena *arena)
{
    struct broker_entry front;
    struct view rest;
    struct frame frame;
    ProtobufCMessage *message;
    struct slice body;

    TRY(broker_entry_read(slice_view(v->entry), &front, &rest));
    TRY(frame_split_body(rest, &frame));
    TRY(command_unpack(&pulsar__proto__message_metadata__descriptor, frame.metadata, arena,
                       &message));
    const Pulsar__Proto__MessageMetadata *m = (const void *)message;
    TRY(unpacked(m, frame.payload, (size_t)j->admin->env.conf->max_message_size, &body));
    job_bytes(j, body, headers_of(v, &front, m, frame.payload.len));
    return ERR_OK;
}

static void show(struct job *j, const struct visit *v)
{
    struct arena *arena = arena_new(ARENA);
    enum err err = show_with(j, v, arena);

    if (err)
        job_refuse(j, 500, "the message cannot be read: %s", err_text(err));
    arena_drop(&arena);
}

/* ---- asked ---- */

static void look(struct job *j, void (*at)(struct visit *v, struct topic *t),
                 bool (*fill)(struct job *j, struct visit *v))
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (!subject_refuses_whole(j, &s) && subject_is_mine(j, &s)) {
        struct visit *v = visit_new(j, &s.name, at);
        v->subscription = j->path.n > 4 ? mem_string(j->path.at[4]) : NULL;
        if (!fill(j, v)) {
            visit_drop(v); /* the loop has not seen it */
            visit_drop(v);
        } else if (visit_go(j, v)) {
            show(j, v);
            visit_drop(v);
        }
    }
    subject_drop(&s);
}

static bool fill_peek(struct job *j, struct visit *v)
{
    if (!parse_i64(j->path.at[5], &v->n) && v->n >= 1 && v->n <= PEEK_MAX)
        return true;
    job_refuse(j, 400, "which message is a number from 1 to %d", PEEK_MAX);
    return false;
}

void on_peek(struct job *j)
{
    look(j, at_peek, fill_peek);
}

static bool fill_message(struct job *j, struct visit *v)
{
    if (!parse_i64(j->path.at[4], &v->position.ledger) &&
        !parse_i64(j->path.at[5], &v->position.entry) && v->position.ledger >= 0 &&
        v->position.entry >= 0)
        return true;
    job_refuse(j, 400, "ledger and entry are numbers");
    return false;
}

void on_message(struct job *j)
{
    look(j, read_entry, fill_message);
}

static bool fill_examine(struct job *j, struct visit *v)
{
    const char *place = job_query(j, "messagePosition");
    bool fine = true;

    v->n = 1;
    if (place && *place)
        fine = !parse_i64(place, &v->n) && v->n >= 1;
    const char *from = job_query(j, "initialPosition");
    if (!from || !*from || strcmp(from, "latest") == 0)
        v->n = -v->n;
    else if (strcmp(from, "earliest") != 0)
        fine = false;
    if (!fine)
        job_refuse(j, 412,
                   "initialPosition is earliest or latest, messagePosition a number from 1");
    return fine;
}

void on_examine(struct job *j)
{
    look(j, at_examine, fill_examine);
}
