#include "tests/unit/bookie/store.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bookie/bytes.h"
#include "common/mem.h"
#include "tests/lib/suite.h"

const uint8_t store_key[MASTER_KEY_SIZE] = {1, 2, 3};

static char *numbered(const char *first, const char *name, unsigned i)
{
    return i ? mem_format("%s%s%u", first, name, i) : mem_format("%s%s", first, name);
}

struct store *store_new(unsigned n_devices, unsigned n_journals)
{
    struct store *s = mem_new(struct store);
    const char *tmp = getenv("TMPDIR");
    snprintf(s->dir, sizeof s->dir, "%s/lgm-storage-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(s->dir));
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        char *within = mem_format("%s/", s->dir);
        s->dirs[i] = numbered("", "ledgers", i);
        s->index_dirs[i] = numbered(within, "index", i);
        s->journal_dirs[i] = numbered("", "journal", i);
        mem_free(within);
    }
    s->disk = fake_disk_new();
    s->n_devices = n_devices;
    s->n_journals = n_journals;
    s->flush_interval_ms = 3600000;
    s->half_bytes = STORE_HALF;
    loops_start(&s->loops, "loop", 1);
    return s;
}

void store_drop(struct store **store)
{
    struct store *s = *store;
    *store = NULL;
    store_stop(s);
    loops_stop(&s->loops);
    fake_disk_drop(&s->disk);
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        mem_free(s->dirs[i]);
        mem_free(s->index_dirs[i]);
        mem_free(s->journal_dirs[i]);
    }
    char *command = mem_format("rm -rf '%s'", s->dir);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
    mem_free(s);
}

static void failed(void *ctx, enum err why)
{
    struct store *s = ctx;
    (void)why;
    atomic_fetch_add(&s->failures, 1);
}

enum err store_start(struct store *s)
{
    const struct storage_conf conf = {
        .disk = fake_disk_of(s->disk),
        .dirs = (const char *const *)s->dirs,
        .index_dirs = (const char *const *)s->index_dirs,
        .n_devices = s->n_devices,
        .journal_dirs = (const char *const *)s->journal_dirs,
        .n_journals = s->n_journals,
        .half_bytes = s->half_bytes,
        .read_cache_bytes = STORE_HALF,
        .log_limit = 200 << 10,
        .flush_interval_ms = s->flush_interval_ms,
        .journal = {.file_bytes = 256 << 10,
                    .group_bytes = 32 << 10,
                    .queue_bytes = (4 << 20) * s->n_journals,
                    .record_max = 64 << 10,
                    .loops = &s->loops,
                    .group_done = s->group_done,
                    .failed = failed,
                    .ctx = s},
        .room = s->room,
        .ctx = s,
    };
    return storage_open(&s->storage, &conf);
}

void store_stop(struct store *s)
{
    if (s->storage)
        storage_stop(s->storage);
    storage_close(&s->storage);
}

