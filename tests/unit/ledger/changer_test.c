/* Stories of a writer that puts other bookies into the metadata. */
#include "ledger/changer.h"

#include "tests/unit/ledger/tale.h"

static struct tale tale;
static struct changer c;
static const struct fragment old = {.first = 5, .bookie = {1, 2, 3}};
static const struct fragment wanted = {.first = 9, .bookie = {1, 4, 3}};

static void on_put(void *ctx)
{
    tell(ctx, "put\n");
}

static void on_look(void *ctx)
{
    tell(ctx, "look\n");
}

static void on_wait(void *ctx, unsigned tries)
{
    tell(ctx, "wait %u\n", tries);
}

static void on_done(void *ctx, enum err err)
{
    tell(ctx, "done %s\n", err_name(err));
}

static const struct changer_effects effects = {
    .put = on_put, .look = on_look, .wait = on_wait, .done = on_done};

static void begin(void)
{
    changer_start(&c, 3, &old, &wanted, &effects, &tale);
}

static void saw(enum ledger_state state, const struct fragment *tail)
{
    struct ledger_facts f = {.state = state, .quorum = {3, 3, 2}, .tail = *tail};

    changer_saw(&c, ERR_OK, &f);
}

START_TEST(puts_once)
{
    begin();
    changer_put(&c, ERR_OK);
    tells(&tale, "put\ndone OK\n");
}
END_TEST

/* Nobody knows whether the put happened: what is there tells. */
START_TEST(looks_when_it_is_not_sure)
{
    begin();
    changer_put(&c, ERR_UNKNOWN_STATE);
    saw(LEDGER_OPEN, &wanted);
    tells(&tale, "put\nlook\ndone OK\n");
    begin();
    changer_put(&c, ERR_UNKNOWN_STATE);
    saw(LEDGER_OPEN, &old);
    changer_put(&c, ERR_BAD_VERSION); /* the first one has arrived */
    saw(LEDGER_OPEN, &wanted);
    tells(&tale, "put\nlook\nput\nlook\ndone OK\n");
}
END_TEST

/* Somebody fences it, or has closed it: whatever its fragments are. */
START_TEST(gives_way_to_a_recovery)
{
    static const enum ledger_state states[] = {LEDGER_IN_RECOVERY, LEDGER_CLOSED};

    for (unsigned i = 0; i < 4; i++) {
        begin();
        changer_put(&c, ERR_BAD_VERSION);
        saw(states[i % 2], i < 2 ? &old : &wanted);
        tells(&tale, "put\nlook\ndone FENCED\n");
    }
}
END_TEST

START_TEST(gives_way_to_a_deletion)
{
    begin();
    changer_put(&c, ERR_NOT_FOUND);
    tells(&tale, "put\ndone FENCED\n");
    begin();
    changer_put(&c, ERR_BAD_VERSION);
    changer_saw(&c, ERR_NOT_FOUND, NULL);
    tells(&tale, "put\nlook\ndone FENCED\n");
}
END_TEST

/* A hand that is not ours has changed the last fragment: the ledger ends, its lac is right. */
START_TEST(does_not_build_on_what_it_does_not_know)
{
    struct fragment other = wanted;

    other.bookie[0] = 7;
    begin();
    changer_put(&c, ERR_BAD_VERSION);
    saw(LEDGER_OPEN, &other);
    tells(&tale, "put\nlook\ndone UNKNOWN_STATE\n");
    other = old;
    other.first = 6;
    begin();
    changer_put(&c, ERR_BAD_VERSION);
    saw(LEDGER_OPEN, &other);
    tells(&tale, "put\nlook\ndone UNKNOWN_STATE\n");
}
END_TEST

START_TEST(waits_for_the_store)
{
    begin();
    changer_put(&c, ERR_NOT_READY);
    changer_waited(&c);
    changer_saw(&c, ERR_TIMEOUT, NULL);
    changer_waited(&c);
    saw(LEDGER_OPEN, &old);
    changer_put(&c, ERR_OK);
    tells(&tale, "put\nwait 0\nlook\nwait 1\nlook\nput\ndone OK\n");
}
END_TEST

START_TEST(ends_on_what_waiting_does_not_cure)
{
    begin();
    changer_put(&c, ERR_TOO_BIG);
    tells(&tale, "put\ndone TOO_BIG\n");
    begin();
    changer_put(&c, ERR_BAD_VERSION);
    changer_saw(&c, ERR_MALFORMED, NULL);
    tells(&tale, "put\nlook\ndone MALFORMED\n");
}
END_TEST

int main(void)
{
    return suite_run("changer", (suite_case[]){SUITE_CASE(puts_once),
                                               SUITE_CASE(looks_when_it_is_not_sure),
                                               SUITE_CASE(gives_way_to_a_recovery),
                                               SUITE_CASE(gives_way_to_a_deletion),
                                               SUITE_CASE(does_not_build_on_what_it_does_not_know),
                                               SUITE_CASE(waits_for_the_store),
                                               SUITE_CASE(ends_on_what_waiting_does_not_cure),
                                               {0}});
}
