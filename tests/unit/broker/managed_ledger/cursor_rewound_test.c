/* A cursor whose node is in a store that was put back to an older state. */
#include "broker/managed_ledger/cursor_record.h"
#include "tests/lib/suite.h"
#include "tests/unit/broker/managed_ledger/cursor_world.h"

struct kept {
    struct slice node;
    int64_t version;
    bool there[FILES];
};

static struct kept keep(const struct world *w)
{
    struct kept k = {.node = slice_share(w->node), .version = w->version};

    for (unsigned i = 0; i < w->n; i++)
        k.there[i] = w->files[i].there;
    return k;
}

/* Ledgers that were made since are forgotten, those deleted since are there again. */
static void put_back(struct world *w, struct kept *k)
{
    slice_drop(&w->node);
    w->node = k->node;
    w->version = k->version;
    for (unsigned i = 0; i < w->n; i++)
        w->files[i].there = k->there[i];
}

static void tell_behind(struct world *w)
{
    ManagedLedger__ManagedCursorInfo *r = cursor_world_record(w->node);

    cursor_store_rewound(&w->store, r->cursorsledgerid, cursor_record_mark_delete(r));
    managed_ledger__managed_cursor_info__free_unpacked(r, NULL);
}

/* A write of the node that was under way meets the old one, and looks. */
static void find_out(struct world *w)
{
    if (w->doing == POINT) {
        w->doing = NOTHING;
        cursor_store_pointed(&w->store, ERR_BAD_VERSION);
    }
    if (w->doing == LOOK || w->doing == PAUSE)
        w->doing = NOTHING;
    tell_behind(w);
}

START_TEST(what_a_store_has_forgotten_is_written_again)
{
    struct world *w = cursor_world_new((uint64_t)_i + 1, 0);
    struct kept k;

    for (int i = 0; i < 5 + _i % 50; i++)
        cursor_world_step(w);
    k = keep(w);
    for (int i = 0; i < 3 + _i % 31; i++)
        cursor_world_step(w);
    w->trouble = _i % 2 ? 10 : 0;
    put_back(w, &k);
    find_out(w);
    cursor_store_want(&w->store);
    cursor_world_settle(w);
    ck_assert(!w->ended);
    ck_assert(!w->store.behind);
    ck_assert_uint_eq(w->store.durable, w->store.seq);
    cursor_world_check(w);
    for (int i = 0; i < 100; i++)
        cursor_world_step(w);
    w->trouble = 0;
    if (w->doing == PAUSE)
        cursor_world_answer(w);
    cursor_store_end(&w->store, _i % 3 ? ENDING_CLOSE : ENDING_DELETE);
    cursor_world_settle(w);
    ck_assert(w->ended);
    cursor_world_check(w);
    cursor_world_drop(w);
}
END_TEST

int main(void)
{
    return suite_run("cursor_rewound",
                     (suite_case[]){
                         SUITE_LOOP(what_a_store_has_forgotten_is_written_again, 120),
                         {0},
                     });
}
