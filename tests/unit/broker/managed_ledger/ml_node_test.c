/* The node's writer against a store that loses answers, and against another owner. */
#include "broker/managed_ledger/ml_node.h"

#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "metadata/metadata.h"
#include "tests/lib/suite.h"

enum { SAVES = 40 };

/* A store with one key; `late` is a put whose answer was lost, and that is still on its way. */
struct world {
    struct ml_node node;
    uint64_t seed;
    unsigned trouble;
    uint8_t stored[8];
    int64_t version;
    uint64_t state; /* what render() writes */
    struct slice putting, late;
    int64_t put_expected, late_expected;
    bool asked_put, asked_get, delayed, mending;
    bool behind; /* the store was put back */
    unsigned sure, unsure;
    uint64_t other; /* what the other owner wrote */
    unsigned done, failed, fenced;
    uint64_t saved_state; /* the newest that somebody was told is stored */
};

static struct world w;

struct one_save {
    struct ml_save save;
    uint64_t state;
    unsigned answers;
};
static struct one_save saves[SAVES];

static struct slice render(struct ml_node *n)
{
    (void)n;
    return slice_copy(&w.state, sizeof(w.state));
}

static void put(struct ml_node *n, struct slice value, int64_t expected)
{
    (void)n;
    ck_assert(!w.asked_put && !w.asked_get && !w.delayed);
    w.asked_put = true;
    w.putting = value;
    w.put_expected = expected;
}

static void get(struct ml_node *n)
{
    (void)n;
    ck_assert(!w.asked_put && !w.asked_get && !w.delayed);
    w.asked_get = true;
}

static void delay(struct ml_node *n, uint64_t us)
{
    (void)n;
    ck_assert(us > 0 && !w.delayed);
    w.delayed = true;
}

static void stored(struct ml_node *n)
{
    (void)n;
}

/* Whatever a test says of it; else by the version. */
static enum kin judge(struct ml_node *n, const struct slice *value, int64_t version)
{
    ck_assert(value ? version >= 0 : version == META_ABSENT);
    if (w.behind)
        return KIN_BEHIND;
    return value && version == n->version ? KIN_SAME : KIN_OTHER;
}

static void mend(struct ml_node *n)
{
    (void)n;
    ck_assert(!w.asked_put && !w.asked_get && !w.delayed && !w.mending);
    w.mending = true;
}

static void sure(struct ml_node *n, enum err err)
{
    (void)n;
    w.sure += err == ERR_OK;
    w.unsure += err != ERR_OK;
}

static const struct ml_node_ops ops = {.render = render,
                                       .put = put,
                                       .get = get,
                                       .delay = delay,
                                       .stored = stored,
                                       .judge = judge,
                                       .mend = mend,
                                       .sure = sure};

static void world_begin(uint64_t seed, unsigned trouble)
{
    memset(&w, 0, sizeof(w));
    memset(saves, 0, sizeof(saves));
    w.seed = seed;
    w.trouble = trouble;
    ml_node_init(&w.node, &ops, 0);
}

static void saved(struct ml_save *s, enum err err)
{
    struct one_save *one = container_of(s, struct one_save, save);
    uint64_t in_store;

    ck_assert_uint_eq(one->answers++, 0);
    w.done++;
    w.fenced += err == ERR_FENCED;
    w.failed += err && err != ERR_FENCED;
    if (err)
        return;
    memcpy(&in_store, w.stored, sizeof(in_store));
    ck_assert(in_store >= one->state || w.other); /* what was asked for is there */
    w.saved_state = one->state;
}

static void save(unsigned i)
{
    saves[i].save.done = saved;
    saves[i].state = ++w.state;
    list_init(&saves[i].save.node);
    if (ml_node_save(&w.node, &saves[i].save)) {
        saves[i].answers++;
        w.done++;
        w.fenced++;
    }
}

/* The store's own part. */
static enum err apply(struct slice *value, int64_t expected)
{
    enum err err = ERR_BAD_VERSION;

    if (expected == w.version) {
        memcpy(w.stored, value->base, sizeof(w.stored));
        w.version++;
        err = ERR_OK;
    }
    slice_drop(value);
    return err;
}

static void land_late(void)
{
    if (w.late.base && apply(&w.late, w.late_expected) == ERR_OK)
        w.late = (struct slice){0};
}

enum how { DONE, AWAY, LOST_AFTER, LOST_BEFORE, LOST_LATE, REFUSED };

static void answer_put(enum how how)
{
    struct slice value = w.putting;
    enum err err = ERR_UNKNOWN_STATE;

    w.asked_put = false;
    w.putting = (struct slice){0};
    if (how == DONE || how == LOST_AFTER) {
        enum err applied = apply(&value, w.put_expected);
        err = how == DONE ? applied : err;
    } else if (how == LOST_LATE && !w.late.base) {
        w.late = value;
        w.late_expected = w.put_expected;
        value = (struct slice){0};
    } else if (how == AWAY) {
        err = ERR_NOT_READY;
    } else if (how == REFUSED) {
        err = ERR_TOO_BIG;
    }
    slice_drop(&value);
    ml_node_put_done(&w.node, err, w.version);
}

