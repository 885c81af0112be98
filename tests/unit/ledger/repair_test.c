/* A ledger whose bookies go one after the other, over real sockets. */
#include "ledger/repair.h"

#include <string.h>

#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/suite.h"
#include "tests/unit/ledger/house.h"

enum { ENTRIES = 60 };

static bool gone[BOOKIES_MAX];

static struct task_of_repair {
    int64_t ledger;
    struct replicator_how how;
    struct repair_rate rate;
    struct repair_report report;
    enum err err;
    bool done, skip;
} job;

static void open_house(unsigned bookies)
{
    memset(gone, 0, sizeof gone);
    job = (struct task_of_repair){0};
    house_open(bookies);
}

static unsigned index_of(const char *id)
{
    for (unsigned i = 0; i < house.n; i++)
        if (strcmp(fake_bookie_id(house.bookie[i]), id) == 0)
            return i;
    ck_abort_msg("%s", id);
    return 0;
}

static bool is_bad(void *ctx, const char *bookie)
{
    (void)ctx;
    return gone[index_of(bookie)];
}

static bool instead(void *ctx, entry_id e, struct view *payload, int64_t *length)
{
    (void)ctx;
    (void)e;
    *payload = view_of("skipped", 7);
    *length = 1;
    return job.skip;
}

static void done(void *ctx, enum err err)
{
    (void)ctx;
    job.err = err;
    job.done = true;
    house_happened();
}

static void begin(void *ctx)
{
    const struct repair_conf conf = {.is_bad = is_bad, .instead = instead, .rate = &job.rate};

    (void)ctx;
    repair_start(house.client, job.ledger, job.how, &conf, &job.report, done, NULL);
}

static const char *repair(int64_t ledger)
{
    job.ledger = ledger;
    job.report = (struct repair_report){0};
    job.done = false;
    house_call(begin, NULL);
    house_await(1);
    ck_assert(job.done);
    return err_name(job.err);
}

/* Indexes of the bookies of its only fragment. */
static void members(int64_t ledger, unsigned out[3])
{
    Bookkeeper__LedgerMetadataFormat *r;
    struct slice value = {0};
    char path[META_KEY_MAX];

    ck_assert(path_ledger(ledger, path) == ERR_OK);
    ck_assert(meta_get_wait(house.meta, path, &value, NULL) == ERR_OK);
    ck_assert(ledger_record_read(slice_view(value), &r) == ERR_OK);
    ck_assert_uint_eq(r->n_segment, 1);
    for (unsigned i = 0; i < 3; i++)
        out[i] = index_of(r->segment[0]->ensemblemember[i]);
    bookkeeper__ledger_metadata_format__free_unpacked(r, NULL);
    slice_drop(&value);
}

static void all_there(int64_t ledger)
{
    unsigned m[3];

    members(ledger, m);
    for (unsigned i = 0; i < 3; i++)
        for (entry_id e = 0; e < ENTRIES; e++)
            ck_assert(fake_bookie_has(house.bookie[m[i]], ledger, e));
}

static void do_deaf(void *ctx)
{
    fake_bookie_deaf(ctx);
}

static void lose(unsigned bookie)
{
    gone[bookie] = true;
    house_call(do_deaf, house.bookie[bookie]);
}

static int64_t closed_ledger(void)
{
    struct ledger *l = house_create(3, 3, 2);
    int64_t id = ledger_id(l);

    house_appended(l, ENTRIES);
    ck_assert(house_close_ledger(&l) == ERR_OK);
    return id;
}

/* The one who has it open reads on, although nobody that it knows of is left. */
START_TEST(all_of_them_go)
{
    unsigned m[3];
    struct ledger *l;

    open_house(5);
    int64_t id = closed_ledger();
    members(id, m);
    ck_assert(house_open_ledger(id, LEDGER_OPEN_READ, &l) == ERR_OK);
    house_reads_all(l, ENTRIES);
    for (unsigned i = 0; i < 2; i++) {
        lose(m[i]);
        ck_assert_str_eq(repair(id), "OK");
        ck_assert_uint_eq(job.report.moved, 1);
        ck_assert_uint_eq(job.report.entries, ENTRIES);
        all_there(id);
    }
    lose(m[2]);
    ck_assert_str_eq(repair(id), "NOT_ENOUGH_BOOKIES");
    house_reads_all(l, ENTRIES);
    house_drop(&l);
    house_close();
}
END_TEST

