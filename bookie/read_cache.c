#include "bookie/read_cache.h"

void read_cache_init(struct read_cache *c, size_t budget)
{
    *c = (struct read_cache){.budget = budget};
    entry_map_init(&c->generation[0]);
    entry_map_init(&c->generation[1]);
}

void read_cache_end(struct read_cache *c)
{
    entry_map_end(&c->generation[0]);
    entry_map_end(&c->generation[1]);
}

void read_cache_clear(struct read_cache *c)
{
    entry_map_clear(&c->generation[0]);
    entry_map_clear(&c->generation[1]);
    c->bytes = c->old_bytes = 0;
    metric_set(&c->held, 0);
}

void read_cache_window(struct read_cache *c, size_t bytes)
{
    if (c->bytes + bytes > c->budget / 2) {
        c->young = !c->young;
        entry_map_clear(&c->generation[c->young]);
        c->old_bytes = c->bytes;
        c->bytes = 0;
    }
    c->bytes += bytes;
    metric_set(&c->held, (int64_t)(c->bytes + c->old_bytes));
}

void read_cache_put(struct read_cache *c, int64_t ledger, int64_t entry, struct slice bytes)
{
    entry_map_put(&c->generation[c->young], ledger, entry, bytes);
}

const struct slice *read_cache_find(const struct read_cache *c, int64_t ledger, int64_t entry)
{
    const struct slice *s = entry_map_find(&c->generation[c->young], ledger, entry);
    return s ? s : entry_map_find(&c->generation[!c->young], ledger, entry);
}

void read_cache_forget(struct read_cache *c, int64_t ledger, int64_t entry)
{
    entry_map_forget(&c->generation[0], ledger, entry);
    entry_map_forget(&c->generation[1], ledger, entry);
}
