#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bookie/integrity.h"
#include "common/mem.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "metadata/wait.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/place.h"

/* A bookie that has lost its directories, and ledgers of the metadata that name it; the others of
 * their ensembles are nowhere, so that nothing can be brought back. */

enum { LAST = 5, EARLIER = 6, CLOSED = 7, SEALING = 8, OTHERS = 9, NEW = 1000 };

static struct place *place;
static struct peer *peer;

static void serve(void)
{
    ck_assert_int_eq(place_start(place), ERR_OK);
    peer = peer_new(bookie_port(place->bookie));
}

static void rest(void)
{
    peer_drop(&peer);
    place_stop(place);
}

/* ---- ledgers -------------------------------------------------------------------------------- */

static Bookkeeper__LedgerMetadataFormat *ledger(int state, const char *first, const char *last)
{
    static char *members[2][2];
    static Bookkeeper__LedgerMetadataFormat__Segment s[2], *segments[] = {&s[0], &s[1]};
    static Bookkeeper__LedgerMetadataFormat r;
    bookkeeper__ledger_metadata_format__init(&r);
    r.quorumsize = r.ensemblesize = 2;
    r.state = (Bookkeeper__LedgerMetadataFormat__State)state;
    r.n_segment = last ? 2 : 1;
    r.segment = segments;
    for (unsigned i = 0; i < 2; i++) {
        bookkeeper__ledger_metadata_format__segment__init(&s[i]);
        s[i].firstentryid = (int64_t)i * 10;
        members[i][0] = (char *)(uintptr_t)(i ? last : first);
        members[i][1] = (char *)(uintptr_t) "elsewhere";
        s[i].n_ensemblemember = 2;
        s[i].ensemblemember = members[i];
    }
    return &r;
}

enum { IS_OPEN = 1, IS_SEALING = 2, IS_CLOSED = 3 };

static void put(int64_t id, int state, const char *first, const char *last)
{
    char key[META_KEY_MAX];
    ck_assert_int_eq(path_ledger(id, key), ERR_OK);
    ck_assert_int_eq(meta_put_wait(place->meta, key,
                                   ledger_record_write(ledger(state, first, last)), META_ABSENT),
                     ERR_OK);
}

static void put_all(void)
{
    put(LAST, IS_OPEN, "b1", NULL);
    put(EARLIER, IS_OPEN, "b1", "b2");
    put(CLOSED, IS_CLOSED, "b1", "b2");
    put(SEALING, IS_SEALING, "b2", "b1");
    put(OTHERS, IS_OPEN, "b2", "b3");
}

static void forget_cookie(void)
{
    char key[META_KEY_MAX];
    struct meta_wait w;
    ck_assert_int_eq(path_cookie("b1", key), ERR_OK);
    meta_wait_begin(&w);
    meta_remove(place->meta, key, META_ANY, &w.call);
    ck_assert_int_eq(meta_wait_end(&w), ERR_OK);
}

/* ---- lives ---------------------------------------------------------------------------------- */

static void begin(void)
{
    place = place_new();
    place_set(place, "autoRecoveryDaemonEnabled=false");
    place_set(place, "rwRereplicateBackoffMs=20");
    serve();
    put_all();
    for (int64_t l = LAST; l <= CLOSED; l++)
        for (int64_t e = 0; e < 5; e++)
            ck_assert_int_eq(peer_add(peer, 0, l, e, 100), BOOKIE_OK);
}

static void may_lose(void)
{
    place_set(place, "dataIntegrityChecking=true");
    place_set(place, "dataIntegrityStampMissingCookies=true");
}

static void end(void)
{
    rest();
    place_drop(&place);
}

static void expect_limbo(void)
{
    for (int64_t l = LAST; l <= SEALING; l++) {
        ck_assert_int_eq(peer_read(peer, 0, l, 0), BOOKIE_EIO);
        ck_assert_int_eq(peer_read(peer, 0, l, -1), BOOKIE_EIO);
        ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, l, 4), BOOKIE_EIO);
    }
    ck_assert_int_eq(peer_add(peer, 0, LAST, 5, 100), BOOKIE_FENCED);
    ck_assert_int_eq(peer_add(peer, 0, CLOSED, 5, 100), BOOKIE_FENCED);
    ck_assert_int_eq(peer_add(peer, 0, SEALING, 5, 100), BOOKIE_FENCED);
    ck_assert_int_eq(peer_read(peer, 0, OTHERS, 0), BOOKIE_NO_LEDGER);
    ck_assert_int_eq(peer_read(peer, 0, NEW + 1, 0), BOOKIE_NO_LEDGER);
}

