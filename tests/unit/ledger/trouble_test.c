/* The shell when the metadata store is away or unsure, and bookies come and go. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/suite.h"
#include "tests/unit/ledger/house.h"

static void do_deaf(void *ctx)
{
    fake_bookie_deaf(ctx);
}

static void do_cut(void *ctx)
{
    fake_bookie_cut(ctx);
}

/* Each way in which the store's answer to a create may fail, at each of its calls. */
START_TEST(created_by_a_shaky_store)
{
    enum err err;

    house_open(1);
    house.shaky->unsure = (struct fault){.times = 1};
    struct ledger *a = house_create(1, 1, 1); /* it was made, and is found to be ours */
    int64_t first = ledger_id(a);
    house_appended(a, 3);
    ck_assert_str_eq(err_name(house_close_ledger(&a)), "OK");
    house.shaky->forgotten = (struct fault){.times = 2};
    a = house_create(1, 1, 1);
    ck_assert_int_eq(ledger_id(a), first + 1);
    house_drop(&a);
    /* Somebody else has the next id. */
    char path[META_KEY_MAX];
    ck_assert(path_ledger(first + 2, path) == ERR_OK);
    ck_assert(meta_put_wait(house.meta, path, slice_copy("x", 1), META_ABSENT) == ERR_OK);
    a = house_create(1, 1, 1);
    ck_assert_int_eq(ledger_id(a), first + 3);
    house_drop(&a);
    house.shaky->away = (struct fault){.times = 1};
    a = house_create_above((struct quorum){1, 1, 1}, -1, &err);
    ck_assert_str_eq(err_name(err), "NOT_READY");
    ck_assert_ptr_null(a);
    house_close();
}
END_TEST

/* The store goes away at the n-th call of a close, and comes back; nothing is given up. */
START_TEST(closed_through_a_shaky_store)
{
    struct ledger *l;

    house_open(1);
    for (unsigned n = 0; n < 4; n++) {
        l = house_create(1, 1, 1);
        int64_t id = ledger_id(l);
        house_appended(l, 5);
        house.shaky->away = (struct fault){.after = n / 2, .times = 2};
        if (n % 2)
            house.shaky->unsure = (struct fault){.times = 1};
        else
            house.shaky->forgotten = (struct fault){.times = 1};
        ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
        ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_READ, &l)), "OK");
        ck_assert(ledger_is_closed(l));
        ck_assert_int_eq(ledger_last_confirmed(l), 4);
        house_drop(&l);
        house.shaky->away = house.shaky->unsure = house.shaky->forgotten = (struct fault){0};
    }
    house_close();
}
END_TEST

/* A recovery fails wherever the store does, and the next one finishes it. */
START_TEST(recovered_through_a_shaky_store)
{
    house_open(3);
    for (unsigned n = 0; n < 6; n++) {
        struct ledger *r, *l = house_create(3, 3, 2);
        int64_t id = ledger_id(l);
        house_appended(l, 10);
        house.shaky->away = (struct fault){.after = n, .times = 1};
        house.shaky->unsure = (struct fault){.after = n % 2, .times = n / 2};
        enum err err;
        while ((err = house_open_ledger(id, LEDGER_OPEN_RECOVER, &r)))
            ck_assert_int_eq(err_class(err), CLASS_RETRY);
        ck_assert_int_eq(ledger_last_confirmed(r), 9);
        house_reads_all(r, 10);
        house_drop(&r);
        house_drop(&l);
        house.shaky->away = house.shaky->unsure = (struct fault){0};
    }
    house_close();
}
END_TEST

START_TEST(deleted_through_a_shaky_store)
{
    house_open(1);
    struct ledger *l = house_create(1, 1, 1);
    int64_t id = ledger_id(l);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    house.shaky->unsure = (struct fault){.times = 3};
    ck_assert_str_eq(err_name(house_delete_ledger(id)), "OK");
    house.shaky->away = (struct fault){.times = 1};
    ck_assert_str_eq(err_name(house_delete_ledger(id)), "NOT_READY");
    house_close();
}
END_TEST

/* With a spare the dead bookie's place is taken, and the metadata says so. */
START_TEST(recovered_onto_a_spare)
{
    struct ledger *l, *r;
    unsigned spare = 0;

    house_open(4);
    l = house_create(3, 3, 3);
    int64_t id = ledger_id(l);
    house_appended(l, 20);
    while (fake_bookie_has(house.bookie[spare], id, 0))
        spare++;
    house_call(do_deaf, house.bookie[(spare + 1) % 4]);
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_RECOVER, &r)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(r), 19);
    ck_assert(fake_bookie_has(house.bookie[spare], id, 19));
    house_reads_all(r, 20);
    house_drop(&r);
    house_drop(&l);
    house_close();
}
END_TEST

