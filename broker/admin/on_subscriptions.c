/* Subscriptions: listed, made, deleted, moved. */
#include "broker/topic/subscription.h"

#include <stdio.h>
#include <string.h>

#include "broker/admin/properties.h"
#include "broker/admin/subject.h"
#include "broker/admin/visits.h"
#include "common/mem.h"
#include "common/parse.h"

/* ---- listing ---- */

static void add_name(void *ctx, struct cursor *c)
{
    json_object_array_add(ctx, json_object_new_string(cursor_name(c)));
}

static void at_names(struct visit *v, struct topic *t)
{
    v->json = json_object_new_array();
    subscription_cursors(t, add_name, v->json);
    visit_end(v, ERR_OK, NULL);
}

static void merge(json_object *all, const char *text)
{
    json_object *names = json_tokener_parse(text);

    for (size_t i = 0; names && i < json_object_array_length(names); i++) {
        json_object *name = json_object_array_get_idx(names, i);
        bool known = false;
        for (size_t k = 0; k < json_object_array_length(all) && !known; k++)
            known = json_object_equal(name, json_object_array_get_idx(all, k));
        if (!known)
            json_object_array_add(all, json_object_get(name));
    }
    json_object_put(names);
}

static void names_of_all(struct job *j, const struct subject *s)
{
    json_object *all = json_object_new_array();

    for (int32_t i = 0; i < s->partitions && !j->status; i++) {
        struct job *part = job_part(j, i);
        if (part->status == 200)
            merge(all, part->text);
        else if (part->status != 404)
            job_refuse(j, part->status, "partition %d: %s", i, part->text ? part->text : "");
        job_drop(&part);
    }
    if (j->status)
        json_object_put(all);
    else
        job_json_reply(j, all);
}

void on_subscriptions(struct job *j)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (subject_is_whole(&s)) {
        names_of_all(j, &s);
    } else if (subject_is_mine(j, &s)) {
        struct visit *v = visit_new(j, &s.name, at_names);
        if (visit_go(j, v)) {
            job_json_reply(j, json_object_get(v->json));
            visit_drop(v);
        }
    }
    subject_drop(&s);
}

/* ---- what all others have in common: of each partition, at its owner ---- */

/* `fill` may be NULL; false: it has answered. */
static void go(struct job *j, bool parts, void (*at)(struct visit *v, struct topic *t),
               bool (*fill)(struct job *j, struct visit *v))
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    bool done = parts ? subject_all_partitions(j, &s) : subject_refuses_whole(j, &s);
    if (!done && subject_is_mine(j, &s)) {
        struct visit *v = visit_new(j, &s.name, at);
        v->subscription = mem_string(j->path.at[4]);
        v->force = job_flag(j, "force");
        if (fill && !fill(j, v)) {
            visit_drop(v); /* the loop has not seen it */
            visit_drop(v);
        } else if (visit_go(j, v)) {
            visit_drop(v);
            job_done(j);
        }
    }
    subject_drop(&s);
}

/* NULL: ended with 404. */
static struct cursor *cursor_at(struct visit *v, struct topic *t)
{
    struct cursor *c = managed_ledger_cursor(t->ml, v->subscription);

    if (!c)
        visit_end(v, ERR_SUBSCRIPTION_NOT_FOUND, "Subscription not found");
    return c;
}

/* ---- making ---- */

static bool read_id(json_object *o, struct position *out)
{
    json_object *ledger = json_object_object_get(o, "ledgerId");
    json_object *entry = json_object_object_get(o, "entryId");

    *out = (struct position){json_object_get_int64(ledger), json_object_get_int64(entry)};
    return json_object_is_type(ledger, json_type_int) && json_object_is_type(entry, json_type_int);
}

/* "latest", "earliest" or an id, which is the last that counts as acknowledged. */
static bool fill_start(struct job *j, struct visit *v)
{
    json_object *o = job_json(j);
    const char *word = json_object_is_type(o, json_type_string) ? json_object_get_string(o) : NULL;
    bool known = true;

    if (j->status)
        return false;
    v->position = POSITION_LATEST;
    if (word && strcmp(word, "earliest") == 0)
        v->position = POSITION_EARLIEST;
    else if (word)
        known = strcmp(word, "latest") == 0;
    else if (o)
        known = json_object_is_type(o, json_type_object) && read_id(o, &v->position);
    json_object *words = word ? NULL : json_object_get(json_object_object_get(o, "properties"));
    json_object_put(o);
    if (known && words)
        known = properties_read(j, words, &v->properties);
    json_object_put(words);
    if (!known && !j->status)
        job_refuse(j, 400, "a position is \"latest\", \"earliest\" or {ledgerId, entryId}");
    return known;
}

static void made(struct ml_cursor_call *call, enum err err, struct cursor *c)
{
    struct visit *v = container_of(call, struct visit, cursor_call);

    (void)c;
    visit_leaves(v, err == ERR_BAD_VERSION ? ERR_EXISTS : err,
                 err == ERR_EXISTS || err == ERR_BAD_VERSION
                     ? "Subscription already exists for topic"
                     : NULL);
}

static void at_make(struct visit *v, struct topic *t)
{
    if (!managed_ledger_cursor(t->ml, v->subscription) && !topic_takes_subscription(t)) {
        visit_end(v, ERR_BUSY, "Exceed the maximum number of subscriptions of the topic");
        return;
    }
    v->cursor_call.done = made;
    v->cursor_call.properties = &v->properties;
    visit_stays(v, t);
    managed_ledger_cursor_create(t->ml, v->subscription, v->position, &v->cursor_call);
}

