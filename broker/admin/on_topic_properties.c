/* Words that users put on a topic; those of a partitioned one are with the number of its
 * partitions. */
#include "broker/admin/asks.h"
#include "broker/admin/properties.h"
#include "broker/admin/subject.h"
#include "broker/admin/visits.h"
#include "common/mem.h"

/* ---- of a partitioned topic ---- */

static enum err change_whole(void *ctx, json_object *o)
{
    json_object *all = json_object_object_get(o, "properties");

    if (!json_object_is_type(all, json_type_object)) {
        all = json_object_new_object();
        json_object_object_add(o, "properties", all);
    }
    json_object_object_foreach((json_object *)ctx, key, value)
    {
        if (value)
            json_object_object_add(all, key, json_object_get(value));
        else
            json_object_object_del(all, key);
    }
    return ERR_OK;
}

static void read_whole(struct job *j, const struct subject *s)
{
    char key[META_KEY_MAX];
    json_object *o = NULL;
    enum err err = path_partitioned(&s->name, key);

    if (!err)
        err = ask_json(j, key, &o, NULL);
    if (err) {
        job_fail(j, err, NULL);
        return;
    }
    json_object *all = json_object_object_get(o, "properties");
    job_json_reply(j, all ? json_object_get(all) : json_object_new_object());
    json_object_put(o);
}

/* ---- of a topic ---- */

static void add_property(void *ctx, const char *key, const char *value)
{
    json_object_object_add(ctx, key, json_object_new_string(value));
}

static void at_read(struct visit *v, struct topic *t)
{
    v->json = json_object_new_object();
    managed_ledger_properties(t->ml, add_property, v->json);
    visit_end(v, ERR_OK, NULL);
}

struct saving {
    struct ml_call call;
    struct visit *visit;
};

static void one_less(struct visit *v)
{
    if (--v->n == 0)
        visit_leaves(v, v->failed, NULL);
}

static void saved(struct ml_call *call, enum err err, struct managed_ledger *m)
{
    struct saving *s = container_of(call, struct saving, call);
    struct visit *v = s->visit;

    (void)m;
    mem_free(s);
    if (err)
        v->failed = err;
    one_less(v);
}

static void save(struct visit *v, struct topic *t, const char *key, const char *value)
{
    struct saving *s = mem_new(struct saving);

    s->call.done = saved;
    s->visit = v;
    v->n++;
    managed_ledger_set_property(t->ml, key, value, &s->call);
}

/* What is to be removed is null there. */
static void at_change(struct visit *v, struct topic *t)
{
    visit_stays(v, t);
    v->n = 1;
    json_object_object_foreach(v->json, key, value)
        save(v, t, key, value ? json_object_get_string(value) : NULL);
    one_less(v);
}

static void change_topic(struct job *j, const struct subject *s, json_object *o)
{
    struct visit *v = visit_new(j, &s->name, at_change);

    v->json = json_object_get(o);
    if (!visit_go(j, v))
        return;
    visit_drop(v);
    job_done(j);
}

/* ---- the routes ---- */

void on_topic_properties(struct job *j)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (subject_is_whole(&s)) {
        read_whole(j, &s);
    } else if (subject_is_mine(j, &s)) {
        struct visit *v = visit_new(j, &s.name, at_read);
        if (visit_go(j, v)) {
            job_json_reply(j, json_object_get(v->json));
            visit_drop(v);
        }
    }
    subject_drop(&s);
}

static void change(struct job *j, json_object *o)
{
    struct subject s;
    char key[META_KEY_MAX];

    if (!subject_of(j, &s))
        return;
    if (subject_is_whole(&s)) {
        enum err err = path_partitioned(&s.name, key);
        if (!err)
            err = ask_rewrite(j, key, change_whole, o);
        if (err)
            job_fail(j, err, NULL);
        else
            job_done(j);
    } else if (subject_is_mine(j, &s)) {
        change_topic(j, &s, o);
    }
    subject_drop(&s);
}

void on_topic_properties_set(struct job *j)
{
    json_object *o = job_json(j);

    if (!j->status && properties_fine(j, o))
        change(j, o);
    json_object_put(o);
}

void on_topic_property_remove(struct job *j)
{
    const char *key = job_query(j, "key");
    json_object *o = json_object_new_object();

    if (!key || !*key || properties_is_private(key)) {
        job_refuse(j, 412, "which property: ?key=");
    } else {
        json_object_object_add(o, key, NULL);
        change(j, o);
    }
    json_object_put(o);
}
