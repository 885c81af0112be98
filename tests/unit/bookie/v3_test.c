#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "bookie/bookie.h"
#include "common/loop.h"
#include "common/mem.h"
#include "proto/bookie_v3.h"
#include "proto/bookkeeper.pb-c.h"
#include "proto/entry_list.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/place.h"
#include "tests/unit/common/certs.h"

/* Requests and answers of version 3 go through protobuf-c here. */

enum { LEDGER = 7, PAYLOAD = 100, LAC_BODY = 20 };

static struct place *place;
static struct peer *peer;
static uint64_t txn;
static uint8_t packed[64 * 1024], entry[64 * 1024], key[MASTER_KEY_SIZE];
static uint8_t lac_body[LAC_BODY];

static void serve(void)
{
    if (!place)
        place = place_new();
    ck_assert_int_eq(place_start(place), ERR_OK);
    peer = peer_new(bookie_port(place->bookie));
}

static void rest(void)
{
    peer_drop(&peer);
    place_stop(place);
}

static void end(void)
{
    rest();
    place_drop(&place);
}

/* ---- asking --------------------------------------------------------------------------------- */

static uint64_t ask(struct peer *p, Bookkeeper__OperationType operation, Bookkeeper__Request *q)
{
    Bookkeeper__BKPacketHeader h = BOOKKEEPER__BKPACKET_HEADER__INIT;
    h.version = BOOKKEEPER__PROTOCOL_VERSION__VERSION_THREE;
    h.operation = operation;
    h.txnid = ++txn;
    q->header = &h;
    const size_t n = bookkeeper__request__pack(q, packed + 4);
    const uint32_t size = htonl((uint32_t)n);
    memcpy(packed, &size, sizeof size);
    peer_send(p, packed, n + 4);
    return txn;
}

static bool take(struct peer *p, void *into, size_t len)
{
    return recv(p->fd, into, len, MSG_WAITALL) == (ssize_t)len;
}

/* Gives; NULL: the connection has ended. */
static Bookkeeper__Response *answer(struct peer *p, uint64_t of)
{
    uint32_t len;
    if (!take(p, &len, sizeof len))
        return NULL;
    len = ntohl(len);
    ck_assert_uint_le(len, sizeof p->frame);
    ck_assert(take(p, p->frame, len));
    Bookkeeper__Response *r = bookkeeper__response__unpack(NULL, len, p->frame);
    ck_assert_ptr_nonnull(r);
    ck_assert_uint_eq(r->header->txnid, of);
    return r;
}

static int32_t done(Bookkeeper__Response *r)
{
    const int32_t status = (int32_t)r->status;
    bookkeeper__response__free_unpacked(r, NULL);
    return status;
}

static Bookkeeper__AddRequest add_of(int64_t ledger, int64_t id)
{
    Bookkeeper__AddRequest a = BOOKKEEPER__ADD_REQUEST__INIT;
    peer_key(false, key);
    a.ledgerid = ledger;
    a.entryid = id;
    a.masterkey = (ProtobufCBinaryData){sizeof key, key};
    a.body = (ProtobufCBinaryData){peer_entry(ledger, id, PAYLOAD, entry), entry};
    return a;
}

static int32_t add_with(Bookkeeper__AddRequest *a)
{
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    q.addrequest = a;
    Bookkeeper__Response *r = answer(peer, ask(peer, BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY, &q));
    ck_assert_int_eq(r->addresponse->ledgerid, a->ledgerid);
    ck_assert_int_eq(r->addresponse->entryid, a->entryid);
    return done(r);
}

static int32_t add(int64_t ledger, int64_t id)
{
    Bookkeeper__AddRequest a = add_of(ledger, id);
    return add_with(&a);
}

static Bookkeeper__ReadRequest read_of(int64_t ledger, int64_t id)
{
    Bookkeeper__ReadRequest q = BOOKKEEPER__READ_REQUEST__INIT;
    q.ledgerid = ledger;
    q.entryid = id;
    return q;
}

