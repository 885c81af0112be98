#include "bookie/index_rebuild.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/entry_index.h"
#include "bookie/entry_log.h"
#include "bookie/integrity_file.h"
#include "bookie/journal_format.h"
#include "bookie/ledger_tomb.h"
#include "bookie/log_writer.h"
#include "bookie/mark_file.h"
#include "bookie/storage.h"
#include "common/mem.h"
#include "common/rng.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"

/* Logs on a disk in memory, an index on a real one, as flushes leave them; then the index goes. */
enum { LEDGERS = 6, ENTRIES = 300 };
#define BOOKIE "b1"

static struct fake_disk *fake;
static struct disk *disk;
static struct metadata *meta;
static char base[256], index_dir[2][300];
static const char *const dirs[2] = {"ledgers0", "ledgers1"};
static const char *const journals[] = {"journal"};
static struct entry_log *logs[2];
static struct entry_index *before[2];
static struct rebuild_dir places[2];
static struct rebuild_conf conf;
static struct rebuild_report report;
static uint64_t seed;
static struct captured captured;

static void begin(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(base, sizeof base, "%s/lgm-rebuild-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(base));
    fake = fake_disk_new();
    disk = fake_disk_of(fake);
    ck_assert_int_eq(meta_memory_open(&meta), ERR_OK);
    ck_assert_int_eq(disk->ops->mkdir(disk, "journal"), ERR_OK);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(index_dir[i], sizeof index_dir[i], "%s/%s", base, i ? "index1" : "index0");
        ck_assert_int_eq(entry_index_open(&before[i], index_dir[i]), ERR_OK);
        ck_assert_int_eq(entry_log_open(&logs[i], disk, dirs[i], 100 << 10), ERR_OK);
        places[i] = (struct rebuild_dir){dirs[i], index_dir[i], i == 0};
    }
    conf = (struct rebuild_conf){.disk = disk,
                                 .dirs = places,
                                 .n = 1,
                                 .journals = journals,
                                 .n_journals = 1,
                                 .record_max = 64 << 10,
                                 .meta = meta,
                                 .bookie_id = BOOKIE};
}

static void close_all(void)
{
    for (unsigned i = 0; i < 2; i++) {
        entry_log_close(&logs[i]);
        entry_index_close(&before[i]);
    }
}

static void end(void)
{
    close_all();
    meta_close(&meta);
    fake_disk_drop(&fake);
    char *command = mem_format("rm -rf '%s'", base);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
}

static void put_id(uint8_t *at, int64_t id)
{
    for (unsigned i = 0; i < 8; i++)
        at[i] = (uint8_t)((uint64_t)id >> (56 - 8 * i));
}

static void put_entry(unsigned d, int64_t ledger, int64_t entry)
{
    uint8_t bytes[700];
    struct entry_place at;
    const size_t len = 40 + rng_below(&seed, 600);
    memset(bytes, (int)rng_next(&seed), sizeof bytes);
    put_id(bytes, ledger);
    put_id(bytes + 8, entry);
    put_id(bytes + 16, entry - 1);
    ck_assert_int_eq(entry_log_append(logs[d], view_of(bytes, len), &at), ERR_OK);
    ck_assert_int_eq(entry_index_put(before[d], ledger, entry, &at), ERR_OK);
}

static void commit(unsigned d)
{
    ck_assert_int_eq(entry_log_sync(logs[d]), ERR_OK);
    ck_assert_int_eq(entry_index_commit(before[d]), ERR_OK);
}

/* Sorted, as a checkpoint writes it; entries of earlier ones are written again at times. */
static void flush(unsigned d, int64_t first, int64_t n)
{
    for (int64_t l = first; l < first + n; l++)
        for (int64_t e = (int64_t)rng_below(&seed, ENTRIES / 2); e < ENTRIES; e++)
            if (rng_below(&seed, 4) == 0)
                put_entry(d, l, e);
    commit(d);
}

static void reopen_log(unsigned d)
{
    entry_log_close(&logs[d]);
    ck_assert_int_eq(entry_log_open(&logs[d], disk, dirs[d], 100 << 10), ERR_OK);
}

