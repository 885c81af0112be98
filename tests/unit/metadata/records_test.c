#include "metadata/records.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "proto/compress.h"
#include "proto/wire.h"
#include "tests/lib/suite.h"

static struct view text(const char *s)
{
    return view_of(s, strlen(s));
}

/* ---- managed ledgers ------------------------------------------------------------------------ */

/* One ledger 5 with 10 entries, and a field that this version does not know. */
static const char ledgers[] = "\x0a\x04\x08\x05\x10\x0a\xa0\x06\x07";

static struct slice wrap(enum compression how, struct view plain, size_t size)
{
    struct slice packed;
    uint8_t head[] = {0x08, (uint8_t)how, 0x10, (uint8_t)size};

    ck_assert_int_eq(compress_with(how, plain, &packed), ERR_OK);
    struct slab *slab = slab_new(6 + sizeof head + packed.len);
    struct writer w = {.base = slab_bytes(slab), .room = slab_size(slab)};
    write_u16(&w, 0x4778);
    write_u32(&w, sizeof head);
    write_bytes(&w, head, sizeof head);
    write_bytes(&w, packed.base, packed.len);
    slice_drop(&packed);
    return slice_take(&slab, w.len);
}

START_TEST(managed_ledgers_come_back)
{
    struct view plain = view_of(ledgers, sizeof ledgers - 1);
    ManagedLedger__ManagedLedgerInfo *m;

    ck_assert_int_eq(managed_ledger_record_read(plain, &m), ERR_OK);
    ck_assert_uint_eq(m->n_ledgerinfo, 1);
    ck_assert_int_eq(m->ledgerinfo[0]->ledgerid, 5);
    ck_assert_int_eq(m->ledgerinfo[0]->entries, 10);
    struct slice s = managed_ledger_record_write(m);
    ck_assert_uint_eq(s.len, plain.len);
    ck_assert_mem_eq(s.base, plain.base, plain.len);
    slice_drop(&s);
    managed_ledger__managed_ledger_info__free_unpacked(m, NULL);
}
END_TEST

START_TEST(an_empty_managed_ledger_has_no_ledgers)
{
    ManagedLedger__ManagedLedgerInfo *m;
    ManagedLedger__ManagedCursorInfo *c;

    ck_assert_int_eq(managed_ledger_record_read((struct view){0}, &m), ERR_OK);
    ck_assert_uint_eq(m->n_ledgerinfo, 0);
    struct slice s = managed_ledger_record_write(m);
    ck_assert_uint_eq(s.len, 0);
    slice_drop(&s);
    managed_ledger__managed_ledger_info__free_unpacked(m, NULL);
    ck_assert_int_eq(cursor_record_read((struct view){0}, &c), ERR_MALFORMED);
}
END_TEST

START_TEST(compressed_managed_ledgers_are_read)
{
    struct view plain = view_of(ledgers, sizeof ledgers - 1);
    struct slice s = wrap((enum compression)_i, plain, plain.len);
    struct slice lie = wrap((enum compression)_i, plain, plain.len + 1);
    ManagedLedger__ManagedLedgerInfo *m;

    ck_assert_int_eq(managed_ledger_record_read(slice_view(s), &m), ERR_OK);
    ck_assert_int_eq(m->ledgerinfo[0]->ledgerid, 5);
    managed_ledger__managed_ledger_info__free_unpacked(m, NULL);
    ck_assert_int_eq(managed_ledger_record_read(slice_view(lie), &m), ERR_MALFORMED);
    for (size_t n = 1; n < s.len; n++) {
        uint8_t *cut = mem_alloc(n);
        memcpy(cut, s.base, n);
        ck_assert_int_ne(managed_ledger_record_read(view_of(cut, n), &m), ERR_OK);
        mem_free(cut);
    }
    slice_drop(&s);
    slice_drop(&lie);
}
END_TEST

START_TEST(compressed_cursors_are_read)
{
    /* Ledger -1, mark-delete 3:7. */
    static const char cursor[] = "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x03\x18\x07";
    struct view plain = view_of(cursor, sizeof cursor - 1);
    struct slice s = wrap(COMPRESS_LZ4, plain, plain.len);
    ManagedLedger__ManagedCursorInfo *c;

    ck_assert_int_eq(cursor_record_read(slice_view(s), &c), ERR_OK);
    ck_assert_int_eq(c->cursorsledgerid, -1);
    ck_assert_int_eq(c->markdeleteentryid, 7);
    struct slice again = cursor_record_write(c);
    ck_assert_uint_eq(again.len, plain.len);
    ck_assert_mem_eq(again.base, plain.base, plain.len);
    slice_drop(&again);
    slice_drop(&s);
    managed_ledger__managed_cursor_info__free_unpacked(c, NULL);
}
END_TEST

