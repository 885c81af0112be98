#include "proto/bookie_frame.h"

#include "common/rng.h"
#include "proto/bookkeeper.pb-c.h"
#include "proto/wire.h"
#include "tests/lib/suite.h"
#include "tests/unit/proto/bytes.h"

#define KEY    "e793cbc379107648537183605cd361d3bb789a39"
#define IDS    "00000000000004d2 0000000000000005"
#define HEADER IDS "0000000000000004 0000000000000258"
#define ENTRY  HEADER "aaf2235d 68656c6c6f"
#define ADD    "02010000" KEY ENTRY
#define READ   "02020000" IDS
#define FENCE  "02020001 00000000000004d2 ffffffffffffffff" KEY
#define BATCH  "02070001" IDS "0000000000000007 00000064 0000000000001000" KEY

static struct bookie_request request_of(const char *hex)
{
    struct bookie_request q;
    struct bytes b = bytes_of(hex);

    ck_assert_int_eq(bookie_request_read(bytes_view(&b), &q), ERR_OK);
    q.body.base = NULL; /* it was b's */
    return q;
}

static enum err request_error(const char *hex)
{
    struct bookie_request q;
    struct bytes b = bytes_of(hex);

    return bookie_request_read(bytes_view(&b), &q);
}

/* ---- writers: the published vectors, with their length in front ---- */

START_TEST(writes_an_add)
{
    struct bytes key = bytes_of(KEY), entry = bytes_of(ENTRY);
    uint8_t front[BOOKIE_ADD_FRONT];

    bookie_write_add(front, 0, key.at, entry.len);
    ck_bytes_eq(front, sizeof(front), "00000041 02010000" KEY);
    bookie_write_add(front, BOOKIE_RECOVERY_ADD | BOOKIE_HIGH_PRIORITY, key.at, entry.len);
    ck_bytes_eq(front, sizeof(front), "00000041 02010006" KEY);
}
END_TEST

START_TEST(writes_reads)
{
    struct bytes key = bytes_of(KEY);
    uint8_t into[BOOKIE_FENCE_SIZE];
    size_t n = bookie_write_read(into, 0, 1234, 5, NULL);

    ck_assert_uint_eq(n, BOOKIE_READ_SIZE);
    ck_bytes_eq(into, n, "00000014" READ);
    n = bookie_write_read(into, BOOKIE_DO_FENCING, 1234, -1, key.at);
    ck_assert_uint_eq(n, BOOKIE_FENCE_SIZE);
    ck_bytes_eq(into, n, "00000028" FENCE);
}
END_TEST

START_TEST(writes_answers_with_the_asker_s_version)
{
    uint8_t into[BOOKIE_RESPONSE_SIZE];

    bookie_write_response(into, 2, BOOKIE_ADD, BOOKIE_OK, 1234, 5, 0);
    ck_bytes_eq(into, sizeof(into), "00000018 02010000 00000000" IDS);
    bookie_write_response(into, 2, BOOKIE_READ, BOOKIE_OK, 1234, -1, 41);
    ck_bytes_eq(into, sizeof(into), "00000041 02020000 00000000 00000000000004d2 ffffffffffffffff");
    bookie_write_response(into, 0, BOOKIE_READ, BOOKIE_NO_ENTRY, 1234, 5, 0);
    ck_bytes_eq(into, sizeof(into), "00000018 00000002 00000002" IDS);
}
END_TEST

START_TEST(writes_auth_both_ways)
{
    struct slice request = bookie_auth_request();
    struct slice response = bookie_auth_response(2, "AuthDisabledPlugin");
    Bookkeeper__AuthMessage *m;

    ck_bytes_eq(request.base, request.len, "00000008 02030000 0a00 1200");
    ck_bytes_eq(response.base, 8, "0000001a 02030000");
    m = bookkeeper__auth_message__unpack(NULL, response.len - 8, response.base + 8);
    ck_assert_ptr_nonnull(m);
    ck_assert_str_eq(m->authpluginname, "AuthDisabledPlugin");
    ck_assert_uint_eq(m->payload.len, 0);
    bookkeeper__auth_message__free_unpacked(m, NULL);
    slice_drop(&request);
    slice_drop(&response);
}
END_TEST

