/* pairs.h - words that somebody put on something: names, each with a value.
 *
 * Memory: everything is copied; what is found is borrowed until the next change.
 * Limits: who takes them from a peer asks pairs_bytes() first.
 */
#ifndef BROKER_MANAGED_LEDGER_PAIRS_H
#define BROKER_MANAGED_LEDGER_PAIRS_H

#include <stddef.h>

struct pair {
    char *name, *value;
};

struct pairs {
    unsigned n;
    struct pair *at;
};

void pairs_set(struct pairs *p, const char *name, const char *value); /* instead of one before */
void pairs_copy(struct pairs *to, const struct pairs *from);          /* `to` is empty */
void pairs_drop(struct pairs *p);                                     /* empty again */
const char *pairs_find(const struct pairs *p, const char *name);      /* or NULL */
size_t pairs_bytes(const struct pairs *p);

#endif
