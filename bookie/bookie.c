#include "bookie/bookie.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bookie/certificates.h"
#include "bookie/cookie.h"
#include "bookie/directories.h"
#include "bookie/disk_watch.h"
#include "bookie/gc.h"
#include "bookie/handlers.h"
#include "bookie/index_rebuild.h"
#include "bookie/integrity.h"
#include "bookie/registration.h"
#include "bookie/repair.h"
#include "common/flight.h"
#include "common/listener.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/memory_guard.h"
#include "metadata/metadata.h"
#include "metadata/paths.h"

enum {
    MIB = 1024 * 1024,
    READ_AHEAD = 256 * 1024,
    BATCHES_MAX = 32 * MIB,
    JOURNAL_ROOM = 16 * MIB,
    PROVE_US = 1000000
};

struct corner {
    struct bookie *bookie;
    unsigned shard;
    struct memory_ear ear;
};

/* Of a histogram. */
struct times_seen {
    uint64_t n, us;
};

struct bookie {
    const struct bookie_conf *conf;
    struct metadata *meta;
    struct loops *loops;
    struct disk *disk;
    char *id, *host;
    struct directories dirs;
    struct bookie_metrics metrics;
    struct memory_guard memory;
    struct corner corners[64]; /* one a loop */
    struct storage *storage;
    struct reads *reads;
    struct times_seen adds;            /* as the read threads know: under their lock */
    struct certificates *certificates; /* NULL: none */
    struct handlers *handlers;
    struct listener *listener;
    struct disk_watch *watch;
    struct registration *registration;
    struct repair_daemon *repair;
    struct gc *gc;
    struct integrity_state integrity_state;
    struct integrity *integrity;          /* NULL: nothing was lost */
    bool has_space, has_reserve, by_hand; /* loops->at[0]'s */
};

static enum err refuse(const char *key, const char *value, const char *reason)
{
    log_event(LOG_ERROR, "bookie.config_refused", F_STR("key", key), F_STR("value", value),
              F_STR("reason", reason));
    return ERR_BAD_CONFIG;
}

/* ---- who and where -------------------------------------------------------------------------- */

static enum err check_conf(const struct bookie_conf *c)
{
    if (strchr(c->bookie_id, '/'))
        return refuse("bookieId", c->bookie_id, "it must not contain a slash");
    if (c->port == 0 && c->bookie_id[0] == '\0')
        return refuse("bookiePort", "0", "a bookie on any free port needs a bookieId");
    return ERR_OK;
}

static void name_it(struct bookie *b)
{
    const struct bookie_conf *c = b->conf;
    char host[256] = "localhost";
    if (c->advertised_address[0] == '\0' && gethostname(host, sizeof host - 1))
        log_event(LOG_WARN, "bookie.host_unknown", F_STR("used", host));
    b->host = mem_string(c->advertised_address[0] ? c->advertised_address : host);
    b->id =
        c->bookie_id[0] ? mem_string(c->bookie_id) : mem_format("%s:%" PRId64, b->host, c->port);
}

/* Who cannot be asked may be asked again: that is for the one who starts us. */
static enum err unknown(const struct bookie *b, enum err err)
{
    log_event(LOG_ERROR, "bookie.identity_unknown", F_STR("bookie", b->id),
              F_STR("metadata", b->conf->metadata_service_uri), F_ERR(err));
    return err;
}

static enum err check_identity(struct bookie *b)
{
    struct slice instance = {0};
    int64_t version;
    const struct directories *d = &b->dirs;
    enum err err = meta_get_wait(b->meta, PATH_INSTANCE_ID, &instance, &version);
    if (err == ERR_NOT_FOUND) {
        char *run =
            mem_format("lgm init --cluster NAME --metadata %s", b->conf->metadata_service_uri);
        log_event(LOG_ERROR, "cluster.not_initialized", F_STR("bookie", b->id), F_STR("run", run));
        mem_free(run);
        return ERR_NOT_READY;
    }
    if (err)
        return unknown(b, err);
    char *id = mem_string_n((const char *)instance.base, instance.len);
    const struct cookie_conf conf = {
        .bookie_id = b->id,
        .instance_id = id,
        .named = {d->journals, d->ledgers, d->indexes},
        .roots = (const char *const *)d->roots,
        .dirs = (const char *const *)d->currents,
        .n = d->n,
        .may_expand = b->conf->may_expand,
        .may_lose = b->conf->integrity && b->conf->stamp_missing,
    };
    err = cookie_check(&conf, b->disk, b->meta);
    slice_drop(&instance);
    mem_free(id);
    return err && err != ERR_NOT_ALLOWED ? unknown(b, err) : err;
}

