/* The core against a small world: ledgers that fail half-way, close in doubt, or belong to
 * another owner; answers come late and in any order. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "broker/managed_ledger/ml_core.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/suite.h"

enum { ADDS = 120, LEDGERS = 400, ENTRIES = ADDS * 2, WINDOW = 6 };

struct world_ledger {
    bool created, listed, discarded, broken, closed;
    unsigned n; /* stored, confirmed or not */
    struct ml_add *at[ENTRIES];
};

struct world_add {
    struct ml_add add;
    unsigned answers;
    bool confirmed;
    enum err err;
    struct position at;
};

struct world {
    struct ml_core core;
    uint64_t seed;
    unsigned trouble; /* percent */
    struct world_ledger ledger[LEDGERS];
    int64_t ids;
    int64_t creating, listing, closing; /* asked for; -1: not */
    bool waiting;
    unsigned fenced;
    struct ml_add *flight[WINDOW + 1];
    unsigned flying;
    struct world_add adds[ADDS];
    unsigned added;
    unsigned last_confirmed; /* count */
    char story[4096];
};

static struct world w;

static void tell(const char *fmt, ...)
{
    size_t len = strlen(w.story);
    va_list args;

    va_start(args, fmt);
    vsnprintf(w.story + len, sizeof(w.story) - len, fmt, args);
    va_end(args);
}

static unsigned number(const struct ml_add *a)
{
    return (unsigned)(container_of(a, struct world_add, add) - w.adds);
}

static void create(struct ml_core *c, int64_t above)
{
    ck_assert(c == &w.core && w.creating == -1);
    ck_assert_int_le(above, w.ids);
    w.creating = above;
    tell("create ");
}

static void list(struct ml_core *c, int64_t ledger)
{
    (void)c;
    ck_assert(w.listing == -1 && w.ledger[ledger].created && !w.ledger[ledger].discarded);
    w.listing = ledger;
    tell("list %d ", (int)ledger);
}

static enum err append(struct ml_core *c, struct ml_add *a)
{
    ck_assert(w.ledger[c->ledger].listed && !w.ledger[c->ledger].closed);
    if (w.flying == WINDOW)
        return ERR_BUSY;
    w.flight[w.flying++] = a;
    tell("send %u ", number(a));
    return ERR_OK;
}

static void close_it(struct ml_core *c)
{
    ck_assert(w.closing == -1 && w.flying == 0);
    w.closing = c->ledger;
    tell("close %d ", (int)c->ledger);
}

static void wait_it(struct ml_core *c, enum err why, uint64_t us)
{
    (void)c;
    ck_assert(us > 0);
    w.waiting = true;
    tell("wait(%s) ", err_name(why));
}

static void discard(struct ml_core *c, int64_t ledger)
{
    (void)c;
    ck_assert(!w.ledger[ledger].listed);
    w.ledger[ledger].discarded = true;
    tell("discard %d ", (int)ledger);
}

static void confirmed(struct ml_core *c, struct ml_add *a, struct position at)
{
    struct world_add *one = container_of(a, struct world_add, add);

    (void)c;
    ck_assert_uint_eq(one->answers, 0);
    ck_assert_uint_eq(number(a), w.last_confirmed); /* in order, none left out */
    ck_assert(w.ledger[at.ledger].n > at.entry && w.ledger[at.ledger].at[at.entry] == a);
    w.last_confirmed++;
    one->answers++;
    one->confirmed = true;
    one->at = at;
    tell("confirm %u ", number(a));
}

static void refused(struct ml_core *c, struct ml_add *a, enum err err)
{
    struct world_add *one = container_of(a, struct world_add, add);

    (void)c;
    ck_assert_uint_eq(one->answers, 0);
    one->answers++;
    one->err = err;
    tell("refuse %u(%s) ", number(a), err_name(err));
}

static void fenced(struct ml_core *c, enum err err)
{
    (void)c;
    (void)err;
    w.fenced++;
    tell("fenced ");
}

static const struct ml_core_ops ops = {
    .create = create,
    .list = list,
    .append = append,
    .close = close_it,
    .wait = wait_it,
    .discard = discard,
    .confirm = confirmed,
    .refuse = refused,
    .fenced = fenced,
};

static void world_begin(uint64_t seed, unsigned trouble)
{
    memset(&w, 0, sizeof(w));
    w.seed = seed;
    w.trouble = trouble;
    w.creating = w.listing = w.closing = -1;
    ml_core_init(&w.core, &ops, 1 << 20, -1, 7);
}

static void add(unsigned bytes, unsigned messages)
{
    struct ml_add *a = &w.adds[w.added].add;

    a->bytes = bytes;
    a->messages = messages;
    list_init(&a->node);
    if (ml_core_admits(&w.core, bytes))
        return;
    w.added++;
    ml_core_add(&w.core, a);
}

