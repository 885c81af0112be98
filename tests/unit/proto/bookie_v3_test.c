#include "proto/bookie_v3.h"

#include "common/mem.h"
#include "proto/bookkeeper.pb-c.h"
#include "tests/lib/suite.h"
#include "tests/unit/proto/bytes.h"

/* Requests are packed and answers unpacked by protobuf-c: the other implementation. */

static uint8_t entry[48] = {0, 0, 0, 0, 0, 0, 4, 0xd2, 0, 0, 0, 0, 0, 0, 0, 5};
static uint8_t key[MASTER_KEY_SIZE] = {1, 2, 3};
static uint8_t packed[4096];

struct sample {
    Bookkeeper__BKPacketHeader header;
    Bookkeeper__Request request;
    Bookkeeper__ReadRequest read;
    Bookkeeper__AddRequest add;
    Bookkeeper__WriteLacRequest write_lac;
};

static struct sample sample_of(Bookkeeper__OperationType operation)
{
    struct sample s = {.header = BOOKKEEPER__BKPACKET_HEADER__INIT,
                       .request = BOOKKEEPER__REQUEST__INIT,
                       .read = BOOKKEEPER__READ_REQUEST__INIT,
                       .add = BOOKKEEPER__ADD_REQUEST__INIT,
                       .write_lac = BOOKKEEPER__WRITE_LAC_REQUEST__INIT};
    s.header.version = BOOKKEEPER__PROTOCOL_VERSION__VERSION_THREE;
    s.header.operation = operation;
    s.header.txnid = UINT64_MAX - 1;
    s.read.ledgerid = s.add.ledgerid = s.write_lac.ledgerid = 1234;
    s.read.entryid = -1;
    s.add.entryid = 5;
    s.add.masterkey = (ProtobufCBinaryData){sizeof key, key};
    s.add.body = (ProtobufCBinaryData){sizeof entry, entry};
    s.write_lac.lac = 5;
    s.write_lac.masterkey = s.add.masterkey;
    s.write_lac.body = (ProtobufCBinaryData){20, entry};
    return s;
}

static struct view pack(struct sample *s)
{
    s->request.header = &s->header;
    ck_assert_uint_le(bookkeeper__request__get_packed_size(&s->request), sizeof packed);
    return view_of(packed, bookkeeper__request__pack(&s->request, packed));
}

static enum err read_sample(struct sample *s, struct bookie_request *q, struct bookie_v3 *v3)
{
    return bookie_v3_read(pack(s), q, v3);
}

START_TEST(reads_an_add)
{
    struct sample s = sample_of(BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY);
    struct bookie_request q;
    struct bookie_v3 v3;
    s.request.addrequest = &s.add;
    s.add.has_writeflags = s.add.has_flag = s.header.has_priority = true;
    s.add.writeflags = 1;
    s.add.flag = BOOKKEEPER__ADD_REQUEST__FLAG__RECOVERY_ADD;
    s.header.priority = 100;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert_int_eq(packed[0], BOOKIE_V3_FIRST_BYTE);
    ck_assert_int_eq(q.op, BOOKIE_ADD);
    ck_assert_int_eq(q.version, BOOKIE_VERSION_3);
    ck_assert_int_eq(q.flags, BOOKIE_RECOVERY_ADD | BOOKIE_HIGH_PRIORITY);
    ck_assert_int_eq(q.ledger, 1234);
    ck_assert_int_eq(q.entry, 5);
    ck_assert(q.has_key);
    ck_assert_mem_eq(q.key, key, sizeof key);
    ck_assert_uint_eq(q.body.len, sizeof entry);
    ck_assert_mem_eq(q.body.base, entry, sizeof entry);
    ck_assert(v3.is_deferred);
    ck_assert_uint_eq(v3.txn, UINT64_MAX - 1);
    ck_assert_int_eq(v3.operation, BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY);
}
END_TEST

START_TEST(an_add_of_another_entry_is_nothing)
{
    struct sample s = sample_of(BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY);
    struct bookie_request q;
    struct bookie_v3 v3;
    s.request.addrequest = &s.add;
    s.add.entryid = 6;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert_int_eq(q.op, BOOKIE_NOTHING);
    s.add.entryid = 5;
    s.add.body.len = 31;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert_int_eq(q.op, BOOKIE_NOTHING);
}
END_TEST

