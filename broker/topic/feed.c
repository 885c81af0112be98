#include "broker/topic/feed.h"

#include "broker/broker.h"
#include "broker/metrics.h"
#include "broker/topic/subscription.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "proto/frame.h"
#include "proto/message.h"

enum { RETRY_US = 1000 * 1000 };

static struct feed *feed_of(struct exclusive *x)
{
    return container_of(x, struct feed, core);
}

static struct subscription *subscription_of(struct feed *f)
{
    return container_of(f, struct subscription, feed);
}

static const struct topics_env *env_of(struct feed *f)
{
    return topics_env_of(subscription_of(f)->topic->topics);
}

/* ---- from an entry to what a client gets ---- */

static void cut(const struct ml_entry *e, struct delivery_item *item, bool *marker)
{
    struct broker_entry front;
    struct view rest;
    struct frame frame;
    struct message_peek peek;

    *item = (struct delivery_item){.at = e->at, .messages = 1};
    *marker = false;
    if (broker_entry_read(slice_view(e->payload), &front, &rest) ||
        frame_split_body(rest, &frame) || message_peek(frame.metadata, &peek)) {
        log_event(LOG_WARN, "entry.unreadable", F_I64("ledger", e->at.ledger),
                  F_I64("entry", e->at.entry));
        item->body = slice_share(e->payload);
        return;
    }
    item->messages = peek.num_messages > 0 ? (uint32_t)peek.num_messages : 1;
    *marker = peek.has_marker;
    item->body = slice_part(e->payload, (size_t)(rest.base - e->payload.base), rest.len);
    if (!frame.has_crc) {
        uint8_t magic[FRAME_MAGIC_SIZE];
        frame_magic(magic, crc32c(rest.base, rest.len));
        item->magic = slice_copy(magic, sizeof(magic));
    }
}

static void drop(struct delivery_item *item)
{
    slice_drop(&item->magic);
    slice_drop(&item->body);
}

static struct delivery *sort(struct feed *f, struct ml_entry *entries, unsigned n)
{
    struct delivery *d = mem_alloc(sizeof(*d) + n * sizeof(d->item[0]));

    for (unsigned i = 0; i < n; i++) {
        struct delivery_item *item = &d->item[d->n];
        bool marker;
        cut(&entries[i], item, &marker);
        switch (exclusive_entry(&f->core, item->at, item->messages, marker)) {
        case EXCLUSIVE_SEND:
            d->n++;
            break;
        case EXCLUSIVE_SKIP:
            cursor_ack(subscription_of(f)->cursor, &item->at, 1, NULL);
            drop(item);
            break;
        case EXCLUSIVE_LEAVE:
            drop(item);
            break;
        }
        slice_drop(&entries[i].payload);
    }
    return d;
}

static void read_done(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                      struct position next)
{
    struct feed *f = container_of(r, struct feed, read);
    struct delivery *d = n > 0 ? sort(f, entries, n) : NULL;
    bool sent = d && d->n > 0;

    if (err)
        log_event(LOG_WARN, "subscription.read_failed",
                  F_STR("topic", subscription_of(f)->topic->name.full),
                  F_STR("subscription", subscription_of(f)->name), F_ERR(err));
    if (sent)
        topic_consumer_deliver(f->consumer, d);
    else
        mem_free(d);
    exclusive_read_done(&f->core, err, next, sent);
}

/* ---- effects ---- */

/* At least one entry is read whatever its size. */
static size_t bytes_for(struct feed *f)
{
    bool much = topics_delivers_much(subscription_of(f)->topic->topics);
    return much ? 1 : (size_t)env_of(f)->conf->dispatch_bytes;
}

static void do_read(struct exclusive *x, struct position from, unsigned max_entries)
{
    struct feed *f = feed_of(x);

    f->read = (struct ml_read){.from = from,
                               .max_entries = max_entries,
                               .max_bytes = bytes_for(f),
                               .skip = subscription_of(f)->cursor,
                               .done = read_done};
    managed_ledger_read(subscription_of(f)->topic->ml, &f->read);
}

static void do_cancel_read(struct exclusive *x)
{
    struct feed *f = feed_of(x);
    managed_ledger_read_cancel(subscription_of(f)->topic->ml, &f->read);
}

static void retry(struct timer *t)
{
    exclusive_retry(&container_of(t, struct feed, retry)->core);
}

static void do_retry_later(struct exclusive *x)
{
    struct feed *f = feed_of(x);

    f->retry.run = retry;
    loop_after(env_of(f)->home, &f->retry, RETRY_US);
}

static const struct exclusive_fx fx = {
    .read = do_read, .cancel_read = do_cancel_read, .retry_later = do_retry_later};

/* ---- events ---- */

static struct position first_wanted(struct feed *f)
{
    struct cursor *c = subscription_of(f)->cursor;
    return cursor_next_unacked(c, cursor_mark_delete(c));
}

void feed_init(struct feed *f, const struct topics_env *env)
{
    exclusive_init(&f->core, &fx, (unsigned)env->conf->dispatch_batch, DELIVERIES_MAX);
}

void feed_start(struct feed *f, struct topic_consumer *c)
{
    f->consumer = c;
    exclusive_came(&f->core, first_wanted(f),
                   managed_ledger_max_readable(subscription_of(f)->topic->ml));
}

void feed_stop(struct feed *f)
{
    loop_cancel(env_of(f)->home, &f->retry);
    exclusive_left(&f->core);
    f->consumer = NULL;
}

void feed_rewind(struct feed *f)
{
    exclusive_rewind(&f->core, first_wanted(f));
}

void feed_grew(struct feed *f)
{
    exclusive_grew(&f->core, managed_ledger_max_readable(subscription_of(f)->topic->ml));
}
