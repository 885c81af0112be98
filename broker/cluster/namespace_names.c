/* The names of a namespace's topics: followed, and given to the views in batches.
 *
 *   told -> pending -> batch -> all, and each view in turn: change or filter, hash, tell -> batch
 * ..
 */
#include <string.h>

#include "broker/cluster/topic_watch_inside.h"
#include "metadata/names.h"
#include "metadata/paths.h"

enum { BATCH = 250, FILTERED = 50, HASHED = 1000, SLICE_US = 2000 };
enum { GATHER_US = 20000, GATHER_MAX_US = 2000000, REST = 10 };

/* Found by its key's tag while it is there. */
struct followed {
    struct list_node node; /* in pending */
    bool there, told;
    char full[];
};

static struct followed *followed_of(const char *full)
{
    return container_of(full, struct followed, full);
}

/* ---- what the metadata says ---- */

static bool is_topic(const char *key)
{
    return !strchr(key, '/'); /* below a topic are its cursors */
}

/* Gives; NULL for what is no topic that users may see. */
static struct followed *follow(struct namespace_names *n, const char *key)
{
    size_t before = strlen(n->domain);
    struct followed *f = NULL;
    char *local;

    if (name_decode(key, &local))
        return NULL;
    size_t len = strlen(local);
    if (name_is_local(local)) {
        f = mem_alloc(sizeof(*f) + before + len + 1);
        memcpy(f->full, n->domain, before);
        memcpy(f->full + before, local, len);
        list_init(&f->node);
    }
    mem_free(local);
    if (!f || !name_is_system(f->full))
        return f;
    mem_free(f);
    return NULL;
}

static void let_go(struct namespace_names *n, struct followed *f)
{
    n->home->names--;
    mem_free(f);
}

static void doubt(struct namespace_names *n, struct followed *f)
{
    uint64_t rest = n->busy_us * REST;

    if (list_empty(&f->node))
        list_push_back(&n->pending, &f->node);
    if (!n->listed || n->stepping || timer_armed(&n->step))
        return;
    if (rest < GATHER_US)
        rest = GATHER_US;
    loop_after(n->home->home, &n->step, rest < GATHER_MAX_US ? rest : GATHER_MAX_US);
}

static void told(void *ctx, const struct mirror_fact *fact)
{
    struct namespace_names *n = ctx;
    struct followed *f = *fact->tag;
    bool there = fact->version >= 0;

    if (f && f->there == there)
        return;
    if (!f) {
        if (!there || n->too_many)
            return;
        f = follow(n, fact->key);
        if (!f)
            return;
        n->too_many = ++n->home->names >= WATCH_NAMES_MAX;
        if (n->too_many)
            namespace_names_soon(n);
    }
    f->there = there;
    *fact->tag = there ? f : NULL;
    doubt(n, f);
}

static void caught_up(struct follower *follower)
{
    struct namespace_names *n = container_of(follower, struct namespace_names, follower);

    n->listed = true;
    namespace_names_soon(n);
}

/* ---- a batch ---- */

static void take_batch(struct namespace_names *n)
{
    struct list_node *node;

    for (unsigned i = 0; i < BATCH && (node = list_pop_front(&n->pending)); i++) {
        struct followed *f = list_entry(node, struct followed, node);
        list_init(node);
        if (f->there != f->told)
            name_list_push(f->there ? &n->added : &n->removed, f->full);
        else if (!f->there)
            let_go(n, f);
        f->told = f->there;
    }
    name_list_sort(&n->added);
    name_list_sort(&n->removed);
    name_list_remove(&n->all, &n->removed);
    name_list_merge(&n->all, &n->added);
    n->settled = n->settled || list_empty(&n->pending);
}

static bool has_work(const struct namespace_names *n, const struct shared_view *v, bool any)
{
    if (v->view.state == VIEW_FILTERING)
        return n->settled;
    return any || v->joined;
}

static void begin_batch(struct namespace_names *n)
{
    n->busy_us = 0;
    take_batch(n);
    bool any = n->added.n + n->removed.n > 0;
    list_each(&n->views, node)
    {
        struct shared_view *v = list_entry(node, struct shared_view, node);
        v->due = any && v->view.state == VIEW_STEADY;
        if (has_work(n, v, any))
            list_push_back(&n->work, &v->work);
    }
}

static void end_batch(struct namespace_names *n)
{
    for (size_t i = 0; i < n->removed.n; i++)
        let_go(n, followed_of(n->removed.at[i]));
    name_list_clear(&n->removed);
    name_list_clear(&n->added);
}

/* ---- the views ---- */

