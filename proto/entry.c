#include "proto/entry.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#include "common/crc32c.h"
#include "proto/wire.h"

enum { DIGEST_COVERS = ENTRY_HEADER }; /* of the header; the payload follows */

/* ---- keys ---- */

/* SHA1 of two pieces.  OpenSSL fails here only for want of memory or of the algorithm itself. */
static void sha1_of(struct view a, struct view b, uint8_t out[MASTER_KEY_SIZE])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha1(), NULL) &&
             EVP_DigestUpdate(ctx, a.base, a.len) && EVP_DigestUpdate(ctx, b.base, b.len) &&
             EVP_DigestFinal_ex(ctx, out, NULL);
    assert(ok);
    (void)ok;
    EVP_MD_CTX_free(ctx);
}

void master_key_of(struct view password, uint8_t out[MASTER_KEY_SIZE])
{
    sha1_of(view_of("ledger", 6), password, out);
}

struct digest digest_of(enum digest_type type, struct view password)
{
    struct digest d = {.type = type};

    if (type == DIGEST_HMAC)
        sha1_of(view_of("mac", 3), password, d.key);
    return d;
}

/* ---- digests ---- */

static const struct {
    bool known;
    uint8_t size;
} digests[] = {
    [DIGEST_CRC32] = {true, 8},
    [DIGEST_HMAC] = {true, 20},
    [DIGEST_CRC32C] = {true, 4},
    [DIGEST_DUMMY] = {true, 0},
};

static bool is_known(enum digest_type type)
{
    return (size_t)type < sizeof(digests) / sizeof(*digests) && digests[type].known;
}

size_t digest_size(enum digest_type type)
{
    return is_known(type) ? digests[type].size : 0;
}

static void hmac_sha1(const uint8_t key[MASTER_KEY_SIZE], struct view a, struct view b,
                      struct writer *w)
{
    uint8_t sum[MASTER_KEY_SIZE];
    size_t size = 0;
    EVP_PKEY *secret = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, key, MASTER_KEY_SIZE);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = secret && ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha1(), NULL, secret) &&
             EVP_DigestSignUpdate(ctx, a.base, a.len) && EVP_DigestSignUpdate(ctx, b.base, b.len);

    size = sizeof(sum);
    ok = ok && EVP_DigestSignFinal(ctx, sum, &size);
    assert(ok);
    (void)ok;
    write_bytes(w, sum, size);
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(secret);
}

static void digest_write(const struct digest *d, struct view header, struct view payload,
                         struct writer *w)
{
    switch (d->type) {
    case DIGEST_CRC32:
        write_u64(w, crc32_z(crc32_z(0, header.base, header.len), payload.base, payload.len));
        break;
    case DIGEST_HMAC:
        hmac_sha1(d->key, header, payload, w);
        break;
    case DIGEST_CRC32C:
        write_u32(w, crc32c_more(crc32c(header.base, header.len), payload.base, payload.len));
        break;
    case DIGEST_DUMMY:
        break;
    }
}

/* ---- writing ---- */

static void header_write(struct writer *w, const struct entry_header *h)
{
    write_u64(w, (uint64_t)h->ledger);
    write_u64(w, (uint64_t)h->entry);
    write_u64(w, (uint64_t)h->lac);
    write_u64(w, (uint64_t)h->length);
}

void entry_prefix(const struct entry_header *h, uint32_t payload_crc, size_t payload_len,
                  uint8_t into[ENTRY_PREFIX])
{
    struct writer w = {.base = into, .room = ENTRY_PREFIX};

    header_write(&w, h);
    write_u32(&w, crc32c_combine(crc32c(into, DIGEST_COVERS), payload_crc, payload_len));
}

void entry_prefix_with(const struct digest *d, const struct entry_header *h, struct view payload,
                       uint8_t into[ENTRY_HEADER + DIGEST_SIZE_MAX], size_t *n)
{
    struct writer w = {.base = into, .room = ENTRY_HEADER + DIGEST_SIZE_MAX};

    header_write(&w, h);
    digest_write(d, view_of(into, DIGEST_COVERS), payload, &w);
    *n = w.len;
}

/* ---- reading ---- */

enum err entry_header_read(struct view entry, struct entry_header *out)
{
    struct reader r = reader_of(entry);

    TRY(read_i64(&r, &out->ledger));
    TRY(read_i64(&r, &out->entry));
    TRY(read_i64(&r, &out->lac));
    return read_i64(&r, &out->length);
}

static bool digest_matches(const struct digest *d, struct view entry, struct view payload)
{
    uint8_t sum[DIGEST_SIZE_MAX];
    struct writer w = {.base = sum, .room = sizeof(sum)};

    digest_write(d, view_of(entry.base, DIGEST_COVERS), payload, &w);
    return memcmp(sum, entry.base + ENTRY_HEADER, w.len) == 0;
}

enum err entry_open(const struct digest *d, struct view entry, int64_t ledger, int64_t id,
                    struct entry_header *h, struct view *payload)
{
    size_t prefix = ENTRY_HEADER + digest_size(d->type);

    if (!is_known(d->type) || entry.len < prefix)
        return ERR_CHECKSUM;
    TRY(entry_header_read(entry, h));
    *payload = view_of(entry.base + prefix, entry.len - prefix);
    if (!digest_matches(d, entry, *payload))
        return ERR_CHECKSUM;
    if ((ledger != -1 && h->ledger != ledger) || (id != -1 && h->entry != id))
        return ERR_CHECKSUM;
    return ERR_OK;
}
