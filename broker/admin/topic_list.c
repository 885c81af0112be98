/* All topics of a namespace, a page at a time: nobody waits for a million of them. */
#include <string.h>

#include "broker/admin/admin.h"
#include "broker/admin/asks.h"
#include "broker/admin/errand.h"
#include "broker/admin/namespace.h"
#include "broker/cluster/name_list.h"
#include "broker/topic/topics_names.h"
#include "common/mem.h"
#include "common/metric.h"
#include "metadata/paths.h"

enum { PAGE = 500, LOADED_MAX = 64 * 1024 * 1024 };

struct list {
    struct job *job;
    const char *tenant, *ns, *domain;
    bool system;
    bool any, failed;
    struct text text;
};

static void add_full(struct list *l, const char *full)
{
    json_object *name;

    if (!l->system && name_is_system(full))
        return;
    name = json_object_new_string(full);
    text_add(&l->text, "%s%s", l->any ? "," : "",
             json_object_to_json_string_ext(name, JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(name);
    l->any = true;
}

static void add(struct list *l, const char *encoded)
{
    char *local;

    if (strchr(encoded, '/') || name_decode(encoded, &local))
        return; /* a topic's cursor, or nobody's */
    char *full = mem_format("%s://%s/%s/%s", l->domain, l->tenant, l->ns, local);
    add_full(l, full);
    mem_free(full);
    mem_free(local);
}

/* Sends what was gathered; false: nobody listens. */
static bool flush(struct list *l)
{
    bool go_on = job_chunk(l->job, l->text.at ? l->text.at : "", l->text.len);

    text_drop(&l->text);
    l->text = (struct text){0};
    return go_on;
}

static void walk(struct list *l, const char *prefix)
{
    char *after = mem_string(prefix);
    struct ask_page page = {.more = true};

    while (page.more) {
        enum err err = ask_range(l->job, prefix, after, PAGE, &page);
        if (err) {
            /* What was sent is no JSON without its end: so it is told from a whole list. */
            job_fail(l->job, err, NULL);
            l->failed = true;
            break;
        }
        for (size_t i = 0; i < page.n; i++)
            add(l, page.keys[i] + strlen(prefix));
        mem_free(after);
        after = page.n ? mem_string(page.keys[page.n - 1]) : mem_string("");
        bool more = page.more && page.n > 0;
        ask_page_drop(&page);
        if (more && !flush(l))
            break;
        page.more = more;
    }
    mem_free(after);
}

/* ---- what is loaded ---- */

struct names_errand {
    struct errand errand;
    struct task task;
    struct topics_names_call call;
    char *prefix;
    enum err err;
};

static void free_names(struct errand *e)
{
    struct names_errand *n = container_of(e, struct names_errand, errand);

    topics_names_drop(&n->call);
    mem_free(n->prefix);
    mem_free(n);
}

static void names_came(struct topics_names_call *c, enum err err)
{
    struct names_errand *n = container_of(c, struct names_errand, call);

    n->err = err;
    errand_end(&n->errand);
}

static void ask_names(struct task *t)
{
    topics_names(&container_of(t, struct names_errand, task)->call);
}

static void add_loaded(struct list *l)
{
    const struct admin_env *env = &l->job->admin->env;
    struct names_errand *n = mem_new(struct names_errand);

    errand_begin(&n->errand, free_names);
    n->prefix = mem_format("non-persistent://%s/%s/", l->tenant, l->ns);
    n->call = (struct topics_names_call){.map = env->topics,
                                         .home = env->home,
                                         .prefix = n->prefix,
                                         .max_bytes = LOADED_MAX,
                                         .done = names_came};
    n->task.run = ask_names;
    loop_post(env->home, &n->task);
    bool back = errand_wait(&n->errand);
    if (!back)
        job_fail(l->job, ERR_TIMEOUT, NULL);
    else if (n->err)
        job_fail(l->job, n->err, NULL);
    else
        for (size_t i = 0; i < n->call.n; i++)
            add_full(l, n->call.names[i]);
    errand_drop(&n->errand);
}

/* ---- all that is asked for ---- */

static enum err prefix_of(struct list *l, unsigned which, char into[META_KEY_MAX])
{
    l->domain = which & TOPICS_FLEETING_PARTITIONED ? "non-persistent" : "persistent";
    if (which & TOPICS_FLEETING_PARTITIONED)
        return path_fleeting_partitioned_topics(l->tenant, l->ns, into);
    if (which & TOPICS_PARTITIONED)
        return path_partitioned_topics(l->tenant, l->ns, into);
    return path_topics(l->tenant, l->ns, into);
}

static void list_stored(struct list *l, unsigned which)
{
    char prefix[META_KEY_MAX];
    enum err err = prefix_of(l, which, prefix);

    if (err)
        job_fail(l->job, err, NULL);
    else
        walk(l, prefix);
}

void namespace_list_topics(struct job *j, const char *tenant, const char *ns, unsigned which)
{
    struct list l = {
        .job = j, .tenant = tenant, .ns = ns, .system = job_flag(j, "includeSystemTopic")};

    text_add(&l.text, "[");
    if (which & TOPICS_LOADED) /* first: it may still be answered that this failed */
        add_loaded(&l);
    if (which & ~(unsigned)TOPICS_LOADED && !j->status)
        list_stored(&l, which);
    text_add(&l.text, "]");
    if (!j->status || (j->begun && !l.failed))
        flush(&l);
    text_drop(&l.text);
}
