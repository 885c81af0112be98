#include "bookie/bookie.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/lib/exposition.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/place.h"

static struct place *place;
static struct peer *peer;

static void begin(void)
{
    place = place_new();
}

static void serve(void)
{
    ck_assert_int_eq(place_start(place), ERR_OK);
    peer = peer_new(bookie_port(place->bookie));
}

static void rest(void)
{
    if (peer)
        peer_drop(&peer);
    place_stop(place);
}

static void end(void)
{
    rest();
    place_drop(&place);
}

START_TEST(adds_and_reads)
{
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 7, 0, 10), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, 7, 1, 100000), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, 8, 0, 0), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 7, 0), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 7, 1), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 8, 0), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 7, 2), BOOKIE_NO_ENTRY);
    ck_assert_int_eq(peer_read(peer, 0, 9, 0), BOOKIE_NO_LEDGER);
    ck_assert_int_eq(peer_read(peer, 0, 9, -1), BOOKIE_NO_LEDGER);
    end();
}
END_TEST

START_TEST(last_entry_keeps_the_minus_one)
{
    struct bookie_response r;
    struct entry_header h;
    begin();
    serve();
    for (int64_t e = 0; e < 5; e++)
        ck_assert_int_eq(peer_add(peer, 0, 3, e, 20), BOOKIE_OK);
    peer_send_read(peer, 0, false, 3, -1);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_OK);
    ck_assert_int_eq(r.entry, -1);
    ck_assert_int_eq(entry_header_read(r.body, &h), ERR_OK);
    ck_assert_int_eq(h.entry, 4);
    ck_assert_int_eq(h.lac, 3);
    end();
}
END_TEST

START_TEST(fences)
{
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 7, 0, 10), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 7, -1), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, 7, 1, 10), BOOKIE_FENCED);
    ck_assert_int_eq(peer_add(peer, BOOKIE_RECOVERY_ADD | BOOKIE_HIGH_PRIORITY, 7, 1, 10),
                     BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 7, 1), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 7, 2), BOOKIE_NO_ENTRY);
    end();
}
END_TEST

START_TEST(fences_what_it_never_saw)
{
    begin();
    serve();
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 70, -1), BOOKIE_NO_ENTRY);
    ck_assert_int_eq(peer_read(peer, 0, 70, -1), BOOKIE_NO_ENTRY);
    ck_assert_int_eq(peer_add(peer, 0, 70, 0, 10), BOOKIE_FENCED);
    rest();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 70, 0, 10), BOOKIE_FENCED);
    ck_assert_int_eq(peer_add(peer, BOOKIE_RECOVERY_ADD, 70, 0, 10), BOOKIE_OK);
    end();
}
END_TEST

START_TEST(refuses_another_key)
{
    struct bookie_response r;
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 7, 0, 10), BOOKIE_OK);
    peer_send_add(peer, 0, true, 7, 1, 10);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_EUA);
    peer_send_read(peer, BOOKIE_DO_FENCING, true, 7, 0);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_EUA);
    ck_assert_int_eq(peer_add(peer, 0, 7, 1, 10), BOOKIE_OK);
    end();
}
END_TEST

static void closes_on(const char *bytes, size_t len)
{
    struct bookie_response r;
    struct peer *other = peer_new(bookie_port(place->bookie));
    peer_send(other, bytes, len);
    ck_assert(!peer_receive(other, &r));
    peer_drop(&other);
}

#define CLOSES_ON(text) closes_on(text, sizeof text - 1)

