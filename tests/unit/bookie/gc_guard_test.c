#include "bookie/gc_guard.h"

#include <string.h>

#include "bookie/gc_memory.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"

enum { LEDGERS = 50 };

static struct gc_guard guard;
static struct gc_ids here;
static int64_t came_back;

static void begin(void)
{
    guard = (struct gc_guard){.share = 0.1, .least = 5, .delay_ms = 1000};
    here = (struct gc_ids){0};
    came_back = -1;
    for (int64_t l = 0; l < LEDGERS; l++)
        gc_ids_add(&here, l * 3);
}

static void end(void)
{
    gc_guard_end(&guard);
    gc_ids_end(&here);
}

static void back(void *ctx, int64_t ledger)
{
    (void)ctx;
    came_back = ledger;
}

/* All but these are in the metadata. */
static enum gc_halt list_without(int64_t from, int64_t to)
{
    memset(here.seen, 0, here.n * sizeof here.seen[0]);
    for (int64_t l = 0; l < LEDGERS * 3; l++) /* others that are not here too */
        if (l < from || l > to)
            gc_ids_see(&here, l);
    return gc_guard_listed(&guard, &here, back, NULL);
}

static const uint8_t mine[GC_BEACON] = {1}, other[GC_BEACON] = {2};

static enum gc_halt saw(const char *instance, uint64_t store, uint64_t revision,
                        const uint8_t *beacon)
{
    const struct gc_sight s = {instance, store, revision, beacon};
    return gc_guard_saw(&guard, &s);
}

START_TEST(only_what_is_absent_twice_is_asked_for)
{
    begin();
    ck_assert_int_eq(list_without(9, 10), GC_GOES);
    ck_assert_ptr_null(gc_guard_next(&guard, -1, 0));
    ck_assert_int_eq(list_without(9, 9), GC_GOES);
    const struct gc_absent *a = gc_guard_next(&guard, -1, 0);
    ck_assert_ptr_nonnull(a);
    ck_assert_int_eq(a->ledger, 9);
    ck_assert_int_eq(a->how, GC_TWICE);
    ck_assert_ptr_null(gc_guard_next(&guard, 9, 0));
    end();
}
END_TEST

START_TEST(one_that_is_seen_between_begins_again)
{
    begin();
    ck_assert_int_eq(list_without(9, 9), GC_GOES);
    ck_assert_int_eq(list_without(-1, -1), GC_GOES);
    ck_assert_int_eq(list_without(9, 9), GC_GOES);
    ck_assert_ptr_null(gc_guard_next(&guard, -1, 0));
    end();
}
END_TEST

START_TEST(what_is_asked_for_goes_to_the_trash_and_then_goes)
{
    begin();
    ck_assert_int_eq(list_without(9, 9), GC_GOES);
    ck_assert_int_eq(list_without(9, 9), GC_GOES);
    ck_assert_int_eq(gc_guard_asked(&guard, 9, 100), GC_TRASHED);
    ck_assert_uint_eq(gc_guard_trashed(&guard), 1);
    ck_assert_ptr_null(gc_guard_next(&guard, -1, 1099));
    const struct gc_absent *a = gc_guard_next(&guard, -1, 1100);
    ck_assert_ptr_nonnull(a);
    ck_assert_int_eq(a->how, GC_TRASHED);
    ck_assert_int_eq(gc_guard_asked(&guard, 9, 1100), GC_GOING);
    ck_assert_int_eq(gc_guard_next(&guard, -1, 1100)->how, GC_GOING);
    gc_guard_gone(&guard, 9);
    ck_assert_ptr_null(gc_guard_next(&guard, -1, 1100));
    end();
}
END_TEST

