/* The shell over real sockets, against fake bookies in the same loop. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/suite.h"
#include "tests/unit/ledger/house.h"

START_TEST(written_closed_read)
{
    house_open(3);
    struct ledger *l = house_create(3, 2, 2);
    int64_t id = ledger_id(l);
    house_appended(l, 100);
    ck_assert_int_eq(ledger_last_confirmed(l), 99);
    ck_assert_int_eq(ledger_length(l), 10 * 7 + 90 * 8);
    house_reads_all(l, 100);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_READ, &l)), "OK");
    ck_assert(ledger_is_closed(l));
    ck_assert_int_eq(ledger_last_confirmed(l), 99);
    ck_assert_int_eq(ledger_length(l), 10 * 7 + 90 * 8);
    house_reads_all(l, 100);
    house_drop(&l);
    ck_assert_str_eq(err_name(house_delete_ledger(id)), "OK");
    ck_assert_str_eq(err_name(house_delete_ledger(id)), "OK");
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_READ, &l)), "NO_LEDGER");
    house_close();
}
END_TEST

START_TEST(ids_grow_and_stay_above)
{
    enum err err;
    struct quorum one = {1, 1, 1};

    house_open(1);
    struct ledger *a = house_create(1, 1, 1);
    struct ledger *b = house_create_above(one, ledger_id(a), &err);
    ck_assert_int_gt(ledger_id(b), ledger_id(a));
    struct ledger *c = house_create_above(one, ledger_id(b) + 1000, &err);
    ck_assert_str_eq(err_name(err), "OK");
    ck_assert_int_gt(ledger_id(c), ledger_id(b) + 1000);
    house_drop(&a);
    house_drop(&b);
    house_drop(&c);
    house_close();
}
END_TEST

/* The counter goes back, as that of a store which was restored does: what the bookies know is
 * passed over, whether it has entries or was only fenced. */
START_TEST(ids_that_bookies_know_are_passed_over)
{
    struct digest d = digest_of(DIGEST_CRC32C, (struct view){0});
    struct ledger *l;

    house_open(3);
    for (int64_t id = 0; id < 5000; id += 10)
        fake_bookie_put(house.bookie[id % 3], &d, &(struct entry_header){id, 0, -1, 3}, "old");
    l = house_create(3, 3, 2);
    ck_assert_int_gt(ledger_id(l), 4990);
    house_appended(l, 10);
    house_drop(&l);
    l = house_create(3, 3, 2); /* of the same block */
    ck_assert_int_lt(ledger_id(l), 100000);
    house_drop(&l);
    house_close();
}
END_TEST

START_TEST(too_few_bookies)
{
    enum err err;

    house_open(2);
    struct ledger *l = house_create_above((struct quorum){3, 2, 2}, -1, &err);
    ck_assert_str_eq(err_name(err), "NOT_ENOUGH_BOOKIES");
    ck_assert_ptr_null(l);
    house_close();
}
END_TEST

/* The writer's handle is left alone, as by a broker that has died. */
START_TEST(recovered_from_a_silent_writer)
{
    struct ledger *l, *r;
    enum ledger_open_how how = LEDGER_OPEN_READ;

    house_open(3);
    l = house_create(3, 3, 2);
    int64_t id = ledger_id(l);
    house_appended(l, 50);
    /* Its last entry is not yet known as confirmed to any bookie. */
    ck_assert_str_eq(err_name(house_open_ledger(id, how, &r)), "OK");
    ck_assert_int_le(ledger_last_confirmed(r), 48);
    house_drop(&r);
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_RECOVER, &r)), "OK");
    ck_assert(ledger_is_closed(r));
    ck_assert_int_eq(ledger_last_confirmed(r), 49);
    ck_assert_int_eq(ledger_length(r), 10 * 7 + 40 * 8);
    house_reads_all(r, 50);
    /* And now the writer comes back. */
    house_append(l, 1);
    ck_assert_uint_eq(house_batch.accepted, 1);
    house_await(1);
    ck_assert_str_eq(err_name(house_batch.err[0]), "FENCED");
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "FENCED");
    house_drop(&r);
    house_close();
}
END_TEST

