#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bookie/bookie.h"
#include "common/mem.h"
#include "tests/lib/suite.h"
#include "tests/unit/bookie/peer.h"
#include "tests/unit/bookie/place.h"

/* A short life of a bookie, over and over: each time the next of its calls to the disk fails, once
 * with EIO and once with ENOSPC.  It may go on, be read-only, or end and say why; the next life
 * must have everything that was acknowledged, and nothing may ever be denied that was. */

enum { LEDGERS = 3, ENTRIES = 14, SIZE = 60000, FENCED = 2 };

/* What the one who lives with the failing disk tells the one who comes after. */
static struct {
    atomic_uint calls;
    atomic_bool acked[LEDGERS][ENTRIES], fence_acked, denied, ended;
} * seen;

/* ---- the real disk, but for one call --------------------------------------------------------- */

static unsigned strike;
static enum err strike_err;
static struct disk failing;
static const struct disk_ops *real;

static bool strikes(void)
{
    return atomic_fetch_add(&seen->calls, 1) == strike;
}

static enum err walk_open(struct disk *d, const char *path, unsigned how, struct disk_file **out)
{
    if (strikes())
        return strike_err;
    const enum err err = real->open(disk_real(), path, how, out);
    if (!err)
        (*out)->disk = d;
    return err;
}

/* Half of it is there. */
static enum err walk_write(struct disk_file *f, uint64_t at, const struct iovec *iov, int n)
{
    if (!strikes())
        return real->write(f, at, iov, n);
    const struct iovec half = {iov->iov_base, iov->iov_len / 2 / 4096 * 4096};
    if (half.iov_len > 0 && real->write(f, at, &half, 1))
        return ERR_IO;
    return strike_err;
}

static enum err walk_truncate(struct disk_file *f, uint64_t size)
{
    return strikes() ? strike_err : real->truncate(f, size);
}

static enum err walk_sync(struct disk_file *f)
{
    return strikes() ? strike_err : real->sync(f);
}

static enum err walk_rename(struct disk *d, const char *from, const char *to)
{
    (void)d;
    return strikes() ? strike_err : real->rename(disk_real(), from, to);
}

static enum err walk_remove(struct disk *d, const char *path)
{
    (void)d;
    return strikes() ? strike_err : real->remove(disk_real(), path);
}

static enum err walk_mkdir(struct disk *d, const char *path)
{
    (void)d;
    return strikes() ? strike_err : real->mkdir(disk_real(), path);
}

static enum err walk_sync_dir(struct disk *d, const char *path)
{
    (void)d;
    return strikes() ? strike_err : real->sync_dir(disk_real(), path);
}

static enum err walk_list(struct disk *d, const char *path, void (*each)(void *, const char *),
                          void *ctx)
{
    (void)d;
    return real->list(disk_real(), path, each, ctx);
}

static enum err walk_space(struct disk *d, const char *path, uint64_t *free_bytes, uint64_t *total)
{
    (void)d, (void)path;
    *free_bytes = 900;
    *total = 1000;
    return ERR_OK;
}

static struct disk_ops failing_ops(void)
{
    struct disk_ops ops = *real;
    ops.open = walk_open;
    ops.write = walk_write;
    ops.truncate = walk_truncate;
    ops.sync = walk_sync;
    ops.rename = walk_rename;
    ops.remove = walk_remove;
    ops.mkdir = walk_mkdir;
    ops.sync_dir = walk_sync_dir;
    ops.list = walk_list;
    ops.space = walk_space;
    return ops;
}

/* ---- one life -------------------------------------------------------------------------------- */

static struct place *place;

static bool is_denial(int32_t status)
{
    return status == BOOKIE_NO_ENTRY || status == BOOKIE_NO_LEDGER;
}

/* -1: the connection has ended, the bookie with it. */
static int32_t ask(struct peer *p, bool add, uint16_t flags, int64_t ledger, int64_t entry)
{
    struct bookie_response r;
    if (add)
        peer_send_add(p, flags, false, ledger, entry, SIZE);
    else
        peer_send_read(p, flags, false, ledger, entry);
    return peer_receive(p, &r) ? r.status : -1;
}