START_TEST(closes_on_garbage)
{
    begin();
    serve();
    CLOSES_ON("\0\0\0\4\2\x09\0\0");         /* an op that is none */
    CLOSES_ON("\0\0\0\x08\2\1\0\0\0\0\0\0"); /* an add that is cut off */
    CLOSES_ON("\0\0\0\4\x0a\2\x08\3");       /* half a header of version 3 */
    CLOSES_ON("\x7f\0\0\0\2");               /* longer than any frame */
    CLOSES_ON("GET / HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(peer_add(peer, 0, 7, 0, 10), BOOKIE_OK); /* nobody else noticed */
    end();
}
END_TEST

START_TEST(answers_what_it_cannot_do)
{
    struct bookie_response r;
    uint8_t read[BOOKIE_FENCE_SIZE], key[MASTER_KEY_SIZE] = {0};
    static const uint8_t batch[44] = {0, 0, 0, 40, 2, BOOKIE_BATCH_READ, [31] = 9};
    begin();
    serve();
    const size_t n = bookie_write_read(read, 0, 5, 6, key);
    read[4] = 5;
    peer_send(peer, read, n);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_BAD_VERSION);
    peer_send(peer, batch, sizeof batch);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_NO_LEDGER);
    ck_assert_uint_eq(r.body.len, 8);
    ck_assert_int_eq(r.body.base[7], 9);
    ck_assert_int_eq(peer_read(peer, 0, 5, -2), BOOKIE_NO_LEDGER);
    ck_assert_int_eq(peer_read(peer, 0, -5, 0), BOOKIE_BAD_REQUEST);
    ck_assert_int_eq(peer_add(peer, 0, 5, -3, 5), BOOKIE_BAD_REQUEST);
    end();
}
END_TEST

START_TEST(auth_is_disabled)
{
    struct bookie_response r;
    struct slice q = bookie_auth_request();
    begin();
    serve();
    peer_send(peer, q.base, q.len);
    slice_drop(&q);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.op, BOOKIE_AUTH);
    ck_assert_ptr_nonnull(memmem(r.body.base, r.body.len, "AuthDisabledPlugin", 18));
    end();
}
END_TEST

START_TEST(survives_a_restart)
{
    begin();
    serve();
    for (int64_t e = 0; e < 1000; e++)
        ck_assert_int_eq(peer_add(peer, 0, 1 + e % 3, e / 3, 100), BOOKIE_OK);
    for (unsigned round = 0; round < 2; round++) {
        rest();
        serve();
        for (int64_t e = 0; e < 1000; e++)
            ck_assert_int_eq(peer_read(peer, 0, 1 + e % 3, e / 3), BOOKIE_OK);
        ck_assert_int_eq(peer_read(peer, 0, 1, -1), BOOKIE_OK);
    }
    end();
}
END_TEST

/* Many in flight, over several ledgers; every answer is for one that was sent. */
START_TEST(pipelines)
{
    enum { N = 20000 };
    struct bookie_response r;
    begin();
    place_set(place, "dbStorage_writeCacheMaxSizeMb=4");
    place_set(place, "logSizeLimit=1048576");
    serve();
    int64_t answered = 0;
    for (int64_t i = 0; i < N; i++) {
        peer_send_add(peer, 0, false, i % 5, i / 5, 1000);
        for (; answered < i - 500; answered++) {
            ck_assert(peer_receive(peer, &r));
            ck_assert_int_eq(r.status, BOOKIE_OK);
        }
    }
    for (; answered < N; answered++) {
        ck_assert(peer_receive(peer, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
    }
    for (int64_t i = 0; i < N; i++)
        ck_assert_int_eq(peer_read(peer, 0, i % 5, i / 5), BOOKIE_OK);
    for (int64_t i = 0; i < 100; i++)
        peer_send_read(peer, 0, false, 2, i * 37);
    for (int64_t i = 0; i < 100; i++) {
        ck_assert(peer_receive(peer, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
    }
    end();
}
END_TEST

/* ---- killed --------------------------------------------------------------------------------- */

enum { LEDGERS = 4, KILL_AFTER = 3000, WINDOW = 200, FENCED_LEDGER = 9 };

/* A bookie in a process of its own: says its port, and lives until it is killed. */
static pid_t fork_bookie(uint16_t *port)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (place_start(place))
            _exit(1);
        *port = bookie_port(place->bookie);
        if (write(fds[1], port, sizeof *port) != sizeof *port)
            _exit(1);
        for (;;)
            pause();
    }
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], port, sizeof *port), sizeof *port);
    close(fds[0]);
    return pid;
}