START_TEST(hostile_wrappings_are_refused)
{
    static const struct {
        const char *bytes;
        size_t len;
    } all[] = {
#define BYTES(s) {s, sizeof(s) - 1}
        BYTES("\x47\x78"),
        BYTES("\x47\x78\xff\xff\xff\xff"),
        BYTES("\x47\x78\x00\x00\x00\x00"),
        BYTES("\x47\x78\x00\x00\x00\x04\x08\x07\x10\x00"),
        BYTES("\x47\x78\x00\x00\x00\x08\x08\x01\x10\xff\xff\xff\xff\x07xxxx"),
        BYTES("\x47\x78\x00\x00\x00\x0d\x08\x03\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"),
        BYTES("\x47\x78\x00\x00\x00\x04\x08\x02\x10\x10not zlib"),
    };
    ManagedLedger__ManagedLedgerInfo *m;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ck_assert_int_ne(managed_ledger_record_read(view_of(all[i].bytes, all[i].len), &m), ERR_OK);
}
END_TEST

/* Field number 0 in a tag of two bytes, at the top and inside a ledger. */
START_TEST(what_could_not_be_read_again_is_refused)
{
    static const struct view all[] = {{(const uint8_t *)"\x80\x00\x00", 3},
                                      {(const uint8_t *)"\x0a\x05\x08\x05\x80\x00\x00", 7}};
    ManagedLedger__ManagedLedgerInfo *m;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ck_assert_int_eq(managed_ledger_record_read(all[i], &m), ERR_MALFORMED);
}
END_TEST

/* ---- bookies -------------------------------------------------------------------------------- */

START_TEST(bookies_say_where_they_are)
{
    char host[] = "10.0.0.1", http_host[] = "10.0.0.2";
    struct bookie_record r = {host, 3181, http_host, 8000}, back;
    struct slice s = bookie_record_write("b-1", &r);

    ck_assert_int_eq(bookie_record_read("b-1", slice_view(s), &back), ERR_OK);
    ck_assert_str_eq(back.host, "10.0.0.1");
    ck_assert_int_eq(back.port, 3181);
    ck_assert_str_eq(back.http_host, "10.0.0.2");
    ck_assert_int_eq(back.http_port, 8000);
    bookie_record_drop(&back);
    slice_drop(&s);
    r.http_host = NULL;
    s = bookie_record_write("b-1", &r);
    ck_assert_int_eq(bookie_record_read("b-1", slice_view(s), &back), ERR_OK);
    ck_assert_ptr_null(back.http_host);
    bookie_record_drop(&back);
    slice_drop(&s);
}
END_TEST

START_TEST(bookie_bytes_are_bookkeepers)
{
    static const char bytes[] = "\x32\x17\x0a\x03h:1\x10\xed\x18\x1a\x01h\x22\x0a"
                                "bookie-rpc";
    char host[] = "h";
    struct bookie_record r = {.host = host, .port = 3181};
    struct slice s = bookie_record_write("h:1", &r);

    ck_assert_uint_eq(s.len, sizeof bytes - 1);
    ck_assert_mem_eq(s.base, bytes, s.len);
    slice_drop(&s);
}
END_TEST

START_TEST(old_bookies_are_their_ids)
{
    struct bookie_record r;

    ck_assert_int_eq(bookie_record_read("h.example:3181", (struct view){0}, &r), ERR_OK);
    ck_assert_str_eq(r.host, "h.example");
    ck_assert_int_eq(r.port, 3181);
    bookie_record_drop(&r);
    ck_assert_int_eq(bookie_record_read("no-port", (struct view){0}, &r), ERR_MALFORMED);
    ck_assert_int_eq(bookie_record_read("h:1", text("\x32\x01"), &r), ERR_MALFORMED);
    ck_assert_int_eq(bookie_record_read("h:1", text("\x3a\x01"), &r), ERR_MALFORMED);
    ck_assert_int_eq(
        bookie_record_read("h:1", text("\x32\x13\x0a\x01i\x10\x01\x1a\x01h\x22\x08telegram"), &r),
        ERR_MALFORMED);
}
END_TEST

/* ---- cookies -------------------------------------------------------------------------------- */

