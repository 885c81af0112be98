#include "bookie/ledgers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/suite.h"

static struct ledgers table;
static struct entry_index *ix;
static struct device device;
static char dir[256];
static const uint8_t key[MASTER_KEY_SIZE] = {1}, other[MASTER_KEY_SIZE] = {2};

static void begin(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/lgm-rows-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(entry_index_open(&ix, dir), ERR_OK);
    device = (struct device){.index = ix};
    ledgers_init(&table, &device, 1);
}

static void end(void)
{
    ledgers_end(&table);
    entry_index_close(&ix);
    char *command = mem_format("rm -rf '%s'", dir);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
}

static void put_row(void *ctx, const struct ledger_row *row)
{
    unsigned *n = ctx;
    ++*n;
    entry_index_put_row(ix, row);
}

static unsigned freeze(void)
{
    unsigned n = 0;
    ledgers_freeze(&table, &device, put_row, &n);
    ck_assert_int_eq(entry_index_commit(ix), ERR_OK);
    return n;
}

START_TEST(claims_by_key)
{
    struct ledger *l;
    begin();
    ck_assert_int_eq(ledgers_find(&table, 1, &l), ERR_NO_LEDGER);
    ck_assert_int_eq(ledgers_claim(&table, 1, key, &l), ERR_OK);
    ck_assert_int_eq(l->row.last, -1);
    ck_assert_int_eq(ledgers_claim(&table, 1, other, &l), ERR_UNAUTHORIZED);
    ck_assert_int_eq(ledgers_find(&table, 1, &l), ERR_OK);
    end();
}
END_TEST

START_TEST(only_changes_are_frozen)
{
    struct ledger *l;
    begin();
    for (int64_t i = 0; i < 10; i++)
        ck_assert_int_eq(ledgers_claim(&table, i, key, &l), ERR_OK);
    ck_assert_uint_eq(freeze(), 10);
    ledgers_thaw(&table, &device);
    ck_assert_int_eq(ledgers_find(&table, 3, &l), ERR_OK);
    ledger_changed(&table, l);
    ledger_changed(&table, l);
    ck_assert_uint_eq(freeze(), 1);
    ck_assert_uint_eq(freeze(), 0);
    end();
}
END_TEST

/* What was not made durable stays, whatever else is asked for; what was comes back whole. */
START_TEST(forgets_only_what_is_durable)
{
    enum { MANY = LEDGERS_KEPT + 1000 };
    struct ledger *l;
    begin();
    for (int64_t i = 0; i < MANY; i++) {
        ck_assert_int_eq(ledgers_claim(&table, i, key, &l), ERR_OK);
        l->row.fenced = i % 2;
        l->fence = i % 2 ? LEDGER_FENCED : LEDGER_OPEN;
        l->row.last = i;
    }
    ck_assert_uint_eq(table.n, MANY);
    ck_assert_uint_eq(freeze(), MANY); /* frozen, but nobody said yet that it is durable */
    ck_assert_int_eq(ledgers_claim(&table, MANY, key, &l), ERR_OK);
    ck_assert_uint_eq(table.n, MANY + 1);
    ledgers_thaw(&table, &device);
    for (int64_t i = 0; i < 2000; i++)
        ck_assert_int_eq(ledgers_claim(&table, MANY + 1 + i, key, &l), ERR_OK);
    ck_assert_uint_le(table.n, LEDGERS_KEPT + 1);
    for (int64_t i = 0; i < MANY; i += 97) {
        ck_assert_int_eq(ledgers_find(&table, i, &l), ERR_OK);
        ck_assert_int_eq(l->row.last, i);
        ck_assert_int_eq(l->fence, i % 2 ? LEDGER_FENCED : LEDGER_OPEN);
    }
    end();
}
END_TEST

START_TEST(refuses_when_all_are_in_use)
{
    struct ledger *l;
    enum err err = ERR_OK;
    begin();
    int64_t n = 0;
    while (!(err = ledgers_claim(&table, n, key, &l)))
        n++;
    ck_assert_int_eq(err, ERR_BUSY);
    ck_assert_int_eq(n, 4 * LEDGERS_KEPT);
    freeze();
    ledgers_thaw(&table, &device);
    ck_assert_int_eq(ledgers_claim(&table, n, key, &l), ERR_OK);
    end();
}
END_TEST

int main(void)
{
    return suite_run("ledgers", (suite_case[]){SUITE_CASE(claims_by_key),
                                               SUITE_CASE(only_changes_are_frozen),
                                               SUITE_CASE(forgets_only_what_is_durable),
                                               SUITE_CASE(refuses_when_all_are_in_use),
                                               {0}});
}
