/* What a store that was put back has forgotten of a ledger, said again. */
#include "ledger/handle.h"
#include "tests/lib/suite.h"
#include "tests/unit/ledger/house.h"

struct returning {
    struct ledger_return call;
    const struct ledger_known *known;
    bool forgotten, written;
    enum err err;
};

static void returned(struct ledger_return *r, enum err err, bool written)
{
    struct returning *b = container_of(r, struct returning, call);

    b->err = err;
    b->written = written;
    house_happened();
}

static void do_return(void *ctx)
{
    struct returning *b = ctx;

    b->call.done = returned;
    ledger_write_back(house.client, b->known, b->forgotten, &b->call);
}

static struct returning write_back(const struct ledger_known *k, bool forgotten)
{
    struct returning b = {.known = k, .forgotten = forgotten};

    house_call(do_return, &b);
    house_await(1);
    return b;
}

struct knowing {
    struct ledger *ledger;
    struct ledger_known known;
};

static void do_know(void *ctx)
{
    struct knowing *k = ctx;

    k->known = ledger_known(k->ledger);
}

static struct ledger_known known_of(struct ledger *l)
{
    struct knowing k = {.ledger = l};

    house_call(do_know, &k);
    return k.known;
}

START_TEST(a_forgotten_ledger_is_there_again)
{
    struct ledger *l, *again;

    house_open(3);
    shaky_meta_keep(house.shaky);
    l = house_create(3, 3, 2);
    house_appended(l, 20);
    struct ledger_known k = known_of(l);
    int64_t id = ledger_id(l);
    shaky_meta_put_back(house.shaky);
    ck_assert_int_eq(house_open_ledger(id, LEDGER_OPEN_RECOVER, &again), ERR_NO_LEDGER);
    ck_assert_int_eq(write_back(&k, false).err, ERR_NO_LEDGER); /* it may have been deleted */
    ck_assert(write_back(&k, true).written);
    struct returning b = write_back(&k, true);
    ck_assert(b.err == ERR_OK && !b.written);
    ck_assert_int_eq(house_close_ledger(&l), ERR_OK);
    b = write_back(&k, true); /* closed since: that is the newer one */
    ck_assert(b.err == ERR_OK && !b.written);
    ck_assert_int_eq(house_open_ledger(id, LEDGER_OPEN_READ, &again), ERR_OK);
    house_reads_all(again, 20);
    house_drop(&again);
    slice_drop(&k.value);
    house_close();
}
END_TEST

struct closing {
    struct ledger_call call;
    struct ledger *ledger;
    enum err err;
};

static void closed(struct ledger_call *call, enum err err, struct ledger *l)
{
    (void)l;
    container_of(call, struct closing, call)->err = err;
    house_happened();
}

static void do_close(void *ctx)
{
    struct closing *c = ctx;

    c->call.done = closed;
    ledger_close(&c->ledger, &c->call);
}

/* The writer closes what the store has just forgotten: it waits until its owner has said it again.
 */
START_TEST(a_writer_waits_for_what_is_written_back)
{
    struct ledger *l, *again;

    house_open(3);
    shaky_meta_keep(house.shaky);
    l = house_create(3, 3, 2);
    house_appended(l, 20);
    struct ledger_known k = known_of(l);
    int64_t id = ledger_id(l);
    shaky_meta_put_back(house.shaky);
    struct returning b = {.known = &k, .forgotten = true};
    struct closing c = {.ledger = l};
    house_call(do_close, &c);
    house_call(do_return, &b);
    house_await(2);
    ck_assert(b.written);
    ck_assert_int_eq(c.err, ERR_OK);
    ck_assert_int_eq(house_open_ledger(id, LEDGER_OPEN_READ, &again), ERR_OK);
    house_reads_all(again, 20);
    house_drop(&again);
    slice_drop(&k.value);
    house_close();
}
END_TEST

int main(void)
{
    return suite_run("write_back", (suite_case[]){
                                       SUITE_CASE(a_forgotten_ledger_is_there_again),
                                       SUITE_CASE(a_writer_waits_for_what_is_written_back),
                                       {0},
                                   });
}