static uint64_t ask_read(struct peer *p, Bookkeeper__ReadRequest *read)
{
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    q.readrequest = read;
    return ask(p, BOOKKEEPER__OPERATION_TYPE__READ_ENTRY, &q);
}

static Bookkeeper__Response *read_with(Bookkeeper__ReadRequest *read)
{
    return answer(peer, ask_read(peer, read));
}

static Bookkeeper__ReadRequest poll_of(int64_t previous, int64_t ms, bool next)
{
    Bookkeeper__ReadRequest q = read_of(LEDGER, -1);
    q.has_previouslac = q.has_timeout = true;
    q.previouslac = previous;
    q.timeout = ms;
    q.has_flag = next;
    q.flag = BOOKKEEPER__READ_REQUEST__FLAG__ENTRY_PIGGYBACK;
    return q;
}

static int32_t write_lac(int64_t ledger, int64_t lac, size_t body)
{
    Bookkeeper__WriteLacRequest w = BOOKKEEPER__WRITE_LAC_REQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    const uint64_t ids[] = {htobe64((uint64_t)ledger), htobe64((uint64_t)lac)};
    memcpy(lac_body, ids, sizeof ids);
    memset(lac_body + sizeof ids, 0x5a, LAC_BODY - sizeof ids);
    peer_key(false, key);
    w.ledgerid = ledger;
    w.lac = lac;
    w.masterkey = (ProtobufCBinaryData){sizeof key, key};
    w.body = (ProtobufCBinaryData){body, lac_body};
    q.writelacrequest = &w;
    return done(answer(peer, ask(peer, BOOKKEEPER__OPERATION_TYPE__WRITE_LAC, &q)));
}

static Bookkeeper__Response *read_lac(int64_t ledger)
{
    Bookkeeper__ReadLacRequest l = BOOKKEEPER__READ_LAC_REQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    l.ledgerid = ledger;
    q.readlacrequest = &l;
    return answer(peer, ask(peer, BOOKKEEPER__OPERATION_TYPE__READ_LAC, &q));
}

static int32_t force(int64_t ledger)
{
    Bookkeeper__ForceLedgerRequest f = BOOKKEEPER__FORCE_LEDGER_REQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    f.ledgerid = ledger;
    q.forceledgerrequest = &f;
    return done(answer(peer, ask(peer, BOOKKEEPER__OPERATION_TYPE__FORCE_LEDGER, &q)));
}

static Bookkeeper__Response *list_of(int64_t ledger)
{
    Bookkeeper__GetListOfEntriesOfLedgerRequest l =
        BOOKKEEPER__GET_LIST_OF_ENTRIES_OF_LEDGER_REQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    l.ledgerid = ledger;
    q.getlistofentriesofledgerrequest = &l;
    return answer(peer, ask(peer, BOOKKEEPER__OPERATION_TYPE__GET_LIST_OF_ENTRIES_OF_LEDGER, &q));
}

/* ---- adds and reads ------------------------------------------------------------------------- */

START_TEST(adds_and_reads)
{
    serve();
    for (int64_t e = 0; e < 3; e++)
        ck_assert_int_eq(add(LEDGER, e), BOOKKEEPER__STATUS_CODE__EOK);
    Bookkeeper__ReadRequest q = read_of(LEDGER, 1);
    Bookkeeper__Response *r = read_with(&q);
    ck_assert_int_eq(r->status, BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert_int_eq(r->readresponse->entryid, 1);
    ck_assert_int_eq(r->readresponse->maxlac, 1); /* as the last entry says */
    const size_t n = peer_entry(LEDGER, 1, PAYLOAD, entry);
    ck_assert_uint_eq(r->readresponse->body.len, n);
    ck_assert_mem_eq(r->readresponse->body.data, entry, n);
    done(r);
    q = read_of(LEDGER, -1);
    r = read_with(&q);
    ck_assert_int_eq(r->readresponse->entryid, -1);
    ck_assert(r->readresponse->has_body);
    done(r);
    q = read_of(LEDGER, 3);
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__ENOENTRY);
    q = read_of(LEDGER + 1, 3);
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__ENOLEDGER);
    q = read_of(-4, 3);
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__EBADREQ);
    ck_assert_int_eq(peer_read(peer, 0, LEDGER, 2), BOOKIE_OK); /* version 2 in between */
    ck_assert_int_eq(add(LEDGER, 3), BOOKKEEPER__STATUS_CODE__EOK);
    end();
}
END_TEST