static void answer_create(enum err err)
{
    int64_t id = -1;

    if (!err) {
        id = w.ids++;
        ck_assert_int_lt(id, LEDGERS);
        ck_assert_int_gt(id, w.creating);
        w.ledger[id].created = true;
    }
    w.creating = -1;
    ml_core_created(&w.core, err, id);
}

static void answer_list(enum err err)
{
    int64_t id = w.listing;

    w.listing = -1;
    w.ledger[id].listed = !err;
    ml_core_listed(&w.core, err);
}

/* The oldest in flight; a broken ledger may store what it fails. */
static void answer_append(enum err err, bool stored)
{
    struct ml_add *a = w.flight[0];
    struct world_ledger *l = &w.ledger[w.core.ledger];
    int64_t entry = l->n;

    memmove(w.flight, w.flight + 1, --w.flying * sizeof(w.flight[0]));
    if (stored)
        l->at[l->n++] = a;
    ml_core_appended(&w.core, a, err, err ? -1 : entry);
}

/* Everything in flight fails, as a ledger does; the first `keep` are there nevertheless. */
static void break_ledger(enum err err, unsigned keep)
{
    for (unsigned i = 0; w.flying > 0; i++)
        answer_append(err, i < keep);
}

static void answer_close(enum err err)
{
    struct world_ledger *l = &w.ledger[w.closing];
    int64_t bytes = 0;

    for (unsigned i = 0; i < l->n; i++)
        bytes += (int64_t)l->at[i]->bytes;
    w.closing = -1;
    l->closed = !err;
    ml_core_closed(&w.core, err, err ? 0 : l->n, bytes);
}

/* ---- stories ----------------------------------------------------------------------------------
 */

static void tells(const char *expected)
{
    ck_assert_str_eq(w.story, expected);
    w.story[0] = '\0';
}

START_TEST(the_first_add_makes_the_ledger)
{
    world_begin(1, 0);
    add(10, 1);
    add(10, 5);
    tells("create ");
    answer_create(ERR_OK);
    tells("list 0 ");
    answer_list(ERR_OK);
    tells("send 0 send 1 ");
    answer_append(ERR_OK, true);
    answer_append(ERR_OK, true);
    tells("confirm 0 confirm 1 ");
    ck_assert_uint_eq(w.adds[0].add.index, 7);
    ck_assert_uint_eq(w.adds[1].add.index, 12);
    ck_assert_uint_eq(w.core.next_index, 13);
    ck_assert_uint_eq(w.core.pending_bytes, 0);
}
END_TEST

static void open_with(unsigned adds)
{
    world_begin(1, 0);
    for (unsigned i = 0; i < adds; i++)
        add(10, 1);
    answer_create(ERR_OK);
    answer_list(ERR_OK);
    w.story[0] = '\0';
}

START_TEST(a_failed_ledger_is_closed_and_the_rest_is_resent_in_order)
{
    open_with(3);
    answer_append(ERR_OK, true);
    break_ledger(ERR_TIMEOUT, 0);
    add(10, 1);
    tells("confirm 0 close 0 ");
    answer_close(ERR_OK);
    tells("create ");
    answer_create(ERR_OK);
    answer_list(ERR_OK);
    tells("list 1 send 1 send 2 send 3 ");
}
END_TEST

START_TEST(what_the_failed_ledger_kept_is_confirmed_there)
{
    open_with(3);
    answer_append(ERR_OK, true);
    break_ledger(ERR_TIMEOUT, 1);
    answer_close(ERR_OK);
    tells("confirm 0 close 0 confirm 1 create ");
    ck_assert_int_eq(w.adds[1].at.entry, 1);
    answer_create(ERR_OK);
    answer_list(ERR_OK);
    tells("list 1 send 2 ");
}
END_TEST

START_TEST(too_few_bookies_is_waited_for_without_an_error)
{
    world_begin(1, 0);
    add(10, 1);
    answer_create(ERR_NOT_ENOUGH_BOOKIES);
    add(10, 1);
    tells("create wait(NOT_ENOUGH_BOOKIES) ");
    ml_core_woken(&w.core);
    answer_create(ERR_OK);
    answer_list(ERR_OK);
    tells("create list 0 send 0 send 1 ");
}
END_TEST

START_TEST(a_ledger_that_takes_nothing_is_not_replaced_in_a_tight_loop)
{
    open_with(1);
    break_ledger(ERR_IO, 0);
    answer_close(ERR_OK);
    tells("close 0 wait(IO) ");
}
END_TEST

