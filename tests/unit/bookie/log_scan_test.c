#include "bookie/log_scan.h"

#include <string.h>

#include "bookie/entry_log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"

enum { RECORDS = 200, NAME_MAX_BYTES = 64 };

static struct fake_disk *disk;
static struct entry_place at[RECORDS];
static unsigned n_records;
static bool found[RECORDS];
static unsigned strangers, damages;
static uint64_t first_damage, last_damage;
static uint64_t seed;
#define PATH "logs/0000000000000001.log"

static void append(struct entry_log *l, int64_t ledger, int64_t entry, size_t size)
{
    uint8_t *bytes = mem_alloc(size);
    for (size_t i = 24; i < size; i++)
        bytes[i] = (uint8_t)rng_next(&seed);
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)((uint64_t)ledger >> (56 - 8 * i));
        bytes[8 + i] = (uint8_t)((uint64_t)entry >> (56 - 8 * i));
        bytes[16 + i] = (uint8_t)((uint64_t)(entry - 1) >> (56 - 8 * i));
    }
    ck_assert_int_eq(entry_log_append(l, view_of(bytes, size), &at[n_records++]), ERR_OK);
    mem_free(bytes);
}

static void make_log(unsigned n)
{
    struct entry_log *l;
    disk = fake_disk_new();
    n_records = 0;
    ck_assert_int_eq(entry_log_open(&l, fake_disk_of(disk), "logs", 1 << 30), ERR_OK);
    for (unsigned i = 0; i < n; i++) {
        append(l, i / 20, i % 20, 24 + rng_below(&seed, 300) * rng_below(&seed, 20));
        if (i % 50 == 30)
            ck_assert_int_eq(entry_log_sync(l), ERR_OK);
    }
    ck_assert_int_eq(entry_log_sync(l), ERR_OK);
    entry_log_close(&l);
}

static enum err take(void *ctx, const struct log_record *r)
{
    (void)ctx;
    for (unsigned i = 0; i < n_records; i++) {
        if (at[i].offset != r->offset)
            continue;
        ck_assert_uint_eq(at[i].length, r->bytes.len);
        ck_assert_int_eq(r->ledger, i / 20);
        ck_assert_int_eq(r->entry, i % 20);
        ck_assert_int_eq(r->lac, (int64_t)(i % 20) - 1);
        found[i] = true;
        return ERR_OK;
    }
    strangers++;
    return ERR_OK;
}

static void take_damage(void *ctx, uint64_t from, uint64_t to)
{
    (void)ctx;
    ck_assert_uint_lt(from, to);
    if (damages++ == 0)
        first_damage = from;
    last_damage = to;
}

static enum err scan(struct log_scan *s)
{
    memset(found, 0, sizeof found);
    strangers = damages = 0;
    *s = (struct log_scan){
        .disk = fake_disk_of(disk), .dir = "logs", .log = 1, .record = take, .damage = take_damage};
    const enum err err = log_scan(s);
    log_usage_end(&s->seal);
    return err;
}

static uint64_t end_of(unsigned i)
{
    return at[i].offset + ENTRY_LOG_RECORD + at[i].length;
}

/* All are found but those that touch [from, to), and nothing else is. */
static void check_all_but(uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < n_records; i++)
        ck_assert_msg(found[i] == (end_of(i) <= from || at[i].offset >= to), "record %u", i);
    ck_assert_uint_eq(strangers, 0);
}

START_TEST(finds_every_record)
{
    struct log_scan s;
    seed = 1;
    make_log(RECORDS);
    ck_assert_int_eq(scan(&s), ERR_OK);
    check_all_but(0, 0);
    ck_assert_uint_eq(s.records, RECORDS);
    ck_assert_uint_eq(s.size, ((end_of(RECORDS - 1) + 4095) / 4096 + 1) * 4096);
    ck_assert_uint_eq(damages, 0);
    fake_disk_drop(&disk);
}
END_TEST

START_TEST(damage_costs_what_it_touches_and_no_more)
{
    struct log_scan s;
    seed = (uint64_t)_i + 1;
    make_log(RECORDS);
    const uint64_t end = end_of(RECORDS - 1);
    const uint64_t from = ENTRY_LOG_HEADER + rng_below(&seed, end - ENTRY_LOG_HEADER);
    uint64_t to = from + (_i % 3 == 0 ? 1 : 1 + rng_below(&seed, 5000));
    to = to < end ? to : end;
    for (uint64_t i = from; i < to; i++)
        fake_disk_flip(disk, PATH, i);
    ck_assert_int_eq(scan(&s), ERR_OK);
    check_all_but(from, to);
    ck_assert_uint_eq(damages, 1);
    ck_assert_uint_le(first_damage, from);
    ck_assert_uint_ge(last_damage, to);
    ck_assert_uint_eq(s.damaged_bytes, last_damage - first_damage);
    fake_disk_drop(&disk);
}
END_TEST

