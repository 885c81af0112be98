/* WATCH_TOPIC_LIST and its end; what changes is told without being asked for.
 *
 * A client whose watch is refused asks for the list now and then instead, so a refusal loses
 * nothing but time; NotAllowedError is what makes it not try again. */
#include <string.h>

#include "broker/broker.h"
#include "broker/session/checks.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"
#include "common/log.h"

enum { NAME_OVERHEAD = 4, FRAME_OVERHEAD = 256, UPDATE_BYTES = 256 * 1024 };

static const int not_allowed = PULSAR__PROTO__SERVER_ERROR__NotAllowedError;

static struct session_watcher *watcher_of(struct topic_watch *w)
{
    return container_of(w, struct session_watcher, watch);
}

static struct session_watcher *find(struct session *s, uint64_t id)
{
    struct session_watcher *found;

    HASH_FIND(hh, s->watchers, &id, sizeof(id), found);
    return found;
}

static void forget(struct session_watcher *w)
{
    topic_watch_stop(&w->watch);
    HASH_DEL(w->session->watchers, w);
    mem_free(w->known);
    mem_free(w);
}

void session_watchers_leave(struct session *s)
{
    struct session_watcher *w, *next;

    HASH_ITER(hh, s->watchers, w, next)
    forget(w);
}

/* ---- what there is, and what changes ---- */

static bool fits(const struct session_watcher *w)
{
    const struct topic_view *v = w->watch.view;
    size_t max = (size_t)session_env(w->session)->conf->max_message_size + FRAME_PADDING;

    return v->bytes + v->names.n * NAME_OVERHEAD + FRAME_OVERHEAD <= max;
}

static void began(struct topic_watch *watch)
{
    struct session_watcher *w = watcher_of(watch);
    Pulsar__Proto__CommandWatchTopicListSuccess ok =
        PULSAR__PROTO__COMMAND_WATCH_TOPIC_LIST_SUCCESS__INIT;
    bool same = w->known && strcmp(w->known, watch->view->hash) == 0;

    if (!same && !fits(w)) {
        reply_error(w->session, w->request, not_allowed,
                    "the names of these topics do not fit into one frame");
        forget(w);
        return;
    }
    ok.request_id = w->request;
    ok.watcher_id = w->id;
    ok.topics_hash = (char *)(uintptr_t)watch->view->hash;
    if (!same) {
        ok.n_topic = watch->view->names.n;
        ok.topic = (char **)(uintptr_t)watch->view->names.at;
    }
    mem_free(w->known);
    w->known = NULL;
    REPLY(base, WATCH_TOPIC_LIST_SUCCESS, watchtopiclistsuccess, ok);
    session_send(w->session, &base);
}

/* So many of them, from `from` on, as fit. */
static size_t part_of(const struct name_list *l, size_t from, size_t max)
{
    size_t n = 0;

    for (size_t bytes = 0; from + n < l->n; n++) {
        bytes += strlen(l->at[from + n]) + NAME_OVERHEAD;
        if (bytes > max && n > 0)
            break;
    }
    return n;
}

static void update(struct session_watcher *w, size_t added, size_t n_added, size_t removed,
                   size_t n_removed)
{
    const struct topic_view *v = w->watch.view;
    Pulsar__Proto__CommandWatchTopicUpdate u = PULSAR__PROTO__COMMAND_WATCH_TOPIC_UPDATE__INIT;

    u.watcher_id = w->id;
    u.n_new_topics = n_added;
    u.new_topics = n_added ? (char **)(uintptr_t)(v->added.at + added) : NULL;
    u.n_deleted_topics = n_removed;
    u.deleted_topics = n_removed ? (char **)(uintptr_t)(v->removed.at + removed) : NULL;
    u.topics_hash = (char *)(uintptr_t)v->hash;
    REPLY(base, WATCH_TOPIC_UPDATE, watchtopicupdate, u);
    session_send(w->session, &base);
}

/* In as many commands as it takes to keep each small. */
static void changed(struct topic_watch *watch)
{
    struct session_watcher *w = watcher_of(watch);
    const struct topic_view *v = watch->view;
    size_t frame = (size_t)session_env(w->session)->conf->max_message_size;
    size_t max = frame < UPDATE_BYTES ? frame / 2 : UPDATE_BYTES / 2;
    size_t added = 0, removed = 0;

    while (added < v->added.n || removed < v->removed.n) {
        size_t n_added = part_of(&v->added, added, max);
        size_t n_removed = part_of(&v->removed, removed, max);
        update(w, added, n_added, removed, n_removed);
        added += n_added;
        removed += n_removed;
    }
}

/* There is no command that ends a watch from this side: one that had begun goes with its
 * connection, so that its client is not left waiting for what does not come. */
static void ended(struct topic_watch *watch, enum err err)
{
    struct session_watcher *w = watcher_of(watch);
    struct session *s = w->session;
    bool had_begun = watch->told;

    if (!had_begun)
        reply_error(s, w->request, not_allowed, "these are more topics than the broker watches");
    forget(w);
    if (had_begun)
        session_fail(s, err, "WATCH_TOPIC_LIST");
}

/* ---- the commands ---- */

static enum err start(struct session *s, const Pulsar__Proto__CommandWatchTopicList *c,
                      struct session_watcher *w, const char **why)
{
    struct topic_pattern *pattern;
    struct ns_name ns;

    *why = "the connection has as many watchers as it may have";
    if (HASH_COUNT(s->watchers) >= WATCHERS_MAX)
        return ERR_BUSY;
    TRY(checks_namespace(s, c->namespace_, &ns, why));
    enum err err = checks_pattern(s, c->topics_pattern, &pattern, why);
    if (!err) {
        *why = "the broker watches as many patterns as it may";
        err = topic_watch_start(s->home->watches, ns.tenant, ns.ns, pattern, &w->watch);
    }
    ns_name_drop(&ns);
    return err;
}

enum err on_watch_topics(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandWatchTopicList *l = c->base->watchtopiclist;
    struct session_watcher *w = find(s, l->watcher_id);
    const char *why;

    if (w && !w->watch.told)
        reply_error(s, w->request, not_allowed, "the watcher was replaced before it began");
    if (w)
        forget(w);
    w = mem_new(struct session_watcher);
    w->watch = (struct topic_watch){.began = began, .changed = changed, .ended = ended};
    enum err err = start(s, l, w, &why);
    if (err) {
        reply_error(s, l->request_id, err == ERR_FORBIDDEN ? err_to_pulsar(err) : not_allowed, why);
        mem_free(w);
        return ERR_OK;
    }
    w->session = s;
    w->id = l->watcher_id;
    w->request = l->request_id;
    w->known = l->topics_hash ? mem_string(l->topics_hash) : NULL;
    HASH_ADD(hh, s->watchers, id, sizeof(w->id), w);
    return ERR_OK;
}

enum err on_unwatch_topics(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandWatchTopicListClose *l = c->base->watchtopiclistclose;
    struct session_watcher *w = find(s, l->watcher_id);

    if (w && !w->watch.told)
        reply_error(s, w->request, not_allowed, "the watcher was closed before it began");
    if (w)
        forget(w);
    reply_success(s, l->request_id);
    return ERR_OK;
}