START_TEST(fences)
{
    serve();
    ck_assert_int_eq(add(LEDGER, 0), BOOKKEEPER__STATUS_CODE__EOK);
    Bookkeeper__ReadRequest q = read_of(LEDGER, -1);
    q.has_flag = true;
    q.flag = BOOKKEEPER__READ_REQUEST__FLAG__FENCE_LEDGER;
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__EUA); /* no key */
    q.has_masterkey = true;
    q.masterkey = (ProtobufCBinaryData){sizeof key, key};
    peer_key(true, key);
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__EUA);
    ck_assert_int_eq(add(LEDGER, 1), BOOKKEEPER__STATUS_CODE__EOK);
    peer_key(false, key);
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert_int_eq(add(LEDGER, 2), BOOKKEEPER__STATUS_CODE__EFENCED);
    Bookkeeper__AddRequest a = add_of(LEDGER, 2);
    a.has_flag = true;
    a.flag = BOOKKEEPER__ADD_REQUEST__FLAG__RECOVERY_ADD;
    ck_assert_int_eq(add_with(&a), BOOKKEEPER__STATUS_CODE__EOK);
    end();
}
END_TEST

START_TEST(refuses_adds)
{
    serve();
    ck_assert_int_eq(add(LEDGER, 0), BOOKKEEPER__STATUS_CODE__EOK);
    Bookkeeper__AddRequest a = add_of(LEDGER, 1);
    peer_key(true, key);
    ck_assert_int_eq(add_with(&a), BOOKKEEPER__STATUS_CODE__EUA);
    a = add_of(LEDGER, 1);
    a.masterkey.len = 5;
    ck_assert_int_eq(add_with(&a), BOOKKEEPER__STATUS_CODE__EUA);
    a = add_of(LEDGER, 1);
    a.entryid = 2;
    ck_assert_int_eq(add_with(&a), BOOKKEEPER__STATUS_CODE__EBADREQ);
    end();
}
END_TEST

/* ---- long polls ----------------------------------------------------------------------------- */

START_TEST(polls_until_the_lac_moves)
{
    serve();
    struct peer *other = peer_new(bookie_port(place->bookie));
    ck_assert_int_eq(add(LEDGER, 0), BOOKKEEPER__STATUS_CODE__EOK);
    for (int64_t e = 0; e < 20; e++) {
        Bookkeeper__ReadRequest q = poll_of(e - 1, 60000, e % 2 == 0);
        if (e % 2)
            q.entryid = e;
        const uint64_t asked = ask_read(other, &q);
        ck_assert_int_eq(add(LEDGER, e + 1), BOOKKEEPER__STATUS_CODE__EOK);
        Bookkeeper__Response *r = answer(other, asked);
        ck_assert_int_eq(r->status, BOOKKEEPER__STATUS_CODE__EOK);
        ck_assert_int_eq(r->readresponse->maxlac, e);
        ck_assert_int_eq(r->readresponse->entryid, e);
        ck_assert(r->readresponse->has_body);
        done(r);
    }
    peer_drop(&other);
    end();
}
END_TEST

