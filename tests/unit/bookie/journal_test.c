#include "bookie/journal.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "bookie/journal_format.h"
#include "common/crc32c.h"
#include "common/mem.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"
#include "tests/unit/common/captured.h"

enum { KIND = 1, MAX_RECORDS = 4096 };

/* A record that says its number, and whether it was acknowledged. */
struct one {
    struct journal_write write;
    uint8_t head[8];
    uint64_t number;
};

static struct captured captured;
static struct fake_disk *disk;
static struct loops loops;
static struct journal *journal;
static struct journal_mark mark;
static struct one ones[MAX_RECORDS];
static atomic_uint acked, refused, failures;
static bool is_acked[MAX_RECORDS];
static uint64_t replayed[MAX_RECORDS];
static unsigned n_replayed, n_sent;
static uint64_t file_bytes = 1 << 20, prove_us, synced;
static bool is_ahead;

static void done(struct journal_write *w, enum err err)
{
    struct one *o = container_of(w, struct one, write);
    is_acked[o->number] = !err;
    atomic_fetch_add(err ? &refused : &acked, 1);
}

static void failed(void *ctx, enum err why)
{
    (void)ctx;
    ck_assert_int_ne(why, ERR_OK);
    atomic_fetch_add(&failures, 1);
}

static struct journal_conf conf(void)
{
    return (struct journal_conf){.dir = "j",
                                 .file_bytes = file_bytes,
                                 .group_bytes = 64 << 10,
                                 .queue_bytes = 16 << 20,
                                 .record_max = 64 << 10,
                                 .direct = true,
                                 .ahead = is_ahead,
                                 .prove_us = prove_us,
                                 .synced = synced,
                                 .loops = &loops,
                                 .failed = failed};
}

static void begin(void)
{
    disk = fake_disk_new();
    loops_start(&loops, "loop", 1);
    mark = (struct journal_mark){0, JOURNAL_BLOCK, 1};
}

static void end(void)
{
    journal_close(&journal);
    loops_stop(&loops);
    fake_disk_drop(&disk);
}

static enum err take(void *ctx, uint8_t kind, struct view payload)
{
    (void)ctx;
    ck_assert_int_eq(kind, KIND);
    memcpy(&replayed[n_replayed++], payload.base, 8);
    return ERR_OK;
}

static enum err open_again(void)
{
    const struct journal_conf c = conf();
    n_replayed = 0;
    TRY(journal_open(&journal, &c, fake_disk_of(disk), mark));
    TRY(journal_replay(journal, take, NULL));
    return journal_start(journal);
}

static void send(uint64_t number, size_t body)
{
    struct one *o = &ones[number];
    uint8_t bytes[60000];
    memset(bytes, (int)number, sizeof bytes);
    o->number = number;
    memcpy(o->head, &number, 8);
    o->write = (struct journal_write){.kind = KIND,
                                      .head = view_of(o->head, 8),
                                      .body = slice_copy(bytes, body),
                                      .home = loops.at[0],
                                      .done = done};
    ck_assert_int_eq(journal_append(journal, &o->write), ERR_OK);
    n_sent++;
}

static void wait_for(unsigned n)
{
    while (atomic_load(&acked) + atomic_load(&refused) < n && atomic_load(&failures) == 0)
        sched_yield();
}

/* One record a group: each is waited for. */
static void send_groups(uint64_t first, uint64_t n, size_t body)
{
    for (uint64_t i = first; i < first + n; i++) {
        send(i, body);
        wait_for(n_sent);
    }
}

static char *path(uint64_t file)
{
    return mem_format("j/%016" PRIx64 ".jnl", file);
}

static void flip(uint64_t file, uint64_t at)
{
    char *p = path(file);
    fake_disk_flip(disk, p, at);
    mem_free(p);
}

/* Nothing is proven at the end. */
static void crash(void)
{
    fake_disk_fail(disk, FAKE_WRITE, 0, UINT32_MAX);
    journal_close(&journal);
    fake_disk_fail(disk, FAKE_WRITE, 0, 0);
    fake_disk_crash(disk);
}

