#include "ledger/audit.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "ledger/auditor.h"
#include "ledger/farewell.h"
#include "ledger/handle.h"
#include "metadata/paths.h"
#include "metadata/records.h"

enum { PAGE = 100, ELECT_US = 5 * 1000 * 1000, WAIT_MAX_US = 60 * 1000 * 1000 };

/* A ledger of a page that is to be marked. */
struct mark {
    struct list_node node;
    int64_t ledger;
    struct mark_record lacks;
};

enum audit_state {
    AUDIT_IDLE,
    AUDIT_ELECTING,
    AUDIT_SCANNING, /* for the marks of a page, or for the next page */
    AUDIT_PARTING,  /* the farewell's */
    AUDIT_SCRUBBING
};

struct audit {
    struct ledger_client *client;
    struct census *census;
    const struct autorecovery_conf *conf;
    struct autorecovery_counts *counts;
    struct auditor core;
    enum audit_state state;
    bool leads, gone;
    bool all_marked;
    unsigned marked, unreadable;
    uint64_t asked; /* as the census last said */
    struct farewell *farewell;
    char *after;            /* the last key of the page; NULL: it was the last page */
    struct list_node marks; /* of the page */
    struct mark_record writing;
    struct meta_call call;
    struct meta_watch watch;
    struct timer timer;
    uint64_t scrub_at; /* UINT64_MAX: never */
    int64_t *page;     /* ledgers to be compared */
    unsigned n, next;
    struct repair *repair;
    struct repair_report report;
    struct repair_rate rate;
    char key[META_KEY_MAX];
};

static struct loop *loop_of(const struct audit *a)
{
    return a->client->loop;
}

static void end(struct audit *a)
{
    auditor_drop(&a->core);
    mark_record_drop(&a->writing);
    mem_free(a->page);
    mem_free(a->after);
    mem_free(a);
}

static void go_on(struct audit *a);

/* True: the answer is still wanted. */
static bool came_back(struct audit *a)
{
    if (!a->gone)
        return true;
    end(a);
    return false;
}

static void call(struct audit *a, void (*done)(struct meta_call *c, const struct meta_reply *r))
{
    a->call = (struct meta_call){.home = loop_of(a), .done = done};
}