START_TEST(polls_no_longer_than_told)
{
    serve();
    ck_assert_int_eq(add(LEDGER, 0), BOOKKEEPER__STATUS_CODE__EOK);
    Bookkeeper__ReadRequest q = poll_of(-1, 50, true);
    Bookkeeper__Response *r = read_with(&q);
    ck_assert_int_eq(r->status, BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert_int_eq(r->readresponse->maxlac, -1);
    ck_assert(!r->readresponse->has_body);
    done(r);
    q = poll_of(-1, -7, false);
    r = read_with(&q);
    ck_assert(r->readresponse->has_body); /* what it asked for by its id, -1 */
    done(r);
    q = poll_of(INT64_MIN, 60000, true);
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__EOK);
    q = poll_of(INT64_MAX, 1, true);
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__EOK);
    q = poll_of(0, 1, true);
    q.entryid = 0;
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__EBADREQ);
    q = poll_of(0, 60000, true);
    q.ledgerid++;
    ck_assert_int_eq(done(read_with(&q)), BOOKKEEPER__STATUS_CODE__ENOLEDGER);
    end();
}
END_TEST

/* An entry that another bookie has is no failure. */
START_TEST(polls_without_the_next_entry)
{
    serve();
    ck_assert_int_eq(add(LEDGER, 5), BOOKKEEPER__STATUS_CODE__EOK);
    Bookkeeper__ReadRequest q = poll_of(2, 60000, true);
    Bookkeeper__Response *r = read_with(&q);
    ck_assert_int_eq(r->status, BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert_int_eq(r->readresponse->maxlac, 4);
    ck_assert_int_eq(r->readresponse->entryid, -1);
    ck_assert(!r->readresponse->has_body);
    done(r);
    end();
}
END_TEST

START_TEST(a_fence_and_an_explicit_lac_wake)
{
    serve();
    struct peer *other = peer_new(bookie_port(place->bookie));
    ck_assert_int_eq(add(LEDGER, 0), BOOKKEEPER__STATUS_CODE__EOK);
    Bookkeeper__ReadRequest q = poll_of(-1, 60000, true);
    uint64_t asked = ask_read(other, &q);
    ck_assert_int_eq(write_lac(LEDGER, 0, LAC_BODY), BOOKKEEPER__STATUS_CODE__EOK);
    Bookkeeper__Response *r = answer(other, asked);
    ck_assert_int_eq(r->readresponse->maxlac, 0);
    done(r);
    q = poll_of(0, 60000, true);
    asked = ask_read(other, &q);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, LEDGER, -1), BOOKIE_OK);
    r = answer(other, asked);
    ck_assert_int_eq(r->readresponse->maxlac, 0);
    done(r);
    peer_drop(&other);
    end();
}
END_TEST

START_TEST(stops_with_polls_waiting)
{
    serve();
    ck_assert_int_eq(add(LEDGER, 0), BOOKKEEPER__STATUS_CODE__EOK);
    Bookkeeper__ReadRequest q = poll_of(-1, 60000, true);
    for (unsigned i = 0; i < 10; i++)
        ask_read(peer, &q);
    struct peer *gone = peer_new(bookie_port(place->bookie));
    ask_read(gone, &q);
    peer_drop(&gone);
    ck_assert_int_eq(peer_read(peer, 0, LEDGER + 1, 0), BOOKIE_NO_LEDGER); /* all have arrived */
    end();
}
END_TEST

/* ---- explicit LACs, force ------------------------------------------------------------------- */

