/* mirror.h - the keys under a prefix as this broker has last heard of them: a pure core.
 *
 *   watch  --change-->  +--------+
 *   list   --listed-->  | mirror | --told--> owner: a key has this value now, or none
 *   answer --learn -->  +--------+
 *
 * What is told about one key never goes back: each key remembers the revision up to which
 * it is known.  While the mirror is complete, a watch leaves nothing out, so an answer that
 * is not newer than the last change says nothing new.  While it is being listed (at first,
 * and after a watch was unsure), keys that are gone are remembered until the list ends.
 *
 * Memory:  keys are copied; values are borrowed for told().
 */
#ifndef BROKER_CLUSTER_MIRROR_H
#define BROKER_CLUSTER_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/table.h"

/* version < 0: the key is absent. */
struct mirror_fact {
    const char *key; /* below the prefix */
    struct view value;
    int64_t version;
    uint64_t revision; /* it is so at this one */
    void **tag;        /* for told(): the owner's, kept with the key; NULL at first, and gone when
                          the key is absent and told so */
};

struct mirror_key {
    UT_hash_handle hh;
    char *key;
    bool there, listed;
    uint64_t revision;
    void *tag;
};

struct mirror {
    struct mirror_key *by_name;
    uint64_t watched; /* the newest change */
    uint64_t began;   /* revision of the list's first page */
    bool listing_any; /* that page has come */
    bool complete;
    void (*told)(void *ctx, const struct mirror_fact *f);
    void *ctx;
};

void mirror_init(struct mirror *m, void (*told)(void *ctx, const struct mirror_fact *f), void *ctx);
void mirror_drop(struct mirror *m);

void mirror_change(struct mirror *m, const struct mirror_fact *f);
void mirror_learn(struct mirror *m, const struct mirror_fact *f);

void mirror_list(struct mirror *m); /* begins, or begins again: also when changes were missed */
void mirror_page(struct mirror *m, uint64_t revision); /* a page is being read */
void mirror_listed(struct mirror *m, const struct mirror_fact *f);
void mirror_list_end(struct mirror *m);

#endif
