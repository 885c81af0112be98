#include "bookie/log_ids.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

bool entry_log_name(const char *name, uint64_t *log)
{
    char *end;
    if (strlen(name) != 20 || strcmp(name + 16, ".log") != 0)
        return false;
    *log = strtoull(name, &end, 16);
    return end == name + 16;
}

static void note(void *ctx, const char *name)
{
    struct log_ids *ids = ctx;
    uint64_t log;
    if (!entry_log_name(name, &log))
        return;
    if (ids->n == ids->room) {
        ids->room = ids->room ? ids->room * 2 : 64;
        ids->at = mem_resize(ids->at, ids->room * sizeof ids->at[0]);
    }
    ids->at[ids->n++] = log;
}

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

enum err log_ids_list(struct disk *disk, const char *dir, struct log_ids *out)
{
    *out = (struct log_ids){0};
    const enum err err = disk->ops->list(disk, dir, note, out);
    if (out->n > 0)
        qsort(out->at, out->n, sizeof out->at[0], by_id);
    if (err)
        log_ids_end(out);
    return err;
}

void log_ids_end(struct log_ids *ids)
{
    mem_free(ids->at);
    *ids = (struct log_ids){0};
}