static void has_lac(int64_t lac)
{
    uint64_t found;
    Bookkeeper__Response *r = read_lac(LEDGER);
    ck_assert_int_eq(r->status, BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert_uint_eq(r->readlacresponse->lacbody.len, LAC_BODY);
    memcpy(&found, r->readlacresponse->lacbody.data + 8, sizeof found);
    ck_assert_int_eq((int64_t)be64toh(found), lac);
    ck_assert_int_eq(r->readlacresponse->lacbody.data[LAC_BODY - 1], 0x5a);
    done(r);
}

START_TEST(explicit_lacs_survive)
{
    serve();
    ck_assert_int_eq(done(read_lac(LEDGER)), BOOKKEEPER__STATUS_CODE__ENOLEDGER);
    ck_assert_int_eq(write_lac(LEDGER, -1, LAC_BODY), BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert_int_eq(write_lac(LEDGER, 4, LAC_BODY), BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert_int_eq(write_lac(LEDGER, 3, LAC_BODY), BOOKKEEPER__STATUS_CODE__EOK);
    has_lac(4); /* it only grows */
    ck_assert_int_eq(write_lac(LEDGER, 5, 15), BOOKKEEPER__STATUS_CODE__EBADREQ);
    for (int round = 0; round < 2; round++) { /* from the journal, then from the index */
        rest();
        serve();
        has_lac(4);
    }
    ck_assert_int_eq(add(LEDGER, 9), BOOKKEEPER__STATUS_CODE__EOK);
    Bookkeeper__Response *r = read_lac(LEDGER);
    ck_assert(r->readlacresponse->has_lacbody && r->readlacresponse->has_lastentrybody);
    done(r);
    ck_assert_int_eq(add(LEDGER + 1, 0), BOOKKEEPER__STATUS_CODE__EOK);
    r = read_lac(LEDGER + 1);
    ck_assert(!r->readlacresponse->has_lacbody && r->readlacresponse->has_lastentrybody);
    done(r);
    end();
}
END_TEST

START_TEST(nothing_to_say_of_a_lac)
{
    serve();
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, LEDGER, -1), BOOKIE_NO_ENTRY);
    ck_assert_int_eq(done(read_lac(LEDGER)), BOOKKEEPER__STATUS_CODE__ENOENTRY);
    end();
}
END_TEST

START_TEST(defers_and_forces)
{
    serve();
    for (int64_t e = 0; e < 100; e++) {
        Bookkeeper__AddRequest a = add_of(LEDGER, e);
        a.has_writeflags = true;
        a.writeflags = 1;
        ck_assert_int_eq(add_with(&a), BOOKKEEPER__STATUS_CODE__EOK);
        if (e % 10 == 9)
            ck_assert_int_eq(force(LEDGER), BOOKKEEPER__STATUS_CODE__EOK);
    }
    ck_assert_int_eq(force(LEDGER), BOOKKEEPER__STATUS_CODE__EOK); /* nothing is new */
    rest();
    serve();
    for (int64_t e = 0; e < 100; e++)
        ck_assert_int_eq(peer_read(peer, 0, LEDGER, e), BOOKIE_OK);
    end();
}
END_TEST

START_TEST(read_only_takes_no_lac)
{
    place = place_new();
    place_set(place, "forceReadOnlyBookie=true");
    serve();
    ck_assert_int_eq(write_lac(LEDGER, 1, LAC_BODY), BOOKKEEPER__STATUS_CODE__EREADONLY);
    ck_assert_int_eq(add(LEDGER, 0), BOOKKEEPER__STATUS_CODE__EREADONLY);
    end();
}
END_TEST

/* ---- the others ----------------------------------------------------------------------------- */

static void is_listed(uint32_t groups, int64_t first, int64_t last, uint32_t size, uint32_t period)
{
    Bookkeeper__Response *r = list_of(LEDGER);
    ck_assert_int_eq(r->status, BOOKKEEPER__STATUS_CODE__EOK);
    const ProtobufCBinaryData *l =
        &r->getlistofentriesofledgerresponse->availabilityofentriesofledger;
    ck_assert_uint_eq(l->len, ENTRY_LIST_HEADER + groups * ENTRY_LIST_GROUP);
    const uint64_t ids[] = {htobe64((uint64_t)first), htobe64((uint64_t)last)};
    const uint32_t sizes[] = {htobe32(size), htobe32(period)};
    if (groups > 0) {
        ck_assert_mem_eq(l->data + ENTRY_LIST_HEADER, ids, sizeof ids);
        ck_assert_mem_eq(l->data + ENTRY_LIST_HEADER + sizeof ids, sizes, sizeof sizes);
    }
    done(r);
}

START_TEST(lists_entries)
{
    serve();
    ck_assert_int_eq(done(list_of(LEDGER)), BOOKKEEPER__STATUS_CODE__ENOLEDGER);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, LEDGER + 2, -1), BOOKIE_NO_ENTRY);
    for (int64_t e = 0; e < 600; e++)
        ck_assert_int_eq(peer_add(peer, 0, LEDGER, e * 2, 1), BOOKIE_OK);
    is_listed(1, 0, 1198, 1, 2);
    rest();
    serve(); /* in the index now */
    is_listed(1, 0, 1198, 1, 2);
    for (int64_t e = 590; e < 700; e++) /* in both, and in memory alone */
        ck_assert_int_eq(peer_add(peer, 0, LEDGER, e * 2, 1), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, LEDGER + 2, 3, 1), BOOKIE_FENCED);
    is_listed(1, 0, 1398, 1, 2);
    end();
}
END_TEST

