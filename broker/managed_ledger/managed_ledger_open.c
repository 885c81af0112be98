#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/managed_ledger/managed_ledger_inside.h"
#include "common/log.h"
#include "common/parse.h"
#include "common/rng.h"
#include "metadata/paths.h"
#include "proto/message.h"

enum { CREATE_TRIES = 5, CURSORS_AT_ONCE = 32 };

/* From the node to the cursors; the managed ledger serves nobody before the end of it. */
struct opening {
    struct managed_ledger *ml;
    struct ml_call *call;
    struct task refused;
    struct timer grace; /* the store was put back not long ago */
    bool create, fresh;
    unsigned tries;
    char path[META_KEY_MAX];
    struct meta_call meta_call;
    int64_t version;
    unsigned at; /* segment that is looked at */
    struct ledger_call ledger_call;
    struct ledger *handle; /* of segment `at` */
    struct ledger_read read;
    bool index_read;
    uint64_t next_index;
    struct ml_save save;
    char *after; /* the last cursor key that was seen */
    bool more;
    unsigned cursors; /* being opened, and one for their starter */
    enum err err;
};

struct cursor_opening {
    struct cursor_call call;
    struct opening *opening;
};

static void finish(struct opening *o, enum err err)
{
    struct managed_ledger *m = o->ml;
    struct ml_call *call = o->call;
    struct cursor *c;

    if (o->handle)
        ledger_drop(&o->handle);
    mem_free(o->after);
    mem_free(o);
    if (!err) {
        m->life = ML_LIFE_SERVING;
        ml_node_hurry(&m->node, false);
        log_event(LOG_INFO, "managed_ledger.opened", F_STR("topic", m->name),
                  F_U64("ledgers", m->segments.n), F_U64("cursors", m->n_cursors),
                  F_U64("next_index", m->core.next_index));
        if (m->doubted)
            ml_node_doubt(m);
        ml_mend_learn(m);
        call->done(call, ERR_OK, m);
        ml_care(m);
        ml_release(m);
        return;
    }
    if (err != ERR_TOPIC_NOT_FOUND)
        log_event(LOG_WARN, "managed_ledger.open_failed", F_STR("topic", m->name), F_ERR(err));
    while ((c = ml_cursors_take_last(m)))
        cursor_abandon(&c);
    m->end_call = call;
    m->end_err = err;
    m->life = ML_LIFE_LEAVING;
    ml_release(m);
}

/* ---- cursors ------------------------------------------------------------------------------------
 */

static void list_cursors(struct opening *o);

static void node_checked(struct meta_call *c, const struct meta_reply *r)
{
    struct opening *o = container_of(c, struct opening, meta_call);

    if (r->err && r->err != ERR_NOT_FOUND)
        finish(o, r->err);
    else
        finish(o, r->err || r->version != o->ml->node.version ? ERR_FENCED : ERR_OK);
}

/* Another owner may have come since the node was written, and the cursors may say what it wrote:
 * acknowledgements in ledgers that we do not know.  Writing these cursors would forget them; from
 * here on its first write of a cursor makes ours fail, or ours its. */
static void check_node(struct opening *o)
{
    o->path[strlen(o->path) - 1] = '\0';
    o->meta_call.done = node_checked;
    meta_get(o->ml->env->meta, o->path, &o->meta_call);
}

static void cursors_opened(struct opening *o)
{
    if (--o->cursors > 0)
        return;
    if (!o->err && o->more)
        list_cursors(o);
    else if (!o->err && o->ml->n_cursors > 0)
        check_node(o);
    else
        finish(o, o->err);
}

static void cursor_opened(struct cursor_call *call, enum err err, struct cursor *c)
{
    struct cursor_opening *one = container_of(call, struct cursor_opening, call);
    struct opening *o = one->opening;

    mem_free(one);
    if (err && !o->err)
        o->err = err;
    if (!err)
        ml_cursors_add(o->ml, c);
    cursors_opened(o);
}

static void open_cursor(struct opening *o, const char *encoded)
{
    struct cursor_opening *one;
    char *name;

    if (strchr(encoded, '/'))
        return;
    if (name_decode(encoded, &name)) {
        o->err = ERR_MALFORMED;
        return;
    }
    one = mem_new(struct cursor_opening);
    one->call.done = cursor_opened;
    one->opening = o;
    o->cursors++;
    cursor_open(&o->ml->cursor_env, name, &one->call);
    mem_free(name);
}

