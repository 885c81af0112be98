/* Figures of a topic, and of the partitions of one together. */
#include <stdio.h>
#include <string.h>

#include "broker/admin/asks.h"
#include "broker/admin/figures.h"
#include "broker/admin/on_subscription.h"
#include "broker/admin/subject.h"

/* `owner`: the field that says which broker it was, or NULL. */
static void look(struct job *j, void (*at)(struct visit *v, struct topic *t), const char *owner)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (!subject_refuses_whole(j, &s) && subject_is_mine(j, &s)) {
        struct visit *v = visit_new(j, &s.name, at);
        if (visit_go(j, v)) {
            if (owner)
                json_object_object_add(v->json, owner, ask_self(j));
            job_json_reply(j, json_object_get(v->json));
            visit_drop(v);
        }
    }
    subject_drop(&s);
}

static void at_stats(struct visit *v, struct topic *t)
{
    v->json = figures_stats(t);
    visit_end(v, ERR_OK, NULL);
}

static void at_internal(struct visit *v, struct topic *t)
{
    v->json = figures_internal(t);
    visit_end(v, ERR_OK, NULL);
}

void on_stats(struct job *j)
{
    look(j, at_stats, "ownerBroker");
}

void on_internal_stats(struct job *j)
{
    look(j, at_internal, NULL);
}

/* ManagedLedgerInfo and its cursors, as pulsar-admin's `info-internal` shows them. */
static void at_info(struct visit *v, struct topic *t)
{
    json_object *inside = figures_internal(t);

    v->json = json_object_new_object();
    json_object_object_add(v->json, "version",
                           json_object_new_int64(managed_ledger_version(t->ml)));
    json_object_object_add(v->json, "creationDate", json_object_new_string(""));
    json_object_object_add(v->json, "modificationDate", json_object_new_string(""));
    static const char *const kept[] = {"ledgers", "cursors", "properties"};
    for (unsigned i = 0; i < 3; i++)
        json_object_object_add(v->json, kept[i],
                               json_object_get(json_object_object_get(inside, kept[i])));
    if (managed_ledger_is_terminated(t->ml))
        json_object_object_add(v->json, "terminatedPosition",
                               figures_position(managed_ledger_max_readable(t->ml)));
    json_object_put(inside);
    visit_end(v, ERR_OK, NULL);
}

void on_internal_info(struct job *j)
{
    look(j, at_info, NULL);
}

static void at_last_id(struct visit *v, struct topic *t)
{
    v->position = managed_ledger_max_readable(t->ml);
    if (v->position.entry < 0)
        v->position = POSITION_EARLIEST;
    v->json = json_object_new_object();
    json_object_object_add(v->json, "ledgerId", json_object_new_int64(v->position.ledger));
    json_object_object_add(v->json, "entryId", json_object_new_int64(v->position.entry));
    json_object_object_add(v->json, "partitionIndex", json_object_new_int(t->name.partition));
    visit_end(v, ERR_OK, NULL);
}

void on_last_message(struct job *j)
{
    look(j, at_last_id, NULL);
}

static void at_backlog(struct visit *v, struct topic *t)
{
    json_object *stats = figures_stats(t);

    v->json = json_object_new_object();
    json_object_object_add(v->json, "backlogSize",
                           json_object_get(json_object_object_get(stats, "backlogSize")));
    json_object_object_add(v->json, "storageSize",
                           json_object_get(json_object_object_get(stats, "storageSize")));
    json_object_put(stats);
    visit_end(v, ERR_OK, NULL);
}

void on_backlog(struct job *j)
{
    look(j, at_backlog, NULL);
}

/* Behind an entry; of all there is when none is named. */
static void at_backlog_size(struct visit *v, struct topic *t)
{
    v->json =
        json_object_new_int64(figures_bytes_after(managed_ledger_segments(t->ml), v->position));
    visit_end(v, ERR_OK, NULL);
}

static void size_behind(struct job *j, const struct subject *s, struct position p)
{
    struct visit *v = visit_new(j, &s->name, at_backlog_size);

    v->position = p;
    if (!visit_go(j, v))
        return;
    job_json_reply(j, json_object_get(v->json));
    visit_drop(v);
}

void on_backlog_size(struct job *j)
{
    struct subject s;
    struct position p;
    json_object *o = job_json(j);
    bool known = json_object_is_type(o, json_type_object) && position_read(o, &p);

    json_object_put(o);
    if (!known) {
        job_refuse(j, 412, "No position: {ledgerId, entryId} says from where");
        return;
    }
    if (!subject_of(j, &s))
        return;
    if (!subject_refuses_whole(j, &s) && subject_is_mine(j, &s))
        size_behind(j, &s, p);
    subject_drop(&s);
}

/* ---- of all partitions ---- */

/* A partition that nobody stored to counts as nothing. */
static json_object *all_parts(struct job *j, const struct subject *s, json_object *parts)
{
    json_object *sum = json_object_new_object();

    for (int32_t i = 0; i < s->partitions && !j->status; i++) {
        struct job *part = job_part(j, i);
        char name[META_KEY_MAX];
        snprintf(name, sizeof(name), "%s-partition-%d", s->name.base, i);
        json_object *one = part->status == 200 ? json_tokener_parse(part->text) : NULL;
        if (one) {
            json_object *copy = NULL;
            json_object_deep_copy(one, &copy, NULL);
            figures_add(sum, copy);
            json_object_put(copy);
            json_object_object_add(parts, name, one);
        } else if (part->status != 404) {
            job_refuse(j, part->status, "%s: %s", name, part->text ? part->text : "");
        }
        job_drop(&part);
    }
    return sum;
}

static void look_at_all(struct job *j, bool sums)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (!subject_is_whole(&s)) {
        job_refuse(j, 404, "Partitioned Topic not found: %s", s.name.full);
        subject_drop(&s);
        return;
    }
    bool hide = job_query(j, "perPartition") && !job_flag(j, "perPartition");
    json_object *parts = json_object_new_object(), *meta = json_object_new_object();
    json_object *sum = all_parts(j, &s, parts), *o = sums ? sum : json_object_new_object();
    if (!sums)
        json_object_put(sum);
    json_object_object_add(meta, "partitions", json_object_new_int(s.partitions));
    json_object_object_add(o, "metadata", meta);
    json_object_object_add(o, "partitions",
                           hide ? json_object_new_object() : json_object_get(parts));
    json_object_put(parts);
    if (j->status)
        json_object_put(o);
    else
        job_json_reply(j, o);
    subject_drop(&s);
}

void on_partitioned_stats(struct job *j)
{
    job_becomes(j, on_stats, "/partitioned-stats", "/stats");
    look_at_all(j, true);
}

void on_partitioned_internal_stats(struct job *j)
{
    job_becomes(j, on_internal_stats, "/partitioned-internalStats", "/internalStats");
    look_at_all(j, false);
}
