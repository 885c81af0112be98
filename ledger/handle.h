/* handle.h - what is behind a ledger and its client: shared by the files of this folder.
 *
 * A handle that is dropped while one of its callbacks runs, or while a task of its is posted,
 * lives until those are over: `users` counts them.
 */
#ifndef LEDGER_HANDLE_H
#define LEDGER_HANDLE_H

#include "ledger/client.h"
#include "ledger/layout.h"
#include "metadata/metadata.h"

enum { ID_BLOCK = 16, SPARE_ADDS = 8192 };

struct ledger_client {
    struct loop *loop;
    struct metadata *meta;
    struct ledger_client_conf conf;
    struct bookies *bookies;
    unsigned users;          /* the owner, handles, calls under way */
    int64_t id_next, id_end; /* what is left of the block */
    uint64_t seed;
    struct ledger_counts *counts, own_counts;
    struct list_node spare_adds[ENSEMBLE_MAX + 1]; /* by write quorum: see writer.c */
    unsigned spares;
};

struct writer;

struct ledger {
    struct ledger_client *client;
    int64_t id;
    struct layout layout;
    entry_id lac;          /* of one that was opened; the writer knows its own */
    int64_t length;        /* up to it */
    struct writer *writer; /* of a ledger that we created; NULL once it is sealed */
    struct list_node readings;
    uint32_t avoid; /* by readers: slots of the fragment that begins at avoid_in */
    entry_id avoid_in;
    size_t typical; /* size of its entries, as the last reader knew; 0: not known */
    unsigned users;
    uint64_t ahead;      /* how far the store had gone back when the ledger was made */
    uint64_t missing_us; /* since when a store that has gone back since does not know it */
};

void client_hold(struct ledger_client *c);
void client_release(struct ledger_client *c);

struct ledger *handle_new(struct ledger_client *c, int64_t id); /* gives; the layout is empty */
void handle_hold(struct ledger *l);
void handle_release(struct ledger *l);
/* What an answer of the store makes of `err`: a ledger that is not there is gone, or was forgotten
 * by a store that was put back; then its owner is given time to write it back, and it is NOT_READY.
 */
enum err handle_missing(struct ledger *l, const struct meta_reply *r, enum err err);

/* writer.c */
void adds_init(struct ledger_client *c);
void adds_free(struct ledger_client *c);
struct writer *writer_new(struct ledger *l);
void writer_stop(struct writer *w, enum err why); /* what is in flight fails, in order */
void writer_drop(struct writer **w);              /* no further callback */
entry_id writer_last_confirmed(const struct writer *w);
int64_t writer_length(const struct writer *w);
bool writer_is_fenced(const struct writer *w);

/* change.c: puts `wanted` into the metadata, as the last fragment; l->layout says so on ERR_OK. */
struct change;
struct change *change_start(struct ledger *l, const struct fragment *wanted,
                            void (*done)(void *ctx, enum err err), void *ctx);
void change_abandon(struct change **c); /* no further callback; it may happen all the same */

/* read.c */
void readings_cancel(struct ledger *l);

/* recovery.c: fences, finds the end and closes.  l->layout is what the metadata says afterwards. */
void recovery_start(struct ledger *l, void (*done)(void *ctx, enum err err), void *ctx);

/* lac.c: how far an open ledger is confirmed: l->lac and l->length. */
void lac_start(struct ledger *l, void (*done)(void *ctx, enum err err), void *ctx);

#endif