/* ---- storage -------------------------------------------------------------------------------- */

static void room(void *ctx, unsigned shard)
{
    struct bookie *b = ctx;
    if (b->handlers)
        handlers_room(b->handlers, shard);
}

static void group_done(void *ctx, struct loop *home)
{
    struct bookie *b = ctx;
    if (b->handlers)
        handlers_group_done(b->handlers, home);
}

/* Nothing that waits can be acknowledged any more, and what is on the disk is not known: only a
 * new start, which reads it back, can go on. */
static void journal_failed(void *ctx, enum err why)
{
    struct bookie *b = ctx;
    log_event(LOG_ERROR, "bookie.stopped", F_STR("bookie", b->id), F_ERR(why),
              F_STR("reason", "a journal cannot be written"));
    flight_dump(STDERR_FILENO);
    _exit(1);
}

/* The mean since it was asked last: a quantile of a histogram is too coarse. */
static uint64_t mean_since(const struct histogram *h, struct times_seen *seen)
{
    struct histogram *readable = (struct histogram *)(uintptr_t)h;
    const uint64_t sum = atomic_load(&readable->sum_us);
    uint64_t n = 0;
    for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++)
        n += atomic_load(&readable->bucket[i]);
    const uint64_t mean = n > seen->n ? (sum - seen->us) / (n - seen->n) + 1 : 0;
    *seen = (struct times_seen){n, sum};
    return mean;
}

static uint64_t add_us(void *ctx)
{
    struct bookie *b = ctx;
    return mean_since(&b->metrics.add_us, &b->adds);
}

static void govern_reads(struct bookie *b)
{
    if (b->conf->catch_up_floor >= 0)
        reads_govern(b->reads, &(struct reads_duty){.floor = (uint64_t)b->conf->catch_up_floor,
                                                    .add_us = add_us,
                                                    .ctx = b});
}

static enum err heal_index(struct bookie *b)
{
    const struct directories *d = &b->dirs;
    struct rebuild_dir dirs[DEVICES_MAX];
    const struct rebuild_conf conf = {
        .disk = b->disk,
        .dirs = dirs,
        .n = d->ledgers.n,
        .journals = d->journal_dirs,
        .n_journals = d->journals.n,
        .record_max = (uint32_t)b->conf->frame_max,
        .meta = b->meta,
        .bookie_id = b->id,
    };
    for (unsigned i = 0; i < conf.n; i++)
        dirs[i] = (struct rebuild_dir){.dir = d->ledger_dirs[i], .index_dir = d->index_dirs[i]};
    return index_heal(&conf, dirs, b->conf->rebuild_index);
}

static enum err open_storage(struct bookie *b)
{
    const struct bookie_conf *c = b->conf;
    const struct storage_conf conf = {
        .disk = b->disk,
        .dirs = b->dirs.ledger_dirs,
        .index_dirs = (const char *const *)b->dirs.index_dirs,
        .n_devices = b->dirs.ledgers.n,
        .journal_dirs = b->dirs.journal_dirs,
        .n_journals = b->dirs.journals.n,
        .half_bytes = (uint64_t)c->write_cache_mb * MIB / 2,
        .read_cache_bytes = (uint64_t)c->read_cache_mb * MIB,
        .log_limit = (uint64_t)c->log_size_limit,
        .flush_interval_ms = (uint64_t)c->flush_interval_ms,
        .journal = {.file_bytes = (uint64_t)c->journal_max_size_mb * MIB,
                    .group_bytes = (uint64_t)c->journal_group_bytes,
                    .queue_bytes = (uint64_t)c->journal_memory_mb * MIB,
                    .record_max = (uint32_t)c->frame_max,
                    .direct = c->journal_direct,
                    .ahead = true,
                    .may_lack = b->integrity_state.need == INTEGRITY_SCAN,
                    .prove_us = PROVE_US,
                    .slow_us = (uint64_t)c->slow_sync_ms * 1000,
                    .loops = b->loops,
                    .group_done = group_done,
                    .failed = journal_failed,
                    .ctx = b},
        .room = room,
        .ctx = b,
    };
    TRY(storage_open(&b->storage, &conf));
    TRY(reads_open(&b->reads, b->loops, c->read_threads ? (unsigned)c->read_threads : 1,
                   (size_t)(c->read_ahead_bytes < 4096 ? READ_AHEAD : c->read_ahead_bytes)));
    govern_reads(b);
    return ERR_OK;
}

