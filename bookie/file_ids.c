#include "bookie/file_ids.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum { DIGITS = 16 };

struct listing {
    const char *ending;
    struct file_ids *ids;
};

bool file_id(const char *name, const char *ending, uint64_t *id)
{
    char *end;
    if (strlen(name) != DIGITS + strlen(ending) || strcmp(name + DIGITS, ending) != 0)
        return false;
    *id = strtoull(name, &end, 16);
    return end == name + DIGITS;
}

static void note(void *ctx, const char *name)
{
    const struct listing *l = ctx;
    struct file_ids *ids = l->ids;
    uint64_t id;
    if (!file_id(name, l->ending, &id))
        return;
    if (ids->n == ids->room) {
        ids->room = ids->room ? ids->room * 2 : 64;
        ids->at = mem_resize(ids->at, ids->room * sizeof ids->at[0]);
    }
    ids->at[ids->n++] = id;
}

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

enum err file_ids_list(struct disk *disk, const char *dir, const char *ending, struct file_ids *out)
{
    struct listing l = {ending, out};
    *out = (struct file_ids){0};
    const enum err err = disk->ops->list(disk, dir, note, &l);
    if (out->n > 0)
        qsort(out->at, out->n, sizeof out->at[0], by_id);
    if (err)
        file_ids_end(out);
    return err;
}

void file_ids_end(struct file_ids *ids)
{
    mem_free(ids->at);
    *ids = (struct file_ids){0};
}
