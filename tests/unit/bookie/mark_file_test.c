#include "bookie/mark_file.h"

#include <string.h>

#include "bookie/bytes.h"
#include "common/crc32c.h"
#include "common/mem.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"

static struct fake_disk *disk;
static const char *const journals[] = {"/j1/current", "/j2/current", "/j3/current"};
static const struct journal_mark a = {7, 8192, 100}, b = {1ULL << 40, 4096, 1ULL << 50};

static void begin(void)
{
    disk = fake_disk_new();
}

static void end(void)
{
    fake_disk_drop(&disk);
}

static enum err load(const char *const *names, unsigned n, struct marks *out)
{
    return marks_load(fake_disk_of(disk), "mark", names, n, out);
}

static bool same(const struct journal_mark *x, const struct journal_mark *y)
{
    return x->file == y->file && x->offset == y->offset && x->sequence == y->sequence;
}

static const struct journal_mark nothing = {0, 4096, 1};

START_TEST(without_a_file_all_is_replayed)
{
    struct marks m;
    begin();
    ck_assert_int_eq(load(journals, 3, &m), ERR_OK);
    ck_assert(!m.is_there);
    for (unsigned j = 0; j < 3; j++)
        ck_assert(same(&m.of[j], &nothing));
    end();
}
END_TEST

/* By name and not by place. */
START_TEST(each_journal_finds_its_own)
{
    static const char *const turned[] = {journals[2], journals[1], journals[0]};
    const struct marks out = {.index = 42, .of = {a, b}};
    struct marks in;
    begin();
    ck_assert_int_eq(marks_store(fake_disk_of(disk), "mark", journals, 2, &out), ERR_OK);
    fake_disk_crash(disk);
    ck_assert_int_eq(load(turned, 3, &in), ERR_OK);
    ck_assert(in.is_there);
    ck_assert_uint_eq(in.index, 42);
    ck_assert(same(&in.of[2], &a));
    ck_assert(same(&in.of[1], &b));
    ck_assert(same(&in.of[0], &nothing)); /* one that was added */
    ck_assert_int_eq(load(journals, 1, &in), ERR_NOT_ALLOWED);
    end();
}
END_TEST

START_TEST(damage_is_noticed_wherever_it_is)
{
    const struct marks out = {.index = 42, .of = {a, b}};
    struct marks in;
    begin();
    ck_assert_int_eq(marks_store(fake_disk_of(disk), "mark", journals, 2, &out), ERR_OK);
    for (unsigned at = 0; at < 24 + 2 * (28 + 11); at++) {
        fake_disk_flip(disk, "mark", at);
        ck_assert_int_ne(load(journals, 2, &in), ERR_OK);
        fake_disk_flip(disk, "mark", at);
    }
    ck_assert_int_eq(load(journals, 2, &in), ERR_OK);
    end();
}
END_TEST

static void store_old(unsigned version, size_t size)
{
    uint8_t bytes[44];
    memcpy(bytes, "LGMM", 4);
    put_u32(bytes + 4, version << 16 | version);
    put_u64(bytes + 8, a.file);
    put_u64(bytes + 16, a.offset);
    put_u64(bytes + 24, a.sequence);
    put_u64(bytes + 32, 42);
    put_u32(bytes + size - 4, crc32c(bytes, size - 4));
    ck_assert_int_eq(disk_store(fake_disk_of(disk), "mark", bytes, size), ERR_OK);
}

START_TEST(marks_of_one_journal_are_read)
{
    struct marks m;
    begin();
    store_old(2, 44);
    ck_assert_int_eq(load(journals, 2, &m), ERR_OK);
    ck_assert(m.is_there);
    ck_assert(same(&m.of[0], &a));
    ck_assert(same(&m.of[1], &nothing));
    ck_assert_uint_eq(m.index, 42);
    store_old(1, 36);
    ck_assert_int_eq(load(journals, 1, &m), ERR_OK);
    ck_assert(same(&m.of[0], &a));
    ck_assert_uint_eq(m.index, 0);
    end();
}
END_TEST

START_TEST(a_newer_form_is_refused)
{
    uint8_t bytes[24] = {'L', 'G', 'M', 'M', 0, 9, 0, 9};
    struct marks m;
    begin();
    ck_assert_int_eq(disk_store(fake_disk_of(disk), "mark", bytes, sizeof bytes), ERR_OK);
    ck_assert_int_eq(load(journals, 1, &m), ERR_UNSUPPORTED_VERSION);
    end();
}
END_TEST

int main(void)
{
    return suite_run("mark_file", (suite_case[]){SUITE_CASE(without_a_file_all_is_replayed),
                                                 SUITE_CASE(each_journal_finds_its_own),
                                                 SUITE_CASE(damage_is_noticed_wherever_it_is),
                                                 SUITE_CASE(marks_of_one_journal_are_read),
                                                 SUITE_CASE(a_newer_form_is_refused),
                                                 {0}});
}