START_TEST(recovered_when_empty)
{
    struct ledger *l, *r;

    house_open(2);
    l = house_create(2, 2, 2);
    ck_assert_str_eq(err_name(house_open_ledger(ledger_id(l), LEDGER_OPEN_RECOVER, &r)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(r), -1);
    ck_assert_int_eq(ledger_length(r), 0);
    unsigned got;
    ck_assert_str_eq(err_name(house_read_range(r, 0, -1, &got)), "OK");
    house_drop(&r);
    /* Recovery of a closed one is done at once. */
    ck_assert_str_eq(err_name(house_open_ledger(ledger_id(l), LEDGER_OPEN_RECOVER, &r)), "OK");
    house_drop(&r);
    /* The writer, which has seen nothing of it, may not close; the end is the same though. */
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    house_close();
}
END_TEST

static void turn_down_next_add(struct fake_bookie_knobs *k)
{
    k->on_add = (struct fault){.after = 20, .times = 1};
    k->add_status = BOOKIE_EIO;
}

/* One bookie fails: what is not confirmed fails in order, the rest is there. */
START_TEST(failed_bookie_ends_the_ledger)
{
    struct ledger *l, *r;
    unsigned ok = 0;

    house_open(3);
    l = house_create(3, 3, 3);
    int64_t id = ledger_id(l);
    house_knob(turn_down_next_add, 1);
    house_append(l, 100);
    house_await(house_batch.accepted);
    while (house_batch.err[ok] == ERR_OK)
        ok++;
    ck_assert_uint_le(ok, 20); /* fewer if the refusal was faster than the others' acks */
    for (unsigned i = 0; i < house_batch.accepted; i++) {
        ck_assert_uint_eq(house_batch.order[i], i);
        ck_assert(i < ok || err_class(house_batch.err[i]) == CLASS_RETRY);
    }
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_READ, &r)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(r), (entry_id)ok - 1);
    house_reads_all(r, ok);
    house_drop(&r);
    house_close();
}
END_TEST

static void go_mute(struct fake_bookie_knobs *k)
{
    k->mute = true;
}

/* A bookie that does not answer delays nothing as long as Qa others do; when it is given up and
 * nobody can take its place they go on without it. */
START_TEST(silent_bookie_is_slow_then_dead)
{
    struct ledger *l;

    house.conf.add_timeout_us = 1500 * 1000;
    house_open(3);
    l = house_create(3, 3, 2);
    house_knob(go_mute, 2);
    house_appended(l, 10);
    while (house_counts(lacking) == 0) {
        house_append(l, 1);
        ck_assert(!house_batch.refused);
        house_await(1);
        ck_assert_str_eq(err_name(house_batch.err[0]), "OK");
    }
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    ck_assert_uint_eq(house_counts(lacking), 0);
    house_close();
}
END_TEST

static void do_cut(void *ctx)
{
    fake_bookie_cut(ctx);
}

START_TEST(cut_connection_ends_the_ledger)
{
    struct ledger *l;

    house_open(1);
    l = house_create(1, 1, 1);
    house_appended(l, 10);
    house_knob(go_mute, 0);
    house_append(l, 10);
    house_call(do_cut, house.bookie[0]);
    house_await(10);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_str_eq(err_name(house_batch.err[i]), "NOT_ENOUGH_BOOKIES");
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    house_close();
}
END_TEST

static void speak(struct fake_bookie_knobs *k)
{
    k->mute = false;
}

static void do_cancel(void *ctx)
{
    ledger_read_cancel(&((struct reading *)ctx)->read);
}

static void go_rotten(struct fake_bookie_knobs *k)
{
    k->rotten = true;
}