/* ---- serving -------------------------------------------------------------------------------- */

static void accepted(void *ctx, int fd)
{
    struct bookie *b = ctx;
    if (!memory_guard_turns_away(&b->memory, fd))
        handlers_accept(b->handlers, fd);
}

struct opening {
    struct bookie *bookie;
    enum err err;
};

static void open_listener(void *ctx)
{
    struct opening *o = ctx;
    struct bookie *b = o->bookie;
    o->err = listener_open(&b->listener, b->loops->at[0], b->conf->listen_address,
                           (uint16_t)b->conf->port, accepted, b);
}

static void close_listener(void *ctx)
{
    struct bookie *b = ctx;
    listener_close(&b->listener);
}

static void tell_writable(struct bookie *b)
{
    const bool writable = b->has_space && !b->by_hand;
    handlers_set_writable(b->handlers, writable, b->has_reserve);
    if (b->registration)
        registration_set(b->registration, !writable);
}

static void say_writable(void *ctx)
{
    tell_writable(ctx);
}

/* Directories of ledgers come first, in the order of devices. */
static enum err failure_of(void *ctx, unsigned dir)
{
    struct bookie *b = ctx;
    const unsigned devices = b->storage->n_devices;
    return dir < devices ? checkpoint_failure(b->storage->devices[dir].checkpoint)
                         : journal_failure(b->storage->journals[dir - devices]);
}

static void tell_device(struct device *d, const struct disk_dir *dir, uint64_t reserve)
{
    const size_t unwritten = atomic_load(&d->active_bytes) + atomic_load(&d->frozen_bytes);
    atomic_store(&d->reserve_left,
                 (int64_t)dir->free_bytes - (int64_t)reserve - (int64_t)unwritten);
    atomic_store(&d->is_tight, dir->level != DISK_ROOMY);
    device_set_state(d, dir->level == DISK_FAILED ? DEVICE_FAILED
                        : dir->level == DISK_FULL ? DEVICE_FULL
                                                  : DEVICE_WRITABLE);
}

static void disks_looked_at(void *ctx, const struct disk_rules *r, const struct disk_verdict *v)
{
    struct bookie *b = ctx;
    for (unsigned i = 0; i < b->storage->n_devices; i++)
        tell_device(&b->storage->devices[i], &r->dirs[i], r->conf.reserve);
    metric_set(&b->metrics.writable_dirs, v->writable_dirs);
    if (b->has_space == v->writable && b->has_reserve == v->reserve)
        return;
    b->has_space = v->writable;
    b->has_reserve = v->reserve;
    tell_writable(b);
}

static enum err space(void *ctx, uint64_t *free_bytes, uint64_t *total)
{
    return bookie_space(ctx, free_bytes, total);
}

static void open_handlers(struct bookie *b)
{
    const struct bookie_conf *c = b->conf;
    const struct handlers_conf conf = {
        .storage = b->storage,
        .loops = b->loops,
        .metrics = &b->metrics,
        .memory = &b->memory,
        .reads = b->reads,
        .frame_max = (size_t)c->frame_max,
        .park_bytes = (uint64_t)c->journal_memory_mb * MIB / b->loops->n,
        .throttle_us = (uint64_t)c->throttle_ms * 1000,
        .slow_us = (uint64_t)c->slow_sync_ms * 1000,
        .pending_reads = (unsigned)c->max_pending_reads,
        .batch_max = (uint64_t)c->batch_read_max,
        .batches_max = BATCHES_MAX,
        .space = space,
        .space_ctx = b,
        .tls = certificates_tls(b->certificates),
        .newest = b->integrity_state.newest,
        .meta = b->meta,
        .bookie_id = b->id,
    };
    b->handlers = handlers_open(&conf);
    b->has_space = b->has_reserve = true;
    b->by_hand = c->force_read_only;
    tell_writable(b);
}

static uint64_t reserve_of(const struct bookie_conf *c)
{
    const int64_t log = c->min_log_bytes >= 0 ? c->min_log_bytes : c->log_size_limit;
    return (uint64_t)(c->min_reserve_bytes >= 0 ? c->min_reserve_bytes : log);
}