START_TEST(cookies_come_back)
{
    char id[] = "h:3181", journal[] = "/j \"1\",/j\\2", dirs[] = "2\t/l1\t/l\xc3\xa9",
         instance[] = "3f2b", incarnation[] = "00ff";
    struct cookie_record r = {id, journal, dirs, instance, incarnation, dirs}, back;
    struct slice s = cookie_record_write(&r);

    ck_assert_int_eq(cookie_record_read(slice_view(s), &back), ERR_OK);
    ck_assert_str_eq(back.bookie_id, id);
    ck_assert_str_eq(back.journal_dirs, journal);
    ck_assert_str_eq(back.ledger_dirs, dirs);
    ck_assert_str_eq(back.instance_id, instance);
    ck_assert_str_eq(back.incarnation, incarnation);
    ck_assert_str_eq(back.index_dirs, dirs);
    cookie_record_drop(&back);
    slice_drop(&s);
}
END_TEST

START_TEST(cookie_text_is_bookkeepers)
{
    char id[] = "h:3181", journal[] = "/j", dirs[] = "1\t/l", instance[] = "i";
    struct cookie_record r = {id, journal, dirs, instance, NULL, NULL};
    static const char expected[] = "5\nbookieHost: \"h:3181\"\njournalDir: \"/j\"\n"
                                   "ledgerDirs: \"1\\t/l\"\ninstanceId: \"i\"\n";
    struct slice s = cookie_record_write(&r);

    ck_assert_uint_eq(s.len, strlen(expected));
    ck_assert_mem_eq(s.base, expected, s.len);
    slice_drop(&s);
    r.instance_id = NULL;
    s = cookie_record_write(&r);
    ck_assert_uint_lt(s.len, strlen(expected));
    slice_drop(&s);
}
END_TEST

START_TEST(other_cookies_are_read_or_refused)
{
    struct cookie_record r;

    ck_assert_int_eq(cookie_record_read(text("4\nbookieHost: \"h\" journalDir: '# incarnation: no' "
                                             "ledgerDirs: \"l\" indexDirs: \"i\" x { y: 1 }"),
                                        &r),
                     ERR_OK);
    ck_assert_ptr_null(r.incarnation);
    ck_assert_ptr_null(r.instance_id);
    ck_assert_str_eq(r.index_dirs, "i");
    ck_assert_str_eq(r.journal_dirs, "# incarnation: no");
    cookie_record_drop(&r);
    ck_assert_int_eq(cookie_record_read(text(""), &r), ERR_MALFORMED);
    ck_assert_int_eq(cookie_record_read(text("3\nh\nj\n1\tl\n"), &r), ERR_UNSUPPORTED_VERSION);
    ck_assert_int_eq(cookie_record_read(text("55\n"), &r), ERR_UNSUPPORTED_VERSION);
    ck_assert_int_eq(cookie_record_read(text("5\nbookieHost: \"h\"\n"), &r), ERR_MALFORMED);
    ck_assert_int_eq(cookie_record_read(text("5\nbookieHost: \"h\n"), &r), ERR_MALFORMED);
    ck_assert_int_eq(cookie_record_read(text("5\nbookieHost: 7\n"), &r), ERR_MALFORMED);
    ck_assert_int_eq(cookie_record_read(text("5\nbookieHost: \"a\" bookieHost: \"b\" oops"), &r),
                     ERR_MALFORMED);
    ck_assert_ptr_null(r.bookie_id);
}
END_TEST

/* ---- partitioned topics --------------------------------------------------------------------- */

START_TEST(partitions_come_back)
{
    static const struct {
        const char *json;
        enum err err;
        int32_t n;
    } all[] = {
        {"{\"partitions\":12,\"deleted\":false,\"properties\":{}}", ERR_OK, 12},
        {"{\"partitions\":2147483647}", ERR_OK, 2147483647},
        {"{}", ERR_OK, 0},
        {"", ERR_MALFORMED, 0},
        {"[]", ERR_MALFORMED, 0},
        {"{\"partitions\":-1}", ERR_MALFORMED, 0},
        {"{\"partitions\":2147483648}", ERR_MALFORMED, 0},
        {"{\"partitions\":\"4\"}", ERR_MALFORMED, 0},
        {"{\"partitions\":1.5}", ERR_MALFORMED, 0},
        {"{\"partitions\":4", ERR_MALFORMED, 0},
        {"{\"partitions\":4} x", ERR_MALFORMED, 0},
    };
    int32_t n = -1;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        enum err e = partitioned_record_read(text(all[i].json), &n);
        ck_assert_msg(e == all[i].err, "%s: %s", all[i].json, err_name(e));
        if (!e)
            ck_assert_int_eq(n, all[i].n);
    }
    struct slice s = partitioned_record_write(12);
    ck_assert_uint_eq(s.len, strlen(all[0].json));
    ck_assert_mem_eq(s.base, all[0].json, s.len);
    slice_drop(&s);
}
END_TEST

