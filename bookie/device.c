#include "bookie/device.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"

/* ---- opening -------------------------------------------------------------------------------- */

/* Without what it has lost we would say "no such entry" of what we acknowledged. */
static enum err check_index(const struct device *d)
{
    const uint64_t is = entry_index_sequence(d->index);
    if (is >= d->marks.index)
        return ERR_OK;
    log_event(LOG_ERROR, "entry_index.lost", F_STR("dir", d->conf.index_dir), F_U64("sequence", is),
              F_U64("expected", d->marks.index),
              F_STR("reason", "removed, emptied or older than the mark beside it"));
    return ERR_CHECKSUM;
}

static void note_log(void *ctx, const char *name)
{
    const size_t len = strlen(name);
    if (len > 4 && strcmp(name + len - 4, ".log") == 0)
        *(bool *)ctx = true;
}

/* A fresh index holds its version and nothing else. */
static enum err look_whether_new(struct device *d)
{
    bool has_logs = false;
    TRY(d->conf.disk->ops->list(d->conf.disk, d->conf.dir, note_log, &has_logs));
    d->is_new = !d->marks.is_there && !has_logs && entry_index_sequence(d->index) <= 1;
    return ERR_OK;
}

static enum err load_marks(struct device *d)
{
    const struct device_conf *c = &d->conf;
    char *path = mem_format("%s/mark", c->dir);
    const enum err err = marks_load(c->disk, path, c->journals, c->n_journals, &d->marks);
    mem_free(path);
    return err;
}

enum err device_open(struct device *d, unsigned number, const struct device_conf *conf)
{
    *d = (struct device){.number = number, .conf = *conf};
    TRY(conf->disk->ops->mkdir(conf->disk, conf->dir));
    TRY(disk_real()->ops->mkdir(disk_real(), conf->index_dir));
    TRY(load_marks(d));
    TRY(entry_index_open(&d->index, conf->index_dir));
    TRY(look_whether_new(d));
    TRY(entry_log_open(&d->log, conf->disk, conf->dir, conf->log_limit));
    return check_index(d);
}

enum err device_store_marks(const struct device *d, const struct marks *m)
{
    const struct device_conf *c = &d->conf;
    char *path = mem_format("%s/mark", c->dir);
    const enum err err = marks_store(c->disk, path, c->journals, c->n_journals, m);
    mem_free(path);
    return err;
}

void device_close(struct device *d)
{
    entry_log_close(&d->log);
    entry_index_close(&d->index);
}

void device_set_state(struct device *d, enum device_state state)
{
    atomic_store(&d->state, state);
}

/* ---- which one ------------------------------------------------------------------------------ */

/* The k-th of those in this state, by the ledger's id; NULL when there is none. */
static struct device *one_that_is(struct device *devices, unsigned n, enum device_state state,
                                  int64_t ledger)
{
    struct device *those[DEVICES_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < n; i++)
        if (atomic_load_explicit(&devices[i].state, memory_order_relaxed) == state)
            those[count++] = &devices[i];
    return count ? those[(ledger_hash(ledger) >> 32) % count] : NULL;
}

enum err device_for(struct device *devices, unsigned n, int64_t ledger, struct device **out)
{
    *out = one_that_is(devices, n, DEVICE_WRITABLE, ledger);
    if (!*out)
        *out = one_that_is(devices, n, DEVICE_FULL, ledger);
    return *out ? ERR_OK : ERR_READ_ONLY;
}

/* Where a new one would be put today is looked at first: most are there. */
enum err device_of(struct device *devices, unsigned n, int64_t ledger, struct device **out,
                   struct ledger_row *row)
{
    const unsigned first = (unsigned)((ledger_hash(ledger) >> 32) % n);
    for (unsigned i = 0; i < n; i++) {
        struct device *d = &devices[(first + i) % n];
        const enum err err = entry_index_row(d->index, ledger, row);
        if (err == ERR_NO_LEDGER)
            continue;
        *out = d;
        return err;
    }
    *out = NULL;
    return ERR_NO_LEDGER;
}
