#include "broker/topic/feed.h"

#include <string.h>

#include "broker/broker.h"
#include "broker/topic/kind.h"
#include "broker/topic/subscription.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "proto/frame.h"
#include "proto/message.h"

enum { RETRY_US = 1000 * 1000 };

struct subscription *feed_subscription(struct feed *f)
{
    return container_of(f, struct subscription, feed);
}

const struct topics_env *feed_env(struct feed *f)
{
    return topics_env_of(feed_subscription(f)->topic->topics);
}

/* ---- its kind ---- */

static void begin(struct feed *f, enum consumer_type type)
{
    f->type = type;
    f->ops = feed_subscription(f)->topic->kind->feeds[type];
    f->ops->begin(f);
}

void feed_init(struct feed *f)
{
    list_init(&f->turn.node);
    begin(f, CONSUMER_EXCLUSIVE);
}

void feed_become(struct feed *f, enum consumer_type type)
{
    if (f->type == type)
        return;
    feed_drop(f);
    begin(f, type);
}

void feed_drop(struct feed *f)
{
    loop_cancel(feed_env(f)->home, &f->retry);
    f->ops->end(f);
}

/* ---- from an entry to what a client gets ---- */

static enum err look_into(const struct ml_entry *e, struct view *rest, struct frame *frame,
                          struct message_peek *peek)
{
    struct broker_entry front;

    TRY(broker_entry_read(slice_view(e->payload), &front, rest));
    TRY(frame_split_body(*rest, frame));
    return message_peek(frame->metadata, peek);
}

/* Of a batch that was partly acknowledged; with nothing left of it it is passed over. */
static void look_up_part(struct feed *f, struct feed_cut *out)
{
    struct delivery_item *item = &out->item;
    const struct cursor_part *part = cursor_part(feed_subscription(f)->cursor, item->at);

    if (!part)
        return;
    item->messages = cursor_part_left(part, item->messages);
    out->marker |= item->messages == 0;
    item->n_left = part->n;
    item->left = mem_alloc(part->n * sizeof(item->left[0]));
    memcpy(item->left, part->words, part->n * sizeof(item->left[0]));
}

static void add_magic(struct delivery_item *item, struct view body)
{
    uint8_t magic[FRAME_MAGIC_SIZE];

    frame_magic(magic, crc32c(body.base, body.len));
    item->magic = slice_copy(magic, sizeof(magic));
}

void feed_cut(struct feed *f, const struct ml_entry *e, struct feed_cut *out)
{
    struct delivery_item *item = &out->item;
    struct view rest;
    struct frame frame;
    struct message_peek peek;

    *out = (struct feed_cut){.item = {.at = e->at, .messages = 1}};
    if (look_into(e, &rest, &frame, &peek)) {
        log_event(LOG_WARN, "entry.unreadable", F_I64("ledger", e->at.ledger),
                  F_I64("entry", e->at.entry));
        item->body = slice_share(e->payload);
        return;
    }
    item->messages = peek.num_messages > 0 ? (uint32_t)peek.num_messages : 1;
    out->marker = peek.has_marker;
    look_up_part(f, out);
    if (peek.num_chunks > 1) {
        out->uuid = peek.uuid;
        out->last_chunk = peek.chunk_id == peek.num_chunks - 1;
    }
    item->body = slice_part(e->payload, (size_t)(rest.base - e->payload.base), rest.len);
    if (!frame.has_crc)
        add_magic(item, rest);
}

void feed_cut_drop(struct feed_cut *cut)
{
    delivery_item_drop(&cut->item);
}

/* ---- reading ---- */

struct position feed_first_wanted(struct feed *f)
{
    struct cursor *c = feed_subscription(f)->cursor;
    return cursor_next_unacked(c, cursor_mark_delete(c));
}

static struct topics *topics_for(struct feed *f)
{
    return feed_subscription(f)->topic->topics;
}

unsigned feed_batch(struct feed *f)
{
    return feed_batch_of((unsigned)feed_env(f)->conf->dispatch_batch, f->entry_bytes);
}

static void learn(struct feed *f, const struct ml_entry *entries, unsigned n)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < n; i++)
        bytes += entries[i].payload.len;
    if (n == 0)
        return;
    f->entry_bytes = bytes / n + 1;
    f->ops->batch(f, feed_batch(f));
}

static void read_done(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                      struct position next)
{
    struct feed *f = container_of(r, struct feed, read);

    learn(f, entries, n);
    topics_read_end(topics_for(f), &f->turn);
    f->done(r, err, entries, n, next);
}

static bool is_idle(struct topics_read *r)
{
    struct feed *f = container_of(r, struct feed, turn);

    list_each(&feed_subscription(f)->consumers, n)
    {
        if (topic_consumer_of(list_entry(n, struct guest, node))->out == 0)
            return true;
    }
    return false;
}

static bool is_cached(struct topics_read *r)
{
    struct feed *f = container_of(r, struct feed, turn);

    return managed_ledger_has_in_memory(feed_subscription(f)->topic->ml, &f->read);
}

static void go(struct topics_read *r, size_t max_bytes)
{
    struct feed *f = container_of(r, struct feed, turn);

    f->read.max_bytes = max_bytes;
    f->read.cached_only = r->cached_only;
    managed_ledger_read(feed_subscription(f)->topic->ml, &f->read);
}

void feed_read(struct feed *f, unsigned max_entries)
{
    f->read.max_entries = max_entries;
    f->done = f->read.done;
    f->read.done = read_done;
    f->read.skip = feed_subscription(f)->cursor;
    f->read_since = loop_now(feed_env(f)->home);
    f->turn.is_idle = is_idle;
    f->turn.is_cached = is_cached;
    f->turn.go = go;
    f->turn.max_bytes = (size_t)feed_env(f)->conf->dispatch_bytes;
    f->turn.wants = f->entry_bytes ? max_entries * f->entry_bytes : f->turn.max_bytes;
    topics_read(topics_for(f), &f->turn);
}

void feed_read_failed(struct feed *f, enum err err)
{
    log_event(LOG_WARN, "subscription.read_failed",
              F_STR("topic", feed_subscription(f)->topic->name.full),
              F_STR("subscription", feed_subscription(f)->name), F_ERR(err));
}

void feed_cancel_read(struct feed *f)
{
    managed_ledger_read_cancel(feed_subscription(f)->topic->ml, &f->read);
    topics_read_end(topics_for(f), &f->turn);
}

static void retry(struct timer *t)
{
    struct feed *f = container_of(t, struct feed, retry);
    f->ops->retry(f);
}

void feed_retry_later(struct feed *f)
{
    f->retry.run = retry;
    loop_after(feed_env(f)->home, &f->retry, RETRY_US);
}
