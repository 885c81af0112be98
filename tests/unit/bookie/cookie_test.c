#include "bookie/cookie.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/paths.h"
#include "tests/lib/fake_disk.h"
#include "tests/lib/suite.h"

static struct fake_disk *disk;
static struct metadata *meta;
static const char *dirs[] = {"j/current", "l/current", "m/current", "i/current"};
static const char *roots[] = {"j", "l", "m", "i"};
static struct cookie_conf conf;

static void begin(void)
{
    disk = fake_disk_new();
    ck_assert_int_eq(meta_memory_open(&meta), ERR_OK);
    conf = (struct cookie_conf){
        .bookie_id = "b1",
        .instance_id = "cluster-1",
        .named = {.journals = {{"j"}, 1}, .ledgers = {{"l"}, 1}, .indexes = {{"l"}, 1}},
        .roots = roots,
        .dirs = dirs,
        .n = 2};
    struct disk *d = fake_disk_of(disk);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(d->ops->mkdir(d, dirs[i]), ERR_OK);
}

static void end(void)
{
    meta_close(&meta);
    fake_disk_drop(&disk);
}

static enum err check(void)
{
    return cookie_check(&conf, fake_disk_of(disk), meta);
}

static void put_file(const char *path)
{
    ck_assert_int_eq(disk_store(fake_disk_of(disk), path, "x", 1), ERR_OK);
}

static void remove_file(const char *path)
{
    struct disk *d = fake_disk_of(disk);
    ck_assert_int_eq(d->ops->remove(d, path), ERR_OK);
}

static void forget_registration(void)
{
    meta_close(&meta);
    ck_assert_int_eq(meta_memory_open(&meta), ERR_OK);
}

START_TEST(a_first_start_stamps_and_the_next_ones_match)
{
    begin();
    ck_assert_int_eq(check(), ERR_OK);
    put_file("l/current/0001.log");
    ck_assert_int_eq(check(), ERR_OK);
    fake_disk_crash(disk); /* what was stamped is durable */
    ck_assert_int_eq(check(), ERR_OK);
    end();
}
END_TEST

START_TEST(whatever_differs_is_refused)
{
    begin();
    ck_assert_int_eq(check(), ERR_OK);
    const struct cookie_conf right = conf;
    conf.instance_id = "cluster-2";
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    conf = right;
    conf.named.journals.at[0] = "elsewhere";
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    conf = right;
    conf.named.ledgers.at[0] = "elsewhere";
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    conf = right;
    conf.bookie_id = "b2"; /* the cluster knows no b2, and the directories are b1's */
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    conf = right;
    ck_assert_int_eq(check(), ERR_OK);
    end();
}
END_TEST

START_TEST(a_directory_that_lost_its_cookie_is_refused)
{
    begin();
    ck_assert_int_eq(check(), ERR_OK);
    remove_file("j/current/VERSION");
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    end();
}
END_TEST

START_TEST(a_bookie_that_was_decommissioned_is_refused)
{
    begin();
    ck_assert_int_eq(check(), ERR_OK);
    put_file("l/current/0001.log");
    forget_registration();
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    end();
}
END_TEST

START_TEST(data_without_a_cookie_is_refused)
{
    begin();
    put_file("l/current/0001.log");
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    end();
}
END_TEST

/* ---- several directories --------------------------------------------------------------------- */

static void grow(void)
{
    conf.named.ledgers = (struct directory_list){{"l", "m"}, 2};
    conf.named.indexes = (struct directory_list){{"l", "m"}, 2};
    conf.n = 3;
}

/* What an older build wrote: the lists as they were configured. */
START_TEST(a_cookie_of_an_older_build_is_this_bookies)
{
    begin();
    static const char text[] = "5\nbookieHost: \"b1\"\njournalDir: \"j\"\nledgerDirs: \"l\"\n"
                               "instanceId: \"cluster-1\"\n# incarnation: 00ff\n";
    struct disk *d = fake_disk_of(disk);
    for (unsigned i = 0; i < 2; i++) {
        char *path = mem_format("%s/VERSION", dirs[i]);
        ck_assert_int_eq(disk_store(d, path, text, strlen(text)), ERR_OK);
        mem_free(path);
    }
    char key[META_KEY_MAX];
    ck_assert_int_eq(path_cookie("b1", key), ERR_OK);
    ck_assert_int_eq(meta_put_wait(meta, key, slice_copy(text, strlen(text)), META_ABSENT), ERR_OK);
    ck_assert_int_eq(check(), ERR_OK);
    conf.may_expand = true;
    grow();
    ck_assert_int_eq(check(), ERR_OK);
    end();
}
END_TEST

START_TEST(directories_are_named_as_bookkeeper_names_them)
{
    struct slice value;
    int64_t version;
    char key[META_KEY_MAX];
    begin();
    grow();
    conf.named.journals = (struct directory_list){{"j", "i"}, 2};
    conf.named.indexes = (struct directory_list){{"l", "i"}, 2};
    conf.n = 4;
    ck_assert_int_eq(check(), ERR_OK);
    ck_assert_int_eq(path_cookie("b1", key), ERR_OK);
    ck_assert_int_eq(meta_get_wait(meta, key, &value, &version), ERR_OK);
    char *text = mem_string_n((const char *)value.base, value.len);
    ck_assert_ptr_nonnull(strstr(text, "journalDir: \"j,i\"\nledgerDirs: \"2\\tl\\tm\"\n"));
    ck_assert_ptr_nonnull(strstr(text, "indexDirs: \"2\\tl\\ti\"\n"));
    mem_free(text);
    slice_drop(&value);
    ck_assert_int_eq(check(), ERR_OK);
    end();
}
END_TEST

