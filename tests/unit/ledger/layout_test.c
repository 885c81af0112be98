/* What is known of a ledger against what a store says that was put back. */
#include "ledger/layout.h"

#include "tests/lib/suite.h"

static struct layout made(enum ledger_state state, int64_t token, int64_t version,
                          Bookkeeper__LedgerMetadataFormat *record)
{
    bookkeeper__ledger_metadata_format__init(record);
    record->has_ctoken = 1;
    record->ctoken = token;
    return (struct layout){
        .record = record, .version = version, .newest = version, .facts.state = state};
}

static const struct {
    const char *what;
    enum ledger_state stored, known;
    int64_t stored_token, stored_version, known_version;
    bool behind;
} cases[] = {
    {"as it is known", LEDGER_OPEN, LEDGER_OPEN, 1, 2, 2, false},
    {"before bookies were changed", LEDGER_OPEN, LEDGER_OPEN, 1, 1, 2, true},
    {"bookies were changed by another", LEDGER_OPEN, LEDGER_OPEN, 1, 3, 2, false},
    {"before it was closed", LEDGER_OPEN, LEDGER_CLOSED, 1, 0, 2, true},
    {"before it was closed, changed since", LEDGER_OPEN, LEDGER_CLOSED, 1, 7, 2, true},
    {"before it was closed by a recovery", LEDGER_IN_RECOVERY, LEDGER_CLOSED, 1, 1, 2, true},
    {"a recovery has begun", LEDGER_IN_RECOVERY, LEDGER_OPEN, 1, 1, 2, false},
    {"closed by another", LEDGER_CLOSED, LEDGER_OPEN, 1, 1, 2, false},
    {"closed, and copies were moved since", LEDGER_CLOSED, LEDGER_CLOSED, 1, 1, 2, false},
    {"another ledger under this id", LEDGER_OPEN, LEDGER_CLOSED, 9, 0, 2, false},
};

START_TEST(which_one_is_older)
{
    Bookkeeper__LedgerMetadataFormat a, b;
    struct layout stored =
        made(cases[_i].stored, cases[_i].stored_token, cases[_i].stored_version, &a);
    struct layout known = made(cases[_i].known, 1, cases[_i].known_version, &b);

    ck_assert_msg(layout_is_behind(&stored, &known) == cases[_i].behind, "%s", cases[_i].what);
}
END_TEST

int main(void)
{
    return suite_run("layout", (suite_case[]){
                                   SUITE_LOOP(which_one_is_older, sizeof(cases) / sizeof(*cases)),
                                   {0},
                               });
}