START_TEST(reads_reads)
{
    struct sample s = sample_of(BOOKKEEPER__OPERATION_TYPE__READ_ENTRY);
    struct bookie_request q;
    struct bookie_v3 v3;
    s.request.readrequest = &s.read;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert_int_eq(q.op, BOOKIE_READ);
    ck_assert_int_eq(q.entry, -1);
    ck_assert_int_eq(q.flags, 0);
    ck_assert(!q.has_key);
    ck_assert(!v3.waits);
    s.read.has_previouslac = s.read.has_timeout = s.read.has_flag = true;
    s.read.previouslac = -1;
    s.read.timeout = 1500;
    s.read.flag = BOOKKEEPER__READ_REQUEST__FLAG__ENTRY_PIGGYBACK;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert(v3.waits && v3.wants_next);
    ck_assert_int_eq(v3.previous_lac, -1);
    ck_assert_int_eq(v3.timeout_ms, 1500);
    s.read.flag = BOOKKEEPER__READ_REQUEST__FLAG__FENCE_LEDGER;
    s.read.has_masterkey = true;
    s.read.masterkey = s.add.masterkey;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert(!v3.waits && !v3.wants_next);
    ck_assert(q.has_key);
    ck_assert_int_eq(q.flags, BOOKIE_DO_FENCING);
    s.read.masterkey.len = 19;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert(!q.has_key);
}
END_TEST

START_TEST(reads_an_explicit_lac)
{
    struct sample s = sample_of(BOOKKEEPER__OPERATION_TYPE__WRITE_LAC);
    struct bookie_request q;
    struct bookie_v3 v3;
    s.request.writelacrequest = &s.write_lac;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert_int_eq(q.op, BOOKIE_WRITE_LAC);
    ck_assert_int_eq(v3.lac, 5);
    ck_assert_uint_eq(q.body.len, 20);
    s.write_lac.lac = 6; /* its body says 5 */
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert_int_eq(q.op, BOOKIE_NOTHING);
    s.write_lac.lac = 5;
    s.write_lac.body.len = 15;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert_int_eq(q.op, BOOKIE_NOTHING);
    uint8_t longest[EXPLICIT_LAC_MAX + 1] = {0};
    memcpy(longest, entry, 16);
    s.write_lac.body = (ProtobufCBinaryData){sizeof longest, longest};
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
    ck_assert_int_eq(q.op, BOOKIE_NOTHING);
}
END_TEST

/* In the order of OperationType; what has no message here is nothing. */
START_TEST(an_operation_without_its_message_is_nothing)
{
    for (int op = 1; op <= BOOKKEEPER__OPERATION_TYPE__BATCH_READ_ENTRY; op++) {
        struct sample s = sample_of((Bookkeeper__OperationType)op);
        struct bookie_request q;
        struct bookie_v3 v3;
        ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_OK);
        ck_assert_int_eq(q.op, BOOKIE_NOTHING);
        ck_assert_int_eq(v3.operation, op);
    }
}
END_TEST

START_TEST(reads_the_others)
{
    static const struct {
        Bookkeeper__OperationType operation;
        const char *message;
        uint8_t op;
    } others[] = {
        {BOOKKEEPER__OPERATION_TYPE__READ_LAC, "c20603 08d209", BOOKIE_READ_LAC},
        {BOOKKEEPER__OPERATION_TYPE__GET_BOOKIE_INFO, "ca0602 0803", BOOKIE_INFO},
        {BOOKKEEPER__OPERATION_TYPE__START_TLS, "d20600", BOOKIE_START_TLS},
        {BOOKKEEPER__OPERATION_TYPE__FORCE_LEDGER, "da0603 08d209", BOOKIE_FORCE},
        {BOOKKEEPER__OPERATION_TYPE__GET_LIST_OF_ENTRIES_OF_LEDGER, "e20603 08d209", BOOKIE_LIST},
        {BOOKKEEPER__OPERATION_TYPE__AUTH, "b20604 0a00 1200", BOOKIE_AUTH},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct sample s = sample_of(others[i].operation);
        struct bytes message = bytes_of(others[i].message);
        struct bookie_request q;
        struct bookie_v3 v3;
        const struct view head = pack(&s);
        memcpy(packed + head.len, message.at, message.len);
        ck_assert_int_eq(bookie_v3_read(view_of(packed, head.len + message.len), &q, &v3), ERR_OK);
        ck_assert_int_eq(q.op, others[i].op);
        if (q.op == BOOKIE_INFO)
            ck_assert_int_eq(v3.requested, 3);
        else if (q.op != BOOKIE_AUTH && q.op != BOOKIE_START_TLS)
            ck_assert_int_eq(q.ledger, 1234);
    }
}
END_TEST

START_TEST(says_which_version)
{
    struct sample s = sample_of(BOOKKEEPER__OPERATION_TYPE__READ_ENTRY);
    struct bookie_request q;
    struct bookie_v3 v3;
    s.header.version = BOOKKEEPER__PROTOCOL_VERSION__VERSION_TWO;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_UNSUPPORTED_VERSION);
    ck_assert_uint_eq(v3.txn, UINT64_MAX - 1);
    s.header.version = 4;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_MALFORMED);
    s.header.version = BOOKKEEPER__PROTOCOL_VERSION__VERSION_THREE;
    s.header.operation = 13;
    ck_assert_int_eq(read_sample(&s, &q, &v3), ERR_MALFORMED);
}
END_TEST

