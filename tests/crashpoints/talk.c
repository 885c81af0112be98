#include "tests/crashpoints/talk.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "proto/bookie_frame.h"
#include "proto/bookie_v3.h"
#include "proto/bookkeeper.pb-c.h"
#include "tests/crashpoints/book.h"

enum { OUT = 8 * 1024 * 1024, LAC_BODY = 20 };

struct talk {
    int fd;
    size_t waiting; /* bytes to be sent */
    Bookkeeper__Response *answer;
    uint8_t out[OUT], in[BOOKIE_FRAME_MAX + 64];
};

struct talk *talk_open(uint16_t port, unsigned patience_s)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = patience_s};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        close(fd);
        return NULL;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct talk *t = calloc(1, sizeof *t);
    t->fd = fd;
    return t;
}

static void drop_answer(struct talk *t)
{
    if (t->answer)
        bookkeeper__response__free_unpacked(t->answer, NULL);
    t->answer = NULL;
}

void talk_close(struct talk **t)
{
    if (!*t)
        return;
    drop_answer(*t);
    close((*t)->fd);
    free(*t);
    *t = NULL;
}

/* ---- asking --------------------------------------------------------------------------------- */

static void flush(struct talk *t)
{
    for (size_t at = 0; at < t->waiting;) {
        const ssize_t n = send(t->fd, t->out + at, t->waiting - at, MSG_NOSIGNAL);
        if (n <= 0)
            break; /* no answer will come, and that is what is looked at */
        at += (size_t)n;
    }
    t->waiting = 0;
}

static uint8_t *room(struct talk *t, size_t len)
{
    if (t->waiting + len > OUT)
        flush(t);
    return t->out + t->waiting;
}

static void ask_v3(struct talk *t, uint64_t tag, Bookkeeper__OperationType operation,
                   Bookkeeper__Request *q)
{
    Bookkeeper__BKPacketHeader h = BOOKKEEPER__BKPACKET_HEADER__INIT;
    h.version = BOOKKEEPER__PROTOCOL_VERSION__VERSION_THREE;
    h.operation = operation;
    h.txnid = tag;
    q->header = &h;
    const size_t n = bookkeeper__request__get_packed_size(q);
    const uint32_t size = htonl((uint32_t)n);
    uint8_t *at = room(t, n + sizeof size);
    memcpy(at, &size, sizeof size);
    bookkeeper__request__pack(q, at + sizeof size);
    t->waiting += n + sizeof size;
}

static void add_deferred(struct talk *t, uint64_t tag, int64_t ledger, int64_t entry,
                         const uint8_t *bytes, size_t len)
{
    uint8_t key[MASTER_KEY_SIZE];
    Bookkeeper__AddRequest a = BOOKKEEPER__ADD_REQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    book_key(ledger, key);
    a.ledgerid = ledger;
    a.entryid = entry;
    a.masterkey = (ProtobufCBinaryData){sizeof key, key};
    a.body = (ProtobufCBinaryData){len, (uint8_t *)(uintptr_t)bytes};
    a.has_writeflags = true;
    a.writeflags = 1;
    q.addrequest = &a;
    ask_v3(t, tag, BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY, &q);
}

void talk_add(struct talk *t, unsigned flags, uint64_t tag, int64_t ledger, int64_t entry,
              const uint8_t *bytes, size_t len, bool other_key)
{
    uint8_t key[MASTER_KEY_SIZE];
    if (flags & TALK_DEFERRED) {
        add_deferred(t, tag, ledger, entry, bytes, len);
        return;
    }
    book_key(other_key ? -ledger : ledger, key);
    uint8_t *at = room(t, BOOKIE_ADD_FRONT + len);
    bookie_write_add(at, (uint16_t)flags, key, len);
    memcpy(at + BOOKIE_ADD_FRONT, bytes, len);
    t->waiting += BOOKIE_ADD_FRONT + len;
}

void talk_read(struct talk *t, unsigned flags, int64_t ledger, int64_t entry)
{
    uint8_t key[MASTER_KEY_SIZE];
    book_key(ledger, key);
    uint8_t *at = room(t, BOOKIE_FENCE_SIZE);
    t->waiting += bookie_write_read(at, (uint16_t)flags, ledger, entry, key);
}

