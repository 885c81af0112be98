/* A shelf on disk: RocksDB, one synced write batch a group.
 *
 * Layout of `dir`: LOCK is ours, db/ is RocksDB's.  In it "k" + key is a key of the store and
 * "m" the record with the last revision. */
#include <libgen.h>
#include <string.h>

#include "common/disk.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rocks_writer.h"
#include "metadata/rocks_value.h"
#include "metadata/shelf.h"

enum { WRITE_BUFFER = 8 * 1024 * 1024, TOLERATE_TORN_TAIL = 0, LOG_HEADER_ONLY = 5 };
/* Left free for what RocksDB must write by itself: a flush, a compaction. */
enum { RESERVE = 4 * WRITE_BUFFER, RESERVE_SHARE = 8 };

static const char revision_key[] = "m";

struct rocks {
    struct shelf shelf;
    char *dir;
    int lock;
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_readoptions_t *read;
    struct rocks_writer write;
};

static struct rocks *rocks_of(struct shelf *s)
{
    return container_of(s, struct rocks, shelf);
}

/* RocksDB says what is wrong in words only.  Takes the text. */
static enum err failed(const struct rocks *r, const char *event, char *text)
{
    enum err e = ERR_IO;

    if (strstr(text, "No space left") || strstr(text, "Disk quota"))
        e = ERR_NO_SPACE;
    else if (strncmp(text, "Corruption", 10) == 0)
        e = ERR_CHECKSUM;
    else if (strstr(text, "lock "))
        e = ERR_EXISTS;
    log_event(LOG_ERROR, e == ERR_EXISTS ? "metadata.locked" : event, F_STR("dir", r->dir),
              F_ERR(e), F_STR("what", text));
    rocksdb_free(text);
    return e;
}

static enum err unreadable(const struct rocks *r, const char *key, enum err e)
{
    log_event(LOG_ERROR, "metadata.corrupt", F_STR("dir", r->dir), F_STR("key", key), F_ERR(e));
    return e;
}

static char *stored_key(const char *key)
{
    return mem_format("k%s", key);
}

static enum err item_of(struct rocks *r, const char *key, struct view bytes, bool key_only,
                        struct key_item *out)
{
    struct rocks_header h;
    struct view value;
    enum err e = rocks_value_read(bytes, &h, &value);

    if (e)
        return unreadable(r, key, e);
    out->version = h.version;
    out->revision = h.revision;
    out->value = key_only ? (struct slice){0} : slice_copy(value.base, value.len);
    return ERR_OK;
}

static enum err get(struct shelf *s, const char *key, struct key_item *out)
{
    struct rocks *r = rocks_of(s);
    char *wrong = NULL, *stored = stored_key(key);
    size_t len = 0;
    char *bytes = rocksdb_get(r->db, r->read, stored, strlen(stored), &len, &wrong);
    enum err e;

    mem_free(stored);
    if (wrong)
        return failed(r, "metadata.read_failed", wrong);
    if (!bytes)
        return ERR_NOT_FOUND;
    e = item_of(r, key, view_of(bytes, len), false, out);
    rocksdb_free(bytes);
    return e;
}

/* *stop: the caller has enough, or the keys of the store end here. */
static enum err visit(struct rocks *r, rocksdb_iterator_t *i, bool keys_only, shelf_each *each,
                      void *ctx, bool *stop)
{
    struct key_item item = {0};
    size_t key_len, len;
    const char *stored = rocksdb_iter_key(i, &key_len);
    const char *bytes = rocksdb_iter_value(i, &len);

    *stop = stored[0] != 'k';
    if (*stop)
        return ERR_OK;
    item.key = mem_string_n(stored + 1, key_len - 1);
    enum err e = item_of(r, item.key, view_of(bytes, len), keys_only, &item);
    if (!e)
        *stop = !each(ctx, &item);
    slice_drop(&item.value);
    mem_free(item.key);
    return e;
}

static enum err walk(struct shelf *s, const char *from, bool keys_only, shelf_each *each, void *ctx)
{
    struct rocks *r = rocks_of(s);
    rocksdb_iterator_t *i = rocksdb_create_iterator(r->db, r->read);
    char *wrong = NULL, *stored = stored_key(from);
    bool stop = false;
    enum err e = ERR_OK;

    rocksdb_iter_seek(i, stored, strlen(stored));
    mem_free(stored);
    for (; !e && !stop && rocksdb_iter_valid(i); rocksdb_iter_next(i))
        e = visit(r, i, keys_only, each, ctx, &stop);
    rocksdb_iter_get_error(i, &wrong);
    rocksdb_iter_destroy(i);
    if (wrong)
        return failed(r, "metadata.read_failed", wrong);
    return e;
}

static void batch_put(rocksdb_writebatch_t *b, const char *stored, const struct rocks_header *h,
                      struct slice value)
{
    uint8_t header[ROCKS_HEADER];
    const char *keys[] = {stored}, *values[] = {(const char *)header, (const char *)value.base};
    const size_t key_lens[] = {strlen(stored)}, value_lens[] = {sizeof header, value.len};

    rocks_header_write(h, header);
    rocksdb_writebatch_putv(b, 1, keys, key_lens, value.len ? 2 : 1, values, value_lens);
}

static void batch_change(rocksdb_writebatch_t *b, const struct key_item *i)
{
    char *stored = stored_key(i->key);

    if (i->gone || i->held)
        rocksdb_writebatch_delete(b, stored, strlen(stored));
    else
        batch_put(b, stored, &(struct rocks_header){.version = i->version, .revision = i->revision},
                  i->value);
    mem_free(stored);
}

