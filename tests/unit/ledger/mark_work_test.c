/* One mark, until it may be taken away. */
#include "ledger/mark_work.h"

#include "tests/unit/ledger/tale.h"

static struct tale tale;
static struct mark_work w;

static void do_read(void *ctx)
{
    tell(ctx, "read ");
}

static void look(void *ctx)
{
    tell(ctx, "look ");
}

static void repair(void *ctx)
{
    tell(ctx, "repair ");
}

static void do_remove(void *ctx, int64_t version)
{
    tell(ctx, "remove%lld ", (long long)version);
}

static void end(void *ctx, enum mark_work_end how, enum err err)
{
    static const char *const name[] = {"gone", "done", "newer", "later"};

    tell(ctx, "%s:%s", name[how], err_name(err));
}

static const struct mark_work_effects effects = {
    .read = do_read, .look = look, .repair = repair, .remove = do_remove, .end = end};

/* Of version 4, read when the store was at revision 70. */
static void begin(uint64_t census)
{
    mark_work_start(&w, &effects, &tale);
    mark_work_read(&w, ERR_OK, 4, 70, census);
}

START_TEST(it_is_removed_as_it_was_read)
{
    begin(70);
    mark_work_repaired(&w, ERR_OK);
    mark_work_removed(&w, ERR_OK);
    tells(&tale, "read repair remove4 done:OK");
}
END_TEST

START_TEST(a_newer_one_stays)
{
    begin(71);
    mark_work_repaired(&w, ERR_OK);
    mark_work_removed(&w, ERR_BAD_VERSION);
    tells(&tale, "read repair remove4 newer:BAD_VERSION");
}
END_TEST

START_TEST(one_that_may_be_gone_is_looked_at_again)
{
    begin(71);
    mark_work_repaired(&w, ERR_OK);
    mark_work_removed(&w, ERR_UNKNOWN_STATE);
    tells(&tale, "read repair remove4 newer:UNKNOWN_STATE");
}
END_TEST

/* The bookie that it names may have come back, or the census has not heard yet that it went. */
START_TEST(an_older_census_is_not_believed)
{
    begin(69);
    tells(&tale, "read look ");
    mark_work_census(&w, 69);
    tells(&tale, "look ");
    mark_work_census(&w, 70);
    tells(&tale, "repair ");
    mark_work_census(&w, 90); /* nobody waits for it */
    mark_work_repaired(&w, ERR_OK);
    tells(&tale, "remove4 ");
}
END_TEST

START_TEST(what_is_not_repaired_stays_marked)
{
    begin(70);
    mark_work_repaired(&w, ERR_BUSY);
    tells(&tale, "read repair later:BUSY");
    mark_work_repaired(&w, ERR_OK); /* nobody asked */
    tells(&tale, "");
}
END_TEST

START_TEST(others_were_faster)
{
    mark_work_start(&w, &effects, &tale);
    mark_work_read(&w, ERR_NOT_FOUND, 0, 70, 70);
    tells(&tale, "read gone:NOT_FOUND");
    begin(70);
    mark_work_repaired(&w, ERR_OK);
    mark_work_removed(&w, ERR_NOT_FOUND);
    tells(&tale, "read repair remove4 done:OK");
}
END_TEST

START_TEST(one_that_cannot_be_read_is_for_later)
{
    mark_work_start(&w, &effects, &tale);
    mark_work_read(&w, ERR_MALFORMED, 0, 70, 70);
    tells(&tale, "read later:MALFORMED");
}
END_TEST

START_TEST(a_pause_ends_it)
{
    begin(70);
    mark_work_stop(&w);
    mark_work_repaired(&w, ERR_OK);
    mark_work_census(&w, 71);
    tells(&tale, "read repair ");
}
END_TEST

int main(void)
{
    return suite_run("mark_work",
                     (suite_case[]){SUITE_CASE(it_is_removed_as_it_was_read),
                                    SUITE_CASE(a_newer_one_stays),
                                    SUITE_CASE(one_that_may_be_gone_is_looked_at_again),
                                    SUITE_CASE(an_older_census_is_not_believed),
                                    SUITE_CASE(what_is_not_repaired_stays_marked),
                                    SUITE_CASE(others_were_faster),
                                    SUITE_CASE(one_that_cannot_be_read_is_for_later),
                                    SUITE_CASE(a_pause_ends_it),
                                    {0}});
}