/* ---- reading requests ---- */

START_TEST(reads_an_add)
{
    struct bytes b = bytes_of(ADD);
    struct bookie_request q;

    ck_assert_int_eq(bookie_request_read(bytes_view(&b), &q), ERR_OK);
    ck_assert(q.version == 2 && q.op == BOOKIE_ADD && q.flags == 0);
    ck_assert(q.ledger == 1234 && q.entry == 5 && q.has_key);
    ck_bytes_eq(q.key, sizeof(q.key), KEY);
    ck_bytes_eq(q.body.base, q.body.len, ENTRY);
}
END_TEST

START_TEST(reads_a_read)
{
    struct bookie_request q = request_of(READ);

    ck_assert(q.version == 2 && q.op == BOOKIE_READ && q.flags == 0 && !q.has_key);
    ck_assert(q.ledger == 1234 && q.entry == 5);
    q = request_of(READ "ff");
    ck_assert(q.ledger == 1234 && q.entry == 5 && !q.has_key);
}
END_TEST

START_TEST(reads_a_fencing_read)
{
    struct bookie_request q = request_of(FENCE);

    ck_assert(q.op == BOOKIE_READ && q.flags == BOOKIE_DO_FENCING && q.has_key);
    ck_assert(q.ledger == 1234 && q.entry == -1);
    ck_bytes_eq(q.key, sizeof(q.key), KEY);
}
END_TEST

START_TEST(reads_a_batch_read)
{
    struct bookie_request q = request_of(BATCH);

    ck_assert(q.op == BOOKIE_BATCH_READ && q.ledger == 1234 && q.entry == 5 && q.has_key);
    ck_assert(q.request_id == 7 && q.max_count == 100 && q.max_size == 4096);
}
END_TEST

START_TEST(reads_an_auth)
{
    struct bytes b = bytes_of("02030000 0a00 1200");
    struct bookie_request q;

    ck_assert_int_eq(bookie_request_read(bytes_view(&b), &q), ERR_OK);
    ck_assert_int_eq(q.op, BOOKIE_AUTH);
    ck_bytes_eq(q.body.base, q.body.len, "0a00 1200");
}
END_TEST

START_TEST(older_versions_have_no_fencing_key_and_version_0_no_flags)
{
    struct bookie_request q = request_of("01020001" IDS);

    ck_assert(q.version == 1 && q.flags == BOOKIE_DO_FENCING && !q.has_key);
    q = request_of("00000002" IDS);
    ck_assert(q.version == 0 && q.op == BOOKIE_READ && q.flags == 0 && q.ledger == 1234);
    ck_assert_int_eq(request_error("00010002" IDS), ERR_MALFORMED);
}
END_TEST

START_TEST(newer_versions_are_refused_by_name)
{
    struct bytes b = bytes_of("03020000" IDS);
    struct bookie_request q;

    ck_assert_int_eq(bookie_request_read(bytes_view(&b), &q), ERR_UNSUPPORTED_VERSION);
    ck_assert(q.version == 3 && q.op == BOOKIE_READ && q.ledger == 1234 && q.entry == 5);
    ck_assert_int_eq(request_error("ff630000"), ERR_UNSUPPORTED_VERSION);
}
END_TEST

START_TEST(unknown_ops_are_malformed)
{
    ck_assert_int_eq(request_error("02000000" IDS), ERR_MALFORMED);
    ck_assert_int_eq(request_error("02040000" IDS), ERR_MALFORMED);
    ck_assert_int_eq(request_error("02ff0000" IDS), ERR_MALFORMED);
}
END_TEST