/* ---- racks ---------------------------------------------------------------------------------- */

static void note_place(void *ctx, const struct bookie_place *p)
{
    char *all = ctx;

    snprintf(all + strlen(all), 200 - strlen(all), "%s %s %s\n", p->group, p->bookie, p->rack);
}

START_TEST(racks_are_read)
{
    static const struct {
        const char *json, *places;
    } all[] = {
        {"{\"default\":{\"b1:3181\":{\"rack\":\"/r/"
         "1\",\"hostname\":\"b1\"},\"b2:3181\":{\"rack\":null}},"
         "\"gold\":{\"b3:3181\":{\"rack\":\"2\"}}}",
         "default b1:3181 /r/1\ndefault b2:3181 \ngold b3:3181 2\n"},
        {"{}", ""},
        {"", ""},
        {"{\"default\":[],\"x\":{\"b1\":7}}", ""},
    };
    static const char *const bad[] = {"[]", "7", "{", "{} x"};
    char places[200];

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        places[0] = '\0';
        ck_assert(bookie_racks_read(text(all[i].json), note_place, places) == ERR_OK);
        ck_assert_str_eq(places, all[i].places);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        places[0] = '\0';
        ck_assert_msg(bookie_racks_read(text(bad[i]), note_place, places) == ERR_MALFORMED, "%s",
                      bad[i]);
        ck_assert_str_eq(places, "");
    }
}
END_TEST

/* As Jackson writes it, whatever the order. */
START_TEST(groups_are_read_and_written)
{
#define POLICY "org.apache.pulsar.bookie.rackawareness.IsolatedBookieEnsemblePlacementPolicy"
    static const char *const none[] = {"{\"policyClass\":\"org.x.Other\",\"properties\":{}}", "{}",
                                       "{\"policyClass\":null}"};
    static const char *const bad[] = {"", "[]", "{", "{\"policyClass\":\"" POLICY "\"}"};
    struct placement_record r;

    ck_assert_int_eq(
        placement_record_read(text("{\"policyClass\":\"" POLICY
                                   "\",\"properties\":{\"isolationBookieGroups\":"
                                   "\"a,b\",\"secondaryIsolationBookieGroups\":null}}"),
                              &r),
        ERR_OK);
    ck_assert_str_eq(r.groups, "a,b");
    ck_assert_str_eq(r.second_groups, "");
    placement_record_drop(&r);
    struct slice value = placement_record_write("", "c");
    ck_assert_int_eq(placement_record_read(slice_view(value), &r), ERR_OK);
    ck_assert_str_eq(r.groups, "");
    ck_assert_str_eq(r.second_groups, "c");
    placement_record_drop(&r);
    slice_drop(&value);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ck_assert_int_eq(placement_record_read(text(none[i]), &r), ERR_NOT_FOUND);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(placement_record_read(text(bad[i]), &r), ERR_MALFORMED);
#undef POLICY
}
END_TEST

int main(void)
{
    return suite_run("records", (suite_case[]){SUITE_CASE(managed_ledgers_come_back),
                                               SUITE_CASE(an_empty_managed_ledger_has_no_ledgers),
                                               SUITE_LOOP(compressed_managed_ledgers_are_read,
                                                          COMPRESS_SNAPPY + 1),
                                               SUITE_CASE(compressed_cursors_are_read),
                                               SUITE_CASE(hostile_wrappings_are_refused),
                                               SUITE_CASE(what_could_not_be_read_again_is_refused),
                                               SUITE_CASE(bookies_say_where_they_are),
                                               SUITE_CASE(bookie_bytes_are_bookkeepers),
                                               SUITE_CASE(old_bookies_are_their_ids),
                                               SUITE_CASE(cookies_come_back),
                                               SUITE_CASE(cookie_text_is_bookkeepers),
                                               SUITE_CASE(other_cookies_are_read_or_refused),
                                               SUITE_CASE(partitions_come_back),
                                               SUITE_CASE(racks_are_read),
                                               SUITE_CASE(groups_are_read_and_written),
                                               {0}});
}
