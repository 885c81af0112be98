/* Topics: listed, made, deleted, terminated. */
#include <stdio.h>
#include <string.h>

#include "broker/admin/asks.h"
#include "broker/admin/namespace.h"
#include "broker/admin/properties.h"
#include "broker/admin/subject.h"
#include "broker/admin/visits.h"
#include "common/mem.h"
#include "metadata/records.h"

/* Of the domain that the path names. */
static void list(struct job *j, unsigned persistent, unsigned fleeting)
{
    const bool stored = strcmp(j->path.at[0], "persistent") == 0;

    if (subject_namespace(j, j->path.at[1], j->path.at[2]))
        namespace_list_topics(j, j->path.at[1], j->path.at[2], stored ? persistent : fleeting);
}

void on_topics(struct job *j)
{
    list(j, TOPICS_STORED, TOPICS_LOADED);
}

void on_partitioned_topics(struct job *j)
{
    list(j, TOPICS_PARTITIONED, TOPICS_FLEETING_PARTITIONED);
}

/* ---- making one ---- */

static void add_property(ManagedLedger__ManagedLedgerInfo *r, const char *key, const char *value)
{
    ManagedLedger__KeyValue *one = mem_new(ManagedLedger__KeyValue);

    managed_ledger__key_value__init(one);
    one->key = mem_string(key);
    one->value = mem_string(value);
    r->properties[r->n_properties++] = one;
}

/* What the node of a new topic says: nothing, but for the properties that were given with it. */
static struct slice first_value(json_object *properties)
{
    ManagedLedger__ManagedLedgerInfo *r;
    struct slice value = {0};
    int n = properties ? json_object_object_length(properties) : 0;

    if (n == 0)
        return value;
    r = mem_new(ManagedLedger__ManagedLedgerInfo);
    managed_ledger__managed_ledger_info__init(r);
    r->properties = mem_alloc((size_t)n * sizeof(ManagedLedger__KeyValue *));
    json_object_object_foreach(properties, key, one)
        add_property(r, key, json_object_get_string(one));
    value = managed_ledger_record_write(r);
    managed_ledger__managed_ledger_info__free_unpacked(r, NULL);
    return value;
}

/* Gives, NULL for none; false: answered. */
static bool read_properties(struct job *j, json_object **out)
{
    *out = job_json(j);
    if (j->status)
        return false;
    if (!*out || properties_fine(j, *out))
        return true;
    json_object_put(*out);
    return false;
}

static enum err store(struct job *j, const struct topic_name *name, struct slice value)
{
    char key[META_KEY_MAX];
    char *stored = managed_ledger_name(name);
    enum err err = path_managed_ledger(stored, key);

    mem_free(stored);
    if (err) {
        slice_drop(&value);
        return err;
    }
    return ask_put(j, key, value, META_ABSENT);
}

static void at_made(struct visit *v, struct topic *t)
{
    (void)t;
    visit_end(v, ERR_OK, NULL);
}

/* One that is not stored: its owner loads it, and forgets it when nobody comes. */
static void make(struct job *j, const struct subject *s)
{
    if (!subject_is_mine(j, s))
        return;
    struct visit *v = visit_new(j, &s->name, at_made);
    v->make = true;
    if (!visit_go(j, v))
        return;
    visit_drop(v);
    job_done(j);
}

static void create(struct job *j, const struct subject *s, json_object *properties)
{
    bool whole = s->partitions > 0 && s->name.partition < 0;
    bool beyond = s->partitions > 0 && s->name.partition >= s->partitions;

    if (beyond) {
        job_refuse(j, 412, "the topic does not have so many partitions");
        return;
    }
    if (!s->name.persistent && !whole) {
        make(j, s);
        return;
    }
    enum err err = whole ? ERR_EXISTS : store(j, &s->name, first_value(properties));
    if (err == ERR_EXISTS || err == ERR_BAD_VERSION)
        job_refuse(j, 409, "This topic already exists");
    else if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}

void on_topic_create(struct job *j)
{
    struct subject s;
    json_object *properties;

    if (!subject_of(j, &s))
        return;
    if (read_properties(j, &properties)) {
        create(j, &s, properties);
        json_object_put(properties);
    }
    subject_drop(&s);
}

/* ---- deleting one ---- */

static void deleted(struct topic_delete_call *c, enum err err)
{
    visit_end(container_of(c, struct visit, delete_call), err,
              err == ERR_BUSY ? "Topic has active producers/subscriptions" : NULL);
}

static void delete_it(struct visit *v, struct topic *t)
{
    v->delete_call.done = deleted;
    topic_delete(t, v->force, &v->delete_call);
}

static void delete (struct job *j, const struct subject *s)
{
    struct visit *v = visit_new(j, &s->name, delete_it);

    v->force = job_flag(j, "force");
    if (!visit_go(j, v))
        return;
    visit_drop(v);
    job_done(j);
}

void on_topic_delete(struct job *j)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (!subject_refuses_whole(j, &s) && subject_is_mine(j, &s))
        delete (j, &s);
    subject_drop(&s);
}

/* ---- the end of one ---- */

static void terminated(struct topic_terminate_call *c, enum err err, struct position last)
{
    struct visit *v = container_of(c, struct visit, terminate_call);

    v->position = last;
    visit_end(v, err, NULL);
}

static void terminate_it(struct visit *v, struct topic *t)
{
    v->terminate_call.done = terminated;
    topic_terminate(t, &v->terminate_call);
}

static json_object *message_id(struct position p, int32_t partition)
{
    json_object *o = json_object_new_object();

    json_object_object_add(o, "ledgerId", json_object_new_int64(p.ledger));
    json_object_object_add(o, "entryId", json_object_new_int64(p.entry));
    json_object_object_add(o, "partitionIndex", json_object_new_int(partition));
    return o;
}

static void terminate(struct job *j, const struct subject *s)
{
    struct visit *v = visit_new(j, &s->name, terminate_it);

    if (!visit_go(j, v))
        return;
    job_json_reply(j, message_id(v->position, s->name.partition));
    visit_drop(v);
}

void on_topic_terminate(struct job *j)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (subject_is_whole(&s))
        job_refuse(j, 405, "Termination of a partitioned topic is not allowed");
    else if (subject_is_mine(j, &s))
        terminate(j, &s);
    subject_drop(&s);
}

static void terminate_all(struct job *j, const struct subject *s)
{
    json_object *ids = json_object_new_object();

    job_becomes(j, on_topic_terminate, "/terminate/partitions", "/terminate");
    for (int32_t i = 0; i < s->partitions && !j->status; i++) {
        struct job *part = job_part(j, i);
        char number[16];
        snprintf(number, sizeof(number), "%d", i);
        if (part->status == 200)
            json_object_object_add(ids, number, json_tokener_parse(part->text));
        else
            job_refuse(j, part->status, "partition %d: %s", i, part->text ? part->text : "");
        job_drop(&part);
    }
    if (j->status)
        json_object_put(ids);
    else
        job_json_reply(j, ids);
}

void on_partitions_terminate(struct job *j)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (subject_is_whole(&s))
        terminate_all(j, &s);
    else
        job_refuse(j, 405, "the topic is not partitioned");
    subject_drop(&s);
}