static bool adds(const struct key_map *changes)
{
    for (size_t i = 0; i < changes->n; i++)
        if (!changes->at[i]->gone && !changes->at[i]->held)
            return true;
    return false;
}

/* A write that RocksDB could not finish makes it refuse all that follow: so the disk is never
 * filled to its end, and what makes room still goes through. */
static enum err check_space(struct rocks *r, const struct key_map *changes)
{
    struct disk *d = disk_real();
    uint64_t left, total;

    if (!adds(changes))
        return ERR_OK;
    TRY(d->ops->space(d, r->dir, &left, &total));
    uint64_t reserve = total / RESERVE_SHARE < RESERVE ? total / RESERVE_SHARE : RESERVE;
    if (left >= reserve)
        return ERR_OK;
    log_event(LOG_ERROR, "metadata.disk_full", F_STR("dir", r->dir), F_U64("free", left),
              F_U64("reserve", reserve));
    return ERR_NO_SPACE;
}

static enum err commit(struct shelf *s, const struct key_map *changes, uint64_t revision)
{
    struct rocks *r = rocks_of(s);

    TRY(check_space(r, changes));
    rocksdb_writebatch_t *b = rocksdb_writebatch_create();
    for (size_t i = 0; i < changes->n; i++)
        batch_change(b, changes->at[i]);
    batch_put(b, revision_key, &(struct rocks_header){.revision = revision}, (struct slice){0});
    char *wrong = rocks_writer_write(&r->write, b, true);
    rocksdb_writebatch_destroy(b);
    return wrong ? failed(r, "metadata.write_failed", wrong) : ERR_OK;
}

static void close_rocks(struct shelf *s)
{
    struct rocks *r = rocks_of(s);

    if (r->db)
        rocksdb_close(r->db);
    if (r->options)
        rocksdb_options_destroy(r->options);
    if (r->read)
        rocksdb_readoptions_destroy(r->read);
    rocks_writer_end(&r->write);
    if (r->lock >= 0)
        disk_unlock(&r->lock);
    mem_free(r->dir);
    mem_free(r);
}

/* A damaged journal refuses to open; only what was cut off at its end, and so never answered,
 * is let go.  RocksDB says nothing in its log file while it runs: a line that does not fit on
 * the disk any more ends the process (an assertion that Debian's build keeps). */
static void choose_options(struct rocks *r)
{
    r->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(r->options, 1);
    rocksdb_options_set_paranoid_checks(r->options, 1);
    rocksdb_options_set_wal_recovery_mode(r->options, TOLERATE_TORN_TAIL);
    rocksdb_options_set_write_buffer_size(r->options, WRITE_BUFFER);
    rocksdb_options_set_info_log_level(r->options, LOG_HEADER_ONLY);
    rocksdb_options_set_keep_log_file_num(r->options, 1);
    rocksdb_options_set_max_open_files(r->options, 128);
    r->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_verify_checksums(r->read, 1);
}

static enum err load_revision(struct rocks *r)
{
    char *wrong = NULL;
    size_t len = 0;
    char *bytes = rocksdb_get(r->db, r->read, revision_key, 1, &len, &wrong);
    struct rocks_header h = {0};
    struct view rest;
    enum err e = ERR_OK;

    if (wrong)
        return failed(r, "metadata.read_failed", wrong);
    if (bytes)
        e = rocks_value_read(view_of(bytes, len), &h, &rest);
    rocksdb_free(bytes);
    r->shelf.revision = h.revision;
    return e ? unreadable(r, revision_key, e) : ERR_OK;
}

static enum err lock_dir(struct rocks *r)
{
    char *path = mem_format("%s/LOCK", r->dir);
    enum err e = disk_lock(path, &r->lock);

    mem_free(path);
    if (e)
        log_event(LOG_ERROR, e == ERR_EXISTS ? "metadata.locked" : "metadata.open_failed",
                  F_STR("dir", r->dir), F_ERR(e));
    return e;
}

/* The directory's own name must survive a power failure too. */
static enum err make_dir(const char *dir)
{
    struct disk *d = disk_real();
    char *copy = mem_string(dir);

    enum err e = d->ops->mkdir(d, dir);
    if (!e)
        e = d->ops->sync_dir(d, dirname(copy));
    mem_free(copy);
    return e;
}

static enum err open_db(struct rocks *r)
{
    char *wrong = NULL, *path = mem_format("%s/db", r->dir);

    choose_options(r);
    r->db = r->write.db = rocksdb_open(r->options, path, &wrong);
    mem_free(path);
    if (wrong)
        return failed(r, "metadata.open_failed", wrong);
    TRY(load_revision(r));
    return disk_real()->ops->sync_dir(disk_real(), r->dir);
}

static enum err open_rocks(struct rocks *r)
{
    TRY(make_dir(r->dir));
    TRY(lock_dir(r));
    return open_db(r);
}

static const struct shelf_ops ops = {get, walk, commit, close_rocks};

enum err meta_rocks_open(struct metadata **out, const char *dir)
{
    struct rocks *r = mem_new(struct rocks);

    r->shelf.ops = &ops;
    r->dir = mem_string(dir);
    r->lock = -1;
    rocks_writer_init(&r->write);
    enum err e = open_rocks(r);
    if (e) {
        close_rocks(&r->shelf);
        return e;
    }
    return store_open(out, &r->shelf);
}
