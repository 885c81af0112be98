#include "broker/managed_ledger/cursor_inside.h"

#include <assert.h>
#include <string.h>

#include "broker/managed_ledger/cursor_delta.h"
#include "broker/managed_ledger/ml_node.h"
#include "common/log.h"
#include "common/mem.h"
#include "metadata/paths.h"

/* A cursor that is being read back, or made. */
struct opening {
    struct cursor_env *env;
    struct cursor_call *call;
    char *name;
    char path[META_KEY_MAX];
    struct task refuse;
    struct cursor_wait wait;
    struct meta_call meta;
    unsigned returns; /* of the env, at the beginning */

    struct slice node;
    int64_t version;
    bool unsure;         /* making it: an answer was lost */
    bool refused;        /* making it: the store said no */
    struct ml_save save; /* making it: whether the managed ledger's node is still its owner's */
    ManagedLedger__ManagedCursorInfo *record;
    struct slice kept; /* what of the node a rewrite keeps */

    struct ledger_call open;
    struct ledger *ledger;
    struct ledger_read read;
    enum err read_err; /* what an entry was found to be */
    enum err unread;   /* why its ledger is not to be had */
    struct slice last; /* entry */
    struct cursor_acks acks;
    struct cursor_replay replay;
};

/* ---- beginning and end --------------------------------------------------------------------- */

static void finish(struct opening *o, enum err err, struct cursor *cursor)
{
    struct cursor_call *call = o->call;

    if (err)
        log_event(LOG_WARN, "cursor.failed", F_STR("ml", o->env->ml_name), F_STR("cursor", o->name),
                  F_ERR(err));
    ledger_drop(&o->ledger);
    cursor_replay_drop(&o->replay);
    cursor_acks_drop(&o->acks);
    slice_drop(&o->last);
    slice_drop(&o->node);
    slice_drop(&o->kept);
    if (o->record)
        managed_ledger__managed_cursor_info__free_unpacked(o->record, NULL);
    mem_free(o->name);
    mem_free(o);
    call->done(call, err, cursor);
}

static void succeed(struct opening *o, bool clean)
{
    struct position fallback = cursor_record_mark_delete(o->record);
    struct cursor *c;

    c = cursor_new(o->env, o->name, &o->acks, slice_share(o->node), o->version);
    c->returns = o->returns;
    if (o->kept.len) {
        slice_drop(&c->base);
        c->base = slice_share(o->kept);
    }
    cursor_store_init(&c->store, &cursor_io_ops, &o->acks, o->env->conf->cursor_max_entries,
                      o->record->cursorsledgerid < 0 ? CURSOR_STORE_NO_LEDGER
                                                     : o->record->cursorsledgerid,
                      fallback, clean);
    o->acks = (struct cursor_acks){0};
    cursor_record_labels(o->record, &c->properties);
    log_event(LOG_DEBUG, "cursor.opened", F_STR("ml", o->env->ml_name), F_STR("cursor", o->name),
              F_I64("ledger", c->store.acks.mark_delete.ledger),
              F_I64("entry", c->store.acks.mark_delete.entry),
              F_U64("holes", cursor_acks_holes(&c->store.acks)));
    finish(o, ERR_OK, c);
}

static void refuse(struct task *t)
{
    finish(container_of(t, struct opening, refuse), ERR_INVALID_NAME, NULL);
}

static struct opening *begin(struct cursor_env *e, const char *name, struct cursor_call *call)
{
    struct opening *o = mem_new(struct opening);

    o->env = e;
    o->call = call;
    o->name = mem_string(name);
    o->meta.home = e->home;
    o->returns = e->returns;
    o->refuse.run = refuse;
    cursor_acks_init(&o->acks, e->segments, POSITION_EARLIEST);
    if (path_cursor(e->ml_name, name, o->path) == ERR_OK)
        return o;
    loop_post(e->home, &o->refuse);
    return NULL;
}

/* A store or a bookie is away. */
static bool is_away(enum err err)
{
    return err_class(err) == CLASS_RETRY || err == ERR_FENCED;
}

static void try_later(struct opening *o, enum err why, void (*again)(struct timer *t))
{
    o->wait.timer.run = again;
    cursor_wait_longer(&o->wait, o->env->home, o->env->ml_name, o->name, why);
}

/* ---- reading its ledger -------------------------------------------------------------------- */

/* Redelivery, never loss: what the node says is behind what its ledger said. */
static void fall_back(struct opening *o, enum err why)
{
    struct position p = cursor_record_mark_delete(o->record);

    log_event(LOG_WARN, "cursor.fell_back", F_STR("ml", o->env->ml_name), F_STR("cursor", o->name),
              F_I64("ledger", o->record->cursorsledgerid), F_I64("to_ledger", p.ledger),
              F_I64("to_entry", p.entry), F_ERR(why));
    cursor_acks_load_reset(&o->acks, p);
    cursor_acks_settle(&o->acks);
    succeed(o, false);
}