static void count(struct namespace_names *n, struct shared_view *v)
{
    n->home->viewed += v->view.names.n - v->viewed;
    v->viewed = v->view.names.n;
}

static void work_on(struct namespace_names *n, struct shared_view *v)
{
    bool first = v->view.state == VIEW_FILTERING;

    if (v->due)
        topic_view_change(&v->view, &n->added, &n->removed);
    else
        topic_view_work(&v->view, &n->all, first ? FILTERED : HASHED);
    count(n, v);
    bool changed = v->due && v->view.state == VIEW_HASHING;
    v->due = false;
    v->changed = v->changed || changed;
    if (v->view.state == VIEW_FAILED || (first && n->home->viewed > WATCH_VIEWED_MAX)) {
        list_remove(&v->work);
        shared_view_fail(v, ERR_TOO_BIG);
    } else if (v->view.state == VIEW_STEADY) {
        list_remove(&v->work);
        shared_view_tell(v);
    }
}

static void give_up(struct namespace_names *n)
{
    while (!list_empty(&n->views))
        shared_view_fail(list_entry(n->views.next, struct shared_view, node), ERR_TOO_BIG);
}

static bool somebody_waits(const struct namespace_names *n)
{
    list_each(&n->views, node)
    {
        if (list_entry(node, struct shared_view, node)->joined)
            return true;
    }
    return false;
}

static void go_on(struct namespace_names *n)
{
    if (!list_empty(&n->work) || (n->listed && (!n->settled || somebody_waits(n))))
        namespace_names_soon(n);
    else if (!list_empty(&n->pending))
        doubt(n, list_entry(n->pending.next, struct followed, node));
}

static void on_step(struct timer *t)
{
    struct namespace_names *n = container_of(t, struct namespace_names, step);
    uint64_t began = loop_clock();

    n->stepping = true;
    if (n->too_many)
        give_up(n);
    else if (n->listed && list_empty(&n->work))
        begin_batch(n);
    while (!list_empty(&n->work) && loop_clock() - began < SLICE_US)
        work_on(n, list_entry(n->work.next, struct shared_view, work));
    if (list_empty(&n->work))
        end_batch(n);
    n->stepping = false;
    n->busy_us += loop_clock() - began;
    if (list_empty(&n->views))
        namespace_names_settle(n);
    else
        go_on(n);
}

void namespace_names_soon(struct namespace_names *n)
{
    if (!n->stepping)
        loop_after(n->home->home, &n->step, 0);
}

/* ---- life ---- */

static void forget_pending(struct namespace_names *n)
{
    for (struct list_node *node; (node = list_pop_front(&n->pending));) {
        struct followed *f = list_entry(node, struct followed, node);
        if (!f->told)
            let_go(n, f);
    }
}

static void stopped(struct follower *follower)
{
    struct namespace_names *n = container_of(follower, struct namespace_names, follower);
    struct topic_watches *home = n->home;

    forget_pending(n);
    end_batch(n);
    for (size_t i = 0; i < n->all.n; i++)
        let_go(n, followed_of(n->all.at[i]));
    name_list_drop(&n->all);
    name_list_drop(&n->added);
    name_list_drop(&n->removed);
    mem_free(n->prefix);
    mem_free(n->domain);
    mem_free(n);
    home->going--;
    if (topic_watches_idle(home) && home->idle)
        home->idle(home->ctx);
}

void namespace_names_settle(struct namespace_names *n)
{
    if (n->stepping || n->stopping || !list_empty(&n->views))
        return;
    n->stopping = true;
    HASH_DEL(n->home->by_name, n);
    n->home->going++;
    loop_cancel(n->home->home, &n->step);
    follower_stop(&n->follower);
}

struct namespace_names *namespace_names_get(struct topic_watches *home, const char *tenant,
                                            const char *ns, const char *prefix)
{
    struct namespace_names *n;

    HASH_FIND_STR(home->by_name, prefix, n);
    if (n)
        return n;
    n = mem_new(struct namespace_names);
    n->home = home;
    n->prefix = mem_string(prefix);
    n->domain = mem_format("persistent://%s/%s/", tenant, ns);
    n->step.run = on_step;
    list_init(&n->pending);
    list_init(&n->views);
    list_init(&n->work);
    HASH_ADD_KEYPTR(hh, home->by_name, n->prefix, strlen(n->prefix), n);
    n->follower = (struct follower){.home = home->home,
                                    .meta = home->meta,
                                    .prefix = n->prefix,
                                    .keys_only = true,
                                    .wants = is_topic,
                                    .caught_up = caught_up,
                                    .stopped = stopped};
    mirror_init(&n->follower.mirror, told, n);
    follower_start(&n->follower);
    return n;
}
