/* Partitioned topics: made, grown, mended, deleted with all their partitions. */
#include <string.h>

#include "broker/admin/asks.h"
#include "broker/admin/properties.h"
#include "broker/admin/subject.h"
#include "broker/broker.h"
#include "common/mem.h"

/* The body: a number, or an object with it and properties.  0: answered. */
static int32_t wanted(struct job *j, json_object **properties)
{
    json_object *body = job_json(j), *n = body;
    int64_t most = j->admin->env.conf->max_partitions;

    *properties = NULL;
    if (json_object_is_type(body, json_type_object)) {
        n = json_object_object_get(body, "partitions");
        *properties = json_object_get(json_object_object_get(body, "properties"));
    }
    int64_t number = json_object_is_type(n, json_type_int) ? json_object_get_int64(n) : 0;
    json_object_put(body);
    if (*properties && !properties_fine(j, *properties))
        return 0;
    if (number >= 1 && number <= (most ? most : INT32_MAX))
        return (int32_t)number;
    if (number >= 1)
        job_refuse(j, 406, "Number of partitions should be less than or equal to %lld",
                   (long long)most);
    else
        job_refuse(j, 406, "Number of partitions should be more than 0");
    return 0;
}

static enum err make_one(struct job *j, const char *base, int32_t i)
{
    char *full = mem_format("%s-partition-%d", base, i);
    char key[META_KEY_MAX];
    struct topic_name name;
    enum err err = topic_name_parse(full, &name);

    mem_free(full);
    TRY(err);
    char *stored = managed_ledger_name(&name);
    err = path_managed_ledger(stored, key);
    mem_free(stored);
    topic_name_drop(&name);
    TRY(err);
    err = ask_put(j, key, (struct slice){0}, META_ABSENT);
    return err == ERR_EXISTS || err == ERR_BAD_VERSION ? ERR_OK : err;
}

/* Those that are there already stay as they are.  What is not stored needs no making. */
static enum err make_all(struct job *j, const struct topic_name *name, int32_t n)
{
    for (int32_t i = 0; name->persistent && i < n; i++)
        TRY(make_one(j, name->base, i));
    return ERR_OK;
}

static json_object *record(int32_t n, json_object *properties)
{
    json_object *o = json_object_new_object();

    json_object_object_add(o, "partitions", json_object_new_int(n));
    json_object_object_add(o, "deleted", json_object_new_boolean(false));
    json_object_object_add(o, "properties",
                           properties ? json_object_get(properties) : json_object_new_object());
    return o;
}

static void settle(struct job *j, enum err err)
{
    if (err == ERR_EXISTS || err == ERR_BAD_VERSION)
        job_refuse(j, 409, "This topic already exists");
    else if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}

static enum err create(struct job *j, const struct subject *s, int32_t n, json_object *properties)
{
    char key[META_KEY_MAX];
    enum err err = s->name.persistent ? subject_exists(j, s) : ERR_TOPIC_NOT_FOUND;

    if (err != ERR_TOPIC_NOT_FOUND)
        return err ? err : ERR_EXISTS;
    TRY(path_partitioned(&s->name, key));
    json_object *o = record(n, properties);
    err = ask_put_json(j, key, o, META_ABSENT);
    json_object_put(o);
    TRY(err);
    return make_all(j, &s->name, n);
}

static bool is_base(struct job *j, const struct subject *s)
{
    if (s->name.partition >= 0)
        job_refuse(j, 412, "Partitioned Topic Name should not contain '-partition-'");
    return s->name.partition < 0;
}

void on_partitions_create(struct job *j)
{
    struct subject s;
    json_object *properties;

    if (!subject_of(j, &s))
        return;
    if (is_base(j, &s)) {
        int32_t n = wanted(j, &properties);
        if (n > 0)
            settle(j, create(j, &s, n, properties));
        json_object_put(properties);
    }
    subject_drop(&s);
}

/* ---- growing ---- */

static enum err set_partitions(void *ctx, json_object *o)
{
    int32_t n = *(int32_t *)ctx;

    if (json_object_get_int(json_object_object_get(o, "partitions")) > n)
        return ERR_NOT_ALLOWED;
    json_object_object_add(o, "partitions", json_object_new_int(n));
    return ERR_OK;
}

static void grow(struct job *j, const struct subject *s, int32_t n)
{
    char key[META_KEY_MAX];

    if (s->partitions == 0 || s->deleted) {
        job_refuse(j, 404, "Partitioned Topic not found: %s", s->name.full);
        return;
    }
    if (n <= s->partitions) {
        job_refuse(j, 422, "Number of partitions must be more than existing %d", s->partitions);
        return;
    }
    enum err err = path_partitioned(&s->name, key);
    if (!err)
        err = make_all(j, &s->name, n); /* before anybody asks for them */
    if (!err)
        err = ask_rewrite(j, key, set_partitions, &n);
    if (err == ERR_NOT_ALLOWED)
        job_refuse(j, 409, "somebody else has grown it further");
    else
        settle(j, err);
}

void on_partitions_grow(struct job *j)
{
    struct subject s;
    json_object *properties;

    if (!subject_of(j, &s))
        return;
    if (is_base(j, &s)) {
        int32_t n = wanted(j, &properties);
        json_object_put(properties);
        if (n > 0)
            grow(j, &s, n);
    }
    subject_drop(&s);
}

void on_partitions_mend(struct job *j)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (s.partitions == 0)
        job_refuse(j, 404, "Partitioned Topic not found: %s", s.name.full);
    else
        settle(j, make_all(j, &s.name, s.partitions));
    subject_drop(&s);
}

/* ---- deleting ---- */

static enum err mark(void *ctx, json_object *o)
{
    json_object_object_add(o, "deleted", json_object_new_boolean(*(bool *)ctx));
    return ERR_OK;
}

static void delete_parts(struct job *j, const struct subject *s)
{
    job_becomes(j, on_topic_delete, "/partitions", "");
    for (int32_t i = 0; i < s->partitions && !j->status; i++) {
        struct job *part = job_part(j, i);
        if (part->status >= 300 && part->status != 404) {
            j->status = part->status;
            j->type = part->type;
            j->text = part->text;
            part->text = NULL;
        }
        job_drop(&part);
    }
}

/* Marked first, so that nobody makes a partition while they go; the mark goes when one cannot. */
static void delete_all(struct job *j, const struct subject *s)
{
    char key[META_KEY_MAX];
    bool yes = true, no = false;
    enum err err = path_partitioned(&s->name, key);

    if (!err)
        err = ask_rewrite(j, key, mark, &yes);
    if (err) {
        job_fail(j, err, NULL);
        return;
    }
    delete_parts(j, s);
    if (!j->status)
        settle(j, ask_remove(j, key, META_ANY));
    else if (ask_rewrite(j, key, mark, &no))
        j->type = "application/json"; /* the answer stands; deleting it again goes on */
}

void on_partitions_delete(struct job *j)
{
    struct subject s;

    if (!subject_of(j, &s))
        return;
    if (s.partitions == 0 || s.name.partition >= 0)
        job_refuse(j, 404, "Partitioned Topic not found: %s", s.name.full);
    else
        delete_all(j, &s);
    subject_drop(&s);
}