START_TEST(refuses_every_truncation)
{
    struct sample s = sample_of(BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY);
    struct bookie_request q;
    struct bookie_v3 v3;
    s.request.addrequest = &s.add;
    const struct view whole = pack(&s);
    for (size_t n = 0; n < whole.len; n++) {
        const enum err err = bookie_v3_read(view_of(packed, n), &q, &v3);
        ck_assert(err == ERR_MALFORMED || q.op == BOOKIE_NOTHING);
    }
}
END_TEST

/* ---- answers ---- */

static Bookkeeper__Response *written(const struct bookie_v3_answer *a, const uint8_t *body)
{
    static uint8_t frame[BOOKIE_V3_FRONT + 64];
    size_t n = bookie_v3_write(frame, a);
    memcpy(frame + n, body, a->body_len);
    n += a->body_len;
    ck_assert_uint_eq(n - 4, (size_t)frame[2] << 8 | frame[3]);
    Bookkeeper__Response *r = bookkeeper__response__unpack(NULL, n - 4, frame + 4);
    ck_assert_ptr_nonnull(r);
    ck_assert_int_eq(r->header->version, BOOKKEEPER__PROTOCOL_VERSION__VERSION_THREE);
    ck_assert_int_eq(r->header->operation, a->operation);
    ck_assert_uint_eq(r->header->txnid, a->txn);
    ck_assert_int_eq(r->status, bookie_v3_status(a->status));
    return r;
}

static struct bookie_v3_answer answer_to(Bookkeeper__OperationType operation)
{
    return (struct bookie_v3_answer){.operation = (uint8_t)operation,
                                     .txn = UINT64_MAX,
                                     .ledger = INT64_MAX,
                                     .entry = -1,
                                     .total = -1,
                                     .free_space = -1};
}

START_TEST(answers_a_read)
{
    struct bookie_v3_answer a = answer_to(BOOKKEEPER__OPERATION_TYPE__READ_ENTRY);
    a.has_lac = true;
    a.max_lac = -1;
    a.body_len = sizeof entry;
    Bookkeeper__Response *r = written(&a, entry);
    ck_assert_int_eq(r->readresponse->ledgerid, INT64_MAX);
    ck_assert_int_eq(r->readresponse->entryid, -1);
    ck_assert_int_eq(r->readresponse->maxlac, -1);
    ck_assert_uint_eq(r->readresponse->body.len, sizeof entry);
    ck_assert_mem_eq(r->readresponse->body.data, entry, sizeof entry);
    bookkeeper__response__free_unpacked(r, NULL);
    a.status = BOOKIE_NO_ENTRY;
    a.has_lac = false;
    a.body_len = 0;
    r = written(&a, entry);
    ck_assert_int_eq(r->readresponse->status, BOOKKEEPER__STATUS_CODE__ENOENTRY);
    ck_assert(!r->readresponse->has_body && !r->readresponse->has_maxlac);
    bookkeeper__response__free_unpacked(r, NULL);
}
END_TEST

START_TEST(answers_of_lacs)
{
    struct bookie_v3_answer a = answer_to(BOOKKEEPER__OPERATION_TYPE__READ_LAC);
    a.small = view_of(entry, EXPLICIT_LAC_MAX);
    a.body_len = 32;
    Bookkeeper__Response *r = written(&a, entry);
    ck_assert_uint_eq(r->readlacresponse->lacbody.len, EXPLICIT_LAC_MAX);
    ck_assert_uint_eq(r->readlacresponse->lastentrybody.len, 32);
    bookkeeper__response__free_unpacked(r, NULL);
    a = answer_to(BOOKKEEPER__OPERATION_TYPE__WRITE_LAC);
    a.status = BOOKIE_READ_ONLY;
    r = written(&a, entry);
    ck_assert_int_eq(r->writelacresponse->status, BOOKKEEPER__STATUS_CODE__EREADONLY);
    bookkeeper__response__free_unpacked(r, NULL);
}
END_TEST

