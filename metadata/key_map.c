#include "metadata/key_map.h"

#include <string.h>

#include "common/mem.h"

size_t key_map_from(const struct key_map *m, const char *key)
{
    size_t low = 0, high = m->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(m->at[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct key_map *m, size_t place, const char *key)
{
    return place < m->n && strcmp(m->at[place]->key, key) == 0;
}

struct key_item *key_map_find(const struct key_map *m, const char *key)
{
    size_t place = key_map_from(m, key);

    return is_at(m, place, key) ? m->at[place] : NULL;
}

static void make_room(struct key_map *m, size_t place)
{
    if (m->n == m->room) {
        m->room = m->room ? m->room * 2 : 16;
        m->at = mem_resize(m->at, m->room * sizeof *m->at);
    }
    memmove(m->at + place + 1, m->at + place, (m->n - place) * sizeof *m->at);
    m->n++;
}

void key_map_put(struct key_map *m, const struct key_item *item)
{
    size_t place = key_map_from(m, item->key);
    struct key_item *into;
    char *key;

    if (is_at(m, place, item->key)) {
        into = m->at[place];
        key = into->key;
        slice_drop(&into->value);
    } else {
        key = mem_string(item->key);
        make_room(m, place);
        into = m->at[place] = mem_new(struct key_item);
    }
    *into = *item;
    into->key = key;
}

static void item_drop(struct key_item *i)
{
    mem_free(i->key);
    slice_drop(&i->value);
    mem_free(i);
}

void key_map_remove(struct key_map *m, const char *key)
{
    size_t place = key_map_from(m, key);

    if (!is_at(m, place, key))
        return;
    item_drop(m->at[place]);
    m->n--;
    memmove(m->at + place, m->at + place + 1, (m->n - place) * sizeof *m->at);
}

void key_map_clear(struct key_map *m)
{
    for (size_t i = 0; i < m->n; i++)
        item_drop(m->at[i]);
    mem_free(m->at);
    *m = (struct key_map){0};
}