/* A reader goes to the next replica; when all are rotten it says so. */
START_TEST(rotten_entries_are_read_elsewhere)
{
    struct ledger *l;
    unsigned got;

    house_open(3);
    l = house_create(3, 3, 2);
    house_appended(l, 30);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    ck_assert_str_eq(err_name(house_open_ledger(0, LEDGER_OPEN_READ, &l)), "OK");
    house_knob(go_rotten, 0);
    house_reads_all(l, 30);
    uint64_t corrupt = house_counts(corrupt);
    house_reads_all(l, 30); /* by those who did not answer so */
    ck_assert_uint_eq(house_counts(corrupt), corrupt);
    house_knob(go_rotten, 1);
    house_reads_all(l, 30);
    house_knob(go_rotten, 2);
    ck_assert_str_eq(err_name(house_read_range(l, 0, 29, &got)), "CHECKSUM");
    ck_assert_uint_eq(got, 0);
    ck_assert_uint_gt(house_counts(corrupt), corrupt);
    house_drop(&l);
    house_close();
}
END_TEST

/* The one that is asked first does not answer: another one does, and is asked from then on. */
START_TEST(slow_bookie_delays_no_reader)
{
    struct ledger *l;

    house.conf.second_read_us = 20 * 1000;
    house_open(3);
    l = house_create(3, 3, 3);
    house_appended(l, 30);
    for (unsigned i = 0; i < 3; i++)
        house_knob(go_mute, i);
    struct reading g = {.ledger = l, .read = {.first = 0, .last = 29}};
    house_call(house_read_begin, &g);
    while (house_counts(second_reads) == 0)
        sched_yield();
    house_call(do_cancel, &g);
    for (unsigned i = 0; i < 3; i++)
        house_knob(i == 1 ? go_mute : speak, i);
    house_reads_all(l, 30);
    uint64_t second = house_counts(second_reads);
    house_reads_all(l, 30);
    ck_assert_uint_eq(house_counts(second_reads), second);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    house_close();
}
END_TEST

/* What somebody waits for is not left to a bookie that stands still, whatever the setting says. */
START_TEST(urgent_reads_wait_for_no_bookie)
{
    struct ledger *l;

    house_open(3);
    l = house_create(3, 3, 3);
    house_appended(l, 30);
    for (unsigned i = 0; i < 3; i++) {
        struct reading g = {.ledger = l, .read = {.first = 29, .last = 29, .is_urgent = true}};
        house_knob(go_mute, i);
        house_call(house_read_begin, &g);
        house_await(1);
        ck_assert_str_eq(err_name(g.err), "OK");
        ck_assert_uint_eq(g.got, 1);
        house_knob(speak, i);
    }
    ck_assert_uint_gt(house_counts(second_reads), 0);
    ck_assert_str_eq(err_name(house_close_ledger(&l)), "OK");
    house_close();
}
END_TEST

static void do_deaf(void *ctx)
{
    fake_bookie_deaf(ctx);
}