static void kill_bookie(pid_t pid)
{
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Adds under load until `kill_after` are acknowledged, then kills; what was acknowledged on top
 * of that counts too.  Entry `first + i / LEDGERS` of ledger `i % LEDGERS`. */
static int64_t load_and_kill(int64_t first, int64_t kill_after, bool *acked, int64_t n)
{
    struct bookie_response r;
    uint16_t port;
    int64_t got = 0;
    bool killed = false;
    const pid_t pid = fork_bookie(&port);
    struct peer *p = peer_new(port);
    ck_assert_int_eq(peer_read(p, BOOKIE_DO_FENCING, FENCED_LEDGER, -1), BOOKIE_NO_ENTRY);
    for (int64_t i = 0; i < WINDOW; i++)
        peer_send_add(p, 0, false, i % LEDGERS, first + i / LEDGERS, 700);
    for (int64_t sent = WINDOW; peer_receive(p, &r); got++) {
        ck_assert_int_eq(r.status, BOOKIE_OK);
        acked[(r.entry - first) * LEDGERS + r.ledger] = true;
        if (got == kill_after && !killed) {
            killed = true;
            kill_bookie(pid);
        }
        if (!killed && sent < n) {
            peer_send_add(p, 0, false, sent % LEDGERS, first + sent / LEDGERS, 700);
            sent++;
        }
    }
    ck_assert(killed);
    peer_drop(&p);
    return got;
}

START_TEST(loses_nothing_when_killed)
{
    enum { ROUNDS = 4 };
    static bool acked[ROUNDS][KILL_AFTER * 3];
    begin();
    place_set(place, "flushInterval=20"); /* so that a kill meets checkpoints, too */
    place_set(place, "dbStorage_writeCacheMaxSizeMb=1");
    place_set(place, "journalMaxSizeMB=1");
    place_set(place, "journalBufferedWritesThreshold=65536");
    place_set(place, "nettyMaxFrameSizeBytes=65536");
    for (int64_t round = 0; round < ROUNDS; round++)
        load_and_kill(round * KILL_AFTER, KILL_AFTER / (round + 1), acked[round], KILL_AFTER * 2);
    serve();
    for (int64_t round = 0; round < ROUNDS; round++)
        for (int64_t i = 0; i < KILL_AFTER * 3; i++)
            if (acked[round][i])
                ck_assert_int_eq(peer_read(peer, 0, i % LEDGERS, round * KILL_AFTER + i / LEDGERS),
                                 BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, 0, FENCED_LEDGER, 0, 5), BOOKIE_FENCED);
    end();
}
END_TEST

/* ---- refusing to start ---------------------------------------------------------------------- */

START_TEST(refuses_what_is_not_its_own)
{
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 1, 0, 5), BOOKIE_OK);
    rest();
    place_set(place, "bookieId=b2"); /* another bookie's directories */
    ck_assert_int_eq(place_start(place), ERR_NOT_ALLOWED);
    place_set(place, "bookieId=b1");
    ck_assert_int_eq(place_start(place), ERR_OK);
    rest();
    place_forget(place, "journal"); /* a device that was wiped */
    ck_assert_int_eq(place_start(place), ERR_NOT_ALLOWED);
    end();
}
END_TEST

START_TEST(refuses_another_cluster)
{
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 1, 0, 5), BOOKIE_OK);
    rest();
    place_no_meta(place);
    ck_assert_int_eq(place_start(place), ERR_NOT_ALLOWED);
    end();
}
END_TEST

START_TEST(refuses_what_it_cannot_use)
{
    char text[600];
    begin();
    place_set(place, "bookieId=");
    ck_assert_int_eq(place_start(place), ERR_BAD_CONFIG);
    place_set(place, "bookieId=b1");
    place_set(place, "ledgerDirectories=/a, /a");
    ck_assert_int_eq(place_start(place), ERR_BAD_CONFIG);
    place_set(place, "ledgerDirectories=/dev/null/x"); /* no directory can be made there */
    ck_assert_int_ne(place_start(place), ERR_OK);
    snprintf(text, sizeof text, "ledgerDirectories=%s/ledgers", place->dir);
    place_set(place, text);
    serve();
    struct place *other = place_new();
    snprintf(text, sizeof text, "bookiePort=%u", bookie_port(place->bookie));
    place_set(other, text);
    ck_assert_int_eq(place_start(other), ERR_IO); /* the port is taken */
    snprintf(text, sizeof text, "journalDirectories=%s/journal", place->dir);
    place_set(other, text);
    ck_assert_int_eq(place_start(other), ERR_EXISTS); /* so is the directory */
    place_drop(&other);
    end();
}
END_TEST