START_TEST(tells_its_space)
{
    serve();
    for (int mask = 0; mask < 4; mask++) {
        Bookkeeper__GetBookieInfoRequest i = BOOKKEEPER__GET_BOOKIE_INFO_REQUEST__INIT;
        Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
        i.has_requested = true;
        i.requested = mask;
        q.getbookieinforequest = &i;
        Bookkeeper__Response *r =
            answer(peer, ask(peer, BOOKKEEPER__OPERATION_TYPE__GET_BOOKIE_INFO, &q));
        const Bookkeeper__GetBookieInfoResponse *a = r->getbookieinforesponse;
        ck_assert_int_eq(a->has_totaldiskcapacity, mask & 1);
        ck_assert_int_eq(a->has_freediskspace, mask >> 1);
        if (mask == 3)
            ck_assert(a->totaldiskcapacity >= a->freediskspace && a->freediskspace > 0);
        done(r);
    }
    end();
}
END_TEST

START_TEST(authenticates_nobody)
{
    serve();
    Bookkeeper__AuthMessage m = BOOKKEEPER__AUTH_MESSAGE__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    m.authpluginname = (char *)(uintptr_t) "some";
    q.authrequest = &m;
    Bookkeeper__Response *r = answer(peer, ask(peer, BOOKKEEPER__OPERATION_TYPE__AUTH, &q));
    ck_assert_str_eq(r->authresponse->authpluginname, "AuthDisabledPlugin");
    ck_assert_int_eq(done(r), BOOKKEEPER__STATUS_CODE__EOK);
    end();
}
END_TEST

START_TEST(answers_what_it_cannot_do)
{
    static const Bookkeeper__OperationType none[] = {
        BOOKKEEPER__OPERATION_TYPE__RANGE_READ_ENTRY, BOOKKEEPER__OPERATION_TYPE__RANGE_ADD_ENTRY,
        BOOKKEEPER__OPERATION_TYPE__BATCH_READ_ENTRY, BOOKKEEPER__OPERATION_TYPE__READ_ENTRY};
    serve();
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
        ck_assert_int_eq(done(answer(peer, ask(peer, none[i], &q))),
                         BOOKKEEPER__STATUS_CODE__EBADREQ);
    }
    Bookkeeper__StartTLSRequest tls = BOOKKEEPER__START_TLSREQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    q.starttlsrequest = &tls;
    ck_assert_int_eq(done(answer(peer, ask(peer, BOOKKEEPER__OPERATION_TYPE__START_TLS, &q))),
                     BOOKKEEPER__STATUS_CODE__EBADREQ); /* without a certificate */
    Bookkeeper__BKPacketHeader h = BOOKKEEPER__BKPACKET_HEADER__INIT;
    h.version = BOOKKEEPER__PROTOCOL_VERSION__VERSION_TWO;
    h.operation = BOOKKEEPER__OPERATION_TYPE__READ_ENTRY;
    q = (Bookkeeper__Request)BOOKKEEPER__REQUEST__INIT;
    q.header = &h;
    const size_t n = bookkeeper__request__pack(&q, packed + 4);
    memcpy(packed, &(uint32_t){htonl((uint32_t)n)}, 4);
    peer_send(peer, packed, n + 4);
    ck_assert_int_eq(done(answer(peer, 0)), BOOKKEEPER__STATUS_CODE__EBADVERSION);
    end();
}
END_TEST