START_TEST(rolling_writes_on_until_the_next_ledger_exists)
{
    open_with(2);
    answer_append(ERR_OK, true);
    ml_core_roll(&w.core);
    add(10, 1);
    tells("confirm 0 create send 2 ");
    answer_create(ERR_OK);
    add(10, 1);
    answer_append(ERR_OK, true);
    answer_append(ERR_OK, true);
    tells("confirm 1 confirm 2 close 0 ");
    answer_close(ERR_OK);
    answer_list(ERR_OK);
    tells("list 1 send 3 ");
}
END_TEST

START_TEST(without_the_metadata_store_nothing_rolls)
{
    open_with(1);
    answer_append(ERR_OK, true);
    ml_core_roll(&w.core);
    answer_create(ERR_NOT_READY);
    add(10, 1);
    tells("confirm 0 create send 1 ");
    ck_assert_int_eq(w.core.state, ML_OPEN);
}
END_TEST

START_TEST(another_owner_ends_it_for_good)
{
    open_with(3);
    answer_append(ERR_OK, true);
    break_ledger(ERR_FENCED, 1);
    tells("confirm 0 fenced refuse 1(FENCED) refuse 2(FENCED) ");
    ck_assert_int_eq(ml_core_admits(&w.core, 1), ERR_FENCED);
    ck_assert(ml_core_settled(&w.core));
}
END_TEST

START_TEST(the_node_of_another_owner_ends_it_before_a_byte_is_written)
{
    world_begin(1, 0);
    add(10, 1);
    answer_create(ERR_OK);
    answer_list(ERR_FENCED);
    tells("create list 0 fenced refuse 0(FENCED) ");
}
END_TEST

START_TEST(an_end_waits_for_what_is_in_flight_and_refuses_the_rest)
{
    open_with(WINDOW + 2);
    ml_core_end(&w.core);
    ck_assert_int_eq(ml_core_admits(&w.core, 1), ERR_CLOSED);
    for (unsigned i = 0; i < WINDOW; i++)
        answer_append(ERR_OK, true);
    w.story[0] = '\0';
    answer_close(ERR_OK);
    tells("refuse 6(CLOSED) refuse 7(CLOSED) ");
    ck_assert(ml_core_settled(&w.core));
}
END_TEST

START_TEST(an_end_before_the_ledger_is_listed_leaves_none_behind)
{
    world_begin(1, 0);
    add(10, 1);
    ml_core_end(&w.core);
    answer_create(ERR_OK);
    tells("create discard 0 refuse 0(CLOSED) ");
}
END_TEST

START_TEST(a_full_window_is_waited_for_and_ends_nothing)
{
    open_with(WINDOW + 1);
    answer_append(ERR_OK, true);
    tells("confirm 0 send 6 ");
    ck_assert_int_eq(w.core.state, ML_OPEN);
}
END_TEST

START_TEST(a_node_in_doubt_may_name_the_ledger_so_it_is_not_deleted)
{
    world_begin(1, 0);
    add(10, 1);
    answer_create(ERR_OK);
    answer_list(ERR_UNKNOWN_STATE);
    tells("create list 0 wait(UNKNOWN_STATE) ");
    world_begin(1, 0);
    add(10, 1);
    answer_create(ERR_OK);
    answer_list(ERR_TOO_BIG);
    tells("create list 0 discard 0 wait(TOO_BIG) ");
}
END_TEST

/* A ledger that holds what we never sent to it is not only ours. */
START_TEST(a_ledger_with_more_than_was_sent_is_anothers)
{
    open_with(2);
    answer_append(ERR_OK, true);
    break_ledger(ERR_TIMEOUT, 0);
    answer_close(ERR_OK);
    answer_create(ERR_OK);
    answer_list(ERR_OK);
    break_ledger(ERR_TIMEOUT, 1);
    add(10, 1);
    w.ledger[1].n++; /* from somewhere */
    w.ledger[1].at[1] = w.ledger[1].at[0];
    answer_close(ERR_OK);
    ck_assert_int_eq(w.core.state, ML_FENCED);
}
END_TEST

START_TEST(what_waits_is_bounded)
{
    world_begin(1, 0);
    w.core.pending_max = 100;
    add(90, 1);
    ck_assert_int_eq(ml_core_admits(&w.core, 11), ERR_BUSY);
    ck_assert_int_eq(ml_core_admits(&w.core, 10), ERR_OK);
}
END_TEST

START_TEST(one_add_of_any_size_is_admitted_alone)
{
    world_begin(1, 0);
    w.core.pending_max = 100;
    ck_assert_int_eq(ml_core_admits(&w.core, 1000), ERR_OK);
}
END_TEST

/* ---- seeds -------------------------------------------------------------------------------------
 */

static bool chance(unsigned percent)
{
    return rng_below(&w.seed, 100) < percent;
}

static enum err list_answer(void)
{
    if (!chance(w.trouble))
        return ERR_OK;
    return chance(20) ? ERR_FENCED : ERR_TOO_BIG;
}

