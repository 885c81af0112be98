#include "broker/admin/subject.h"

#include <string.h>

#include "broker/admin/asks.h"
#include "broker/policy/topic_facts.h"
#include "common/mem.h"

bool subject_namespace(struct job *j, const char *tenant, const char *ns)
{
    struct ns_policies p = {0};
    struct slice value = {0};
    char key[META_KEY_MAX];

    if (path_namespace(tenant, ns, key)) {
        job_refuse(j, 412, "Namespace name is not valid");
        return false;
    }
    enum err err = ask_get(j, key, &value, NULL);
    if (!err)
        err = ns_policies_read(slice_view(value), &p);
    slice_drop(&value);
    if (err == ERR_NOT_FOUND || (!err && !p.exists))
        job_refuse(j, 404, "Namespace not found");
    else if (err)
        job_fail(j, err, NULL);
    return !err && p.exists;
}

static enum err read_partitions(struct job *j, struct subject *s)
{
    struct partitioned_topic t = {0};
    struct slice value = {0};
    char key[META_KEY_MAX];

    TRY(path_partitioned(&s->name, key));
    enum err err = ask_get(j, key, &value, NULL);
    if (err == ERR_NOT_FOUND)
        return ERR_OK;
    TRY(err);
    err = partitioned_topic_read(slice_view(value), &t);
    slice_drop(&value);
    s->partitions = t.partitions;
    s->deleted = t.deleted;
    return err;
}

bool subject_of(struct job *j, struct subject *s)
{
    char *full =
        mem_format("%s://%s/%s/%s", j->path.at[0], j->path.at[1], j->path.at[2], j->path.at[3]);
    enum err err = topic_facts_name(full, &s->name);

    mem_free(full);
    s->partitions = 0;
    s->deleted = false;
    if (err) {
        job_refuse(j, 412, "Topic name is not valid");
        return false;
    }
    if (subject_namespace(j, s->name.tenant, s->name.ns)) {
        err = read_partitions(j, s);
        if (!err)
            return true;
        job_fail(j, err, NULL);
    }
    subject_drop(s);
    return false;
}

void subject_drop(struct subject *s)
{
    topic_name_drop(&s->name);
}

static void send_on(struct job *j, const char *web)
{
    bool told = strstr(j->target, "authoritative=") != NULL;

    j->location = mem_format("%s%s%s", web, j->target,
                             told                     ? ""
                             : strchr(j->target, '?') ? "&authoritative=true"
                                                      : "?authoritative=true");
    job_text(j, 307, "");
}

bool subject_is_mine(struct job *j, const struct subject *s)
{
    char *web = NULL;
    bool mine = false;
    enum err err = ask_owner(j, s->name.full, &mine, &web);

    if (err)
        job_refuse(j, 503, "the topic's owner is not known: %s", err_text(err));
    else if (!mine && !*web)
        job_refuse(j, 503, "the broker that serves the topic has no webServicePortTls");
    else if (!mine)
        send_on(j, web);
    mem_free(web);
    return !err && mine;
}

enum err subject_exists(struct job *j, const struct subject *s)
{
    char key[META_KEY_MAX];
    char *stored = managed_ledger_name(&s->name);
    enum err err = path_managed_ledger(stored, key);

    mem_free(stored);
    TRY(err);
    err = ask_get(j, key, NULL, NULL);
    return err == ERR_NOT_FOUND ? ERR_TOPIC_NOT_FOUND : err;
}

bool subject_all_partitions(struct job *j, const struct subject *s)
{
    if (!subject_is_whole(s))
        return false;
    for (int32_t i = 0; i < s->partitions && !j->status; i++) {
        struct job *part = job_part(j, i);
        if (part->status >= 300) {
            j->status = part->status;
            j->type = part->type;
            j->text = part->text;
            part->text = NULL;
        }
        job_drop(&part);
    }
    if (!j->status)
        job_done(j);
    return true;
}

bool subject_refuses_whole(struct job *j, const struct subject *s)
{
    if (subject_is_whole(s))
        job_refuse(j, 405, "not allowed on a partitioned topic: name one of its partitions");
    return subject_is_whole(s);
}