void store_crash(struct store *s)
{
    fake_disk_fail(s->disk, FAKE_WRITE, 0, UINT32_MAX);
    store_stop(s);
    fake_disk_fail(s->disk, FAKE_WRITE, 0, 0);
    atomic_store(&s->failures, 0);
    fake_disk_crash(s->disk);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void done(struct journal_write *w, enum err err)
{
    struct store_write *o = container_of(w, struct store_write, write);
    if (!err && o->entry >= 0)
        o->store->acked[o->ledger][o->entry] = true;
    else if (!err)
        o->store->fenced[o->ledger] = true;
    atomic_fetch_sub(&o->store->waiting, 1);
}

void store_wait(struct store *s)
{
    while (atomic_load(&s->waiting) > 0 && atomic_load(&s->failures) == 0)
        sched_yield();
}

static size_t entry_size(int64_t entry)
{
    return 40 + (size_t)(entry % 7) * 100;
}

static struct slice make_entry(int64_t ledger, int64_t entry)
{
    uint8_t bytes[1000];
    memset(bytes, (int)(ledger * 31 + entry), sizeof bytes);
    entry_prefix(&(struct entry_header){ledger, entry, entry - 1, 0}, 0, 0, bytes);
    return slice_copy(bytes, entry_size(entry));
}

static void journal_it(struct store_write *o, uint8_t kind, size_t head, struct slice body)
{
    struct store *s = o->store;
    memcpy(o->head, store_key, MASTER_KEY_SIZE);
    o->write = (struct journal_write){.kind = kind,
                                      .head = view_of(o->head, head),
                                      .body = body,
                                      .home = s->loops.at[0],
                                      .done = done};
    atomic_fetch_add(&s->waiting, 1);
    ck_assert_int_eq(journal_append(storage_journal(s->storage, o->ledger), &o->write), ERR_OK);
}

static struct store_write *next_write(struct store *s, int64_t ledger, int64_t entry)
{
    struct store_write *o = &s->writes[s->n_writes++ % STORE_WRITES];
    o->store = s;
    o->ledger = ledger;
    o->entry = entry;
    return o;
}

static struct ledgers *table_of(struct store *s, int64_t ledger)
{
    return &storage_shard(s->storage, ledger)->ledgers;
}

enum err store_add(struct store *s, int64_t ledger, int64_t entry)
{
    struct ledger *l;
    enum err err = ledgers_claim(table_of(s, ledger), ledger, store_key, &l);
    if (!err)
        err = storage_put(s->storage, l, entry, entry - 1, make_entry(ledger, entry));
    if (!err)
        journal_it(next_write(s, ledger, entry), RECORD_ADD, MASTER_KEY_SIZE,
                   make_entry(ledger, entry));
    return err;
}

enum err store_fence(struct store *s, int64_t ledger)
{
    struct ledger *l;
    const enum err err = ledgers_claim(table_of(s, ledger), ledger, store_key, &l);
    if (err)
        return err;
    l->row.fenced = true;
    l->fence = LEDGER_FENCED;
    ledger_changed(table_of(s, ledger), l);
    struct store_write *o = next_write(s, ledger, -1);
    put_u64(o->head + MASTER_KEY_SIZE, (uint64_t)ledger);
    journal_it(o, RECORD_FENCE, FENCE_RECORD, (struct slice){0});
    return ERR_OK;
}

struct device *store_device(struct store *s, int64_t ledger)
{
    struct ledger *l;
    return ledgers_find(table_of(s, ledger), ledger, &l) ? NULL : l->device;
}

/* ---- is it there? --------------------------------------------------------------------------- */

enum err store_look(struct store *s, int64_t ledger, int64_t entry)
{
    struct entry_place at;
    struct slab *slab;
    size_t got;
    struct view v;
    struct ledger *l;
    TRY(ledgers_find(table_of(s, ledger), ledger, &l));
    const struct slice *found = storage_look(s->storage, l, entry);
    if (found)
        return found->len == entry_size(entry) ? ERR_OK : ERR_CHECKSUM;
    TRY(entry_index_find(l->device->index, ledger, entry, &at));
    TRY(entry_log_read(l->device->log, &at, 0, &slab, &got));
    const enum err err =
        entry_log_check(view_of(slab_bytes(slab), got), at.length, ledger, entry, &v);
    slab_drop(&slab);
    return err;
}

static void check_ledger(struct store *s, int64_t l, bool broken)
{
    struct ledger *ledger;
    const enum err err = ledgers_find(table_of(s, l), l, &ledger);
    ck_assert(!s->fenced[l] || (!err && ledger->row.fenced && ledger->fence == LEDGER_FENCED));
    int64_t highest = -1;
    for (int64_t e = 0; e < STORE_ENTRIES; e++) {
        if (!s->acked[l][e])
            continue;
        const enum err found = store_look(s, l, e);
        ck_assert_msg(!found || (broken && found == ERR_IO), "ledger %d entry %d: %s", (int)l,
                      (int)e, err_name(found));
        highest = e;
    }
    ck_assert(highest < 0 || (!err && ledger->row.last >= highest));
}

void store_check(struct store *s, bool broken)
{
    for (int64_t l = 0; l < STORE_LEDGERS; l++)
        check_ledger(s, l, broken);
}