START_TEST(each_bit_of_a_head_may_be_wrong)
{
    struct log_scan s;
    seed = 5;
    make_log(12);
    for (unsigned i = 0; i < 12; i++)
        for (unsigned byte = 0; byte < ENTRY_LOG_RECORD; byte++) {
            fake_disk_flip(disk, PATH, at[i].offset + byte);
            ck_assert_int_eq(scan(&s), ERR_OK);
            check_all_but(at[i].offset, end_of(i));
            fake_disk_flip(disk, PATH, at[i].offset + byte);
        }
    fake_disk_drop(&disk);
}
END_TEST

START_TEST(a_cut_log_ends_in_damage)
{
    struct log_scan s;
    struct disk_file *f;
    seed = 3;
    make_log(30);
    struct disk *d = fake_disk_of(disk);
    const uint64_t end = end_of(29);
    ck_assert_int_eq(d->ops->open(d, PATH, DISK_WRITE, &f), ERR_OK);
    for (uint64_t size = end - 1; size > end - 600; size -= 37) {
        ck_assert_int_eq(d->ops->truncate(f, size), ERR_OK);
        ck_assert_int_eq(scan(&s), ERR_OK);
        check_all_but(size, end);
        ck_assert_uint_eq(last_damage, size);
    }
    d->ops->close(&f);
    fake_disk_drop(&disk);
}
END_TEST

/* What a client stored may look like a record: it is none as long as its own record is whole, or
 * the length of that is. */
START_TEST(a_record_in_a_payload_is_none)
{
    struct log_scan s;
    struct entry_log *l;
    struct slab *read;
    size_t got;
    seed = 2;
    make_log(3);
    struct disk *d = fake_disk_of(disk);
    ck_assert_int_eq(entry_log_open(&l, d, "logs", 1 << 30), ERR_OK);
    ck_assert_int_eq(entry_log_read(l, &at[1], 0, &read, &got), ERR_OK);
    const size_t inner = ENTRY_LOG_RECORD + (size_t)at[1].length, size = 24 + inner + 10;
    uint8_t *outer = mem_alloc(size);
    memcpy(outer + 24, slab_bytes(read), inner);
    slab_drop(&read);
    struct entry_place first, second;
    ck_assert_int_eq(entry_log_append(l, view_of(outer, size), &first), ERR_OK);
    ck_assert_int_eq(entry_log_append(l, view_of(outer, size), &second), ERR_OK);
    ck_assert_int_eq(entry_log_sync(l), ERR_OK);
    entry_log_close(&l);
    mem_free(outer);
    fake_disk_flip(disk, "logs/0000000000000002.log", first.offset + ENTRY_LOG_RECORD + 20);
    s = (struct log_scan){.disk = d, .dir = "logs", .log = 2, .record = take};
    strangers = 0;
    ck_assert_int_eq(log_scan(&s), ERR_OK);
    log_usage_end(&s.seal);
    ck_assert_uint_eq(s.records, 1);
    fake_disk_drop(&disk);
}
END_TEST

START_TEST(a_damaged_header_is_damage)
{
    struct log_scan s;
    seed = 4;
    make_log(10);
    fake_disk_flip(disk, PATH, 9);
    ck_assert_int_eq(scan(&s), ERR_OK);
    check_all_but(0, 0);
    ck_assert_uint_eq(damages, 1);
    ck_assert_uint_eq(last_damage, ENTRY_LOG_HEADER);
    fake_disk_drop(&disk);
}
END_TEST

START_TEST(what_cannot_be_read_is_damage)
{
    struct log_scan s;
    seed = 6;
    make_log(RECORDS);
    fake_disk_fail(disk, FAKE_READ, 2, 2); /* behind the seal: a window, and its first page */
    ck_assert_int_eq(scan(&s), ERR_OK);
    ck_assert_uint_eq(strangers, 0);
    ck_assert_uint_ge(damages, 1);
    ck_assert_uint_gt(s.records, 0);
    fake_disk_drop(&disk);
}
END_TEST

int main(void)
{
    return suite_run("log_scan",
                     (suite_case[]){SUITE_CASE(finds_every_record),
                                    SUITE_LOOP(damage_costs_what_it_touches_and_no_more, 60),
                                    SUITE_CASE(each_bit_of_a_head_may_be_wrong),
                                    SUITE_CASE(a_cut_log_ends_in_damage),
                                    SUITE_CASE(a_record_in_a_payload_is_none),
                                    SUITE_CASE(a_damaged_header_is_damage),
                                    SUITE_CASE(what_cannot_be_read_is_damage),
                                    {0}});
}
