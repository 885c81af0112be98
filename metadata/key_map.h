/* key_map.h - keys in order, in memory: a sorted array.
 *
 * Found by halving; putting one in moves the pointers behind it, which is cheap for what
 * lives here: held keys, the changes of one group, a test's whole store.
 *
 * Memory:  owns keys and values.
 * Threads: one at a time.
 */
#ifndef METADATA_KEY_MAP_H
#define METADATA_KEY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

struct key_item {
    char *key;
    struct slice value;
    int64_t version;
    uint64_t revision; /* of its last change */
    bool held;         /* dies with the session */
    bool gone;         /* a removal that waits to be committed */
};

struct key_map {
    struct key_item **at;
    size_t n, room;
};

struct key_item *key_map_find(const struct key_map *m, const char *key); /* borrows; or NULL */
size_t key_map_from(const struct key_map *m, const char *key); /* place of the first >= key */
/* Replaces or adds: copies the key, takes the value. */
void key_map_put(struct key_map *m, const struct key_item *item);
void key_map_remove(struct key_map *m, const char *key); /* absent is fine */
void key_map_clear(struct key_map *m);

#endif
