/* Stories of a recovery. */
#include "ledger/recoverer.h"

#include "proto/bookie_frame.h"
#include "tests/unit/ledger/tale.h"

static struct tale tale;
static struct recoverer r;
static unsigned held;
static bool has_spare;
static uint32_t spare_bookie;

static void on_mark(void *ctx)
{
    tell(ctx, "mark\n");
}

static void on_look(void *ctx)
{
    tell(ctx, "look\n");
}

static void on_read(void *ctx, unsigned slot, entry_id e, uint16_t flags)
{
    ck_assert(flags & BOOKIE_DO_FENCING);
    tell(ctx, "read %d from %u\n", (int)e, slot);
}

static void on_write(void *ctx, uint32_t bookie, const struct recoverer_write *w)
{
    ck_assert_uint_eq(w->flags, BOOKIE_RECOVERY_ADD | BOOKIE_HIGH_PRIORITY);
    tell(ctx, "write %d (lac %d, length %d) to b%u\n", (int)w->entry, (int)w->lac, (int)w->length,
         bookie);
}

static bool on_spare(void *ctx, const uint32_t *not_these, unsigned n, uint32_t *out)
{
    for (unsigned i = 0; i < n; i++)
        if (not_these[i] == spare_bookie)
            return false;
    *out = spare_bookie;
    if (has_spare)
        tell(ctx, "b%u joins\n", spare_bookie);
    return has_spare;
}

static void on_drop(void *ctx, void *item)
{
    (void)ctx;
    ck_assert_ptr_nonnull(item);
    held--;
}

static void on_close(void *ctx, entry_id last, int64_t length)
{
    tell(ctx, "close at %d, length %d", (int)last, (int)length);
    for (unsigned i = 0; i < r.changes; i++)
        tell(ctx, ", from %d: b%u b%u", (int)r.changed[i].first, r.changed[i].bookie[0],
             r.changed[i].bookie[1]);
    tell(ctx, "\n");
}

static void on_done(void *ctx, enum err err, entry_id last, int64_t length)
{
    tell(ctx, "done: %s, last %d, length %d\n", err_name(err), (int)last, (int)length);
    ck_assert_uint_eq(held, 0);
}

static const struct recoverer_effects effects = {.mark = on_mark,
                                                 .look = on_look,
                                                 .read = on_read,
                                                 .write = on_write,
                                                 .spare = on_spare,
                                                 .drop = on_drop,
                                                 .close = on_close,
                                                 .done = on_done};

static struct ledger_facts facts(enum ledger_state state, entry_id first, struct quorum q)
{
    struct ledger_facts f = {.state = state, .quorum = q, .tail.first = first};

    for (unsigned i = 0; i < q.ensemble; i++)
        f.tail.bookie[i] = 10 + i;
    return f;
}

static void begin(enum ledger_state state, entry_id first, unsigned e, unsigned w, unsigned a)
{
    struct ledger_facts f = facts(state, first, (struct quorum){e, w, a});

    has_spare = false;
    spare_bookie = 99;
    recoverer_start(&r, &f, &effects, &tale);
}

static void found(unsigned slot, entry_id e, int64_t length)
{
    static char item[1];

    held++;
    recoverer_found(&r, slot, e, length, item);
}

/* All bookies say "no entry" to the LAC read, or `lac`. */
static void fence_all(entry_id lac)
{
    for (unsigned s = 0; s < r.facts.quorum.ensemble; s++)
        recoverer_fenced(&r, s, lac < 0 ? ERR_NO_ENTRY : ERR_OK, lac);
}