static void stop(void)
{
    journal_close(&journal);
    fake_disk_crash(disk);
}

START_TEST(replays_what_was_acknowledged)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 50, 100);
    for (uint64_t i = 50; i < 300; i++)
        send(i, 1000);
    wait_for(n_sent);
    ck_assert_uint_eq(atomic_load(&acked), 300);
    crash();
    for (unsigned round = 0; round < 3; round++) { /* replaying twice changes nothing */
        ck_assert_int_eq(open_again(), ERR_OK);
        ck_assert_uint_eq(n_replayed, 300);
        for (unsigned i = 0; i < 300; i++)
            ck_assert_uint_eq(replayed[i], i);
        crash();
    }
    end();
}
END_TEST

START_TEST(goes_on_after_a_restart)
{
    begin();
    for (uint64_t round = 0; round < 5; round++) {
        ck_assert_int_eq(open_again(), ERR_OK);
        ck_assert_uint_eq(n_replayed, round * 10);
        send_groups(round * 10, 10, 5000);
        crash();
    }
    end();
}
END_TEST

START_TEST(replays_from_the_mark)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 10, 100);
    mark = journal_mark(journal);
    send_groups(10, 10, 100);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, 10);
    ck_assert_uint_eq(replayed[0], 10);
    end();
}
END_TEST

static unsigned names;
static void count_name(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    names++;
}

START_TEST(recycles_files)
{
    begin();
    file_bytes = 128 << 10;
    ck_assert_int_eq(open_again(), ERR_OK);
    for (uint64_t i = 0; i < 200; i++) {
        send_groups(i, 1, 50000);
        mark = journal_mark(journal);
        journal_trim(journal, mark);
    }
    ck_assert_uint_gt(mark.file, 80); /* two or so records a file */
    names = 0;
    struct disk *d = fake_disk_of(disk);
    ck_assert_int_eq(d->ops->list(d, "j", count_name, NULL), ERR_OK);
    ck_assert_uint_le(names, 4);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK); /* nothing old looks new */
    ck_assert_uint_eq(n_replayed, 0);
    send_groups(200, 3, 50000);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, 3);
    ck_assert_uint_eq(replayed[0], 200);
    end();
}
END_TEST

/* Once, with file, offset (behind the record before that block) and how much. */
static void expect_tail_cut(const char *text, uint64_t file, uint64_t block)
{
    const char *line = strstr(text, "journal.tail_cut");
    char *p = path(file);
    uint64_t offset;

    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, p));
    ck_assert_int_eq(sscanf(strstr(line, "offset="), "offset=%" SCNu64, &offset), 1);
    ck_assert_uint_le(offset, block);
    ck_assert_uint_gt(offset + JOURNAL_BLOCK, block);
    ck_assert_ptr_nonnull(strstr(line, "bytes="));
    ck_assert_ptr_null(strstr(line, "bytes=0 "));
    ck_assert_ptr_null(strstr(line + 1, "journal.tail_cut"));
    mem_free(p);
}

/* Also one that is full of old records, since it was recycled. */
START_TEST(a_whole_journal_has_no_cut_tail)
{
    begin();
    file_bytes = 256 << 10;
    ck_assert_int_eq(open_again(), ERR_OK);
    for (unsigned i = 0; i < 40; i++) {
        send_groups(i, 1, 50000);
        mark = journal_mark(journal);
        journal_trim(journal, mark);
    }
    crash();
    capture_start(&captured);
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_ptr_null(strstr(capture_end(&captured), "journal.tail_cut"));
    file_bytes = 1 << 20;
    end();
}
END_TEST

START_TEST(a_torn_tail_is_the_end)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 10, 100);
    const struct journal_mark before = journal_mark(journal);
    send_groups(10, 1, 30000);
    crash();
    flip(before.file, before.offset + 9000); /* the last group did not arrive whole */
    capture_start(&captured);
    ck_assert_int_eq(open_again(), ERR_OK);
    expect_tail_cut(capture_end(&captured), before.file, before.offset);
    ck_assert_uint_eq(n_replayed, 10);
    send_groups(11, 2, 100); /* the torn one's sequence is given out again, in a new file */
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, 12);
    ck_assert_uint_eq(replayed[10], 11);
    end();
}
END_TEST