static bool fill_make(struct job *j, struct visit *v)
{
    v->create = true;
    return fill_start(j, v);
}

void on_subscription_create(struct job *j)
{
    go(j, true, at_make, fill_make);
}

/* ---- deleting ---- */

static void unmade(struct ml_cursor_call *call, enum err err, struct cursor *c)
{
    struct visit *v = container_of(call, struct visit, cursor_call);
    struct subscription *s = subscription_find(v->topic, v->subscription);

    (void)c;
    if (s && s->state == SUBSCRIPTION_DELETING)
        subscription_deleted(s, err);
    visit_leaves(v, err, NULL);
}

static void at_unmake(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_find(t, v->subscription);

    if (!cursor_at(v, t))
        return;
    if (s && s->state != SUBSCRIPTION_READY) {
        visit_end(v, ERR_NOT_READY, "the subscription is being made or deleted");
        return;
    }
    if (s && s->n_consumers > 0 && !v->force) {
        visit_end(v, ERR_BUSY, "Subscription has active connected consumers");
        return;
    }
    if (s)
        subscription_begin_delete(s);
    v->cursor_call.done = unmade;
    visit_stays(v, t);
    managed_ledger_cursor_delete(t->ml, v->subscription, &v->cursor_call);
}

void on_subscription_delete(struct job *j)
{
    go(j, true, at_unmake, NULL);
}

/* ---- moving ---- */

static void moved(struct cursor_ack_call *call, enum err err)
{
    struct visit *v = container_of(call, struct visit, ack_call);
    struct subscription *s = subscription_find(v->topic, v->subscription);

    if (s && s->state == SUBSCRIPTION_READY && topic_is_ready(v->topic)) {
        s->feed.ops->acked_upto(&s->feed, cursor_mark_delete(s->cursor));
        subscription_check_end(s);
    }
    visit_leaves(v, err, NULL);
}

static void ack_upto(struct visit *v, struct topic *t, struct cursor *c, struct position p)
{
    v->ack_call.done = moved;
    visit_stays(v, t);
    cursor_ack_upto(c, p, &v->ack_call);
}

static void at_skip_all(struct visit *v, struct topic *t)
{
    struct cursor *c = cursor_at(v, t);

    if (c)
        ack_upto(v, t, c, managed_ledger_max_readable(t->ml));
}

void on_skip_all(struct job *j)
{
    go(j, true, at_skip_all, NULL);
}

enum { STEPS = 10000 };

/* The next n entries that are not acknowledged, some thousands a round: the loop has others. */
static void skip_some(struct task *task)
{
    struct visit *v = container_of(task, struct visit, task);
    struct topic *t = v->topic;
    struct cursor *c = t->ml ? managed_ledger_cursor(t->ml, v->subscription) : NULL;
    struct position end = c ? managed_ledger_max_readable(t->ml) : POSITION_EARLIEST;

    if (!c) {
        visit_leaves(v, ERR_SUBSCRIPTION_NOT_FOUND, "Subscription not found");
        return;
    }
    for (unsigned i = 0; i < STEPS && v->n > 0; i++, v->n--) {
        struct position next = cursor_next_unacked(c, v->position);
        if (position_compare(next, end) > 0) {
            v->n = 0;
            break;
        }
        v->position = next;
    }
    if (v->n > 0) {
        loop_post(topics_loop(v->topics), &v->task);
        return;
    }
    v->ack_call.done = moved;
    cursor_ack_upto(c, v->position, &v->ack_call);
}

static void at_skip(struct visit *v, struct topic *t)
{
    struct cursor *c = cursor_at(v, t);

    if (!c)
        return;
    v->position = cursor_mark_delete(c);
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
    go(j, false, at_skip, fill_skip);
}

/* A reset to an entry: it is the next one to be delivered. */
static void at_reset(struct visit *v, struct topic *t)
{
    struct cursor *c = cursor_at(v, t);
    struct subscription *s = subscription_find(t, v->subscription);

    if (!c)
        return;
    if (s && s->state != SUBSCRIPTION_READY) {
        visit_end(v, ERR_NOT_READY, "the subscription is being made or deleted");
        return;
    }
    v->ack_call.done = moved;
    visit_stays(v, t);
    if (s)
        subscription_send_away(s);
    cursor_reset(c, segments_at_or_before(managed_ledger_segments(t->ml), v->position),
                 &v->ack_call);
    if (s)
        s->feed.ops->rewind(&s->feed);
}

static bool fill_reset(struct job *j, struct visit *v)
{
    json_object *o = job_json(j);
    bool known = json_object_is_type(o, json_type_object) && read_id(o, &v->position);
    bool excluded = json_object_get_boolean(json_object_object_get(o, "isExcluded")) ||
                    json_object_get_boolean(json_object_object_get(o, "excluded"));

    json_object_put(o);
    if (!known)
        job_refuse(j, 412, "No position: {ledgerId, entryId} says where to");
    if (known && !excluded && v->position.ledger >= 0 && v->position.ledger != INT64_MAX)
        v->position.entry--;
    return known;
}

void on_reset(struct job *j)
{
    go(j, false, at_reset, fill_reset);
}

void on_by_time(struct job *j)
{
    job_refuse(j, 501, "positions by time are not supported yet: reset to a message id");
}
