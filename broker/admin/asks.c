#include "broker/admin/asks.h"
#include "broker/broker.h"

#include <string.h>

#include "broker/admin/errand.h"
#include "broker/cluster/ownership.h"
#include "broker/policy/policies.h"
#include "broker/topic/topics.h"
#include "common/mem.h"

enum { REWRITES = 10, PAGE = 500, JSON_DEPTH = 32 };

/* ---- metadata ---- */

struct meta_errand {
    struct errand errand;
    struct meta_call call;
    enum err err;
    struct slice value;
    int64_t version;
    struct ask_page page;
};

static void free_meta(struct errand *e)
{
    struct meta_errand *m = container_of(e, struct meta_errand, errand);

    slice_drop(&m->value);
    ask_page_drop(&m->page);
    mem_free(m);
}

static void copy_keys(struct ask_page *p, const struct meta_reply *r)
{
    if (r->count == 0)
        return;
    p->keys = mem_alloc(r->count * sizeof(char *));
    for (; p->n < r->count; p->n++)
        p->keys[p->n] = mem_string(r->items[p->n].key);
    p->more = r->more;
}

static void answered(struct meta_call *c, const struct meta_reply *r)
{
    struct meta_errand *m = container_of(c, struct meta_errand, call);

    m->err = r->err;
    m->version = r->version;
    if (!r->err) {
        m->value = slice_share(r->value);
        copy_keys(&m->page, r);
    }
    errand_end(&m->errand);
}

static struct meta_errand *meta_errand_new(struct job *j)
{
    struct meta_errand *m = mem_new(struct meta_errand);

    errand_begin(&m->errand, free_meta);
    m->call = (struct meta_call){.home = j->admin->env.home, .done = answered};
    return m;
}

static enum err outcome(struct meta_errand *m)
{
    return errand_wait(&m->errand) ? m->err : ERR_TIMEOUT;
}

enum err ask_get(struct job *j, const char *key, struct slice *value, int64_t *version)
{
    struct meta_errand *m = meta_errand_new(j);

    meta_get(j->admin->env.meta, key, &m->call);
    enum err err = outcome(m);
    if (!err && value)
        *value = slice_share(m->value);
    if (!err && version)
        *version = m->version;
    errand_drop(&m->errand);
    return err;
}

enum err ask_range(struct job *j, const char *prefix, const char *after, size_t limit,
                   struct ask_page *out)
{
    struct meta_errand *m = meta_errand_new(j);

    *out = (struct ask_page){0};
    meta_range(j->admin->env.meta, prefix, after, limit, true, &m->call);
    enum err err = outcome(m);
    if (!err) {
        *out = m->page;
        m->page = (struct ask_page){0};
    }
    errand_drop(&m->errand);
    return err;
}

void ask_page_drop(struct ask_page *p)
{
    for (size_t i = 0; i < p->n; i++)
        mem_free(p->keys[i]);
    mem_free(p->keys);
    *p = (struct ask_page){0};
}

static void add_children(json_object *into, const struct ask_page *page, size_t prefix)
{
    for (size_t i = 0; i < page->n; i++)
        if (!strchr(page->keys[i] + prefix, '/'))
            json_object_array_add(into, json_object_new_string(page->keys[i] + prefix));
}

enum err ask_children(struct job *j, const char *prefix, json_object **out)
{
    json_object *all = json_object_new_array();
    struct ask_page page = {.more = true};
    char *after = NULL;
    enum err err = ERR_OK;

    while (!err && page.more) {
        err = ask_range(j, prefix, after, PAGE, &page);
        mem_free(after);
        add_children(all, &page, strlen(prefix));
        after = page.n ? mem_string(page.keys[page.n - 1]) : NULL;
        bool more = page.more && page.n > 0;
        ask_page_drop(&page);
        page.more = more;
    }
    mem_free(after);
    if (err)
        json_object_put(all);
    else
        *out = all;
    return err;
}

/* ---- writing ---- */

struct forget_errand {
    struct errand errand;
    struct task task;
    struct policies *policies;
    char *key;
};

static void free_forget(struct errand *e)
{
    struct forget_errand *f = container_of(e, struct forget_errand, errand);

    mem_free(f->key);
    mem_free(f);
}

static void forget(struct task *t)
{
    struct forget_errand *f = container_of(t, struct forget_errand, task);

    policies_forget(f->policies, f->key);
    errand_end(&f->errand);
}

static bool begins_with(const char *key, const char *prefix)
{
    return strncmp(key, prefix, strlen(prefix)) == 0;
}