static void get_node(struct opening *o);
static void open_again(struct timer *t);
static void read_last(struct opening *o);
static void look_again(struct opening *o);

static void look_later(struct timer *t)
{
    look_again(container_of(t, struct opening, wait.timer));
}

/* Nothing that was read counts. */
static void start_over(struct opening *o)
{
    ledger_drop(&o->ledger);
    cursor_acks_drop(&o->acks);
    cursor_acks_init(&o->acks, o->env->segments, POSITION_EARLIEST);
    slice_drop(&o->last);
    slice_drop(&o->node);
    slice_drop(&o->kept);
    managed_ledger__managed_cursor_info__free_unpacked(o->record, NULL);
    o->record = NULL;
    get_node(o);
}

static void looked_again(struct meta_call *call, const struct meta_reply *r)
{
    struct opening *o = container_of(call, struct opening, meta);

    if (is_away(r->err))
        try_later(o, r->err, look_later);
    else if (r->err || r->version != o->version)
        start_over(o);
    else
        fall_back(o, o->unread);
}

/* Whoever had it before may have put another ledger there since the node was read, and deleted
 * this one: everything is in the other one then. */
static void look_again(struct opening *o)
{
    o->meta.done = looked_again;
    meta_get(o->env->meta, o->path, &o->meta);
}

static void ledger_unread(struct opening *o, enum err err)
{
    if (is_away(err)) {
        ledger_drop(&o->ledger);
        try_later(o, err, open_again);
    } else if (err == ERR_UNSUPPORTED_VERSION || err == ERR_UNAUTHORIZED) {
        finish(o, err, NULL);
    } else {
        o->unread = err;
        look_again(o);
    }
}

static void got_entry(struct ledger_read *r, entry_id id, struct slice payload)
{
    struct opening *o = container_of(r, struct opening, read);

    if (!o->read_err)
        o->read_err = cursor_replay_feed(&o->replay, id, slice_view(payload));
    slice_drop(&payload);
}

static void replayed(struct ledger_read *r, enum err err)
{
    struct opening *o = container_of(r, struct opening, read);

    err = err ? err : o->read_err;
    err = err ? err : cursor_replay_end(&o->replay);
    if (err)
        ledger_unread(o, err);
    else
        succeed(o, false);
}

static void replay(struct opening *o)
{
    int64_t last = ledger_last_confirmed(o->ledger), start;
    enum err err = cursor_delta_start(slice_view(o->last), last, &start);

    if (err) {
        ledger_unread(o, err);
        return;
    }
    cursor_replay_drop(&o->replay);
    cursor_replay_init(&o->replay, &o->acks);
    o->read_err = ERR_OK;
    o->read = (struct ledger_read){
        .first = start, .last = last, .is_urgent = true, .entry = got_entry, .done = replayed};
    ledger_read(o->ledger, &o->read);
}

/* Its properties are the newer ones; they go into the node with the next rewrite. */
static void load_position(struct opening *o)
{
    enum err err = cursor_position_read(slice_view(o->last), &o->acks, o->record);

    if (err) {
        ledger_unread(o, err);
        return;
    }
    o->kept = cursor_record_write(o->record);
    succeed(o, true);
}

static void got_last(struct ledger_read *r, entry_id id, struct slice payload)
{
    struct opening *o = container_of(r, struct opening, read);

    (void)id;
    slice_drop(&o->last);
    o->last = payload;
}

static void have_last(struct ledger_read *r, enum err err)
{
    struct opening *o = container_of(r, struct opening, read);

    if (err)
        ledger_unread(o, err);
    else if (cursor_delta_is_ours(slice_view(o->last)))
        replay(o);
    else
        load_position(o);
}

static void read_last(struct opening *o)
{
    entry_id last = ledger_last_confirmed(o->ledger);

    if (last == ENTRY_NONE) {
        ledger_unread(o, ERR_NO_ENTRY);
        return;
    }
    o->read = (struct ledger_read){
        .first = last, .last = last, .is_urgent = true, .entry = got_last, .done = have_last};
    ledger_read(o->ledger, &o->read);
}

static void opened(struct ledger_call *call, enum err err, struct ledger *l)
{
    struct opening *o = container_of(call, struct opening, open);

    if (err) {
        ledger_unread(o, err);
        return;
    }
    o->ledger = l;
    read_last(o);
}

static void open_ledger(struct opening *o)
{
    o->open.done = opened;
    ledger_open(o->env->ledgers, o->record->cursorsledgerid, LEDGER_OPEN_RECOVER, &o->open);
}

static void open_again(struct timer *t)
{
    open_ledger(container_of(t, struct opening, wait.timer));
}

/* ---- reading the node ---------------------------------------------------------------------- */

static void get_again(struct timer *t)
{
    get_node(container_of(t, struct opening, wait.timer));
}