START_TEST(answers_the_others)
{
    struct bookie_v3_answer a = answer_to(BOOKKEEPER__OPERATION_TYPE__ADD_ENTRY);
    Bookkeeper__Response *r = written(&a, entry);
    ck_assert_int_eq(r->addresponse->entryid, -1);
    bookkeeper__response__free_unpacked(r, NULL);
    a = answer_to(BOOKKEEPER__OPERATION_TYPE__AUTH);
    a.small = view_of("AuthDisabledPlugin", 18);
    r = written(&a, entry);
    ck_assert_str_eq(r->authresponse->authpluginname, "AuthDisabledPlugin");
    bookkeeper__response__free_unpacked(r, NULL);
    a = answer_to(BOOKKEEPER__OPERATION_TYPE__GET_BOOKIE_INFO);
    a.free_space = INT64_MAX;
    r = written(&a, entry);
    ck_assert(!r->getbookieinforesponse->has_totaldiskcapacity);
    ck_assert_int_eq(r->getbookieinforesponse->freediskspace, INT64_MAX);
    bookkeeper__response__free_unpacked(r, NULL);
    a = answer_to(BOOKKEEPER__OPERATION_TYPE__FORCE_LEDGER);
    r = written(&a, entry);
    ck_assert_int_eq(r->forceledgerresponse->ledgerid, INT64_MAX);
    bookkeeper__response__free_unpacked(r, NULL);
    a = answer_to(BOOKKEEPER__OPERATION_TYPE__GET_LIST_OF_ENTRIES_OF_LEDGER);
    a.body_len = 40;
    r = written(&a, entry);
    ck_assert_uint_eq(r->getlistofentriesofledgerresponse->availabilityofentriesofledger.len, 40);
    bookkeeper__response__free_unpacked(r, NULL);
    a = answer_to(BOOKKEEPER__OPERATION_TYPE__START_TLS);
    r = written(&a, entry);
    ck_assert_ptr_nonnull(r->starttlsresponse);
    bookkeeper__response__free_unpacked(r, NULL);
    a = answer_to(BOOKKEEPER__OPERATION_TYPE__BATCH_READ_ENTRY);
    a.status = BOOKIE_BAD_REQUEST;
    r = written(&a, entry);
    ck_assert_ptr_null(r->readresponse);
    bookkeeper__response__free_unpacked(r, NULL);
}
END_TEST

/* What a client asks is what a bookie understands, and the other way round. */
START_TEST(asks_for_space)
{
    struct slice asked = bookie_info_request();
    uint8_t front[BOOKIE_V3_FRONT];
    struct bookie_request q;
    struct bookie_v3 v3;
    uint64_t bytes = 0, total = 0;

    ck_assert_int_eq(bookie_v3_read(view_of(asked.base + 4, asked.len - 4), &q, &v3), ERR_OK);
    ck_assert_uint_eq(asked.base[3], asked.len - 4);
    ck_assert_int_eq(q.op, BOOKIE_INFO);
    ck_assert_int_eq(v3.requested, BOOKIE_INFO_TOTAL | BOOKIE_INFO_FREE);
    slice_drop(&asked);
    struct bookie_v3_answer a = {.operation = v3.operation,
                                 .txn = v3.txn,
                                 .status = BOOKIE_OK,
                                 .total = INT64_MAX,
                                 .free_space = 1ll << 45};
    size_t n = bookie_v3_write(front, &a);
    ck_assert_int_eq(bookie_info_read(view_of(front + 4, n - 4), &bytes, &total), ERR_OK);
    ck_assert_uint_eq(bytes, 1ull << 45);
    ck_assert_uint_eq(total, INT64_MAX);
    for (size_t cut = 0; cut < n - 4; cut++)
        ck_assert_int_ne(bookie_info_read(view_of(front + 4, cut), &bytes, &total), ERR_OK);
    a.status = BOOKIE_EIO;
    n = bookie_v3_write(front, &a);
    ck_assert_int_eq(bookie_info_read(view_of(front + 4, n - 4), &bytes, &total), ERR_IO);
}
END_TEST

START_TEST(numbers_statuses)
{
    static const int32_t v2[] = {0, 1, 2, 100, 101, 102, 103, 104, 105, 106, 999};
    static const int32_t v3[] = {0, 402, 403, 404, 501, 502, 503, 504, 505, 506, 501};
    for (size_t i = 0; i < sizeof v2 / sizeof v2[0]; i++)
        ck_assert_int_eq(bookie_v3_status(v2[i]), v3[i]);
}
END_TEST

int main(void)
{
    return suite_run("bookie_v3", (suite_case[]){
                                      SUITE_CASE(reads_an_add),
                                      SUITE_CASE(an_add_of_another_entry_is_nothing),
                                      SUITE_CASE(reads_reads),
                                      SUITE_CASE(reads_an_explicit_lac),
                                      SUITE_CASE(an_operation_without_its_message_is_nothing),
                                      SUITE_CASE(reads_the_others),
                                      SUITE_CASE(says_which_version),
                                      SUITE_CASE(refuses_every_truncation),
                                      SUITE_CASE(answers_a_read),
                                      SUITE_CASE(answers_of_lacs),
                                      SUITE_CASE(answers_the_others),
                                      SUITE_CASE(asks_for_space),
                                      SUITE_CASE(numbers_statuses),
                                      {0},
                                  });
}
