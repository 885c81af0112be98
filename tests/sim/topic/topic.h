/* topic.h - lives of one topic that two brokers take from each other: the managed ledger and its
 * cursors as they are, shells included, on a clock, a store and ledgers of this folder.
 *
 *   publish, ack, seek, trim, roll, terminate --> managed_ledger, cursor --> ledgers.c, store.c
 *                                                       |
 *   world.c: loop.h with one virtual clock; a broker's loop can be frozen, or be gone
 *
 * Of a ledger only its promise is lived (tests/sim shows that it is kept): what was confirmed
 * stays; what was sent may stay or not, whoever recovers decides; whoever wrote before is fenced.
 *
 * Threads: one.
 */
#ifndef TESTS_SIM_TOPIC_TOPIC_H
#define TESTS_SIM_TOPIC_TOPIC_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/managed_ledger/cursor.h"
#include "broker/managed_ledger/managed_ledger.h"
#include "metadata/metadata.h"
#include "tests/sim/topic/tally.h"

enum {
    LOGS = 512,
    LOG_ENTRIES = 64,
    VALUES = 240,
    CURSORS = 3,
    LATE = 2, /* the cursor that is made some time, by whoever has the topic or thinks so */
    OWNERS = 2,
    KEYS = 16,
    EVENTS = 16384
};

/* What really is in a ledger. */
struct log {
    int64_t id;
    bool of_cursor, fenced, closed, deleted;
    int64_t stored, confirmed; /* entries */
    struct slice entry[LOG_ENTRIES];
    int value[LOG_ENTRIES]; /* what was published there; -1: nobody knows yet */
};

struct owner {
    unsigned number;
    struct ml_owner tell;
    struct loop *loop;
    struct ledger_client *client;
    struct ml_env *env;
    struct managed_ledger *ml;
    enum { OWNER_OUT, OWNER_OPENING, OWNER_IN, OWNER_ENDING } state;
    unsigned life, opened; /* the how-manieth opening of all */
    uint64_t began_us;     /* to open it */
    bool resetting[CURSORS], terminating;
    unsigned acks[CURSORS]; /* under way */
    struct ml_call call;
};

struct value {
    enum { VALUE_NONE, VALUE_ASKED, VALUE_ACKED, VALUE_FAILED } state;
    unsigned messages, by; /* which opening */
    uint64_t index;
    struct position at;
    uint64_t acked_us;
};

enum ack_state { ACK_NEVER, ACK_MAYBE, ACK_DURABLE };

struct topic_knobs {
    unsigned away, unsure; /* per mille of the store's answers */
    unsigned fail;         /* per mille of appends, creations, closes, reads */
    unsigned slow_us;
    unsigned values;
    bool crashes, freezes, shortages, terminates, late;
};

struct sim_topic {
    uint64_t seed, now;
    bool loud, healed;
    const char *fault;
    char text[256];
    struct topic_knobs knobs;
    unsigned logs;
    struct log *log[LOGS];
    struct owner owner[OWNERS];
    struct metadata store;
    unsigned bookies; /* that live */
    unsigned openings;
    unsigned values;
    struct value value[VALUES];
    bool has_cursor[CURSORS];
    unsigned late_open;  /* askings to make the late one, without an answer that says it is */
    bool late_over;      /* it is to be deleted */
    uint64_t deleted_us; /* since when it is; 0: it may be there */
    uint8_t ack[CURSORS][LOGS][LOG_ENTRIES];
    uint64_t acked_us[CURSORS][LOGS][LOG_ENTRIES]; /* since when it is durable */
    uint64_t made_us[CURSORS], reset_us[CURSORS];
    unsigned resets[CURSORS], reset_by[CURSORS];
    bool reset_open[CURSORS]; /* it may still happen */
    bool terminated;
    uint64_t ended_us, healed_us;
    struct position end;
    bool again, over; /* the last owner has looked once; twice */
    struct topic_tally *tally;
};

extern struct sim_topic topic;

/* world.c */
void topic_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void topic_fault(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
unsigned topic_roll(unsigned n);
bool topic_chance(unsigned per_mille); /* never, once all is well */
unsigned topic_delay(void);            /* us */
/* On a loop, or NULL: nobody's. */
void topic_later(struct loop *l, uint64_t us, void (*run)(void *arg), void *arg);
struct loop *topic_loop_new(void);
void topic_loop_kill(struct loop *l);
void topic_loop_freeze(struct loop *l, uint64_t us);
void topic_run(void);

/* store.c, ledgers.c */
void store_begin(void);
struct ledger_client *client_new(struct loop *home); /* gives */
void bookies_are(unsigned n);
struct log *log_of(int64_t id); /* NULL: there is none */

/* life.c */
const char *topic_life(uint64_t seed, bool loud, struct topic_tally *tally);

/* check.c */
struct ml_entry;
void check_acked(unsigned v, struct position at, uint64_t index);
void check_entry(struct position at, unsigned v); /* seen there by somebody */
void check_deleted(const struct log *l);
void check_row(const struct owner *o); /* what is trimmed */
void check_cursors(const struct owner *o);

#endif