START_TEST(directories_are_added_only_when_that_is_allowed)
{
    begin();
    ck_assert_int_eq(check(), ERR_OK);
    put_file("l/current/0001.log");
    const struct cookie_conf before = conf;
    grow();
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    conf.may_expand = true;
    put_file("m/current/0001.log"); /* somebody's */
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    remove_file("m/current/0001.log");
    ck_assert_int_eq(check(), ERR_OK);
    fake_disk_crash(disk);
    conf.may_expand = false;
    ck_assert_int_eq(check(), ERR_OK);
    const struct cookie_conf grown = conf;
    conf = before; /* and none may be left out again */
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    conf.may_expand = true;
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    conf = grown;
    conf.may_expand = true;
    remove_file("m/current/VERSION"); /* known by now, so it was wiped */
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    end();
}
END_TEST

START_TEST(the_order_of_directories_does_not_matter)
{
    begin();
    grow();
    ck_assert_int_eq(check(), ERR_OK);
    conf.named.ledgers = (struct directory_list){{"m", "l"}, 2};
    conf.named.indexes = (struct directory_list){{"m", "l"}, 2};
    ck_assert_int_eq(check(), ERR_OK);
    conf.named.indexes = (struct directory_list){{"l", "m"}, 2}; /* but that is each other's */
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    end();
}
END_TEST

/* Cut short anywhere, it can be done again, and can be left undone. */
START_TEST(adding_directories_may_be_cut_short)
{
    for (unsigned after = 0;; after++) {
        begin();
        ck_assert_int_eq(check(), ERR_OK);
        const struct cookie_conf before = conf;
        grow();
        conf.may_expand = true;
        const unsigned calls = fake_disk_calls(disk, FAKE_ANY);
        fake_disk_fail(disk, FAKE_ANY, after, UINT32_MAX);
        const enum err err = check();
        const bool untouched = fake_disk_calls(disk, FAKE_ANY) - calls <= after;
        fake_disk_fail(disk, FAKE_ANY, 0, 0);
        fake_disk_crash(disk);
        ck_assert(!untouched || err == ERR_OK);
        const struct cookie_conf grown = conf;
        conf = before;
        ck_assert_int_eq(check(), err ? ERR_OK : ERR_NOT_ALLOWED);
        conf = grown;
        ck_assert_int_eq(check(), ERR_OK);
        end();
        if (untouched)
            return;
    }
}
END_TEST

/* Another incarnation of the same bookie registered meanwhile. */
START_TEST(an_older_incarnation_is_refused)
{
    char *text;
    size_t len;
    begin();
    ck_assert_int_eq(check(), ERR_OK);
    ck_assert_int_eq(disk_load(fake_disk_of(disk), "j/current/VERSION", 4096, &text, &len), ERR_OK);
    forget_registration();
    remove_file("j/current/VERSION");
    remove_file("l/current/VERSION");
    ck_assert_int_eq(check(), ERR_OK);
    ck_assert_int_eq(disk_store(fake_disk_of(disk), "j/current/VERSION", text, len), ERR_OK);
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    mem_free(text);
    end();
}
END_TEST

START_TEST(rubbish_is_refused)
{
    begin();
    put_file("j/current/VERSION");
    ck_assert_int_eq(check(), ERR_NOT_ALLOWED);
    end();
}
END_TEST

/* A first start that is cut short anywhere can be done again. */
START_TEST(a_first_start_may_be_cut_short)
{
    for (unsigned after = 0;; after++) {
        begin();
        const unsigned before = fake_disk_calls(disk, FAKE_ANY);
        fake_disk_fail(disk, FAKE_ANY, after, 1);
        const enum err err = check();
        const bool untouched = fake_disk_calls(disk, FAKE_ANY) - before <= after;
        fake_disk_fail(disk, FAKE_ANY, 0, 0);
        ck_assert(!untouched || err == ERR_OK);
        ck_assert_int_eq(check(), ERR_OK);
        end();
        if (untouched)
            return;
    }
}
END_TEST

int main(void)
{
    return suite_run("cookie",
                     (suite_case[]){SUITE_CASE(a_first_start_stamps_and_the_next_ones_match),
                                    SUITE_CASE(whatever_differs_is_refused),
                                    SUITE_CASE(a_directory_that_lost_its_cookie_is_refused),
                                    SUITE_CASE(a_bookie_that_was_decommissioned_is_refused),
                                    SUITE_CASE(data_without_a_cookie_is_refused),
                                    SUITE_CASE(a_cookie_of_an_older_build_is_this_bookies),
                                    SUITE_CASE(directories_are_named_as_bookkeeper_names_them),
                                    SUITE_CASE(directories_are_added_only_when_that_is_allowed),
                                    SUITE_CASE(the_order_of_directories_does_not_matter),
                                    SUITE_CASE(adding_directories_may_be_cut_short),
                                    SUITE_CASE(an_older_incarnation_is_refused),
                                    SUITE_CASE(rubbish_is_refused),
                                    SUITE_CASE(a_first_start_may_be_cut_short),
                                    {0}});
}