START_TEST(finds_an_unconfirmed_entry_and_keeps_it)
{
    begin(LEDGER_OPEN, 0, 3, 3, 2);
    tells(&tale, "mark\n");
    recoverer_marked(&r, ERR_OK);
    tells(&tale, "read -1 from 0\nread -1 from 1\nread -1 from 2\n");
    recoverer_fenced(&r, 0, ERR_OK, 4);
    tells(&tale, "");
    recoverer_fenced(&r, 1, ERR_OK, 5);
    tells(&tale, "read 6 from 0\nread 6 from 1\nread 6 from 2\n");
    recoverer_not_found(&r, 0, 6, ERR_NO_ENTRY);
    tells(&tale, "");
    found(1, 6, 70);
    tells(&tale, "write 6 (lac 5, length 70) to b10\n"
                 "write 6 (lac 5, length 70) to b11\n"
                 "write 6 (lac 5, length 70) to b12\n"
                 "read 7 from 0\nread 7 from 1\nread 7 from 2\n"
                 "read 8 from 0\nread 8 from 1\nread 8 from 2\n");
    recoverer_not_found(&r, 0, 7, ERR_NO_ENTRY);
    recoverer_not_found(&r, 2, 7, ERR_NO_LEDGER);
    tells(&tale, ""); /* the end is known; the copies are not yet safe */
    recoverer_wrote(&r, 12, 6, ERR_OK);
    tells(&tale, "");
    recoverer_wrote(&r, 10, 6, ERR_OK);
    tells(&tale, "close at 6, length 70\n");
    recoverer_closed(&r, ERR_OK);
    tells(&tale, "done: OK, last 6, length 70\n");
}
END_TEST

START_TEST(closed_already)
{
    struct ledger_facts f = facts(LEDGER_CLOSED, 0, (struct quorum){2, 2, 2});

    f.last = 9;
    f.length = 123;
    recoverer_start(&r, &f, &effects, &tale);
    tells(&tale, "done: OK, last 9, length 123\n");
}
END_TEST

START_TEST(empty_ledger_has_length_zero)
{
    begin(LEDGER_IN_RECOVERY, 0, 2, 2, 2);
    fence_all(-1);
    recoverer_not_found(&r, 1, 0, ERR_NO_LEDGER);
    tells(&tale, "read -1 from 0\nread -1 from 1\n"
                 "read 0 from 0\nread 0 from 1\n"
                 "close at -1, length 0\n");
}
END_TEST

/* Nothing to copy: the length is that of the last entry, not what came with a LAC. */
START_TEST(measures_when_nothing_was_copied)
{
    begin(LEDGER_IN_RECOVERY, 8, 2, 2, 2);
    fence_all(3); /* below the floor: 0..7 are confirmed, whatever these bookies know */
    tells(&tale, "read -1 from 0\nread -1 from 1\nread 8 from 0\nread 8 from 1\n");
    recoverer_not_found(&r, 0, 8, ERR_NO_ENTRY);
    tells(&tale, "read 7 from 0\nread 7 from 1\n");
    recoverer_not_found(&r, 0, 7, ERR_NO_ENTRY);
    tells(&tale, "");
    found(1, 7, 700);
    tells(&tale, "close at 7, length 700\n");
}
END_TEST

START_TEST(confirmed_entry_that_cannot_be_measured)
{
    begin(LEDGER_IN_RECOVERY, 8, 2, 2, 2);
    fence_all(-1);
    recoverer_not_found(&r, 0, 8, ERR_NO_ENTRY);
    recoverer_not_found(&r, 0, 7, ERR_IO);
    recoverer_not_found(&r, 1, 7, ERR_NO_ENTRY);
    tells(&tale, "read -1 from 0\nread -1 from 1\nread 8 from 0\nread 8 from 1\n"
                 "read 7 from 0\nread 7 from 1\n"
                 "done: IO, last -1, length 0\n");
}
END_TEST

