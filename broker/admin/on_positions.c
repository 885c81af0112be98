/* Where a subscription goes on: skipped, reset, expired; and where a time is. */
#include <string.h>

#include "broker/admin/on_subscription.h"
#include "broker/admin/subject.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proto/frame.h"
#include "proto/message.h"

/* ---- on ---- */

static void passed(struct subscription *s)
{
    s->feed.ops->acked_upto(&s->feed, cursor_mark_delete(s->cursor));
    subscription_check_end(s);
}

static void moved(struct cursor_ack_call *call, enum err err)
{
    struct visit *v = container_of(call, struct visit, ack_call);
    struct subscription *s = subscription_find(v->topic, v->subscription);

    if (s && s->state == SUBSCRIPTION_READY && topic_is_ready(v->topic))
        passed(s);
    visit_leaves(v, err, NULL);
}

/* Of one that stayed. */
static void ack_upto(struct visit *v, struct subscription *s, struct position p)
{
    v->ack_call.done = moved;
    cursor_ack_upto(s->cursor, p, &v->ack_call);
}

static struct position at_most(const struct topic *t, struct position p)
{
    struct position end = managed_ledger_max_readable(t->ml);

    return position_compare(p, end) < 0 ? p : end;
}

static void at_skip_all(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_at(v, t);

    if (!s)
        return;
    visit_stays(v, t);
    ack_upto(v, s, managed_ledger_max_readable(t->ml));
}

void on_skip_all(struct job *j)
{
    subscription_job(j, true, at_skip_all, NULL);
}

/* What stayed for it comes back to find it; NULL: it was ended. */
static struct subscription *found_again(struct visit *v)
{
    struct subscription *s = subscription_find(v->topic, v->subscription);

    if (s && s->state == SUBSCRIPTION_READY && topic_is_ready(v->topic))
        return s;
    visit_leaves(v, s ? ERR_BUSY : ERR_SUBSCRIPTION_NOT_FOUND,
                 s ? "the subscription is being moved or deleted" : "Subscription not found");
    return NULL;
}

enum { STEPS = 10000 };

/* The next n entries that are not acknowledged, some thousands a round: the loop has others. */
static void skip_some(struct task *task)
{
    struct visit *v = container_of(task, struct visit, task);
    struct subscription *s = found_again(v);

    for (unsigned i = 0; s && i < STEPS && v->n > 0; i++, v->n--) {
        struct position next = cursor_next_unacked(s->cursor, v->position);
        if (position_compare(next, managed_ledger_max_readable(v->topic->ml)) > 0) {
            v->n = 0;
            break;
        }
        v->position = next;
    }
    if (s && v->n > 0)
        loop_post(topics_loop(v->topics), &v->task);
    else if (s)
        ack_upto(v, s, v->position);
}

static void at_skip(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_at(v, t);

    if (!s)
        return;
    v->position = cursor_mark_delete(s->cursor);
    visit_stays(v, t);
    v->task.run = skip_some;
    loop_post(topics_loop(v->topics), &v->task);
}

static bool fill_skip(struct job *j, struct visit *v)
{
    if (!parse_i64(j->path.at[5], &v->n) && v->n >= 0)
        return true;
    job_refuse(j, 400, "how many to skip is a number");
    return false;
}

void on_skip(struct job *j)
{
    subscription_job(j, false, at_skip, fill_skip);
}

/* ---- anywhere ---- */

static void sought(struct seek *k, enum err err)
{
    struct visit *v = k->owner;

    visit_end(v, err == ERR_NOT_READY ? ERR_BUSY : err,
              err == ERR_BUSY || err == ERR_NOT_READY
                  ? "Failed to reset cursor: the subscription is being moved or the topic closed"
                  : NULL);
}

static void seek(struct visit *v, struct subscription *s)
{
    v->seek.done = sought;
    v->seek.owner = v;
    seek_begin(s, &v->seek);
}

static void at_reset(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_at(v, t);

    if (s)
        seek(v, s);
}