/* How much of each frame is fixed: from there on an entry or a message may be of any length. */
START_TEST(every_truncated_request_is_refused)
{
    static const struct {
        const char *hex;
        size_t fixed;
    } frames[] = {{ADD, 56}, {READ, 20}, {FENCE, 40}, {BATCH, 60}, {"02030000", 4}};

    for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
        struct bytes b = bytes_of(frames[i].hex);
        for (size_t n = 0; n <= frames[i].fixed; n++) {
            struct view cut = bytes_cut(bytes_view(&b), n);
            struct bookie_request q;
            enum err want = n < frames[i].fixed ? ERR_MALFORMED : ERR_OK;
            ck_assert_int_eq(bookie_request_read(cut, &q), want);
            bytes_free(cut);
        }
    }
}
END_TEST

/* ---- reading responses ---- */

START_TEST(reads_answers)
{
    struct bytes ok = bytes_of("02010000 00000000" IDS),
                 read = bytes_of("02020000 00000000" IDS ENTRY),
                 no = bytes_of("02020000 00000002" IDS);
    struct bookie_response a;

    ck_assert_int_eq(bookie_response_read(bytes_view(&ok), &a), ERR_OK);
    ck_assert(a.version == 2 && a.op == BOOKIE_ADD && a.status == 0);
    ck_assert(a.ledger == 1234 && a.entry == 5 && a.body.len == 0);
    ck_assert_int_eq(bookie_response_read(bytes_view(&read), &a), ERR_OK);
    ck_assert_int_eq(a.op, BOOKIE_READ);
    ck_bytes_eq(a.body.base, a.body.len, ENTRY);
    ck_assert_int_eq(bookie_response_read(bytes_view(&no), &a), ERR_OK);
    ck_assert(a.status == BOOKIE_NO_ENTRY && a.body.len == 0);
}
END_TEST

START_TEST(reads_auth_and_batch_answers)
{
    struct bytes auth = bytes_of("02030000 0a00 1200");
    struct bytes batch = bytes_of("02070000 00000000" IDS "0000000000000007 00000001 ff");
    struct bookie_response a;

    ck_assert_int_eq(bookie_response_read(bytes_view(&auth), &a), ERR_OK);
    ck_bytes_eq(a.body.base, a.body.len, "0a00 1200");
    ck_assert_int_eq(bookie_response_read(bytes_view(&batch), &a), ERR_OK);
    ck_bytes_eq(a.body.base, a.body.len, "0000000000000007 00000001 ff");
}
END_TEST

/* One entry after the other; what is cut off is none. */
START_TEST(takes_a_batch_answer_apart)
{
    struct bytes b = bytes_of("0000000000000007 00000001 ff 00000000 00000002 abcd 00000003 01");
    struct view rest = bytes_view(&b), entry;
    int64_t id;

    ck_assert_int_eq(bookie_batch_id(&rest, &id), ERR_OK);
    ck_assert_int_eq(id, 7);
    ck_assert_int_eq(bookie_batch_next(&rest, &entry), ERR_OK);
    ck_bytes_eq(entry.base, entry.len, "ff");
    ck_assert_int_eq(bookie_batch_next(&rest, &entry), ERR_OK);
    ck_assert_uint_eq(entry.len, 0);
    ck_assert_int_eq(bookie_batch_next(&rest, &entry), ERR_OK);
    ck_bytes_eq(entry.base, entry.len, "abcd");
    ck_assert_int_eq(bookie_batch_next(&rest, &entry), ERR_MALFORMED);
    ck_assert_uint_eq(rest.len, 5);
    rest.len = 0;
    ck_assert_int_eq(bookie_batch_next(&rest, &entry), ERR_END);
    ck_assert_int_eq(bookie_batch_id(&rest, &id), ERR_MALFORMED);
}
END_TEST

START_TEST(writes_a_batch_read)
{
    uint8_t b[BOOKIE_BATCH_SIZE];
    struct bookie_request q;

    bookie_write_batch_read(b, 1234, 5, 7, 100, 4096);
    ck_bytes_eq(b, 8, "00000028 02070000");
    ck_assert_int_eq(bookie_request_read(view_of(b + 4, sizeof b - 4), &q), ERR_OK);
    ck_assert(q.op == BOOKIE_BATCH_READ && q.ledger == 1234 && q.entry == 5 && !q.has_key);
    ck_assert(q.request_id == 7 && q.max_count == 100 && q.max_size == 4096);
}
END_TEST