/* A bookie that was cut off is dialled again by the next ledger. */
START_TEST(dials_again)
{
    struct ledger *l;

    house_open(1);
    for (unsigned i = 0; i < 3; i++) {
        l = house_create(1, 1, 1);
        house_appended(l, 10);
        ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
        house_call(do_cut, house.bookie[0]);
    }
    house_close();
}
END_TEST

static void counted(struct bookies_watch *w)
{
    (void)w;
    house_happened();
}

static void watch_again(void *ctx)
{
    (void)ctx;
    house.watch.changed = counted;
    ledger_client_watch(house.client, &house.watch);
}

static void count_bookies(void *ctx)
{
    *(unsigned *)ctx = ledger_client_bookies(house.client);
}

static void stop_watching(void *ctx)
{
    (void)ctx;
    ledger_client_unwatch(house.client, &house.watch);
}

struct removal {
    struct meta_call call;
    char path[META_KEY_MAX];
};

static void removed(struct meta_call *c, const struct meta_reply *r)
{
    (void)c;
    ck_assert(r->err == ERR_OK);
    house_happened();
}

static void do_remove(void *ctx)
{
    struct removal *r = ctx;

    r->call = (struct meta_call){.home = house.loop, .done = removed};
    meta_remove(house.meta, r->path, META_ANY, &r->call);
}

/* A bookie that goes read-only takes no new ledgers, and is read as before. */
START_TEST(bookies_come_and_go)
{
    struct removal gone;
    unsigned n = 9;
    enum err err;

    house_open(2);
    struct ledger *l = house_create(2, 2, 2);
    house_appended(l, 10);
    house_call(watch_again, NULL);
    ck_assert(path_bookie(fake_bookie_id(house.bookie[0]), true, gone.path) == ERR_OK);
    ck_assert(meta_put_wait(house.meta, gone.path, (struct slice){0}, META_ABSENT) == ERR_OK);
    house_await(1);
    house_call(count_bookies, &n);
    ck_assert_uint_eq(n, 2); /* both records are there for a moment */
    ck_assert(path_bookie(fake_bookie_id(house.bookie[0]), false, gone.path) == ERR_OK);
    house_call(do_remove, &gone);
    house_await(2);
    house_call(count_bookies, &n);
    ck_assert_uint_eq(n, 1);
    struct ledger *none = house_create_above((struct quorum){2, 2, 2}, -1, &err);
    ck_assert_str_eq(err_name(err), "NOT_ENOUGH_BOOKIES");
    ck_assert_ptr_null(none);
    house_reads_all(l, 10);
    ck_assert(meta_put_wait(house.meta, gone.path, (struct slice){0}, META_ABSENT) == ERR_OK);
    house_await(1);
    house_call(count_bookies, &n);
    ck_assert_uint_eq(n, 2);
    house_call(stop_watching, NULL);
    house_drop(&l);
    house_close();
}
END_TEST

static void turn_down_reads(struct fake_bookie_knobs *k)
{
    k->on_read = (struct fault){.times = 1000000};
    k->read_status = BOOKIE_TOO_MANY;
}

/* Nobody can be asked: the attempt ends, the ledger stays in recovery, the writer is out. */
START_TEST(recovery_that_cannot_know)
{
    struct ledger *l, *r;

    house_open(1);
    l = house_create(1, 1, 1);
    int64_t id = ledger_id(l);
    house_appended(l, 5);
    house_knob(turn_down_reads, 0);
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_RECOVER, &r)), "BUSY");
    ck_assert_ptr_null(r);
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_READ, &r)), "BUSY");
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "FENCED");
    house_close();
}
END_TEST

int main(void)
{
    return suite_run("trouble", (suite_case[]){SUITE_CASE(created_by_a_shaky_store),
                                               SUITE_CASE(closed_through_a_shaky_store),
                                               SUITE_CASE(recovered_through_a_shaky_store),
                                               SUITE_CASE(deleted_through_a_shaky_store),
                                               SUITE_CASE(recovered_onto_a_spare),
                                               SUITE_CASE(dials_again),
                                               SUITE_CASE(bookies_come_and_go),
                                               SUITE_CASE(recovery_that_cannot_know),
                                               {0}});
}