static void answer_get(enum err err)
{
    struct slice value = slice_copy(w.stored, sizeof(w.stored));

    w.asked_get = false;
    ck_assert(!w.mending);
    ml_node_got(&w.node, err, value, w.version);
    slice_drop(&value);
}

static void wake(void)
{
    ck_assert(w.delayed);
    w.delayed = false;
    ml_node_delayed(&w.node);
}

static void another_owner_writes(void)
{
    w.other = UINT64_MAX - rng_below(&w.seed, 9);
    memcpy(w.stored, &w.other, sizeof(w.stored));
    w.version++;
}

START_TEST(saves_share_the_write_after_the_one_under_way)
{
    world_begin(1, 0);
    save(0);
    save(1);
    save(2);
    answer_put(DONE);
    ck_assert_uint_eq(w.done, 1);
    answer_put(DONE);
    ck_assert_uint_eq(w.done, 3);
    ck_assert_int_eq(w.version, 2);
    ck_assert(!w.asked_put);
    ml_node_clear(&w.node);
}
END_TEST

START_TEST(a_write_whose_answer_was_lost_is_read_back)
{
    world_begin(1, 0);
    save(0);
    answer_put(LOST_AFTER);
    wake();
    answer_get(ERR_OK);
    ck_assert_uint_eq(w.done, 1);
    ck_assert_uint_eq(w.fenced, 0);
    save(1);
    answer_put(DONE);
    ck_assert_uint_eq(w.fenced, 0);
    ml_node_clear(&w.node);
}
END_TEST

START_TEST(a_write_that_lands_between_the_look_and_the_second_try_is_ours)
{
    world_begin(1, 0);
    save(0);
    answer_put(LOST_LATE);
    wake();
    answer_get(ERR_OK);
    land_late();
    answer_put(DONE); /* BAD_VERSION: moved by ourselves */
    wake();
    answer_get(ERR_OK);
    ck_assert_uint_eq(w.done, 1);
    ck_assert_uint_eq(w.fenced, 0);
    ml_node_clear(&w.node);
}
END_TEST

START_TEST(a_version_that_somebody_else_moved_fences)
{
    world_begin(1, 0);
    save(0);
    save(1);
    another_owner_writes();
    answer_put(DONE);
    answer_get(ERR_OK);
    ck_assert_uint_eq(w.fenced, 2);
    struct ml_save late = {.done = saved};
    ck_assert_int_eq(ml_node_save(&w.node, &late), ERR_FENCED);
    ml_node_clear(&w.node);
}
END_TEST

START_TEST(in_doubt_and_moved_by_somebody_else_fences)
{
    world_begin(1, 0);
    save(0);
    answer_put(LOST_BEFORE);
    another_owner_writes();
    wake();
    answer_get(ERR_OK);
    ck_assert_uint_eq(w.fenced, 1);
    ml_node_clear(&w.node);
}
END_TEST

START_TEST(a_node_that_is_gone_fences)
{
    world_begin(1, 0);
    save(0);
    answer_put(LOST_BEFORE);
    wake();
    answer_get(ERR_NOT_FOUND);
    ck_assert_uint_eq(w.fenced, 1);
    ml_node_clear(&w.node);
}
END_TEST

START_TEST(a_value_that_cannot_be_stored_fails_its_savers_only)
{
    world_begin(1, 0);
    save(0);
    save(1);
    answer_put(REFUSED);
    ck_assert_uint_eq(w.failed, 1);
    answer_put(DONE);
    ck_assert_uint_eq(w.done, 2);
    ml_node_clear(&w.node);
}
END_TEST

START_TEST(a_hurried_save_fails_instead_of_waiting)
{
    world_begin(1, 0);
    ml_node_hurry(&w.node, true);
    save(0);
    answer_put(AWAY);
    ck_assert_uint_eq(w.failed, 1);
    ck_assert(!w.delayed);
    ml_node_clear(&w.node);
}
END_TEST

static void mended(enum err err)
{
    ck_assert(w.mending);
    w.mending = false;
    ml_node_mended(&w.node, err);
}

/* The store was put back by so many versions. */
static void go_back(int64_t by)
{
    memset(w.stored, 0, sizeof(w.stored));
    w.version -= by;
    w.behind = true;
}

START_TEST(a_store_that_went_back_is_written_forward)
{
    world_begin(1, 0);
    for (unsigned i = 0; i < 3; i++) {
        save(i);
        answer_put(DONE);
    }
    go_back(2);
    save(3);
    answer_put(DONE); /* BAD_VERSION */
    answer_get(ERR_OK);
    save(4); /* what is made sure of may change meanwhile */
    mended(ERR_NOT_READY);
    wake();
    w.behind = false;
    mended(ERR_OK);
    answer_put(DONE);
    ck_assert_uint_eq(w.done, 5);
    ck_assert_uint_eq(w.fenced + w.failed, 0);
    ck_assert_int_eq(w.version, 2);
    ck_assert_uint_eq(w.saved_state, 5);
    ck_assert_uint_eq(w.sure, 1);
    save(5);
    answer_put(DONE);
    ck_assert_uint_eq(w.done, 6);
    ml_node_clear(&w.node);
}
END_TEST