/* A digest that fails fenced all the same; an error did not; enough of them end the attempt. */
START_TEST(what_counts_as_fenced)
{
    begin(LEDGER_IN_RECOVERY, 0, 3, 3, 2);
    recoverer_fenced(&r, 0, ERR_CHECKSUM, 77); /* but its LAC counts for nothing */
    recoverer_fenced(&r, 1, ERR_NO_LEDGER, -1);
    tells(&tale, "read -1 from 0\nread -1 from 1\nread -1 from 2\n"
                 "read 0 from 0\nread 0 from 1\nread 0 from 2\n");

    begin(LEDGER_IN_RECOVERY, 0, 3, 3, 2);
    recoverer_fenced(&r, 0, ERR_OK, 3);
    recoverer_fenced(&r, 1, ERR_UNKNOWN_STATE, -1);
    recoverer_fenced(&r, 2, ERR_TIMEOUT, -1);
    tells(&tale, "read -1 from 0\nread -1 from 1\nread -1 from 2\n"
                 "done: TIMEOUT, last -1, length 0\n");

    begin(LEDGER_IN_RECOVERY, 0, 3, 3, 2);
    recoverer_fenced(&r, 0, ERR_UNAUTHORIZED, -1);
    tells(&tale, "read -1 from 0\nread -1 from 1\nread -1 from 2\n"
                 "done: UNAUTHORIZED, last -1, length 0\n");
}
END_TEST

/* "No" must be said (Qw - Qa) + 1 times; an error says nothing; one "here" is enough. */
START_TEST(one_negative_decides_nothing)
{
    begin(LEDGER_IN_RECOVERY, 0, 3, 3, 2);
    fence_all(-1);
    tells(&tale, "read -1 from 0\nread -1 from 1\nread -1 from 2\n"
                 "read 0 from 0\nread 0 from 1\nread 0 from 2\n");
    recoverer_not_found(&r, 0, 0, ERR_NO_ENTRY);
    recoverer_not_found(&r, 0, 0, ERR_NO_ENTRY); /* the same one again */
    recoverer_not_found(&r, 1, 0, ERR_CHECKSUM);
    tells(&tale, "");
    recoverer_not_found(&r, 2, 0, ERR_TIMEOUT);
    tells(&tale, "done: TIMEOUT, last -1, length 0\n");
}
END_TEST

START_TEST(answers_of_strangers_do_not_count)
{
    begin(LEDGER_IN_RECOVERY, 0, 4, 2, 2);
    fence_all(-1);
    tale.n = 0;
    recoverer_not_found(&r, 3, 0, ERR_NO_ENTRY); /* entry 0 is on 0 and 1 */
    found(2, 0, 5);
    ck_assert_int_eq(r.pushed, -1);
    recoverer_wrote(&r, 13, 0, ERR_OK);
    found(0, 0, 5);
    tells(&tale, "write 0 (lac -1, length 5) to b10\nwrite 0 (lac -1, length 5) to b11\n"
                 "read 1 from 1\nread 1 from 2\nread 2 from 2\nread 2 from 3\n");
    recoverer_wrote(&r, 12, 0, ERR_OK);
    recoverer_wrote(&r, 10, 0, ERR_OK);
    recoverer_wrote(&r, 10, 0, ERR_OK);
    ck_assert_int_eq(r.lac, -1);
    recoverer_wrote(&r, 11, 0, ERR_OK);
    ck_assert_int_eq(r.lac, 0);
    recoverer_stop(&r);
}
END_TEST