/* A dead bookie hinders neither recovery nor reading; without a spare the two others hold it. */
START_TEST(recovered_with_a_dead_bookie)
{
    struct ledger *l, *r;

    house_open(3);
    l = house_create(3, 3, 2);
    int64_t id = ledger_id(l);
    house_appended(l, 20);
    house_call(do_deaf, house.bookie[1]);
    ck_assert_str_eq(err_name(house_open_ledger(id, LEDGER_OPEN_RECOVER, &r)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(r), 19);
    house_reads_all(r, 20);
    house_drop(&r);
    house_drop(&l);
    house_close();
}
END_TEST

START_TEST(read_is_cancelled_by_its_own_callback)
{
    struct ledger *l;

    house_open(1);
    l = house_create(1, 1, 1);
    house_appended(l, 100);
    struct reading g = {.ledger = l, .read = {.first = 0, .last = 99}, .cancel_at = 10};
    house_call(house_read_begin, &g);
    house_await(1);
    house_reads_all(l, 100);
    ck_assert_uint_eq(g.got, 11);
    ck_assert(!g.done);
    house_drop(&l);
    house_close();
}
END_TEST

START_TEST(window_is_bounded)
{
    struct ledger *l;

    house.conf.window_entries = 100;
    house_open(1);
    l = house_create(1, 1, 1);
    house_append(l, 200);
    ck_assert_str_eq(err_name(house_batch.refused), "BUSY");
    ck_assert_uint_eq(house_batch.accepted, 100);
    house_await(100);
    house_drop(&l);
    house_close();
}
END_TEST

/* Handles may go at any time: nothing is called back, nothing leaks (asan). */
START_TEST(dropped_in_flight)
{
    struct ledger *l;

    house_open(3);
    house_knob(go_mute, 0);
    l = house_create(3, 3, 3);
    house_append(l, 100);
    house_drop(&l);
    for (unsigned i = 0; i < house_batch.accepted; i++)
        chain_drop(&house_batch.append[i].payload);
    house_close();
}
END_TEST

/* A ledger of somebody else's: HMAC and a password, both in the metadata. */
START_TEST(foreign_digest_and_password)
{
    Bookkeeper__LedgerMetadataFormat m = BOOKKEEPER__LEDGER_METADATA_FORMAT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment s = BOOKKEEPER__LEDGER_METADATA_FORMAT__SEGMENT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment *only = &s;
    char path[META_KEY_MAX];
    struct ledger *l;

    house_open(1);
    char *member = (char *)(uintptr_t)fake_bookie_id(house.bookie[0]);
    struct digest d = digest_of(DIGEST_HMAC, view_of("secret", 6));
    s.n_ensemblemember = 1;
    s.ensemblemember = &member;
    m.quorumsize = m.ensemblesize = 1;
    m.state = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN;
    m.n_segment = 1;
    m.segment = &only;
    m.has_digesttype = 1;
    m.digesttype = BOOKKEEPER__LEDGER_METADATA_FORMAT__DIGEST_TYPE__HMAC;
    m.has_password = 1;
    m.password.data = (uint8_t *)(uintptr_t) "secret";
    m.password.len = 6;
    ck_assert(path_ledger(7, path) == ERR_OK);
    ck_assert(meta_put_wait(house.meta, path, ledger_record_write(&m), META_ABSENT) == ERR_OK);
    for (int e = 0; e < 3; e++) {
        char text[32];
        snprintf(text, sizeof text, "entry %d", e);
        fake_bookie_put(house.bookie[0], &d, &(struct entry_header){7, e, e - 1, 7 * (e + 1)},
                        text);
    }
    ck_assert_str_eq(err_name(house_open_ledger(7, LEDGER_OPEN_READ, &l)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(l), 1);
    ck_assert_int_eq(ledger_length(l), 14);
    house_drop(&l);
    ck_assert_str_eq(err_name(house_open_ledger(7, LEDGER_OPEN_RECOVER, &l)), "OK");
    ck_assert_int_eq(ledger_last_confirmed(l), 2);
    ck_assert_int_eq(ledger_length(l), 21);
    house_reads_all(l, 3);
    house_drop(&l);
    house_close();
}
END_TEST

int main(void)
{
    return suite_run("client", (suite_case[]){SUITE_CASE(written_closed_read),
                                              SUITE_CASE(ids_grow_and_stay_above),
                                              SUITE_CASE(ids_that_bookies_know_are_passed_over),
                                              SUITE_CASE(too_few_bookies),
                                              SUITE_CASE(recovered_from_a_silent_writer),
                                              SUITE_CASE(recovered_when_empty),
                                              SUITE_CASE(failed_bookie_ends_the_ledger),
                                              SUITE_CASE(silent_bookie_is_slow_then_dead),
                                              SUITE_CASE(cut_connection_ends_the_ledger),
                                              SUITE_CASE(rotten_entries_are_read_elsewhere),
                                              SUITE_CASE(slow_bookie_delays_no_reader),
                                              SUITE_CASE(urgent_reads_wait_for_no_bookie),
                                              SUITE_CASE(recovered_with_a_dead_bookie),
                                              SUITE_CASE(read_is_cancelled_by_its_own_callback),
                                              SUITE_CASE(window_is_bounded),
                                              SUITE_CASE(dropped_in_flight),
                                              SUITE_CASE(foreign_digest_and_password),
                                              {0}});
}
