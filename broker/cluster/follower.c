#include "broker/cluster/follower.h"

#include <string.h>

#include "common/log.h"

enum { PAGE = 1000, RETRY_US = 200000 };

static const char *below(const struct follower *f, const char *key)
{
    return key + strlen(f->prefix);
}

static bool wants(const struct follower *f, const char *key)
{
    return !f->wants || f->wants(below(f, key));
}

static void stopped(struct follower *f)
{
    mem_free(f->after);
    f->after = NULL;
    mirror_drop(&f->mirror);
    f->stopped(f);
}

/* ---- the list ---- */

static void page_came(struct meta_call *c, const struct meta_reply *r);

static void ask_page(struct follower *f)
{
    f->call = (struct meta_call){.home = f->home, .done = page_came};
    meta_range(f->meta, f->prefix, f->after, PAGE, f->keys_only, &f->call);
}

static void list(struct follower *f)
{
    if (f->listing) {
        f->again = true;
        return;
    }
    f->listing = true;
    f->again = false;
    mem_free(f->after);
    f->after = NULL;
    mirror_list(&f->mirror);
    ask_page(f);
}

static void retry(struct timer *t)
{
    list(container_of(t, struct follower, retry));
}

static void take_page(struct follower *f, const struct meta_reply *r)
{
    mirror_page(&f->mirror, r->revision);
    for (size_t i = 0; i < r->count; i++) {
        if (!wants(f, r->items[i].key))
            continue;
        mirror_listed(&f->mirror, &(struct mirror_fact){.key = below(f, r->items[i].key),
                                                        .value = slice_view(r->items[i].value),
                                                        .version = r->items[i].version,
                                                        .revision = r->revision});
    }
    if (r->count > 0) {
        mem_free(f->after);
        f->after = mem_string(r->items[r->count - 1].key);
    }
}

static void list_ended(struct follower *f, enum err err)
{
    f->listing = false;
    if (f->stopping) {
        stopped(f);
    } else if (err) {
        log_event(LOG_WARN, "cluster.not_listed", F_STR("prefix", f->prefix), F_ERR(err));
        loop_after(f->home, &f->retry, RETRY_US);
    } else if (f->again) {
        list(f);
    } else {
        mirror_list_end(&f->mirror);
        f->caught_up(f);
    }
}

static void page_came(struct meta_call *c, const struct meta_reply *r)
{
    struct follower *f = container_of(c, struct follower, call);

    if (!r->err && !f->stopping) {
        take_page(f, r);
        if (r->more && r->count > 0 && !f->again) {
            ask_page(f);
            return;
        }
    }
    list_ended(f, r->err);
}

/* ---- the watch ---- */

static void changed(struct meta_watch *w, const struct meta_change *c)
{
    struct follower *f = container_of(w, struct follower, watch);

    if (c->kind == META_CHANGED_UNSURE) {
        list(f);
        return;
    }
    if (!wants(f, c->key))
        return;
    bool put = c->kind == META_CHANGED_PUT;
    mirror_change(&f->mirror,
                  &(struct mirror_fact){.key = below(f, c->key),
                                        .value = put ? slice_view(c->value) : view_of(NULL, 0),
                                        .version = put ? c->version : -1,
                                        .revision = c->revision});
}

void follower_learn(struct follower *f, const char *key, const struct slice *value, int64_t version,
                    uint64_t revision)
{
    mirror_learn(&f->mirror,
                 &(struct mirror_fact){.key = key,
                                       .value = value ? slice_view(*value) : view_of(NULL, 0),
                                       .version = value ? version : -1,
                                       .revision = revision});
}

void follower_start(struct follower *f)
{
    f->retry.run = retry;
    f->watch = (struct meta_watch){.home = f->home, .changed = changed};
    meta_watch(f->meta, f->prefix, &f->watch);
    list(f);
}

void follower_stop(struct follower *f)
{
    f->stopping = true;
    meta_unwatch(f->meta, &f->watch);
    loop_cancel(f->home, &f->retry);
    if (!f->listing)
        stopped(f);
}