/* It has been elsewhere up to the last entry that a test writes: there it may have holes. */
static void know_ledger(int64_t id, int state, const char *bookie, const char *password)
{
    Bookkeeper__LedgerMetadataFormat m = BOOKKEEPER__LEDGER_METADATA_FORMAT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment s[] = {
        BOOKKEEPER__LEDGER_METADATA_FORMAT__SEGMENT__INIT,
        BOOKKEEPER__LEDGER_METADATA_FORMAT__SEGMENT__INIT};
    Bookkeeper__LedgerMetadataFormat__Segment *both[] = {&s[0], &s[1]};
    char *before_us = (char *)(uintptr_t) "b0", *member = (char *)(uintptr_t)bookie;
    char key[META_KEY_MAX];
    m.quorumsize = m.ensemblesize = 1;
    m.state = (Bookkeeper__LedgerMetadataFormat__State)state;
    m.n_segment = 2;
    m.segment = both;
    s[0].n_ensemblemember = s[1].n_ensemblemember = 1;
    s[0].ensemblemember = &before_us;
    s[1].ensemblemember = &member;
    s[1].firstentryid = ENTRIES;
    m.has_password = 1;
    m.password.data = (uint8_t *)(uintptr_t)password;
    m.password.len = strlen(password);
    ck_assert_int_eq(path_ledger(id, key), ERR_OK);
    ck_assert_int_eq(meta_put_wait(meta, key, ledger_record_write(&m), META_ANY), ERR_OK);
}

enum {
    OPEN = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN,
    CLOSED = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__CLOSED
};

static void know_all(void)
{
    for (int64_t l = 0; l < LEDGERS; l++)
        know_ledger(l, l % 2 ? OPEN : CLOSED, BOOKIE, "secret");
}

static void lose(const char *files)
{
    char *command = mem_format("rm -r '%s'%s", index_dir[0], files);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
}

static bool is_lost(void)
{
    bool lost;
    ck_assert_int_eq(index_is_lost(&conf, &places[0], &lost), ERR_OK);
    return lost;
}

/* What the index said before, aside. */
static void keep_copy(void)
{
    close_all();
    char *command = mem_format("cp -r '%s' '%s/copy'", index_dir[0], base);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
}

static void open_both(struct entry_index **was, struct entry_index **is)
{
    char copy[300];
    snprintf(copy, sizeof copy, "%s/copy", base);
    ck_assert_int_eq(entry_index_open(was, copy), ERR_OK);
    ck_assert_int_eq(entry_index_open(is, index_dir[0]), ERR_OK);
}

static bool same(const struct entry_place *a, const struct entry_place *b)
{
    return a->log == b->log && a->offset == b->offset && a->length == b->length;
}

/* `lost` entries are absent where they were, all others lie where they lay. */
static void compare(unsigned lost)
{
    struct entry_index *was, *is;
    unsigned absent = 0;
    open_both(&was, &is);
    for (int64_t l = 0; l < LEDGERS; l++)
        for (int64_t e = 0; e < ENTRIES; e++) {
            struct entry_place a, b;
            const enum err x = entry_index_find(was, l, e, &a), y = entry_index_find(is, l, e, &b);
            if (!x && y == ERR_NO_ENTRY)
                absent++;
            else
                ck_assert(x == y && (x || same(&a, &b) || lost));
        }
    ck_assert_uint_eq(absent, lost);
    entry_index_close(&was);
    entry_index_close(&is);
}

static struct ledger_row row_of(int64_t ledger)
{
    struct entry_index *ix;
    struct ledger_row row;
    ck_assert_int_eq(entry_index_open(&ix, index_dir[0]), ERR_OK);
    const enum err err = entry_index_row(ix, ledger, &row);
    ck_assert(!err || err == ERR_NO_LEDGER);
    if (err)
        row = (struct ledger_row){.id = -1};
    entry_index_close(&ix);
    return row;
}

static enum integrity_need need(void)
{
    struct integrity_state s;
    ck_assert_int_eq(integrity_load(disk, dirs[0], &s), ERR_OK);
    return s.need;
}

static void rebuild(void)
{
    ck_assert_int_eq(index_rebuild(&conf, &report), ERR_OK);
    ck_assert(!is_lost());
}

