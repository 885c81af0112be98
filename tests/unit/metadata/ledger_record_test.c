#include <stdbool.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "metadata/records.h"
#include "tests/lib/suite.h"

#define FRONT "BookieMetadataFormatVersion\t3\n"

/* Written by hand from the field table: E 1, Qw 1, open, one segment with bookie "b:1". */
static const char smallest[] = FRONT "\x13"
                                     "\x08\x01\x10\x01\x18\x00\x28\x01"
                                     "\x32\x07\x0a\x03"
                                     "b:1"
                                     "\x10\x00"
                                     "\x38\x03";

static struct view text(const char *s)
{
    return view_of(s, strlen(s));
}

static struct view smallest_view(void)
{
    return view_of(smallest, sizeof smallest - 1);
}

START_TEST(bytes_are_bookkeepers)
{
    Bookkeeper__LedgerMetadataFormat *m;

    ck_assert_int_eq(ledger_record_read(smallest_view(), &m), ERR_OK);
    ck_assert_int_eq(m->quorumsize, 1);
    ck_assert_int_eq(m->state, BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN);
    ck_assert_str_eq(m->segment[0]->ensemblemember[0], "b:1");
    ck_assert_int_eq(m->digesttype, BOOKKEEPER__LEDGER_METADATA_FORMAT__DIGEST_TYPE__CRC32C);
    struct slice s = ledger_record_write(m);
    ck_assert_uint_eq(s.len, sizeof smallest - 1);
    ck_assert_mem_eq(s.base, smallest, s.len);
    slice_drop(&s);
    bookkeeper__ledger_metadata_format__free_unpacked(m, NULL);
}
END_TEST

/* A record with all fields, and one of a version to come: it must come back. */
static struct slice full_record(void)
{
    Bookkeeper__LedgerMetadataFormat m = BOOKKEEPER__LEDGER_METADATA_FORMAT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment a = BOOKKEEPER__LEDGER_METADATA_FORMAT__SEGMENT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment b = BOOKKEEPER__LEDGER_METADATA_FORMAT__SEGMENT__INIT;
    Bookkeeper__LedgerMetadataFormat__CustomMetadata c =
        BOOKKEEPER__LEDGER_METADATA_FORMAT__CUSTOM_METADATA__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment *segments[] = {&a, &b};
    Bookkeeper__LedgerMetadataFormat__CustomMetadata *customs[] = {&c};
    char *first[] = {"b:1", "b:2", "b:3"}, *second[] = {"b:1", "b:4", "b:3"};
    ProtobufCMessageUnknownField later = {
        .tag = 99, .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT, .len = 1, .data = (uint8_t *)"\x2a"};

    a.n_ensemblemember = b.n_ensemblemember = 3;
    a.ensemblemember = first;
    b.ensemblemember = second;
    b.firstentryid = 17;
    c.key = "application";
    c.has_value = true;
    c.value = (ProtobufCBinaryData){.data = (uint8_t *)"pulsar", .len = 6};
    m.quorumsize = m.ensemblesize = 3;
    m.has_ackquorumsize = true;
    m.ackquorumsize = 2;
    m.state = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__CLOSED;
    m.length = 1000;
    m.has_lastentryid = true;
    m.lastentryid = 99;
    m.n_segment = 2;
    m.segment = segments;
    m.n_custommetadata = 1;
    m.custommetadata = customs;
    m.has_ctoken = true;
    m.ctoken = -5;
    m.base.n_unknown_fields = 1;
    m.base.unknown_fields = &later;
    return ledger_record_write(&m);
}

START_TEST(all_fields_come_back)
{
    struct slice s = full_record();
    Bookkeeper__LedgerMetadataFormat *m;

    ck_assert_int_eq(ledger_record_read(slice_view(s), &m), ERR_OK);
    ck_assert_int_eq(m->ctoken, -5);
    ck_assert_int_eq(m->segment[1]->firstentryid, 17);
    ck_assert_mem_eq(m->custommetadata[0]->value.data, "pulsar", 6);
    ck_assert_uint_eq(m->base.n_unknown_fields, 1);
    struct slice again = ledger_record_write(m);
    ck_assert_uint_eq(again.len, s.len);
    ck_assert_mem_eq(again.base, s.base, s.len);
    slice_drop(&again);
    slice_drop(&s);
    bookkeeper__ledger_metadata_format__free_unpacked(m, NULL);
}
END_TEST

START_TEST(cut_and_damaged_records_are_errors)
{
    struct slice s = full_record();
    uint8_t *copy = mem_alloc(s.len);
    Bookkeeper__LedgerMetadataFormat *m;
    uint64_t seed = 1;

    for (size_t n = 0; n < s.len; n++) {
        memcpy(copy, s.base, n);
        ck_assert_int_ne(ledger_record_read(view_of(copy, n), &m), ERR_OK);
    }
    for (int i = 0; i < 5000; i++) {
        memcpy(copy, s.base, s.len);
        copy[rng_below(&seed, s.len)] = (uint8_t)rng_next(&seed);
        if (ledger_record_read(view_of(copy, s.len), &m) == ERR_OK)
            bookkeeper__ledger_metadata_format__free_unpacked(m, NULL);
    }
    mem_free(copy);
    slice_drop(&s);
}
END_TEST