/* Of a batch what is there from v->n on; no messages: there is no such entry. */
static void seek_into_batch(struct visit *v, struct subscription *s, int32_t messages)
{
    enum { BITS = 64 };

    if (messages > 0 && v->n >= messages) {
        v->seek.to.entry++;
    } else if (v->n > 0 && messages <= CURSOR_PART_WORDS * BITS) {
        v->seek.n_words = (unsigned)((messages + BITS - 1) / BITS);
        v->words = mem_alloc(v->seek.n_words * sizeof(uint64_t));
        for (int64_t i = v->n; i < messages; i++)
            v->words[i / BITS] |= 1ull << i % BITS;
        v->seek.words = v->words;
    }
    seek(v, s);
}

static int32_t messages_in(const struct ml_entry *e)
{
    struct broker_entry front;
    struct view rest;
    struct frame frame;
    struct message_peek peek;

    if (broker_entry_read(slice_view(e->payload), &front, &rest) ||
        frame_split_body(rest, &frame) || message_peek(frame.metadata, &peek))
        return 1;
    return peek.num_messages;
}

static void batch_came(struct ml_read *r, enum err err, struct ml_entry *entries, unsigned n,
                       struct position next)
{
    struct visit *v = container_of(r, struct visit, read);
    struct topic *t = v->topic;
    bool there = n > 0 && position_equal(entries[0].at, v->seek.to);
    int32_t messages = there ? messages_in(&entries[0]) : 0;
    struct subscription *s = err ? NULL : found_again(v);

    (void)next;
    for (unsigned i = 0; i < n; i++)
        slice_drop(&entries[i].payload);
    if (err) {
        visit_leaves(v, err, NULL);
    } else if (s) {
        seek_into_batch(v, s, messages);
        topic_lets_go(t);
    }
}

static void at_reset_into(struct visit *v, struct topic *t)
{
    if (!subscription_at(v, t))
        return;
    visit_stays(v, t);
    v->read = (struct ml_read){.from = v->seek.to, .max_entries = 1, .done = batch_came};
    managed_ledger_read(t->ml, &v->read);
}

static bool is_excluded(json_object *o)
{
    return json_object_get_boolean(json_object_object_get(o, "isExcluded")) ||
           json_object_get_boolean(json_object_object_get(o, "excluded"));
}

/* To the message itself, or behind it. */
static bool fill_reset(struct job *j, struct visit *v)
{
    json_object *o = job_json(j), *index;
    bool known = json_object_is_type(o, json_type_object) && position_read(o, &v->seek.to);
    bool excluded = is_excluded(o);

    index = json_object_object_get(o, "batchIndex");
    v->n = json_object_is_type(index, json_type_int) ? json_object_get_int64(index) : -1;
    json_object_put(o);
    if (!known) {
        job_refuse(j, 412, "No position: {ledgerId, entryId} says where to");
    } else if (v->n >= 0 && v->n < INT32_MAX) {
        v->n += excluded;
        v->at = at_reset_into;
    } else if (excluded && v->seek.to.entry < INT64_MAX) {
        v->seek.to.entry++;
    }
    return known;
}

void on_reset(struct job *j)
{
    subscription_job(j, false, at_reset, fill_reset);
}

static bool fill_reset_time(struct job *j, struct visit *v)
{
    v->seek.by_time = true;
    if (!parse_i64(j->path.at[5], &v->seek.ms) && v->seek.ms >= 0)
        return true;
    job_refuse(j, 400, "a time is in milliseconds since 1970");
    return false;
}

void on_reset_time(struct job *j)
{
    subscription_job(j, true, at_reset, fill_reset_time);
}

/* ---- what is too old ---- */

static void old_found(struct ml_find *f, enum err err, struct position before)
{
    struct visit *v = container_of(f, struct visit, find);
    struct subscription *s = subscription_find(v->topic, v->subscription);

    if (s)
        s->expiring = false;
    if (err)
        visit_leaves(v, err, NULL);
    else if ((s = found_again(v)))
        ack_upto(v, s, before);
}

static void find_old(struct visit *v, struct topic *t,
                     void (*done)(struct ml_find *f, enum err err, struct position before))
{
    v->find = (struct ml_find){.ms = (int64_t)loop_wall_ms() - v->n * 1000, .done = done};
    visit_stays(v, t);
    managed_ledger_find(t->ml, &v->find);
}

