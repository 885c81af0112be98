#include "bookie/disk_rules.h"

#include <assert.h>

void disk_rules_init(struct disk_rules *r, const struct disk_rules_conf *conf)
{
    *r = (struct disk_rules){.conf = *conf};
    if (r->conf.low_water > r->conf.threshold)
        r->conf.low_water = r->conf.threshold;
}

void disk_rules_add(struct disk_rules *r, bool is_journal)
{
    assert(r->n < DISK_DIRS_MAX);
    r->dirs[r->n++] = (struct disk_dir){.is_journal = is_journal};
}

double disk_dir_used(const struct disk_dir *d)
{
    return d->total ? 1.0 - (double)d->free_bytes / (double)d->total : 0;
}

/* A journal of recycled files does not grow: only what a write has found counts. */
static enum disk_level of_journal(const struct disk_rules *r, const struct disk_dir *d,
                                  enum err failure)
{
    const bool lacks_room = d->total > 0 && d->free_bytes < r->conf.journal_room;
    return failure == ERR_NO_SPACE && lacks_room ? DISK_FULL : DISK_ROOMY;
}

static enum disk_level of_ledgers(const struct disk_rules *r, const struct disk_dir *d,
                                  enum err failure)
{
    const double used = disk_dir_used(d);
    if (failure == ERR_NO_SPACE)
        return DISK_FULL;
    if (failure)
        return DISK_FAILED;
    if (used > (d->level == DISK_FULL ? r->conf.low_water : r->conf.threshold))
        return DISK_FULL;
    return used > r->conf.warn ? DISK_WARNED : DISK_ROOMY;
}

void disk_rules_saw(struct disk_rules *r, unsigned dir, uint64_t free_bytes, uint64_t total,
                    enum err failure)
{
    struct disk_dir *d = &r->dirs[dir];
    if (total > 0) {
        d->free_bytes = free_bytes < total ? free_bytes : total;
        d->total = total;
    } else if (!failure) {
        return;
    }
    d->level = d->is_journal ? of_journal(r, d, failure) : of_ledgers(r, d, failure);
}

static bool takes_writes(const struct disk_dir *d)
{
    return d->level == DISK_ROOMY || d->level == DISK_WARNED;
}

/* Room for what recovery writes; a flush that found no space has shown that there is none. */
static bool has_reserve(const struct disk_rules *r, const struct disk_dir *d)
{
    return d->level != DISK_FAILED && d->total > 0 && d->free_bytes > r->conf.reserve;
}

struct disk_verdict disk_rules_decide(const struct disk_rules *r)
{
    struct disk_verdict v = {0};
    bool any_full = false, journal_full = false;
    for (unsigned i = 0; i < r->n; i++) {
        const struct disk_dir *d = &r->dirs[i];
        if (d->is_journal) {
            journal_full |= d->level == DISK_FULL;
            continue;
        }
        any_full |= d->level == DISK_FULL;
        v.writable_dirs += takes_writes(d);
        v.reserve |= takes_writes(d) || has_reserve(r, d);
    }
    v.writable = v.writable_dirs > 0 && !(any_full && r->conf.any_full) && !journal_full;
    v.reserve = v.reserve && !journal_full;
    return v;
}

uint64_t disk_rules_turns_in(const struct disk_rules *r, unsigned dir, uint64_t before, uint64_t us)
{
    const struct disk_dir *d = &r->dirs[dir];
    if (d->is_journal || d->total == 0 || before <= d->free_bytes)
        return UINT64_MAX;
    const uint64_t kept = (uint64_t)((1.0 - r->conf.threshold) * (double)d->total);
    const uint64_t line = d->level < DISK_FULL ? kept : r->conf.reserve;
    if (d->free_bytes <= line)
        return UINT64_MAX;
    const double taken = (double)(before - d->free_bytes);
    return (uint64_t)((double)(d->free_bytes - line) / taken * (double)us);
}