/* A failed bookie is replaced in memory: the newcomer gets what is not safe, the close names it. */
START_TEST(replaces_a_failed_bookie)
{
    begin(LEDGER_IN_RECOVERY, 0, 2, 2, 2);
    fence_all(-1);
    found(0, 0, 5);
    tells(&tale, "read -1 from 0\nread -1 from 1\nread 0 from 0\nread 0 from 1\n"
                 "write 0 (lac -1, length 5) to b10\nwrite 0 (lac -1, length 5) to b11\n"
                 "read 1 from 0\nread 1 from 1\nread 2 from 0\nread 2 from 1\n");
    has_spare = true;
    recoverer_wrote(&r, 11, 0, ERR_OK);
    recoverer_wrote(&r, 10, 0, ERR_OK);
    found(1, 1, 8);
    tells(&tale, "write 1 (lac 0, length 8) to b10\nwrite 1 (lac 0, length 8) to b11\n"
                 "read 3 from 0\nread 3 from 1\nread 4 from 0\nread 4 from 1\n"
                 "read 5 from 0\nread 5 from 1\n");
    recoverer_wrote(&r, 11, 1, ERR_OK);
    recoverer_wrote(&r, 11, 1, ERR_IO); /* it did not last */
    tells(&tale, "b99 joins\nwrite 1 (lac 0, length 8) to b99\n");
    recoverer_wrote(&r, 10, 1, ERR_OK);
    ck_assert_int_eq(r.lac, 0);         /* the ack of the one that is gone does not count */
    recoverer_wrote(&r, 11, 1, ERR_OK); /* nor does a late one */
    tells(&tale, "");
    recoverer_wrote(&r, 99, 1, ERR_OK);
    recoverer_not_found(&r, 0, 2, ERR_NO_ENTRY);
    tells(&tale, "close at 1, length 8, from 1: b10 b99\n");
    recoverer_closed(&r, ERR_OK);
    tells(&tale, "done: OK, last 1, length 8\n");
}
END_TEST

/* Found by the simulation: two recoverers.  The first had replaced a bookie in memory
 * and told the others, in the header of the next copy, that the entry before was safe.  It was,
 * but not where the metadata says.  The second began behind it. */
START_TEST(headers_say_only_what_the_metadata_can_find)
{
    begin(LEDGER_IN_RECOVERY, 0, 2, 2, 2);
    fence_all(-1);
    has_spare = true;
    found(0, 0, 5);
    recoverer_wrote(&r, 11, 0, ERR_IO);
    recoverer_wrote(&r, 10, 0, ERR_OK);
    recoverer_wrote(&r, 99, 0, ERR_OK);
    ck_assert_int_eq(r.lac, 0);
    tale.n = 0;
    found(0, 1, 8);
    tells(&tale, "write 1 (lac -1, length 8) to b10\nwrite 1 (lac -1, length 8) to b99\n"
                 "read 3 from 0\nread 3 from 1\nread 4 from 0\nread 4 from 1\n"
                 "read 5 from 0\nread 5 from 1\n");
    recoverer_stop(&r);
}
END_TEST

/* Without a spare: as long as the others make Qa the copy is safe, else the attempt ends. */
START_TEST(goes_on_without_a_spare)
{
    begin(LEDGER_IN_RECOVERY, 0, 3, 3, 2);
    fence_all(-1);
    found(0, 0, 5);
    recoverer_wrote(&r, 10, 0, ERR_IO);
    recoverer_wrote(&r, 11, 0, ERR_OK);
    recoverer_wrote(&r, 12, 0, ERR_OK);
    ck_assert_int_eq(r.lac, 0);
    tale.n = 0;
    found(0, 1, 8);
    tells(&tale, "write 1 (lac 0, length 8) to b11\nwrite 1 (lac 0, length 8) to b12\n"
                 "read 3 from 0\nread 3 from 1\nread 3 from 2\n"
                 "read 4 from 0\nread 4 from 1\nread 4 from 2\n"
                 "read 5 from 0\nread 5 from 1\nread 5 from 2\n");
    recoverer_wrote(&r, 12, 1, ERR_READ_ONLY);
    tells(&tale, "done: READ_ONLY, last -1, length 0\n");
}
END_TEST

/* A change for an entry that was not there in the end is not put into the metadata. */
START_TEST(forgets_a_change_behind_the_end)
{
    begin(LEDGER_IN_RECOVERY, 0, 2, 2, 1);
    fence_all(-1);
    has_spare = true;
    found(0, 0, 5);
    recoverer_wrote(&r, 10, 0, ERR_OK);
    recoverer_wrote(&r, 11, 0, ERR_IO);
    tale.n = 0;
    recoverer_not_found(&r, 0, 1, ERR_NO_ENTRY);
    recoverer_not_found(&r, 1, 1, ERR_NO_ENTRY);
    tells(&tale, "close at 0, length 5\n");
    recoverer_stop(&r);
}
END_TEST