/* Of one group the second record is lost and later ones, at the beginning of blocks too, are not:
 * none of them was ever acknowledged. */
START_TEST(a_group_with_a_hole_is_a_torn_tail)
{
    begin();
    const struct journal_conf c = conf();
    ck_assert_int_eq(journal_open(&journal, &c, fake_disk_of(disk), mark), ERR_OK);
    for (uint64_t i = 0; i < 20; i++)
        send(i, 2000);                                /* with its head a record of half a block */
    ck_assert_int_eq(journal_start(journal), ERR_OK); /* finds them all waiting */
    wait_for(n_sent);
    crash();
    flip(1, JOURNAL_BLOCK + 2048 + 100);
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, 1);
    end();
}
END_TEST

START_TEST(a_damaged_middle_is_refused)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 5, 100);
    const struct journal_mark before = journal_mark(journal);
    send_groups(5, 5, 100);
    crash();
    flip(before.file, before.offset + 60);
    ck_assert_int_eq(open_again(), ERR_CHECKSUM);
    end();
}
END_TEST

START_TEST(a_damaged_end_of_an_earlier_file_is_refused)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 4, 100);
    const struct journal_mark before = journal_mark(journal);
    send_groups(4, 1, 100);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(5, 1, 100);
    crash();
    flip(before.file, before.offset + 60);
    ck_assert_int_eq(open_again(), ERR_CHECKSUM);
    end();
}
END_TEST

/* ---- what proves that the last group had been synced ---- */

static void expect_refused(uint64_t file, const char *reason)
{
    capture_start(&captured);
    const enum err err = open_again();
    const char *text = strstr(capture_end(&captured), "journal.corrupted");
    char *p = path(file);
    ck_assert_int_eq(err, ERR_CHECKSUM);
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(strstr(text, p));
    ck_assert_ptr_nonnull(strstr(text, reason));
    mem_free(p);
}

START_TEST(a_clean_end_proves_the_last_group)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 4, 100);
    const struct journal_mark before = journal_mark(journal);
    send_groups(4, 1, 9000);
    stop();
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, 5);
    crash();
    flip(before.file, before.offset + 5000);
    expect_refused(before.file, "offset=");
    end();
}
END_TEST

static void wait_for_proof(void)
{
    const struct journal_mark m = journal_mark(journal);
    struct disk *d = fake_disk_of(disk);
    uint8_t bytes[JOURNAL_RECORD] = {0};
    struct journal_record r = {0};
    struct disk_file *f;
    size_t got;
    char *p = path(m.file);
    ck_assert_int_eq(d->ops->open(d, p, DISK_READ, &f), ERR_OK);
    while (r.kind != JOURNAL_PROOF || r.sequence != m.sequence) {
        sched_yield();
        ck_assert_int_eq(d->ops->read(f, m.offset, bytes, sizeof bytes, &got), ERR_OK);
        (void)!journal_record_read(bytes, 0, &r);
    }
    d->ops->close(&f);
    mem_free(p);
}

/* A proof is no record: the next group is written over it, and gets its sequence. */
START_TEST(a_group_takes_the_place_of_a_proof)
{
    begin();
    prove_us = 1;
    ck_assert_int_eq(open_again(), ERR_OK);
    for (uint64_t i = 0; i < 20; i++) {
        send_groups(i, 1, 100);
        if (i % 3 == 0)
            wait_for_proof();
    }
    ck_assert_uint_eq(journal_mark(journal).sequence, 21);
    const struct journal_mark at = journal_mark(journal);
    crash();
    capture_start(&captured);
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_ptr_null(strstr(capture_end(&captured), "journal.tail_cut"));
    ck_assert_uint_eq(n_replayed, 20);
    crash();
    mark = at; /* where a proof may lie */
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, 0);
    prove_us = 0;
    end();
}
END_TEST