/* ---- a disk that fills ---------------------------------------------------------------------- */

START_TEST(a_full_device_makes_it_read_only)
{
    begin();
    place_set(place, "diskUsageThreshold=0.0001");
    place_set(place, "diskCheckInterval=10");
    serve();
    while (bookie_is_writable(place->bookie))
        poll(NULL, 0, 1);
    ck_assert_int_eq(peer_add(peer, 0, 1, 0, 5), BOOKIE_READ_ONLY);
    ck_assert_int_eq(peer_add(peer, BOOKIE_HIGH_PRIORITY, 1, 0, 5), BOOKIE_OK);
    ck_assert_int_eq(peer_add(peer, BOOKIE_RECOVERY_ADD, 1, 1, 5), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, BOOKIE_DO_FENCING, 1, -1), BOOKIE_OK);
    struct slice value = {0};
    int64_t version;
    enum err err; /* the move between the two keys is on its way */
    while ((err = meta_get_wait(place->meta, "/ledgers/available/readonly/b1", &value, &version)) ==
           ERR_NOT_FOUND)
        poll(NULL, 0, 1);
    ck_assert_int_eq(err, ERR_OK);
    slice_drop(&value);
    end();
}
END_TEST

static double value(const struct text *t, const char *series)
{
    return exposition_value(t->at, series);
}

START_TEST(renders_metrics)
{
    struct text t = {0};
    struct bookie_response r;
    begin();
    serve();
    ck_assert_int_eq(peer_add(peer, 0, 1, 0, 5), BOOKIE_OK);
    ck_assert_int_eq(peer_read(peer, 0, 1, 0), BOOKIE_OK);
    peer_send_add(peer, 0, true, 1, 1, 5);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_EUA);
    bookie_render_metrics(place->bookie, &t);
    exposition_check(t.at);
    ck_assert(value(&t, "bookkeeper_server_ADD_ENTRY_REQUEST_count{success=\"true\"}") == 1);
    ck_assert(value(&t, "bookkeeper_server_ADD_ENTRY_REQUEST_count{success=\"false\"}") == 1);
    ck_assert(value(&t, "bookkeeper_server_READ_ENTRY_REQUEST_count{success=\"true\"}") == 1);
    ck_assert(value(&t, "bookie_journal_JOURNAL_SYNC_count{success=\"true\"}") >= 1);
    ck_assert(value(&t, "bookie_journal_JOURNAL_SYNC{success=\"true\",quantile=\"0.99\"}") > 0);
    ck_assert(isnan(value(&t, "bookie_journal_JOURNAL_SYNC{success=\"false\",quantile=\"0.5\"}")));
    ck_assert(value(&t, "bookie_journal_JOURNAL_QUEUE_SIZE") == 0);
    ck_assert(value(&t, "bookie_WRITE_BYTES") == value(&t, "bookie_READ_BYTES"));
    ck_assert(value(&t, "bookie_WRITE_BYTES") >= 5);
    ck_assert(value(&t, "bookie_ledger_writable_dirs") == 1);
    ck_assert(value(&t, "bookie_SERVER_STATUS") == 1);
    ck_assert(value(&t, "bookie_write_cache_size") > 0);
    ck_assert(value(&t, "bookie_read_cache_size") == 0);
    ck_assert(value(&t, "process_resident_memory_bytes") > 1e6);
    ck_assert(value(&t, "process_open_fds") > 3);
    ck_assert(value(&t, "process_cpu_seconds_total") > 0);
    text_drop(&t);
    end();
}
END_TEST

static size_t length_of(int64_t ledger, int64_t entry)
{
    struct bookie_response r;
    peer_send_read(peer, 0, false, ledger, entry);
    ck_assert(peer_receive(peer, &r));
    ck_assert_int_eq(r.status, BOOKIE_OK);
    return r.body.len;
}

static double waiting_to_be_written(void)
{
    struct text t = {0};
    bookie_render_metrics(place->bookie, &t);
    const double bytes = value(&t, "bookie_write_cache_size");
    text_drop(&t);
    return bytes;
}

