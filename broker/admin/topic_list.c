/* All topics of a namespace, a page at a time: nobody waits for a million of them. */
#include <string.h>

#include "broker/admin/asks.h"
#include "broker/admin/namespace.h"
#include "common/mem.h"
#include "common/metric.h"
#include "metadata/paths.h"

enum { PAGE = 500 };

struct list {
    struct job *job;
    const char *tenant, *ns;
    bool system;
    bool any;
    struct text text;
};

static void add(struct list *l, const char *encoded)
{
    json_object *name;
    char *local, *full;

    if (strchr(encoded, '/') || name_decode(encoded, &local))
        return; /* a topic's cursor, or nobody's */
    if (l->system || strncmp(local, "__", 2) != 0) {
        full = mem_format("persistent://%s/%s/%s", l->tenant, l->ns, local);
        name = json_object_new_string(full);
        text_add(&l->text, "%s%s", l->any ? "," : "",
                 json_object_to_json_string_ext(name, JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(name);
        mem_free(full);
        l->any = true;
    }
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
        if (!more)
            text_add(&l->text, "]");
    }
    mem_free(after);
}

void namespace_list_topics(struct job *j, const char *tenant, const char *ns, bool partitioned)
{
    struct list l = {
        .job = j, .tenant = tenant, .ns = ns, .system = job_flag(j, "includeSystemTopic")};
    char prefix[META_KEY_MAX];
    enum err err =
        partitioned ? path_partitioned_topics(tenant, ns, prefix) : path_topics(tenant, ns, prefix);

    if (err) {
        job_fail(j, err, NULL);
        return;
    }
    text_add(&l.text, "[");
    walk(&l, prefix);
    if (!j->status || j->begun)
        flush(&l);
    text_drop(&l.text);
}