static void at_expire(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_at(v, t);

    if (!s)
        return;
    if (s->expiring) {
        visit_end(v, ERR_EXISTS, "Expire message by timestamp is already running");
        return;
    }
    s->expiring = true;
    find_old(v, t, old_found);
}

static bool take_seconds(struct job *j, const char *text, int64_t *seconds)
{
    if (!parse_i64(text, seconds) && *seconds >= 0 && *seconds <= INT64_MAX / 1000)
        return true;
    job_refuse(j, 400, "how old is a number of seconds");
    return false;
}

static bool fill_expire(struct job *j, struct visit *v)
{
    return take_seconds(j, j->path.at[5], &v->n);
}

void on_expire(struct job *j)
{
    subscription_job(j, true, at_expire, fill_expire);
}

static void at_expire_upto(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_at(v, t);

    if (!s)
        return;
    visit_stays(v, t);
    ack_upto(v, s, at_most(t, v->position));
}

/* Up to and with that entry; without it when it is excluded, or a message in it is named. */
static bool fill_expire_upto(struct job *j, struct visit *v)
{
    json_object *o = job_json(j), *index = json_object_object_get(o, "batchIndex");
    bool known = json_object_is_type(o, json_type_object) && position_read(o, &v->position);

    if (is_excluded(o) || json_object_get_int64(index) > 0)
        v->position = position_before(v->position);
    json_object_put(o);
    if (!known)
        job_refuse(j, 412, "No position: {ledgerId, entryId} says up to where");
    return known;
}

void on_expire_upto(struct job *j)
{
    subscription_job(j, false, at_expire_upto, fill_expire_upto);
}

struct expiry {
    struct topic *topic;
    struct position before;
};

static void expire_one(void *ctx, struct cursor *c)
{
    struct expiry *e = ctx;
    struct subscription *s = subscription_find(e->topic, cursor_name(c));

    if (s && s->state != SUBSCRIPTION_READY)
        return;
    cursor_ack_upto(c, e->before, NULL);
    if (s)
        passed(s);
}

static void old_found_for_all(struct ml_find *f, enum err err, struct position before)
{
    struct visit *v = container_of(f, struct visit, find);
    struct expiry e = {v->topic, before};

    if (!err && topic_is_ready(v->topic))
        subscription_cursors(v->topic, expire_one, &e);
    visit_leaves(v, err, NULL);
}

static void at_expire_all(struct visit *v, struct topic *t)
{
    find_old(v, t, old_found_for_all);
}

static bool fill_expire_all(struct job *j, struct visit *v)
{
    return take_seconds(j, j->path.at[4], &v->n);
}

void on_expire_all(struct job *j)
{
    subscription_job(j, true, at_expire_all, fill_expire_all);
}

/* ---- where a time is ---- */

static void time_found(struct ml_find *f, enum err err, struct position before)
{
    struct visit *v = container_of(f, struct visit, find);

    if (!err && topic_is_ready(v->topic)) {
        struct position p = segments_next(managed_ledger_segments(v->topic->ml), before);
        v->json = json_object_new_object();
        json_object_object_add(v->json, "ledgerId", json_object_new_int64(p.ledger));
        json_object_object_add(v->json, "entryId", json_object_new_int64(p.entry));
        json_object_object_add(v->json, "partitionIndex",
                               json_object_new_int(v->topic->name.partition));
    }
    visit_leaves(v, err, NULL);
}

static void at_time(struct visit *v, struct topic *t)
{
    v->find = (struct ml_find){.ms = v->n, .done = time_found};
    visit_stays(v, t);
    managed_ledger_find(t->ml, &v->find);
}

void on_id_of_time(struct job *j)
{
    struct subject s;
    int64_t ms;

    if (!subject_of(j, &s))
        return;
    if (subject_refuses_whole(j, &s)) {
        subject_drop(&s);
        return;
    }
    if (parse_i64(j->path.at[4], &ms) || ms < 0) {
        job_refuse(j, 400, "a time is in milliseconds since 1970");
    } else if (subject_is_mine(j, &s)) {
        struct visit *v = visit_new(j, &s.name, at_time);
        v->n = ms;
        if (visit_go(j, v)) {
            job_json_reply(j, json_object_get(v->json));
            visit_drop(v);
        }
    }
    subject_drop(&s);
}