START_TEST(every_entry_lies_where_it_lay)
{
    seed = (uint64_t)_i + 1;
    begin();
    know_all();
    for (unsigned i = 0; i < 5; i++) {
        flush(0, 0, LEDGERS);
        if (i % 2)
            reopen_log(0);
    }
    keep_copy();
    lose(_i % 2 ? "" : "/*");
    ck_assert(is_lost());
    rebuild();
    compare(0);
    ck_assert_uint_eq(report.ledgers, LEDGERS);
    ck_assert_uint_eq(report.limbo, 0);
    ck_assert_uint_eq(report.damages, 0);
    ck_assert_uint_gt(report.logs, 3);
    ck_assert_int_eq(need(), INTEGRITY_WHOLE);
    end();
}
END_TEST

START_TEST(rows_say_how_far_a_ledger_goes_and_are_fenced)
{
    uint8_t key[MASTER_KEY_SIZE];
    begin();
    know_all();
    put_entry(0, 1, 7);
    put_entry(0, 1, 9);
    put_entry(0, 2, 0);
    commit(0);
    close_all();
    lose("");
    rebuild();
    struct ledger_row row = row_of(1);
    ck_assert_int_eq(row.last, 9);
    ck_assert_int_eq(row.lac, 8);
    ck_assert(row.fenced);
    ck_assert(!row.limbo);
    master_key_of(view_of("secret", 6), key);
    ck_assert_mem_eq(row.key, key, sizeof key);
    ck_assert_int_eq(row_of(2).last, 0);
    end();
}
END_TEST

/* A ledger may have been fenced here before it had an entry: that was in its row alone. */
START_TEST(an_open_ledger_without_entries_is_fenced)
{
    begin();
    know_ledger(11, OPEN, BOOKIE, "");
    know_ledger(12, CLOSED, BOOKIE, "");
    know_ledger(13, OPEN, "b2", "");
    put_entry(0, 1, 1);
    commit(0);
    close_all();
    lose("");
    rebuild();
    ck_assert_int_eq(row_of(11).id, 11);
    ck_assert(row_of(11).fenced);
    ck_assert_int_eq(row_of(11).last, -1);
    ck_assert_int_eq(row_of(12).id, -1);
    ck_assert_int_eq(row_of(13).id, -1);
    end();
}
END_TEST

START_TEST(what_the_metadata_does_not_know_is_in_limbo)
{
    static const uint8_t none[MASTER_KEY_SIZE];
    begin();
    put_entry(0, 5, 1);
    commit(0);
    close_all();
    lose("");
    rebuild();
    ck_assert(row_of(5).limbo);
    ck_assert(row_of(5).fenced);
    ck_assert_mem_eq(row_of(5).key, none, sizeof none);
    ck_assert_int_eq(need(), INTEGRITY_CHECK);
    end();
}
END_TEST

START_TEST(without_metadata_all_is_in_limbo_and_the_bookie_is_told_to_scan)
{
    begin();
    know_all();
    flush(0, 0, LEDGERS);
    keep_copy();
    lose("");
    conf.meta = NULL;
    rebuild();
    compare(0);
    ck_assert_uint_eq(report.limbo, report.ledgers);
    ck_assert_int_eq(need(), INTEGRITY_SCAN);
    end();
}
END_TEST

/* ---- the journal ----------------------------------------------------------------------------- */

static size_t record(uint8_t *into, uint64_t sequence, uint8_t kind, uint8_t key, struct view body)
{
    uint8_t head[MASTER_KEY_SIZE];
    memset(head, key, sizeof head);
    const struct journal_record r = {
        .file = 3, .sequence = sequence, .group = sequence, .kind = kind};
    return journal_record_write(into, &r, view_of(head, sizeof head), body);
}

static void write_journal(void)
{
    static uint8_t bytes[3 * JOURNAL_BLOCK];
    uint8_t body[32];
    journal_header_write(bytes, 3, 1);
    put_id(body, 4);
    uint8_t *at = bytes + JOURNAL_BLOCK;
    at += record(at, 1, RECORD_FENCE, 44, view_of(body, 8));
    put_id(body, 3);
    put_id(body + 8, 77);
    at += record(at, 2, RECORD_LAC, 33, view_of(body, 24));
    put_id(body + 8, 70);
    record(at, 3, RECORD_LAC, 33, view_of(body, 24));
    put_id(body, 8);
    record(bytes + (size_t)2 * JOURNAL_BLOCK, 4, RECORD_FENCE, 88, view_of(body, 8));
    ck_assert_int_eq(disk_store(disk, "journal/0000000000000003.jnl", bytes, sizeof bytes), ERR_OK);
}