static void expect_positive(void)
{
    ck_assert_int_eq(peer_add(peer, BOOKIE_RECOVERY_ADD, CLOSED, 3, 100), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, CLOSED, 3), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, CLOSED, 2), BOOKIE_EIO);
    ck_assert_int_eq(peer_read(peer, 0, CLOSED, 4), BOOKIE_EIO);
    ck_assert_int_eq(peer_read(peer, 0, CLOSED, -1), BOOKIE_EIO); /* there may have been more */
    ck_assert_int_eq(peer_add(peer, 0, NEW, 0, 100), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, NEW, 1), BOOKIE_NO_ENTRY);
}

START_TEST(a_wiped_one_denies_nothing)
{
    begin();
    rest();
    place_forget(place, "ledgers/current");
    place_forget(place, "journal/current");
    ck_assert_int_eq(place_start(place), ERR_NOT_ALLOWED); /* nobody has told it to */
    may_lose();
    serve();
    expect_limbo();
    expect_positive();
    rest();
    serve(); /* and it does not forget that it has forgotten */
    expect_limbo();
    ck_assert_int_eq(peer_read(peer, 0, CLOSED, 3), BOOKIE_OK);
    end();
}
END_TEST

START_TEST(a_new_one_under_an_old_name_denies_nothing)
{
    begin();
    forget_cookie();
    rest();
    place_forget(place, "ledgers/current");
    place_forget(place, "journal/current");
    serve(); /* whatever the settings are */
    expect_limbo();
    expect_positive();
    end();
}
END_TEST

static void put_again(int64_t id, int state, const char *first, const char *last)
{
    char key[META_KEY_MAX];
    ck_assert_int_eq(path_ledger(id, key), ERR_OK);
    ck_assert_int_eq(
        meta_put_wait(place->meta, key, ledger_record_write(ledger(state, first, last)), META_ANY),
        ERR_OK);
}

/* Ledgers that are older than the loss: their writers are trusted when the metadata says that
 * nobody recovers them, and that they write here. */
START_TEST(who_may_write_after_a_loss)
{
    struct bookie_response r;
    begin();
    rest();
    place_forget(place, "ledgers/current");
    place_forget(place, "journal/current");
    may_lose();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, EARLIER, 10, 100), BOOKIE_FENCED); /* not named for it */
    put_again(EARLIER, IS_OPEN, "b2", "b1");
    for (int64_t e = 10; e < 20; e++) /* they wait for the one answer, and keep their order */
        peer_send_add(peer, 0, false, EARLIER, e, 100);
    for (int64_t e = 10; e < 20; e++) {
        ck_assert(peer_receive(peer, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
        ck_assert_int_eq(r.entry, e);
    }
    ck_assert_int_eq(peer_read(peer, 0, EARLIER, 10), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, EARLIER, 25), BOOKIE_EIO);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, EARLIER, -1), BOOKIE_EIO);
    ck_assert_int_eq(peer_add(peer, 0, EARLIER, 20, 100), BOOKIE_FENCED);
    /* It was fenced here, and then moved away from: nothing names it any more. */
    ck_assert_int_eq(peer_add(peer, 0, OTHERS, 0, 100), BOOKIE_FENCED);
    ck_assert_int_eq(peer_add(peer, BOOKIE_RECOVERY_ADD, OTHERS, 0, 100), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, OTHERS, 1, 100), BOOKIE_FENCED);
    ck_assert_int_eq(peer_add(peer, 0, 1, 0, 100), BOOKIE_FENCED); /* deleted, or never there */
    ck_assert_int_eq(peer_add(peer, 0, NEW, 0, 100), BOOKIE_OK);
    rest();
    serve(); /* it is not forgotten with the next life */
    ck_assert_int_eq(peer_add(peer, 0, OTHERS, 1, 100), BOOKIE_FENCED);
    end();
}
END_TEST

/* One directory of two is gone. */
START_TEST(half_a_loss)
{
    const char *const lost[] = {"ledgers/current", "journal/current"};
    begin();
    rest();
    if (_i == 1)
        place_forget(place, "ledgers/current/VERSION"); /* holds data: nobody knows whose */
    else
        place_forget(place, lost[_i ? 1 : 0]);
    may_lose();
    if (_i == 1) {
        ck_assert_int_eq(place_start(place), ERR_NOT_ALLOWED);
        place_drop(&place);
        return;
    }
    serve();
    /* A clean stop: all is in the entry log; and the journal has it still. */
    ck_assert_int_eq(peer_read(peer, 0, CLOSED, 3), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, CLOSED, 5), BOOKIE_EIO);
    ck_assert_int_eq(peer_read(peer, 0, CLOSED, -1), BOOKIE_EIO);
    ck_assert_int_eq(peer_add(peer, 0, LAST, 5, 100), BOOKIE_FENCED);
    end();
}
END_TEST

