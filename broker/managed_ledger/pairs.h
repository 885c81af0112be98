/* pairs.h - words that somebody put on something: names, each with a value.
 *
 * Memory: everything is copied; what is found is borrowed until the next change.
 * Limits: who takes them from a peer keeps them within PAIRS_MAX and PAIRS_BYTES_MAX.
 */
#ifndef BROKER_MANAGED_LEDGER_PAIRS_H
#define BROKER_MANAGED_LEDGER_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

enum { PAIRS_MAX = 1024, PAIRS_BYTES_MAX = 64 * 1024 }; /* that anyone may bring */
/* Names of the system's own, on a cursor. */
#define PAIRS_INTERNAL "#pulsar.internal."

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
bool pairs_fit(const struct pairs *p); /* within the limits */

#endif