static enum err append_answer(void)
{
    return chance(3) ? ERR_FENCED : ERR_TIMEOUT;
}

/* One thing that can happen now, if the dice want it. */
static void happen(bool calm)
{
    switch (rng_below(&w.seed, 7)) {
    case 0:
        if (!calm && w.added < ADDS)
            add(1 + (unsigned)rng_below(&w.seed, 50), 1 + (unsigned)rng_below(&w.seed, 4));
        break;
    case 1:
        if (w.creating != -1 || w.core.asked & 1u)
            answer_create(chance(calm ? 0 : w.trouble) ? ERR_NOT_ENOUGH_BOOKIES : ERR_OK);
        break;
    case 2:
        if (w.listing != -1)
            answer_list(calm ? ERR_OK : list_answer());
        break;
    case 3:
        if (w.flying > 0 && chance(calm ? 0 : w.trouble))
            break_ledger(append_answer(), (unsigned)rng_below(&w.seed, w.flying + 1));
        else if (w.flying > 0)
            answer_append(ERR_OK, true);
        break;
    case 4:
        if (w.closing != -1)
            answer_close(chance(calm ? 0 : w.trouble / 8) ? ERR_FENCED : ERR_OK);
        break;
    case 5:
        if (w.waiting) {
            w.waiting = false;
            ml_core_woken(&w.core);
        }
        break;
    case 6:
        if (!calm && chance(20) && w.core.entries > 0)
            ml_core_roll(&w.core);
        break;
    }
}

/* What readers find: every confirmed add once, in order, with dense indexes; and behind the last
 * confirmed one at most what nobody was told of. */
static void check_log(void)
{
    unsigned seen = 0;
    uint64_t index = 7;

    for (int64_t id = 0; id < w.ids; id++) {
        const struct world_ledger *l = &w.ledger[id];
        for (unsigned e = 0; l->listed && e < l->n; e++, seen++) {
            ck_assert_uint_eq(number(l->at[e]), seen);
            index += l->at[e]->messages;
            ck_assert_uint_eq(l->at[e]->index, index - 1);
        }
    }
    ck_assert_uint_ge(seen, w.last_confirmed);
    ck_assert(seen == w.last_confirmed || w.fenced);
}

START_TEST(nothing_is_lost_reordered_or_confirmed_twice)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        world_begin((uint64_t)_i * 1000 + seed, (unsigned)(seed % 4) * 8);
        bool end_early = chance(20);
        for (unsigned step = 0; step < 1500; step++)
            happen(false);
        for (unsigned step = 0; !end_early && step < 3000; step++)
            happen(true);
        if (!end_early && !w.fenced)
            ck_assert_uint_eq(w.last_confirmed, w.added);
        ml_core_end(&w.core);
        for (unsigned step = 0; step < 3000; step++)
            happen(true);
        ck_assert(ml_core_settled(&w.core));
        ck_assert_uint_le(w.fenced, 1);
        ck_assert_uint_eq(w.core.pending_bytes, 0);
        for (unsigned i = 0; i < w.added; i++)
            ck_assert_uint_eq(w.adds[i].answers, 1);
        check_log();
    }
}
END_TEST

int main(void)
{
    return suite_run("ml_core",
                     (suite_case[]){
                         SUITE_CASE(the_first_add_makes_the_ledger),
                         SUITE_CASE(a_failed_ledger_is_closed_and_the_rest_is_resent_in_order),
                         SUITE_CASE(what_the_failed_ledger_kept_is_confirmed_there),
                         SUITE_CASE(too_few_bookies_is_waited_for_without_an_error),
                         SUITE_CASE(a_ledger_that_takes_nothing_is_not_replaced_in_a_tight_loop),
                         SUITE_CASE(rolling_writes_on_until_the_next_ledger_exists),
                         SUITE_CASE(without_the_metadata_store_nothing_rolls),
                         SUITE_CASE(another_owner_ends_it_for_good),
                         SUITE_CASE(the_node_of_another_owner_ends_it_before_a_byte_is_written),
                         SUITE_CASE(an_end_waits_for_what_is_in_flight_and_refuses_the_rest),
                         SUITE_CASE(an_end_before_the_ledger_is_listed_leaves_none_behind),
                         SUITE_CASE(a_full_window_is_waited_for_and_ends_nothing),
                         SUITE_CASE(a_node_in_doubt_may_name_the_ledger_so_it_is_not_deleted),
                         SUITE_CASE(a_ledger_with_more_than_was_sent_is_anothers),
                         SUITE_CASE(what_waits_is_bounded),
                         SUITE_CASE(one_add_of_any_size_is_admitted_alone),
                         SUITE_LOOP(nothing_is_lost_reordered_or_confirmed_twice, 10),
                         {0},
                     });
}
