#include "proto/command.h"
#include "proto/managed_ledger.pb-c.h"
#include "proto/wire.h"
#include "tests/lib/suite.h"
#include "tests/unit/proto/bytes.h"

typedef ManagedLedger__ManagedLedgerInfo info;

/* One ledger {id 7, entries 3, a field 50}, one property, and fields 100 to 102 of a newer
 * writer: a number, bytes and 64 fixed bits. */
#define LEDGER   "0a 09 0807 1003 9203 020102"
#define PROPERTY "1a 06 0a016b 120176"
#define NEWER    "a006 2a aa06 03616263 b106 0102030405060708"

static info *read_info(const struct bytes *b, struct arena *arena)
{
    ProtobufCMessage *m;

    ck_assert_int_eq(
        command_unpack(&managed_ledger__managed_ledger_info__descriptor, bytes_view(b), arena, &m),
        ERR_OK);
    return (info *)m;
}

static struct bytes packed(const info *m)
{
    struct bytes b;

    b.len = managed_ledger__managed_ledger_info__pack(m, b.at);
    return b;
}

START_TEST(unknown_fields_survive_an_unchanged_rewrite)
{
    struct arena *arena = arena_new(1 << 16);
    struct bytes was = bytes_of(LEDGER PROPERTY NEWER), is;
    info *m = read_info(&was, arena);

    ck_assert_uint_eq(m->base.n_unknown_fields, 3);
    ck_assert_uint_eq(m->ledgerinfo[0]->base.n_unknown_fields, 1);
    is = packed(m);
    ck_assert_uint_eq(is.len, was.len);
    ck_assert_mem_eq(is.at, was.at, was.len);
    arena_drop(&arena);
}
END_TEST

/* As a broker changes it: another ledger in the list, the last one closed, a property set. */
START_TEST(unknown_fields_survive_a_changed_rewrite)
{
    struct arena *arena = arena_new(1 << 16);
    struct bytes was = bytes_of(LEDGER PROPERTY NEWER), is;
    ManagedLedger__ManagedLedgerInfo__LedgerInfo added =
        MANAGED_LEDGER__MANAGED_LEDGER_INFO__LEDGER_INFO__INIT;
    ManagedLedger__ManagedLedgerInfo__LedgerInfo *ledgers[2];
    info *m = read_info(&was, arena);

    added.ledgerid = 8;
    ledgers[0] = m->ledgerinfo[0];
    ledgers[1] = &added;
    ledgers[0]->entries = 4;
    m->ledgerinfo = ledgers;
    m->n_ledgerinfo = 2;
    is = packed(m);
    ck_bytes_eq(is.at, is.len,
                "0a 09 0807 1004 9203 020102"
                "0a 02 0808" PROPERTY NEWER);
    arena_drop(&arena);
}
END_TEST

int main(void)
{
    return suite_run("unknown_fields",
                     (suite_case[]){SUITE_CASE(unknown_fields_survive_an_unchanged_rewrite),
                                    SUITE_CASE(unknown_fields_survive_a_changed_rewrite),
                                    {0}});
}
