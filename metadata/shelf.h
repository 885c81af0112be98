/* shelf.h - where a store of this process keeps its keys: in memory or on disk.
 *
 * All rules (versions, transactions, watches, holds) are in store.c and stage.c; a shelf
 * only looks up, walks, and commits a group of changes, all of them or none.
 *
 * Threads: one at a time: the store's.
 */
#ifndef METADATA_SHELF_H
#define METADATA_SHELF_H

#include "common/err.h"
#include "metadata/key_map.h"
#include "metadata/metadata.h"

struct shelf;

/* False ends the walk.  The item is borrowed for the call; its value too. */
typedef bool shelf_each(void *ctx, const struct key_item *item);

struct shelf_ops {
    /* Gives out->value (key stays NULL); ERR_NOT_FOUND. */
    enum err (*get)(struct shelf *s, const char *key, struct key_item *out);
    /* Keys >= from, in order, until each() says false. */
    enum err (*walk)(struct shelf *s, const char *from, bool keys_only, shelf_each *each,
                     void *ctx);
    /* Durable when it returns.  An item that is gone or held must not be on the shelf. */
    enum err (*commit)(struct shelf *s, const struct key_map *changes, uint64_t revision);
    void (*close)(struct shelf *s);
};

/* First member of every shelf. */
struct shelf {
    const struct shelf_ops *ops;
    uint64_t revision; /* of the last commit */
};

MUST_CHECK enum err store_open(struct metadata **out, struct shelf *s); /* gives; takes s */

#endif