START_TEST(every_truncated_answer_is_refused)
{
    struct bytes b = bytes_of("02020000 00000000" IDS ENTRY),
                 other = bytes_of("02090000 00000000" IDS),
                 newer = bytes_of("03010000 00000000" IDS);
    struct bookie_response a;

    for (size_t n = 0; n < 24; n++) {
        struct view cut = bytes_cut(bytes_view(&b), n);
        ck_assert_int_eq(bookie_response_read(cut, &a), ERR_MALFORMED);
        bytes_free(cut);
    }
    ck_assert_int_eq(bookie_response_read(bytes_view(&other), &a), ERR_MALFORMED);
    ck_assert_int_eq(bookie_response_read(bytes_view(&newer), &a), ERR_UNSUPPORTED_VERSION);
}
END_TEST

START_TEST(random_answers_read_back)
{
    static const uint8_t ops[] = {BOOKIE_ADD, BOOKIE_READ, BOOKIE_BATCH_READ};
    uint64_t seed = 3;

    for (int round = 0; round < 1000; round++) {
        uint8_t into[BOOKIE_RESPONSE_SIZE], version = (uint8_t)rng_below(&seed, 3),
                                            op = ops[rng_below(&seed, 3)];
        int32_t status = (int32_t)rng_next(&seed);
        int64_t ledger = (int64_t)rng_next(&seed), entry = (int64_t)rng_next(&seed);
        struct bookie_response a;

        bookie_write_response(into, version, op, status, ledger, entry, 0);
        ck_assert_int_eq(bookie_response_read(view_of(into + 4, sizeof(into) - 4), &a), ERR_OK);
        ck_assert(a.version == version && a.op == op && a.status == status && a.ledger == ledger &&
                  a.entry == entry && a.body.len == 0);
    }
}
END_TEST

START_TEST(a_status_means_an_error)
{
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_OK), ERR_OK);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_NO_LEDGER), ERR_NO_LEDGER);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_NO_ENTRY), ERR_NO_ENTRY);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_BAD_REQUEST), ERR_MALFORMED);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_EIO), ERR_IO);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_EUA), ERR_UNAUTHORIZED);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_BAD_VERSION), ERR_UNSUPPORTED_VERSION);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_FENCED), ERR_FENCED);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_READ_ONLY), ERR_READ_ONLY);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_TOO_MANY), ERR_BUSY);
    ck_assert_int_eq(bookie_status_to_err(BOOKIE_UNKNOWN), ERR_UNKNOWN_STATE);
    ck_assert_int_eq(bookie_status_to_err(99), ERR_IO);
    ck_assert_int_eq(bookie_status_to_err(-1), ERR_IO);
}
END_TEST

int main(void)
{
    return suite_run(
        "bookie_frame",
        (suite_case[]){SUITE_CASE(writes_an_add),
                       SUITE_CASE(writes_reads),
                       SUITE_CASE(writes_answers_with_the_asker_s_version),
                       SUITE_CASE(writes_auth_both_ways),
                       SUITE_CASE(reads_an_add),
                       SUITE_CASE(reads_a_read),
                       SUITE_CASE(reads_a_fencing_read),
                       SUITE_CASE(reads_a_batch_read),
                       SUITE_CASE(reads_an_auth),
                       SUITE_CASE(older_versions_have_no_fencing_key_and_version_0_no_flags),
                       SUITE_CASE(newer_versions_are_refused_by_name),
                       SUITE_CASE(unknown_ops_are_malformed),
                       SUITE_CASE(every_truncated_request_is_refused),
                       SUITE_CASE(reads_answers),
                       SUITE_CASE(reads_auth_and_batch_answers),
                       SUITE_CASE(takes_a_batch_answer_apart),
                       SUITE_CASE(writes_a_batch_read),
                       SUITE_CASE(every_truncated_answer_is_refused),
                       SUITE_CASE(random_answers_read_back),
                       SUITE_CASE(a_status_means_an_error),
                       {0}});
}