START_TEST(keys_and_explicit_lacs_come_from_the_journal)
{
    begin();
    write_journal();
    know_ledger(3, OPEN, BOOKIE, "another");
    put_entry(0, 3, 5);
    put_entry(0, 4, 5);
    commit(0);
    close_all();
    lose("");
    rebuild();
    ck_assert_uint_eq(row_of(3).key[19], 33); /* what the bookie took, not what the metadata says */
    ck_assert_int_eq(row_of(3).explicit_len, 24);
    ck_assert_int_eq(row_of(3).lac, 77);
    ck_assert_uint_eq(row_of(4).key[0], 44);
    ck_assert_uint_eq(row_of(8).key[0], 88); /* fenced, and never written to */
    ck_assert(row_of(8).fenced);
    end();
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

/* As the process leaves the last log when it is killed: without all of its seal. */
static void cut_seal(uint64_t keep)
{
    struct disk_file *f;
    uint64_t size;
    ck_assert_int_eq(disk->ops->open(disk, "ledgers0/0000000000000001.log", DISK_WRITE, &f),
                     ERR_OK);
    ck_assert_int_eq(disk->ops->size(f, &size), ERR_OK);
    ck_assert_int_eq(disk->ops->truncate(f, size - JOURNAL_BLOCK + keep), ERR_OK);
    disk->ops->close(&f);
}

START_TEST(a_damaged_record_is_told_and_never_absent)
{
    begin();
    know_all();
    for (int64_t e = 0; e < 50; e++)
        put_entry(0, 1, e);
    commit(0);
    struct entry_place at;
    ck_assert_int_eq(entry_index_find(before[0], 1, 20, &at), ERR_OK);
    keep_copy();
    cut_seal(0);
    lose("");
    fake_disk_flip(fake, "ledgers0/0000000000000001.log", at.offset + (_i ? 30 : 5));
    capture_start(&captured);
    const enum err err = index_rebuild(&conf, &report);
    const char *said = capture_end(&captured);
    char offset[64];
    snprintf(offset, sizeof offset, " offset=%llu ", (unsigned long long)at.offset);
    ck_assert_int_eq(err, ERR_OK);
    ck_assert_ptr_nonnull(strstr(said, "entry_log.damaged path=ledgers0/0000000000000001.log"));
    ck_assert_ptr_nonnull(strstr(said, offset));
    compare(1);
    ck_assert_uint_eq(report.damages, 1);
    for (int64_t l = 0; l < LEDGERS; l++) /* it may have been anybody's */
        ck_assert(row_of(l).limbo);
    ck_assert_int_eq(need(), INTEGRITY_SCAN);
    end();
}
END_TEST

/* A log that was closed says whose bytes are in it. */
START_TEST(a_seal_says_who_lacks_something)
{
    begin();
    know_all();
    for (int64_t l = 0; l < LEDGERS; l++)
        for (int64_t e = 0; e < 20; e++)
            put_entry(0, l, e);
    put_entry(0, 9, 0);
    commit(0);
    struct entry_place one, only;
    ck_assert_int_eq(entry_index_find(before[0], 3, 7, &one), ERR_OK);
    ck_assert_int_eq(entry_index_find(before[0], 9, 0, &only), ERR_OK);
    know_ledger(9, OPEN, BOOKIE, "");
    keep_copy();
    lose("");
    fake_disk_flip(fake, "ledgers0/0000000000000001.log", one.offset + 50);
    fake_disk_flip(fake, "ledgers0/0000000000000001.log", only.offset + 50);
    rebuild();
    compare(1);
    for (int64_t l = 0; l < LEDGERS; l++)
        ck_assert_int_eq(row_of(l).limbo, l == 3);
    ck_assert_int_eq(row_of(9).id, 9); /* it has nothing left here */
    ck_assert(row_of(9).limbo);
    ck_assert_int_eq(need(), INTEGRITY_CHECK);
    end();
}
END_TEST

START_TEST(a_torn_seal_is_no_damage)
{
    begin();
    know_all();
    flush(0, 0, 2);
    keep_copy();
    lose("");
    cut_seal(40);
    rebuild();
    compare(0);
    ck_assert_uint_eq(report.damages, 0);
    end();
}
END_TEST

/* ---- is it lost? ----------------------------------------------------------------------------- */

static enum err store_mark(struct marks *m, uint64_t sequence)
{
    m->index = sequence;
    return marks_store(disk, "ledgers0/mark", journals, 1, m);
}

START_TEST(tells_a_lost_index_from_others)
{
    begin();
    close_all();
    ck_assert(!is_lost()); /* a new one */
    ck_assert_int_eq(entry_index_open(&before[0], index_dir[0]), ERR_OK);
    ck_assert_int_eq(entry_log_open(&logs[0], disk, dirs[0], 100 << 10), ERR_OK);
    put_entry(0, 1, 1);
    commit(0);
    struct marks m = {.of = {{1, JOURNAL_BLOCK, 1}}};
    const uint64_t sequence = entry_index_sequence(before[0]);
    close_all();
    ck_assert(!is_lost());
    ck_assert_int_eq(store_mark(&m, sequence), ERR_OK);
    ck_assert(!is_lost());
    ck_assert_int_eq(store_mark(&m, sequence + 1), ERR_OK);
    ck_assert(is_lost());
    ck_assert_int_eq(store_mark(&m, sequence), ERR_OK);
    static const char *const files[] = {"/CURRENT", "/MANIFEST*", "/*", ""};
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
        lose(files[i]);
        ck_assert_msg(is_lost(), "without %s", files[i]);
        rebuild();
    }
    end();
}
END_TEST