static void feed(struct audit *a)
{
    uint64_t now = loop_now(loop_of(a)), delay;
    unsigned lost = 0;

    for (uint32_t i = 0; i < census_count(a->census); i++) {
        bool here = census_is_here(a->census, i);
        auditor_saw(&a->core, i, here, census_is_leaving(a->census, i), now);
        lost += !here && census_has_cookie(a->census, i);
    }
    a->core.delay_us = census_delay(a->census, &delay) ? delay : a->conf->lost_delay_us;
    auditor_pause(&a->core, census_is_paused(a->census));
    if (census_asked(a->census) != a->asked)
        auditor_ask(&a->core);
    a->asked = census_asked(a->census);
    metric_set(&a->counts->lost, lost);
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void scan_on(struct audit *a);

static void mark_end(struct audit *a, enum err err)
{
    struct mark *m = list_entry(list_pop_front(&a->marks), struct mark, node);

    if (err) {
        a->all_marked = false;
        log_event(LOG_WARN, "auditor.mark_failed", F_I64("ledger", m->ledger), F_ERR(err));
    }
    mark_record_drop(&m->lacks);
    mark_record_drop(&a->writing);
    mem_free(m);
    scan_on(a);
}

static void mark_put(struct meta_call *c, const struct meta_reply *r)
{
    struct audit *a = container_of(c, struct audit, call);

    if (!came_back(a))
        return;
    /* Somebody else has written it or taken it away meanwhile: look again. */
    if (r->err == ERR_BAD_VERSION || r->err == ERR_UNKNOWN_STATE) {
        mark_record_drop(&a->writing);
        scan_on(a);
        return;
    }
    a->marked += !r->err;
    metric_add(&a->counts->marked, !r->err);
    mark_end(a, r->err);
}

/* One that says all of it already is written again all the same: whoever is about to remove it
 * has not seen that the bookie went once more. */
static void mark_seen(struct meta_call *c, const struct meta_reply *r)
{
    struct audit *a = container_of(c, struct audit, call);
    enum err err = r->err == ERR_NOT_FOUND ? ERR_OK : r->err;

    if (!came_back(a))
        return;
    const struct mark *m = list_entry(a->marks.next, struct mark, node);
    a->writing = (struct mark_record){.ctime_ms = (int64_t)loop_wall_ms()};
    if (!r->err && mark_record_read(slice_view(r->value), &a->writing))
        log_event(LOG_WARN, "auditor.mark_unreadable", F_I64("ledger", m->ledger));
    for (unsigned i = 0; !err && i < m->lacks.n; i++)
        if (!mark_record_has(&a->writing, m->lacks.replicas[i]))
            mark_record_add(&a->writing, m->lacks.replicas[i]);
    if (err) {
        mark_end(a, err);
        return;
    }
    call(a, mark_put);
    meta_put(a->client->meta, a->key, mark_record_write(&a->writing),
             r->err ? META_ABSENT : r->version, &a->call);
}

static void mark_next(struct audit *a)
{
    const struct mark *m = list_entry(a->marks.next, struct mark, node);
    enum err err = path_mark(m->ledger, a->key);

    if (err) {
        mark_end(a, err);
        return;
    }
    call(a, mark_seen);
    meta_get(a->client->meta, a->key, &a->call);
}

/* ---- looking through all ledgers ------------------------------------------------------------- */

static void look_at_segments(struct audit *a, const Bookkeeper__LedgerMetadataFormat *r,
                             struct mark_record *lacks)
{
    for (size_t i = 0; i < r->n_segment; i++)
        for (size_t k = 0; k < r->segment[i]->n_ensemblemember; k++) {
            const char *id = r->segment[i]->ensemblemember[k];
            if (auditor_is_after(&a->core, census_number(a->census, id)) &&
                !mark_record_has(lacks, id))
                mark_record_add(lacks, id);
        }
}

static void look_at(struct audit *a, const struct meta_item *item)
{
    Bookkeeper__LedgerMetadataFormat *record;
    struct mark_record lacks = {.ctime_ms = -1};
    int64_t id;

    if (path_ledger_id(item->key, &id))
        return;
    enum err err = ledger_record_read(slice_view(item->value), &record);
    if (err) {
        a->unreadable++;
        log_event(LOG_ERROR, "auditor.ledger_unreadable", F_I64("ledger", id), F_ERR(err));
        return;
    }
    look_at_segments(a, record, &lacks);
    if (record->state == BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__IN_RECOVERY)
        auditor_in_recovery(&a->core);
    bookkeeper__ledger_metadata_format__free_unpacked(record, NULL);
    if (lacks.n == 0)
        return;
    struct mark *m = mem_new(struct mark);
    m->ledger = id;
    m->lacks = lacks;
    list_push_back(&a->marks, &m->node);
}

static void remember_page(struct audit *a, const struct meta_reply *r)
{
    mem_free(a->after);
    a->after = r->more && r->count > 0 ? mem_string(r->items[r->count - 1].key) : NULL;
}

/* Cookies of those that are empty have gone. */
static void parted(void *ctx)
{
    struct audit *a = ctx;

    a->state = AUDIT_IDLE;
    feed(a); /* bookies that only ledgers know of */
    go_on(a);
}

static void scan_end(struct audit *a)
{
    log_event(LOG_INFO, "auditor.audited", F_U64("marked", a->marked),
              F_STR("all", a->all_marked ? "yes" : "no"));
    auditor_ended(&a->core, a->all_marked, loop_now(loop_of(a)));
    a->state = AUDIT_PARTING;
    farewell_run(a->farewell, &a->core, a->leads && a->all_marked && a->unreadable == 0);
}

static void scanned(struct meta_call *c, const struct meta_reply *r)
{
    struct audit *a = container_of(c, struct audit, call);

    if (!came_back(a))
        return;
    if (r->err) {
        a->all_marked = false;
        scan_end(a);
        return;
    }
    for (size_t i = 0; i < r->count; i++)
        look_at(a, &r->items[i]);
    remember_page(a, r);
    scan_on(a);
}

static void ask_page(struct audit *a, const char *after, bool keys_only,
                     void (*done)(struct meta_call *c, const struct meta_reply *r))
{
    call(a, done);
    meta_range(a->client->meta, PATH_LEDGERS "/", after, PAGE, keys_only, &a->call);
}

static void scan_on(struct audit *a)
{
    if (!list_empty(&a->marks))
        mark_next(a);
    else if (a->after && a->leads)
        ask_page(a, a->after, false, scanned);
    else
        scan_end(a);
}

static void scan(struct audit *a)
{
    auditor_began(&a->core, loop_now(loop_of(a)));
    a->state = AUDIT_SCANNING;
    a->all_marked = true;
    a->marked = a->unreadable = 0;
    farewell_began(a->farewell);
    ask_page(a, NULL, false, scanned);
}

/* ---- comparing all replicas ------------------------------------------------------------------ */

static void scrub_on(struct audit *a);

static void scrub_end(struct audit *a, bool whole)
{
    const struct repair_report *p = &a->report;

    log_event(p->lost || p->differ ? LOG_ERROR : LOG_INFO, "auditor.scrubbed",
              F_STR("all", whole ? "yes" : "no"), F_U64("repaired", p->entries),
              F_U64("lost", p->lost), F_U64("differ", p->differ));
    metric_add(&a->counts->entries, (int64_t)p->entries);
    metric_add(&a->counts->bytes, (int64_t)p->bytes);
    metric_set(&a->counts->entries_lost, (int64_t)p->lost);
    metric_set(&a->counts->differ, (int64_t)p->differ);
    a->scrub_at = loop_now(loop_of(a)) + (whole ? a->conf->scrub_us : a->conf->retry_us);
    a->state = AUDIT_IDLE;
    go_on(a);
}

static void noted(struct meta_call *c, const struct meta_reply *r)
{
    struct audit *a = container_of(c, struct audit, call);

    (void)r;
    if (came_back(a))
        scrub_end(a, true);
}

static void compared(void *ctx, enum err err)
{
    struct audit *a = ctx;

    (void)err; /* what it found is in the report; a bookie that was away is for the next round */
    a->repair = NULL;
    scrub_on(a);
}

/* Who is lost is the marks' business. */
static bool nobody_is_bad(void *ctx, const char *bookie)
{
    (void)ctx;
    (void)bookie;
    return false;
}

static void listed(struct meta_call *c, const struct meta_reply *r)
{
    struct audit *a = container_of(c, struct audit, call);

    if (!came_back(a))
        return;
    a->n = a->next = 0;
    remember_page(a, r);
    if (r->err) {
        scrub_end(a, false);
        return;
    }
    for (size_t i = 0; i < r->count && i < PAGE; i++)
        if (!path_ledger_id(r->items[i].key, &a->page[a->n]))
            a->n++;
    scrub_on(a);
}

static void scrub_on(struct audit *a)
{
    const struct repair_conf conf = {
        .is_bad = nobody_is_bad, .ctx = a, .rate = &a->rate, .window = a->conf->entries};

    if (a->core.paused || !a->leads) {
        scrub_end(a, false);
    } else if (a->next < a->n) {
        a->repair =
            repair_start(a->client, a->page[a->next++], (struct replicator_how){.thorough = true},
                         &conf, &a->report, compared, a);
    } else if (a->after) {
        ask_page(a, a->after, true, listed);
    } else {
        call(a, noted);
        meta_put(a->client->meta, PATH_SCRUBBED, time_record_write((int64_t)loop_wall_ms()),
                 META_ANY, &a->call);
    }
}

static void scrub(struct audit *a)
{
    a->state = AUDIT_SCRUBBING;
    a->report = (struct repair_report){0};
    ask_page(a, NULL, true, listed);
}

/* ---- who audits ------------------------------------------------------------------------------ */

static void scrubbed_last(struct meta_call *c, const struct meta_reply *r)
{
    struct audit *a = container_of(c, struct audit, call);
    int64_t wall = (int64_t)loop_wall_ms(), last = 0;

    if (!came_back(a))
        return;
    uint64_t now = loop_now(loop_of(a)); /* not before: the client may be gone */
    a->scrub_at = now + a->conf->scrub_us;
    if (!r->err && !time_record_read(slice_view(r->value), &last) && last < wall) {
        uint64_t since = (uint64_t)(wall - last) * 1000;
        a->scrub_at = since < a->conf->scrub_us ? now + a->conf->scrub_us - since : now;
    }
    a->state = AUDIT_IDLE;
    go_on(a);
}

static void lead(struct audit *a)
{
    a->leads = true;
    metric_set(&a->counts->auditor, 1);
    log_event(LOG_INFO, "auditor.elected", F_STR("name", a->conf->name));
    auditor_drop(&a->core);
    auditor_init(&a->core, a->conf->lost_delay_us, a->conf->audit_us, a->conf->retry_us,
                 a->conf->open_grace_us, loop_now(loop_of(a)));
    a->asked = census_asked(a->census);
    feed(a);
    if (a->conf->scrub_us) {
        call(a, scrubbed_last);
        meta_get(a->client->meta, PATH_SCRUBBED, &a->call);
        return;
    }
    a->scrub_at = UINT64_MAX;
    a->state = AUDIT_IDLE;
    go_on(a);
}

static void laid_out(struct meta_call *c, const struct meta_reply *r)
{
    struct audit *a = container_of(c, struct audit, call);

    (void)r; /* it is there, or the next one writes it */
    if (came_back(a))
        lead(a);
}

static void elected(struct meta_call *c, const struct meta_reply *r)
{
    struct audit *a = container_of(c, struct audit, call);
    static const char layout[] = "type: \"BASIC\"\nversion: 1\n";

    if (!came_back(a))
        return;
    if (r->err) {
        a->state = AUDIT_IDLE;
        loop_after(loop_of(a), &a->timer, ELECT_US);
        return;
    }
    call(a, laid_out);
    meta_put(a->client->meta, PATH_MARKS_LAYOUT, slice_copy(layout, sizeof layout - 1), META_ABSENT,
             &a->call);
}

/* As Pulsar writes it: a name in JSON. */
static char *vote(const struct audit *a)
{
    return mem_format("\"%s\"", a->conf->name);
}

static void elect(struct audit *a)
{
    char *text = vote(a);

    a->state = AUDIT_ELECTING;
    call(a, elected);
    meta_hold(a->client->meta, PATH_AUDITOR, slice_copy(text, strlen(text)), &a->call);
    mem_free(text);
}

static void leader_changed(struct meta_watch *w, const struct meta_change *c)
{
    struct audit *a = container_of(w, struct audit, watch);
    char *text = vote(a);
    bool other = c->kind == META_CHANGED_PUT &&
                 (c->value.len != strlen(text) || memcmp(c->value.base, text, c->value.len) != 0);

    mem_free(text);
    if (other && a->leads) {
        a->leads = false;
        metric_set(&a->counts->auditor, 0);
        log_event(LOG_WARN, "auditor.deposed", F_STR("name", a->conf->name));
    }
    if (c->kind != META_CHANGED_PUT && !a->leads)
        go_on(a);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void wait(struct audit *a, uint64_t due)
{
    uint64_t now = loop_now(loop_of(a)), us = due > now ? due - now : 0;

    loop_after(loop_of(a), &a->timer, us < WAIT_MAX_US ? us : WAIT_MAX_US);
}

static void go_on(struct audit *a)
{
    uint64_t now = loop_now(loop_of(a));

    if (a->state != AUDIT_IDLE || !census_is_ready(a->census))
        return;
    loop_cancel(loop_of(a), &a->timer);
    if (!a->leads) {
        elect(a);
        return;
    }
    uint64_t due = auditor_due(&a->core, now);
    uint64_t scrub_at = a->core.paused ? UINT64_MAX : a->scrub_at;
    if (due <= now)
        scan(a);
    else if (scrub_at <= now)
        scrub(a);
    else
        wait(a, due < scrub_at ? due : scrub_at);
}

static void timer_due(struct timer *t)
{
    go_on(container_of(t, struct audit, timer));
}

void audit_census_changed(struct audit *a)
{
    if (a->leads)
        feed(a);
    go_on(a);
}

struct audit *audit_new(struct ledger_client *client, struct census *census,
                        const struct autorecovery_conf *conf, struct autorecovery_counts *counts)
{
    struct audit *a = mem_new(struct audit);

    a->client = client;
    a->census = census;
    a->conf = conf;
    a->counts = counts;
    a->farewell = farewell_new(client, census, parted, a);
    a->page = mem_alloc(PAGE * sizeof *a->page);
    a->timer.run = timer_due;
    a->rate.bytes_per_s = conf->scrub_rate;
    a->writing.ctime_ms = -1;
    list_init(&a->marks);
    a->watch = (struct meta_watch){.home = loop_of(a), .changed = leader_changed};
    meta_watch(client->meta, PATH_AUDITOR, &a->watch);
    return a;
}

static void drop_marks(struct audit *a)
{
    struct list_node *node;

    while ((node = list_pop_front(&a->marks))) {
        struct mark *m = list_entry(node, struct mark, node);
        mark_record_drop(&m->lacks);
        mem_free(m);
    }
}

/* A call under way ends it; while replicas are compared there is none. */
void audit_drop(struct audit **audit)
{
    struct audit *a = *audit;

    *audit = NULL;
    if (!a)
        return;
    bool comparing = a->repair != NULL;
    meta_unwatch(a->client->meta, &a->watch);
    loop_cancel(loop_of(a), &a->timer);
    repair_abandon(&a->repair);
    drop_marks(a);
    farewell_drop(&a->farewell);
    a->gone = true;
    if (a->state == AUDIT_IDLE || a->state == AUDIT_PARTING || comparing)
        end(a);
}