static void look_back(struct peer *p)
{
    for (int64_t l = 0; l < LEDGERS; l++)
        for (int64_t e = 0; e < ENTRIES; e++)
            if (atomic_load(&seen->acked[l][e]) && is_denial(ask(p, false, 0, l, e)))
                atomic_store(&seen->denied, true);
}

static void write_some(struct peer *p)
{
    for (int64_t e = 0; e < ENTRIES; e++) {
        for (int64_t l = 0; l < LEDGERS; l++)
            if (ask(p, true, 0, l, e) == BOOKIE_OK)
                atomic_store(&seen->acked[l][e], true);
        if (e == ENTRIES / 2)
            atomic_store(&seen->fence_acked,
                         ask(p, false, BOOKIE_DO_FENCING, FENCED, -1) == BOOKIE_OK);
    }
    look_back(p);
}

/* Several checkpoints, several journal files and entry logs. */
static void live(void)
{
    place->disk = &failing;
    if (place_start(place)) {
        atomic_store(&seen->ended, true);
        _exit(0);
    }
    struct peer *p = peer_new(bookie_port(place->bookie));
    write_some(p);
    peer_drop(&p);
    place_stop(place);
    atomic_store(&seen->ended, true);
    _exit(0);
}

static void live_with(unsigned call, enum err err)
{
    int status;
    memset(seen, 0, sizeof *seen);
    strike = call;
    strike_err = err;
    const pid_t child = fork();
    if (child == 0)
        live();
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "call %u: killed by %d", call, WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 1, "call %u: exit %d", call,
                  WEXITSTATUS(status));
    ck_assert_msg(!atomic_load(&seen->denied), "call %u: denied what it had acknowledged", call);
}

/* ---- the life after it ----------------------------------------------------------------------- */

static void check(unsigned call)
{
    place->disk = disk_real();
    ck_assert_msg(place_start(place) == ERR_OK, "call %u: does not start any more", call);
    struct peer *p = peer_new(bookie_port(place->bookie));
    for (int64_t l = 0; l < LEDGERS; l++)
        for (int64_t e = 0; e < ENTRIES; e++)
            if (atomic_load(&seen->acked[l][e]))
                ck_assert_msg(peer_read(p, 0, l, e) == BOOKIE_OK, "call %u: lost %d of %d", call,
                              (int)e, (int)l);
    if (atomic_load(&seen->fence_acked))
        ck_assert_msg(peer_add(p, 0, FENCED, 100, 10) == BOOKIE_FENCED, "call %u: fence lost",
                      call);
    ck_assert_int_eq(peer_add(p, 0, 50, 0, 10), BOOKIE_OK);
    peer_drop(&p);
    place_stop(place);
}

START_TEST(whatever_fails)
{
    static struct disk_ops ops;
    const enum err err = _i % 2 ? ERR_NO_SPACE : ERR_IO;
    const unsigned from = (unsigned)_i / 2, step = 4;
    real = disk_real()->ops;
    ops = failing_ops();
    failing.ops = &ops;
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
    bool struck;
    unsigned call = from;
    if (access("/dev/shm", W_OK) == 0) /* thousands of syncs, and no power fails here */
        setenv("TMPDIR", "/dev/shm", 1);
    do {
        place = place_new();
        place_set(place, "dbStorage_writeCacheMaxSizeMb=1");
        place_set(place, "dbStorage_maxThrottleTimeMs=300");
        place_set(place, "flushInterval=20");
        place_set(place, "journalMaxSizeMB=1");
        place_set(place, "nettyMaxFrameSizeBytes=131072");
        place_set(place, "journalBufferedWritesThreshold=65536");
        place_set(place, "logSizeLimit=1048576");
        place_set(place, "diskCheckInterval=10");
        place_set(place, "autoRecoveryDaemonEnabled=false");
        live_with(call, err);
        check(call);
        place_drop(&place);
        struck = atomic_load(&seen->calls) > call;
        call += step;
    } while (struck);
    ck_assert_uint_gt(call, 60);
}
END_TEST

int main(void)
{
    /* A round takes every fourth call: half of them, or all. */
    const suite_case cases[] = {{.name = "whatever_fails",
                                 .test = whatever_fails,
                                 .rounds = getenv("LGM_TEST_EVERY_CALL") ? 8 : 4,
                                 .timeout_s = 240},
                                {0}};
    return suite_run("disk_walk", cases);
}