/* The log is synced, and then the index would have been: the journal has it all. */
START_TEST(a_crash_in_the_first_flush_loses_no_index)
{
    begin();
    struct marks m = {.of = {{1, JOURNAL_BLOCK, 1}}};
    ck_assert_int_eq(store_mark(&m, entry_index_sequence(before[0])), ERR_OK);
    put_entry(0, 1, 1);
    ck_assert_int_eq(entry_log_sync(logs[0]), ERR_OK);
    close_all();
    ck_assert(!is_lost());
    end();
}
END_TEST

START_TEST(a_lost_table_is_a_lost_index)
{
    begin();
    for (unsigned i = 0; i < 3; i++) { /* each opening writes a table */
        put_entry(0, 1, i);
        commit(0);
        entry_index_close(&before[0]);
        ck_assert_int_eq(entry_index_open(&before[0], index_dir[0]), ERR_OK);
    }
    close_all();
    ck_assert(!is_lost());
    lose("/*.sst");
    ck_assert(is_lost());
    rebuild();
    end();
}
END_TEST

/* ---- failing --------------------------------------------------------------------------------- */

static bool fail_at(unsigned after)
{
    seed = 9;
    begin();
    know_all();
    flush(0, 0, LEDGERS);
    keep_copy();
    lose("");
    ck_assert(is_lost());
    const unsigned calls = fake_disk_calls(fake, FAKE_ANY);
    fake_disk_fail(fake, FAKE_ANY, after, 1);
    const enum err err = index_rebuild(&conf, &report);
    const bool untouched = fake_disk_calls(fake, FAKE_ANY) - calls <= after;
    fake_disk_fail(fake, FAKE_ANY, 0, 0);
    ck_assert(!untouched || !err);
    if (err || report.damages)
        rebuild();
    compare(0);
    end();
    return untouched;
}

START_TEST(a_failure_leaves_it_to_be_done_again)
{
    for (unsigned after = 0; !fail_at(after); after++)
        ;
}
END_TEST

/* ---- holes ----------------------------------------------------------------------------------- */