static void cursors_listed(struct meta_call *c, const struct meta_reply *r)
{
    struct opening *o = container_of(c, struct opening, meta_call);

    o->err = r->err;
    o->more = r->more && r->count > 0;
    o->cursors = 1;
    for (size_t i = 0; !r->err && i < r->count; i++)
        open_cursor(o, r->items[i].key + strlen(o->path));
    if (o->more) {
        mem_free(o->after);
        o->after = mem_string(r->items[r->count - 1].key);
    }
    cursors_opened(o);
}

static void list_cursors(struct opening *o)
{
    o->meta_call.done = cursors_listed;
    meta_range(o->ml->env->meta, o->path, o->after, CURSORS_AT_ONCE, true, &o->meta_call);
}

static void start_cursors(struct opening *o)
{
    size_t len = strlen(o->path);

    if (len + 2 > sizeof(o->path)) {
        finish(o, ERR_TOO_BIG);
        return;
    }
    o->path[len] = '/';
    o->path[len + 1] = '\0';
    list_cursors(o);
}

/* ---- the node, written -------------------------------------------------------------------------
 */

static void node_saved(struct ml_save *s, enum err err)
{
    struct opening *o = container_of(s, struct opening, save);

    if (err)
        finish(o, err);
    else
        start_cursors(o);
}

static void draw_owner(struct opening *o)
{
    const char *before = ml_record_property(o->ml->record, ML_RECORD_OWNER);
    char token[LINEAGE_TOKEN_MAX + 1], owners[LINEAGE_TEXT];

    snprintf(token, sizeof(token), "%016" PRIx64, rng_seed());
    lineage_add(before, token, owners);
    ml_record_set_property(o->ml->record, ML_RECORD_OWNER, owners);
}

/* Always, also when nothing has changed: from now on whoever had it before cannot write. */
static void save_node(struct opening *o)
{
    struct managed_ledger *m = o->ml;
    struct segment *last = segments_last(&m->segments);

    draw_owner(o);
    ml_write_init(m, last ? last->ledger : -1, o->next_index);
    ml_node_start(m, o->version);
    ml_node_hurry(&m->node, true);
    o->save.done = node_saved;
    if (o->fresh)
        start_cursors(o);
    else if (ml_node_save(&m->node, &o->save))
        finish(o, ERR_FENCED);
}

/* ---- the index
 * ----------------------------------------------------------------------------------- */

static void index_of_property(struct opening *o)
{
    const char *text = ml_record_property(o->ml->record, ML_RECORD_INDEX);
    int64_t last;

    if (text && !parse_i64(text, &last) && last >= 0)
        o->next_index = (uint64_t)last + 1;
}

static void last_entry(struct ledger_read *r, entry_id id, struct slice payload)
{
    struct opening *o = container_of(r, struct opening, read);
    struct broker_entry b;
    struct view rest;

    (void)id;
    o->index_read = !broker_entry_read(slice_view(payload), &b, &rest);
    if (o->index_read && b.present && b.index + 1 > o->next_index)
        o->next_index = b.index + 1;
    slice_drop(&payload);
}

static void last_entry_read(struct ledger_read *r, enum err err)
{
    struct opening *o = container_of(r, struct opening, read);

    if (!err && !o->index_read)
        err = ERR_MALFORMED;
    if (err)
        finish(o, err);
    else
        save_node(o);
}

/* The topic is away until it comes: a bookie that stands still is not waited for. */
static void read_last_entry(struct opening *o)
{
    int64_t entry = segments_last_entry(&o->ml->segments).entry;

    o->read = (struct ledger_read){.first = entry,
                                   .last = entry,
                                   .is_urgent = true,
                                   .entry = last_entry,
                                   .done = last_entry_read};
    ledger_read(o->handle, &o->read);
}

static void last_ledger_opened(struct ledger_call *c, enum err err, struct ledger *l)
{
    struct opening *o = container_of(c, struct opening, ledger_call);

    o->handle = err ? NULL : l;
    if (err == ERR_NO_LEDGER)
        save_node(o);
    else if (err)
        finish(o, err);
    else
        read_last_entry(o);
}

static void find_index(struct opening *o)
{
    struct position last = segments_last_entry(&o->ml->segments);

    index_of_property(o);
    if (last.entry < 0) {
        save_node(o);
    } else if (o->handle && ledger_id(o->handle) == last.ledger) {
        read_last_entry(o);
    } else {
        if (o->handle)
            ledger_drop(&o->handle);
        o->ledger_call.done = last_ledger_opened;
        ledger_open(o->ml->env->ledgers, last.ledger, LEDGER_OPEN_READ, &o->ledger_call);
    }
}

/* ---- recovery
 * ------------------------------------------------------------------------------------ */

static void recover_next(struct opening *o);

/* One whose metadata is gone is as good as empty; it stays in the row, as those do, until a
 * newer one is listed (ml_doom_hollow). */
