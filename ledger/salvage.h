/* salvage.h - for the day when a quorum is really gone: what is left of a ledger, and how to go on
 * without the rest.  An operator decides; nothing here is done by itself.
 *
 *   survey: every entry is asked of every replica (fencing the last fragment, when the end is to be
 *           decided) --> what is here, denied, or not to be known now
 *   close:  at the last entry up to which all can be read; what is behind it is given up
 *   An entry that cannot be read gets something else in its place by repair.h, so that readers
 * pass.
 *
 * Threads: the client's loop.  done() never comes in the caller's stack.
 * Limits:  SALVAGE_MAX entries a ledger.
 */
#ifndef LEDGER_SALVAGE_H
#define LEDGER_SALVAGE_H

#include "common/buf.h"
#include "ledger/client.h"
#include "ledger/facts.h"

enum { SALVAGE_MAX = 16 * 1024 * 1024 };

struct salvage_entry {
    uint32_t here, denied; /* a bit a slot; the others did not answer, or with damage */
    int64_t length;        /* as its writer had it; with the next two only if it is here */
    uint32_t size;
};

/* What is known; entries 0 .. n-1. */
struct salvage_facts {
    struct ledger_facts ledger;
    unsigned fragments;
    entry_id n;
    const struct salvage_entry *at;
    entry_id known_lac; /* the highest that any header says: up to it all was acknowledged */
    uint32_t answered;  /* slots of the last fragment that said what their last entry is */
};

/* ---- what to decide (pure) ---- */

struct salvage_end {
    entry_id last; /* ENTRY_NONE: nothing can be read */
    int64_t length;
    uint64_t acknowledged; /* entries behind it that were acknowledged for sure */
    uint64_t readable;     /* entries behind it that could be read, but for the hole before them */
};
/* Entries before the last fragment count as confirmed, here or not. */
struct salvage_end salvage_find_end(const struct salvage_facts *f);
/* Up to the end of a closed ledger: can nobody be found who has it? */
bool salvage_is_gone(const struct salvage_facts *f, entry_id e);
/* And might somebody who does not answer have it? */
bool salvage_may_come_back(const struct salvage_facts *f, entry_id e);
/* A length for what is put in e's place, which leaves lengths in order. */
int64_t salvage_length(const struct salvage_facts *f, entry_id e, uint32_t size);

/* ---- doing it ---- */

struct salvage;
struct salvage *salvage_new(struct ledger_client *c, int64_t ledger,
                            void (*done)(void *ctx, enum err err),
                            void *ctx); /* gives; done() answers each of those below */
void salvage_survey(struct salvage *s, bool fence);
/* Of the survey; borrowed until the next. */
const struct salvage_facts *salvage_facts(const struct salvage *s);
entry_id salvage_fragment(const struct salvage *s, unsigned fragment, const char *members[]);
/* BAD_VERSION: somebody has changed it since the survey. */
void salvage_close(struct salvage *s, const struct salvage_end *end);
void salvage_drop(struct salvage **s); /* when nothing is under way */

#endif