static void watch_disks(struct bookie *b)
{
    const struct bookie_conf *c = b->conf;
    struct watched_dir dirs[DEVICES_MAX + JOURNALS_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < b->storage->n_devices; i++)
        dirs[n++] = (struct watched_dir){b->dirs.ledger_dirs[i], false};
    for (unsigned i = 0; i < b->storage->n_journals; i++)
        dirs[n++] = (struct watched_dir){b->dirs.journal_dirs[i], true};
    const struct disk_watch_conf conf = {
        .disk = b->disk,
        .loop = b->loops->at[0],
        .dirs = dirs,
        .n = n,
        .rules = {.threshold = c->disk_usage_threshold,
                  .warn = c->disk_usage_warn,
                  .low_water = c->disk_usage_lwm,
                  .reserve = reserve_of(c),
                  .journal_room = JOURNAL_ROOM,
                  .any_full = c->any_disk_full},
        .interval_us = (uint64_t)c->disk_check_interval_ms * 1000,
        .failure = failure_of,
        .looked = disks_looked_at,
        .ctx = b,
    };
    b->watch = disk_watch_open(&conf);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* What can be read again goes, what waits to be written is written early. */
static void memory_changed(struct memory_ear *e, enum memory_level level)
{
    const struct corner *c = container_of(e, struct corner, ear);
    if (level == MEMORY_PLENTY)
        return;
    read_cache_clear(&c->bookie->storage->shards[c->shard].read);
    storage_kick(c->bookie->storage);
}

static void guard_memory(struct bookie *b)
{
    for (unsigned i = 0; i < b->loops->n; i++) {
        struct corner *c = &b->corners[i];
        *c = (struct corner){
            .bookie = b,
            .shard = i,
            .ear = {.home = b->loops->at[i], .heard = memory_changed},
        };
        memory_guard_listen(&b->memory, &c->ear);
    }
    memory_guard_start(&b->memory, b->loops->at[0]);
}

void bookie_follow(struct bookie *b, struct memory_guard *g)
{
    for (unsigned i = 0; i < b->loops->n; i++) {
        list_remove(&b->corners[i].ear.node);
        memory_guard_listen(g, &b->corners[i].ear);
    }
}

static struct integrity_conf integrity_conf(struct bookie *b)
{
    return (struct integrity_conf){
        .settings = b->conf,
        .bookie_id = b->id,
        .meta = b->meta,
        .loops = b->loops,
        .metrics = &b->metrics,
        .disk = b->disk,
        .dirs = (const char *const *)b->dirs.currents,
        .n = b->dirs.n,
    };
}

static enum err collect_garbage(struct bookie *b)
{
    const struct gc_conf conf = {.conf = b->conf,
                                 .bookie_id = b->id,
                                 .disk = b->disk,
                                 .storage = b->storage,
                                 .meta = b->meta,
                                 .reads = b->reads};
    return gc_open(&b->gc, &conf);
}

static void leave(void *ctx)
{
    bookie_set_read_only(ctx, true);
}

static enum err start(struct bookie *b)
{
    TRY(check_conf(b->conf));
    TRY(certificates_open(&b->certificates, b->conf, b->loops->at[0]));
    name_it(b);
    TRY(directories_open(&b->dirs, b->conf, b->disk));
    TRY(check_identity(b));
    TRY(heal_index(b));
    struct integrity_conf integrity = integrity_conf(b);
    TRY(integrity_find(&integrity, &b->integrity_state));
    TRY(open_storage(b));
    integrity.storage = b->storage;
    TRY(integrity_scan(&integrity, &b->integrity_state));
    open_handlers(b);
    TRY(storage_serve(b->storage));
    guard_memory(b);
    struct opening o = {.bookie = b};
    loop_call(b->loops->at[0], open_listener, &o);
    TRY(o.err);
    const struct bookie_record record = {.host = b->host, .port = bookie_port(b)};
    watch_disks(b);
    TRY(registration_open(&b->registration, b->meta, b->loops->at[0], b->id, &record,
                          !bookie_is_writable(b)));
    loop_call(b->loops->at[0], say_writable, b); /* it may have changed meanwhile */
    b->repair = repair_daemon_open(b->conf, b->id, b->meta, b->loops, leave, b);
    b->integrity = integrity_open(&integrity, &b->integrity_state);
    TRY(collect_garbage(b));
    log_event(LOG_INFO, "bookie.started", F_STR("bookie", b->id), F_STR("host", b->host),
              F_U64("port", bookie_port(b)), F_STR("journals", b->conf->journal_directories),
              F_STR("ledgers", b->conf->ledger_directories));
    return ERR_OK;
}

enum err bookie_start(struct bookie **out, const struct bookie_conf *conf, struct metadata *meta,
                      struct loops *loops, struct disk *disk)
{
    struct bookie *b = mem_new(struct bookie);
    b->conf = conf;
    b->meta = meta;
    b->loops = loops;
    b->disk = disk;
    memory_guard_init(&b->memory, &(struct memory_guard_conf){.limit_mb = conf->memory_mb,
                                                              .level = &b->metrics.memory_level,
                                                              .limit = &b->metrics.memory_limit});
    *out = b;
    const enum err err = start(b);
    if (err)
        bookie_stop(out);
    return err;
}

/* Out of the cluster's sight first; then no more requests; then what is in memory. */
void bookie_stop(struct bookie **bookie)
{
    struct bookie *b = *bookie;
    *bookie = NULL;
    if (!b)
        return;
    memory_guard_stop(&b->memory);
    gc_close(&b->gc);
    integrity_close(&b->integrity);
    repair_daemon_close(&b->repair);
    disk_watch_close(&b->watch);
    registration_close(&b->registration);
    if (b->listener)
        loop_call(b->loops->at[0], close_listener, b);
    if (b->handlers)
        handlers_stop(b->handlers);
    if (b->reads)
        reads_govern(b->reads, NULL);
    if (b->storage)
        storage_stop(b->storage);
    reads_close(&b->reads);
    handlers_close(&b->handlers);
    certificates_close(&b->certificates);
    storage_close(&b->storage);
    directories_close(&b->dirs);
    log_event(LOG_INFO, "bookie.ended", F_STR("bookie", b->id ? b->id : ""));
    mem_free(b->id);
    mem_free(b->host);
    mem_free(b);
}

const char *bookie_name(const struct bookie *b)
{
    return b->id;
}

uint16_t bookie_port(const struct bookie *b)
{
    return listener_port(b->listener);
}

bool bookie_is_writable(const struct bookie *b)
{
    return handlers_writable(b->handlers);
}

bool bookie_takes_recovery(const struct bookie *b)
{
    return bookie_is_writable(b) || b->has_reserve;
}

/* With one before it, so that it is not counted twice. */
static bool shares_its_disk(const struct bookie *b, unsigned i)
{
    struct stat mine, other;
    if (stat(b->dirs.ledger_dirs[i], &mine))
        return false;
    for (unsigned k = 0; k < i; k++)
        if (stat(b->dirs.ledger_dirs[k], &other) == 0 && other.st_dev == mine.st_dev)
            return true;
    return false;
}

enum err bookie_space(const struct bookie *b, uint64_t *free_bytes, uint64_t *total)
{
    *free_bytes = *total = 0;
    for (unsigned i = 0; i < b->storage->n_devices; i++) {
        uint64_t free_here, total_here;
        if (shares_its_disk(b, i))
            continue;
        TRY(b->disk->ops->space(b->disk, b->dirs.ledger_dirs[i], &free_here, &total_here));
        *free_bytes += free_here;
        *total += total_here;
    }
    return ERR_OK;
}

bool bookie_is_registered(const struct bookie *b)
{
    return registration_is_held(b->registration);
}

void bookie_set_read_only(struct bookie *b, bool by_hand)
{
    if (b->by_hand == by_hand)
        return;
    b->by_hand = by_hand;
    log_event(LOG_WARN, by_hand ? "bookie.set_readonly" : "bookie.set_writable",
              F_STR("bookie", b->id));
    tell_writable(b);
}

struct storage *bookie_storage(struct bookie *b)
{
    return b->storage;
}

const struct directories *bookie_directories(const struct bookie *b)
{
    return &b->dirs;
}

void bookie_render_metrics(struct bookie *b, struct text *t)
{
    bookie_metrics_render(&b->metrics, b->storage, t);
    reads_render(b->reads, t);
    repair_daemon_render(b->repair, t);
    if (b->gc)
        gc_render(b->gc, t);
}

struct gc *bookie_gc(struct bookie *b)
{
    return b->gc;
}
