#include "tests/unit/bookie/peer.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "proto/entry.h"

struct peer *peer_new(uint16_t port)
{
    struct peer *p = mem_new(struct peer);
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(p->fd, 0);
    ck_assert_int_eq(connect(p->fd, (const struct sockaddr *)&to, sizeof to), 0);
    return p;
}

void peer_drop(struct peer **p)
{
    close((*p)->fd);
    mem_free(*p);
    *p = NULL;
}

void peer_key(bool other, uint8_t key[MASTER_KEY_SIZE])
{
    master_key_of(other ? view_of("other", 5) : view_of("", 0), key);
}

size_t peer_entry(int64_t ledger, int64_t entry, size_t payload, uint8_t *into)
{
    const struct entry_header h = {ledger, entry, entry - 1, (entry + 1) * (int64_t)payload};
    memset(into + ENTRY_PREFIX, (int)(ledger * 31 + entry), payload);
    const struct digest d = digest_of(DIGEST_CRC32C, view_of("", 0));
    size_t n;
    uint8_t prefix[ENTRY_HEADER + DIGEST_SIZE_MAX];
    entry_prefix_with(&d, &h, view_of(into + ENTRY_PREFIX, payload), prefix, &n);
    memcpy(into, prefix, n);
    return n + payload;
}

void peer_send(struct peer *p, const void *bytes, size_t len)
{
    for (const uint8_t *at = bytes; len > 0;) {
        const ssize_t n = send(p->fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the answer will not come, and that is what is looked at */
        at += n;
        len -= (size_t)n;
    }
}

void peer_send_add(struct peer *p, uint16_t flags, bool other_key, int64_t ledger, int64_t entry,
                   size_t payload)
{
    uint8_t key[MASTER_KEY_SIZE];
    uint8_t *bytes = mem_alloc(BOOKIE_ADD_FRONT + ENTRY_PREFIX + payload);
    const size_t len = peer_entry(ledger, entry, payload, bytes + BOOKIE_ADD_FRONT);
    peer_key(other_key, key);
    bookie_write_add(bytes, flags, key, len);
    peer_send(p, bytes, BOOKIE_ADD_FRONT + len);
    mem_free(bytes);
}

void peer_send_read(struct peer *p, uint16_t flags, bool other_key, int64_t ledger, int64_t entry)
{
    uint8_t bytes[BOOKIE_FENCE_SIZE], key[MASTER_KEY_SIZE];
    peer_key(other_key, key);
    peer_send(p, bytes, bookie_write_read(bytes, flags, ledger, entry, key));
}

static bool take(struct peer *p, uint8_t *into, size_t len)
{
    return recv(p->fd, into, len, MSG_WAITALL) == (ssize_t)len;
}

bool peer_receive(struct peer *p, struct bookie_response *out)
{
    uint32_t len;
    if (!take(p, (uint8_t *)&len, sizeof len))
        return false;
    len = ntohl(len);
    ck_assert_uint_le(len, sizeof p->frame);
    if (!take(p, p->frame, len))
        return false;
    ck_assert_int_eq(bookie_response_read(view_of(p->frame, len), out), ERR_OK);
    return true;
}

int32_t peer_add(struct peer *p, uint16_t flags, int64_t ledger, int64_t entry, size_t payload)
{
    struct bookie_response r;
    peer_send_add(p, flags, false, ledger, entry, payload);
    ck_assert(peer_receive(p, &r));
    ck_assert_int_eq(r.op, BOOKIE_ADD);
    ck_assert_int_eq(r.ledger, ledger);
    ck_assert_int_eq(r.entry, entry);
    return r.status;
}

static void check_entry(const struct bookie_response *r)
{
    const struct digest d = digest_of(DIGEST_CRC32C, view_of("", 0));
    struct entry_header h;
    struct view payload;
    ck_assert_int_eq(entry_open(&d, r->body, r->ledger, r->entry, &h, &payload), ERR_OK);
    size_t right = 0; /* one assertion for all: each is a write to a file */
    while (right < payload.len && payload.base[right] == (uint8_t)(h.ledger * 31 + h.entry))
        right++;
    ck_assert_uint_eq(right, payload.len);
}

int32_t peer_read(struct peer *p, uint16_t flags, int64_t ledger, int64_t entry)
{
    struct bookie_response r;
    peer_send_read(p, flags, false, ledger, entry);
    ck_assert(peer_receive(p, &r));
    ck_assert_int_eq(r.op, BOOKIE_READ);
    ck_assert_int_eq(r.ledger, ledger);
    ck_assert_int_eq(r.entry, entry);
    if (r.status == BOOKIE_OK)
        check_entry(&r);
    return r.status;
}
