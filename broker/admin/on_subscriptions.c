/* Subscriptions: listed, made, deleted. */
#include "broker/admin/on_subscription.h"
#include "broker/topic/kind.h"

#include <stdio.h>
#include <string.h>

#include "broker/admin/on_subscription.h"
#include "broker/admin/properties.h"
#include "broker/admin/subject.h"
#include "common/mem.h"

/* ---- listing ---- */

static void add_name(void *ctx, const char *name)
{
    json_object_array_add(ctx, json_object_new_string(name));
}

static void at_names(struct visit *v, struct topic *t)
{
    v->json = json_object_new_array();
    t->kind->subscriptions(t, add_name, v->json);
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

void subscription_job(struct job *j, bool parts, void (*at)(struct visit *v, struct topic *t),
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

struct subscription *subscription_at(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_of(t, v->subscription);

    if (!s)
        visit_end(v, ERR_SUBSCRIPTION_NOT_FOUND, "Subscription not found");
    else if (s->state == SUBSCRIPTION_READY)
        return s;
    else
        visit_end(v, ERR_BUSY, "the subscription is being made, moved or deleted");
    return NULL;
}

/* ---- making ---- */

bool position_read(json_object *o, struct position *out)
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
        known = json_object_is_type(o, json_type_object) && position_read(o, &v->position);
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
    struct subscription *s = subscription_of(t, v->subscription);

    if (s && s->state != SUBSCRIPTION_DELETING) { /* it may be in memory only */
        visit_end(v, ERR_EXISTS, "Subscription already exists for topic");
        return;
    }
    if (!s && !topic_takes_subscription(t)) {
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
    subscription_job(j, true, at_make, fill_make);
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

/* A passing one goes with its consumers. */
static void at_unmake(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_at(v, t);

    if (!s)
        return;
    if (s->n_consumers > 0 && !v->force) {
        visit_end(v, ERR_BUSY, "Subscription has active connected consumers");
        return;
    }
    if (s->passing) {
        subscription_send_away(s);
        visit_end(v, ERR_OK, NULL);
        return;
    }
    subscription_begin_delete(s);
    v->cursor_call.done = unmade;
    visit_stays(v, t);
    managed_ledger_cursor_delete(t->ml, v->subscription, &v->cursor_call);
}

void on_subscription_delete(struct job *j)
{
    subscription_job(j, true, at_unmake, NULL);
}

/* Of a topic that is not stored: it is gone at once. */
static void at_forget(struct visit *v, struct topic *t)
{
    struct subscription *s = subscription_find(t, v->subscription);

    if (!s) {
        visit_end(v, ERR_SUBSCRIPTION_NOT_FOUND, "Subscription not found");
        return;
    }
    if (s->n_consumers > 0 && !v->force) {
        visit_end(v, ERR_BUSY, "Subscription has active connected consumers");
        return;
    }
    subscription_begin_delete(s);
    subscription_deleted(s, ERR_OK);
    visit_end(v, ERR_OK, NULL);
}

void on_subscription_forget(struct job *j)
{
    subscription_job(j, true, at_forget, NULL);
}