/* A directory of an earlier incarnation that comes back is as good as an empty one. */
START_TEST(an_earlier_incarnation_is_a_loss)
{
    char *keep = NULL;
    begin();
    rest();
    keep = mem_format("cp -r '%s/ledgers/current' '%s/kept'", place->dir, place->dir);
    ck_assert_int_eq(system(keep), 0);
    mem_free(keep);
    place_forget(place, "ledgers/current");
    may_lose();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, NEW, 0, 100), BOOKIE_OK);
    put(NEW, IS_OPEN, "b1", NULL);
    rest();
    place_forget(place, "ledgers/current");
    keep = mem_format("mv '%s/kept' '%s/ledgers/current'", place->dir, place->dir);
    ck_assert_int_eq(system(keep), 0);
    mem_free(keep);
    serve();
    ck_assert_int_eq(peer_read(peer, 0, NEW, 1), BOOKIE_EIO);
    ck_assert_int_eq(peer_read(peer, 0, CLOSED, 3), BOOKIE_OK);
    end();
}
END_TEST

/* Killed right after its start: limbo was durable before the port was open. */
START_TEST(limbo_is_durable_before_it_serves)
{
    int status;
    begin();
    rest();
    place_forget(place, "ledgers/current");
    place_forget(place, "journal/current");
    may_lose();
    const pid_t child = fork();
    if (child == 0)
        _exit(place_start(place) ? 1 : 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    serve();
    expect_limbo();
    end();
}
END_TEST

/* ---- version 3 ------------------------------------------------------------------------------ */

static int32_t ask_v3(Bookkeeper__OperationType operation, Bookkeeper__Request *q)
{
    uint8_t packed[1024], answer[1024];
    uint32_t len;
    Bookkeeper__BKPacketHeader h = BOOKKEEPER__BKPACKET_HEADER__INIT;
    h.version = BOOKKEEPER__PROTOCOL_VERSION__VERSION_THREE;
    h.operation = operation;
    h.txnid = 1;
    q->header = &h;
    const size_t n = bookkeeper__request__pack(q, packed + 4);
    len = htonl((uint32_t)n);
    memcpy(packed, &len, 4);
    peer_send(peer, packed, n + 4);
    ck_assert_int_eq(recv(peer->fd, &len, 4, MSG_WAITALL), 4);
    len = ntohl(len);
    ck_assert_uint_le(len, sizeof answer);
    ck_assert_int_eq(recv(peer->fd, answer, len, MSG_WAITALL), len);
    Bookkeeper__Response *r = bookkeeper__response__unpack(NULL, len, answer);
    ck_assert_ptr_nonnull(r);
    const int32_t status = (int32_t)r->status;
    bookkeeper__response__free_unpacked(r, NULL);
    return status;
}

static int32_t read_v3(int64_t id, int64_t entry, bool polls)
{
    Bookkeeper__ReadRequest read = BOOKKEEPER__READ_REQUEST__INIT;
    Bookkeeper__Request q = BOOKKEEPER__REQUEST__INIT;
    read.ledgerid = id;
    read.entryid = entry;
    read.has_previouslac = read.has_timeout = polls;
    read.previouslac = -1;
    read.timeout = 1;
    q.readrequest = &read;
    return ask_v3(BOOKKEEPER__OPERATION_TYPE__READ_ENTRY, &q);
}

START_TEST(version_3_has_a_word_for_it)
{
    const int32_t unknown = BOOKKEEPER__STATUS_CODE__EUNKNOWNLEDGERSTATE;
    Bookkeeper__ReadLacRequest lac = BOOKKEEPER__READ_LAC_REQUEST__INIT;
    Bookkeeper__GetListOfEntriesOfLedgerRequest list =
        BOOKKEEPER__GET_LIST_OF_ENTRIES_OF_LEDGER_REQUEST__INIT;
    Bookkeeper__Request for_lac = BOOKKEEPER__REQUEST__INIT, for_list = BOOKKEEPER__REQUEST__INIT;
    begin();
    rest();
    place_forget(place, "ledgers/current");
    place_forget(place, "journal/current");
    may_lose();
    serve();
    lac.ledgerid = list.ledgerid = CLOSED;
    for_lac.readlacrequest = &lac;
    for_list.getlistofentriesofledgerrequest = &list;
    ck_assert_int_eq(read_v3(CLOSED, 0, false), unknown);
    ck_assert_int_eq(read_v3(CLOSED, -1, false), unknown);
    ck_assert_int_eq(read_v3(CLOSED, -1, true), unknown);
    ck_assert_int_eq(ask_v3(BOOKKEEPER__OPERATION_TYPE__READ_LAC, &for_lac), unknown);
    ck_assert_int_eq(ask_v3(BOOKKEEPER__OPERATION_TYPE__GET_LIST_OF_ENTRIES_OF_LEDGER, &for_list),
                     unknown);
    ck_assert_int_eq(peer_add(peer, BOOKIE_RECOVERY_ADD, CLOSED, 3, 100), BOOKIE_OK);
    ck_assert_int_eq(read_v3(CLOSED, 3, false), BOOKKEEPER__STATUS_CODE__EOK);
    ck_assert_int_eq(read_v3(OTHERS, 3, false), BOOKKEEPER__STATUS_CODE__ENOLEDGER);
    end();
}
END_TEST

/* ---- the port ------------------------------------------------------------------------------- */

static uint16_t port;
static unsigned asked;

static bool is_listening(void)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    close(fd);
    return is;
}

