/* GET_TOPICS_OF_NAMESPACE: what is stored and what is loaded, filtered if the pattern is one for
 * us, and only if it is not what the client knows already. */
#include <string.h>

#include "broker/broker.h"
#include "broker/cluster/name_list.h"
#include "broker/cluster/topic_pattern.h"
#include "broker/metrics.h"
#include "broker/session/checks.h"
#include "broker/session/listings.h"
#include "broker/session/names_frame.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"
#include "broker/topic/topics_names.h"
#include "metadata/names.h"

enum { PAGE = 250, HASHED = 1000, AGAIN_US = 50000 };

#define MODE(m) PULSAR__PROTO__COMMAND_GET_TOPICS_OF_NAMESPACE__MODE__##m

struct listing {
    struct session *session;
    struct list_node node; /* listings.waiting */
    uint64_t request;
    bool stored, loaded;           /* which of the two are asked for */
    char *domain, *loaded_domain;  /* "persistent://t/ns/" */
    struct topic_pattern *pattern; /* NULL: all */
    char *known;                   /* the client's hash; NULL: none */

    char *prefix, *after; /* of keys */
    struct meta_call call;
    struct topics_names_call names_call;
    struct name_list names; /* the listing's */
    size_t bytes;
    struct name_hash hash;
    size_t hashed;
    struct names_frame frame;
    struct timer step;
};

/* ---- the end of one ---- */

static void pump(struct listings *all);

static void forget_names(struct listing *l)
{
    for (size_t i = 0; i < l->names.n; i++)
        mem_free((char *)(uintptr_t)l->names.at[i]);
    name_list_drop(&l->names);
    l->bytes = 0;
}

static void finish(struct listing *l)
{
    struct session *s = l->session;
    struct listings *all = &s->home->listings;

    all->running--;
    s->home->lookups--;
    metric_add(&session_env(s)->metrics->lookups, -1);
    topic_pattern_drop(&l->pattern);
    forget_names(l);
    names_frame_drop(&l->frame);
    mem_free(l->domain);
    mem_free(l->loaded_domain);
    mem_free(l->known);
    mem_free(l->prefix);
    mem_free(l->after);
    mem_free(l);
    pump(all);
    session_let_go(s);
}

static void refuse(struct session *s, uint64_t request, enum err err, const char *why)
{
    metric_add(&session_env(s)->metrics->lookups_refused, 1);
    reply_error(s, request, reply_code_lookup(err), why);
}

static void fail(struct listing *l, enum err err)
{
    if (err == ERR_TOO_BIG)
        refuse(l->session, l->request, ERR_NOT_ALLOWED,
               "the names of these topics do not fit into one frame");
    else
        refuse(l->session, l->request, err, err_text(err));
    finish(l);
}

static void answer(struct listing *l)
{
    name_hash_text hash;

    name_hash_end(&l->hash, hash);
    bool changed = !l->known || strcmp(l->known, hash) != 0;
    if (!changed)
        names_frame_clear(&l->frame);
    session_send_frame(l->session,
                       names_frame_end(&l->frame, l->request, l->pattern != NULL, changed, hash));
    finish(l);
}

static void hash_some(struct timer *t)
{
    struct listing *l = container_of(t, struct listing, step);

    for (unsigned i = 0; i < HASHED && l->hashed < l->names.n; i++) {
        names_frame_add(&l->frame, l->names.at[l->hashed]);
        name_hash_add(&l->hash, l->names.at[l->hashed++]);
    }
    if (l->hashed < l->names.n)
        loop_after(session_env(l->session)->home, &l->step, 0);
    else
        answer(l);
}

static void names_known(struct listing *l)
{
    l->step.run = hash_some;
    names_frame_begin(&l->frame, l->bytes);
    hash_some(&l->step);
}

/* ---- names ---- */

static size_t bytes_max(const struct listing *l)
{
    return (size_t)session_env(l->session)->conf->max_message_size + FRAME_PADDING -
           NAMES_FRAME_REST;
}

/* Takes name.  ERR_TOO_BIG also for a pattern that is too much work. */
static enum err consider(struct listing *l, struct name_list *into, char *name, bool *undecided)
{
    bool meant = !name_is_system(name);

    *undecided = meant && l->pattern && topic_pattern_matches(l->pattern, name, &meant) != ERR_OK;
    if (!meant || *undecided) {
        mem_free(name);
        return *undecided ? ERR_TOO_BIG : ERR_OK;
    }
    name_list_push(into, name);
    l->bytes += strlen(name) + NAMES_FRAME_NAME;
    return l->bytes > bytes_max(l) ? ERR_TOO_BIG : ERR_OK;
}

static void take_in_order(struct listing *l, struct name_list *some)
{
    name_list_sort(some);
    name_list_merge(&l->names, some);
    name_list_drop(some);
}

/* ---- what is loaded ---- */

static void begin(struct listing *l);

/* A pattern that is too much for us is the client's to apply. */
static void begin_without_pattern(struct listing *l)
{
    topic_pattern_drop(&l->pattern);
    forget_names(l);
    begin(l);
}

static void go_on(struct listing *l, enum err err, bool undecided)
{
    if (undecided)
        begin_without_pattern(l);
    else
        fail(l, err);
}

static void loaded_came(struct topics_names_call *c, enum err err)
{
    struct listing *l = container_of(c, struct listing, names_call);
    struct name_list some = {0};
    bool undecided = false;

    for (size_t i = 0; i < c->n && !err; i++) {
        err = consider(l, &some, c->names[i], &undecided);
        c->names[i] = NULL;
    }
    topics_names_drop(c);
    take_in_order(l, &some);
    if (err)
        go_on(l, err, undecided);
    else
        names_known(l);
}