START_TEST(lost_and_unsure_compare_and_sets)
{
    struct ledger_facts open = facts(LEDGER_OPEN, 0, (struct quorum){1, 1, 1});
    struct ledger_facts marked = facts(LEDGER_IN_RECOVERY, 0, (struct quorum){1, 1, 1});
    struct ledger_facts closed = marked;

    begin(LEDGER_OPEN, 0, 1, 1, 1);
    recoverer_marked(&r, ERR_UNKNOWN_STATE);
    recoverer_saw(&r, ERR_OK, &open); /* it did not happen */
    recoverer_marked(&r, ERR_BAD_VERSION);
    recoverer_saw(&r, ERR_OK, &marked); /* another one did it */
    tells(&tale, "mark\nlook\nmark\nlook\nread -1 from 0\n");
    fence_all(-1);
    recoverer_not_found(&r, 0, 0, ERR_NO_ENTRY);
    recoverer_closed(&r, ERR_UNKNOWN_STATE);
    recoverer_saw(&r, ERR_OK, &marked);
    recoverer_closed(&r, ERR_BAD_VERSION);
    closed.state = LEDGER_CLOSED;
    closed.last = 5; /* the other one knew better */
    closed.length = 55;
    recoverer_saw(&r, ERR_OK, &closed);
    tells(&tale, "read 0 from 0\nclose at -1, length 0\nlook\nclose at -1, length 0\nlook\n"
                 "done: OK, last 5, length 55\n");
}
END_TEST

START_TEST(store_is_away)
{
    begin(LEDGER_OPEN, 0, 1, 1, 1);
    recoverer_marked(&r, ERR_NOT_READY);
    tells(&tale, "mark\ndone: NOT_READY, last -1, length 0\n");
    begin(LEDGER_OPEN, 0, 1, 1, 1);
    recoverer_marked(&r, ERR_BAD_VERSION);
    recoverer_saw(&r, ERR_NOT_FOUND, NULL); /* deleted meanwhile */
    tells(&tale, "mark\nlook\ndone: NO_LEDGER, last -1, length 0\n");
}
END_TEST

/* Longer than the window: it reads ahead more and more, and gives all payloads back. */
START_TEST(long_tail)
{
    entry_id n = 200;

    begin(LEDGER_IN_RECOVERY, 0, 1, 1, 1);
    fence_all(-1);
    for (entry_id e = 0; e < n; e++) {
        found(0, e, e + 1);
        ck_assert_uint_le(held, RECOVERER_WINDOW);
        recoverer_wrote(&r, 10, e, ERR_OK);
        tale.n = 0;
    }
    recoverer_not_found(&r, 0, n, ERR_NO_ENTRY);
    recoverer_closed(&r, ERR_OK);
    tells(&tale, "close at 199, length 200\ndone: OK, last 199, length 200\n");
}
END_TEST

int main(void)
{
    return suite_run("recoverer",
                     (suite_case[]){SUITE_CASE(finds_an_unconfirmed_entry_and_keeps_it),
                                    SUITE_CASE(closed_already),
                                    SUITE_CASE(empty_ledger_has_length_zero),
                                    SUITE_CASE(measures_when_nothing_was_copied),
                                    SUITE_CASE(confirmed_entry_that_cannot_be_measured),
                                    SUITE_CASE(what_counts_as_fenced),
                                    SUITE_CASE(one_negative_decides_nothing),
                                    SUITE_CASE(answers_of_strangers_do_not_count),
                                    SUITE_CASE(replaces_a_failed_bookie),
                                    SUITE_CASE(headers_say_only_what_the_metadata_can_find),
                                    SUITE_CASE(goes_on_without_a_spare),
                                    SUITE_CASE(forgets_a_change_behind_the_end),
                                    SUITE_CASE(lost_and_unsure_compare_and_sets),
                                    SUITE_CASE(store_is_away),
                                    SUITE_CASE(long_tail),
                                    {0}});
}
