#include "proto/entry.h"

#include "common/crc32c.h"
#include "common/rng.h"
#include "tests/lib/suite.h"
#include "tests/unit/proto/bytes.h"

#define HEADER "00000000000004d2 0000000000000005 0000000000000004 0000000000000258"

static const struct entry_header header = {.ledger = 1234, .entry = 5, .lac = 4, .length = 600};
static const struct {
    enum digest_type type;
    const char *hex;
} vectors[] = {
    {DIGEST_CRC32C, "aaf2235d"},
    {DIGEST_CRC32, "00000000eb748e1a"},
    {DIGEST_HMAC, "5d3947d98cd096e98037ad5da7063e040644c67c"},
    {DIGEST_DUMMY, ""},
};
enum { VECTORS = sizeof(vectors) / sizeof(*vectors) };

static struct view text(const char *s)
{
    return view_of(s, strlen(s));
}

static struct bytes entry_with(const struct digest *d, struct view payload)
{
    uint8_t prefix[ENTRY_HEADER + DIGEST_SIZE_MAX];
    struct bytes b;
    size_t n;

    entry_prefix_with(d, &header, payload, prefix, &n);
    memcpy(b.at, prefix, n);
    memcpy(b.at + n, payload.base, payload.len);
    b.len = n + payload.len;
    return b;
}

START_TEST(keys_are_the_known_ones)
{
    uint8_t key[MASTER_KEY_SIZE];

    master_key_of(text(""), key);
    ck_bytes_eq(key, sizeof(key), "850bf1071c5e3d8c24235676f8816ae0cbe2f14f");
    master_key_of(text("secret"), key);
    ck_bytes_eq(key, sizeof(key), "e793cbc379107648537183605cd361d3bb789a39");
    ck_bytes_eq(digest_of(DIGEST_HMAC, text("")).key, MASTER_KEY_SIZE,
                "347ead6348e936507920c15d2ae8266ac6ce9b49");
    ck_bytes_eq(digest_of(DIGEST_HMAC, text("secret")).key, MASTER_KEY_SIZE,
                "190c685bae851574f5ab47c960a00c0466f96603");
}
END_TEST

START_TEST(digests_are_the_known_ones)
{
    struct digest d = digest_of(vectors[_i].type, text("secret"));
    struct bytes b = entry_with(&d, text("hello")), want = bytes_of(HEADER);
    size_t n = digest_size(vectors[_i].type);

    ck_assert_mem_eq(b.at, want.at, ENTRY_HEADER);
    ck_bytes_eq(b.at + ENTRY_HEADER, n, vectors[_i].hex);
    ck_assert_mem_eq(b.at + ENTRY_HEADER + n, "hello", 5);
}
END_TEST

START_TEST(the_prefix_from_a_payload_crc_is_the_same)
{
    uint8_t prefix[ENTRY_PREFIX];

    entry_prefix(&header, crc32c("hello", 5), 5, prefix);
    ck_bytes_eq(prefix, ENTRY_PREFIX, HEADER "aaf2235d");
}
END_TEST

START_TEST(an_explicit_lac_has_the_known_digest)
{
    struct bytes b = bytes_of("00000000000004d2 0000000000000005");

    ck_assert_uint_eq(crc32c(b.at, b.len), 0xbbdc8ea9);
}
END_TEST

START_TEST(an_entry_opens_to_its_header_and_payload)
{
    struct digest d = digest_of(vectors[_i].type, text("secret"));
    struct bytes b = entry_with(&d, text("hello"));
    struct entry_header h;
    struct view payload;

    ck_assert_int_eq(entry_open(&d, bytes_view(&b), 1234, 5, &h, &payload), ERR_OK);
    ck_assert(h.ledger == 1234 && h.entry == 5 && h.lac == 4 && h.length == 600);
    ck_assert_uint_eq(payload.len, 5);
    ck_assert_mem_eq(payload.base, "hello", 5);
    ck_assert_int_eq(entry_open(&d, bytes_view(&b), -1, -1, &h, &payload), ERR_OK);
    ck_assert_int_eq(entry_open(&d, bytes_view(&b), 1234, -1, &h, &payload), ERR_OK);
    ck_assert_int_eq(entry_open(&d, bytes_view(&b), 1235, -1, &h, &payload), ERR_CHECKSUM);
    ck_assert_int_eq(entry_open(&d, bytes_view(&b), 1233, -1, &h, &payload), ERR_CHECKSUM);
    ck_assert_int_eq(entry_open(&d, bytes_view(&b), 1234, 6, &h, &payload), ERR_CHECKSUM);
    ck_assert_int_eq(entry_open(&d, bytes_view(&b), 1234, 4, &h, &payload), ERR_CHECKSUM);
}
END_TEST

