/* book.h - what a bookie was asked and what it answered, and so what it must know after a crash.
 *
 *   note "asked"     ->  it may know it
 *   note "answered"  ->  it must
 *
 * An entry may be added again with other bytes: what it is then is one of those from the last
 * that was acknowledged on.  Its bytes come from its ids and how often it was added.
 *
 * Memory: a plain struct without pointers; shared by processes as it is.
 */
#ifndef TESTS_CRASHPOINTS_BOOK_H
#define TESTS_CRASHPOINTS_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BOOK_LEDGERS = 96, BOOK_ENTRIES = 2048, BOOK_ENTRY_MAX = 64 * 1024, BOOK_FIRST = 1 };

enum book_kind {
    BOOK_ADD = 1, /* ledger, entry, version */
    BOOK_FENCE,   /* ledger */
    BOOK_LAC,     /* ledger, entry: the LAC */
    BOOK_FORCE,   /* all that was added and not yet acknowledged is acknowledged by this */
    BOOK_DELETE,  /* ledger: gone from the metadata, whatever is answered */
};

/* Notes in the recording: rec.at. */
enum book_note {
    NOTE_ASKED = 1,
    NOTE_ANSWERED, /* well: what is refused is no note */
    NOTE_COOKIE,   /* from here on the metadata knows the bookie */
    NOTE_SERVING,  /* a life has begun */
    NOTE_STOPPED,  /* and has ended as it should */
};

struct book_act {
    uint8_t kind;
    uint8_t is_deferred; /* an add that is answered before it is durable */
    uint16_t version;
    int32_t unused;
    int64_t ledger, entry;
};

struct book_entry {
    uint8_t asked;    /* versions 0 .. asked - 1 */
    uint8_t least;    /* the version acknowledged last, plus one; 0: none */
    uint8_t deferred; /* as least, when a force has been answered */
};

struct book_ledger {
    bool is_known;  /* something was asked of it */
    bool must_know; /* something was acknowledged */
    bool fence_asked, fenced, deleted;
    int64_t lac_asked, lac;   /* -1: none */
    int64_t last_asked, last; /* highest entry; -1 */
    struct book_entry at[BOOK_ENTRIES];
};

struct book {
    bool is_registered;
    unsigned lives;
    struct book_ledger ledgers[BOOK_LEDGERS]; /* ids from BOOK_FIRST on */
};

void book_init(struct book *b);
struct book_ledger *book_ledger(struct book *b, int64_t ledger);
void book_asked(struct book *b, const struct book_act *a);
void book_answered(struct book *b, const struct book_act *a);
/* A note of a recording. */
void book_note(struct book *b, uint64_t kind, const void *bytes, size_t len);

/* The bytes of an entry, at most BOOK_ENTRY_MAX; and its ledger's password. */
size_t book_entry_bytes(int64_t ledger, int64_t entry, unsigned version, uint8_t *into);
/* Which version is this?  -1: none that was ever written. */
int book_version_of(const struct book *b, int64_t ledger, int64_t entry, const uint8_t *bytes,
                    size_t len);
void book_key(int64_t ledger, uint8_t key[20]);

#endif