static void set_end(struct opening *o, int64_t entries, int64_t bytes)
{
    struct segment *s = &o->ml->segments.at[o->at];

    if (s->closed_ms == 0 || s->entries != entries)
        s->closed_ms = (int64_t)loop_wall_ms();
    s->entries = entries;
    s->bytes = bytes;
}

static void recovered(struct ledger_call *c, enum err err, struct ledger *l)
{
    struct opening *o = container_of(c, struct opening, ledger_call);
    struct segment *s = &o->ml->segments.at[o->at];

    if (err && err != ERR_NO_LEDGER) {
        finish(o, err);
        return;
    }
    o->handle = err ? NULL : l;
    if (err) {
        log_event(LOG_ERROR, "managed_ledger.lost_ledger", F_STR("topic", o->ml->name),
                  F_I64("ledger", s->ledger), F_I64("entries", s->entries));
        set_end(o, 0, 0);
    } else {
        set_end(o, ledger_last_confirmed(l) + 1, ledger_length(l));
        ml_mend_remember(o->ml, l, s->closed_ms);
    }
    o->at++;
    recover_next(o);
}

/* The last one, and any whose end nobody wrote down. */
static void recover_next(struct opening *o)
{
    struct segments *s = &o->ml->segments;

    while (o->at < s->n && o->at + 1 < s->n && s->at[o->at].closed_ms > 0)
        o->at++;
    if (o->at == s->n) {
        find_index(o);
        return;
    }
    if (o->handle)
        ledger_drop(&o->handle);
    o->ledger_call.done = recovered;
    ledger_open(o->ml->env->ledgers, s->at[o->at].ledger, LEDGER_OPEN_RECOVER, &o->ledger_call);
}

/* ---- the node, read
 * ------------------------------------------------------------------------------ */

static void read_node(struct opening *o);

static void take_node(struct opening *o, struct view value, int64_t version)
{
    struct managed_ledger *m = o->ml;
    enum err err = managed_ledger_record_read(value, &m->record);

    o->version = version;
    if (!err)
        err = ml_record_segments(m->record, &m->segments);
    if (err) {
        finish(o, err);
        return;
    }
    m->terminated = m->record->terminatedposition != NULL;
    recover_next(o);
}

static void node_created(struct meta_call *c, const struct meta_reply *r)
{
    struct opening *o = container_of(c, struct opening, meta_call);

    o->ml->heard_ahead = o->ml->sure_ahead = r->ahead;
    if (!r->err) {
        o->fresh = true;
        take_node(o, (struct view){0}, r->version);
    } else if (r->err == ERR_BAD_VERSION || r->err == ERR_EXISTS || r->err == ERR_UNKNOWN_STATE) {
        read_node(o); /* somebody made it, perhaps we */
    } else {
        finish(o, r->err);
    }
}

static void node_read(struct meta_call *c, const struct meta_reply *r)
{
    struct opening *o = container_of(c, struct opening, meta_call);
    uint64_t grace_us = ml_mend_grace_us(o->ml->env, r->ahead);

    o->ml->heard_ahead = o->ml->sure_ahead = r->ahead;
    if (grace_us > 0) {
        loop_after(o->ml->env->home, &o->grace, grace_us);
    } else if (!r->err) {
        take_node(o, slice_view(r->value), r->version);
    } else if (r->err != ERR_NOT_FOUND) {
        finish(o, r->err);
    } else if (!o->create) {
        finish(o, ERR_TOPIC_NOT_FOUND);
    } else if (++o->tries > CREATE_TRIES) {
        finish(o, ERR_UNKNOWN_STATE);
    } else {
        o->meta_call.done = node_created;
        meta_put(o->ml->env->meta, o->path, (struct slice){0}, META_ABSENT, &o->meta_call);
    }
}

static void read_node(struct opening *o)
{
    o->meta_call.done = node_read;
    meta_get(o->ml->env->meta, o->path, &o->meta_call);
}

static void grace_is_over(struct timer *t)
{
    read_node(container_of(t, struct opening, grace));
}

static void name_refused(struct task *t)
{
    finish(container_of(t, struct opening, refused), ERR_INVALID_NAME);
}

void managed_ledger_open(struct ml_env *e, const char *name, bool create, struct ml_owner *owner,
                         struct ml_call *call)
{
    struct opening *o = mem_new(struct opening);

    assert(loop_is_mine(e->home));
    o->ml = ml_new(e, name, owner);
    o->call = call;
    o->create = create;
    o->meta_call.home = e->home;
    o->refused.run = name_refused;
    o->grace.run = grace_is_over;
    ml_hold(o->ml);
    if (path_managed_ledger(name, o->path))
        loop_post(e->home, &o->refused);
    else
        read_node(o);
}
