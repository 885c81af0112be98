/* model.h - one ledger in its smallest setting, as a value: all of it can be copied, compared, and
 * tried again another way.
 *
 *   state --one of its steps, and what chance may bring in it--> next state --> seen already?
 *
 * The cores are those of ledger/: a writer and a recoverer.  Bookies, their journals, the metadata
 * and all that is under way between them are a few numbers here.  Every message may arrive at any
 * time or never, in any order.
 *
 * So that fewer states differ by nothing that matters: who may crash is drawn at the beginning, and
 * which message will not be answered when it is sent.  On a bookie that will not crash a write is
 * durable at once; on the one that may, when its answer arrives: until then the crash may take
 * it away, and all that the journal has behind it.  What commutes with all that could happen
 * before it (eager.c) happens at once.
 *
 * Threads: one; the cores point into the one `world` that is worked on.
 * Limits:  the enums below; going over one is a fault.
 */
#ifndef TESTS_SIM_EXHAUST_MODEL_H
#define TESTS_SIM_EXHAUST_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "ledger/appender.h"
#include "ledger/changer.h"
#include "ledger/closer.h"
#include "ledger/recoverer.h"

enum {
    ENSEMBLE = 3,
    BOOKIES = 4, /* the last one is a spare, or is not there */
    ENTRIES = 4, /* that anybody asks for by name */
    RING = 4,
    FRAGMENTS = 4,
    LINES = 16,
    EXCHANGES = 64,
    META_EXCHANGES = 8,
    ATTEMPTS = 4, /* of the recoverer */
    STEPS = 256,
    NOBODY = BOOKIES,
    THE_RECOVERER
};

struct setting {
    struct quorum quorum;
    unsigned entries, spares, crashes, losses;
};

struct image {
    bool here, plain;
    bool late; /* plain, and stored after the fence covered the ledger */
    int8_t lac;
};

struct line {     /* of a journal, not known to be durable */
    int8_t entry; /* ENTRY_NONE: the fence */
    struct image image;
};

struct bookie {
    bool down, fenced;
    struct image disk[ENTRIES]; /* durable, as `fenced` */
    uint8_t lines;
    struct line line[LINES];
};

struct record {
    enum ledger_state state;
    int version;
    entry_id last;
    int64_t length;
    unsigned n;
    struct fragment fragment[FRAGMENTS];
};

enum actor { WRITER, RECOVERER };

/* A question to a bookie, and then its answer. */
struct exchange {
    bool used, heard; /* whoever asked still waits */
    bool answered, doomed /* he will not hear it */;
    uint8_t actor, bookie, slot;
    bool add, plain, fencing;
    int8_t entry, lac;
    uint8_t err;
    uint8_t line; /* of the journal, from 1, that must be durable before the answer; 0: none */
};

struct meta_exchange {
    bool used, heard, answered, doomed, put;
    bool change; /* the changer's */
    uint8_t actor, err;
    int expected;
    struct record record;
};

struct model {
    struct bookie bookie[BOOKIES];
    struct record record;
    struct fragment tail; /* when it was marked for recovery */
    struct exchange exchange[EXCHANGES];
    unsigned top; /* none is used from there on */
    struct meta_exchange meta[META_EXCHANGES];
    unsigned crashes, losses; /* that may still happen */
    unsigned mortal;          /* the bookie that may crash; NOBODY, THE_RECOVERER */
    bool fated;
    bool covered; /* enough bookies have a durable fence */
    unsigned confirmed;

    enum { WRITING, CLOSING, STOPPED } writer;
    struct record writer_record; /* as it last saw it */
    struct appender appender;
    struct appender_slot ring[RING];
    struct changer changer;
    struct closer closer;
    bool change_ended, waits, sealed;
    enum err change_err;

    enum { IDLE, FINDING, RECOVERING, OVER } recovery;
    struct record recoverer_record;
    struct recoverer recoverer;
    unsigned attempts;
    bool ended;
    enum err end_err;
};

enum step_kind {
    STEP_FATE,
    STEP_APPEND,
    STEP_CLOSE,
    STEP_WAKE,
    STEP_RECOVER,
    STEP_MOVE, /* a message arrives */
    STEP_LOSE, /* whoever asked waits no longer; the message may still arrive */
    STEP_META_MOVE,
    STEP_META_LOSE,
    STEP_CRASH,
    STEP_CRASH_RECOVERER
};

struct step {
    enum step_kind kind;
    unsigned i; /* which */
};

extern struct model world;
extern struct setting setting;
extern bool loud;
extern const char *found; /* the invariant that was broken */

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fault(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* 0 .. n-1: all of them, one after the other. */
unsigned choose(unsigned n);

/* model.c */
void model_begin(void);
unsigned model_steps(struct step *out); /* of the world, at most STEPS */
void model_take(struct step s);
void ask(const struct exchange *x); /* it is used; heard or not */
void meta_ask(const struct meta_exchange *m);
bool bookie_is_fenced(const struct bookie *b); /* or will be, if it does not crash */
void exchange_move(struct exchange *x);

/* eager.c */
bool eager_step(void); /* one that need not wait; false: there is none */

/* actors.c */
void writer_begin(void);
void writer_append(void);
void writer_close(void);
void writer_wake(void);
void writer_answer(const struct exchange *x, enum err err);
void writer_meta(const struct meta_exchange *m, enum err err);
void recoverer_begin(void);
void recoverer_answer(const struct exchange *x, enum err err);
void recoverer_meta(const struct meta_exchange *m, enum err err);
void recoverer_crash(void);
void actors_settle(void);
/* An answer would still be looked at. */
bool actor_waits(const struct exchange *x);
bool actor_waits_meta(const struct meta_exchange *m);

/* check.c */
int64_t length_at(entry_id e); /* of the ledger, with it */
unsigned size_at(entry_id e);
const struct fragment *fragment_at(const struct record *r, entry_id e);
void check_store(unsigned bookie, const struct exchange *x);
void check_put(const struct meta_exchange *m);
void check_state(void);
void check_end(void); /* nothing is left that could happen */

/* code.c */
uint64_t model_code(void); /* the same for states that only differ in which bookie is which */

#endif
