/* verify_test.c - the judge of `lgm verify`: every fault is seen, and what is none is not. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/verify_judge.h"
#include "cli/verify_record.h"
#include "common/crc32c.h"
#include "tests/lib/suite.h"

enum { SIZE = 128, COUNT = 10 };

static char folder[64], path[128];
static char records[COUNT + 1][SIZE];

static void setup_log(const char *lines)
{
    snprintf(folder, sizeof folder, "/tmp/lgm-verify-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/log", folder);
    FILE *f = fopen(path, "w");
    fprintf(f, "lgm-verify-log 1 run=00000000000000aa count=%d topic=t\n%s", COUNT, lines);
    fclose(f);
    struct verify_record r = {.run = "00000000000000aa"};
    for (r.seq = 0; r.seq <= COUNT; r.seq++) {
        verify_record_write(&r, records[r.seq], SIZE);
        r.before = crc32c(records[r.seq], SIZE);
    }
}

static void saw(struct judge *j, unsigned seq, int64_t entry)
{
    struct verify_record r;
    ck_assert_int_eq(verify_record_read(view_of(records[seq], SIZE), &r), ERR_OK);
    judge_saw(j, &r, crc32c(records[seq], SIZE), (struct message_id){.ledger = 1, .entry = entry});
}

static struct verdict judge(struct judge *j)
{
    struct verify_evidence e;
    ck_assert_int_eq(verify_evidence_open(&e, path), ERR_OK);
    struct verdict v = judge_verdict(j, &e);
    verify_evidence_drop(&e);
    judge_drop(&j);
    unlink(path);
    rmdir(folder);
    return v;
}

START_TEST(all_well)
{
    setup_log("A 0 1:0:-1\nA 1 1:1:-1\nE 2 10\n");
    struct judge *j = judge_new();
    for (unsigned i = 0; i < COUNT; i++)
        saw(j, i, i);
    struct verdict v = judge(j);
    ck_assert_uint_eq(v.lost + v.duplicated + v.reordered + v.resent + v.redelivered + v.corrupt,
                      0);
    ck_assert_uint_eq(v.checked, COUNT);
}
END_TEST

START_TEST(lost)
{
    setup_log("A 0 1:0:-1\nA 5 1:5:-1\nA 7 1:7:-1");
    struct judge *j = judge_new();
    saw(j, 0, 0);
    struct verdict v = judge(j);
    ck_assert_uint_eq(v.lost, 1); /* 5; the line of 7 is torn, and 3 was never acknowledged */
}
END_TEST

START_TEST(duplicated_and_resent)
{
    setup_log("R 2\nA 2 1:2:-1\n");
    struct judge *j = judge_new();
    saw(j, 1, 1);
    saw(j, 2, 2);
    saw(j, 1, 3);
    saw(j, 2, 4);
    struct verdict v = judge(j);
    ck_assert_uint_eq(v.duplicated, 1);
    ck_assert_uint_eq(v.resent, 1);
    ck_assert_uint_eq(v.reordered, 0);
}
END_TEST

START_TEST(redelivered)
{
    setup_log("");
    struct judge *j = judge_new();
    saw(j, 0, 0);
    saw(j, 1, 1);
    saw(j, 0, 0);
    saw(j, 1, 1);
    struct verdict v = judge(j);
    ck_assert_uint_eq(v.redelivered, 2);
    ck_assert_uint_eq(v.duplicated + v.reordered, 0);
}
END_TEST

START_TEST(reordered)
{
    setup_log("");
    struct judge *j = judge_new();
    saw(j, 0, 0);
    saw(j, 2, 1);
    saw(j, 1, 2);
    ck_assert_uint_eq(judge(j).reordered, 1);
}
END_TEST

START_TEST(a_broken_chain)
{
    setup_log("");
    struct judge *j = judge_new();
    saw(j, 0, 0);
    struct verify_record other = {.run = "00000000000000aa", .seq = 1, .before = 0x12345678};
    verify_record_write(&other, records[1], SIZE);
    saw(j, 1, 1);
    struct verdict v = judge(j);
    ck_assert_uint_eq(v.corrupt, 1);
    ck_assert_uint_eq(v.lost, 1);
}
END_TEST

START_TEST(a_changed_record)
{
    struct verify_record r;
    setup_log("");
    records[3][100] ^= 1;
    ck_assert_int_eq(verify_record_read(view_of(records[3], SIZE), &r), ERR_CHECKSUM);
    ck_assert_int_eq(verify_record_read(view_of("hello", 5), &r), ERR_NOT_FOUND);
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(the_log_that_grows)
{
    struct verify_evidence e;
    setup_log("A 0 1:0:-1\nA 1");
    ck_assert_int_eq(verify_evidence_open(&e, path), ERR_OK);
    ck_assert_uint_eq(e.acked, 1);
    FILE *f = fopen(path, "a");
    fputs(" 1:1:-1\nE 2 5\n", f);
    fclose(f);
    verify_evidence_more(&e);
    ck_assert_uint_eq(e.acked, 2);
    ck_assert(e.ended);
    ck_assert_uint_eq(e.count, 5);
    verify_evidence_drop(&e);
    unlink(path);
    rmdir(folder);
}
END_TEST

int main(void)
{
    return suite_run("verify", (suite_case[]){SUITE_CASE(all_well),
                                              SUITE_CASE(lost),
                                              SUITE_CASE(duplicated_and_resent),
                                              SUITE_CASE(redelivered),
                                              SUITE_CASE(reordered),
                                              SUITE_CASE(a_broken_chain),
                                              SUITE_CASE(a_changed_record),
                                              SUITE_CASE(the_log_that_grows),
                                              {0}});
}