START_TEST(version_2_is_read)
{
    Bookkeeper__LedgerMetadataFormat *m;
    struct view v = text("BookieMetadataFormatVersion\t2\n"
                         "quorumSize: 2\nensembleSize: 2\nlength: 0\nlastEntryId: -1\n"
                         "state: IN_RECOVERY\n"
                         "segment {\n  ensembleMember: \"b:1\"\n  ensembleMember: 'b:2'\n"
                         "  firstEntryId: 0\n}\n"
                         "segment <\n  ensembleMember: \"b:1\", ensembleMember: \"b\" \":\\063\"\n"
                         "  firstEntryId: 7\n  later { deep: 1 } >\n"
                         "digestType: CRC32C\npassword: \"p\\000\\xffw\\n\"\n"
                         "customMetadata { key: \"k\" value: \"v\" }\n"
                         "ackQuorumSize: 2\nctime: 1600000000000\ncToken: 9\n"
                         "someday: 1 other { a { b: \"}\" } } # the end\n");

    ck_assert_int_eq(ledger_record_read(v, &m), ERR_OK);
    ck_assert_int_eq(m->state, BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__IN_RECOVERY);
    ck_assert_int_eq(m->lastentryid, -1);
    ck_assert_str_eq(m->segment[1]->ensemblemember[1], "b:3");
    ck_assert_int_eq(m->segment[1]->firstentryid, 7);
    ck_assert_uint_eq(m->password.len, 5);
    ck_assert_mem_eq(m->password.data, "p\0\xffw\n", 5);
    ck_assert_str_eq(m->custommetadata[0]->key, "k");
    ck_assert_int_eq(m->ctime, 1600000000000);
    ck_assert_int_eq(m->ctoken, 9);
    struct slice s = ledger_record_write(m);
    ck_assert_mem_eq(s.base, FRONT, strlen(FRONT));
    slice_drop(&s);
    bookkeeper__ledger_metadata_format__free_unpacked(m, NULL);
}
END_TEST

START_TEST(bad_text_is_refused)
{
    static const char *bodies[] = {
        "",
        "quorumSize: 1",
        "quorumSize: 1 ensembleSize: 1 length: 0 state: OPEN",
        "quorumSize: 1 ensembleSize: 1 length: 0 state: NO segment { firstEntryId: 0 }",
        "quorumSize: 1 ensembleSize: 1 length: 0 state: OPEN segment { ensembleMember: \"b\"",
        "quorumSize: 1 ensembleSize: 1 length: 0 state: OPEN segment { ensembleMember: b }",
        "quorumSize: 99999999999 ensembleSize: 1 length: 0 state: OPEN",
        "quorumSize 1",
        "quorumSize: \"1",
        "}",
        "a { a { a { a { a { a { a { a { a { a { a { a { a { a { a { a { a { a {",
        "quorumSize: 1 ensembleSize: 1 length: 0 state: OPEN segment { ensembleMember: \"\\q\" }",
        "quorumSize: 1 ensembleSize: 1 length: 0 state: OPEN segment { ensembleMember: \"a\\0\" }",
    };
    Bookkeeper__LedgerMetadataFormat *m;

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char *all = mem_format("BookieMetadataFormatVersion\t2\n%s", bodies[i]);
        ck_assert_msg(ledger_record_read(text(all), &m) != ERR_OK, "%s", bodies[i]);
        mem_free(all);
    }
}
END_TEST

START_TEST(other_versions_are_named)
{
    Bookkeeper__LedgerMetadataFormat *m;

    ck_assert_int_eq(ledger_record_read(text("BookieMetadataFormatVersion\t4\nxxxx"), &m),
                     ERR_UNSUPPORTED_VERSION);
    ck_assert_int_eq(ledger_record_read(text("BookieMetadataFormatVersion\t1\nxxxx"), &m),
                     ERR_UNSUPPORTED_VERSION);
    ck_assert_int_eq(
        ledger_record_read(text("3\n3\n0\n0\tb1\tb2\tb3\nCLOSED or some such line"), &m),
        ERR_UNSUPPORTED_VERSION);
    ck_assert_int_eq(ledger_record_read(text(""), &m), ERR_MALFORMED);
    ck_assert_int_eq(ledger_record_read(text(FRONT "\xff\xff\xff\xff\x0f"), &m), ERR_MALFORMED);
}
END_TEST

/* What would lead a reader out of its arrays. */
START_TEST(unsound_records_are_refused)
{
    static const struct {
        size_t at;
        char byte;
    } wrong[] = {{1, 0}, {1, 2}, {3, 2}, {3, 0}, {16, 1}};
    char copy[sizeof smallest];
    Bookkeeper__LedgerMetadataFormat *m;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(copy, smallest, sizeof smallest);
        copy[strlen(FRONT) + 1 + wrong[i].at] = wrong[i].byte;
        ck_assert_msg(ledger_record_read(view_of(copy, sizeof copy - 1), &m) == ERR_MALFORMED,
                      "%zu", i);
    }
}
END_TEST

int main(void)
{
    return suite_run("ledger_record", (suite_case[]){SUITE_CASE(bytes_are_bookkeepers),
                                                     SUITE_CASE(all_fields_come_back),
                                                     SUITE_CASE(cut_and_damaged_records_are_errors),
                                                     SUITE_CASE(version_2_is_read),
                                                     SUITE_CASE(bad_text_is_refused),
                                                     SUITE_CASE(other_versions_are_named),
                                                     SUITE_CASE(unsound_records_are_refused),
                                                     {0}});
}