START_TEST(what_is_in_the_trash_comes_back)
{
    begin();
    ck_assert_int_eq(list_without(9, 9), GC_GOES);
    ck_assert_int_eq(list_without(9, 9), GC_GOES);
    ck_assert_int_eq(gc_guard_asked(&guard, 9, 0), GC_TRASHED);
    ck_assert_int_eq(list_without(-1, -1), GC_GOES);
    ck_assert_int_eq(came_back, 9);
    ck_assert_ptr_null(gc_guard_next(&guard, -1, 5000));
    ck_assert_uint_eq(guard.n, 0);
    end();
}
END_TEST

START_TEST(the_trash_after_a_restart_waits_for_a_listing)
{
    begin();
    gc_guard_remember(&guard, 9, GC_TRASHED, 0);
    gc_guard_remember(&guard, 3, GC_GOING, 0);
    ck_assert_int_eq(gc_guard_next(&guard, -1, 5000)->ledger, 3);
    ck_assert_ptr_null(gc_guard_next(&guard, 3, 5000));
    ck_assert_int_eq(list_without(9, 9), GC_GOES);
    ck_assert_int_eq(gc_guard_next(&guard, 3, 5000)->ledger, 9);
    end();
}
END_TEST

START_TEST(too_many_at_once_halt)
{
    begin();
    ck_assert_int_eq(list_without(0, 14), GC_GOES); /* five: as many as may always */
    ck_assert_int_eq(list_without(0, 47), GC_TOO_MANY);
    ck_assert_uint_eq(guard.vanished, 11);
    ck_assert_ptr_null(gc_guard_next(&guard, -1, 0));
    ck_assert_int_eq(list_without(-1, -1), GC_TOO_MANY); /* for good */
    gc_guard_resume(&guard);
    ck_assert_int_eq(list_without(0, 47), GC_GOES);
    ck_assert_int_eq(list_without(0, 47), GC_GOES);
    ck_assert_int_eq(gc_guard_next(&guard, -1, 0)->ledger, 0);
    ck_assert_int_eq(list_without(0, 149), GC_TOO_MANY); /* it was let pass once */
    end();
}
END_TEST

START_TEST(the_absent_are_kept_in_order)
{
    begin();
    guard.least = 1000;
    ck_assert_int_eq(list_without(60, 70), GC_GOES);
    ck_assert_int_eq(list_without(30, 100), GC_GOES);
    ck_assert_int_eq(list_without(0, 149), GC_GOES);
    ck_assert_uint_eq(guard.n, LEDGERS);
    for (size_t i = 0; i < guard.n; i++)
        ck_assert_int_eq(guard.at[i].ledger, (int64_t)i * 3);
    size_t twice = 0;
    for (size_t i = 0; i < guard.n; i++)
        twice += guard.at[i].how == GC_TWICE;
    ck_assert_uint_eq(twice, 24); /* 30 to 99 */
    end();
}
END_TEST

START_TEST(the_same_store_going_on_is_believed)
{
    begin();
    ck_assert_int_eq(saw("i", 7, 100, NULL), GC_GOES);
    memcpy(guard.memory.next, mine, GC_BEACON);
    ck_assert_int_eq(saw("i", 7, 100, NULL), GC_GOES); /* it may not have been put */
    ck_assert_int_eq(saw("i", 7, 101, mine), GC_GOES); /* or have been */
    memcpy(guard.memory.beacon, mine, GC_BEACON);
    memcpy(guard.memory.next, other, GC_BEACON);
    ck_assert_int_eq(saw("i", 7, 101, mine), GC_GOES);
    ck_assert_int_eq(saw("i", 0, 102, other), GC_GOES);
    ck_assert_uint_eq(guard.memory.store, 7);
    end();
}
END_TEST

START_TEST(another_store_is_not)
{
    begin();
    ck_assert_int_eq(saw("i", 7, 100, NULL), GC_GOES);
    ck_assert_int_eq(saw("j", 7, 100, NULL), GC_OTHER_STORE);
    ck_assert_int_eq(saw("i", 7, 100, NULL), GC_OTHER_STORE);
    gc_guard_resume(&guard);
    ck_assert_int_eq(saw("j", 7, 10, NULL), GC_GOES);
    ck_assert_int_eq(saw("j", 8, 11, NULL), GC_OTHER_STORE);
    gc_guard_resume(&guard);
    ck_assert_int_eq(saw("", 0, 0, NULL), GC_GOES);
    end();
}
END_TEST