/* A store that looks whether somebody listens while it is asked for ledgers. */
static struct metadata *inner;
static const struct meta_ops *real;

static void range(struct metadata *m, const char *prefix, const char *after, size_t limit,
                  bool keys_only, struct meta_call *c)
{
    if (strcmp(prefix, PATH_LEDGERS "/") == 0 && asked++ == 0)
        ck_assert(!is_listening());
    real->range(m, prefix, after, limit, keys_only, c);
}

START_TEST(the_port_is_opened_after_the_scan)
{
    struct meta_ops spying;
    begin();
    port = bookie_port(place->bookie);
    char *text = mem_format("bookiePort=%u", (unsigned)port);
    rest();
    place_set(place, text);
    mem_free(text);
    place_forget(place, "ledgers/current");
    place_forget(place, "journal/current");
    may_lose();
    place_prepare(place);
    inner = place->meta;
    real = inner->ops;
    spying = *real;
    spying.range = range;
    inner->ops = &spying;
    ck_assert_int_eq(place_open(place), ERR_OK);
    ck_assert_uint_gt(asked, 0);
    ck_assert(is_listening());
    place_stop(place);
    place_drop(&place);
}
END_TEST

/* ---- which ---------------------------------------------------------------------------------- */

START_TEST(which_ledgers)
{
    static const struct {
        int state;
        const char *first, *last;
        enum integrity_verdict verdict;
    } of[] = {
        {IS_OPEN, "b1", NULL, FENCED_IN_LIMBO},   {IS_OPEN, "b2", NULL, NOT_HERE},
        {IS_OPEN, "b1", "b2", IN_LIMBO},          {IS_OPEN, "b2", "b1", FENCED_IN_LIMBO},
        {IS_OPEN, "b1", "b1", FENCED_IN_LIMBO},   {IS_SEALING, "b1", "b2", FENCED_IN_LIMBO},
        {IS_SEALING, "b2", "b3", IN_LIMBO},       {IS_CLOSED, "b1", "b2", FENCED_IN_LIMBO},
        {IS_CLOSED, "b2", "b1", FENCED_IN_LIMBO}, {IS_CLOSED, "b11", "b2", NOT_HERE},
    };
    for (unsigned i = 0; i < sizeof of / sizeof *of; i++)
        ck_assert_int_eq(integrity_judge(ledger(of[i].state, of[i].first, of[i].last), "b1"),
                         of[i].verdict);
}
END_TEST

int main(void)
{
    return suite_run("limbo", (suite_case[]){SUITE_CASE(which_ledgers),
                                             SUITE_CASE(a_wiped_one_denies_nothing),
                                             SUITE_CASE(a_new_one_under_an_old_name_denies_nothing),
                                             SUITE_CASE(who_may_write_after_a_loss),
                                             SUITE_LOOP(half_a_loss, 3),
                                             SUITE_CASE(an_earlier_incarnation_is_a_loss),
                                             SUITE_CASE(limbo_is_durable_before_it_serves),
                                             SUITE_CASE(version_3_has_a_word_for_it),
                                             SUITE_CASE(the_port_is_opened_after_the_scan),
                                             {0}});
}