static void tell_caches(struct job *j, const char *key)
{
    const struct topics_map *all = j->admin->env.topics;

    if (!begins_with(key, PATH_POLICIES) && !begins_with(key, PATH_PARTITIONED))
        return;
    for (unsigned i = 0; i < all->n; i++) {
        struct forget_errand *f = mem_new(struct forget_errand);
        errand_begin(&f->errand, free_forget);
        f->policies = topics_env_of(all->at[i])->policies;
        f->key = mem_string(key);
        f->task.run = forget;
        loop_post(topics_loop(all->at[i]), &f->task);
        (void)errand_wait(&f->errand); /* the watch comes too */
        errand_drop(&f->errand);
    }
}

static enum err written(struct job *j, const char *key, struct meta_errand *m)
{
    enum err err = outcome(m);

    errand_drop(&m->errand);
    tell_caches(j, key);
    return err;
}

enum err ask_put(struct job *j, const char *key, struct slice value, int64_t expected)
{
    struct meta_errand *m = meta_errand_new(j);

    meta_put(j->admin->env.meta, key, value, expected, &m->call);
    return written(j, key, m);
}

enum err ask_remove(struct job *j, const char *key, int64_t expected)
{
    struct meta_errand *m = meta_errand_new(j);

    meta_remove(j->admin->env.meta, key, expected, &m->call);
    return written(j, key, m);
}

/* ---- JSON ---- */

enum err ask_json(struct job *j, const char *key, json_object **out, int64_t *version)
{
    struct slice value = {0};

    TRY(ask_get(j, key, &value, version));
    json_tokener *t = json_tokener_new_ex(JSON_DEPTH);
    json_object *o = json_tokener_parse_ex(t, (const char *)value.base, (int)value.len);
    json_tokener_free(t);
    slice_drop(&value);
    if (!json_object_is_type(o, json_type_object)) {
        json_object_put(o);
        return ERR_MALFORMED;
    }
    *out = o;
    return ERR_OK;
}

enum err ask_put_json(struct job *j, const char *key, json_object *o, int64_t expected)
{
    const char *text =
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

    return ask_put(j, key, slice_copy(text, strlen(text)), expected);
}

enum err ask_rewrite(struct job *j, const char *key, ask_change_fn *change, void *ctx)
{
    enum err err = ERR_BAD_VERSION;

    for (unsigned tries = 0; err == ERR_BAD_VERSION && tries < REWRITES; tries++) {
        json_object *o = NULL;
        int64_t version = 0;
        TRY(ask_json(j, key, &o, &version));
        err = change(ctx, o);
        if (err) {
            json_object_put(o);
            return err;
        }
        err = ask_put_json(j, key, o, version);
        json_object_put(o);
    }
    return err;
}

/* ---- ownership ---- */

struct owner_errand {
    struct errand errand;
    struct ownership_call call;
    enum err err;
    bool mine, secure;
    char *web;
};

static void free_owner(struct errand *e)
{
    struct owner_errand *o = container_of(e, struct owner_errand, errand);

    mem_free(o->web);
    mem_free(o);
}

/* Who asked by TLS is never sent on to a port without. */
static const char *web_of(const struct broker_urls *u, bool secure)
{
    return secure || !*u->web ? u->web_tls : u->web;
}

static void owner_known(struct ownership_call *c, enum err err, bool mine,
                        const struct broker_urls *where)
{
    struct owner_errand *o = container_of(c, struct owner_errand, call);

    o->err = err;
    o->mine = mine;
    if (!err && !mine)
        o->web = mem_string(web_of(where, o->secure));
    errand_end(&o->errand);
}

enum err ask_owner(struct job *j, const char *topic, bool *mine, char **web)
{
    struct owner_errand *o = mem_new(struct owner_errand);

    errand_begin(&o->errand, free_owner);
    o->secure = j->secure;
    o->call = (struct ownership_call){.home = j->admin->env.home, .done = owner_known};
    ownership_find(j->admin->env.ownership, topic, &o->call);
    enum err err = errand_wait(&o->errand) ? o->err : ERR_TIMEOUT;
    if (!err) {
        *mine = o->mine;
        *web = o->web;
        o->web = NULL;
    }
    errand_drop(&o->errand);
    return err;
}

/* ---- who answers ---- */

json_object *ask_self(const struct job *j)
{
    const struct admin_env *env = &j->admin->env;

    return json_object_new_string(*env->conf->broker_id ? env->conf->broker_id
                                                        : broker_urls_host(env->self));
}
