#include "tests/crashpoints/home.h"

#include <err.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metadata/init.h"
#include "metadata/paths.h"
#include "metadata/records.h"
#include "metadata/wait.h"

static const char *const small[] = {
    "journalDirectories=journal",
    "ledgerDirectories=ledgers",
    "bookiePort=0",
    "bookieId=b1",
    "advertisedAddress=127.0.0.1",
    "listenAddress=127.0.0.1",
    "httpServerEnabled=false",
    "journalMaxSizeMB=1",
    "journalBufferedWritesThreshold=65536",
    "journalMaxMemorySizeMb=4",
    "nettyMaxFrameSizeBytes=65536",
    "dbStorage_writeCacheMaxSizeMb=1",
    "dbStorage_readAheadCacheMaxSizeMb=1",
    "dbStorage_readAheadCacheBatchBytesSize=16384",
    "logSizeLimit=1048576",
    "flushInterval=40",
    "dbStorage_maxThrottleTimeMs=2000",
    "diskCheckInterval=50",
    "diskUsageThreshold=1",
    "diskUsageLwmThreshold=1",
    "autoRecoveryDaemonEnabled=false",
    "lgmMemoryLimitMB=-1",
    NULL,
};

void home_configure(struct home *h, const char *const *sets)
{
    memset(h, 0, sizeof *h);
    if (config_defaults(&bookie_config_table, &h->conf))
        errx(1, "no defaults");
    for (unsigned i = 0; small[i]; i++)
        if (config_set(&bookie_config_table, &h->conf, small[i], "small"))
            errx(1, "%s is refused", small[i]);
    for (; sets && *sets; sets++)
        if (config_set(&bookie_config_table, &h->conf, *sets, "--set"))
            errx(1, "%s is refused", *sets);
}

void home_print(const char *const *sets)
{
    for (unsigned i = 0; small[i]; i++)
        puts(small[i]);
    for (; sets && *sets; sets++)
        puts(*sets);
}

enum err home_start(struct home *h, struct metadata *meta, unsigned loops)
{
    h->meta = meta;
    loops_start(&h->loops, "io", loops);
    return bookie_start(&h->bookie, &h->conf, h->meta, &h->loops, disk_real());
}

void home_stop(struct home *h)
{
    bookie_stop(&h->bookie);
    meta_close(&h->meta);
    loops_stop(&h->loops);
    config_drop(&bookie_config_table, &h->conf);
}

/* ---- metadata ------------------------------------------------------------------------------- */

static struct slice value_of(struct metadata *m, const char *key)
{
    struct slice value = {0};
    int64_t version;
    if (meta_get_wait(m, key, &value, &version))
        return (struct slice){0};
    return value;
}

static void cookie_key(char into[META_KEY_MAX])
{
    if (path_cookie("b1", into))
        errx(1, "no key for a cookie");
}

struct loaded {
    size_t len[2];
    uint8_t bytes[2][4096];
};

static void load(struct loaded *l, const char *dir)
{
    char key[META_KEY_MAX];
    struct metadata *m;
    if (meta_rocks_open(&m, dir))
        errx(1, "no metadata in %s", dir);
    cookie_key(key);
    const struct slice values[] = {value_of(m, PATH_INSTANCE_ID), value_of(m, key)};
    for (unsigned i = 0; i < 2 && values[i].len <= sizeof l->bytes[i]; i++) {
        l->len[i] = values[i].len;
        memcpy(l->bytes[i], values[i].base, values[i].len);
    }
    _exit(0);
}

/* By another process: RocksDB's threads would be missing in every one that is forked later. */
struct home_identity home_identity_load(const char *dir)
{
    struct loaded *l =
        mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l == MAP_FAILED)
        err(1, "memory");
    const pid_t child = fork();
    if (child == 0)
        load(l, dir);
    waitpid(child, NULL, 0);
    const struct home_identity id = {slice_copy(l->bytes[0], l->len[0]),
                                     slice_copy(l->bytes[1], l->len[1])};
    munmap(l, sizeof *l);
    return id;
}

struct metadata *home_metadata(const struct home_identity *id, bool is_registered)
{
    char key[META_KEY_MAX];
    struct metadata *m;
    cookie_key(key);
    enum err err = meta_memory_open(&m);
    if (!err)
        err = meta_put_wait(m, PATH_INSTANCE_ID, slice_share(id->instance), META_ANY);
    if (!err && is_registered)
        err = meta_put_wait(m, key, slice_share(id->cookie), META_ANY);
    if (err)
        errx(1, "no metadata in memory: %s", err_name(err));
    return m;
}

enum err home_ledger_put(struct metadata *m, int64_t ledger)
{
    Bookkeeper__LedgerMetadataFormat l = BOOKKEEPER__LEDGER_METADATA_FORMAT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment s = BOOKKEEPER__LEDGER_METADATA_FORMAT__SEGMENT__INIT;
    Bookkeeper__LedgerMetadataFormat__Segment *only = &s;
    char member[] = "b1", *members[] = {member}, key[META_KEY_MAX];
    l.quorumsize = l.ensemblesize = 1;
    l.state = BOOKKEEPER__LEDGER_METADATA_FORMAT__STATE__OPEN;
    l.n_segment = 1;
    l.segment = &only;
    s.n_ensemblemember = 1;
    s.ensemblemember = members;
    TRY(path_ledger(ledger, key));
    return meta_put_wait(m, key, ledger_record_write(&l), META_ANY);
}

enum err home_ledger_remove(struct metadata *m, int64_t ledger)
{
    struct meta_wait w;
    char key[META_KEY_MAX];
    TRY(path_ledger(ledger, key));
    meta_wait_begin(&w);
    meta_remove(m, key, META_ANY, &w.call);
    return meta_wait_end(&w);
}

static const struct meta_ops *real;
static struct meta_ops noting;
static void (*tell)(void);

static void put(struct metadata *m, const char *key, struct slice value, int64_t expected,
                struct meta_call *c)
{
    if (strncmp(key, PATH_COOKIES, strlen(PATH_COOKIES)) == 0)
        tell();
    real->put(m, key, value, expected, c);
}

struct metadata *home_metadata_open(const char *dir, void (*noted)(void))
{
    const struct cluster_urls urls = {0};
    struct metadata *m;
    if (meta_rocks_open(&m, dir) || cluster_init(m, "test", &urls))
        errx(1, "no metadata in %s", dir);
    tell = noted;
    real = m->ops;
    noting = *real;
    noting.put = put;
    m->ops = &noting;
    return m;
}