/* ---- TLS ------------------------------------------------------------------------------------ */

static struct certs certs;

static void set_file(const char *key_name, const char *file)
{
    char *text = mem_format("%s=%s", key_name, file);
    place_set(place, text);
    mem_free(text);
}

static void serve_with_tls(bool of_clients)
{
    place = place_new();
    certs_make(&certs);
    place_set(place, "tlsProviderFactoryClass=org.apache.bookkeeper.tls.TLSContextFactory");
    place_set(place, "tlsKeyStoreType=PEM");
    place_set(place, "tlsTrustStoreType=PEM");
    set_file("tlsKeyStore", certs.key);
    set_file("tlsCertificatePath", certs.cert);
    set_file("tlsTrustStore", certs.cert);
    if (of_clients)
        place_set(place, "tlsClientAuthentication=true");
    place_set(place, "tlsCertFilesRefreshDurationSeconds=1");
    serve();
}

static int32_t ask_for_tls(void)
{
    Bookkeeper__StartTLSRequest tls = BOOKKEEPER__START_TLSREQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    q.starttlsrequest = &tls;
    return done(answer(peer, ask(peer, BOOKKEEPER__OPERATION_TYPE__START_TLS, &q)));
}

/* An add of version 2 goes through it; false: it was refused. */
static bool adds_by_tls(bool shows_certificate)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    uint8_t bytes[1024], response[BOOKIE_RESPONSE_SIZE];
    ck_assert_int_eq(SSL_CTX_load_verify_locations(ctx, certs.cert, NULL), 1);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (shows_certificate) {
        ck_assert_int_eq(SSL_CTX_use_certificate_chain_file(ctx, certs.cert), 1);
        ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(ctx, certs.key, SSL_FILETYPE_PEM), 1);
    }
    signal(SIGPIPE, SIG_IGN); /* who is refused finds out by writing */
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, peer->fd);
    ck_assert_int_eq(SSL_connect(ssl), 1);
    peer_key(false, key);
    const size_t n = peer_entry(LEDGER, 0, PAYLOAD, bytes + BOOKIE_ADD_FRONT);
    bookie_write_add(bytes, 0, key, n);
    bool fine = SSL_write(ssl, bytes, (int)(BOOKIE_ADD_FRONT + n)) > 0 &&
                SSL_read(ssl, response, sizeof response) == sizeof response;
    if (fine)
        ck_assert_int_eq(response[11], BOOKIE_OK);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return fine;
}

