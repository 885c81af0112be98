/* Bookies: those that are registered, and the racks that they stand in. */
#include <string.h>

#include "broker/admin/asks.h"
#include "metadata/paths.h"

static json_object *bookies_in(json_object *names)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < json_object_array_length(names); i++) {
        const char *id = json_object_get_string(json_object_array_get_idx(names, i));
        if (strcmp(id, "readonly") == 0)
            continue;
        json_object *one = json_object_new_object();
        json_object_object_add(one, "bookieId", json_object_new_string(id));
        json_object_array_add(list, one);
    }
    return list;
}

void on_bookies(struct job *j)
{
    json_object *names, *o;
    enum err err = ask_children(j, PATH_BOOKIES, &names);

    if (err) {
        job_fail(j, err, NULL);
        return;
    }
    o = json_object_new_object();
    json_object_object_add(o, "bookies", bookies_in(names));
    json_object_put(names);
    job_json_reply(j, o);
}

/* ---- racks: {"group":{"bookie":{"rack":...,"hostname":...}}} ---- */

/* Gives; what nobody has said yet is nothing.  NULL: answered. */
static json_object *racks(struct job *j)
{
    json_object *o = NULL;
    enum err err = ask_json(j, PATH_BOOKIE_RACKS, &o, NULL);

    if (err == ERR_NOT_FOUND)
        return json_object_new_object();
    if (err)
        job_fail(j, err, NULL);
    return o;
}

void on_racks(struct job *j)
{
    json_object *o = racks(j);

    if (o)
        job_json_reply(j, o);
}

static json_object *find(json_object *all, const char *bookie)
{
    json_object *one;

    json_object_object_foreach(all, name, group)
    {
        (void)name;
        if (json_object_is_type(group, json_type_object) &&
            json_object_object_get_ex(group, bookie, &one))
            return one;
    }
    return NULL;
}

static void not_found(struct job *j)
{
    job_refuse(j, 404, "Bookie rack placement configuration not found: %s", j->path.at[0]);
}

void on_rack(struct job *j)
{
    json_object *all = racks(j), *one = find(all, j->path.at[0]);

    if (one)
        job_json_reply(j, json_object_get(one));
    else if (all)
        not_found(j);
    json_object_put(all);
}

struct placing {
    const char *bookie, *group;
    json_object *place; /* NULL: nowhere */
};

/* A group without bookies is none.  false: it was in none. */
static bool take_out(json_object *all, const char *bookie)
{
    struct json_object_iterator at = json_object_iter_begin(all), end = json_object_iter_end(all);
    bool found = false;

    while (!json_object_iter_equal(&at, &end)) {
        const char *name = json_object_iter_peek_name(&at);
        json_object *group = json_object_iter_peek_value(&at), *one;
        json_object_iter_next(&at);
        if (!json_object_is_type(group, json_type_object) ||
            !json_object_object_get_ex(group, bookie, &one))
            continue;
        found = true;
        json_object_object_del(group, bookie);
        if (json_object_object_length(group) == 0)
            json_object_object_del(all, name);
    }
    return found;
}

static enum err place(void *ctx, json_object *all)
{
    const struct placing *p = ctx;
    json_object *group;

    if (!take_out(all, p->bookie) && !p->place)
        return ERR_NOT_FOUND;
    if (!p->place)
        return ERR_OK;
    if (!json_object_object_get_ex(all, p->group, &group))
        json_object_object_add(all, p->group, group = json_object_new_object());
    json_object_object_add(group, p->bookie, json_object_get(p->place));
    return ERR_OK;
}

/* The first of all that are placed. */
static enum err place_first(struct job *j, struct placing *p)
{
    json_object *all = json_object_new_object();
    enum err err = place(p, all);

    if (!err)
        err = ask_put_json(j, PATH_BOOKIE_RACKS, all, META_ABSENT);
    json_object_put(all);
    return err;
}

static void place_it(struct job *j, struct placing *p)
{
    enum err err = ask_rewrite(j, PATH_BOOKIE_RACKS, place, p);

    if (err == ERR_NOT_FOUND && p->place)
        err = place_first(j, p);
    if (err == ERR_NOT_FOUND)
        not_found(j);
    else if (err)
        job_fail(j, err, NULL);
    else
        job_done(j);
}

static bool is_place(json_object *o)
{
    json_object *rack = json_object_object_get(o, "rack");

    return json_object_is_type(rack, json_type_string) && json_object_get_string_len(rack) > 0;
}

/* A bookie is in one group: it leaves the one it was in. */
void on_rack_set(struct job *j)
{
    json_object *o = job_json(j);
    const char *group = job_query(j, "group");

    if (!group || !*group)
        job_refuse(j, 412, "Bookie 'group' parameters is missing");
    else if (!is_place(o))
        job_refuse(j, 412, "where it stands is {\"rack\": \"/region/rack\", \"hostname\": ...}");
    else
        place_it(j, &(struct placing){j->path.at[0], group, o});
    json_object_put(o);
}

void on_rack_remove(struct job *j)
{
    place_it(j, &(struct placing){j->path.at[0], "", NULL});
}
