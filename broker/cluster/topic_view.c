#include "broker/cluster/topic_view.h"

#include <assert.h>
#include <string.h>

void topic_view_init(struct topic_view *v, struct topic_pattern *pattern)
{
    *v = (struct topic_view){.pattern = pattern};
}

void topic_view_drop(struct topic_view *v)
{
    topic_pattern_drop(&v->pattern);
    name_list_drop(&v->names);
    name_list_drop(&v->added);
    name_list_drop(&v->removed);
}

static void begin_hash(struct topic_view *v)
{
    v->state = VIEW_HASHING;
    v->at = 0;
    v->hashing = (struct name_hash){0};
}

static void filter(struct topic_view *v, const struct name_list *all, size_t most)
{
    for (; v->at < all->n && most > 0; most--) {
        const char *name = all->at[v->at++];
        bool meant;
        if (topic_pattern_matches(v->pattern, name, &meant)) {
            v->state = VIEW_FAILED;
            return;
        }
        if (!meant)
            continue;
        name_list_push(&v->names, name);
        v->bytes += strlen(name);
    }
    if (v->at == all->n)
        begin_hash(v);
}

static void hash(struct topic_view *v, size_t most)
{
    for (; v->at < v->names.n && most > 0; most--)
        name_hash_add(&v->hashing, v->names.at[v->at++]);
    if (v->at < v->names.n)
        return;
    name_hash_end(&v->hashing, v->hash);
    v->state = VIEW_STEADY;
}

void topic_view_work(struct topic_view *v, const struct name_list *all, size_t most)
{
    if (v->state == VIEW_FILTERING)
        filter(v, all, most);
    else if (v->state == VIEW_HASHING)
        hash(v, most);
}

/* Gives the bytes of those that are meant. */
static size_t choose(struct topic_view *v, struct name_list *into, const struct name_list *from)
{
    size_t bytes = 0;

    name_list_clear(into);
    for (size_t i = 0; i < from->n; i++) {
        bool meant;
        if (topic_pattern_matches(v->pattern, from->at[i], &meant) || !meant)
            continue;
        name_list_push(into, from->at[i]);
        bytes += strlen(from->at[i]);
    }
    return bytes;
}

void topic_view_change(struct topic_view *v, const struct name_list *added,
                       const struct name_list *removed)
{
    assert(v->state == VIEW_STEADY);
    v->bytes -= choose(v, &v->removed, removed);
    v->bytes += choose(v, &v->added, added);
    name_list_remove(&v->names, &v->removed);
    name_list_merge(&v->names, &v->added);
    if (v->added.n + v->removed.n > 0)
        begin_hash(v);
}