START_TEST(upgrades_to_tls)
{
    serve_with_tls(_i == 1);
    ck_assert_int_eq(add(LEDGER, 5), BOOKKEEPER__STATUS_CODE__EOK); /* who does not ask */
    ck_assert_int_eq(ask_for_tls(), BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert(adds_by_tls(_i == 1));
    peer_drop(&peer);
    peer = peer_new(bookie_port(place->bookie));
    ck_assert_int_eq(peer_read(peer, 0, LEDGER, 0), BOOKIE_OK);
    end();
    certs_remove(&certs);
}
END_TEST

START_TEST(refuses_clients_without_a_certificate)
{
    serve_with_tls(true);
    ck_assert_int_eq(ask_for_tls(), BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert(!adds_by_tls(false));
    end();
    certs_remove(&certs);
}
END_TEST

/* A request behind the question, before hands are shaken, is nobody's. */
START_TEST(takes_nothing_between_the_question_and_the_handshake)
{
    uint8_t read[BOOKIE_FENCE_SIZE];
    Bookkeeper__StartTLSRequest tls = BOOKKEEPER__START_TLSREQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    Bookkeeper__BKPacketHeader h = BOOKKEEPER__BKPACKET_HEADER__INIT;
    struct bookie_response r;
    serve_with_tls(false);
    h.version = BOOKKEEPER__PROTOCOL_VERSION__VERSION_THREE;
    h.operation = BOOKKEEPER__OPERATION_TYPE__START_TLS;
    q.starttlsrequest = &tls;
    q.header = &h;
    const size_t n = bookkeeper__request__pack(&q, packed + 4);
    memcpy(packed, &(uint32_t){htonl((uint32_t)n)}, 4);
    memcpy(packed + 4 + n, read, bookie_write_read(read, 0, LEDGER, 0, NULL));
    peer_send(peer, packed, 4 + n + BOOKIE_READ_SIZE);
    ck_assert(!peer_receive(peer, &r));
    end();
    certs_remove(&certs);
}
END_TEST

START_TEST(refuses_settings_that_promise_what_is_not_there)
{
    static const char *const wrong[] = {
        "tlsKeyStoreType=JKS", "tlsProviderFactoryClass=another", "tlsProviderFactoryClass=",
        "tlsTrustStore=",      "tlsCertificatePath=/nowhere",     "tlsTrustStoreType=JKS"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        serve_with_tls(true);
        rest();
        place_set(place, wrong[i]);
        ck_assert_int_eq(place_start(place), ERR_BAD_CONFIG);
        place_drop(&place);
        certs_remove(&certs);
    }
}
END_TEST

/* A peer that asks and does not read is refused entries before they fill the memory. */
START_TEST(who_does_not_read_gets_no_more)
{
    enum { LARGE = 1024 * 1024, ASKED = 100 };
    struct bookie_response r;
    unsigned given = 0, refused = 0;
    serve();
    ck_assert_int_eq(peer_add(peer, 0, LEDGER, 0, LARGE), BOOKIE_OK);
    for (unsigned i = 0; i < ASKED; i++) /* at once, so that all are asked before one is answered */
        bookie_write_read(packed + i * BOOKIE_READ_SIZE, 0, LEDGER, 0, NULL);
    peer_send(peer, packed, ASKED * BOOKIE_READ_SIZE);
    for (unsigned i = 0; i < ASKED; i++) {
        ck_assert(peer_receive(peer, &r));
        given += r.status == BOOKIE_OK;
        refused += r.status == BOOKIE_TOO_MANY && r.body.len == 0;
    }
    ck_assert_uint_eq(given + refused, ASKED);
    ck_assert_uint_ge(given, 1);
    ck_assert_uint_ge(refused, 1);
    ck_assert_int_eq(peer_read(peer, 0, LEDGER, 0), BOOKIE_OK);
    end();
}
END_TEST

int main(void)
{
    return suite_run("v3", (suite_case[]){
                               SUITE_CASE(adds_and_reads),
                               SUITE_CASE(fences),
                               SUITE_CASE(refuses_adds),
                               SUITE_CASE(polls_until_the_lac_moves),
                               SUITE_CASE(polls_no_longer_than_told),
                               SUITE_CASE(polls_without_the_next_entry),
                               SUITE_CASE(a_fence_and_an_explicit_lac_wake),
                               SUITE_CASE(stops_with_polls_waiting),
                               SUITE_CASE(explicit_lacs_survive),
                               SUITE_CASE(nothing_to_say_of_a_lac),
                               SUITE_CASE(defers_and_forces),
                               SUITE_CASE(read_only_takes_no_lac),
                               SUITE_CASE(lists_entries),
                               SUITE_CASE(tells_its_space),
                               SUITE_CASE(authenticates_nobody),
                               SUITE_CASE(answers_what_it_cannot_do),
                               SUITE_LOOP(upgrades_to_tls, 2),
                               SUITE_CASE(refuses_clients_without_a_certificate),
                               SUITE_CASE(takes_nothing_between_the_question_and_the_handshake),
                               SUITE_CASE(refuses_settings_that_promise_what_is_not_there),
                               SUITE_CASE(who_does_not_read_gets_no_more),
                               {0},
                           });
}