static void stored_done(struct listing *l)
{
    if (!l->loaded) {
        names_known(l);
        return;
    }
    l->names_call = (struct topics_names_call){.map = session_env(l->session)->topics,
                                               .home = session_env(l->session)->home,
                                               .prefix = l->loaded_domain,
                                               .max_bytes = bytes_max(l),
                                               .done = loaded_came};
    topics_names(&l->names_call);
}

/* ---- what is stored ---- */

static void page_came(struct meta_call *c, const struct meta_reply *r);

static void ask_page(struct listing *l)
{
    l->call = (struct meta_call){.home = session_env(l->session)->home, .done = page_came};
    meta_range(session_env(l->session)->meta, l->prefix, l->after, PAGE, true, &l->call);
}

/* Gives, or NULL for what is no topic: below a topic are its cursors. */
static char *name_of(const struct listing *l, const char *key)
{
    char *local, *full = NULL;

    if (strchr(key, '/') || name_decode(key, &local))
        return NULL;
    if (name_is_local(local))
        full = mem_format("%s%s", l->domain, local);
    mem_free(local);
    return full;
}

static enum err take_page(struct listing *l, const struct meta_reply *r, bool *undecided)
{
    struct name_list some = {0};
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->count && !err; i++) {
        char *name = name_of(l, r->items[i].key + strlen(l->prefix));
        if (name)
            err = consider(l, &some, name, undecided);
    }
    take_in_order(l, &some);
    mem_free(l->after);
    l->after = r->count > 0 ? mem_string(r->items[r->count - 1].key) : NULL;
    return err;
}

static void page_came(struct meta_call *c, const struct meta_reply *r)
{
    struct listing *l = container_of(c, struct listing, call);
    bool undecided = false;
    enum err err = r->err;

    if (l->session->state == SESSION_ENDED) {
        finish(l);
        return;
    }
    if (!err)
        err = take_page(l, r, &undecided);
    if (err)
        go_on(l, err, undecided);
    else if (r->more && r->count > 0)
        ask_page(l);
    else
        stored_done(l);
}

static void begin(struct listing *l)
{
    mem_free(l->after);
    l->after = NULL;
    if (l->stored)
        ask_page(l);
    else
        stored_done(l);
}

/* ---- a few at a time ---- */

static bool is_full(const struct session *s)
{
    return s->conn && conn_waiting(s->conn) >= WRITE_HIGH / 2;
}

static void pump(struct listings *all)
{
    bool some_are_full = false;

    list_each(&all->waiting, n)
    {
        struct listing *l = list_entry(n, struct listing, node);
        if (all->running >= LISTINGS_RUNNING)
            return;
        if (is_full(l->session)) {
            some_are_full = true;
            continue;
        }
        list_remove(n);
        all->running++;
        loop_after(all->home, &l->step, 0);
    }
    if (some_are_full && !timer_armed(&all->again))
        loop_after(all->home, &all->again, AGAIN_US);
}

static void its_turn(struct timer *t)
{
    struct listing *l = container_of(t, struct listing, step);

    if (l->session->state == SESSION_ENDED)
        finish(l);
    else
        begin(l);
}

static void try_again(struct timer *t)
{
    pump(container_of(t, struct listings, again));
}

void listings_init(struct listings *l, struct loop *home)
{
    l->home = home;
    l->again.run = try_again;
    list_init(&l->waiting);
}

void listings_end(struct listings *l)
{
    loop_cancel(l->home, &l->again);
}

/* ---- the command ---- */

static enum err check(struct session *s, const char *text, struct ns_name *ns, const char **why)
{
    TRY(checks_namespace(s, text, ns, why));
    if (s->home->lookups < (uint64_t)session_env(s)->conf->max_lookups)
        return ERR_OK;
    ns_name_drop(ns);
    *why = "too many lookups at a time";
    return ERR_BUSY;
}

/* Gives, or NULL: then the client filters by itself. */
static struct topic_pattern *pattern_of(const struct session *s, const char *text)
{
    struct topic_pattern *p;
    const char *why;

    if (!text || checks_pattern(s, text, &p, &why))
        return NULL;
    return p;
}

enum err on_topics_of_namespace(struct session *s, const struct command *c)
{
    const Pulsar__Proto__CommandGetTopicsOfNamespace *g = c->base->gettopicsofnamespace;
    struct ns_name ns;
    const char *why;
    enum err err = check(s, g->namespace_, &ns, &why);

    if (err) {
        refuse(s, g->request_id, err, why);
        return ERR_OK;
    }
    struct listing *l = mem_new(struct listing);
    l->session = s;
    l->request = g->request_id;
    l->stored = g->mode != MODE(NON_PERSISTENT);
    l->loaded = g->mode != MODE(PERSISTENT);
    l->domain = mem_format("persistent://%s/%s/", ns.tenant, ns.ns);
    l->loaded_domain = mem_format("non-persistent://%s/%s/", ns.tenant, ns.ns);
    l->prefix = mem_string(ns.topics);
    l->pattern = pattern_of(s, g->topics_pattern);
    l->known = g->topics_hash ? mem_string(g->topics_hash) : NULL;
    l->step.run = its_turn;
    ns_name_drop(&ns);
    session_hold(s);
    s->home->lookups++;
    metric_add(&session_env(s)->metrics->lookups, 1);
    list_push_back(&s->home->listings.waiting, &l->node);
    pump(&s->home->listings);
    return ERR_OK;
}