START_TEST(an_empty_payload_opens)
{
    struct digest d = digest_of(vectors[_i].type, text(""));
    struct bytes b = entry_with(&d, text(""));
    struct entry_header h;
    struct view payload;

    ck_assert_int_eq(entry_open(&d, bytes_view(&b), 1234, 5, &h, &payload), ERR_OK);
    ck_assert_uint_eq(payload.len, 0);
}
END_TEST

/* Every single bit that is turned, every byte that is missing. */
START_TEST(damage_is_a_checksum_error)
{
    struct digest d = digest_of(vectors[_i].type, text("secret"));
    struct bytes b = entry_with(&d, text("hello"));
    struct entry_header h;
    struct view payload;

    for (size_t bit = 0; bit < 8 * b.len; bit++) {
        b.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_int_eq(entry_open(&d, bytes_view(&b), 1234, 5, &h, &payload), ERR_CHECKSUM);
        b.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t n = 0; n < b.len; n++) {
        struct view cut = bytes_cut(bytes_view(&b), n);
        ck_assert_int_eq(entry_open(&d, cut, 1234, 5, &h, &payload), ERR_CHECKSUM);
        bytes_free(cut);
    }
}
END_TEST

START_TEST(an_hmac_needs_its_password)
{
    struct digest d = digest_of(DIGEST_HMAC, text("secret")),
                  other = digest_of(DIGEST_HMAC, text("guess"));
    struct bytes b = entry_with(&d, text("hello"));
    struct entry_header h;
    struct view payload;

    ck_assert_int_eq(entry_open(&other, bytes_view(&b), -1, -1, &h, &payload), ERR_CHECKSUM);
}
END_TEST

START_TEST(an_unknown_digest_opens_nothing)
{
    struct digest dummy = digest_of(DIGEST_DUMMY, text("")),
                  unknown = {.type = (enum digest_type)9};
    struct bytes b = entry_with(&dummy, text("hello"));
    struct entry_header h;
    struct view payload;

    ck_assert_int_eq(entry_open(&unknown, bytes_view(&b), -1, -1, &h, &payload), ERR_CHECKSUM);
}
END_TEST

START_TEST(a_bookie_reads_the_header_alone)
{
    struct bytes b = bytes_of(HEADER);
    struct entry_header h;

    ck_assert_int_eq(entry_header_read(bytes_view(&b), &h), ERR_OK);
    ck_assert(h.ledger == 1234 && h.entry == 5 && h.lac == 4 && h.length == 600);
    for (size_t n = 0; n < ENTRY_HEADER; n++) {
        struct view cut = bytes_cut(bytes_view(&b), n);
        ck_assert_int_eq(entry_header_read(cut, &h), ERR_MALFORMED);
        bytes_free(cut);
    }
}
END_TEST

START_TEST(both_writers_agree_on_random_entries)
{
    uint64_t seed = 11;

    for (int round = 0; round < 300; round++) {
        struct digest d = digest_of(DIGEST_CRC32C, text(""));
        struct entry_header h = {.ledger = (int64_t)(rng_next(&seed) >> 1),
                                 .entry = (int64_t)rng_next(&seed),
                                 .lac = (int64_t)rng_next(&seed),
                                 .length = (int64_t)rng_next(&seed)};
        uint8_t a[ENTRY_PREFIX], b[ENTRY_HEADER + DIGEST_SIZE_MAX], payload[512];
        size_t len = rng_below(&seed, sizeof(payload)), n;

        for (size_t i = 0; i < len; i++)
            payload[i] = (uint8_t)rng_next(&seed);
        entry_prefix(&h, crc32c(payload, len), len, a);
        entry_prefix_with(&d, &h, view_of(payload, len), b, &n);
        ck_assert_uint_eq(n, ENTRY_PREFIX);
        ck_assert_mem_eq(a, b, n);
    }
}
END_TEST

int main(void)
{
    return suite_run("entry",
                     (suite_case[]){SUITE_CASE(keys_are_the_known_ones),
                                    SUITE_LOOP(digests_are_the_known_ones, VECTORS),
                                    SUITE_CASE(the_prefix_from_a_payload_crc_is_the_same),
                                    SUITE_CASE(an_explicit_lac_has_the_known_digest),
                                    SUITE_LOOP(an_entry_opens_to_its_header_and_payload, VECTORS),
                                    SUITE_LOOP(an_empty_payload_opens, VECTORS),
                                    SUITE_LOOP(damage_is_a_checksum_error, VECTORS - 1),
                                    SUITE_CASE(an_hmac_needs_its_password),
                                    SUITE_CASE(an_unknown_digest_opens_nothing),
                                    SUITE_CASE(a_bookie_reads_the_header_alone),
                                    SUITE_CASE(both_writers_agree_on_random_entries),
                                    {0}});
}