void talk_write_lac(struct talk *t, uint64_t tag, int64_t ledger, int64_t lac)
{
    uint8_t key[MASTER_KEY_SIZE], body[LAC_BODY];
    const uint64_t ids[] = {htobe64((uint64_t)ledger), htobe64((uint64_t)lac)};
    Bookkeeper__WriteLacRequest w = BOOKKEEPER__WRITE_LAC_REQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    memcpy(body, ids, sizeof ids);
    memset(body + sizeof ids, 0x5a, LAC_BODY - sizeof ids);
    book_key(ledger, key);
    w.ledgerid = ledger;
    w.lac = lac;
    w.masterkey = (ProtobufCBinaryData){sizeof key, key};
    w.body = (ProtobufCBinaryData){sizeof body, body};
    q.writelacrequest = &w;
    ask_v3(t, tag, BOOKKEEPER__OPERATION_TYPE__WRITE_LAC, &q);
}

void talk_read_lac(struct talk *t, uint64_t tag, int64_t ledger)
{
    Bookkeeper__ReadLacRequest l = BOOKKEEPER__READ_LAC_REQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    l.ledgerid = ledger;
    q.readlacrequest = &l;
    ask_v3(t, tag, BOOKKEEPER__OPERATION_TYPE__READ_LAC, &q);
}

void talk_force(struct talk *t, uint64_t tag, int64_t ledger)
{
    Bookkeeper__ForceLedgerRequest f = BOOKKEEPER__FORCE_LEDGER_REQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    f.ledgerid = ledger;
    q.forceledgerrequest = &f;
    ask_v3(t, tag, BOOKKEEPER__OPERATION_TYPE__FORCE_LEDGER, &q);
}

/* ---- being answered ------------------------------------------------------------------------- */

static bool take(struct talk *t, void *into, size_t len)
{
    return recv(t->fd, into, len, MSG_WAITALL) == (ssize_t)len;
}

static int32_t status_v2(Bookkeeper__StatusCode s)
{
    switch (s) {
    case BOOKKEEPER__STATUS_CODE__EOK:
        return BOOKIE_OK;
    case BOOKKEEPER__STATUS_CODE__ENOLEDGER:
        return BOOKIE_NO_LEDGER;
    case BOOKKEEPER__STATUS_CODE__ENOENTRY:
        return BOOKIE_NO_ENTRY;
    case BOOKKEEPER__STATUS_CODE__EUA:
        return BOOKIE_EUA;
    case BOOKKEEPER__STATUS_CODE__EFENCED:
        return BOOKIE_FENCED;
    case BOOKKEEPER__STATUS_CODE__EREADONLY:
        return BOOKIE_READ_ONLY;
    case BOOKKEEPER__STATUS_CODE__ETOOMANYREQUESTS:
        return BOOKIE_TOO_MANY;
    case BOOKKEEPER__STATUS_CODE__EBADREQ:
        return BOOKIE_BAD_REQUEST;
    default:
        return BOOKIE_EIO;
    }
}

static bool read_v3(struct talk *t, size_t len, struct talk_answer *out)
{
    Bookkeeper__Response *r = t->answer = bookkeeper__response__unpack(NULL, len, t->in);
    if (!r)
        return false;
    out->tag = r->header->txnid;
    out->status = status_v2(r->status);
    if (r->addresponse) {
        out->kind = TALK_ADD;
        out->ledger = r->addresponse->ledgerid;
        out->entry = r->addresponse->entryid;
    } else if (r->writelacresponse) {
        out->kind = TALK_WRITE_LAC;
        out->ledger = r->writelacresponse->ledgerid;
    } else if (r->forceledgerresponse) {
        out->kind = TALK_FORCE;
        out->ledger = r->forceledgerresponse->ledgerid;
    } else if (r->readlacresponse) {
        out->kind = TALK_READ_LAC;
        out->ledger = r->readlacresponse->ledgerid;
        out->body = r->readlacresponse->lacbody.data;
        out->len = r->readlacresponse->has_lacbody ? r->readlacresponse->lacbody.len : 0;
    } else {
        return false;
    }
    return true;
}

static bool read_v2(struct talk *t, size_t len, struct talk_answer *out)
{
    struct bookie_response r;
    if (bookie_response_read(view_of(t->in, len), &r))
        return false;
    out->kind = r.op == BOOKIE_ADD ? TALK_ADD : TALK_READ;
    out->status = r.status;
    out->ledger = r.ledger;
    out->entry = r.entry;
    out->body = r.body.base;
    out->len = r.body.len;
    return true;
}

bool talk_next(struct talk *t, struct talk_answer *out)
{
    uint32_t len;
    flush(t);
    drop_answer(t);
    *out = (struct talk_answer){0};
    if (!take(t, &len, sizeof len))
        return false;
    len = ntohl(len);
    if (len > sizeof t->in || !take(t, t->in, len))
        return false;
    return t->in[0] == BOOKIE_V3_FIRST_BYTE ? read_v3(t, len, out) : read_v2(t, len, out);
}