/* E=3 Qw=2 with us in the middle: entries 0, 1, 3, 4, 6 ... are ours. */
static void know_striped(int64_t id, int state, int64_t last)
{
    Bookkeeper__LedgerMetadataFormat m = BOOKKEEPER__LEDGER_METADATA_FORMAT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment s = BOOKKEEPER__LEDGER_METADATA_FORMAT__SEGMENT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment *only = &s;
    char *members[] = {(char *)(uintptr_t) "b0", (char *)(uintptr_t)BOOKIE,
                       (char *)(uintptr_t) "b2"};
    char key[META_KEY_MAX];
    m.ensemblesize = 3;
    m.quorumsize = 2;
    m.state = (Bookkeeper__LedgerMetadataFormat__State)state;
    m.has_lastentryid = state == CLOSED;
    m.lastentryid = last;
    m.n_segment = 1;
    m.segment = &only;
    s.n_ensemblemember = 3;
    s.ensemblemember = members;
    ck_assert_int_eq(path_ledger(id, key), ERR_OK);
    ck_assert_int_eq(meta_put_wait(meta, key, ledger_record_write(&m), META_ANY), ERR_OK);
}

static void put_striped(int64_t ledger, int64_t n)
{
    for (int64_t e = 0; e < n; e++)
        if (e % 3 != 2)
            put_entry(0, ledger, e);
}

START_TEST(a_log_that_is_gone_leaves_holes)
{
    begin();
    for (int64_t l = 1; l <= 3; l++)
        put_striped(l, 290);
    commit(0);
    reopen_log(0);
    put_entry(0, 2, 291);
    commit(0);
    reopen_log(0);
    put_entry(0, 2, 292); /* 293 is not ours */
    put_entry(0, 2, 294);
    commit(0);
    struct entry_place gone;
    ck_assert_int_eq(entry_index_find(before[0], 2, 291, &gone), ERR_OK);
    know_striped(1, OPEN, 0);
    know_striped(2, OPEN, 0);
    know_striped(3, CLOSED, 290);
    know_striped(4, CLOSED, 1); /* nothing of it is here */
    know_striped(5, CLOSED, -1);
    close_all();
    lose("");
    char *path = entry_log_path("ledgers0", gone.log);
    ck_assert_int_eq(disk->ops->remove(disk, path), ERR_OK);
    mem_free(path);
    rebuild();
    ck_assert(!row_of(1).limbo);
    ck_assert(row_of(2).limbo);  /* 291 was in the log that is gone */
    ck_assert(!row_of(3).limbo); /* 290 is not ours */
    ck_assert(row_of(4).limbo);
    ck_assert_int_eq(row_of(5).id, -1);
    ck_assert_int_eq(need(), INTEGRITY_CHECK);
    end();
}
END_TEST

/* ---- deleted ledgers --------------------------------------------------------------------------
 */

START_TEST(what_was_deleted_stays_deleted_if_that_can_be_read)
{
    struct entry_index *ix;
    struct ledger_tomb tomb;
    begin();
    for (int64_t l = 1; l <= 3; l++)
        put_entry(0, l, 0);
    commit(0);
    tomb = (struct ledger_tomb){.kind = TOMB_DELETED, .fenced = true, .since_ms = 7};
    ck_assert_int_eq(ledger_tomb_put(before[0], 2, &tomb), ERR_OK);
    tomb.kind = TOMB_TRASHED;
    ck_assert_int_eq(ledger_tomb_put(before[0], 3, &tomb), ERR_OK);
    close_all();
    rebuild();
    ck_assert_int_eq(row_of(1).id, 1);
    ck_assert_int_eq(row_of(2).id, -1);
    ck_assert_int_eq(row_of(3).id, 3);
    ck_assert_int_eq(entry_index_open(&ix, index_dir[0]), ERR_OK);
    ck_assert_int_eq(ledger_tomb_get(ix, 2, &tomb), ERR_OK);
    ck_assert(tomb.kind == TOMB_DELETED && tomb.fenced && tomb.since_ms == 7);
    ck_assert_int_eq(ledger_tomb_get(ix, 3, &tomb), ERR_OK);
    entry_index_close(&ix);
    end();
}
END_TEST

/* ---- several directories --------------------------------------------------------------------- */

