/* A shelf in memory: gone with the process. */
#include "common/mem.h"
#include "metadata/shelf.h"

struct memory {
    struct shelf shelf;
    struct key_map keys;
};

static struct memory *memory_of(struct shelf *s)
{
    return container_of(s, struct memory, shelf);
}

static enum err get(struct shelf *s, const char *key, struct key_item *out)
{
    const struct key_item *i = key_map_find(&memory_of(s)->keys, key);

    if (!i)
        return ERR_NOT_FOUND;
    *out = *i;
    out->key = NULL;
    out->value = slice_share(i->value);
    return ERR_OK;
}

static enum err walk(struct shelf *s, const char *from, bool keys_only, shelf_each *each, void *ctx)
{
    const struct key_map *keys = &memory_of(s)->keys;

    (void)keys_only;
    for (size_t i = key_map_from(keys, from); i < keys->n; i++)
        if (!each(ctx, keys->at[i]))
            break;
    return ERR_OK;
}

static enum err commit(struct shelf *s, const struct key_map *changes, uint64_t revision)
{
    struct key_map *keys = &memory_of(s)->keys;

    (void)revision;
    for (size_t i = 0; i < changes->n; i++) {
        struct key_item c = *changes->at[i];
        if (c.gone || c.held) {
            key_map_remove(keys, c.key);
            continue;
        }
        c.value = slice_share(c.value);
        key_map_put(keys, &c);
    }
    return ERR_OK;
}

static void close_memory(struct shelf *s)
{
    key_map_clear(&memory_of(s)->keys);
    mem_free(memory_of(s));
}

static const struct shelf_ops ops = {get, walk, commit, close_memory};

enum err meta_memory_open(struct metadata **out)
{
    struct memory *m = mem_new(struct memory);

    m->shelf.ops = &ops;
    return store_open(out, &m->shelf);
}
