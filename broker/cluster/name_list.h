/* name_list.h - names of topics in the order in which clients hash them: a pure core.
 *
 *   push, push ... sort  ->  merge into, remove from a list that is in order  ->  hash
 *
 * Clients and broker compare lists of topics by a hash of all names in order.  The order is that
 * of Java's strings (UTF-16 units); the hash is the CRC32C of the names joined with ',', as eight
 * hexadecimal digits, the lowest byte first (pulsar-broker.md A.13).
 *
 * Memory:  a list borrows its names.
 */
#ifndef BROKER_CLUSTER_NAME_LIST_H
#define BROKER_CLUSTER_NAME_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_list {
    const char **at;
    size_t n, room;
};

int name_order(const char *a, const char *b);

void name_list_push(struct name_list *l, const char *name);
void name_list_sort(struct name_list *l);
/* Both are in order and have no name in common. */
void name_list_merge(struct name_list *into, const struct name_list *more);
void name_list_remove(struct name_list *from, const struct name_list *gone); /* both in order */
void name_list_clear(struct name_list *l);
void name_list_drop(struct name_list *l);

struct name_hash {
    uint32_t crc;
    bool any;
};
typedef char name_hash_text[9];

void name_hash_add(struct name_hash *h, const char *name); /* in order; starts zeroed */
void name_hash_end(const struct name_hash *h, name_hash_text into);

/* A topic that brokers keep for themselves: it is in no list for users. */
bool name_is_system(const char *full);

#endif