/* What was in flight over a proof is torn, and the proof is not: still nothing is lost. */
START_TEST(a_proof_under_a_torn_group_changes_nothing)
{
    begin();
    fake_disk_tear(disk, (uint64_t)_i + 1);
    prove_us = 1;
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 3, 100);
    wait_for_proof();
    fake_disk_fail(disk, FAKE_SYNC, 0, 1);
    for (uint64_t i = 3; i < 20; i++)
        send(i, 2000);
    wait_for(n_sent);
    crash();
    fake_disk_fail(disk, FAKE_SYNC, 0, 0);
    atomic_store(&failures, 0);
    prove_us = 0;
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_ge(n_replayed, 3);
    end();
}
END_TEST

/* Although the later file has no record. */
START_TEST(a_later_file_proves_the_last_group)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 4, 100);
    const struct journal_mark before = journal_mark(journal);
    send_groups(4, 1, 100);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    crash();
    flip(before.file, before.offset + 60);
    expect_refused(before.file + 1, "begun after the missing");
    end();
}
END_TEST

START_TEST(a_file_that_is_gone_between_two_is_missed)
{
    begin();
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(open_again(), ERR_OK);
        send_groups(2 * i, i < 2 ? 2 : 0, 100);
        crash();
    }
    char *p = path(2);
    struct disk *d = fake_disk_of(disk);
    ck_assert_int_eq(d->ops->remove(d, p), ERR_OK);
    mem_free(p);
    expect_refused(3, "begun after the missing");
    end();
}
END_TEST

/* Of two devices one has it already: so it had been synced. */
START_TEST(a_mark_proves_what_is_before_it)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 4, 100);
    const struct journal_mark before = journal_mark(journal);
    send_groups(4, 1, 100);
    synced = journal_mark(journal).sequence;
    crash();
    flip(before.file, before.offset + 60);
    expect_refused(before.file, "mark is behind the missing");
    journal_close(&journal);
    synced = before.sequence;
    ck_assert_int_eq(open_again(), ERR_OK); /* without it this is a torn tail */
    ck_assert_uint_eq(n_replayed, 4);
    synced = 0;
    end();
}
END_TEST

/* As a build before this one wrote it: four zeros and no sequence. */
START_TEST(headers_of_version_1_are_read)
{
    uint8_t block[JOURNAL_BLOCK] = {'L', 'G', 'M', 'J', 0, 1, 0, 1};
    uint64_t sequence = 7;
    block[15] = 3;
    const uint32_t crc = crc32c(block, 20);
    for (unsigned i = 0; i < 4; i++)
        block[20 + i] = (uint8_t)(crc >> (24 - 8 * i));
    const struct view v = view_of(block, sizeof block);
    ck_assert_int_eq(journal_header_read(v, 3, &sequence), ERR_OK);
    ck_assert_uint_eq(sequence, 0);
    ck_assert_int_eq(journal_header_read(v, 4, &sequence), ERR_CHECKSUM);
    journal_header_write(block, 3, 77);
    ck_assert_int_eq(journal_header_read(v, 3, &sequence), ERR_OK);
    ck_assert_uint_eq(sequence, 77);
    block[20] ^= 1;
    ck_assert_int_eq(journal_header_read(v, 3, &sequence), ERR_CHECKSUM);
}
END_TEST

START_TEST(a_missing_file_is_refused)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 4, 100);
    mark = journal_mark(journal);
    crash();
    char *p = path(mark.file);
    struct disk *d = fake_disk_of(disk);
    ck_assert_int_eq(d->ops->remove(d, p), ERR_OK);
    mem_free(p);
    ck_assert_int_eq(open_again(), ERR_CHECKSUM);
    end();
}
END_TEST