/* A read of its neighbour brings the old entry up while the new one waits to be written. */
START_TEST(what_is_added_again_is_never_read_as_it_was)
{
    begin();
    place_set(place, "dbStorage_writeCacheMaxSizeMb=1");
    serve();
    for (int64_t e = 0; e < 3; e++)
        ck_assert_int_eq(peer_add(peer, 0, 1, e, 100), BOOKIE_OK);
    rest();
    serve();
    ck_assert_int_eq(peer_add(peer, BOOKIE_RECOVERY_ADD, 1, 1, 200), BOOKIE_OK);
    ck_assert_uint_eq(length_of(1, 0), ENTRY_PREFIX + 100);
    ck_assert_uint_eq(length_of(1, 1), ENTRY_PREFIX + 200);
    ck_assert_int_eq(peer_add(peer, 0, 2, 0, 300000), BOOKIE_OK); /* and it is written */
    while (waiting_to_be_written() > 0)
        poll(NULL, 0, 1);
    ck_assert_uint_eq(length_of(1, 1), ENTRY_PREFIX + 200);
    ck_assert_uint_eq(length_of(1, 2), ENTRY_PREFIX + 100);
    end();
}
END_TEST

/* ---- who does not read his answers ---------------------------------------------------------- */

static double reads_done(void)
{
    struct text t = {0};
    bookie_render_metrics(place->bookie, &t);
    const double n = value(&t, "bookkeeper_server_READ_ENTRY_REQUEST_count{success=\"true\"}");
    text_drop(&t);
    return n;
}

static size_t resident(void)
{
    unsigned long total = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%lu %lu", &total, &pages), 2);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Each of these answers comes with a window of a quarter of a MiB; together that is 200 MiB. */
START_TEST(what_is_owed_holds_no_windows)
{
    enum { ENTRIES = 800, SIZE = 10000, MIB = 1024 * 1024 };
    static uint8_t asked[ENTRIES * BOOKIE_READ_SIZE];
    begin();
    place_set(place, "dbStorage_readAheadCacheMaxSizeMb=1");
    serve();
    for (int64_t e = 0; e < ENTRIES; e++)
        peer_send_add(peer, 0, false, 1, e, SIZE);
    for (int64_t e = 0; e < ENTRIES; e++) {
        struct bookie_response r;
        ck_assert(peer_receive(peer, &r));
        ck_assert_int_eq(r.status, BOOKIE_OK);
    }
    rest();
    serve(); /* all is in the entry log now */
    const size_t before = resident();
    for (int64_t e = 0; e < ENTRIES; e++) /* backwards: none is in the window of the one before */
        bookie_write_read(asked + e * BOOKIE_READ_SIZE, 0, 1, ENTRIES - 1 - e, NULL);
    peer_send(peer, asked, sizeof asked);
    while (reads_done() < ENTRIES)
        poll(NULL, 0, 1);
    ck_assert_uint_lt(resident(), before + 100 * MIB);
    end();
}
END_TEST

int main(void)
{
    return suite_run("bookie",
                     (suite_case[]){SUITE_CASE(adds_and_reads),
                                    SUITE_CASE(last_entry_keeps_the_minus_one),
                                    SUITE_CASE(fences),
                                    SUITE_CASE(fences_what_it_never_saw),
                                    SUITE_CASE(refuses_another_key),
                                    SUITE_CASE(closes_on_garbage),
                                    SUITE_CASE(answers_what_it_cannot_do),
                                    SUITE_CASE(auth_is_disabled),
                                    SUITE_CASE(survives_a_restart),
                                    SUITE_SLOW(pipelines, 120),
                                    SUITE_SLOW(loses_nothing_when_killed, 120),
                                    SUITE_CASE(refuses_what_is_not_its_own),
                                    SUITE_CASE(refuses_another_cluster),
                                    SUITE_CASE(refuses_what_it_cannot_use),
                                    SUITE_CASE(a_full_device_makes_it_read_only),
                                    SUITE_CASE(renders_metrics),
                                    SUITE_CASE(what_is_owed_holds_no_windows),
                                    SUITE_CASE(what_is_added_again_is_never_read_as_it_was),
                                    {0}});
}
