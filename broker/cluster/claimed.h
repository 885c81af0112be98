/* claimed.h - who serves a bundle, agreed on by compare-and-set: a pure core.
 *
 *   find --> [owner alive?] --yes--> answer: mine, or its
 *                 | no
 *                 v
 *   RESTING --> WRITING --ok-----------------> RESTING: look at the record again
 *      ^           | somebody was faster, or it may have happened
 *      |           v
 *      +-- PAUSING <-- READING: the record is read back, and asked again
 *
 * A record names an owner and its nonce; it counts only while a registration with that
 * nonce lives.  A claim is one transaction: my registration is as I know it, that of the
 * owner before me is gone, the record is as I read it.  So a broker that lost its
 * registration claims nothing, and nobody claims from one that lives.  A registration's
 * versions begin anew with every session: one whose nonce is not the record's is read again
 * (LOOKING), newer than the record, before its version says that the owner is gone.  Records
 * are never removed, a bundle given up says "": versions do not begin anew, so no old
 * expectation holds by chance.
 *
 * Whether a bundle is mine is read off its record alone: it stays mine while the store is
 * away, and stops being mine when somebody else's claim is seen.
 *
 * Memory:  an ask is the caller's until answer(); bundle names are copied.
 * Threads: its owner's loop; effects never call back in the same stack.
 * Limits:  one write or read at a time a bundle; all who ask meanwhile wait for it.  After
 *          CLAIMED_TRIES_MAX of them everybody is told NOT_READY.
 */
#ifndef BROKER_CLUSTER_CLAIMED_H
#define BROKER_CLUSTER_CLAIMED_H

#include "common/err.h"
#include "common/list.h"
#include "common/table.h"

enum { CLAIMED_TRIES_MAX = 7 };

enum claimed_ask_kind { CLAIMED_FIND, CLAIMED_MOVE };

struct claimed_ask {
    enum claimed_ask_kind kind;
    const char *to; /* MOVE: a broker's id; "": nobody's */
    bool written;   /* private, as the next */
    struct list_node node;
};

/* A registration that is alive. */
struct claimed_life {
    const char *nonce;
    int64_t version;
};

/* A version that the registration of `id` must have; below 0: there is none. */
struct claimed_check {
    const char *id;
    int64_t version;
};

struct claimed_write {
    const char *bundle;
    const char *owner, *nonce;
    int64_t expected; /* version of the record; below 0: it is absent */
    unsigned checks;
    struct claimed_check check[2];
};

struct claimed_effects {
    bool (*alive)(void *ctx, const char *id, struct claimed_life *out); /* borrows until the next */
    void (*write)(void *ctx, const struct claimed_write *w); /* -> claimed_record, claimed_wrote */
    void (*read)(void *ctx, const char *bundle);             /* -> claimed_record, claimed_read */
    void (*look)(void *ctx, const char *bundle, const char *id);  /* -> alive's, claimed_looked */
    void (*pause)(void *ctx, const char *bundle, unsigned tries); /* -> claimed_paused */
    void (*answer)(void *ctx, struct claimed_ask *a, enum err err, const char *owner);
    void (*lost)(void *ctx, const char *bundle);
    void (*stopped)(void *ctx);
};

enum claimed_state {
    CLAIMED_RESTING,
    CLAIMED_LOOKING,
    CLAIMED_WRITING,
    CLAIMED_READING,
    CLAIMED_PAUSING
};

struct claimed_bundle {
    UT_hash_handle hh;
    char *name;
    enum claimed_state state;
    char *owner, *nonce; /* of the record; "" for nobody */
    int64_t version;     /* below 0: there is no record */
    int64_t looking_at;  /* this version's owner; looked: at its registration, since */
    bool looked;
    unsigned tries;
    bool kept; /* stopping: it could not be given up */
    struct claimed_ask *writing;
    struct list_node asks;
};

struct claimed {
    const struct claimed_effects *effects;
    void *ctx;
    const char *me, *nonce;
    struct claimed_bundle *by_name;
    bool stopping, stopped;
};

void claimed_init(struct claimed *c, const struct claimed_effects *effects, void *ctx,
                  const char *me, const char *nonce); /* borrows all */
void claimed_drop(struct claimed *c);

void claimed_ask(struct claimed *c, const char *bundle, struct claimed_ask *a);
/* What the record of a bundle says now; owner NULL: there is none. */
void claimed_record(struct claimed *c, const char *bundle, const char *owner, const char *nonce,
                    int64_t version);
void claimed_wrote(struct claimed *c, const char *bundle, enum err err);
void claimed_read(struct claimed *c, const char *bundle, enum err err);
void claimed_looked(struct claimed *c, const char *bundle, enum err err);
void claimed_paused(struct claimed *c, const char *bundle);
/* Claims nothing more, gives up what is mine; then stopped(). */
void claimed_stop(struct claimed *c);
bool claimed_is_mine(struct claimed *c, const char *bundle);

#endif
