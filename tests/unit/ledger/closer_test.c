/* Stories of a writer that seals its ledger. */
#include "ledger/closer.h"

#include "tests/unit/ledger/tale.h"

static struct tale tale;
static struct closer c;

static void on_put(void *ctx)
{
    tell(ctx, "put ");
}

static void on_look(void *ctx)
{
    tell(ctx, "look ");
}

static void on_wait(void *ctx, unsigned tries)
{
    tell(ctx, "wait%u ", tries);
}

static void on_done(void *ctx, enum err err)
{
    tell(ctx, "done:%s", err_name(err));
}

static const struct closer_effects effects = {
    .put = on_put, .look = on_look, .wait = on_wait, .done = on_done};

static void begin(void)
{
    closer_start(&c, 5, 50, &effects, &tale);
}

static void saw(enum ledger_state state, entry_id last, int64_t length)
{
    closer_saw(&c, ERR_OK, &(struct ledger_facts){.state = state, .last = last, .length = length});
}

START_TEST(closes_at_once)
{
    begin();
    closer_put(&c, ERR_OK);
    tells(&tale, "put done:OK");
}
END_TEST

START_TEST(never_from_recovery)
{
    begin();
    closer_put(&c, ERR_BAD_VERSION);
    saw(LEDGER_IN_RECOVERY, -1, 0);
    tells(&tale, "put look done:FENCED");
}
END_TEST

START_TEST(closed_by_another)
{
    begin();
    closer_put(&c, ERR_BAD_VERSION);
    saw(LEDGER_CLOSED, 5, 50);
    tells(&tale, "put look done:OK");
    begin();
    closer_put(&c, ERR_BAD_VERSION);
    saw(LEDGER_CLOSED, 6, 60);
    tells(&tale, "put look done:FENCED");
    begin();
    closer_put(&c, ERR_BAD_VERSION);
    saw(LEDGER_CLOSED, 5, 51);
    tells(&tale, "put look done:FENCED");
}
END_TEST

START_TEST(unsure_and_away_it_does_not_give_up)
{
    begin();
    closer_put(&c, ERR_UNKNOWN_STATE);
    saw(LEDGER_OPEN, -1, 0);
    closer_put(&c, ERR_NOT_READY);
    closer_waited(&c);
    closer_saw(&c, ERR_NOT_READY, NULL);
    closer_waited(&c);
    closer_saw(&c, ERR_TIMEOUT, NULL);
    closer_waited(&c);
    saw(LEDGER_OPEN, -1, 0);
    closer_put(&c, ERR_OK);
    tells(&tale, "put look put wait0 look wait1 look wait2 look put done:OK");
}
END_TEST

START_TEST(deleted_meanwhile)
{
    begin();
    closer_put(&c, ERR_BAD_VERSION);
    closer_saw(&c, ERR_NOT_FOUND, NULL);
    tells(&tale, "put look done:NO_LEDGER");
    begin();
    closer_put(&c, ERR_NOT_FOUND);
    tells(&tale, "put done:NO_LEDGER");
    begin();
    closer_put(&c, ERR_UNKNOWN_STATE);
    closer_saw(&c, ERR_MALFORMED, NULL);
    tells(&tale, "put look done:MALFORMED");
}
END_TEST

int main(void)
{
    return suite_run("closer", (suite_case[]){SUITE_CASE(closes_at_once),
                                              SUITE_CASE(never_from_recovery),
                                              SUITE_CASE(closed_by_another),
                                              SUITE_CASE(unsure_and_away_it_does_not_give_up),
                                              SUITE_CASE(deleted_meanwhile),
                                              {0}});
}