START_TEST(a_look_finds_out_without_a_write)
{
    world_begin(1, 0);
    save(0);
    ml_node_look(&w.node); /* after what is under way */
    answer_put(DONE);
    ck_assert_uint_eq(w.done, 1);
    answer_get(ERR_OK);
    ck_assert_uint_eq(w.sure, 1);
    ck_assert(!w.asked_put);
    go_back(1);
    ml_node_look(&w.node);
    answer_get(ERR_OK);
    w.behind = false;
    mended(ERR_OK);
    answer_put(DONE);
    ck_assert_uint_eq(w.sure, 2);
    another_owner_writes();
    ml_node_look(&w.node);
    answer_get(ERR_OK);
    ck_assert_uint_eq(w.unsure, 1);
    ck_assert_int_eq(w.node.state, ML_NODE_FENCED);
    ml_node_clear(&w.node);
}
END_TEST

START_TEST(what_was_moved_while_it_was_mended_is_judged_again)
{
    world_begin(1, 0);
    for (unsigned i = 0; i < 2; i++) {
        save(i);
        answer_put(DONE);
    }
    go_back(2);
    save(2);
    answer_put(DONE);
    answer_get(ERR_OK);
    another_owner_writes();
    w.behind = false;
    mended(ERR_OK);
    answer_put(DONE);
    answer_get(ERR_OK);
    ck_assert_uint_eq(w.fenced, 1);
    ck_assert_uint_eq(w.sure, 0);
    ck_assert(memcmp(w.stored, &w.other, sizeof(w.other)) == 0);
    ml_node_clear(&w.node);
}
END_TEST

static void happen(unsigned *next, bool calm)
{
    unsigned trouble = calm ? 0 : w.trouble;

    land_late();
    if (!calm && *next < SAVES - 1 && rng_below(&w.seed, 3) == 0)
        save((*next)++);
    if (w.asked_put)
        answer_put(rng_below(&w.seed, 100) < trouble ? (enum how)rng_below(&w.seed, 6) : DONE);
    else if (w.asked_get)
        answer_get(rng_below(&w.seed, 100) < trouble ? ERR_NOT_READY : ERR_OK);
    else if (w.delayed)
        wake();
}

START_TEST(alone_it_is_never_fenced_and_never_says_stored_before_it_is)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        unsigned next = 0;
        world_begin(seed, (unsigned)(seed % 5) * 20);
        for (unsigned i = 0; i < 200; i++)
            happen(&next, false);
        for (unsigned i = 0; i < 200; i++)
            happen(&next, true);
        ck_assert_uint_eq(w.done, next);
        ck_assert_uint_eq(w.fenced, 0);
        slice_drop(&w.late);
        ml_node_clear(&w.node);
    }
}
END_TEST

START_TEST(beside_another_owner_it_stops)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        unsigned next = 0;
        world_begin(seed, (unsigned)(seed % 5) * 20);
        for (unsigned i = 0; i < 400; i++) {
            happen(&next, i > 300);
            if (i == seed % 200)
                another_owner_writes();
        }
        save(next++);
        for (unsigned i = 0; i < 100; i++)
            happen(&next, true);
        ck_assert_int_eq(w.node.state, ML_NODE_FENCED);
        ck_assert(memcmp(w.stored, &w.other, sizeof(w.other)) == 0); /* and wrote nothing more */
        slice_drop(&w.late);
        ml_node_clear(&w.node);
    }
}
END_TEST

int main(void)
{
    return suite_run("ml_node",
                     (suite_case[]){
                         SUITE_CASE(saves_share_the_write_after_the_one_under_way),
                         SUITE_CASE(a_write_whose_answer_was_lost_is_read_back),
                         SUITE_CASE(a_write_that_lands_between_the_look_and_the_second_try_is_ours),
                         SUITE_CASE(a_version_that_somebody_else_moved_fences),
                         SUITE_CASE(in_doubt_and_moved_by_somebody_else_fences),
                         SUITE_CASE(a_node_that_is_gone_fences),
                         SUITE_CASE(a_value_that_cannot_be_stored_fails_its_savers_only),
                         SUITE_CASE(a_hurried_save_fails_instead_of_waiting),
                         SUITE_CASE(a_store_that_went_back_is_written_forward),
                         SUITE_CASE(a_look_finds_out_without_a_write),
                         SUITE_CASE(what_was_moved_while_it_was_mended_is_judged_again),
                         SUITE_CASE(alone_it_is_never_fenced_and_never_says_stored_before_it_is),
                         SUITE_CASE(beside_another_owner_it_stops),
                         {0},
                     });
}