START_TEST(what_another_directory_has_is_left_there)
{
    begin();
    conf.n = 2;
    put_entry(0, 1, 1);
    commit(0);
    put_entry(1, 2, 1);
    struct ledger_row row = {.id = 2, .last = 1, .lac = 0};
    entry_index_put_row(before[1], &row);
    commit(1);
    know_ledger(1, OPEN, BOOKIE, "");
    know_ledger(2, OPEN, BOOKIE, "");
    know_ledger(3, OPEN, BOOKIE, "");
    close_all();
    lose("");
    rebuild();
    ck_assert_int_eq(row_of(1).id, 1);
    ck_assert_int_eq(row_of(2).id, -1);
    ck_assert_int_eq(row_of(3).id, 3);
    ck_assert_int_eq(entry_index_open(&before[1], index_dir[1]), ERR_OK);
    ck_assert_int_eq(entry_index_row(before[1], 2, &row), ERR_OK);
    ck_assert(!row.fenced);
    end();
}
END_TEST

START_TEST(two_lost_ones_are_made_before_a_ledger_is_new)
{
    begin();
    conf.n = 2;
    places[1].is_lost = true;
    put_entry(1, 2, 1);
    commit(1);
    know_ledger(2, OPEN, BOOKIE, "");
    close_all();
    rebuild();
    ck_assert_int_eq(row_of(2).id, -1);
    end();
}
END_TEST

static void flush_without_index(unsigned d, int64_t ledger, int64_t entries)
{
    for (int64_t e = 0; e < entries; e++)
        put_entry(d, ledger, e);
    ck_assert_int_eq(entry_log_sync(logs[d]), ERR_OK);
    entry_index_discard(before[d]);
}

/* The flush of one directory was cut short, and the journal has put the ledger into the other. */
START_TEST(what_no_index_named_makes_no_second_home)
{
    struct ledger_row row = {.id = 1, .last = 4, .lac = 0};
    begin();
    conf.n = 2;
    places[0].is_lost = _i != 1;
    places[1].is_lost = _i != 0;
    flush_without_index(_i == 0 ? 0 : 1, 1, 3);
    for (int64_t e = 0; e < 5; e++)
        put_entry(_i == 0 ? 1 : 0, 1, e);
    entry_index_put_row(before[_i == 0 ? 1 : 0], &row);
    commit(_i == 0 ? 1 : 0);
    know_ledger(1, OPEN, BOOKIE, "");
    close_all();
    rebuild();
    unsigned homes = 0;
    for (unsigned d = 0; d < 2; d++) {
        struct entry_index *ix;
        struct entry_place at;
        ck_assert_int_eq(entry_index_open(&ix, index_dir[d]), ERR_OK);
        if (entry_index_row(ix, 1, &row) == ERR_OK) {
            homes++;
            ck_assert_int_eq(entry_index_find(ix, 1, 4, &at), ERR_OK);
        }
        entry_index_close(&ix);
    }
    ck_assert_uint_eq(homes, 1);
    end();
}
END_TEST

int main(void)
{
    return suite_run(
        "index_rebuild",
        (suite_case[]){SUITE_LOOP(every_entry_lies_where_it_lay, 8),
                       SUITE_CASE(rows_say_how_far_a_ledger_goes_and_are_fenced),
                       SUITE_CASE(an_open_ledger_without_entries_is_fenced),
                       SUITE_CASE(what_the_metadata_does_not_know_is_in_limbo),
                       SUITE_CASE(without_metadata_all_is_in_limbo_and_the_bookie_is_told_to_scan),
                       SUITE_CASE(keys_and_explicit_lacs_come_from_the_journal),
                       SUITE_LOOP(a_damaged_record_is_told_and_never_absent, 2),
                       SUITE_CASE(a_seal_says_who_lacks_something),
                       SUITE_CASE(a_torn_seal_is_no_damage),
                       SUITE_CASE(tells_a_lost_index_from_others),
                       SUITE_CASE(a_crash_in_the_first_flush_loses_no_index),
                       SUITE_CASE(a_lost_table_is_a_lost_index),
                       SUITE_CASE(a_failure_leaves_it_to_be_done_again),
                       SUITE_CASE(a_log_that_is_gone_leaves_holes),
                       SUITE_CASE(what_was_deleted_stays_deleted_if_that_can_be_read),
                       SUITE_CASE(what_another_directory_has_is_left_there),
                       SUITE_CASE(two_lost_ones_are_made_before_a_ledger_is_new),
                       SUITE_LOOP(what_no_index_named_makes_no_second_home, 3),
                       {0}});
}