static void read_node(struct opening *o)
{
    enum err err = cursor_record_read(slice_view(o->node), &o->record);

    if (err) {
        finish(o, err, NULL);
    } else if (o->record->cursorsledgerid >= 0) {
        open_ledger(o);
    } else {
        cursor_record_load(o->record, &o->acks);
        succeed(o, true);
    }
}

static void have_node(struct meta_call *call, const struct meta_reply *r)
{
    struct opening *o = container_of(call, struct opening, meta);

    if (r->err == ERR_NOT_FOUND) {
        finish(o, ERR_SUBSCRIPTION_NOT_FOUND, NULL);
    } else if (is_away(r->err)) {
        try_later(o, r->err, get_again);
    } else if (r->err) {
        finish(o, r->err, NULL);
    } else {
        o->node = slice_copy(r->value.base, r->value.len);
        o->version = r->version;
        read_node(o);
    }
}

static void get_node(struct opening *o)
{
    o->meta.done = have_node;
    meta_get(o->env->meta, o->path, &o->meta);
}

void cursor_open(struct cursor_env *e, const char *name, struct cursor_call *call)
{
    struct opening *o = begin(e, name, call);

    if (o)
        get_node(o);
}

/* ---- making it ----------------------------------------------------------------------------- */

static void put_node(struct opening *o);
static void check_node(struct opening *o);

static void put_again(struct timer *t)
{
    put_node(container_of(t, struct opening, wait.timer));
}

static void check_again(struct timer *t)
{
    check_node(container_of(t, struct opening, wait.timer));
}

static void proven(struct ml_save *save, enum err err)
{
    struct opening *o = container_of(save, struct opening, save);

    if (err)
        finish(o, err, NULL);
    else
        put_node(o);
}

/* The managed ledger's node has moved on, or is another owner's. */
static void prove(struct opening *o)
{
    o->save.done = proven;
    if (o->env->prove(o->env, &o->save))
        finish(o, ERR_FENCED, NULL);
}

static void checked(struct meta_call *call, const struct meta_reply *r)
{
    struct opening *o = container_of(call, struct opening, meta);
    bool ours = o->unsure && r->err == ERR_OK && r->version == 0 && r->value.len == o->node.len &&
                memcmp(r->value.base, o->node.base, o->node.len) == 0;

    if (r->err == ERR_NOT_FOUND && o->refused)
        prove(o);
    else if (r->err == ERR_NOT_FOUND)
        try_later(o, ERR_UNKNOWN_STATE, put_again);
    else if (is_away(r->err))
        try_later(o, r->err, check_again);
    else if (ours)
        succeed(o, true);
    else
        finish(o, r->err ? r->err : ERR_EXISTS, NULL);
}

static void check_node(struct opening *o)
{
    o->meta.done = checked;
    meta_get(o->env->meta, o->path, &o->meta);
}

/* A refusal may mean our own put before, whose answer was lost. */
static void made(struct meta_call *call, const struct meta_reply *r)
{
    struct opening *o = container_of(call, struct opening, meta);

    o->refused = r->err == ERR_BAD_VERSION || r->err == ERR_EXISTS;
    if (r->err == ERR_OK) {
        succeed(o, true);
    } else if (o->refused) {
        check_node(o);
    } else if (is_away(r->err)) {
        o->unsure = true;
        check_node(o);
    } else {
        finish(o, r->err, NULL);
    }
}

/* Only while the managed ledger's node is as it is: a request that arrives late, when this cursor
 * was made by the next one, confirmed (which writes that node) and deleted since, must not bring it
 * back. */
static void put_node(struct opening *o)
{
    char path[META_KEY_MAX];
    struct meta_op ops[] = {
        {.kind = META_PUT, .key = o->path, .value = slice_share(o->node), .expected = META_ABSENT},
        {.kind = META_CHECK, .key = path, .expected = o->env->node_version(o->env)},
    };

    /* The name was a path when the managed ledger was opened. */
    if (path_managed_ledger(o->env->ml_name, path))
        assert(0);
    o->meta.done = made;
    meta_txn(o->env->meta, ops, sizeof ops / sizeof *ops, &o->meta);
}

void cursor_create(struct cursor_env *e, const char *name, struct position mark_delete,
                   struct cursor_call *call)
{
    struct opening *o = begin(e, name, call);
    ManagedLedger__ManagedCursorInfo new;
    enum err err;

    if (!o)
        return;
    cursor_acks_reset(&o->acks, mark_delete);
    managed_ledger__managed_cursor_info__init(&new);
    if (call->properties)
        cursor_record_label(&new, call->properties);
    o->node = cursor_record_make(&new, CURSOR_STORE_NO_LEDGER, o->acks.mark_delete, &o->acks);
    cursor_record_label(&new, &(struct pairs){0});
    err = cursor_record_read(slice_view(o->node), &o->record);
    assert(err == ERR_OK);
    put_node(o);
}
