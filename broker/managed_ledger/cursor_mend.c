/* A cursor whose node is in a store that was put back to an older state. */
#include "broker/managed_ledger/cursor_inside.h"

#include <string.h>

#include "common/log.h"

enum { AGAIN_US = 200 * 1000 };

static void take_node(struct cursor *c, const struct meta_reply *r)
{
    ManagedLedger__ManagedCursorInfo *record = NULL;
    int64_t named = CURSOR_STORE_NO_LEDGER;
    struct position fallback = POSITION_EARLIEST;

    slice_drop(&c->node);
    c->version = META_ABSENT;
    if (!r->err) {
        c->node = slice_copy(r->value.base, r->value.len);
        c->version = r->version;
    }
    if (!r->err && !cursor_record_read(slice_view(c->node), &record)) {
        named = record->cursorsledgerid < 0 ? CURSOR_STORE_NO_LEDGER : record->cursorsledgerid;
        fallback = cursor_record_mark_delete(record);
        managed_ledger__managed_cursor_info__free_unpacked(record, NULL);
    }
    c->returns = c->env->returns;
    c->io->asked = false;
    log_event(LOG_WARN, "cursor.written_back", F_STR("ml", c->env->ml_name),
              F_STR("cursor", c->name), F_I64("version", c->version));
    cursor_store_rewound(&c->store, named, fallback);
}

bool cursor_went_back(struct cursor *c, const struct meta_reply *r, enum err *err)
{
    struct cursor_env *e = c->env;
    struct cursor_io *io = cursor_io_of(c);

    *err = ERR_OK;
    if (c->returns != e->returns) {
        take_node(c, r);
        return true;
    }
    if (e->doubted && !io->asked) {
        io->asked = true;
        io->looks = e->looks;
        e->doubted(e);
        *err = ERR_NOT_READY;
    } else if (e->doubted && io->looks == e->looks) {
        *err = ERR_NOT_READY;
    } else {
        io->asked = false; /* it has looked, and the store is as it was */
    }
    return false;
}

/* ---- told by the log ----------------------------------------------------------------------------
 */

static void returned(struct ledger_return *r, enum err err, bool written)
{
    struct cursor_io *io = container_of(r, struct cursor_io, back);
    struct cursor *c = io->cursor;

    (void)err; /* what it lacks of other bookies is found when it is recovered, or not at all */
    (void)written;
    io->returning = false;
    cursor_release(c);
}

/* The node names the ledger that is written to; the store may say old things of that. */
static void write_back_ledger(struct cursor *c)
{
    struct cursor_io *io = c->io;
    const struct ledger *current = NULL;
    struct ledger_known known;

    for (unsigned i = 0; i < 2; i++)
        if (io->at[i] && ledger_id(io->at[i]) == c->store.current)
            current = io->at[i];
    if (io->returning || !current)
        return;
    known = ledger_known(current);
    io->returning = true;
    io->back.done = returned;
    cursor_hold(c);
    ledger_write_back(c->env->ledgers, &known, true, &io->back);
    slice_drop(&known.value);
}

static void check(struct cursor *c);

static void check_again(struct timer *t)
{
    struct cursor *c = container_of(t, struct cursor_io, check_timer)->cursor;

    check(c);
    cursor_release(c);
}

static void check_later(struct cursor *c)
{
    c->io->check_timer.run = check_again;
    cursor_hold(c);
    loop_after(c->home, &c->io->check_timer, AGAIN_US);
}

static bool is_as_it_was(const struct cursor *c, const struct meta_reply *r)
{
    return !r->err && r->version == c->version && r->value.len == c->node.len &&
           (r->value.len == 0 || memcmp(r->value.base, c->node.base, c->node.len) == 0);
}

static void checked(struct meta_call *call, const struct meta_reply *r)
{
    struct cursor_io *io = container_of(call, struct cursor_io, check);
    struct cursor *c = io->cursor;
    enum cursor_store_state state = c->store.state;

    io->checking = false;
    if (c->phase == CURSOR_GONE || c->phase == CURSOR_FAILED || c->returns == c->env->returns) {
        cursor_release(c);
        return;
    }
    if (r->err && r->err != ERR_NOT_FOUND) {
        check_later(c);
    } else if (state == STORE_POINTING || state == STORE_LOOKING) {
        check_later(c); /* the answer that is to come may tell */
    } else if (is_as_it_was(c, r)) {
        c->returns = c->env->returns;
        c->io->asked = false;
        write_back_ledger(c);
    } else {
        take_node(c, r);
    }
    cursor_release(c);
}

static void check(struct cursor *c)
{
    struct cursor_io *io = cursor_io_of(c);
    char path[META_KEY_MAX];

    if (io->checking || c->phase == CURSOR_GONE || c->phase == CURSOR_FAILED)
        return;
    if (path_cursor(c->env->ml_name, c->name, path))
        return;
    io->checking = true;
    io->check = (struct meta_call){.home = c->home, .done = checked};
    cursor_hold(c);
    meta_get(c->env->meta, path, &io->check);
}

void cursor_doubt(struct cursor *c)
{
    if (c->returns != c->env->returns && !cursor_is_passing(c) &&
        (!c->io || !timer_armed(&c->io->check_timer)))
        check(c);
}