/* Whether the next file was there, half made or not yet begun at the crash: it holds nothing. */
START_TEST(a_file_made_ahead_changes_nothing)
{
    begin();
    is_ahead = true;
    file_bytes = 128 << 10;
    fake_disk_tear(disk, (uint64_t)_i + 1);
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 20, 50000);
    mark = journal_mark(journal);
    if (_i % 2)
        journal_trim(journal, mark);
    send_groups(20, (uint64_t)_i, 50000);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, (unsigned)_i);
    send_groups(60, 3, 50000);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, (unsigned)_i + 3);
    ck_assert_uint_eq(replayed[_i], 60);
    end();
}
END_TEST

/* Torn sectors, whatever of the group in flight arrives: all acknowledged records are there, in
 * order, and the journal goes on. */
START_TEST(survives_torn_sectors)
{
    begin();
    fake_disk_tear(disk, (uint64_t)_i + 1);
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, (uint64_t)_i % 7, 2000);
    fake_disk_fail(disk, FAKE_SYNC, (unsigned)_i % 3, 1000);
    for (uint64_t i = 50; i < 120; i++)
        send(i, 2000);
    wait_for(n_sent);
    crash();
    fake_disk_fail(disk, FAKE_SYNC, 0, 0);
    atomic_store(&failures, 0);
    ck_assert_int_eq(open_again(), ERR_OK);
    bool seen[MAX_RECORDS] = {0};
    for (unsigned i = 0; i < n_replayed; i++)
        seen[replayed[i]] = true;
    for (unsigned i = 0; i < MAX_RECORDS; i++)
        ck_assert(seen[i] || !is_acked[i]);
    end();
}
END_TEST

/* Every operation fails once: what was acknowledged is there afterwards. */
START_TEST(survives_any_failure)
{
    bool untouched = false;
    for (unsigned after = 0; !untouched; after++) {
        memset(is_acked, 0, sizeof is_acked);
        atomic_store(&acked, 0);
        atomic_store(&refused, 0);
        atomic_store(&failures, 0);
        n_sent = 0;
        file_bytes = 128 << 10;
        begin();
        fake_disk_fail(disk, FAKE_ANY, after, 1);
        const unsigned before = fake_disk_calls(disk, FAKE_ANY);
        enum err err = open_again();
        for (uint64_t i = 0; !err && i < 8 && atomic_load(&failures) == 0; i++) {
            send_groups(i, 1, 40000);
            journal_trim(journal, mark);
        }
        untouched = fake_disk_calls(disk, FAKE_ANY) - before <= after;
        if (journal)
            crash();
        fake_disk_fail(disk, FAKE_ANY, 0, 0);
        ck_assert_int_eq(open_again(), ERR_OK);
        bool seen[MAX_RECORDS] = {0};
        for (unsigned i = 0; i < n_replayed; i++)
            seen[replayed[i]] = true;
        for (unsigned i = 0; i < 8; i++)
            ck_assert(seen[i] || !is_acked[i]);
        ck_assert(!untouched || atomic_load(&acked) == 8);
        end();
    }
}
END_TEST

START_TEST(refuses_adds_when_no_space_is_left)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 3, 100);
    fake_disk_budget(disk, 1);
    file_bytes = 1 << 20;
    unsigned i = 3;
    while (atomic_load(&refused) == 0) /* what is filled already still takes some */
        send_groups(i++, 1, 50000);
    ck_assert_uint_eq(atomic_load(&failures), 0);
    fake_disk_budget(disk, UINT64_MAX);
    send_groups(i, 1, 100);
    ck_assert(is_acked[i]);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, atomic_load(&acked));
    end();
}
END_TEST

START_TEST(does_without_direct_writes)
{
    begin();
    fake_disk_refuse_direct(disk);
    ck_assert_int_eq(open_again(), ERR_OK);
    send_groups(0, 3, 100);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, 3);
    end();
}
END_TEST

