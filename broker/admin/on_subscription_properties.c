/* Words that users put on a subscription; those of a partitioned topic on that of each partition.
 */
#include "broker/admin/properties.h"
#include "broker/admin/subject.h"
#include "broker/admin/visits.h"
#include "common/mem.h"

/* NULL: ended with 404. */
static struct cursor *cursor_at(struct visit *v, struct topic *t)
{
    struct cursor *c = managed_ledger_cursor(t->ml, v->subscription);

    if (!c)
        visit_end(v, ERR_SUBSCRIPTION_NOT_FOUND, "Subscription not found");
    return c;
}

static void at_read(struct visit *v, struct topic *t)
{
    struct cursor *c = cursor_at(v, t);

    if (!c)
        return;
    v->json = properties_shown(cursor_properties(c));
    visit_end(v, ERR_OK, NULL);
}

static void written(struct cursor_ack_call *call, enum err err)
{
    visit_leaves(container_of(call, struct visit, ack_call), err, NULL);
}

/* The system's own stay as they are. */
static void at_write(struct visit *v, struct topic *t)
{
    struct cursor *c = cursor_at(v, t);

    if (!c)
        return;
    const struct pairs *old = cursor_properties(c);
    for (unsigned i = 0; i < old->n; i++)
        if (strncmp(old->at[i].name, PAIRS_INTERNAL, sizeof(PAIRS_INTERNAL) - 1) == 0)
            pairs_set(&v->properties, old->at[i].name, old->at[i].value);
    visit_stays(v, t);
    v->ack_call.done = written;
    cursor_set_properties(c, &v->properties, &v->ack_call);
}

static struct visit *visit_of(struct job *j, const struct subject *s,
                              void (*at)(struct visit *v, struct topic *t))
{
    struct visit *v = visit_new(j, &s->name, at);

    v->subscription = mem_string(j->path.at[4]);
    return v;
}

/* Of the first partition that has the subscription: all are given the same. */
static void of_first(struct job *j, const struct subject *s)
{
    for (int32_t i = 0; i < s->partitions && !j->status; i++) {
        struct job *part = job_part(j, i);
        if (part->status == 200)
            job_json_reply(j, json_tokener_parse(part->text));
        else if (part->status != 404)
            job_refuse(j, part->status, "partition %d: %s", i, part->text ? part->text : "");
        job_drop(&part);
    }
    if (!j->status)
        job_refuse(j, 404, "Subscription not found");
}

void on_subscription_properties(struct job *j)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (subject_is_whole(&s)) {
        of_first(j, &s);
    } else if (subject_is_mine(j, &s)) {
        struct visit *v = visit_of(j, &s, at_read);
        if (visit_go(j, v)) {
            job_json_reply(j, json_object_get(v->json));
            visit_drop(v);
        }
    }
    subject_drop(&s);
}

static void set(struct job *j, const struct subject *s, struct pairs *words)
{
    struct visit *v = visit_of(j, s, at_write);

    v->properties = *words;
    *words = (struct pairs){0};
    if (visit_go(j, v)) {
        visit_drop(v);
        job_done(j);
    }
}

void on_subscription_properties_set(struct job *j)
{
    json_object *o = job_json(j);
    struct pairs words = {0};
    struct subject s;

    if (!j->status && properties_read(j, o, &words) && subject_of(j, &s)) {
        if (!subject_all_partitions(j, &s) && subject_is_mine(j, &s))
            set(j, &s, &words);
        subject_drop(&s);
    }
    pairs_drop(&words);
    json_object_put(o);
}