START_TEST(an_open_one_is_fenced_when_it_may_be)
{
    unsigned m[3];
    struct ledger *l;

    open_house(4);
    l = house_create(3, 3, 2);
    int64_t id = ledger_id(l);
    house_appended(l, ENTRIES);
    members(id, m);
    lose(m[1]);
    ck_assert_str_eq(repair(id), "BUSY");
    job.how.may_fence = true;
    ck_assert_str_eq(repair(id), "OK");
    ck_assert_int_eq(house_close_ledger(&l), ERR_OK); /* where the writer was, too */
    ck_assert(house_open_ledger(id, LEDGER_OPEN_READ, &l) == ERR_OK);
    ck_assert(ledger_is_closed(l));
    house_reads_all(l, ENTRIES);
    house_drop(&l);
    house_close();
}
END_TEST

static struct forgotten {
    struct fake_bookie *bookie;
    int64_t ledger;
    entry_id entry;
} forgotten;

static void do_forget(void *ctx)
{
    (void)ctx;
    fake_bookie_forget(forgotten.bookie, forgotten.ledger, forgotten.entry);
}

static void forget(unsigned bookie, int64_t ledger, entry_id e)
{
    forgotten = (struct forgotten){house.bookie[bookie], ledger, e};
    house_call(do_forget, NULL);
}

START_TEST(what_is_lacking_is_found_when_all_is_compared)
{
    unsigned m[3];

    open_house(3);
    int64_t id = closed_ledger();
    members(id, m);
    forget(m[0], id, 20);
    forget(m[2], id, 21);
    ck_assert_str_eq(repair(id), "OK");
    ck_assert_uint_eq(job.report.entries, 0); /* the ends are there */
    job.how.thorough = true;
    ck_assert_str_eq(repair(id), "OK");
    ck_assert_uint_eq(job.report.entries, 2);
    all_there(id);
    house_close();
}
END_TEST

START_TEST(a_lost_entry_stays_lost_until_somebody_decides)
{
    unsigned m[3];

    open_house(4);
    int64_t id = closed_ledger();
    members(id, m);
    for (unsigned i = 0; i < 3; i++)
        forget(m[i], id, 30);
    lose(m[0]);
    ck_assert_str_eq(repair(id), "IO"); /* the one that is gone may have it */
    ck_assert_uint_eq(job.report.moved, 0);
    job.skip = job.how.thorough = true;
    ck_assert_str_eq(repair(id), "OK");
    all_there(id);
    house_close();
}
END_TEST

static void go_rotten(struct fake_bookie_knobs *k)
{
    k->rotten = true;
}

static void get_well(struct fake_bookie_knobs *k)
{
    k->rotten = false;
}

START_TEST(what_is_damaged_is_not_copied)
{
    unsigned m[3];

    open_house(4);
    int64_t id = closed_ledger();
    members(id, m);
    lose(m[0]);
    house_knob(go_rotten, m[1]);
    house_knob(go_rotten, m[2]);
    ck_assert_str_ne(repair(id), "OK");
    ck_assert_uint_eq(job.report.moved + job.report.entries, 0);
    house_knob(get_well, m[2]);
    job.how.thorough = true; /* and what is damaged is not left */
    ck_assert_str_eq(repair(id), "OK");
    ck_assert_uint_eq(job.report.moved, 1);
    ck_assert_uint_ge(job.report.entries, ENTRIES);
    house_close();
}
END_TEST

START_TEST(the_rate_is_kept)
{
    open_house(4);
    int64_t id = closed_ledger();
    unsigned m[3];
    members(id, m);
    lose(m[0]);
    job.rate.bytes_per_s = 4000; /* of about 3,000 */
    ck_assert_str_eq(repair(id), "OK");
    ck_assert_int_lt(job.rate.left, 4000);
    all_there(id);
    house_close();
}
END_TEST

int main(void)
{
    return suite_run("repair",
                     (suite_case[]){SUITE_CASE(all_of_them_go),
                                    SUITE_CASE(an_open_one_is_fenced_when_it_may_be),
                                    SUITE_CASE(what_is_lacking_is_found_when_all_is_compared),
                                    SUITE_CASE(a_lost_entry_stays_lost_until_somebody_decides),
                                    SUITE_CASE(what_is_damaged_is_not_copied),
                                    SUITE_CASE(the_rate_is_kept),
                                    {0}});
}