START_TEST(says_busy_when_the_queue_is_full)
{
    begin();
    struct journal_conf c = conf();
    c.queue_bytes = 2000;
    ck_assert_int_eq(journal_open(&journal, &c, fake_disk_of(disk), mark), ERR_OK);
    ck_assert_int_eq(journal_start(journal), ERR_OK);
    uint8_t bytes[3000] = {0};
    struct journal_write w = {.head = view_of(bytes, sizeof bytes), .home = loops.at[0]};
    ck_assert_int_eq(journal_append(journal, &w), ERR_BUSY);
    w.head.len = 1 << 20;
    ck_assert_int_eq(journal_append(journal, &w), ERR_TOO_BIG);
    end();
}
END_TEST

static void append(uint64_t number, uint8_t kind, bool is_early)
{
    struct one *o = &ones[number];
    o->number = number;
    memcpy(o->head, &number, 8);
    o->write = (struct journal_write){.kind = kind,
                                      .is_early = is_early,
                                      .head = view_of(o->head, kind == JOURNAL_MARKER ? 0 : 8),
                                      .home = loops.at[0],
                                      .done = done};
    ck_assert_int_eq(journal_append(journal, &o->write), ERR_OK);
}

/* With a sync that fails only those are done who did not want to wait for it. */
START_TEST(early_writes_do_not_wait_for_the_sync)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    append(0, KIND, false);
    wait_for(1);
    fake_disk_fail(disk, FAKE_SYNC, 0, 1);
    append(1, KIND, true);
    while (atomic_load(&acked) < 2)
        sched_yield();
    append(2, JOURNAL_MARKER, false);
    append(3, KIND, false);
    while (atomic_load(&failures) == 0)
        sched_yield();
    ck_assert(is_acked[1]);
    ck_assert(!is_acked[2] && !is_acked[3]); /* what it marks was never synced */
    end();
}
END_TEST

START_TEST(a_marker_is_done_and_not_written)
{
    begin();
    ck_assert_int_eq(open_again(), ERR_OK);
    append(0, JOURNAL_MARKER, false);
    wait_for(1);
    for (uint64_t i = 1; i < 30; i++)
        append(i, i % 3 ? KIND : JOURNAL_MARKER, i % 2);
    wait_for(30);
    crash();
    ck_assert_int_eq(open_again(), ERR_OK);
    ck_assert_uint_eq(n_replayed, 20);
    end();
}
END_TEST

int main(void)
{
    return suite_run("journal",
                     (suite_case[]){SUITE_CASE(replays_what_was_acknowledged),
                                    SUITE_CASE(goes_on_after_a_restart),
                                    SUITE_CASE(replays_from_the_mark),
                                    SUITE_CASE(recycles_files),
                                    SUITE_CASE(a_whole_journal_has_no_cut_tail),
                                    SUITE_CASE(a_torn_tail_is_the_end),
                                    SUITE_CASE(a_group_with_a_hole_is_a_torn_tail),
                                    SUITE_CASE(a_damaged_middle_is_refused),
                                    SUITE_CASE(a_damaged_end_of_an_earlier_file_is_refused),
                                    SUITE_CASE(a_clean_end_proves_the_last_group),
                                    SUITE_CASE(a_group_takes_the_place_of_a_proof),
                                    SUITE_LOOP(a_proof_under_a_torn_group_changes_nothing, 20),
                                    SUITE_CASE(a_later_file_proves_the_last_group),
                                    SUITE_CASE(a_file_that_is_gone_between_two_is_missed),
                                    SUITE_CASE(a_mark_proves_what_is_before_it),
                                    SUITE_CASE(headers_of_version_1_are_read),
                                    SUITE_CASE(a_missing_file_is_refused),
                                    SUITE_LOOP(a_file_made_ahead_changes_nothing, 20),
                                    SUITE_LOOP(survives_torn_sectors, 40),
                                    SUITE_CASE(survives_any_failure),
                                    SUITE_CASE(refuses_adds_when_no_space_is_left),
                                    SUITE_CASE(does_without_direct_writes),
                                    SUITE_CASE(says_busy_when_the_queue_is_full),
                                    SUITE_CASE(early_writes_do_not_wait_for_the_sync),
                                    SUITE_CASE(a_marker_is_done_and_not_written),
                                    {0}});
}