START_TEST(one_that_went_back_is_not)
{
    begin();
    ck_assert_int_eq(saw("i", 7, 100, NULL), GC_GOES);
    ck_assert_int_eq(saw("i", 7, 99, NULL), GC_OLDER_STORE);
    ck_assert_int_eq(list_without(9, 9), GC_OLDER_STORE);
    end();
}
END_TEST

/* Restored from an older copy, and since then more has happened than is remembered here. */
START_TEST(one_that_went_back_and_far_ahead_lacks_the_beacon)
{
    begin();
    ck_assert_int_eq(saw("i", 7, 100, NULL), GC_GOES);
    memcpy(guard.memory.beacon, mine, GC_BEACON);
    ck_assert_int_eq(saw("i", 7, 500, other), GC_BEACON_LOST);
    gc_guard_resume(&guard);
    ck_assert_int_eq(saw("i", 7, 500, other), GC_GOES); /* an operator has said so */
    ck_assert_int_eq(saw("i", 7, 500, NULL), GC_BEACON_LOST);
    end();
}
END_TEST

START_TEST(what_is_remembered_survives)
{
    struct fake_disk *f = fake_disk_new();
    struct disk *d = fake_disk_of(f);
    struct gc_memory back_again = {0}, second = {0};
    begin();
    ck_assert_int_eq(d->ops->mkdir(d, "a"), ERR_OK);
    ck_assert_int_eq(d->ops->mkdir(d, "b"), ERR_OK);
    gc_memory_load(d, "a", &back_again);
    ck_assert(!back_again.is_known);
    ck_assert_int_eq(saw("instance", 7, 100, mine), GC_GOES);
    ck_assert_int_eq(gc_memory_store(d, "a", &guard.memory), ERR_OK);
    guard.memory.revision = 90; /* a device that was away */
    ck_assert_int_eq(gc_memory_store(d, "b", &guard.memory), ERR_OK);
    gc_memory_load(d, "a", &back_again);
    gc_memory_load(d, "b", &back_again);
    ck_assert_str_eq(back_again.instance, "instance");
    ck_assert_uint_eq(back_again.revision, 100);
    ck_assert_mem_eq(back_again.beacon, mine, GC_BEACON);
    guard.memory.halt = GC_TOO_MANY;
    ck_assert_int_eq(gc_memory_store(d, "b", &guard.memory), ERR_OK);
    gc_memory_load(d, "b", &back_again);
    ck_assert_int_eq(back_again.halt, GC_TOO_MANY);
    fake_disk_flip(f, "a/gc", 20);
    gc_memory_load(d, "a", &second);
    ck_assert_int_eq(second.halt, GC_MEMORY_LOST);
    fake_disk_drop(&f);
    end();
}
END_TEST

int main(void)
{
    return suite_run("gc_guard",
                     (suite_case[]){SUITE_CASE(only_what_is_absent_twice_is_asked_for),
                                    SUITE_CASE(one_that_is_seen_between_begins_again),
                                    SUITE_CASE(what_is_asked_for_goes_to_the_trash_and_then_goes),
                                    SUITE_CASE(what_is_in_the_trash_comes_back),
                                    SUITE_CASE(the_trash_after_a_restart_waits_for_a_listing),
                                    SUITE_CASE(too_many_at_once_halt),
                                    SUITE_CASE(the_absent_are_kept_in_order),
                                    SUITE_CASE(the_same_store_going_on_is_believed),
                                    SUITE_CASE(another_store_is_not),
                                    SUITE_CASE(one_that_went_back_is_not),
                                    SUITE_CASE(one_that_went_back_and_far_ahead_lacks_the_beacon),
                                    SUITE_CASE(what_is_remembered_survives),
                                    {0}});
}
